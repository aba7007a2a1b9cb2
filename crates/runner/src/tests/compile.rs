//! Compiling with a real interpreter.

use super::*;
use starling_core::{CompileRequest, CompiledFile, ProblemKind};

const GOOD: &str = "def f(x):\n    return x\n";

async fn compiled(tests: &ProjectTests, files: &[(Option<&str>, &str)]) -> Vec<(String, u32)> {
    let file = |(number, (before, after)): (usize, &(Option<&str>, &str))| CompiledFile {
        file: FilePath::new(format!("m{number}.py")),
        before: before.map(Into::into),
        after: (*after).into(),
    };
    let files = files.iter().enumerate().map(file).collect();
    let deadline = LONG;
    let found = tests.compile(CompileRequest { files, deadline }).await;
    let found = found.unwrap();
    assert!(
        found
            .iter()
            .all(|one| one.stops && one.kind == ProblemKind::Syntax)
    );
    found
        .into_iter()
        .map(|one| (one.file.to_string(), one.line))
        .collect()
}

#[tokio::test]
async fn error_that_only_the_python_compiler_finds_is_reported() {
    let project = Project::new(&[("m0.py", GOOD)]);
    let tests = project.tests(None).await;
    let bad = [
        "def f(x):\n    break\n    return x\n",
        "def f(x):\n    return dict(a=1, a=2)\n",
        "def f(x):\n    return x <> 1\n",
        "def f(x):\n    return 0777\n",
        "x = (1,)\nreturn *x\n",
        "def f(x):\n    y = 1\n    global y\n    return x\n",
        "def f(x):\n    return f\"{x!z}\"\n",
    ];
    let files: Vec<_> = bad.iter().map(|text| (Some(GOOD), *text)).collect();
    let found = compiled(&tests, &files).await;
    let names: Vec<String> = (0..bad.len()).map(|at| format!("m{at}.py")).collect();
    assert_eq!(
        found.iter().map(|one| one.0.clone()).collect::<Vec<_>>(),
        names
    );
    assert_eq!(found[0].1, 2);
    // Reported: an error in a new file. Not reported: a file that did not compile before either, a
    // file that only causes warnings, and a file without errors.
    let warns = "def f(x):\n    return x is 1, '\\d'\n";
    let files = [
        (None, bad[0]),
        (Some(bad[1]), bad[0]),
        (Some(GOOD), warns),
        (None, GOOD),
    ];
    assert_eq!(compiled(&tests, &files).await, [("m0.py".to_owned(), 2)]);
}

#[tokio::test]
async fn compiling_a_file_does_not_execute_it() {
    let project = Project::new(&[("json.py", "raise SystemExit\n"), ("m0.py", GOOD)]);
    let tests = project.tests(Some("make test")).await;
    let files = [(Some(GOOD), "raise SystemExit\n"), (Some(GOOD), "break\n")];
    assert_eq!(compiled(&tests, &files).await, [("m1.py".to_owned(), 1)]);
    // The encoding that the file declares is used, although the text is stored in another encoding.
    let latin = "# coding: latin-1\nNAME = 'é'\n";
    assert_eq!(compiled(&tests, &[(None, latin)]).await, []);
}

#[tokio::test]
async fn interpreter_is_searched_before_the_first_file_is_compiled() {
    let project = Project::new(&[("m0.py", GOOD)]);
    let tests = project.tests(Some("true")).await;
    assert!(!tests.compiler.initialized());
    tests.prepare();
    let began = std::time::Instant::now();
    while !tests.compiler.initialized() {
        assert!(began.elapsed() < LONG, "no interpreter was searched");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        compiled(&tests, &[(Some(GOOD), "def f(x)\n")]).await.len(),
        1
    );
}
