//! Sets of which only a part is in the files.

use super::*;
use starling_swarm::Dependencies;

fn change(file: &str, set: &[u32]) -> AppliedChange {
    AppliedChange {
        file: FilePath::new(file),
        dependencies: Dependencies {
            set: set.iter().map(|id| ProposalId(*id)).collect(),
            needs: BTreeSet::new(),
        },
        ..made("a\nb\n", "a\nB\n")
    }
}

fn sent(id: u32, file: &str, set: &[u32]) -> UnfinishedChange {
    UnfinishedChange {
        proposal: ProposalId(id),
        symbols: Vec::new(),
        change: change(file, set),
    }
}

fn applied(id: u32, file: &str, set: &[u32]) -> ChangeRecord {
    ChangeRecord {
        proposal: ProposalId(id),
        symbols: Vec::new(),
        state: ChangeState::Applied,
        made: Some(change(file, set)),
    }
}

#[test]
fn set_is_half_applied_if_the_files_contain_only_some_of_its_changes() {
    let there = |made: &AppliedChange| {
        Some(
            if made.file.as_str() == "a.py" {
                "a\nB\n"
            } else {
                "a\nb\n"
            }
            .to_owned(),
        )
    };
    let nothing = |_: &AppliedChange| Some("a\nb\n".to_owned());
    let told = |changes: &[ChangeRecord], missing: &[UnfinishedChange]| -> Vec<String> {
        let sets = half_sets(changes, missing, there);
        sets.iter().map(HalfSet::told).collect()
    };
    // The set is recognized if one of the two changes names the other as a member, or if both do.
    for (one, other) in [(&[2][..], &[1][..]), (&[2], &[]), (&[], &[1])] {
        let (changes, missing) = ([applied(1, "a.py", one)], [sent(2, "b.py", other)]);
        let told = told(&changes, &missing);
        assert_eq!(told.len(), 1);
        assert!(
            told[0].ends_with("#1 (a.py) is there, #2 (b.py) is missing"),
            "{told:?}"
        );
        let taken_back = half_sets(&changes, &missing, nothing);
        assert!(taken_back.is_empty(), "the text has no part of it any more");
        let undone = ChangeRecord {
            state: ChangeState::Undone,
            ..changes[0].clone()
        };
        assert!(half_sets(&[undone], &missing, there).is_empty());
    }
    let others = [applied(1, "a.py", &[]), applied(4, "a.py", &[5])];
    assert_eq!(told(&others, &[sent(2, "b.py", &[3])]), [""; 0]);
    let many = told(
        &[applied(1, "a.py", &[2, 3])],
        &[sent(2, "b.py", &[1, 3]), sent(3, "c.py", &[1, 2])],
    );
    assert_eq!(many.len(), 1);
    assert!(many[0].ends_with("#1 (a.py) is there, #2 (b.py), #3 (c.py) are missing"));
}
