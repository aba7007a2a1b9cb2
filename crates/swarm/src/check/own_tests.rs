//! Tests in files that do not look like test files: files that the configuration declares as tests
//! (`check_*.py`), tests next to the code in one file, and examples in docstrings and documents
//! that run as doctests. The ids of the tests that ran show which files contain tests.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::task::asked;
use starling_syntax::{FilePath, Symbol, SymbolKind, SymbolPath, SymbolTree};
use starling_text::ByteRange;
use starling_workspace::Snapshot;

/// Files in which pytest looks for its configuration.
const CONFIGURATION: [&str; 7] = [
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
];
/// Minimum number of letters in a pattern. Shorter patterns do not distinguish tests from code.
const LETTERS: usize = 3;
/// The doctest prompt.
const PROMPT: &str = ">>>";

/// The tests of a project, according to its configuration and to the ids of the tests that ran.
pub(crate) struct OwnTests {
    patterns: Vec<String>,
    /// Patterns for documents whose examples run.
    documents: Vec<String>,
    ids: BTreeSet<String>,
    /// Whether examples in docstrings run, according to the test command or the configuration.
    runs_examples: bool,
    /// Functions and classes whose behaviour the task changes, so that the results in their own
    /// examples may follow.
    following: Vec<SymbolPath>,
}

/// A changed code file in which the tests got their original text back.
pub(crate) struct RestoredFile {
    pub text: Arc<str>,
    /// Whether the text contains all original tests and examples.
    pub is_whole: bool,
}

impl OwnTests {
    pub fn of(world: &Snapshot, command: &str, ids: BTreeSet<String>) -> OwnTests {
        let (mut patterns, mut documents) = (Vec::new(), Vec::new());
        let mut runs_examples = command.contains("doctest");
        for file in CONFIGURATION {
            let Ok(text) = world.read(&FilePath::new(file)) else {
                continue;
            };
            patterns.extend(configured(&text));
            documents.extend(globs(&text));
            runs_examples |= lines(&text).any(|line| line.contains("--doctest-modules"));
        }
        documents.extend(globs(command));
        // For example `unittest discover -p 'check_*.py'`.
        let words = command.split(|c: char| c.is_whitespace() || "\"'=".contains(c));
        let words = words.filter(|word| word.contains('*') && word.ends_with(".py"));
        patterns.extend(words.map(str::to_owned));
        patterns.retain(|pattern| tells_tests(pattern));
        OwnTests {
            patterns,
            documents,
            ids,
            runs_examples,
            following: Vec::new(),
        }
    }

    /// Allows the examples of these functions and classes to follow the change of their code.
    pub fn following(self, following: Vec<SymbolPath>) -> OwnTests {
        OwnTests { following, ..self }
    }

    /// Returns whether the whole file consists of tests: it matches a configured pattern, or it is
    /// not code and its tests ran.
    pub fn are_all_of(&self, file: &FilePath) -> bool {
        if file.name().ends_with(".py") {
            let mut patterns = self.patterns.iter();
            return patterns.any(|pattern| fits(file.name(), pattern));
        }
        let mut documents = self.documents.iter();
        !self.rests(file).is_empty() || documents.any(|pattern| fits(file.name(), pattern))
    }

    /// Returns whether a code file also contains tests.
    pub fn are_beside(&self, file: &FilePath) -> bool {
        file.name().ends_with(".py") && (self.runs_examples || !self.rests(file).is_empty())
    }

    /// Returns whether the examples in the docstrings of a file run as doctests.
    pub fn run_examples_of(&self, file: &FilePath) -> bool {
        let is_example = |rest: &TestIdRest| rest.is_example(file);
        file.name().ends_with(".py")
            && (self.runs_examples || self.rests(file).iter().any(is_example))
    }

