//! The client in Python, and what stands in the docs of `nigh live` for other clients.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{Ran, ran, skipped};
use crate::skips::Need;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Python with the client of this repository and the program of the tests; `None`, and a skip,
/// where there is none.
fn python() -> Option<Command> {
    if Command::new("python3").arg("--version").output().is_err() {
        skipped(Need::Engines, "the client in Python (no python3)");
        return None;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_nigh")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("python3");
    command.env("PATH", path).env("PYTHONPATH", ROOT.to_owned() + "/python").env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// Runs a script of tests/python.
pub(crate) fn python_script(script: &str, more: &[&str]) -> Option<Ran> {
    let mut python = python()?;
    Some(ran(python.arg(Path::new(ROOT).join("tests/python").join(script)).args(more)))
}

/// Runs some code.
pub(crate) fn python_code(code: &str) -> Option<Ran> {
    Some(ran(python()?.args(["-c", code])))
}

#[test]
fn the_client_in_python_passes_its_tests() {
    let Some(ran) = python_script("test_live.py", &[]) else { return };
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn a_pipeline_of_scrapy_drops_near_duplicates() {
    let Some(ran) = python_script("scrapy_site.py", &[]) else { return };
    if ran.code == Some(4) {
        return skipped(Need::Scrapy, "the pipeline of Scrapy");
    }
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let found: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let stayed: Vec<&str> = found["stayed"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let families: Vec<&str> = stayed.iter().map(|path| path.split_once('/').unwrap().0).collect();
    // One of each family: that which came first.
    assert_eq!(families, ["about", "news", "shop", "wiki"], "{}", ran.stderr);
    assert_eq!(found["sizes"], json!({"news": 5, "shop": 3, "about": 1, "wiki": 4}));
}

#[test]
fn the_server_is_as_its_description_says() {
    let Some(ran) = python_script("test_openapi.py", &[]) else { return };
    if ran.code == Some(4) {
        return skipped(Need::Schemathesis, "the description of the requests");
    }
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
}
