//! Shapes of projects from `fixtures/zoo`, one file each: which runner is found, that the tests run, and
//! that a wrong patch fails them and a right one passes.
//!
//! The first line says what a shape stands for. The lines up to the first file are settings: `found`,
//! the runner, or `nothing` with the `reason`; `before`, the result before any change; `directory`, the
//! name of the project's directory. Files follow behind `-- PATH --`, and those of the patches behind
//! `-- wrong: PATH --` and `-- right: PATH --`.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
struct Shape {
    settings: BTreeMap<String, String>,
    files: Vec<(String, String)>,
    wrong: Vec<(String, String)>,
    right: Vec<(String, String)>,
}

impl Shape {
    fn read(name: &str) -> Shape {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/zoo");
        let text = std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
        let mut shape = Shape::default();
        let mut lines = text.lines().skip(1).peekable();
        while let Some(line) = lines.next_if(|line| title(line).is_none()) {
            let (key, value) = line.split_once(": ").expect("a setting");
            shape.settings.insert(key.to_owned(), value.to_owned());
        }
        while let Some(title) = lines.next().and_then(title) {
            let mut text = String::new();
            while let Some(line) = lines.next_if(|line| self::title(line).is_none()) {
                text.push_str(line);
                text.push('\n');
            }
            let (files, path) = match title.split_once(": ") {
                Some(("wrong", path)) => (&mut shape.wrong, path),
                Some(("right", path)) => (&mut shape.right, path),
                _ => (&mut shape.files, title),
            };
            files.push((path.to_owned(), text));
        }
        shape
    }

    fn setting(&self, key: &str) -> &str {
        self.settings.get(key).map_or("", String::as_str)
    }
}

fn title(line: &str) -> Option<&str> {
    line.strip_prefix("-- ")?.strip_suffix(" --")
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    let files = files.iter();
    files
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect()
}

/// The runner of a command line.
fn runner(tests: &ProjectTests) -> &'static str {
    let command = tests.command().unwrap_or_default();
    let known = [
        (" -m pytest ", "pytest"),
        (" -m unittest ", "unittest"),
        ("manage.py test", "manage.py"),
    ];
    let found = known.iter().find(|(mark, _)| command.contains(mark));
    found.map_or("nothing", |(_, name)| name)
}

fn summary(report: &TestReport) -> String {
    let count = |of: &[TestStatus]| {
        let cases = report.cases.iter();
        cases.filter(|case| of.contains(&case.status)).count()
    };
    let failed = count(&[TestStatus::Failed, TestStatus::Error]);
    format!("{} pass, {failed} fail", count(&[TestStatus::Passed]))
}

async fn check(name: &str) {
    let shape = Shape::read(name);
    let directory = match shape.setting("directory") {
        "" => "project",
        name => name,
    };
    let project = Project::called(directory, &borrowed(&shape.files));
    let tests = project.tests(None).await;
    let (first, last) = match shape.setting("found").split_once(", then ") {
        Some((first, last)) => (first, last),
        None => (shape.setting("found"), shape.setting("found")),
    };
    if first == "nothing" {
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(report.outcome, TestOutcome::NotRun, "{report:?}");
        assert!(
            report.output.contains(shape.setting("reason")),
            "{report:?}"
        );
        assert!(!report.output.contains("OK"), "{report:?}");
        return;
    }
    if first == "pytest"
        && tests
            .missing()
            .is_some_and(|why| why.contains("cannot import"))
    {
        // Pytest is not installed here, and the message says so.
        return;
    }
    assert_eq!(runner(&tests), first);
    let before = tests.run(request(&[], &[])).await;
    assert_eq!(summary(&before), shape.setting("before"), "{before:?}");
    assert_eq!(runner(&tests), last);
    let wrong = tests.run(request(&[], &borrowed(&shape.wrong))).await;
    assert_eq!(wrong.outcome, TestOutcome::Failed, "{wrong:?}");
    assert!(!wrong.cases.is_empty(), "{wrong:?}");
    let right = tests.run(request(&[], &borrowed(&shape.right))).await;
    assert_eq!(right.outcome, TestOutcome::Passed, "{right:?}");
    assert_eq!(right.cases.len(), before.cases.len(), "{right:?}");
}

macro_rules! shapes {
    ($($name:ident),* $(,)?) => {
        const SHAPES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[tokio::test]
            async fn $name() {
                check(stringify!($name)).await;
            }
        )*
    };
}

shapes!(
    bare_functions,
    doctests_alone,
    doctests_configured,
    functions_and_cases,
    gives_way,
    nested_conftest,
    no_tests,
    odd_path,
    odd_path_pytest,
    only_red,
    parametrised,
    relative_file,
    src_poetry,
    src_setuptools,
    test_classes,
    tests_beside_code,
    unittest_only,
    unknown_option,
);

#[test]
fn every_shape_is_checked() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/zoo");
    let files = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let checked: Vec<String> = SHAPES.iter().map(|name| format!("{name}.txt")).collect();
    assert_eq!(names, checked);
}
