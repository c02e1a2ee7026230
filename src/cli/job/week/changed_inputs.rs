//! What is said of inputs that changed since a week was made from them, or while it is.

use crate::plan::Plan;
use crate::readers::Input;
use crate::state::InputKey;

/// The number of changed files that a message names.
const MOST_NAMED: usize = 5;

/// Names the inputs that changed since `before`; `None` if none of the same name did.
pub(super) fn changed_files(plan: &Plan, before: &InputKey) -> Option<String> {
    some_names(&plan.changed_since(before)).map(|names| format!("{names} changed since"))
}

/// What to say of files that changed since the run began; `None` if none did.
pub(super) fn changed_while_read(inputs: &[Input]) -> Option<String> {
    let changed: Vec<&Input> = inputs.iter().filter(|input| input.has_changed()).collect();
    let names = some_names(&changed)?;
    let (read, now, complete) =
        if changed.len() == 1 { ("it", "it has", "it is") } else { ("them", "they have", "they are") };
    Some(format!(
        "{names} changed while this run read {read}: the week may lack what {now} now. Run again with --replace when {complete} complete"
    ))
}

/// The names of the first inputs, and how many more there are; `None` if there are none.
fn some_names(inputs: &[&Input]) -> Option<String> {
    let names: Vec<&str> = inputs.iter().take(MOST_NAMED).map(|input| input.name.as_str()).collect();
    let more = match inputs.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more files"),
    };
    (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
}
