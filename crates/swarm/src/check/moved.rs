//! Detects definitions that a change moves: a name disappears from one file and appears in another
//! file with the same text. Moved tests still count, and a test may import a moved name from its
//! new module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::expected;
use crate::lookup::Lookup;
use crate::task::whole_word::has_word;
use starling_core::TestReport;
use starling_index::is_test_file;
use starling_syntax::{FilePath, SymbolTree, module_imports};
use starling_workspace::Snapshot;

/// A definition that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MovedDefinition {
    pub name: String,
    pub from: FilePath,
    pub to: FilePath,
}

/// The definitions that moved between two states of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Moves(Vec<MovedDefinition>);

/// The top-level definitions of a file, with their texts.
type Definitions = BTreeMap<String, String>;

/// Returns the top-level functions, classes and variables of a file. For a variable, the text is
/// the line that sets it. Line ends are those of Unix, because a definition can move between files
/// with different line ends.
fn definitions(world: &Snapshot, file: &FilePath) -> Definitions {
    let Ok(text) = world.read(file) else {
        return Definitions::new();
    };
    let text = match text.contains('\r') {
        true => text.replace("\r\n", "\n").into(),
        false => text,
    };
    let tree = SymbolTree::parse(file.clone(), text);
    let text = tree.text();
    let symbols = tree.symbols().iter();
    let symbols = symbols.filter(|one| !one.path.is_module() && !one.path.name.contains('.'));
    let mut found: Definitions = symbols
        .map(|one| (one.path.name.clone(), one.definition.of(text).to_owned()))
        .collect();
    for (line, start) in text.lines().zip(tree.line_starts()) {
        let name = line.split([' ', ':', '=']).next().unwrap_or_default();
        let rest = line[name.len()..].trim_start();
        let is_set = rest.starts_with(':') && rest.contains('=')
            || rest.starts_with('=') && !rest.starts_with("==");
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_set && is_name && tree.owner(*start).path.is_module() {
            let known = found.entry(name.to_owned()).or_default();
            known.push_str(line.trim_end());
        }
    }
    found
}

fn is_code(file: &FilePath) -> bool {
    file.as_str().ends_with(".py")
}

impl Moves {
    pub fn between(without: &Snapshot, with: &Snapshot) -> Moves {
        Moves::of(without, with, |_| false)
    }

    /// Returns the moves, including those of definitions that a task names and whose texts changed.
    pub fn named(task: &str, without: &Snapshot, with: &Snapshot) -> Moves {
        Moves::of(without, with, |name| has_word(task, name))
    }

    fn of(without: &Snapshot, with: &Snapshot, may_change: impl Fn(&str) -> bool) -> Moves {
        let changed = expected::changed_files(without, with);
        let files: Vec<&FilePath> = changed.iter().filter(|file| is_code(file)).collect();
        if files.len() < 2 {
            return Moves::default();
        }
        let before: Vec<Definitions> = files.iter().map(|one| definitions(without, one)).collect();
        let after: Vec<Definitions> = files.iter().map(|one| definitions(with, one)).collect();
        let mut all = Vec::new();
        for from in 0..files.len() {
            let gone = before[from].iter();
            for (name, text) in gone.filter(|(name, _)| !after[from].contains_key(*name)) {
                let stands = |to: &usize| {
                    let new = after[*to].get(name);
                    let is_it = new.is_some_and(|new| new == text || may_change(name));
                    is_it && !before[*to].contains_key(name)
                };
                let places = (0..files.len()).filter(stands);
                all.extend(places.map(|to| MovedDefinition {
                    name: name.clone(),
                    from: files[from].clone(),
                    to: files[to].clone(),
                }));
            }
        }
        Moves(all)
    }

    pub fn all(&self) -> &[MovedDefinition] {
        &self.0
    }

