//! Reads the roots and cluster ids of a committed week, each worker those of its own documents.
//!
//! For roots it morally does this:
//!
//! ```text
//! for (doc, similar, identical) in the rows of the files
//!     roots.similar[number of doc], roots.identical[number of doc] = similar, identical
//! ```
//!
//! In most files documents have no gaps, and a batch of rows is appended as a whole.

use anyhow::{Error, Result, bail};
use arrow_array::{Array, Int64Array};

use crate::kernels::memory::advise_huge_pages;
use crate::records::DocId;
use crate::structures::{Ownership, SparseDocs};
use crate::tables::{PieceScan, RowRange, field};

/// Last week's clusters of the documents that a worker owns.
pub struct PastClusters {
    /// The cluster id of each document, by its number; none for a document without a cluster.
    pub names: SparseDocs,
    /// The id and the number of pages of each cluster whose root the worker owns.
    pub clusters: Vec<(DocId, u64)>,
}

/// The roots of the documents that a worker owns, by their numbers; [`DocId::NONE`] for a document
/// without a vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorRoots {
    /// The roots of clusters of very similar documents.
    pub similar: Vec<DocId>,
    /// The roots of clusters of virtually identical documents.
    pub identical: Vec<DocId>,
}

/// Reads the roots of a worker's documents from `files`, each with its shard: files of any table
/// with the columns `doc`, `similar_root` and `identical_root`.
///
/// # Errors
/// If a file cannot be read, has a document that does not belong to its shard, or a root that is
/// not a document: names the file.
pub fn read_roots(files: impl Iterator<Item = (RowRange, u32)>, owned: &Ownership) -> Result<VectorRoots> {
    // Not filled with NONE: if no document is missing, each page of memory is written once. Fresh
    // memory is a large part of the time.
    let empty = || {
        let mut roots = Vec::with_capacity(owned.len());
        advise_huge_pages(roots.spare_capacity_mut());
        roots
    };
    let set = |roots: &mut Vec<DocId>, number, root| {
        if number < roots.len() {
            roots[number] = root;
        } else {
            roots.resize(number, DocId::NONE);
            roots.push(root);
        }
    };
    let mut roots = VectorRoots { similar: empty(), identical: empty() };
    let (files, shards): (Vec<RowRange>, Vec<u32>) = files.unzip();
    PieceScan::new(files.clone(), &["doc", "similar_root", "identical_root"]).for_each(|piece, batch| {
        let (path, shard) = (files[piece].path(), shards[piece]);
        {
            let column = |name| Ok::<_, Error>(bytemuck::cast_slice(field::<Int64Array>(batch, name)?.values()));
            let (docs, similar, identical): (&[DocId], &[DocId], &[DocId]) =
                (column("doc")?, column("similar_root")?, column("identical_root")?);
            if let Some(row) = (0..docs.len()).find(|row| !owned.knows(similar[*row]) || !owned.knows(identical[*row]))
            {
                bail!("{} has a root of the document {} that is not a document", path.display(), docs[row]);
            }
            let (Some(first), Some(last)) = (docs.first(), docs.last()) else { return Ok(()) };
            [first, last].into_iter().try_for_each(|doc| owned.check(*doc, shard, path))?;
            // Documents without a gap, from the next number on: append the whole batch.
            let rows = first.row()..;
            if owned.index(*first) == roots.similar.len()
                && docs.iter().zip(rows).all(|(doc, row)| *doc == DocId::new(shard, row))
            {
                roots.similar.extend_from_slice(similar);
                roots.identical.extend_from_slice(identical);
                return Ok(());
            }
            for (doc, (similar, identical)) in docs.iter().zip(similar.iter().zip(identical)) {
                owned.check(*doc, shard, path)?;
                let number = owned.index(*doc);
                set(&mut roots.similar, number, *similar);
                set(&mut roots.identical, number, *identical);
            }
            Ok(())
        }
    })?;
    roots.similar.resize(owned.len(), DocId::NONE);
    roots.identical.resize(owned.len(), DocId::NONE);
    Ok(roots)
}

