//! Whether agents may change a file, and whether a person has to accept the change.

use crate::proposal::draft::{Refusal, unusable, unusable_as};
use crate::state::run_context::RunContext;
use starling_core::Approval;
use starling_syntax::FilePath;
use starling_workspace::WriteRule;

/// Returns why only a person may accept a change to this file; empty if no person is needed. This
/// is checked before the file is read, so that the run does not read a forbidden file.
pub(super) fn may_be_changed(run: &RunContext, file: &FilePath) -> Result<Vec<String>, Refusal> {
    needed_person(run, file, run.policy().may_write(file))
}

/// Returns why only a person may accept this new text of a file; empty if no person is needed.
pub(super) fn may_be_brought(
    run: &RunContext,
    file: &FilePath,
    before: &str,
    after: &str,
) -> Result<Vec<String>, Refusal> {
    needed_person(run, file, run.policy().may_bring(file, before, after))
}

/// Returns the reason for which the path policy requires a person's approval.
///
/// # Errors
/// Returns a [`Refusal`] if the change is forbidden, or if it requires a person and the run asks
/// none.
fn needed_person(
    run: &RunContext,
    file: &FilePath,
    rule: WriteRule,
) -> Result<Vec<String>, Refusal> {
    match (rule, run.task.approval) {
        (WriteRule::Allowed, _) => Ok(Vec::new()),
        (WriteRule::NeedsPerson { why }, Approval::Ask) => Ok(vec![why.to_owned()]),
        (WriteRule::NeedsPerson { why }, Approval::Proxy | Approval::Auto) => {
            let options = allow_write(run, file);
            unusable(
                format!(
                    "Not changed: {file} is changed only after a person accepted that very change ({why}), and \
                 nobody is asked in this run. Do without it, and say in your summary what should be changed \
                 there. The user can allow it by {options}."
                ),
                format!(
                    "{file} is changed only after you accepted that very change ({why}); allow it by \
                 {options}"
                ),
            )
        }
        (WriteRule::Never { why }, _) => unusable_as(format!("Not changed: {why}.")),
    }
}

/// Describes a file whose changes need a person's acceptance, while the run asks nobody; `None` for
/// other files.
pub(crate) fn needs_your_yes(run: &RunContext, file: &FilePath) -> Option<String> {
    match (run.policy().may_write(file), run.task.approval) {
        (WriteRule::NeedsPerson { .. }, Approval::Proxy | Approval::Auto) => {
            Some(format!("{file} (allow it by {})", allow_write(run, file)))
        }
        (WriteRule::NeedsPerson { .. }, Approval::Ask)
        | (WriteRule::Allowed | WriteRule::Never { .. }, _) => None,
    }
}

/// Returns the command-line options that allow agents to change a file, one for each file name that
/// needs permission.
fn allow_write(run: &RunContext, file: &FilePath) -> String {
    let names = run.policy().names_to_allow(file).into_iter();
    let options = names.map(|name| format!("--allow-write '{}'", name.display()));
    options.collect::<Vec<_>>().join(" ")
}
