//! Roots of a week that is committed, as the next one finds them.

use std::path::PathBuf;

use anyhow::{Error, Result, bail};
use arrow_array::{Array, Int64Array};

use crate::kernels::memory::advise_huge_pages;
use crate::records::DocId;
use crate::structures::Ownership;
use crate::tables::{Scan, field};

/// Rows that are read at a time: so few that what a batch is decoded into is memory that the one before left.
const ROWS: usize = 1 << 12;

/// Reads the roots of own documents from the files of own shards: any table with the columns `doc`, `similar_root` and
/// `identical_root`.
///
/// # Errors
/// Names the file that cannot be read, or that holds a document that its shard has not.
pub fn read_roots(files: impl Iterator<Item = (PathBuf, u32)>, owned: &Ownership) -> Result<VectorRoots> {
    // Written once, where files follow each other: fresh memory is a large part of the time.
    let none = || {
        let mut roots = Vec::with_capacity(owned.len());
        advise_huge_pages(roots.spare_capacity_mut());
        roots
    };
    let set = |roots: &mut Vec<DocId>, at, root| {
        if at < roots.len() {
            roots[at] = root;
        } else {
            roots.resize(at, DocId::NONE);
            roots.push(root);
        }
    };
    let mut roots = VectorRoots { similar: none(), identical: none() };
    for (path, shard) in files {
        Scan::open_by(&path, &["doc", "similar_root", "identical_root"], ROWS)?.for_each(|batch| {
            let column = |name| Ok::<_, Error>(bytemuck::cast_slice(field::<Int64Array>(batch, name)?.values()));
            let (docs, similar, identical): (&[DocId], &[DocId], &[DocId]) =
                (column("doc")?, column("similar_root")?, column("identical_root")?);
            if let Some(at) = (0..docs.len()).find(|at| !owned.knows(similar[*at]) || !owned.knows(identical[*at])) {
                bail!("{} has a root of {} that is no document", path.display(), docs[at]);
            }
            let (Some(first), Some(last)) = (docs.first(), docs.last()) else { return Ok(()) };
            [first, last].into_iter().try_for_each(|doc| owned.check(*doc, shard, &path))?;
            // Documents that follow those before them are taken as they lie.
            let rows = first.row()..;
            if owned.index(*first) == roots.similar.len()
                && docs.iter().zip(rows).all(|(doc, row)| *doc == DocId::new(shard, row))
            {
                roots.similar.extend_from_slice(similar);
                roots.identical.extend_from_slice(identical);
                return Ok(());
            }
            for (doc, (similar, identical)) in docs.iter().zip(similar.iter().zip(identical)) {
                owned.check(*doc, shard, &path)?;
                let at = owned.index(*doc);
                set(&mut roots.similar, at, *similar);
                set(&mut roots.identical, at, *identical);
            }
            Ok(())
        })?;
    }
    roots.similar.resize(owned.len(), DocId::NONE);
    roots.identical.resize(owned.len(), DocId::NONE);
    Ok(roots)
}