    /// Returns whether a test that did not run at its old location was moved and ran at its new
    /// location.
    pub fn ran_elsewhere(&self, id: &str, report: &TestReport) -> bool {
        let mut moved = self.0.iter();
        moved.any(|one| {
            let Some(tail) = tail(id, one).filter(|_| expected::is_in(id, one.from.as_str()))
            else {
                return false;
            };
            let ran = expected::ran(report);
            let mut ran = ran.iter();
            ran.any(|other| {
                other != id
                    && expected::is_in(other, one.to.as_str())
                    && tail_of(other, one) == tail
            })
        })
    }

    /// Adds the new files of moved tests to selected tests.
    pub fn with_new_places(&self, mut entries: Vec<String>) -> Vec<String> {
        let is_selected = |one: &MovedDefinition| {
            let mut files = entries.iter().map(|entry| entry.split("::").next());
            files.any(|file| file == Some(one.from.as_str()))
        };
        let new: BTreeSet<String> = (self.0.iter().filter(|one| is_selected(one)))
            .map(|one| one.to.to_string())
            .collect();
        let new: Vec<String> = new.into_iter().filter(|to| !entries.contains(to)).collect();
        entries.extend(new);
        entries
    }

    /// Returns the text of a file without the definitions that moved to another file.
    pub fn without_moved(&self, file: &FilePath, text: &Arc<str>) -> Arc<str> {
        let is_gone = |name: &str| {
            let mut moved = self.0.iter();
            moved.any(|one| one.from == *file && one.name == name)
        };
        let tree = SymbolTree::parse(file.clone(), Arc::clone(text));
        let mut rest = text.to_string();
        let gone = tree.symbols().iter().rev();
        for symbol in gone.filter(|one| !one.path.name.contains('.') && is_gone(&one.path.name)) {
            rest.replace_range(symbol.span.start..symbol.span.end, "");
        }
        rest.into()
    }

    /// Returns the text of a file with its imports changed, such that each moved name is imported
    /// from its new module.
    pub fn imported_anew(&self, file: &FilePath, text: &Arc<str>) -> Arc<str> {
        if self.0.is_empty() || !is_code(file) {
            return Arc::clone(text);
        }
        let tree = SymbolTree::parse(file.clone(), Arc::clone(text));
        let mut new = text.to_string();
        for range in module_imports(&tree).into_iter().rev() {
            if let Some(statements) = self.statement_anew(range.of(text)) {
                new.replace_range(range.start..range.end, &statements);
            }
        }
        new.into()
    }

    /// Returns the statements that replace an import of moved names; `None` if none of its names
    /// moved.
    fn statement_anew(&self, statement: &str) -> Option<String> {
        let (module, names) = statement.strip_prefix("from ")?.split_once(" import ")?;
        let module = module.trim();
        let lines = names
            .lines()
            .map(|line| line.split('#').next().unwrap_or(line));
        let names: String = lines.collect::<Vec<_>>().join(" ");
        let names = names.trim_matches(['(', ')', ' ']).split(',');
        let names: Vec<&str> = names
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        let mut stay = Vec::new();
        let mut moved: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for name in names {
            let plain = name.split_whitespace().next().unwrap_or(name);
            let mut all = self.0.iter().filter(|one| one.name == plain);
            match all.find_map(|one| one.new_module(module)) {
                Some(module) => moved.entry(module).or_default().push(name),
                None => stay.push(name),
            }
        }
        if moved.is_empty() {
            return None;
        }
        let stay = (!stay.is_empty()).then(|| (module.to_owned(), stay));
        let all = stay.into_iter().chain(moved);
        let all = all.map(|(module, names)| format!("from {module} import {}", names.join(", ")));
        Some(all.collect::<Vec<_>>().join("\n"))
    }
}

