//! A change on which a change of another run relies is not undone without it.

use super::*;
use starling_index::Index;
use starling_swarm::Dependencies;
use starling_workspace::{Overlay, Workspace};

const BASE: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n";
/// The first run defines `helper` and uses it in `f`.
const HELPER: &str = "def helper(x):\n    return x * 3\n\n\ndef f(x):\n    return helper(x)\n\n\n\
    def g(x):\n    return x\n";
/// The second run uses `helper` in `g`.
const USED: &str = "def helper(x):\n    return x * 3\n\n\ndef f(x):\n    return helper(x)\n\n\n\
    def g(x):\n    return helper(x)\n";

async fn held(project: &TestProject, found: &RunFile, chosen: &[u32]) -> Vec<(ProposalId, String)> {
    let root = project.root();
    let editor = DiskEditor::new(&root);
    let others = other_runs(&project.runs(), &root, &found.id);
    let others = other_changes(others, &editor).await;
    let snapshot = Workspace::open(root).unwrap().snapshot(Overlay::new());
    let changes = PastRun::read(&found.path).unwrap().changes;
    let chosen = chosen.iter().map(|id| ProposalId(*id)).collect();
    let of_run = (&found.id, &changes[..]);
    let refused = relied_on(of_run, &chosen, &others, &editor, &Index::new(snapshot)).await;
    refused
        .into_iter()
        .map(|one| (one.proposal, one.why))
        .collect()
}

#[tokio::test]
async fn change_that_another_run_uses_is_held_with_the_commands_that_undo_both() {
    let project = TestProject::new();
    let root = project.root();
    let first = project.recorded("1-1", &root, &[made(BASE, HELPER)]);
    project.write(HELPER);
    assert_eq!(held(&project, &first, &[1]).await, [], "no other run");
    let second = project.recorded("2-1", &root, &[made(HELPER, USED)]);
    assert_eq!(
        held(&project, &first, &[1]).await,
        [],
        "it is not in the text"
    );
    project.write(USED);
    let why = "run 2-1 relies on it: it uses `helper` in a.py::g; `starling undo 2-1` and then \
        `starling undo 1-1` take both back";
    let expected = [(ProposalId(1), why.to_owned())];
    assert_eq!(held(&project, &first, &[1]).await, expected);
    assert_eq!(held(&project, &second, &[1]).await, []);
    // The names sort by the start, and the run that was started first can rely on the other one.
    std::fs::remove_file(&first.path).unwrap();
    let first = project.recorded("3-1", &root, &[made(BASE, HELPER)]);
    assert_eq!(held(&project, &first, &[1]).await.len(), 1);
    project.undo(&second).await;
    assert_eq!(held(&project, &first, &[1]).await, []);
}

#[tokio::test]
async fn call_of_another_run_in_another_file_holds_a_changed_signature_and_its_set() {
    let project = TestProject::new();
    let (root, old, new) = (
        project.root(),
        "def f(n):\n    return n\n",
        "def f(m):\n    return m\n",
    );
    let in_file = |file: &str, before, after| AppliedChange {
        file: FilePath::new(file),
        ..made(before, after)
    };
    let of_set = AppliedChange {
        dependencies: Dependencies {
            set: [ProposalId(1)].into(),
            ..Dependencies::default()
        },
        ..in_file("b.py", "X = 1\n", "X = 2\n")
    };
    let unrelated = in_file("c.py", "Y = 1\n", "Y = 2\n");
    let first = project.recorded("1-1", &root, &[made(old, new), of_set, unrelated]);
    let (before, after) = (
        "import a\n\n\ndef g():\n    return 1\n",
        "import a\n\n\ndef g():\n    return a.f(m=2)\n",
    );
    project.recorded("2-1", &root, &[in_file("use.py", before, after)]);
    for (file, text) in [
        ("a.py", new),
        ("b.py", "X = 2\n"),
        ("c.py", "Y = 2\n"),
        ("use.py", after),
    ] {
        std::fs::write(root.join(file), text).unwrap();
    }
    let held_back = held(&project, &first, &[1, 2, 3]).await;
    let ids: Vec<u32> = held_back.iter().map(|(id, _)| id.0).collect();
    assert_eq!(ids, [1, 2], "{held_back:?}");
    assert!(held_back[0].1.contains("uses `f` in use.py::g"));
    assert!(held_back[1].1.contains("belongs together with #1"));
}

#[tokio::test]
async fn change_of_another_run_that_uses_nothing_of_it_does_not_hold_a_change() {
    let project = TestProject::new();
    let root = project.root();
    let first = project.recorded("1-1", &root, &[made(BASE, HELPER)]);
    let other = HELPER.replace("def g(x):\n    return x", "def g(x):\n    return x + 1");
    project.recorded("2-1", &root, &[made(HELPER, &other)]);
    project.write(&other);
    assert_eq!(held(&project, &first, &[1]).await, []);
}

/// Returns why the undo of a run that adds `used` to `module.py` is refused after another run wrote
/// a file with this text.
async fn why_held_by(file: &str, text: &str) -> Vec<String> {
    let project = TestProject::new();
    let root = project.root();
    let in_file = |file: &str, before, after| AppliedChange {
        file: FilePath::new(file),
        ..made(before, after)
    };
    let module = "def used(x):\n    return x\n";
    let first = project.recorded("1-1", &root, &[in_file("module.py", "", module)]);
    project.recorded("2-1", &root, &[in_file(file, "", text)]);
    std::fs::write(root.join("module.py"), module).unwrap();
    std::fs::write(root.join(file), text).unwrap();
    let held = held(&project, &first, &[1]).await;
    held.into_iter().map(|(_, why)| why).collect()
}

#[tokio::test]
async fn new_module_is_held_by_code_scripts_examples_and_strings_of_another_run() {
    for (file, text, place) in [
        (
            "b.py",
            "from module import used\n\n\ndef g():\n    return used(1)\n",
            "it uses `used` in b.py",
        ),
        (
            "b.py",
            "import module\n\n\ndef g():\n    return module.used(1)\n",
            "it uses `used` in b.py::g",
        ),
        (
            "run.sh",
            "#!/bin/sh\npython3 -c \"from module import used; used(1)\"\n",
            "run.sh:2 refers to what the undo would remove",
        ),
        (
            "b.py",
            "def g():\n    \"\"\"G.\n\n    >>> from module import used\n    >>> used(1)\n    1\n    \"\"\"\n",
            "b.py:4 refers to what the undo would remove",
        ),
        (
            "conf.yaml",
            "handler: module:used\n",
            "conf.yaml:1 refers to what the undo would remove",
        ),
    ] {
        let why = why_held_by(file, text).await;
        let expected = format!("run 2-1 relies on it: {place}; ");
        assert!(
            why.len() == 1 && why[0].starts_with(&expected),
            "{text}: {why:?}"
        );
    }
    for (file, text) in [
        ("b.py", "def used(x):\n    return x\n\n\nY = used(1)\n"),
        ("notes.md", "The module is used.\n"),
        ("conf.yaml", "state: used\n"),
    ] {
        assert_eq!(why_held_by(file, text).await, [""; 0], "{text}");
    }
}
