//! Roots of a week that is committed, as the next one finds them.

use std::path::PathBuf;

use anyhow::{Error, Result, bail};
use arrow_array::{Array, Int64Array};

use super::delta::VectorRoots;
use super::names::Past;
use super::phase::Owned;
use crate::kernels::memory::huge;
use crate::records::DocId;
use crate::tables::{Scan, field};

/// Rows that are read at a time: so few that what a batch is decoded into is memory that the one before left.
const ROWS: usize = 1 << 12;

/// Reads the roots of own documents from the files of own shards: any table with the columns `doc`, `similar_root` and
/// `identical_root`.
///
/// # Errors
/// Names the file that cannot be read, or that holds a document that its shard has not.
pub fn read_roots(files: impl Iterator<Item = (PathBuf, u32)>, owned: &Owned) -> Result<VectorRoots> {
    // Written once, where files follow each other: fresh memory is a large part of the time.
    let none = || {
        let mut roots = Vec::with_capacity(owned.len());
        huge(roots.spare_capacity_mut());
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
pub fn read_past(files: impl Iterator<Item = (PathBuf, u32)>, owned: &Owned) -> Result<Past> {
    let mut past = Past { names: vec![DocId::NONE; owned.len()], clusters: Vec::new() };
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
