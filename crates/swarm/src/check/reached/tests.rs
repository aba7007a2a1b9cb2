use super::*;
use starling_core::TestOutcome;
use starling_workspace::Workspace;

const CODE: &str = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n";
const TEST: &str = "from calc import add, mul\n\n\ndef test_add():\n    assert add(2, 3) == 5\n";

/// Returns the symbols that no test reaches after these changes of files.
fn found(files: &[(&str, &str)], changes: &[(&str, &str)], changed: &[&str]) -> Vec<String> {
    let ids = ["tests/test_calc.py::test_add"];
    found_by(&ids, files, changes, changed)
}

fn found_by(
    ids: &[&str],
    files: &[(&str, &str)],
    changes: &[(&str, &str)],
    changed: &[&str],
) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let world = Workspace::open(dir.path().to_owned()).unwrap();
    let before = world.snapshot(Default::default());
    let mut after = before.clone();
    for (file, text) in changes {
        after = after.with(FilePath::new(*file), Some((*text).into()));
    }
    let cases: Vec<_> = ids.iter().map(|id| (*id, TestStatus::Passed)).collect();
    let report = TestReport::of_cases(TestOutcome::Passed, &cases);
    let changed: Vec<SymbolPath> = changed.iter().map(|one| one.parse().unwrap()).collect();
    let found = unreached(&before, &after, &changed, &report, &BTreeSet::new());
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn change_of_only_comments_or_docstrings_is_recognized() {
    let words_from = |changed: &str| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("calc.py"), CODE).unwrap();
        std::fs::write(dir.path().join("README.md"), "calc").unwrap();
        let world = Workspace::open(dir.path().to_owned()).unwrap();
        let before = world.snapshot(Default::default());
        let after = before
            .with(FilePath::new("calc.py"), Some(changed.into()))
            .with(FilePath::new("README.md"), Some("calc adds".into()));
        let changed = ["calc.py::add", "README.md::"].map(|one| one.parse().unwrap());
        are_words(&before, &after, &changed)
    };
    let after = |line: &str| CODE.replace("(a, b):\n    return a +", line);
    assert!(words_from(&after(
        "(a, b):\n    \"\"\"The sum.\"\"\"\n    # plain\n    return a +"
    )));
    assert!(!words_from(&after("(a, b):\n    return 1 + a +")));
    assert!(!words_from("def mul(a, b):\n    return a * b\n"));
}

/// The change of a new file names only its module. The user may have opened an empty buffer
/// with the name of the file, or written a comment into it, before the change was applied.
#[test]
fn code_in_a_new_file_must_be_tested_and_does_not_count_as_comments() {
    let new = "def mul(a, b):\n    return a * b\n\n\ndef add(a, b):\n    return a + b\n";
    for old in [
        None,
        Some(""),
        Some("\n"),
        Some("# mine\n"),
        Some("\"\"\"Sums.\"\"\"\n"),
    ] {
        let mut files = vec![("tests/test_calc.py", TEST)];
        files.extend(old.map(|old| ("calc.py", old)));
        let of = |new: &str| found(&files, &[("calc.py", new)], &["calc.py::"]);
        assert_eq!(of(new), ["calc.py::mul"], "{old:?}");
        assert_eq!(of("# only words\n"), [""; 0], "{old:?}");
        let dir = tempfile::tempdir().unwrap();
        if let Some(old) = old {
            std::fs::write(dir.path().join("calc.py"), old).unwrap();
        }
        let world = Workspace::open(dir.path().to_owned()).unwrap();
        let before = world.snapshot(Default::default());
        let are_words = |text: &str| {
            let after = before.with(FilePath::new("calc.py"), Some(text.into()));
            are_words(&before, &after, &["calc.py::".parse().unwrap()])
        };
        assert!(!are_words(new), "{old:?}");
        assert_eq!(are_words("# only words\n"), old.is_some(), "{old:?}");
    }
}

