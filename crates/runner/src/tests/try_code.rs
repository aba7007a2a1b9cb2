//! Tests of code that is run in a project with `try`.

use super::*;
use starling_core::{TryCode, TryReport, TryRequest};

const SHOP: &[(&str, &str)] = &[
    ("src/shop/__init__.py", ""),
    (
        "src/shop/cart.py",
        "def total(prices):\n    return prices + 0\n",
    ),
    ("test_shop.py", "def test_a():\n    pass\n"),
    (".env", "API_TOKEN=q9w8e7r6t5\n"),
];

async fn tried(tests: &ProjectTests, code: TryCode, overlay: &[(&str, &str)]) -> TryReport {
    let TestRequest { overlay, .. } = request(&[], overlay);
    let deadline = LONG;
    let request = TryRequest {
        code,
        overlay,
        deadline,
    };
    tests.try_code(request).await
}

fn python(source: &str) -> TryCode {
    TryCode::Python(source.to_owned())
}

#[tokio::test]
async fn snippet_shows_its_last_value_or_the_traceback_of_the_project() {
    let project = Project::new(SHOP);
    let tests = project.tests(None).await;
    let code = "from shop.cart import total\ntotal(3)\nprint('sum')\ntotal(4)";
    let report = tried(&tests, python(code), &[]).await;
    assert_eq!(report.output, "sum\n4\n", "{report:?}");
    assert_eq!(report.outcome, TestOutcome::Passed);

    let report = tried(
        &tests,
        python("from shop.cart import total\ntotal('a')"),
        &[],
    )
    .await;
    assert_eq!(report.outcome, TestOutcome::Failed);
    let expected = "Traceback (most recent call last):\n  File \"<snippet>\", line 2, in <module>\n    \
         total('a')\n";
    assert!(report.output.starts_with(expected), "{}", report.output);
    assert!(!report.output.contains("outside"), "{}", report.output);
    assert!(report.in_short().starts_with("TypeError: "));
    assert_eq!(report.frames, [(FilePath::new("src/shop/cart.py"), 2)]);

    let fixed = [(
        "src/shop/cart.py",
        "def total(prices):\n    return sum(prices)\n",
    )];
    let code = python("from shop.cart import total\ntotal([1, 2])");
    assert_eq!(tried(&tests, code, &fixed).await.output, "3\n");
    let report = tried(&tests, python("def f(:\n"), &[]).await;
    assert!(report.in_short().starts_with("SyntaxError"), "{report:?}");
}

#[tokio::test]
async fn session_shows_each_value() {
    let project = Project::new(SHOP);
    let tests = project.tests(None).await;
    let session = TryCode::Session("x = 2\nx\n'a' * x\nNone".to_owned());
    assert_eq!(tried(&tests, session, &[]).await.output, "2\n'aa'\n");
}

