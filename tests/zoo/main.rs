//! Ordinary projects from `fixtures/zoo`, one file each, from `starling doctor` to a refused and an
//! accepted change. The model of each run is a recording that first proposes a wrong text of a
//! symbol, then a right one.

#![allow(clippy::unwrap_used)]

mod project;
mod shape;

use project::Project;
use serde_json::{Value, json};
use shape::ProjectShape;

fn check(name: &str) {
    let shape = ProjectShape::read(name);
    let project = Project::of(&shape);
    check_doctor(&shape, &project);
    check_run(&shape, &project);
}

/// Checks that the doctor finds the runner and counts the tests.
fn check_doctor(shape: &ProjectShape, project: &Project) {
    let recording = project.recording(&[]);
    let doctor = project.starling(&["doctor", "--json", "--model", &recording]);
    for expected in shape.settings("doctor") {
        assert!(
            doctor.out.contains(expected),
            "no {expected:?} in {doctor:?}"
        );
    }
    let findings: Vec<Value> = serde_json::from_str(&doctor.out).unwrap();
    let tests = || findings.iter().filter(|one| one["what"] == "tests");
    let details: Vec<&str> = tests().map(|one| one["detail"].as_str().unwrap()).collect();
    let details = details.join("\n");
    let found = shape.setting("found").expect("what the doctor finds");
    if found == "nothing" {
        assert!(tests().all(|one| one["health"] != "ok"), "{details}");
        let reason = shape.setting("reason").expect("a reason");
        assert!(details.contains(reason), "no {reason:?} in {details}");
        return;
    }
    assert!(tests().any(|one| one["health"] == "ok"), "{doctor:?}");
    let mark = match found {
        "pytest" => " -m pytest ",
        "unittest" => " -m unittest ",
        "manage.py" => "manage.py test",
        other => other,
    };
    assert!(details.contains(mark), "no {mark:?} in {details}");
    if let Some(count) = shape.setting("tests") {
        let count = format!("{count} test{},", if count == "1" { "" } else { "s" });
        assert!(details.starts_with(&count), "no {count:?} at {details}");
    }
}

/// Checks that the wrong text is refused, the right one is applied, and no other file is changed.
fn check_run(shape: &ProjectShape, project: &Project) {
    let before = project.files();
    let proposals: Vec<_> = shape.wrong.iter().chain(&shape.right).collect();
    let recording = project.recording(&proposals);
    let mut args = vec!["run", "--json", "--approve", "auto", "--model", &recording];
    args.extend(
        shape
            .settings("option")
            .flat_map(|option| option.split(' ')),
    );
    args.push(shape.setting("task").unwrap_or("Rewrite what is recorded."));
    let run = project.starling(&args);
    let status = shape
        .setting("status")
        .map_or(0, |status| status.parse().unwrap());
    assert_eq!(run.code, Some(status), "{run:?}");

    let events: Vec<Value> = run
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take())
        .collect();
    let named = |name: &'static str| events.iter().filter(move |event| event["event"] == name);
    if let Some(expected) = shape.setting("before") {
        let first = named("tests_run").next().expect("tests before");
        assert_eq!(counted(&first["report"]), expected, "{first:#}");
    }
    let refused: Vec<&str> = named("proposal_refused")
        .map(|event| event["why"].as_str().unwrap())
        .collect();
    assert_eq!(
        refused.len(),
        usize::from(shape.wrong.is_some()),
        "{refused:?} in {run:?}"
    );
    let reason = shape.setting("refused").unwrap_or("with this change");
    assert!(
        refused.iter().all(|why| why.contains(reason)),
        "no {reason:?} in {refused:?}"
    );
    let applied = named("proposal_applied").count();
    assert_eq!(applied, usize::from(shape.right.is_some()), "{run:?}");
    let finished = named("run_finished").next().expect("an end");
    let headline = finished["ending"]["headline"].as_str().unwrap();
    let ends = match shape.setting("end") {
        Some(end) => vec![end],
        None => vec!["Done and proven: ", "Done: "],
    };
    let is_so = ends.iter().any(|end| headline.starts_with(end));
    assert!(is_so, "none of {ends:?} at {headline:?}");

    let (mut left, mut changed) = (before, project.files());
    if let Some(right) = &shape.right {
        let file = right.symbol.split("::").next().unwrap();
        let was = left.remove(file).unwrap();
        let is = changed.remove(file).unwrap();
        assert!(
            lines(&is).contains(&lines(right.source.as_bytes())),
            "{}",
            lines(&is)
        );
        assert_eq!(
            style(&was),
            style(&is),
            "another encoding or other line ends"
        );
    }
    assert_eq!(changed, left, "another file is changed");
}

/// Returns the lines of a file without indentation. A file that is not UTF-8 is read as Latin-1.
fn lines(bytes: &[u8]) -> String {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join("\n")
}

/// Returns whether a file is UTF-8, whether it starts with a byte order mark, and whether it has
/// CRLF and LF line ends.
fn style(bytes: &[u8]) -> (bool, bool, bool, bool) {
    let text = String::from_utf8_lossy(bytes);
    let unix = text.replace("\r\n", "");
    let marked = text.starts_with('\u{feff}');
    (
        str::from_utf8(bytes).is_ok(),
        marked,
        text.contains("\r\n"),
        unix.contains('\n'),
    )
}

/// Returns the numbers of tests that passed and failed in a report, as text.
fn counted(report: &Value) -> String {
    let cases = report["cases"].as_array().unwrap();
    let count = |of: &[&str]| {
        let among = |case: &&Value| of.iter().any(|status| case["status"] == json!(status));
        cases.iter().filter(among).count()
    };
    let failed = count(&["failed", "error"]);
    format!("{} pass, {failed} fail", count(&["passed"]))
}

macro_rules! shapes {
    ($($name:ident),* $(,)?) => {
        const SHAPES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*
    };
}

shapes!(
    asyncio_tests,
    bare_functions,
    byte_order_mark,
    circular_imports,
    coverage_and_parallel,
    crlf,
    crlf_in_part,
    django,
    doctests_alone,
    doctests_configured,
    editable_install,
    environment_variable,
    fastapi,
    flaky_test,
    flask,
    functions_and_cases,
    git_repository,
    git_root_above,
    git_submodule,
    git_worktree,
    gives_way,
    go,
    hanging_test,
    hypothesis_tests,
    javascript,
    justfile,
    latin_1,
    long_file,
    makefile,
    monorepo,
    namespace_package,
    nested_conftest,
    no_tests,
    notebooks_and_stubs,
    nox,
    odd_path,
    odd_path_pytest,
    only_red,
    opens_sockets,
    parametrised,
    pipenv,
    plugin_fixture_missing,
    red_target,
    reexports,
    relative_file,
    relative_imports,
    rust,
    setup_cfg,
    setup_py,
    slow_test,
    src_hatch,
    src_pdm,
    src_poetry,
    src_setuptools,
    src_uv,
    tabs,
    test_classes,
    tests_beside_code,
    tox,
    unittest_only,
    unknown_option,
    unrelated_red,
    venv_broken,
    venv_conda,
    venv_dot,
    venv_of_uv,
    venv_outside,
    venv_plain,
    writes_files,
);

#[test]
fn every_project_layout_is_tested() {
    assert_eq!(shape::names(), SHAPES);
}
