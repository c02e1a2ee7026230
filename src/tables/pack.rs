//! Packs row groups of several files into one, without reading their rows.
//!
//! A week is written by its workers, each to files of its own and wave by wave: which rows are in which file depends on the number of workers.
//! [`pack`] copies the row groups of pieces, in an order that does not, into one file; [`parts`] chooses how many.
//!
//! The bytes of each column are copied as they are; only offsets change. Statistics, page indexes, Bloom filters and the plain
//! form of columns ([`PlainColumn`](super::PlainColumn)) stay. Cost: one sequential copy of the files.

use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::arrow::add_encoded_arrow_schema_to_metadata;
use parquet::file::writer::SerializedFileWriter;

use super::columns::Table;
use super::describe;
use super::groups::append;
use super::row_groups::RowGroups;
use super::write::{Target, Writer, properties};

/// A part is full when its pieces have this many bytes: 64 MiB, so that a file costs its reader little compared with its rows,
/// and a week of a large crawl still has files for many readers at once.
pub const PART_BYTES: u64 = 64 << 20;

/// Chooses the pieces of each file, from the `sizes` of all pieces in bytes: consecutive pieces until they have
/// [`PART_BYTES`]. The last part may be smaller.
///
/// ```
/// use nigh::tables::parts;
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

/// Writes one file whose row groups are those of the `sources`, in this order, unchanged. Returns the number of row groups of
/// each source: 0 for one without rows. The file appears at `to` when it is complete; its folder is made.
///
/// If no source has rows, the file has no rows, and the columns of the first source, or of the table if there is none. The bytes
/// of the file depend only on those of the sources and on their order. Its key-values are those of the first source with rows.
///
/// # Errors
/// Names the file that cannot be read or written, or that has other columns than the first one.
pub fn pack<T: Table>(sources: &[RowGroups], to: &Path) -> Result<Vec<usize>> {
    pack_labelled::<T>(sources, to, &[])
}