#[tokio::test]
async fn command_is_run_with_the_interpreter_of_the_tests_in_the_shadow() {
    let project = Project::new(SHOP);
    for tests in [
        project.tests(None).await,
        project.tests(Some("make test")).await,
    ] {
        let line = "python -c 'import shop.cart, sys; print(sys.argv)' && echo x >new.txt; exit 3";
        let report = tried(&tests, TryCode::Command(line.to_owned()), &[]).await;
        assert_eq!((report.exit, &*report.output), (Some(3), "['-c']\n"));
        assert_eq!(report.in_short(), "exit status 3: ['-c']");
    }
    assert!(!project.workspace.root().join("new.txt").exists());
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_slow_code_is_stopped() {
    let project = Project::new(SHOP);
    let tests = project.tests(None).await;
    let report = tried(&tests, python("print('begin' + 9999 * 'x' + 'end')"), &[]).await;
    assert!(report.output.starts_with("beginxx") && report.output.ends_with("xxend\n"));
    assert!(
        report.output.contains("\n… 3864 bytes left out …\n"),
        "{}",
        report.output
    );
    let request = TryRequest {
        code: python("import time\ntime.sleep(60)"),
        overlay: Vec::new(),
        deadline: Duration::from_secs(1),
    };
    let report = tests.try_code(request).await;
    assert_eq!(report.in_short(), "timed out");
    let report = tried(&tests, python(&"x".repeat(20_000)), &[]).await;
    assert_eq!(report.outcome, TestOutcome::NotRun);
}

#[tokio::test]
async fn tried_code_sees_no_secrets_and_no_version_control_data() {
    let mut files = SHOP.to_vec();
    files.extend([
        (".git/HEAD", "ref: refs/heads/main"),
        (".git/config", "[a]\n"),
    ]);
    let project = Project::new(&files);
    for (copies, mut tests) in [
        (false, project.tests(None).await),
        (true, project.tests(None).await),
    ] {
        if copies {
            tests.shadows = tests.shadows.copies("asked for");
        }
        let encoded = "open('.env').read()[::-1] if os.path.exists('.env') else ''";
        let report = tried(&tests, python(&format!("import os\n{encoded}")), &[]).await;
        assert_eq!(report.output, "''\n", "{copies}");
        let git = "import glob\nglob.glob('.git/*')";
        assert_eq!(
            tried(&tests, python(git), &[]).await.output,
            "[]\n",
            "{copies}"
        );
    }
    let tests = project.tests(None).await;
    let made = python("'API_TOKEN=' + 'q9w8e7' + 'r6t5'");
    assert_eq!(
        tried(&tests, made, &[]).await.output,
        "'API_TOKEN=[secret]'\n"
    );
}

/// Paths of files that a model may never read.
const UNREADABLE: [&str; 7] = [
    "notes/weird.txt",
    "hard.txt",
    "node_modules/p/.npmrc",
    "lib/python3/site-packages/x/.env",
    ".tox/.env",
    "__pycache__/.env",
    "ignored/.env",
];

#[tokio::test]
async fn tried_code_sees_no_file_that_a_model_may_never_read() {
    let key = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        "MIIEvQIBADANBgkqhkiG9w0B".repeat(3)
    );
    let mut files = SHOP.to_vec();
    files.extend(UNREADABLE.map(|path| (path, "TOKEN=q9w8e7r6t5\n")));
    files.push((".gitignore", "ignored/\n"));
    files.push(("node_modules/p/index.js", "shown\n"));
    files.retain(|(path, _)| !matches!(*path, "hard.txt" | "notes/weird.txt"));
    files.push(("notes/weird.txt", &key));
    let many: Vec<String> = (0..300).map(|at| format!("many/{at}/.env")).collect();
    files.extend(many.iter().map(|path| (&**path, "TOKEN=q9w8e7r6t5\n")));
    let project = Project::new(&files);
    let root = project.workspace.root();
    std::fs::hard_link(root.join(".env"), root.join("hard.txt")).unwrap();
    let code = format!(
        "import glob, os\n\
         paths = glob.glob('many/*/.env') + {UNREADABLE:?} + ['new/.env', 'node_modules/p/index.js']\n\
         [path for path in paths if os.path.exists(path) and os.path.getsize(path)]"
    );
    for copies in [false, true] {
        let mut tests = project.tests(None).await;
        if copies {
            tests.shadows = tests.shadows.copies("asked for");
        }
        let shown = "['node_modules/p/index.js']\n";
        assert_eq!(tried(&tests, python(&code), &[]).await.output, shown);
        // A secret that is created between two commands is hidden from the second command.
        std::fs::create_dir_all(root.join("new")).unwrap();
        std::fs::write(root.join("new/.env"), "TOKEN=q9w8e7r6t5\n").unwrap();
        assert_eq!(tried(&tests, python(&code), &[]).await.output, shown);
        std::fs::remove_dir_all(root.join("new")).unwrap();
    }
}

#[tokio::test]
async fn code_is_not_run_if_the_search_for_secrets_exceeds_a_limit() {
    let project = Project::new(SHOP);
    for at in 0..5000 {
        let path = project.workspace.root().join(format!("many/{at}.pem"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let tests = project.tests(None).await;
    let report = tried(&tests, python("1"), &[]).await;
    assert_eq!(report.outcome, TestOutcome::NotRun);
    let reason = "the code could see secrets, so it is not run: the project has more than 4096 files \
                  of secrets";
    assert!(report.output.contains(reason), "{}", report.output);
}

#[tokio::test]
async fn code_is_run_only_where_tests_may_run() {
    let project = Project::new(SHOP);
    let mut tests = project.tests(None).await;
    tests.shadows = tests.shadows.confined_by(None);
    let report = tried(&tests, python("1"), &[]).await;
    assert_eq!(report.outcome, TestOutcome::NotRun);
    assert!(report.output.contains("no sandbox"), "{}", report.output);
    let of_tests = tests.run(request(&[], &[])).await;
    assert_eq!(of_tests.output, report.output);
}
