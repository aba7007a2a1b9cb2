//! Tests of the status transitions of a proposal.

use super::*;

fn make(book: &mut ProposalBook) -> Proposal {
    made_by(book, ActorId::Solo)
}

fn made_by(book: &mut ProposalBook, agent: ActorId) -> Proposal {
    let draft = Draft::between("def f():\n    return 1\n", "def f():\n    return 2\n");
    book.make(agent, Propose::default(), draft)
}

/// Returns the applied edit of a proposal that is the workspace's change number `changes`.
fn edit(changes: u64) -> Applied {
    Applied {
        before: "1".into(),
        after: "2".into(),
        effect: Effect::Change,
        deleted: None,
        directories: Vec::new(),
        changes,
        fixed: Vec::new(),
        broken: Vec::new(),
        is_left_alone: false,
    }
}

fn applied(book: &ProposalBook) -> Vec<u32> {
    let applied = book.applied().into_iter();
    applied.map(|(one, _)| one.id.0).collect()
}

#[test]
fn proposal_can_be_applied_undone_and_applied_again() {
    let mut book = ProposalBook::default();
    let (first, second) = (make(&mut book), make(&mut book));
    assert_eq!((first.id.0, second.id.0), (1, 2));
    assert_eq!(book.stage_of(first.id), Some(Stage::Checking));
    book.check(&first, Stage::Passes).unwrap();
    assert_eq!(book.stage_of(first.id), Some(Stage::Passes));
    book.accept(&first).unwrap();
    book.accept(&second).unwrap();
    assert_eq!(book.waiting().count(), 0);
    assert_eq!(
        (book.open().count(), book.not_yet_applied().count()),
        (2, 2)
    );
    // Applied proposals are listed in the order of their edits, not of their numbers.
    book.apply(second.id, edit(1)).unwrap();
    book.apply(first.id, edit(2)).unwrap();
    assert_eq!(applied(&book), [2, 1]);
    assert!(book.is_done(&first.owner()));
    book.undo(second.id).unwrap();
    assert_eq!(applied(&book), [1]);
    assert!(!book.may_be_applied(second.id));
    book.apply(second.id, edit(3)).unwrap();
    assert_eq!(applied(&book), [1, 2]);
    book.leave(first.id);
    assert_eq!(applied(&book), [1, 2], "what is applied stays");
}

/// Applies a status change that the current status of the proposal does not allow, and returns the
/// error message. Debug builds panic with this message.
fn wrong(step: impl Fn(&mut ProposalBook, &Proposal) -> Result<(), WrongStatus>) -> String {
    let mut book = ProposalBook::default();
    let one = make(&mut book);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| step(&mut book, &one)));
    let told = match result {
        Ok(refused) => refused.unwrap_err().to_string(),
        Err(panic) => panic.downcast_ref::<String>().unwrap().clone(),
    };
    assert_eq!(
        book.stage_of(one.id),
        Some(Stage::Checking),
        "it is as before"
    );
    told
}

#[test]
fn invalid_status_transition_of_a_proposal_is_refused() {
    let is = |step: &str| format!("internal error: #1 is waiting, so it cannot {step}");
    let told = wrong(|book, one| book.apply(one.id, edit(1)));
    assert_eq!(told, is("be applied"));
    assert_eq!(wrong(|book, one| book.undo(one.id)), is("be undone"));
    assert_eq!(
        wrong(|book, one| book.send_back(one.id)),
        is("be sent back")
    );
    let told = wrong(|book, one| book.refuse(one.id, "busy".to_owned()));
    assert_eq!(told, is("be refused"));
    let told = wrong(|book, one| book.ask_again(one, Stage::Passes));
    assert_eq!(told, is("be asked about again"));
    let told = wrong(|book, one| book.leave_alone(one.id));
    assert_eq!(told, is("be left alone"));
}