    /// Returns, for each test of a file, the part of its id after the part that names the file.
    fn rests(&self, file: &FilePath) -> Vec<TestIdRest<'_>> {
        let module = file.as_str().trim_end_matches(".py").replace('/', ".");
        let modules = [module.as_str(), module.trim_start_matches("src.")];
        let of = |id: &'_ String| -> Option<(usize, bool)> {
            let by_path = id.strip_prefix(file.as_str());
            if let Some(rest) = by_path.and_then(|rest| rest.strip_prefix("::")) {
                return Some((id.len() - rest.len(), true));
            }
            if id.contains("::") || id.contains('/') {
                return None;
            }
            let mut rests = modules
                .iter()
                .filter_map(|module| id.strip_prefix(module)?.strip_prefix('.'));
            rests.next().map(|rest| (id.len() - rest.len(), false))
        };
        let rests = self.ids.iter().filter_map(|id| {
            let (at, is_path) = of(id)?;
            Some(TestIdRest {
                text: &id[at..],
                is_path,
            })
        });
        rests.collect()
    }

    /// Restores the original text of the tests and examples in a changed file of code. Returns
    /// `None` if they did not change, or if the task asks to change them.
    pub fn restored(
        &self,
        task: &str,
        file: &FilePath,
        original: &Arc<str>,
        text: &Arc<str>,
    ) -> Option<RestoredFile> {
        if asked::to_change_all_tests(task, file) {
            return None;
        }
        let rests = self.rests(file);
        let before = SymbolTree::parse(file.clone(), Arc::clone(original));
        let after = SymbolTree::parse(file.clone(), Arc::clone(text));
        // Without tests in the file, fixtures count as code: a project such as a pytest plugin may
        // define fixtures for other projects.
        let has_tests = rests.iter().any(|rest| !rest.is_example(file));
        let is_test = |symbol: &Symbol| {
            let name = symbol.path.base_name();
            rests.iter().any(|rest| rest.is_of(name, symbol.kind))
                || has_tests && is_fixture(&before, symbol)
        };
        let is_open =
            |name: &str| asked::to_change_test(task, name) || asked::to_remove(task, name);
        let mut edits = Vec::new();
        let mut is_whole = true;
        let top = before.symbols().iter();
        let top = top.filter(|symbol| is_top(symbol) && is_test(symbol));
        let tests: Vec<&Symbol> = top.collect();
        for symbol in &tests {
            if is_open(symbol.path.base_name()) {
                continue;
            }
            let was = &original[symbol.span.start..symbol.span.end];
            match after.find(&symbol.path.name) {
                Some(now) => edits.push((now.span, was)),
                // A removed test is reported by another check, and a fixture may have been moved.
                None => is_whole = false,
            }
        }
        let is_in_test = |symbol: &Symbol| {
            tests.iter().any(|test| {
                test.span.start <= symbol.span.start && symbol.span.end <= test.span.end
            })
        };
        let runs_examples = self.run_examples_of(file);
        let mut held = original.to_string();
        if runs_examples && !asked::to_change_examples(task) {
            let documented = before.symbols().iter().filter(|symbol| !is_in_test(symbol));
            let (followed, documented): (Vec<&Symbol>, Vec<&Symbol>) =
                documented.partition(|symbol| self.may_follow(symbol, &before, &after));
            edits.extend(docstrings(&documented, original, &after));
            for docstring in followed.iter().rev().filter_map(|symbol| symbol.docstring) {
                held.replace_range(docstring.start..docstring.end, "\n");
            }
        }
        edits.retain(|(range, was)| &text[range.start..range.end] != *was);
        edits.sort_by_key(|(range, _)| range.start);
        let mut whole = String::new();
        let mut from = 0;
        for (range, was) in edits {
            if range.start < from {
                is_whole = false;
                continue;
            }
            whole.push_str(&text[from..range.start]);
            whole.push_str(was);
            from = range.end;
        }
        whole.push_str(&text[from..]);
        let has_examples = || {
            let (was, is) = (examples(&held), examples(&whole));
            was.is_subset(&is)
        };
        let examples_are_held = !runs_examples || asked::to_change_examples(task) || has_examples();
        let restored = RestoredFile {
            is_whole: is_whole && examples_are_held,
            text: whole.into(),
        };
        (restored.text != *text || !restored.is_whole).then_some(restored)
    }

    /// Returns whether the results of the examples of a symbol may follow a change: the task changes
    /// the behaviour of the symbol, its code changed, and each example still stands.
    fn may_follow(&self, symbol: &Symbol, before: &SymbolTree, after: &SymbolTree) -> bool {
        let mut following = self.following.iter();
        let Some(now) = after
            .find(&symbol.path.name)
            .filter(|_| !symbol.path.is_module())
        else {
            return false;
        };
        let (Some(was_docstring), Some(is_docstring)) = (symbol.docstring, now.docstring) else {
            return false;
        };
        let (was, is) = (
            was_docstring.of(before.text()),
            is_docstring.of(after.text()),
        );
        let code = |tree: &SymbolTree, symbol: &Symbol, docstring: ByteRange| {
            let text = tree.text();
            let head = &text[symbol.span.start..docstring.start];
            format!("{head}{}", &text[docstring.end..symbol.span.end])
        };
        following.any(|one| one.encloses(&symbol.path))
            && code(before, symbol, was_docstring) != code(after, now, is_docstring)
            && calls(was).is_subset(&calls(is))
    }
}