impl MovedDefinition {
    /// Returns the new module for an import from the old one; `None` if `module` is not the module
    /// from which the definition moved.
    fn new_module(&self, module: &str) -> Option<String> {
        let (from, to) = (dotted(&self.from), dotted(&self.to));
        if module.starts_with('.') {
            let (base, last) = module.rsplit_once('.')?;
            let (from, to) = (from.rsplit_once('.'), to.rsplit_once('.'));
            let (from, to) = from.zip(to)?;
            return (from.0 == to.0 && from.1 == last).then(|| format!("{base}.{}", to.1));
        }
        let around = from.strip_suffix(module)?;
        let is_whole = around.is_empty() || around.ends_with('.');
        to.strip_prefix(around)
            .filter(|_| is_whole)
            .map(str::to_owned)
    }
}

/// Returns the dotted name of a file's module, from the root of the project.
fn dotted(file: &FilePath) -> String {
    let path = file.as_str().trim_end_matches(".py");
    path.trim_end_matches("/__init__").replace('/', ".")
}

/// Returns the part of a test id that begins with the name of a moved definition; `None` if the
/// test does not belong to that definition.
fn tail(id: &str, moved: &MovedDefinition) -> Option<String> {
    let (plain, case) = match id.find('[') {
        Some(at) => id.split_at(at),
        None => (id, ""),
    };
    let parts: Vec<&str> = plain
        .split(['.', ':', '/'])
        .filter(|part| !part.is_empty())
        .collect();
    let at = parts.iter().rposition(|part| *part == moved.name)?;
    Some(format!("{}{case}", parts[at..].join(".")))
}

fn tail_of(id: &str, moved: &MovedDefinition) -> String {
    tail(id, moved).unwrap_or_default()
}

/// Returns whether a task asks to move code.
pub(crate) fn asks_to_move(task: &str) -> bool {
    const MOVE: [&str; 8] = [
        "move",
        "moves",
        "moved",
        "moving",
        "split",
        "splits",
        "splitting",
        "relocate",
    ];
    let words = task.split(|c: char| !c.is_alphanumeric());
    let mut words = words.map(str::to_lowercase);
    words.any(|word| MOVE.contains(&word.as_str()))
}