/// Returns the symbols that no test reaches after a change of `mul`.
fn of_mul(files: &[(&str, &str)]) -> Vec<String> {
    let code = files.iter().find(|(file, _)| *file == "calc.py");
    let code = code.map_or(CODE, |(_, text)| text);
    let changed = code.replace("a * b", "0");
    let mut all = vec![("calc.py", code), ("tests/test_calc.py", TEST)];
    all.extend(files.iter().filter(|(file, _)| *file != "calc.py"));
    found(&all, &[("calc.py", &changed)], &["calc.py::mul"])
}

#[test]
fn function_that_no_test_names_counts_as_unreached() {
    assert_eq!(of_mul(&[]), ["calc.py::mul"]);
    let other = (
        "other.py",
        "from calc import mul\n\n\ndef area(a):\n    return mul(a, a)\n",
    );
    assert_eq!(of_mul(&[other]), ["calc.py::mul"]);
    let skipped = (
        "tests/test_mul.py",
        "from calc import mul\n\n\ndef test_mul():\n    mul(1, 2)\n",
    );
    assert_eq!(
        of_mul(&[skipped]),
        ["calc.py::mul"],
        "its tests did not run"
    );
}

#[test]
fn method_whose_class_is_renamed_needs_a_test_only_if_its_own_code_changes() {
    let old = "class Sum:\n    def of(self, a):\n        return a\n\n    def two(self):\n        return 2\n";
    let of = |new: &str| {
        let new = new.replace("Sum", "Total");
        let files = [("calc.py", old), ("tests/test_calc.py", TEST)];
        let changed = ["calc.py::Total.of", "calc.py::Total.two"];
        found(&files, &[("calc.py", &new)], &changed)
    };
    assert_eq!(of(old), [""; 0]);
    assert_eq!(
        of(&old.replace("return 2", "return 3")),
        ["calc.py::Total.two"]
    );
    // The class is still there, so this is a second method.
    let both = format!("{old}\n\nclass Other:\n    def two(self):\n        return 2\n");
    let files = [("calc.py", old), ("tests/test_calc.py", TEST)];
    let changed = ["calc.py::Other.two"];
    assert_eq!(found(&files, &[("calc.py", &both)], &changed), changed);
}

#[test]
fn function_that_a_test_may_use_indirectly_is_reached() {
    let uses = |helper: &str| of_mul(&[("tests/helper.py", helper)]);
    assert!(uses("import calc\n\n\ndef product():\n    return calc.mul(1, 2)\n").is_empty());
    assert!(uses("NAMES = ['mul']\n").is_empty());
    assert!(uses("from calc import mul as times\n").is_empty());
    let called = CODE.replace("return a + b", "return mul(a, 1) + b");
    assert!(of_mul(&[("calc.py", &called)]).is_empty());
    let table = format!("{CODE}\n\nTABLE = [mul]\n");
    assert!(of_mul(&[("calc.py", &table)]).is_empty());
    let registered = CODE.replace("def mul", "@register\ndef mul");
    assert!(of_mul(&[("calc.py", &registered)]).is_empty());
    let looked_up = format!("{CODE}\n\ndef get(name):\n    return globals()[name]\n");
    assert!(of_mul(&[("calc.py", &looked_up)]).is_empty());
}

#[test]
fn command_of_a_package_reaches_a_function_only_if_a_test_calls_it() {
    for (file, text) in [
        (
            "pyproject.toml",
            "[project]\nname = \"product\"\n\n[project.scripts]\nproduct = \"calc:mul\"\n",
        ),
        (
            "setup.cfg",
            "[options.entry_points]\nconsole_scripts =\n    product = calc:mul\n",
        ),
    ] {
        let with = |helper: &str| of_mul(&[(file, text), ("tests/helper.py", helper)]);
        assert_eq!(with(""), ["calc.py::mul"], "{file}");
        assert_eq!(with("product = 1\n"), ["calc.py::mul"], "{file}");
        assert_eq!(with("run(['product', '2'])\n"), [""; 0], "{file}");
    }
    let plugin = ("pyproject.toml", "[tool.pytest]\nuse = \"calc:mul\"\n");
    assert_eq!(of_mul(&[plugin]), [""; 0]);
    let workflow = (
        ".github/workflows/a.yml",
        "run: python -c 'calc.mul(1, 2)'\n",
    );
    assert_eq!(of_mul(&[workflow]), ["calc.py::mul"]);
    let makefile = ("Makefile", "run:\n\tpython -c 'calc.mul(1, 2)'\n");
    assert_eq!(of_mul(&[makefile]), ["calc.py::mul"]);
    let makes = ("tests/helper.py", "run('make run')\n");
    assert_eq!(of_mul(&[makefile, makes]), [""; 0]);
}

