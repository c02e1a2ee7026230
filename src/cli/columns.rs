//! Columns that a user names: some input must have them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::errors::WrongUse;
use crate::config::Reading;
use crate::export::{AddedField, NewNames, column_names};
use crate::readers::Input;

/// The number of columns that a message names.
const MOST_COLUMNS: usize = 50;

/// Checks that some input has each column whose values are read. `named_by` says where the user
/// named it.
///
/// # Errors
/// If none has one of them; the message says which columns there are. Or if an input cannot be
/// read.
pub(super) fn check_columns(inputs: &[Input], reading: &Reading, named_by: &str) -> Result<()> {
    let wanted = &reading.columns.values;
    let (mut missing, mut names) = (vec![true; wanted.len()], BTreeSet::new());
    for input in inputs {
        if !missing.contains(&true) {
            return Ok(());
        }
        if let Some((of_input, has)) = crate::readers::columns(input, reading)? {
            names.extend(of_input);
            missing.iter_mut().zip(has).for_each(|(missing, has)| *missing &= !has);
        }
    }
    let Some(column) = wanted.iter().zip(missing).find_map(|(column, missing)| missing.then_some(column)) else {
        return Ok(());
    };
    bail!(WrongUse(format!("no input has a column `{column}`, which {named_by}: {}", named(&names))))
}

/// Checks that the records have each column that gets another name: in some input, or as a field
/// that is added.
///
/// # Errors
/// If none has one of them; the message says which columns there are. Or if an input cannot be
/// read.
pub(super) fn check_renamed(
    renamed: &NewNames,
    added: &[AddedField],
    inputs: &[Input],
    reading: &Reading,
) -> Result<()> {
    let mut names: BTreeSet<String> = added.iter().map(|field| field.name().to_owned()).collect();
    let mut inputs = inputs.iter();
    while let Some(missing) = renamed.iter().find(|of| !names.contains(&of.old)) {
        match inputs.next() {
            Some(input) => names.extend(column_names(input, reading)?),
            None => bail!(WrongUse(format!(
                "no input has records with a column `{}` that is not within another one, and --rename names it: {}",
                missing.old,
                named(&names)
            ))),
        }
    }
    Ok(())
}

/// Which columns there are, for a message.
fn named(names: &BTreeSet<String>) -> String {
    match names.len() {
        0 => "they have no columns".to_owned(),
        count => {
            let first: Vec<&str> = names.iter().take(MOST_COLUMNS).map(String::as_str).collect();
            let more = if count > MOST_COLUMNS { ", and more" } else { "" };
            format!("they have {}{more}", first.join(", "))
        }
    }
}
