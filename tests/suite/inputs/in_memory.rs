//! The module of Python on rows in memory and in streams, and in notebooks, and blocks of the
//! documentation that fail: the scripts of tests/python, with the program of the tests.

use crate::live::clients::python_script;
use crate::program::skipped;
use crate::skips::Need;

/// Runs a script, which ends with 4 if a package is not there.
fn passes(script: &str, need: Need, what: &str) {
    let Some(ran) = python_script(script, &[]) else { return };
    if ran.code == Some(4) {
        return skipped(need, &format!("{what} ({})", ran.stderr.trim()));
    }
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn rows_in_memory_have_the_clusters_of_files() {
    passes("test_memory.py", Need::Engines, "tables, frames and readers in Python");
}

#[test]
fn datasets_of_hugging_face_come_back_with_their_features() {
    passes("test_hugging_face.py", Need::HuggingFace, "datasets of Hugging Face");
}

#[test]
fn a_block_of_the_docs_that_fails_is_wrong() {
    passes("test_documents.py", Need::Engines, "blocks of Python in the documentation");
}

#[test]
fn notebooks_show_stores_and_progress() {
    passes("test_notebook.py", Need::Notebooks, "what a notebook shows");
}
