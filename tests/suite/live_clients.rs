//! The client in Python, and what stands in the docs of `nigh live` for other clients.

use std::path::Path;
use std::process::Command;

use crate::program::{ran, skipped};
use crate::skips::Need;

/// Runs a script of tests/python with the client of this repository and the program of the tests.
pub(crate) fn python(script: &str, more: &[&str]) -> Option<crate::program::Ran> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if Command::new("python3").arg("--version").output().is_err() {
        skipped(Need::Engines, &format!("{script} (no python3)"));
        return None;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_nigh")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("python3");
    command.arg(root.join("tests/python").join(script)).args(more);
    command.env("PATH", path).env("PYTHONPATH", root.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(ran(&mut command))
}

#[test]
fn the_client_in_python_passes_its_tests() {
    let Some(ran) = python("test_live.py", &[]) else { return };
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
}