/// Reads last week's clusters of a worker's documents from `files` of the table `clusters`, each
/// with its shard.
///
/// # Errors
/// As [`read_roots`].
pub fn read_past(files: impl Iterator<Item = (RowRange, u32)>, owned: &Ownership) -> Result<PastClusters> {
    let (mut names, mut clusters) = (vec![DocId::NONE; owned.len()], Vec::new());
    let (files, shards): (Vec<RowRange>, Vec<u32>) = files.unzip();
    let columns = ["doc", "similar_root", "similar_size", "cluster_id"];
    PieceScan::new(files.clone(), &columns).for_each(|piece, batch| {
        let column = |name| field::<Int64Array>(batch, name);
        let (docs, roots, sizes) = (column("doc")?, column("similar_root")?, column("similar_size")?);
        let cluster_ids = column("cluster_id")?;
        for row in (0..batch.num_rows()).filter(|row| !cluster_ids.is_null(*row)) {
            let [doc, cluster_id] = [docs, cluster_ids].map(|column| DocId::from_table(column.value(row)));
            owned.check(doc, shards[piece], files[piece].path())?;
            names[owned.index(doc)] = cluster_id;
            if docs.value(row) == roots.value(row) {
                clusters.push((cluster_id, sizes.value(row) as u64));
            }
        }
        Ok(())
    })?;
    let named = names.iter().copied().enumerate().filter(|(_, name)| *name != DocId::NONE);
    Ok(PastClusters { names: SparseDocs::new(owned.len(), named), clusters })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::records::mix;
    use crate::tables::{Table, Writer};

    #[derive(Table)]
    #[table(name = "roots")]
    struct ScannedRow {
        #[columns(doc = "", similar_root = "", identical_root = "")]
        docs: [i64; 3],
    }

    fn write(path: &Path, rows: impl Iterator<Item = [DocId; 3]>) {
        let mut writer: Writer<ScannedRow> = Writer::create(path).unwrap();
        rows.for_each(|row| writer.push(ScannedRow { docs: row.map(DocId::to_table) }).unwrap());
        writer.finish().unwrap();
    }

    #[test]
    fn roots_are_read_from_files_in_any_arrangement() {
        let folder = tempfile::tempdir().unwrap();
        let owned = Ownership::new(0, 1, &[20_000, 0, 9_000]);
        let random = |doc: DocId, salt: u64, below: u64| mix(doc.to_table() as u64 ^ salt << 50) % below;
        let row = |doc: DocId| [doc, DocId::new(2, random(doc, 1, 9_000)), DocId::new(0, random(doc, 2, 20_000))];
        // One file, two files one after the other, and three files that interleave; without gaps,
        // with gaps, and without rows at the end of a shard.
        for (files, gap) in [(1, 0), (2, 0), (3, 0), (1, 7), (3, 7), (1, 5_000)] {
            let has = |doc: &DocId| gap == 0 || doc.row() % gap != gap / 2;
            let file = |doc: &DocId| if files == 2 { doc.row() / 10_000 } else { random(*doc, 3, files) };
            let paths = [0, 2].into_iter().flat_map(|shard| (0..files).map(move |number| (shard, number)));
            let paths: Vec<_> =
                paths.map(|(shard, number)| (folder.path().join(format!("{shard}-{number}")), shard, number)).collect();
            for (path, shard, number) in &paths {
                let here = owned.docs().filter(|doc| doc.shard() == *shard && has(doc) && file(doc) == *number);
                write(path, here.map(row));
            }
            let found = read_roots(paths.into_iter().map(|(path, shard, _)| (path.into(), shard)), &owned).unwrap();
            for (doc, (similar, identical)) in owned.docs().zip(found.similar.iter().zip(&found.identical)) {
                let wanted = if has(&doc) { row(doc) } else { [doc, DocId::NONE, DocId::NONE] };
                assert_eq!([doc, *similar, *identical], wanted, "{files} files, every {gap}");
            }
            assert_eq!((found.similar.len(), found.identical.len()), (29_000, 29_000));
        }
    }

    #[test]
    fn a_row_with_an_impossible_document_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, owned) = (folder.path().join("file"), Ownership::new(0, 1, &[10, 10]));
        let doc = |row| DocId::new(0, row);
        let (beyond, elsewhere) = (DocId::new(1, 10), DocId::new(1, 3));
        for bad in [[doc(3), beyond, doc(1)], [doc(3), doc(1), DocId::NONE], [elsewhere; 3], [doc(11), doc(1), doc(1)]]
        {
            for position in 0..3 {
                write(&path, (0..3).map(|row| if row == position { bad } else { [doc(row); 3] }));
                let error = read_roots([(path.clone().into(), 0)].into_iter(), &owned).unwrap_err().to_string();
                assert!(error.contains("file"), "{bad:?} at {position}: {error}");
            }
        }
    }
}