/// Describes the definitions that a run copied although the task asks to move them. The text has
/// the form `` `f` stands twice: a.py and b.py``.
pub(crate) fn standing_twice(
    task: &str,
    (without, with): (&Snapshot, &Snapshot),
    lookup: &Lookup,
) -> Vec<String> {
    const LINES: usize = 2;
    if !asks_to_move(task) {
        return Vec::new();
    }
    let is_meant = |file: &&FilePath| is_code(file) && !is_test_file(file);
    let changed = expected::changed_files(without, with);
    let mut twice = Vec::new();
    for copy in changed.iter().filter(is_meant) {
        let before = definitions(without, copy);
        let new = definitions(with, copy).into_iter();
        let new =
            new.filter(|(name, text)| !before.contains_key(name) && text.lines().count() >= LINES);
        for (name, text) in new {
            let found = lookup.index().definitions(&name).into_iter();
            let mut files = found.map(|one| one.symbol.file).filter(|file| file != copy);
            let is_same = |file: &FilePath| {
                let stood = definitions(without, file).get(&name) == Some(&text);
                stood && definitions(with, file).get(&name) == Some(&text)
            };
            if let Some(file) = files.find(is_same) {
                twice.push(format!("`{name}` stands twice: {file} and {copy}"));
            }
        }
    }
    twice
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::{TestOutcome, TestStatus};
    use starling_workspace::Workspace;

    const AGE: &str = "def age(x):\n    '''\n    >>> age(1)\n    2\n    '''\n    return x + 1\n";

    fn moves(before: &[(&str, &str)], after: &[(&str, Option<&str>)]) -> Moves {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in before {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let world = Workspace::open(dir.path().canonicalize().unwrap()).unwrap();
        let without = world.snapshot(Default::default());
        let mut with = without.clone();
        for (file, text) in after {
            with = with.with(FilePath::new(*file), text.map(Into::into));
        }
        Moves::between(&without, &with)
    }

    fn of_age() -> Moves {
        let decay = format!("RATE = 2\n\n\n{AGE}\n\ndef half():\n    return RATE\n");
        moves(
            &[("src/lab/decay.py", &decay)],
            &[
                ("src/lab/decay.py", Some("def half():\n    return RATE\n")),
                ("src/lab/ages.py", Some(&format!("RATE = 2\n\n\n{AGE}"))),
            ],
        )
    }

    #[test]
    fn definition_that_vanishes_and_appears_elsewhere_with_the_same_text_has_moved() {
        let names: Vec<String> = of_age().0.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["RATE", "age"]);
        let other = AGE.replace("+ 1", "+ 2");
        let changed = [("a.py", Some("")), ("b.py", Some(other.as_str()))];
        assert!(
            moves(&[("a.py", AGE)], &changed).0.is_empty(),
            "another text"
        );
        let copied = [("a.py", Some("X = 1\n")), ("b.py", Some(AGE))];
        let both = [("a.py", AGE), ("b.py", AGE)];
        assert!(moves(&both, &copied).0.is_empty(), "it stood there before");
    }

    #[test]
    fn definition_that_moves_to_a_file_with_other_line_ends_has_moved() {
        let crlf = format!("RATE = 2\n\n\n{AGE}").replace('\n', "\r\n");
        let after = [("a.py", Some("RATE = 2\r\n")), ("b.py", Some(AGE))];
        let moved = moves(&[("a.py", &crlf)], &after).0;
        let names: Vec<&str> = moved.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["age"]);
    }

    #[test]
    fn moved_test_is_recognized_in_results_at_its_new_location() {
        let ran = |ids: &[&str]| {
            let cases: Vec<_> = ids.iter().map(|id| (*id, TestStatus::Passed)).collect();
            TestReport::of_cases(TestOutcome::Passed, &cases)
        };
        let moves = of_age();
        let old = "src/lab/decay.py::lab.decay.age";
        assert!(moves.ran_elsewhere(old, &ran(&["src/lab/ages.py::lab.ages.age"])));
        assert!(!moves.ran_elsewhere(old, &ran(&["src/lab/other.py::lab.other.age"])));
        assert!(!moves.ran_elsewhere(old, &ran(&["src/lab/ages.py::lab.ages.half"])));
        let half = "src/lab/decay.py::lab.decay.half";
        assert!(!moves.ran_elsewhere(half, &ran(&["src/lab/ages.py::lab.ages.half"])));
        let test = "class T:\n    def test_x(self):\n        pass\n";
        let after = [("test_a.py", None), ("test_b.py", Some(test))];
        let moves = super::tests::moves(&[("test_a.py", test)], &after);
        let new = ran(&["test_b.py::T::test_x[1]"]);
        assert!(moves.ran_elsewhere("test_a.py::T::test_x[1]", &new));
        assert!(!moves.ran_elsewhere("test_a.py::T::test_x[2]", &new));
        let selected = moves.with_new_places(vec!["test_a.py::T.test_x".to_owned()]);
        assert_eq!(selected, ["test_a.py::T.test_x", "test_b.py"]);
    }

    #[test]
    fn imports_of_moved_names_are_redirected_to_their_new_module() {
        let new = |text: &str| {
            let file = FilePath::new("src/lab/test_a.py");
            of_age().imported_anew(&file, &text.into()).to_string()
        };
        for (old, expected) in [
            ("from lab.decay import age\n", "from lab.ages import age\n"),
            ("from .decay import age\n", "from .ages import age\n"),
            (
                "import os\nfrom lab.decay import (\n    half,  # b\n    age as a,\n)\n",
                "import os\nfrom lab.decay import half\nfrom lab.ages import age as a\n",
            ),
            (
                "from src.lab.decay import RATE\n",
                "from src.lab.ages import RATE\n",
            ),
        ] {
            assert_eq!(new(old), expected);
        }
        for same in [
            "from lab.decay import half\n",
            "from cay import age\n",
            "import lab.decay\n",
        ] {
            assert_eq!(new(same), same);
        }
    }
}