#[test]
fn main_module_reaches_a_function_only_if_a_test_runs_the_package() {
    let main = "from .calc import mul\n\nprint(mul(2, 3))\n";
    let with = |helper: &str| {
        let changed = CODE.replace("a * b", "0");
        let files = [
            ("shop/__init__.py", ""),
            ("shop/__main__.py", main),
            ("shop/calc.py", CODE),
            (
                "pyproject.toml",
                "[project]\nname = \"shop\"\n\n[project.scripts]\nshop = \"shop.calc:add\"\n",
            ),
            (
                "tests/test_calc.py",
                "from shop.calc import add\n\n\ndef test_add():\n    add(1, 2)\n",
            ),
            ("tests/helper.py", helper),
        ];
        found(
            &files,
            &[("shop/calc.py", &changed)],
            &["shop/calc.py::mul"],
        )
    };
    for helper in [
        "",
        "import shop\nfrom shop import calc\n",
        "patch('shop.calc.add')\n",
        "if __name__ == '__main__':\n    pass\n",
    ] {
        assert_eq!(with(helper), ["shop/calc.py::mul"], "{helper}");
    }
    for helper in [
        "run([sys.executable, '-m', 'shop'])\n",
        "import shop.__main__\n",
        "run_module('shop.__main__')\n",
    ] {
        assert_eq!(with(helper), [""; 0], "{helper}");
    }
}

#[test]
fn attribute_of_a_module_outside_the_project_reaches_no_function() {
    let uses = |helper: &str| of_mul(&[("tests/helper.py", helper)]);
    assert_eq!(
        uses("import operator\noperator.mul(1, 2)\n"),
        ["calc.py::mul"]
    );
    assert_eq!(uses("import a.b as c\nc.mul(1, 2)\n"), ["calc.py::mul"]);
    assert!(uses("from a import b\nb.mul(1, 2)\n").is_empty());
    let renamed = [
        ("src/a/b.py", "from calc import mul\n"),
        ("tests/helper.py", "import a.b\na.b.mul(1, 2)\n"),
    ];
    assert!(of_mul(&renamed).is_empty());
}

#[test]
fn method_that_a_base_class_may_call_is_reached_through_its_class() {
    let code = |base: &str| {
        format!(
            "class A{base}:\n    def run(self):\n        return 1\n\n    def __len__(self):\n        return 1\n"
        )
    };
    let test = "from calc import A\n\n\ndef test_add():\n    assert A()\n";
    let found = |base: &str, name: &str| {
        let old = code(base);
        let new = old.replace("return 1", "return 2");
        let files = [("calc.py", old.as_str()), ("tests/test_calc.py", test)];
        found(&files, &[("calc.py", &new)], &[name])
    };
    assert_eq!(found("", "calc.py::A.run"), ["calc.py::A.run"]);
    assert!(found("(Base)", "calc.py::A.run").is_empty());
    assert!(found("", "calc.py::A.__len__").is_empty());
}

#[test]
fn data_file_is_reached_only_if_code_names_it() {
    let files = [
        ("calc.py", CODE),
        ("tests/test_calc.py", TEST),
        ("deploy.sh", "echo hi\n"),
        ("data/x.json", "1\n"),
    ];
    let of = |file: &str, text: &str| found(&files, &[(file, text)], &[&format!("{file}::")]);
    assert_eq!(of("deploy.sh", "echo bye\n"), ["deploy.sh::"]);
    assert_eq!(of("data/x.json", "2\n"), ["data/x.json::"]);
    assert!(of("README.md", "# calc\n").is_empty());
    assert!(of("notes.txt", "calc\n").is_empty());
    assert!(of("tests/test_calc.py", "").is_empty());
    assert!(of("pyproject.toml", "[tool.x]\n").is_empty());
    let reads = ("data/x.json", "1\n");
    let code = CODE.replace("return a + b", "return load('data/x.json')");
    let files = [
        ("calc.py", code.as_str()),
        ("tests/test_calc.py", TEST),
        reads,
    ];
    assert!(found(&files, &[("data/x.json", "2\n")], &["data/x.json::"]).is_empty());
}

