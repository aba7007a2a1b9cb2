//! Whether agents may change a file, and whether a person has to accept the change.

use crate::evidence::failure::Failure;
use crate::evidence::proposal::NeedsPerson;
use crate::proposal::refusal::{Refusal, unusable, unusable_as};
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use starling_core::Approval;
use starling_syntax::FilePath;
use starling_workspace::{PathPolicy, WriteRule};

/// Decides whether an accepted change of a file may be sent to the editor: by the path policy, and by
/// the reasons for a person's approval that were known when the change was accepted. The policy is
/// asked again because the file may have changed: a link to it may have been created, git may ignore
/// it now, or it may declare another encoding.
#[derive(Debug, Clone)]
pub struct Permission {
    pub policy: PathPolicy,
    pub known: Vec<String>,
}

impl Permission {
    /// Returns the reasons that were not known. If there are any, a person has to accept the change once
    /// more.
    /// `texts` are the texts of the file before and after the change; `None` if the file is deleted.
    ///
    /// # Errors
    /// Nobody may accept the change; returns why.
    pub fn unknown_reasons(
        &self,
        file: &FilePath,
        texts: Option<(&str, &str)>,
    ) -> Result<Vec<&'static str>, String> {
        let mut unknown = Vec::new();
        let brought = texts.map(|(before, after)| self.policy.may_bring(file, before, after));
        for rule in [Some(self.policy.may_write(file)), brought] {
            match rule {
                None | Some(WriteRule::Allowed) => {}
                Some(WriteRule::NeedsPerson { why }) => {
                    let is_known = self.known.iter().any(|known| known == why);
                    unknown.extend((!is_known).then_some(why));
                }
                Some(WriteRule::Never { why }) => return Err(why),
            }
        }
        Ok(unknown)
    }

    /// Checks that the change may be sent.
    ///
    /// # Errors
    /// Returns a [`Failure`] if a person has to accept the change once more, or nobody may accept it.
    pub fn check(&self, file: &FilePath, texts: Option<(&str, &str)>) -> Result<(), Failure> {
        let why = match self.unknown_reasons(file, texts) {
            Ok(unknown) if unknown.is_empty() => return Ok(()),
            Ok(unknown) => format!(
                "{file}: since it was proposed, it became a file that only a person may change: {}",
                unknown.join("; ")
            ),
            Err(why) => why,
        };
        Err(Failure::Editor { why })
    }
}

/// Returns the permission for the change of a proposal.
pub(super) fn of_proposal(run: &RunContext, proposal: &Proposal) -> Permission {
    Permission {
        policy: run.policy(),
        known: proposal.draft.needs_person.clone(),
    }
}

/// Adds the reasons for which the file of a proposal now needs a person's approval, so that the person
/// who is asked again sees them.
pub(super) fn note_new_reasons(run: &RunContext, proposal: &mut Proposal) {
    let file = proposal.draft.file.clone();
    let now = run.world().snapshot.read(&file);
    let now = now.unwrap_or_else(|_| "".into());
    let after = proposal.draft.over(&now);
    let after = after.filter(|_| !proposal.draft.deletes_file);
    let texts = after.as_ref().map(|after| (&*now, &**after));
    let unknown = of_proposal(run, proposal).unknown_reasons(&file, texts);
    // A change that nobody may accept is refused again when it is accepted.
    for why in unknown.unwrap_or_default() {
        proposal.draft.needs_person.push(why.to_owned());
        proposal.evidence.needs_person.push(NeedsPerson {
            file: file.clone(),
            why: why.to_owned(),
        });
    }
}

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
            let options = allow_write(run, file);
            Some(format!(
                "{file} (review it with --approve ask, or allow it by {options})"
            ))
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