/// Reads last week's clusters of own documents from the files of own shards of the `clusters` table.
///
/// # Errors
/// As [`read_roots`].
pub fn read_past(files: impl Iterator<Item = (PathBuf, u32)>, owned: &Ownership) -> Result<PastClusters> {
    let mut past = PastClusters { names: vec![DocId::NONE; owned.len()], clusters: Vec::new() };
    for (path, shard) in files {
        Scan::open_by(&path, &["doc", "similar_root", "similar_size", "cluster_id"], ROWS)?.for_each(|batch| {
            let column = |name| field::<Int64Array>(batch, name);
            let (docs, roots, sizes) = (column("doc")?, column("similar_root")?, column("similar_size")?);
            let names = column("cluster_id")?;
            for row in (0..batch.num_rows()).filter(|row| !names.is_null(*row)) {
                let (doc, name) = (DocId::from_table(docs.value(row)), DocId::from_table(names.value(row)));
                owned.check(doc, shard, &path)?;
                past.names[owned.index(doc)] = name;
                if docs.value(row) == roots.value(row) {
                    past.clusters.push((name, sizes.value(row) as u64));
                }
            }
            Ok(())
        })?;
    }
    Ok(past)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::records::mix;
    use crate::tables::{Column, Table, Writer};

    struct Row([i64; 3]);

    impl Table for Row {
        const NAME: &'static str = "roots";
        const ASCENDING: &'static [&'static str] = &[];

        fn columns(rows: &[Self]) -> Vec<Column> {
            let column = |name, at: usize| Column::longs(name, rows.iter().map(move |row| row.0[at]));
            vec![column("doc", 0), column("similar_root", 1), column("identical_root", 2)]
        }
    }

    fn write(path: &Path, rows: impl Iterator<Item = [DocId; 3]>) {
        let mut writer: Writer<Row> = Writer::create(path).unwrap();
        rows.for_each(|row| writer.push(Row(row.map(DocId::to_table))).unwrap());
        writer.finish().unwrap();
    }

    #[test]
    fn roots_are_read_in_whatever_files_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        let owned = Ownership::new(0, 1, &[20_000, 0, 9_000]);
        let random = |doc: DocId, salt: u64, below: u64| mix(doc.to_table() as u64 ^ salt << 50) % below;
        let row = |doc: DocId| [doc, DocId::new(2, random(doc, 1, 9_000)), DocId::new(0, random(doc, 2, 20_000))];
        // One that follows the other; several that hold some of each; gaps; and a shard's end that has no rows.
        for (files, gap) in [(1, 0), (2, 0), (3, 0), (1, 7), (3, 7), (1, 5_000)] {
            let has = |doc: &DocId| gap == 0 || doc.row() % gap != gap / 2;
            let file = |doc: &DocId| if files == 2 { doc.row() / 10_000 } else { random(*doc, 3, files) };
            let paths = [0, 2].into_iter().flat_map(|shard| (0..files).map(move |at| (shard, at)));
            let paths: Vec<_> =
                paths.map(|(shard, at)| (folder.path().join(format!("{shard}-{at}")), shard, at)).collect();
            for (path, shard, at) in &paths {
                let here = owned.docs().filter(|doc| doc.shard() == *shard && has(doc) && file(doc) == *at);
                write(path, here.map(row));
            }
            let found = read_roots(paths.into_iter().map(|(path, shard, _)| (path, shard)), &owned).unwrap();
            for (doc, (similar, identical)) in owned.docs().zip(found.similar.iter().zip(&found.identical)) {
                let wanted = if has(&doc) { row(doc) } else { [doc, DocId::NONE, DocId::NONE] };
                assert_eq!([doc, *similar, *identical], wanted, "{files} files, every {gap}");
            }
            assert_eq!((found.similar.len(), found.identical.len()), (29_000, 29_000));
        }
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, owned) = (folder.path().join("file"), Ownership::new(0, 1, &[10, 10]));
        let doc = |row| DocId::new(0, row);
        let (beyond, elsewhere) = (DocId::new(1, 10), DocId::new(1, 3));
        for bad in [[doc(3), beyond, doc(1)], [doc(3), doc(1), DocId::NONE], [elsewhere; 3], [doc(11), doc(1), doc(1)]]
        {
            for at in 0..3 {
                write(&path, (0..3).map(|row| if row == at { bad } else { [doc(row); 3] }));
                let error = read_roots([(path.clone(), 0)].into_iter(), &owned).unwrap_err().to_string();
                assert!(error.contains("file"), "{bad:?} at {at}: {error}");
            }
        }
    }
}

/// Last week's clusters of own documents.
pub struct PastClusters {
    /// The name of each own document's cluster, by number; [`DocId::NONE`] for none.
    pub names: Vec<DocId>,
    /// Name and pages of each cluster that an own document rooted.
    pub clusters: Vec<(DocId, u64)>,
}

/// The roots of own documents by number, of those that have a vector; [`DocId::NONE`] of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorRoots {
    /// Of the cluster of very similar documents.
    pub similar: Vec<DocId>,
    /// Of the cluster of virtually identical ones.
    pub identical: Vec<DocId>,
}
