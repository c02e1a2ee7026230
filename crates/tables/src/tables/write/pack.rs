//! Packs the rows of several files into one.
//!
//! A week is written by its workers, each to files of its own and wave by wave: which rows are in
//! which file depends on the number of workers. [`pack`] writes the pieces, in an order that does
//! not, into one file; [`parts`] chooses how many files.
//!
//! Large row groups are copied as they are: only offsets change, and statistics, page indexes,
//! Bloom filters and the plain form of columns ([`PlainColumn`](crate::tables::PlainColumn)) stay.
//! Smaller ones are read and encoded again, several together.
//!
//! Cost: one sequential copy of the files, and the encoding of small row groups.

use std::ops::Range;
use std::path::Path;

use anyhow::Result;

use super::Writer;
use crate::objects::FileContent;
use crate::tables::columns::Table;
use crate::tables::read::row_range::RowRange;

/// A part is full when its pieces have this many bytes: 64 MiB, so that a file costs its reader
/// little compared with its rows, and a week of a large crawl still has files for many readers at
/// once.
pub const PART_BYTES: u64 = 64 << 20;

/// Chooses the pieces of each file, from the `sizes` of all pieces in bytes: consecutive pieces
/// until they have [`PART_BYTES`]. The last part may be smaller.
///
/// ```
/// use nigh_tables::tables::parts;
/// let mib = 1 << 20;
/// assert_eq!(parts([40 * mib, 30 * mib, 90 * mib, 0, 1].into_iter()), [0..2, 2..3, 3..5]);
/// assert!(parts(std::iter::empty()).is_empty());
/// ```
pub fn parts(sizes: impl Iterator<Item = u64>) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut bytes = PART_BYTES;
    for (piece, size) in sizes.enumerate() {
        match parts.last_mut() {
            Some(part) if bytes < PART_BYTES => {
                part.end += 1;
                bytes += size;
            }
            _ => {
                parts.push(piece..piece + 1);
                bytes = size;
            }
        }
    }
    parts
}

/// A file that [`pack`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedFile {
    /// The number of rows of each source.
    pub rows: Vec<u64>,
    /// The size and digest of the file.
    pub content: FileContent,
}