/// As [`pack`], and adds key-values to the file, for instance `nigh.week`. A key that the file has already gets the new value.
///
/// # Errors
/// As [`pack`].
pub fn pack_labelled<T: Table>(sources: &[RowGroups], to: &Path, labels: &[(&str, &str)]) -> Result<Vec<usize>> {
    let counts = sources.iter().map(RowGroups::count).collect::<Result<Vec<usize>>>()?;
    let with_rows = || sources.iter().zip(&counts).filter(|(_, count)| **count > 0).map(|(source, _)| source);
    let Some(first) = with_rows().next().or(sources.first()) else {
        Writer::<T>::create(to)?.labelled(labels).finish()?;
        return Ok(counts);
    };
    let target = Target::create(to)?;
    let failed = || format!("cannot write {}", target.temporary().display());
    let mut writer = {
        let footer = first.open()?.footer;
        let described = footer.metadata().file_metadata();
        let mut key_values = described.key_value_metadata().cloned().unwrap_or_default();
        describe::set(&mut key_values, describe::VERSION, env!("CARGO_PKG_VERSION"));
        labels.iter().for_each(|(key, value)| describe::set(&mut key_values, key, value));
        let schema = footer.schema().as_ref().clone().with_metadata(describe::of_schema(&key_values));
        let mut properties = properties(T::SPEC).set_key_value_metadata(Some(key_values)).build();
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let file = BufWriter::new(File::create(target.temporary()).with_context(failed)?);
        SerializedFileWriter::new(file, described.schema_descr().root_schema_ptr(), Arc::new(properties))
            .with_context(failed)?
    };
    for source in with_rows() {
        let opened = source.open()?;
        let copied = || format!("cannot copy {} to {}", source.path().display(), target.temporary().display());
        append(&mut writer, &opened).with_context(copied)?;
    }
    let file = writer.into_inner().with_context(failed)?;
    file.into_inner().map_err(|error| error.into_error()).with_context(failed)?;
    target.finish()?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use arrow_array::{BooleanArray, RecordBatch};
    use parquet::bloom_filter::Sbbf;
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;
    use crate::records::mix;
    use crate::tables::groups::SMALL;
    use crate::tables::row_groups::Opened;
    use crate::tables::{
        AscendingColumn, ColumnSpec, DocumentRow, FeatureRow, PlainColumn, Scan, SizeRow, UrlRow, UtcMicros, copy_rows,
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

    /// As [`document`].
    fn features(doc: u64) -> FeatureRow<'static> {
        let supershingles: Vec<u8> = (0..6).flat_map(|column| mix(doc * 6 + column).to_le_bytes()).collect();
        FeatureRow::new(doc as i64, supershingles.leak(), doc.to_le_bytes().to_vec().leak())
    }

    /// Files of one or more row groups, by their sizes in rows. Ids go on from file to file, with a gap before every 50th.
    fn pieces<T: Table>(folder: &Path, sizes: &[Vec<u64>], row: fn(u64) -> T) -> Vec<RowGroups> {
        let mut docs = (0..).filter(|doc| doc % 50 != 7);
        let mut number = 0;
        let write = |rows: &u64| {
            number += 1;
            let path = folder.join(format!("{number}.parquet"));
            let mut writer: Writer<T> = Writer::create(&path).unwrap();
            docs.by_ref().take(*rows as usize).for_each(|doc| writer.push(row(doc)).unwrap());
            writer.finish().unwrap();
            RowGroups::from(path)
        };
        let mut small = sizes.iter().flatten().map(write).collect::<Vec<_>>().into_iter();
        let pack_some = |(piece, of_piece): (usize, &Vec<u64>)| {
            let path = folder.join(format!("piece-{piece}.parquet"));
            let of_piece: Vec<RowGroups> = small.by_ref().take(of_piece.len()).collect();
            pack::<T>(&of_piece, &path).unwrap();
            RowGroups::from(path)
        };
        sizes.iter().enumerate().map(pack_some).collect()
    }

    fn random_sizes(seed: u64) -> Vec<Vec<u64>> {
        println!("seed {seed}");
        let size = |at: u64| match mix(at) % 4 {
            0 => 0,
            1 => mix(at + 1) % 50,
            _ => mix(at + 2) % 9000,
        };
        let piece = |piece: u64| (0..mix(seed + piece) % 4).map(|group| size(seed + 100 * piece + group)).collect();
        (0..9).map(piece).collect()
    }

    fn batches(rows: &RowGroups, columns: &[&str]) -> Vec<RecordBatch> {
        let mut scan = Scan::open(rows, columns).unwrap();
        std::iter::from_fn(|| scan.batch().unwrap()).collect()
    }

    /// The packed file, and in it the row groups of each piece.
    fn packed<T: Table>(folder: &Path, pieces: &[RowGroups]) -> (PathBuf, Vec<RowGroups>) {
        let path = folder.join("packed/all.parquet");
        let counts = pack::<T>(pieces, &path).unwrap();
        let file = RowGroups::file(&path);
        assert_eq!(file.count().unwrap(), counts.iter().sum::<usize>());
        let mut first = 0;
        let groups = counts.iter().map(|count| {
            first += count;
            file.groups(first - count..first)
        });
        (path, groups.collect())
    }

    /// Every row group's order, statistics, page index, encodings and Bloom filters, as text without places in the file.
    fn described<T: Table>(rows: &RowGroups) -> Vec<String> {
        let Opened { file, footer, groups } = rows.open().unwrap();
        let metadata = footer.metadata();
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
                let filter = Sbbf::read_from_column_chunk(column, &file).unwrap();
                let searched = |spec: &ColumnSpec| spec.searched && spec.name == column.column_descr().name();
                let filtered = T::COLUMNS.iter().any(searched) && group.num_rows() as usize >= SMALL;
                assert!(filter.is_some() == filtered);
                format!("{of_column:?} {pages:?} {:?} {filter:?}", index.column_index(place))
            });
            assert!(group.sorting_columns().is_some());
            format!("{} {:?} {:?}", group.num_rows(), group.sorting_columns(), columns.collect::<Vec<_>>())
        };
        groups.map(describe).collect()
    }

    #[test]
    fn every_reader_gives_the_same_from_a_piece_of_a_packed_file() {
        for seed in [11, 22_222, 3_333_333] {
            let folder = tempfile::tempdir().unwrap();
            let pieces = pieces(folder.path(), &random_sizes(seed), features);
            let (path, groups) = packed::<FeatureRow>(folder.path(), &pieces);
            assert!(pieces.iter().any(|piece| piece.count().unwrap() > 1), "a piece has several row groups");
            assert!(pieces.iter().any(|piece| piece.count().unwrap() == 0), "a piece has none");
            let total: u64 = pieces.iter().map(|piece| piece.rows().unwrap()).sum();
            assert_eq!(RowGroups::file(&path).rows().unwrap(), total);
            for (piece, groups) in pieces.iter().zip(&groups) {
                let count = piece.rows().unwrap();
                assert_eq!(groups.rows().unwrap(), count);
                assert_eq!(described::<FeatureRow>(groups), described::<FeatureRow>(piece));
                for columns in [&["doc", "vector", "supershingles", "features"][..], &["features"]] {
                    // Without rows the width of values is not known.
                    assert_eq!(batches(groups, columns), batches(piece, columns));
                }
                if count > 0 {
                    let open = |rows: &RowGroups| PlainColumn::open(rows, "supershingles", 6).unwrap();
                    let (of_groups, of_piece) = (open(groups), open(piece));
                    assert_eq!(of_groups.rows(), count);
                    let (all, expected) = (of_groups.read(0, count as usize), of_piece.read(0, count as usize));
                    assert_eq!(all.unwrap()[..], expected.unwrap()[..]);
                    assert!(of_groups.read(0, count as usize + 1).is_err(), "not the next piece's rows");
                    let some: Vec<u64> = (0..count).step_by(61).collect();
                    let each = |column: &PlainColumn| {
                        let mut values = Vec::new();
                        column.each(&some, |value| values.extend_from_slice(value)).unwrap();
                        values
                    };
                    assert_eq!(each(&of_groups), each(&of_piece));
                }
                let [ids, expected] = [groups, piece].map(|rows| AscendingColumn::open(rows, "doc").unwrap());
                let wanted: Vec<u64> = (0..60_000).step_by(13).collect();
                assert_eq!(ids.find(&wanted).unwrap(), expected.find(&wanted).unwrap());
                assert_eq!(ids.read(0, count as usize).unwrap()[..], expected.read(0, count as usize).unwrap()[..]);
            }
        }
    }

    #[test]
    fn packing_does_not_depend_on_how_the_pieces_were_packed() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = pieces(folder.path(), &random_sizes(5), document);
        let (path, groups) = packed::<DocumentRow>(folder.path(), &pieces);
        let bytes = std::fs::read(&path).unwrap();
        let again = folder.path().join("again.parquet");
        for sources in [&pieces, &groups, &vec![RowGroups::file(&path)]] {
            pack::<DocumentRow>(sources, &again).unwrap();
            assert!(std::fs::read(&again).unwrap() == bytes, "from {sources:?}");
        }
        for (piece, groups) in pieces.iter().zip(&groups) {
            assert_eq!(described::<DocumentRow>(groups), described::<DocumentRow>(piece));
            // A copy without a loss is the piece again.
            let keep = |batch: &RecordBatch| Ok(BooleanArray::from(vec![true; batch.num_rows()]));
            let mut writer: Writer<DocumentRow> = Writer::create(&again).unwrap();
            let copied = copy_rows(groups, &mut writer, &["doc"], keep).unwrap();
            writer.finish().unwrap();
            assert_eq!((copied.kept, copied.left_out), (piece.rows().unwrap(), 0));
            assert!(std::fs::read(&again).unwrap() == std::fs::read(piece.path()).unwrap(), "{groups:?}");
        }
        let whole = RowGroups::file(&path);
        assert_eq!(whole.groups(2..5).groups(1..2), whole.groups(3..4));
    }

    #[test]
    fn without_rows_the_file_has_the_columns_of_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let [empty, packed] = ["empty.parquet", "packed.parquet"].map(|name| folder.path().join(name));
        Writer::<SizeRow>::create(&empty).unwrap().finish().unwrap();
        assert_eq!(pack::<SizeRow>(&[], &packed).unwrap().len(), 0);
        let none = std::fs::read(&packed).unwrap();
        assert_eq!(pack::<SizeRow>(&[(&empty).into(), (&empty).into()], &packed).unwrap(), [0, 0]);
        assert!(std::fs::read(&packed).unwrap() == none);
        assert!(Scan::open(&packed, &["level", "size", "clusters"]).unwrap().batch().unwrap().is_none());
        // An empty file gives its columns to the packed one.
        let narrow = FeatureRow::new(0, &[0; 8], &[0; 4]);
        Writer::<FeatureRow>::create(&empty).unwrap().like(narrow).finish().unwrap();
        assert_eq!(pack::<FeatureRow>(&[(&empty).into()], &packed).unwrap(), [0]);
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
        pack_labelled::<SizeRow>(&[(&small).into()], &packed, &[("nigh.job", "b"), ("nigh.week", "2024-01-08")])
            .unwrap();
        let footer = RowGroups::file(&packed).open().unwrap().footer;
        let pairs = footer.metadata().file_metadata().key_value_metadata().unwrap();
        let of_key = |key: &str| pairs.iter().filter(|p| p.key == key).map(|p| p.value.clone()).collect::<Vec<_>>();
        assert_eq!(of_key("nigh.job"), [Some("b".into())]);
        assert_eq!(of_key("nigh.week"), [Some("2024-01-08".into())]);
        assert_eq!(of_key("nigh.table"), [Some("sizes".into())]);
        let fields = |path: &Path| RowGroups::file(path).open().unwrap().footer.schema().fields().clone();
        assert_eq!(fields(&packed), fields(&small));
        assert_eq!(fields(&packed)[1].metadata()["description"], "pages of a cluster, from 1");
        // Without labels those of the pieces stay.
        pack::<SizeRow>(&[(&packed).into()], &small).unwrap();
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
        let error = pack::<SizeRow>(&[(&sizes).into(), (&urls).into()], &to).unwrap_err().to_string();
        assert!(error.contains("urls.parquet") && !to.exists(), "{error}");
        let beyond = RowGroups::file(&sizes).groups(1..3);
        let error = Scan::open(&beyond, &["size"]).err().unwrap().to_string();
        assert!(error.contains("sizes.parquet has 1 row groups"), "{error}");
        // A file that could not be read is read when it is there.
        let later = RowGroups::file(folder.path().join("later.parquet"));
        let error = later.rows().unwrap_err().to_string();
        assert!(error.contains("later.parquet"), "{error}");
        std::fs::copy(&sizes, later.path()).unwrap();
        assert_eq!(later.rows().unwrap(), 1);
    }

    #[test]
    fn the_pieces_of_a_file_share_its_footer() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = pieces(folder.path(), &[vec![10], vec![20, 30]], features);
        let (_, groups) = packed::<FeatureRow>(folder.path(), &pieces);
        let [first, last] = [&groups[0], &groups[1]].map(|rows| rows.open().unwrap().footer);
        assert!(Arc::ptr_eq(first.metadata(), last.metadata()));
    }

    #[test]
    fn parquet_reads_the_file_back_with_its_page_index() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = pieces(folder.path(), &[vec![10], vec![20_000, 30], vec![]], document);
        let (path, _) = packed::<DocumentRow>(folder.path(), &pieces);
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required)
            .parse_and_finish(&File::open(path).unwrap())
            .unwrap();
        let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(rows, [10, 20_000, 30]);
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
