//! New failures are believed when the tree without the change passes the same tests.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::gate::run_tests;
use super::hub::Hub;
use super::proposal::{WHOLE_RUN, failing_ids};
use crate::ports::TestReport;
use crate::workspace::Snapshot;

/// More new failures than that are no accident.
const MOST: usize = 20;

/// The tests that fail without the change: those known to, and those that newly fail in `report` and do
/// so on the unchanged `world`, too. Nothing is run again where tests cannot be selected.
pub(super) async fn without_change(
    hub: &Arc<Hub>,
    world: &Snapshot,
    mut failing: BTreeSet<String>,
    report: &TestReport,
) -> BTreeSet<String> {
    let new: Vec<String> = failing_ids(report)
        .into_iter()
        .filter(|id| id != WHOLE_RUN && !failing.contains(id))
        .collect();
    if !hub.outside.tests.selects() || new.is_empty() || new.len() > MOST {
        return failing;
    }
    let again = run_tests(hub, world, new.clone()).await;
    let fails = failing_ids(&again);
    failing.extend(new.into_iter().filter(|id| fails.contains(id)));
    failing
}