/// Returns the docstrings with examples of symbols, each with its range in the new text.
fn docstrings<'t>(
    symbols: &[&Symbol],
    original: &'t str,
    after: &SymbolTree,
) -> Vec<(ByteRange, &'t str)> {
    let restored = symbols.iter().filter_map(|symbol| {
        let was = symbol.docstring?.of(original);
        let now = match symbol.path.is_module() {
            true => after.module(),
            false => after.find(&symbol.path.name)?,
        };
        let is_example = was.contains(PROMPT);
        now.docstring.filter(|_| is_example).map(|now| (now, was))
    });
    restored.collect()
}

/// Returns the lines of code of the examples in a text.
fn calls(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| line.starts_with(PROMPT)).collect()
}

/// The part of a test id after the file.
struct TestIdRest<'i> {
    text: &'i str,
    /// Whether the id names the file as a path. Otherwise it names a dotted module.
    is_path: bool,
}

impl TestIdRest<'_> {
    /// Returns whether the test is this top-level symbol or lies in it.
    fn is_of(&self, name: &str, kind: SymbolKind) -> bool {
        let plain = self.text.split('[').next().unwrap_or(self.text);
        if self.is_path {
            return plain.split("::").next() == Some(name);
        }
        let mut parts = plain.split('.');
        let is_first = parts.next() == Some(name);
        let is_test = parts
            .next_back()
            .is_some_and(|last| last.starts_with("test"));
        is_first && is_test && kind == SymbolKind::Class
    }

    /// Returns whether the test is a doctest: `calc.py::calc.add` for pytest, `calc.add` for
    /// unittest.
    fn is_example(&self, file: &FilePath) -> bool {
        let stem = file.name().trim_end_matches(".py");
        let plain = self.text.split('[').next().unwrap_or(self.text);
        let is_module = plain.contains('.') || plain == stem || stem == "__init__";
        match self.is_path {
            true => !plain.contains("::") && is_module,
            false => {
                let last = self.text.rsplit('.').next().unwrap_or(self.text);
                !last.starts_with("test")
            }
        }
    }
}

/// Returns whether the docstring of a symbol, or of a symbol inside it, has an example. Of a module,
/// only its own docstring counts.
pub(crate) fn has_example(tree: &SymbolTree, symbol: &SymbolPath) -> bool {
    let is_in = |one: &&Symbol| match symbol.is_module() {
        true => one.path.is_module(),
        false => symbol.encloses(&one.path),
    };
    let mut docstrings = (tree.symbols().iter().filter(is_in)).filter_map(|one| one.docstring);
    docstrings.any(|docstring| docstring.of(tree.text()).contains(PROMPT))
}

fn is_top(symbol: &Symbol) -> bool {
    !symbol.path.is_module() && !symbol.path.name.contains('.')
}

/// Returns whether a function has a fixture decorator.
fn is_fixture(tree: &SymbolTree, symbol: &Symbol) -> bool {
    let text = &tree.text()[symbol.definition.start..symbol.definition.end];
    let mut decorators = text
        .lines()
        .map(str::trim_start)
        .take_while(|line| line.starts_with('@'));
    symbol.kind == SymbolKind::Function && decorators.any(|line| line.contains("fixture"))
}

/// Returns the doctest examples of a text with their expected output.
fn examples(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut example: Option<String> = None;
    for line in text.lines().map(str::trim) {
        let is_end = line.is_empty()
            || line.starts_with(PROMPT)
            || line.contains("\"\"\"")
            || line.contains("'''");
        if is_end {
            found.extend(example.take());
        }
        if line.starts_with(PROMPT) {
            example = Some(line.to_owned());
        } else if let Some(example) = &mut example {
            example.push('\n');
            example.push_str(line);
        }
    }
    found.extend(example);
    found
}

/// Returns the patterns of `python_files` in a configuration.
fn configured(text: &str) -> Vec<String> {
    let mut patterns = Vec::new();
    let mut is_inside = false;
    for line in lines(text) {
        let value = match line.split_once("python_files") {
            Some((_, after)) => {
                is_inside = true;
                after
            }
            None if is_inside && !line.contains('=') && !line.starts_with('[') => line,
            None => {
                is_inside = false;
                ""
            }
        };
        let words = value.split(|c: char| c.is_whitespace() || "=\"',[]".contains(c));
        patterns.extend(
            words
                .filter(|word| word.ends_with(".py"))
                .map(str::to_owned),
        );
    }
    patterns
}

