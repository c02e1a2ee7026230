//! A file with the root and the size of the cluster of each document of a segment: two numbers of
//! eight bytes each.

use std::fs::File;
use std::io;
use std::io::{BufReader, Read as _, Write};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Writes the root and the size of the cluster of the next document.
///
/// # Errors
/// If the file cannot be written.
pub(in crate::export) fn write_cluster(file: &mut impl Write, root_and_size: [i64; 2]) -> io::Result<()> {
    root_and_size.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))
}

/// The root and the size of the cluster of each document of a segment, as they were written.
///
/// # Errors
/// Names the file that cannot be read.
pub(super) fn read_clusters(path: &Path) -> Result<Vec<(i64, i64)>> {
    let failed = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(failed)?;
    let rows = file.metadata().with_context(failed)?.len() / 16;
    let (mut file, mut numbers) = (BufReader::new(file), [[0; 8]; 2]);
    let mut clusters = Vec::with_capacity(rows as usize);
    for _ in 0..rows {
        numbers.iter_mut().try_for_each(|number| file.read_exact(number)).with_context(failed)?;
        let [root, size] = numbers.map(i64::from_le_bytes);
        clusters.push((root, size));
    }
    Ok(clusters)
}
