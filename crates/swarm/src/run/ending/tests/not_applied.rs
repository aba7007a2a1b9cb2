//! Proposals that were refused or rejected.

use super::finished_run::{FinishedRun, ends, is, passing};
use crate::event::ending::Proof;
use crate::run::ending::left_out;
use crate::{ActorId, Event};

#[test]
fn run_with_a_refused_proposal_is_unproven() {
    let ends_with = |changed, left_out| {
        let last = Some(passing(3));
        let run = FinishedRun {
            changed,
            left_out,
            last,
            ..FinishedRun::default()
        };
        ends(&run)
    };
    let but = "Done, but 1 proposal was refused: a.py::g (tests fail); 3 tests pass as before";
    let one = &["a.py::g (tests fail)"][..];
    assert_eq!(ends_with(&["a.py::f"], one), is(Proof::Unproven, but));
    let documented = "Done, but 1 proposal was refused: a.py::g (tests fail); only documentation \
                      was changed; 3 tests pass";
    assert_eq!(
        ends_with(&["README.md::"], one),
        is(Proof::Unproven, documented)
    );
    let both = ends_with(&["a.py::f"], &["a.py::g (x)", "b.py::h (y)"]);
    let partly = "Partly done: 2 proposals were refused: a.py::g (x), b.py::h (y); changed only \
                  a.py::f; 3 tests pass as before";
    assert_eq!(both, is(Proof::Unproven, partly));
    let unshown = ends(&FinishedRun {
        task: "f gets a new parameter",
        behaves_otherwise: true,
        left_out: &["a.py::g (x)", "b.py::h (y)"],
        last: Some(passing(3)),
        ..FinishedRun::default()
    });
    let partly = "Partly done: 2 proposals were refused: a.py::g (x), b.py::h (y); changed only \
                  a.py::f; no test was seen to fail without it; 3 tests pass";
    assert_eq!(unshown, is(Proof::Unproven, partly));
    let named = ends(&FinishedRun {
        changed: &["a.py::f"],
        left_out: &["a.py::g (x)"],
        left_out_is_named: true,
        last: Some(passing(3)),
        ..FinishedRun::default()
    });
    let partly = "Partly done: 1 proposal was refused: a.py::g (x); changed only a.py::f; 3 tests \
                  pass as before";
    assert_eq!(named, is(Proof::Unproven, partly));
    let as_many = ends_with(&["a.py::f", "a.py::k"], &["a.py::g (x)", "b.py::h (y)"]);
    let but =
        "Done, but 2 proposals were refused: a.py::g (x), b.py::h (y); 3 tests pass as before";
    assert_eq!(as_many, is(Proof::Unproven, but));
}

#[test]
fn refused_proposal_is_reported_unless_another_for_its_symbol_was_applied() {
    let refused = |agent: &str| Event::ProposalRefused {
        agent: ActorId::Agent(agent.parse().unwrap()),
        why: "for the agent".to_owned(),
        shown: Some("tests fail\nmore".to_owned()),
    };
    let applied = |symbol: &str| Event::ProposalApplied {
        proposal: crate::ProposalId(1),
        symbols: vec![symbol.parse().unwrap()],
        diff: String::new(),
        change: None,
    };
    let events = [
        refused("a.py::f"),
        refused("a.py::g"),
        refused("a.py::g"),
        applied("a.py::f"),
    ];
    assert_eq!(left_out(&events), ["a.py::g (tests fail)"]);
    assert!(left_out(&[refused("a.py::A.f"), applied("a.py::A")]).is_empty());
    // A change of the module body does not count as a change of the function.
    let beside = [refused("a.py::f"), applied("a.py::")];
    assert_eq!(left_out(&beside), ["a.py::f (tests fail)"]);
}

#[test]
fn headline_names_the_proposals_that_the_user_rejected() {
    let rejected = ends(&FinishedRun {
        last: Some(passing(3)),
        rejected: &["#2 (a.py::g)"],
        ..FinishedRun::default()
    });
    let headline = "Done: 3 tests pass as before; you rejected #2 (a.py::g)";
    assert_eq!(rejected, is(Proof::AsBefore, headline));
    let broken = ends(&FinishedRun {
        last: Some(passing(3)),
        rejected: &["#2 (a.py::g)"],
        problems: &["b.py:1: `h` is not defined in a.py"],
        ..FinishedRun::default()
    });
    let headline = "Done, but b.py:1: `h` is not defined in a.py; 3 tests pass as before; \
                    you rejected #2 (a.py::g)";
    assert_eq!(broken, is(Proof::Unproven, headline));
}
