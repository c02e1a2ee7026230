//! Columns that a user names: some input must have them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::errors::WrongUse;
use crate::config::Reading;
use crate::export::{AddedField, NewNames, column_names};
use crate::readers::{Input, Searched};

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
    let mut may_have_columns = false;
    // All lines are read only if the first ones of no input have a column.
    for (searched, input) in [Searched::First, Searched::All].into_iter().flat_map(|searched| all(inputs, searched)) {
        if !missing.contains(&true) {
            return Ok(());
        }
        if let Some((of_input, has)) = crate::readers::columns(input, reading, searched)? {
            may_have_columns = true;
            names.extend(of_input);
            missing.iter_mut().zip(has).for_each(|(missing, has)| *missing &= !has);
        }
    }
    let Some(column) = wanted.iter().zip(missing).find_map(|(column, missing)| missing.then_some(column)) else {
        return Ok(());
    };
    if may_have_columns && names.is_empty() {
        // There is no record that lacks it.
        return Ok(());
    }
    bail!(WrongUse(format!("no input has a column `{column}`, which {named_by}: {}", named(&names))))
}

/// Checks that the records have each column that gets another name, in some input or as a field
/// that is added; and that no other column has that name already. Of JSON Lines the first lines say
/// what is taken; the others are checked when they are written.
///
/// # Errors
/// If none has one of them; the message says which columns there are. If a name is taken. Or if an
/// input cannot be read.
pub(super) fn check_renamed(
    renamed: &NewNames,
    added: &[AddedField],
    inputs: &[Input],
    reading: &Reading,
) -> Result<()> {
    if renamed.is_empty() {
        return Ok(());
    }
    let mut names: BTreeSet<String> = added.iter().map(|field| field.name().to_owned()).collect();
    renamed
        .check(added.iter().map(|field| field.name()), "each record that is written")
        .map_err(WrongUse::from_error)?;
    for input in inputs {
        let of_input = column_names(input, reading, None)?;
        renamed.check(of_input.iter().map(String::as_str), &input.name).map_err(WrongUse::from_error)?;
        names.extend(of_input);
    }
    for input in inputs.iter().filter(|input| input.format.has_json_lines()) {
        let missing: Vec<&str> = renamed.iter().map(|of| of.old.as_str()).filter(|old| !names.contains(*old)).collect();
        if missing.is_empty() {
            break;
        }
        names.extend(column_names(input, reading, Some(&missing))?);
    }
    match renamed.iter().find(|of| !names.contains(&of.old)) {
        None => Ok(()),
        Some(missing) => bail!(WrongUse(format!(
            "no input has records with a column `{}` that is not within another one, and --rename names it: {}",
            missing.old,
            named(&names)
        ))),
    }
}

/// The inputs that are searched so.
fn all(inputs: &[Input], searched: Searched) -> impl Iterator<Item = (Searched, &Input)> {
    let is_searched = move |input: &&Input| searched == Searched::First || input.format.has_json_lines();
    inputs.iter().filter(is_searched).map(move |input| (searched, input))
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