#[test]
fn code_in_another_language_is_reached_only_if_a_test_reads_it_or_python_can_import_it() {
    let of = |file: &str, beside: &[(&str, &str)]| {
        let page = "<script src=\"/static/units.ts\"></script>\n<a>native</a>\n";
        let mut files = vec![
            ("calc.py", CODE),
            ("tests/test_calc.py", TEST),
            ("templates/page.html", page),
            ("web/static/units.ts", "export const a = 1\n"),
            ("native/src/lib.rs", "fn a() {}\n"),
            ("calc.pyi", "def add(a: int, b: int) -> int: ...\n"),
        ];
        files.extend(beside);
        found(&files, &[(file, "x\n")], &[&format!("{file}::")])
    };
    assert_eq!(of("web/static/units.ts", &[]), ["web/static/units.ts::"]);
    assert_eq!(of("native/src/lib.rs", &[]), ["native/src/lib.rs::"]);
    assert!(of("calc.pyi", &[]).is_empty());
    let helper = "TEXT = open('web/static/units.ts').read()\n";
    assert!(of("web/static/units.ts", &[("tests/helper.py", helper)]).is_empty());
    let build = "[build-system]\nrequires = [\"maturin\"]\n";
    assert!(of("native/src/lib.rs", &[("pyproject.toml", build)]).is_empty());
    let build = [("pyproject.toml", build)];
    assert_eq!(of("web/static/units.ts", &build), ["web/static/units.ts::"]);
}

#[test]
fn comments_docstrings_and_deleted_code_need_no_test() {
    let files = [("calc.py", CODE), ("tests/test_calc.py", TEST)];
    let of = |text: &str| found(&files, &[("calc.py", text)], &["calc.py::mul"]);
    let told = CODE.replace(
        "    return a * b",
        "    \"\"\"The product.\"\"\"\n    # exact\n    return a * b",
    );
    assert!(of(&told).is_empty());
    assert!(of("def add(a, b):\n    return a + b\n").is_empty());
    let new = format!("{CODE}\n\ndef sub(a, b):\n    return a - b\n");
    assert_eq!(
        found(&files, &[("calc.py", &new)], &["calc.py::sub"]),
        ["calc.py::sub"]
    );
    let module = format!("import os\n\n{CODE}");
    assert!(found(&files, &[("calc.py", &module)], &["calc.py::"]).is_empty());
}

#[test]
fn doctest_reaches_the_functions_that_it_names() {
    let after = |file: &'static str, id: &str, text: &str| {
        let files = [
            ("calc.py", CODE),
            ("tests/test_calc.py", TEST),
            (file, text),
        ];
        let changed = CODE.replace("a * b", "0");
        let ids = ["tests/test_calc.py::test_add", id];
        found_by(&ids, &files, &[("calc.py", &changed)], &["calc.py::mul"])
    };
    let module = |example: &str, body: &str| {
        let text = format!(
            "from calc import mul\n\n\ndef age(a):\n    \"\"\"Years.\n\n    >>> {example}\n    1\n    \"\"\"\n    return {body}\n"
        );
        after("decay.py", "decay.py::decay.age", &text)
    };
    assert_eq!(module("age(1)", "a"), ["calc.py::mul"]);
    assert!(module("mul(1, 1)", "a").is_empty());
    assert!(module("age(1)", "mul(a, a)").is_empty());
    let document = |text: &str| after("use.rst", "use.rst::use.rst", text);
    assert_eq!(document(">>> add(1, 0)\n1\n"), ["calc.py::mul"]);
    assert!(document(">>> mul(1, 1)\n1\n").is_empty());
}

#[test]
fn all_changed_code_counts_as_reached_if_the_test_files_are_unknown() {
    let files = [("calc.py", CODE), ("spec/all.py", "")];
    let changed = CODE.replace("a * b", "0");
    assert!(found(&files, &[("calc.py", &changed)], &["calc.py::mul"]).is_empty());
}
