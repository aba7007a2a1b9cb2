//! Before a change is applied that no person reviews: compares the files on disk with those that its
//! tests read, because other programs may have changed them since.

use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::TestEvidence;
use crate::state::run_context::RunContext;

/// Maximum number of times that accepted proposals are checked again because files changed.
const RECHECKS: u32 = 2;

/// Whether the evidence of accepted proposals is of the files as they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilesOnDisk {
    AsChecked,
    /// Files changed. The proposals must be checked again.
    Changed,
    /// Files changed during each check, so no result is of the files as they are now.
    KeepChanging,
}

/// Compares the files on disk now with those before the last check of an accepted proposal.
/// `rechecks` counts the checks that this function asked for. Under review by a person, nothing is
/// compared: the person sees for which texts the evidence is.
pub(crate) async fn compare(
    run: &RunContext,
    proposal: ProposalId,
    rechecks: &mut u32,
) -> FilesOnDisk {
    if run.task.approval.is_by_person() || run.services.tests.command().is_none() {
        return FilesOnDisk::AsChecked;
    }
    let world = run.world().snapshot.clone();
    if !run.disk.changed_since_checked(proposal, &world).await {
        return FilesOnDisk::AsChecked;
    }
    if *rechecks >= RECHECKS || run.disk.keeps_changing() {
        run.disk.note_keeps_changing();
        return FilesOnDisk::KeepChanging;
    }
    *rechecks += 1;
    FilesOnDisk::Changed
}

/// Returns the evidence of tests during which files kept changing.
pub(crate) fn unknown_tests() -> TestEvidence {
    TestEvidence::Unknown {
        reason: "other programs changed files during each test run".to_owned(),
    }
}