/// Writes one file with the rows of the `sources`, in this order, and adds key-values to it, for
/// instance `nigh.week`. The file appears at `to` when it is complete; its folder is made.
///
/// If no source has rows, the file has no rows, and the columns of the first source, or of the
/// table if there is none. The bytes of the file depend only on the rows of the sources, on their
/// large row groups, and on the order. Its key-values are those of the first source with rows,
/// except those that are given and the version of the program.
///
/// # Errors
/// Names the file that cannot be read or written, or that has other columns than the first one.
pub fn pack<T: Table>(sources: &[RowRange], to: &Path, labels: &[(&str, &str)]) -> Result<PackedFile> {
    let mut writer = Writer::<T>::create(to)?;
    for source in sources {
        if source.known_rows() != Some(0) && source.rows()? > 0 {
            writer = writer.described_as(source)?;
            break;
        }
    }
    let mut writer = writer.labelled(labels);
    let rows = writer.append(sources)?;
    Ok(PackedFile { rows, content: writer.finish_with_content()? })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;
    use std::sync::{Arc, LazyLock};

    use arrow_array::RecordBatch;
    use arrow_select::concat::concat_batches;
    use parquet::bloom_filter::Sbbf;
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;
    use crate::records::mix;
    use crate::tables::write::groups::{COPIED, SMALL};
    use crate::tables::{
        AscendingColumn, ColumnSpec, DocumentRow, FeatureRow, PlainColumn, Scan, SizeRow, UrlRow, UtcMicros,
    };

    /// A row whose strings live as long as the test.
    fn document(doc: u64) -> DocumentRow<'static> {
        DocumentRow {
            doc: doc as i64,
            id: None,
            url: Some(format!("http://h{}/{doc}", doc % 97).leak()),
            given_url: None,
            host: Some(format!("h{}", doc % 97).leak()),
            domain: Some("h"),
            ip: doc.is_multiple_of(3).then_some("10.0.0.1"),
            fetched: doc.is_multiple_of(2).then_some(UtcMicros(doc as i64)),
            status: Some(200),
            media_type: Some("text/html"),
            bytes: mix(doc) as i64,
            checksum: u128::from(mix(doc)).to_be_bytes(),
            words: 7,
            title: "",
            file: "a.warc",
            offset: doc as i64,
            crawled: "2024-01-08".parse().unwrap(),
            stored: "2024-01-08".parse().unwrap(),
            charset: None,
            digest: None,
            record_id: None,
            length: None,
            record_url: None,
        }
    }

    /// The same, with a title of up to 3,000 random letters.
    fn long_document(doc: u64) -> DocumentRow<'static> {
        static LETTERS: LazyLock<String> =
            LazyLock::new(|| (0..1 << 20).map(|at| char::from(b'a' + (mix(at) % 26) as u8)).collect());
        let first = mix(doc) as usize % (LETTERS.len() - 3000);
        DocumentRow { title: &LETTERS[first..][..mix(doc + 1) as usize % 3000], ..document(doc) }
    }

    /// As [`document`].
    fn features(doc: u64) -> FeatureRow<'static> {
        let supershingles: Vec<u8> = (0..6).flat_map(|column| mix(doc * 6 + column).to_le_bytes()).collect();
        FeatureRow::new(doc as i64, supershingles.leak(), doc.to_le_bytes().to_vec().leak())
    }

    /// Pieces, each made of files with so many rows. Ids go on from file to file, with a gap before
    /// every 50th.
    fn pieces<T: Table>(folder: &Path, sizes: &[Vec<u64>], row: fn(u64) -> T) -> Vec<RowRange> {
        let mut docs = (0..).filter(|doc| doc % 50 != 7);
        let mut number = 0;
        let write = |rows: &u64| {
            number += 1;
            let path = folder.join(format!("{number}.parquet"));
            let mut writer: Writer<T> = Writer::create(&path).unwrap();
            docs.by_ref().take(*rows as usize).for_each(|doc| writer.push(row(doc)).unwrap());
            writer.finish().unwrap();
            RowRange::from(path)
        };
        let mut small = sizes.iter().flatten().map(write).collect::<Vec<_>>().into_iter();
        let pack_some = |(piece, of_piece): (usize, &Vec<u64>)| {
            let path = folder.join(format!("piece-{piece}.parquet"));
            let of_piece: Vec<RowRange> = small.by_ref().take(of_piece.len()).collect();
            pack::<T>(&of_piece, &path, &[]).unwrap();
            RowRange::from(path)
        };
        sizes.iter().enumerate().map(pack_some).collect()
    }

    fn random_sizes(seed: u64) -> Vec<Vec<u64>> {
        println!("seed {seed}");
        let size = |at: u64| match mix(at) % 4 {
            0 => 0,
            1 => mix(at + 1) % 50,
            2 => mix(at + 2) % 9000,
            _ => 16_000 + mix(at + 2) % 9000,
        };
        let piece = |piece: u64| (0..mix(seed + piece) % 4).map(|group| size(seed + 100 * piece + group)).collect();
        (0..9).map(piece).collect()
    }

    /// All rows of some columns.
    fn values(rows: &RowRange, columns: &[&str]) -> Option<RecordBatch> {
        let mut scan = Scan::open(rows, columns).unwrap();
        let batches: Vec<RecordBatch> = std::iter::from_fn(|| scan.batch().unwrap()).collect();
        batches.first().map(|first| concat_batches(&first.schema(), &batches).unwrap())
    }

    /// The packed file, and in it the rows of each piece.
    fn packed<T: Table>(folder: &Path, pieces: &[RowRange]) -> (PathBuf, Vec<RowRange>) {
        let path = folder.join("packed/all.parquet");
        let PackedFile { rows: counts, content } = pack::<T>(pieces, &path, &[]).unwrap();
        assert_eq!(content, FileContent::of_file(&path).unwrap());
        let file = RowRange::file(&path);
        assert_eq!(file.rows().unwrap(), counts.iter().sum::<u64>());
        let mut first = 0;
        let parts = counts.iter().map(|count| {
            first += count;
            file.part(first - count..first)
        });
        (path, parts.collect())
    }

    /// The number of rows of each row group.
    fn group_sizes(path: &Path) -> Vec<i64> {
        let footer = RowRange::file(path).open().unwrap().footer;
        footer.metadata().row_groups().iter().map(|group| group.num_rows()).collect()
    }

    /// The order, statistics, page index, encodings and Bloom filters of row groups, as text
    /// without places in the file.
    fn described<T: Table>(rows: &RowRange) -> Vec<String> {
        let opened = rows.open().unwrap();
        let metadata = opened.footer.metadata();
        let describe = |number: usize| {
            let group = metadata.row_group(number);
            let index = metadata.page_index_for_row_group(number);
            let columns = group.columns().iter().enumerate().map(|(place, column)| {
                let start = column.byte_range().0 as i64;
                let pages: Vec<[i64; 3]> = index
                    .page_locations(place)
                    .unwrap()
                    .iter()
                    .map(|page| [page.offset - start, page.compressed_page_size.into(), page.first_row_index])
                    .collect();
                let of_column = (column.statistics(), column.page_encoding_stats(), column.byte_range().1);
                assert!(column.page_encoding_stats().is_some());
                let filter = Sbbf::read_from_column_chunk(column, &opened.file).unwrap();
                let searched = |spec: &ColumnSpec| spec.searched && spec.name == column.column_descr().name();
                let filtered = T::COLUMNS.iter().any(searched) && group.num_rows() as usize >= SMALL;
                assert!(filter.is_some() == filtered);
                format!("{of_column:?} {pages:?} {:?} {filter:?}", index.column_index(place))
            });
            assert!(group.sorting_columns().is_some());
            format!("{} {:?} {:?}", group.num_rows(), group.sorting_columns(), columns.collect::<Vec<_>>())
        };
        opened.groups().0.map(describe).collect()
    }

    #[test]
    fn every_reader_gives_the_same_from_a_piece_of_a_packed_file() {
        for seed in [11, 22_222, 3_333_333] {
            let folder = tempfile::tempdir().unwrap();
            let pieces = pieces(folder.path(), &random_sizes(seed), features);
            let (path, parts) = packed::<FeatureRow>(folder.path(), &pieces);
            let sizes: Vec<u64> = pieces.iter().map(|piece| piece.rows().unwrap()).collect();
            assert!(sizes.contains(&0) && sizes.iter().any(|rows| *rows > COPIED as u64));
            assert_eq!(RowRange::file(&path).rows().unwrap(), sizes.iter().sum::<u64>());
            for (piece, part) in pieces.iter().zip(&parts) {
                let count = piece.rows().unwrap();
                assert_eq!(part.rows().unwrap(), count);
                for columns in [&["doc", "vector", "supershingles", "features"][..], &["features"]] {
                    // Without rows the width of values is not known.
                    assert_eq!(values(part, columns), values(piece, columns));
                }
                let some: Vec<u64> = (0..count).step_by(61).collect();
                if count > 0 {
                    let open = |rows: &RowRange| PlainColumn::open(rows, "supershingles", 6).unwrap();
                    let (of_part, of_piece) = (open(part), open(piece));
                    assert_eq!(of_part.rows(), count);
                    let (all, expected) = (of_part.read(0, count as usize), of_piece.read(0, count as usize));
                    assert_eq!(all.unwrap()[..], expected.unwrap()[..]);
                    assert!(of_part.read(0, count as usize + 1).is_err(), "not the next piece's rows");
                    let each = |column: &PlainColumn| {
                        let mut values = Vec::new();
                        column.each(&some, |value| values.extend_from_slice(value)).unwrap();
                        values
                    };
                    assert_eq!(each(&of_part), each(&of_piece));
                    let texts = |rows: &RowRange| {
                        let mut scan = Scan::of_rows(rows, "features", &some).unwrap();
                        std::iter::from_fn(|| scan.batch().unwrap()).collect::<Vec<_>>()
                    };
                    assert_eq!(texts(part), texts(piece));
                }
                assert!(Scan::of_rows(part, "features", &[count]).is_err(), "not the next piece's row");
                let [ids, expected] = [part, piece].map(|rows| AscendingColumn::open(rows, "doc").unwrap());
                let wanted: Vec<u64> = (0..200_000).step_by(13).collect();
                assert_eq!(ids.find(&wanted).unwrap(), expected.find(&wanted).unwrap());
                assert_eq!(ids.read(0, count as usize).unwrap()[..], expected.read(0, count as usize).unwrap()[..]);
            }
        }
    }

    #[test]
    fn large_row_groups_are_copied_and_small_ones_are_joined() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = [3, 900, 20_000, 5000, 4000, 30_000, 6000, 6000, 6000, 6000, 6000, 6000, 6000, 7];
        let pieces = pieces(folder.path(), &sizes.map(|size| vec![size]), document);
        let (path, parts) = packed::<DocumentRow>(folder.path(), &pieces);
        assert_eq!(group_sizes(&path), [903, 20_000, 9000, 30_000, 36_000, 6007]);
        for large in [2, 5] {
            assert_eq!(described::<DocumentRow>(&parts[large]), described::<DocumentRow>(&pieces[large]));
        }
        assert_eq!(described::<DocumentRow>(&RowRange::file(&path)).len(), 6);
    }

    #[test]
    fn rows_with_large_values_are_copied_and_joined_by_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = [12_000, 9000, 2000, 1000, 4000, 5000, 4000, 5000];
        let pieces = pieces(folder.path(), &sizes.map(|size| vec![size]), long_document);
        let (path, parts) = packed::<DocumentRow>(folder.path(), &pieces);
        // 1,500 bytes a row and more: 8 MiB are some 5,400 rows, and 16 MiB twice as many.
        assert_eq!(group_sizes(&path), [12_000, 9000, 12_000, 9000]);
        for large in [0, 1] {
            assert_eq!(described::<DocumentRow>(&parts[large]), described::<DocumentRow>(&pieces[large]));
        }
        for (piece, part) in pieces.iter().zip(&parts) {
            assert_eq!(values(part, &["doc", "title"]), values(piece, &["doc", "title"]));
        }
    }

    #[test]
    fn a_row_group_ends_where_its_rows_would_not_ascend() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, third] =
            <[RowRange; 3]>::try_from(pieces(folder.path(), &[vec![1500], vec![2000], vec![9]], document)).unwrap();
        let (path, parts) = packed::<DocumentRow>(folder.path(), &[second.clone(), third.clone(), first.clone()]);
        assert_eq!(group_sizes(&path), [2009, 1500]);
        for (part, piece) in parts.iter().zip([second, third, first]) {
            assert_eq!(values(part, &["doc", "url"]), values(&piece, &["doc", "url"]));
        }
    }

    #[test]
    fn packing_does_not_depend_on_where_the_pieces_are() {
        let folder = tempfile::tempdir().unwrap();
        for (seed, row) in
            [(5, document as fn(u64) -> _), (66, document), (777, document), (8, long_document), (9, long_document)]
        {
            let sizes: Vec<Vec<u64>> = random_sizes(seed).into_iter().flatten().map(|size| vec![size]).collect();
            let pieces = pieces(folder.path(), &sizes, row);
            let (path, parts) = packed::<DocumentRow>(folder.path(), &pieces);
            let bytes = std::fs::read(&path).unwrap();
            let again = folder.path().join("again.parquet");
            for sources in [&pieces, &parts] {
                pack::<DocumentRow>(sources, &again, &[]).unwrap();
                assert!(std::fs::read(&again).unwrap() == bytes, "from {sources:?}");
            }
            // Pieces of one, two and four workers, each with a bundle of its own.
            let mut sizes = Vec::new();
            for workers in [1, 2, 4] {
                let mut bundles: Vec<Writer<DocumentRow>> = (0..workers)
                    .map(|worker| {
                        Writer::bundle(&folder.path().join(format!("{worker}-of-{workers}.parquet"))).unwrap()
                    })
                    .collect();
                let mut placed = Vec::new();
                for (number, piece) in pieces.iter().enumerate() {
                    let bundle = &mut bundles[number % workers];
                    let first = bundle.len();
                    let columns: Vec<&str> = DocumentRow::COLUMNS.iter().map(|column| column.name).collect();
                    Scan::open_by(piece, &columns, 777 + 1000 * workers)
                        .unwrap()
                        .for_each(|batch| bundle.push_rows(batch))
                        .unwrap();
                    sizes.push(bundle.end_piece().unwrap());
                    placed.push((number % workers, first..bundle.len()));
                }
                bundles.into_iter().for_each(|bundle| assert!(bundle.finish().is_ok()));
                let files: Vec<RowRange> = (0..workers)
                    .map(|worker| RowRange::file(folder.path().join(format!("{worker}-of-{workers}.parquet"))))
                    .collect();
                let sources: Vec<RowRange> =
                    placed.into_iter().map(|(worker, rows)| files[worker].part(rows)).collect();
                pack::<DocumentRow>(&sources, &again, &[]).unwrap();
                assert!(std::fs::read(&again).unwrap() == bytes, "seed {seed}, {workers} workers");
            }
            let (one, others) = sizes.split_at(pieces.len());
            assert!(others.chunks(pieces.len()).all(|sizes| sizes == one), "the sizes of pieces, too");
        }
        let whole = RowRange::file("all.parquet");
        assert_eq!(whole.part(2..5).part(1..2), whole.part(3..4));
    }

    #[test]
    fn without_rows_the_file_has_the_columns_of_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let [empty, packed] = ["empty.parquet", "packed.parquet"].map(|name| folder.path().join(name));
        Writer::<SizeRow>::create(&empty).unwrap().finish().unwrap();
        assert_eq!(pack::<SizeRow>(&[], &packed, &[]).unwrap().rows.len(), 0);
        let none = std::fs::read(&packed).unwrap();
        assert_eq!(pack::<SizeRow>(&[(&empty).into(), (&empty).into()], &packed, &[]).unwrap().rows, [0, 0]);
        assert!(std::fs::read(&packed).unwrap() == none);
        assert!(Scan::open(&packed, &["level", "size", "clusters"]).unwrap().batch().unwrap().is_none());
        // An empty file gives its columns to the packed one.
        let narrow = FeatureRow::new(0, &[0; 8], &[0; 4]);
        Writer::<FeatureRow>::create(&empty).unwrap().like(narrow).finish().unwrap();
        assert_eq!(pack::<FeatureRow>(&[(&empty).into()], &packed, &[]).unwrap().rows, [0]);
        assert_eq!(std::fs::read(&packed).unwrap(), std::fs::read(&empty).unwrap());
    }

    #[test]
    fn labels_replace_those_of_the_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let [small, packed] = ["small.parquet", "packed.parquet"].map(|name| folder.path().join(name));
        let writer: Writer<SizeRow> = Writer::create(&small).unwrap();
        let mut writer = writer.labelled(&[("nigh.job", "a")]);
        writer.push(SizeRow { level: "exact", size: 1, clusters: 1 }).unwrap();
        writer.finish().unwrap();
        pack::<SizeRow>(&[(&small).into()], &packed, &[("nigh.job", "b"), ("nigh.week", "2024-01-08")]).unwrap();
        let footer = RowRange::file(&packed).open().unwrap().footer;
        let pairs = footer.metadata().file_metadata().key_value_metadata().unwrap();
        let of_key = |key: &str| pairs.iter().filter(|p| p.key == key).map(|p| p.value.clone()).collect::<Vec<_>>();
        assert_eq!(of_key("nigh.job"), [Some("b".into())]);
        assert_eq!(of_key("nigh.week"), [Some("2024-01-08".into())]);
        assert_eq!(of_key("nigh.table"), [Some("sizes".into())]);
        let fields = |path: &Path| RowRange::file(path).open().unwrap().footer.schema().fields().clone();
        assert_eq!(fields(&packed), fields(&small));
        assert_eq!(fields(&packed)[1].metadata()["description"], "pages of a cluster, from 1");
        // Without labels those of the pieces stay.
        pack::<SizeRow>(&[(&packed).into()], &small, &[]).unwrap();
        assert!(std::fs::read(&small).unwrap() == std::fs::read(&packed).unwrap());
    }

    #[test]
    fn a_file_that_does_not_fit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let [sizes, urls, to] = ["sizes.parquet", "urls.parquet", "to.parquet"].map(|name| folder.path().join(name));
        let mut writer: Writer<SizeRow> = Writer::create(&sizes).unwrap();
        writer.push(SizeRow { level: "exact", size: 1, clusters: 1 }).unwrap();
        writer.finish().unwrap();
        let mut writer: Writer<UrlRow> = Writer::create(&urls).unwrap();
        writer.push(UrlRow { doc: 1, hash: [3; 16], url: Some("http://h/"), id: None }).unwrap();
        writer.finish().unwrap();
        let error = pack::<SizeRow>(&[(&sizes).into(), (&urls).into()], &to, &[]).unwrap_err().to_string();
        assert!(error.contains("urls.parquet") && !to.exists(), "{error}");
        let beyond = RowRange::file(&sizes).part(1..3);
        let error = Scan::open(&beyond, &["size"]).err().unwrap().to_string();
        assert!(error.contains("sizes.parquet has 1 rows"), "{error}");
        // A file that could not be read is read when it is there.
        let later = RowRange::file(folder.path().join("later.parquet"));
        let error = later.rows().unwrap_err().to_string();
        assert!(error.contains("later.parquet"), "{error}");
        std::fs::copy(&sizes, later.path()).unwrap();
        assert_eq!(later.rows().unwrap(), 1);
    }

    #[test]
    fn the_pieces_of_a_file_share_its_footer() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = pieces(folder.path(), &[vec![10], vec![20, 30]], features);
        let (_, parts) = packed::<FeatureRow>(folder.path(), &pieces);
        let [first, last] = [&parts[0], &parts[1]].map(|rows| rows.open().unwrap().footer);
        assert!(Arc::ptr_eq(first.metadata(), last.metadata()));
    }

    #[test]
    fn parquet_reads_the_file_back_with_its_page_index() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = pieces(folder.path(), &[vec![10], vec![20_000], vec![30], vec![5000], vec![]], document);
        let (path, _) = packed::<DocumentRow>(folder.path(), &pieces);
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required)
            .parse_and_finish(&File::open(path).unwrap())
            .unwrap();
        let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(rows, [10, 20_000, 5030], "a large row group stays as it is, small ones are joined");
    }

    #[test]
    fn a_part_ends_with_the_piece_that_fills_it() {
        assert_eq!(parts([PART_BYTES - 1, 1, 1].into_iter()), [0..2, 2..3]);
        assert!(parts([0, 0, 0].into_iter()).into_iter().eq(std::iter::once(0..3)));
        assert_eq!(parts([3 * PART_BYTES, PART_BYTES].into_iter()), [0..1, 1..2]);
        let sizes = |seed: u64| (0..200).map(move |piece| mix(seed + piece) % (PART_BYTES / 3));
        let chosen = parts(sizes(9));
        assert!(chosen.iter().flat_map(Clone::clone).eq(0..200), "every piece is in one part, in order");
        let bytes = |part: &Range<usize>| sizes(9).skip(part.start).take(part.len()).sum::<u64>();
        assert!(chosen[..chosen.len() - 1].iter().all(|part| (PART_BYTES..PART_BYTES * 4 / 3).contains(&bytes(part))));
    }
}