/// Returns the patterns of `--doctest-glob` in a configuration or a command.
fn globs(text: &str) -> Vec<String> {
    let mut patterns = Vec::new();
    for line in lines(text) {
        for rest in line.split("--doctest-glob").skip(1) {
            let mut words = rest.split(|c: char| c.is_whitespace() || "=\"',[]".contains(c));
            patterns.extend(words.find(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    patterns
}

/// Returns the lines of a configuration that are not comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.starts_with(['#', ';']))
}

/// Returns whether a pattern distinguishes test files from other files.
fn tells_tests(pattern: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    let letters = name.trim_end_matches(".py").chars();
    letters.filter(|c| c.is_alphanumeric()).count() >= LETTERS
}

/// Returns whether a file name matches a pattern with `*` and `?`. Directories in the pattern are
/// ignored.
fn fits(name: &str, pattern: &str) -> bool {
    fn rest_fits(name: &[u8], pattern: &[u8]) -> bool {
        match (name, pattern) {
            ([], []) => true,
            (_, [b'*', rest @ ..]) => (0..=name.len()).any(|from| rest_fits(&name[from..], rest)),
            ([_, name @ ..], [b'?', pattern @ ..]) => rest_fits(name, pattern),
            ([one, name @ ..], [other, pattern @ ..]) => one == other && rest_fits(name, pattern),
            ([], [_, ..]) | ([_, ..], []) => false,
        }
    }
    let pattern = pattern.rsplit('/').next().unwrap_or(pattern);
    rest_fits(name.as_bytes(), pattern.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(ids: &[&str], command: &str) -> OwnTests {
        OwnTests {
            patterns: Vec::new(),
            documents: Vec::new(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            runs_examples: command.contains("doctest"),
            following: Vec::new(),
        }
    }

    /// Returns the restored text, and whether all changed tests in it were restored.
    fn restored(own: &OwnTests, task: &str, was: &str, is: &str) -> Option<(String, bool)> {
        let file = FilePath::new("pkg/calc.py");
        let restored = own.restored(task, &file, &was.into(), &is.into())?;
        Some((restored.text.to_string(), restored.is_whole))
    }

    #[test]
    fn test_file_patterns_are_read_from_the_pytest_configuration() {
        for text in [
            "[pytest]\npython_files = check_*.py *_spec.py\naddopts = -q\n",
            "[pytest]\npython_files =\n    check_*.py\n    *_spec.py\n",
            "[tool.pytest.ini_options]\npython_files = [\"check_*.py\", \"*_spec.py\"]\n",
            "[tool.pytest.ini_options]\npython_files = [\n  \"check_*.py\",\n  \"*_spec.py\",\n]\n",
        ] {
            assert_eq!(configured(text), ["check_*.py", "*_spec.py"], "{text}");
        }
        assert!(configured("# python_files = x_*.py\n").is_empty());
        let options = "addopts = --doctest-glob='*.md' --doctest-glob=guide.rst -q";
        assert_eq!(globs(options), ["*.md", "guide.rst"]);
        assert!(tells_tests("check_*.py") && !tells_tests("*.py") && !tells_tests("a*.py"));
        assert!(fits("check_a.py", "check_*.py") && fits("a_spec.py", "*_spec.py"));
        assert!(!fits("checks.py", "check_*.py") && !fits("calc.py", "check_*.py"));
    }

    #[test]
    fn changed_tests_in_a_code_file_are_restored_to_their_original_text() {
        let was =
            "def add(a, b):\n    return a + b\n\n\ndef test_add():\n    assert add(1, 2) == 3\n";
        let is = "def add(a, b):\n    return a - b\n\n\ndef test_add():\n    assert True\n";
        let expected =
            "def add(a, b):\n    return a - b\n\n\ndef test_add():\n    assert add(1, 2) == 3\n";
        let by_pytest = own(&["pkg/calc.py::test_add"], "");
        let found = restored(&by_pytest, "Mend add.", was, is);
        assert_eq!(found, Some((expected.to_owned(), true)));
        for task in ["Update test_add.", "Rewrite the tests."] {
            assert_eq!(restored(&by_pytest, task, was, is), None, "{task}");
        }
        assert_eq!(
            restored(&own(&["test_b.py::test_b"], ""), "Mend add.", was, is),
            None
        );
        let code =
            "def add(a, b):\n    return b + a\n\n\ndef test_add():\n    assert add(1, 2) == 3\n";
        assert_eq!(restored(&by_pytest, "Mend add.", was, code), None);
        let was = "class AddCase(TestCase):\n    def test_a(self):\n        self.x(1)\n";
        let is = "class AddCase(TestCase):\n    def test_a(self):\n        pass\n";
        let by_unittest = own(&["pkg.calc.AddCase.test_a"], "");
        let found = restored(&by_unittest, "Mend add.", was, is);
        assert_eq!(found, Some((was.to_owned(), true)));
    }

    #[test]
    fn changed_doctests_are_restored_only_if_doctests_run() {
        let was = "def add(a, b):\n    \"\"\"Adds.\n\n    >>> add(1, 2)\n    3\n    \"\"\"\n    return a + b\n";
        let is = was.replace("    3\n", "    -1\n").replace("a + b", "a - b");
        let expected = was.replace("a + b", "a - b");
        for own in [
            own(&["pkg/calc.py::pkg.calc.add"], ""),
            own(&["pkg/calc.py::calc.add"], ""),
            own(&["pkg.calc.add"], ""),
            own(&["pkg/calc.py::pkg.calc"], ""),
            own(&[], "python -m doctest pkg/calc.py"),
        ] {
            let found = restored(&own, "Mend add.", was, &is);
            assert_eq!(found, Some((expected.clone(), true)));
            assert_eq!(
                restored(&own, "Update the docstring of add.", was, &is),
                None
            );
        }
        // Doctests do not run in this project.
        assert_eq!(
            restored(&own(&["pkg/calc.py::test_a"], ""), "Mend add.", was, &is),
            None
        );
    }

    #[test]
    fn results_of_examples_follow_a_change_of_their_own_function_only() {
        let was = "def add(a):\n    \"\"\"Adds.\n\n    >>> add(1)\n    3\n    \"\"\"\n    return a + 2\n\n\n\
                   def twice(a):\n    \"\"\"Adds.\n\n    >>> twice(1)\n    6\n    \"\"\"\n    return add(a) * 2\n";
        let following = |name: &str| {
            let symbol = SymbolPath::new(FilePath::new("pkg/calc.py"), name);
            own(&[], "python -m doctest pkg/calc.py").following(vec![symbol])
        };
        let add = was.replace("    3\n", "    4\n").replace("a + 2", "a + 3");
        assert_eq!(restored(&following("add"), "", was, &add), None);
        // Another function, only the example, and an example that is gone.
        let only_example = was.replace("    3\n", "    4\n");
        let gone = add.replace("    >>> add(1)\n    4\n", "");
        for (symbol, is) in [("twice", &add), ("add", &only_example), ("add", &gone)] {
            assert!(
                restored(&following(symbol), "", was, is).is_some(),
                "{symbol}: {is}"
            );
        }
        let both = add.replace("    6\n", "    8\n");
        let found = restored(&following("add"), "", was, &both);
        assert_eq!(found, Some((add, true)));
    }

    #[test]
    fn changed_fixture_is_restored_only_if_tests_of_its_file_run() {
        let was =
            "@pytest.fixture\ndef one():\n    return 1\n\n\ndef test_one(one):\n    assert one\n";
        let is = was.replace("return 1", "return 2");
        let found = restored(&own(&["pkg/calc.py::test_one"], ""), "Mend it.", was, &is);
        assert_eq!(found, Some((was.to_owned(), true)));
        for ids in [
            &[][..],
            &["pkg/calc.py::pkg.calc.one"],
            &["test_b.py::test_b"],
        ] {
            assert_eq!(restored(&own(ids, ""), "Mend it.", was, &is), None);
        }
    }

    #[test]
    fn file_is_marked_as_incomplete_if_one_of_its_tests_cannot_be_restored() {
        let was = "__test__ = {'a': '''\n>>> add(1, 2)\n3\n'''}\n";
        let is = was
            .replace('3', "-1")
            .replace("add(1, 2)\n-1", "add(1, 2)\n4");
        let own = own(&["pkg/calc.py::pkg.calc.__test__.a"], "");
        let found = restored(&own, "Mend add.", was, &is);
        assert_eq!(found, Some((is.clone(), false)));
    }
}