#[test]
fn unapplied_proposal_is_reported_until_a_newer_proposal_for_its_symbol_is_applied() {
    let mut book = ProposalBook::default();
    let (first, second) = (make(&mut book), make(&mut book));
    book.accept(&first).unwrap();
    book.refuse(first.id, "busy".to_owned()).unwrap();
    let told = "proposal #1 was accepted but not applied: busy";
    assert_eq!(book.why_not_applied().as_deref(), Some(told));
    // The approver may be asked about the proposal again.
    assert!(book.may_be_applied(first.id));
    book.ask_again(&first, Stage::Passes).unwrap();
    assert_eq!(
        (book.why_not_applied(), book.stage_of(first.id)),
        (None, Some(Stage::Passes))
    );
    book.accept(&first).unwrap();
    book.refuse(first.id, "busy".to_owned()).unwrap();
    book.leave(first.id);
    assert!(!book.may_be_applied(first.id));
    assert_eq!(book.why_not_applied().as_deref(), Some(told));
    book.accept(&second).unwrap();
    book.apply(second.id, edit(1)).unwrap();
    assert_eq!(book.why_not_applied(), None);
}

#[test]
fn accepted_version_of_a_proposal_keeps_the_recorded_dependencies() {
    let mut book = ProposalBook::default();
    let (mut first, second) = (make(&mut book), make(&mut book));
    let on_second = Dependencies {
        set: BTreeSet::from([second.id]),
        ..Dependencies::default()
    };
    book.depend(first.id, on_second.clone());
    first.diff = "edited".to_owned();
    book.accept(&first).unwrap();
    let known = book.get(first.id).unwrap();
    assert_eq!(
        (known.diff.as_str(), &known.dependencies),
        ("edited", &on_second)
    );
    // A proposal can be accepted even if the task that worked on it has ended.
    book.leave(second.id);
    assert!(book.get(second.id).is_none());
    book.accept(&second).unwrap();
    assert_eq!(book.not_yet_applied().count(), 2);
    book.send_back(second.id).unwrap();
    assert!(!book.may_be_applied(second.id));
}

#[test]
fn removed_proposal_is_dropped_from_the_dependencies_of_others() {
    let mut book = ProposalBook::default();
    let (first, second) = (make(&mut book), make(&mut book));
    let on_second = Dependencies {
        set: BTreeSet::from([second.id]),
        ..Dependencies::default()
    };
    book.depend(first.id, on_second);
    book.take_out(second.id);
    assert!(book.get(second.id).is_none());
    assert!(book.get(first.id).unwrap().dependencies.is_empty());
}

#[test]
fn kept_proposal_stays_in_the_book_until_it_is_replaced_and_removed() {
    let mut book = ProposalBook::default();
    let part = make(&mut book);
    let other = made_by(&mut book, ActorId::Agent("a.py::f".parse().unwrap()));
    book.keep(&part).unwrap();
    book.keep(&other).unwrap();
    assert_eq!((book.waiting().count(), book.open().count()), (0, 0));
    book.leave(part.id);
    let kept = |book: &ProposalBook| -> Vec<(u32, bool)> {
        let kept = book.kept(&ActorId::Solo);
        kept.map(|(one, is_replaced)| (one.id.0, is_replaced))
            .collect()
    };
    assert_eq!(kept(&book), [(1, false)]);
    let elsewhere = Draft {
        symbols: vec!["a.py::g".parse().unwrap()],
        ..Draft::between("", "")
    };
    book.replace_kept(&ActorId::Solo, &elsewhere);
    assert_eq!(kept(&book), [(1, false)]);
    book.replace_kept(&ActorId::Solo, &part.draft);
    assert_eq!(kept(&book), [(1, true)]);
    book.forget_kept(&ActorId::Solo, false);
    assert_eq!(kept(&book), [(1, true)]);
    book.forget_kept(&ActorId::Solo, true);
    assert_eq!(kept(&book), []);
    assert!(book.get(other.id).is_some());
}
