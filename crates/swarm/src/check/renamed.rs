//! Tests of names that the task renames or deletes. A test whose id contains a renamed name is the
//! same test under its new name. A doctest or test of a symbol that the task deletes disappears with
//! the symbol. The original text of a test may follow the renames that the run carried out.

use std::sync::Arc;

use crate::check::expected;
use crate::state::checker::Checker;
use crate::task::asked;
use crate::task::stated::{ExplicitEdit, Named};
use crate::task::whole_word::has_word;
use starling_core::TestReport;
use starling_syntax::{FilePath, Symbol, SymbolPath, SymbolTree};
use starling_text::ChangeSet;
use starling_workspace::Snapshot;

/// The renames and deletions that a task asks for.
pub(crate) struct Renames<'c> {
    task: &'c str,
    /// Old and new names. The name of an option begins with its dashes.
    pairs: Vec<(String, String)>,
    deleted: Vec<&'c str>,
    /// Deleted names whose tests the task deletes, too.
    deleted_with_tests: Vec<&'c str>,
}

impl<'c> Renames<'c> {
    pub fn of(checker: &'c Checker) -> Renames<'c> {
        let mut renames = Renames {
            task: &checker.task.text,
            pairs: Vec::new(),
            deleted: Vec::new(),
            deleted_with_tests: Vec::new(),
        };
        if asked::to_remove_with_tests(renames.task) {
            let index = &checker.services.index;
            let names = renames.task.split(|c: char| !is_part(c));
            let names = names.filter(|name| asked::to_delete(renames.task, name));
            let names = names.filter(|name| !name.starts_with("test") && index.is_defined(name));
            renames.deleted_with_tests = names.collect();
        }
        for stated in &checker.stated().all {
            match stated {
                ExplicitEdit::Renamed {
                    from: Named::File(_),
                    ..
                } => {}
                ExplicitEdit::Renamed { from, to } => renames.rename(from.base_name(), to),
                ExplicitEdit::Deleted { what } => renames.deleted.push(what.base_name()),
            }
        }
        renames
    }

    fn rename(&mut self, from: &str, to: &str) {
        self.pairs.push((from.to_owned(), to.to_owned()));
        // The value of the option `--max-gap` is the attribute `max_gap`.
        if let (Some(from), Some(to)) = (from.strip_prefix("--"), to.strip_prefix("--")) {
            let attribute = |option: &str| option.replace('-', "_");
            self.pairs.push((attribute(from), attribute(to)));
        }
    }

    /// Returns the id under which a test ran before it was renamed, among `earlier` ids.
    pub fn old_id<'i>(
        &self,
        id: &str,
        mut earlier: impl Iterator<Item = &'i String>,
    ) -> Option<&'i String> {
        earlier.find(|old| *old != id && self.is_renamed(old, id))
    }

    /// Returns whether a test ran under a new name.
    pub fn ran_renamed(&self, id: &str, report: &TestReport) -> bool {
        let ran = expected::ran(report);
        ran.iter().any(|new| new != id && self.is_renamed(id, new))
    }

    /// Returns whether two texts differ only in names that the second one has under their new name.
    fn is_renamed(&self, old: &str, new: &str) -> bool {
        let (old, new) = (self.pieces(old), self.pieces(new));
        let is_pair = |old: &str, new: &str| {
            let mut pairs = self.pairs.iter();
            pairs.any(|(from, to)| from == old && to == new)
        };
        let mut both = old.iter().zip(&new);
        old.len() == new.len() && both.all(|(old, new)| old == new || is_pair(old, new))
    }

    /// Splits a text into names and the single characters between them.
    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let names = self.pairs.iter().flat_map(|(from, to)| [from, to]);
        let compound: Vec<&String> = names.filter(|name| !name.chars().all(is_part)).collect();
        pieces(text, &compound)
    }

    /// Returns the original text of a file in which each line follows the renames that the new
    /// text carries out. A line that differs in anything else keeps its original text.
    pub fn carried_out(&self, original: &Arc<str>, new: &str) -> Arc<str> {
        if self.pairs.is_empty() {
            return Arc::clone(original);
        }
        let old_name = |piece: &str| -> String {
            let mut pairs = self.pairs.iter();
            let pair = pairs.find(|(_, to)| to == piece);
            pair.map_or(piece, |(from, _)| from).to_owned()
        };
        let reverted: String = self.pieces(new).into_iter().map(old_name).collect();
        let edits = ChangeSet::between_lines(original, &reverted);
        let mut lines = new.split_inclusive('\n');
        let mut text = String::with_capacity(new.len());
        let mut from = 0;
        for edit in edits.edits() {
            let same = original[from..edit.range.start].split_inclusive('\n');
            text.extend(lines.by_ref().take(same.count()));
            from = edit.range.end;
            let was: Vec<&str> = edit.range.of(original).split_inclusive('\n').collect();
            let inserted = edit.insert.split_inclusive('\n').count();
            let is: Vec<&str> = lines.by_ref().take(inserted).collect();
            // The new name may also have stood in the original line.
            let follows = |at: usize| {
                let is = is.get(at).filter(|_| was.len() == is.len());
                is.filter(|is| self.is_renamed(was[at], is))
            };
            text.extend((0..was.len()).map(|at| follows(at).copied().unwrap_or(was[at])));
        }
        text.extend(lines);
        text.into()
    }

    /// Returns whether a test belongs to a symbol that the task deletes and that `with` no longer
    /// contains, uses a name that the task deletes with its tests, or belongs to a file that it deletes. The id of a doctest ends in the
    /// names of its symbol.
    pub fn takes_away(&self, (before, with): (&Snapshot, &Snapshot), id: &str) -> bool {
        let plain = id.split('[').next().unwrap_or(id);
        let parts: Vec<&str> = plain.split(['.', ':', '/']).collect();
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let changed = expected::changed_files(before, with);
        let mut files = changed
            .iter()
            .filter(|file| expected::is_in(id, file.as_str()));
        files.any(|file| {
            let Ok(old) = before.tree(file) else {
                return false;
            };
            let new = with.tree(file).ok();
            if new.is_none() && self.deletes_test_file(file, old.text()) {
                return true;
            }
            let is_of = |path: &SymbolPath| {
                let names: Vec<&str> = path.name.split('.').collect();
                !path.is_module() && parts.ends_with(&names)
            };
            let uses_deleted = |symbol: &Symbol| {
                let source = symbol.span.of(old.text());
                let mut names = self.deleted_with_tests.iter();
                names.any(|name| has_word(source, name))
            };
            let mut symbols = old.symbols().iter().filter(|one| is_of(&one.path));
            symbols.any(|one| self.is_deleted(&one.path, new.as_deref()) || uses_deleted(one))
        })
    }

    /// Returns whether the task deletes a file of tests, or a module with its tests that the text of
    /// the file names.
    fn deletes_test_file(&self, file: &FilePath, text: &str) -> bool {
        let names_module = |deleted: &&str| {
            let name = deleted.rsplit('/').next().unwrap_or(deleted);
            let module = name.strip_suffix(".py");
            module.is_some_and(|module| has_word(text, module))
        };
        self.deleted.contains(&file.as_str())
            || asked::to_remove_with_tests(self.task) && self.deleted.iter().any(names_module)
    }

    /// Returns whether the task deletes a symbol or a symbol around it, and `new` does not contain
    /// that symbol.
    fn is_deleted(&self, path: &SymbolPath, new: Option<&SymbolTree>) -> bool {
        let ends = path.name.match_indices('.').map(|(at, _)| at);
        let mut around = ends.chain([path.name.len()]).map(|end| &path.name[..end]);
        around.any(|name| {
            let is_gone = new.is_none_or(|new| new.find(name).is_none());
            let base = name.rsplit('.').next().unwrap_or(name);
            is_gone && (self.deleted.contains(&base) || asked::to_delete(self.task, base))
        })
    }

    /// Returns the text of a file without the symbols that the task deletes and that the new text
    /// does not contain.
    pub fn without_deleted(&self, file: &FilePath, text: &Arc<str>, new: &Arc<str>) -> Arc<str> {
        let old = SymbolTree::parse(file.clone(), Arc::clone(text));
        let new = SymbolTree::parse(file.clone(), Arc::clone(new));
        let is_gone =
            |one: &&Symbol| !one.path.is_module() && self.is_deleted(&one.path, Some(&new));
        let mut rest = String::with_capacity(text.len());
        let mut from = 0;
        for symbol in old.symbols().iter().filter(is_gone) {
            // A symbol inside a removed one is removed with it.
            if symbol.span.start >= from {
                rest.push_str(&text[from..symbol.span.start]);
                from = symbol.span.end;
            }
        }
        rest.push_str(&text[from..]);
        rest.into()
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Splits a text into identifiers, options, the given other names, and the single characters between
/// them.
fn pieces<'t>(text: &'t str, compound: &[&String]) -> Vec<&'t str> {
    let goes_on = |c: char| is_part(c) || c == '-';
    let is_option = |rest: &str| {
        let name = rest.strip_prefix("--");
        name.is_some_and(|name| name.starts_with(is_part))
    };
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_here = |name: &&&String| {
            let after = rest.strip_prefix(name.as_str());
            let is_whole = after.is_some_and(|after| !after.starts_with(goes_on));
            is_whole && !text[..at].ends_with(goes_on)
        };
        let end = match compound.iter().find(is_here) {
            Some(name) => name.len(),
            None if is_option(rest) && !text[..at].ends_with(goes_on) => {
                rest.find(|c| !goes_on(c)).unwrap_or(rest.len())
            }
            None if is_part(first) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            None => first.len_utf8(),
        };
        pieces.push(&rest[..end]);
        at += end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::{TestOutcome, TestStatus};
    use starling_workspace::Workspace;

    fn renames(pairs: &[(&'static str, &'static str)]) -> Renames<'static> {
        let mut renames = Renames {
            task: "",
            pairs: Vec::new(),
            deleted: Vec::new(),
            deleted_with_tests: Vec::new(),
        };
        for (from, to) in pairs {
            renames.rename(from, to);
        }
        renames
    }

    #[test]
    fn original_text_follows_renamed_strings() {
        let of = |(from, to): (&'static str, &'static str), old: &str, new: &str| {
            let renames = renames(&[(from, to)]);
            renames.carried_out(&old.into(), new).to_string()
        };
        for (pair, old, new) in [
            (
                ("formats", "list"),
                "main([\"formats\"]) in list(x)\n",
                "main([\"list\"]) in list(x)\n",
            ),
            (
                ("--max-gap", "--most"),
                "run('--max-gap', '3')",
                "run('--most', '3')",
            ),
            (
                ("--max-gap", "--gap-most"),
                "args.max_gap == 3",
                "args.gap_most == 3",
            ),
            (
                ("dry-run", "simulate"),
                "x['dry-run'] == 'dry'",
                "x['simulate'] == 'dry'",
            ),
        ] {
            assert_eq!(of(pair, old, new), new, "{new}");
        }
        for (pair, old, new) in [
            (
                ("formats", "list"),
                "main([\"formats\"]) == 0\n",
                "main([\"list\"]) == 1\n",
            ),
            (("--max", "--most"), "run('--max-gap')", "run('--most-gap')"),
            (("--max", "--most"), "run('--max', 1)", "run('--most', 2)"),
            (("dry-run", "simulate"), "x['dry-run']", "x['dry']"),
        ] {
            assert_eq!(of(pair, old, new), old, "{new}");
        }
    }

    #[test]
    fn test_under_its_new_name_is_the_same_test() {
        let renames = renames(&[("pace", "pace_min"), ("Run", "Race")]);
        let ran = |id: &str| TestReport::of_cases(TestOutcome::Passed, &[(id, TestStatus::Passed)]);
        for (old, new) in [
            ("pace.py::pace.pace", "pace.py::pace.pace_min"),
            ("m.py::m.Run.pace", "m.py::m.Race.pace_min"),
            ("m.Run.pace", "m.Race.pace"),
            (
                "test_m.py::Run::test_x[pace-1]",
                "test_m.py::Race::test_x[pace_min-1]",
            ),
        ] {
            assert!(renames.ran_renamed(old, &ran(new)), "{new}");
            let known = [old.to_owned()];
            assert_eq!(renames.old_id(new, known.iter()), Some(&known[0]));
        }
        for (old, other) in [
            ("m.py::m.pace", "m.py::m.pace"),
            ("m.py::m.pace", "n.py::n.pace_min"),
            ("m.py::m.pace", "m.py::m.pace_max"),
            ("m.py::m.pace_min", "m.py::m.pace"),
            ("test_m.py::test_pace", "test_m.py::test_pace_min"),
            ("test_m.py::test_x[1]", "test_m.py::test_x[2]"),
        ] {
            assert!(!renames.ran_renamed(old, &ran(other)), "{other}");
        }
    }

    #[test]
    fn original_text_follows_a_rename_but_no_other_change() {
        let of = |old: &str, new: &str| {
            let renames = renames(&[("TEN_K", "TENK"), ("b", "c"), ("a", "b")]);
            renames.carried_out(&old.into(), new).to_string()
        };
        let old = "def test():\n    assert D.TEN_K.name == \"TEN_K\"\n    assert x(D.TEN_K) == 1\n";
        let renamed = old.replace("TEN_K", "TENK");
        assert_eq!(of(old, &renamed), renamed);
        let weaker = renamed.replace("== 1", "== 2");
        let held = renamed.replace("x(D.TENK)", "x(D.TEN_K)");
        assert_eq!(of(old, &weaker), held);
        let more = renamed.replace("def test", "import os\n\ndef test");
        assert_eq!(of(old, &more), renamed);
        let less = renamed.replace("    assert x(D.TENK) == 1\n", "");
        assert_eq!(of(old, &less), held);
        assert_eq!(of("a(b)", "b(c)"), "b(c)");
        assert_eq!(of("a == c", "c == c"), "a == c");
    }

    #[test]
    fn test_of_a_symbol_that_the_task_deletes_goes_with_it() {
        let old = "def pace():\n    '''\n    >>> pace()\n    '''\n\n\nclass C:\n    def run(self):\n        pass\n";
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("m.py"), old).unwrap();
        let world = Workspace::open(dir.path().canonicalize().unwrap()).unwrap();
        let before = world.snapshot(Default::default());
        let goes = |task: &'static str, new: &str, id: &str| {
            let with = before.with(FilePath::new("m.py"), Some(new.into()));
            let renames = Renames {
                task,
                ..renames(&[])
            };
            renames.takes_away((&before, &with), id)
        };
        let without_pace = &old[old.find("class").unwrap()..];
        let without_c = &old[..old.find("class").unwrap()];
        assert!(goes(
            "Delete pace, nobody uses it",
            without_pace,
            "m.py::m.pace"
        ));
        assert!(goes("Remove the class C", without_c, "m.py::m.C.run"));
        assert!(goes("Remove `C.run`", "class C:\n    pass\n", "m.C.run"));
        for (task, new, id) in [
            ("Rename pace to pace_min", without_pace, "m.py::m.pace"),
            ("Delete C", without_pace, "m.py::m.pace"),
            ("Delete pace", old, "m.py::m.pace"),
            ("Delete pace", without_pace, "m.py::m.C.run"),
            ("Do not delete pace", without_pace, "m.py::m.pace"),
        ] {
            assert!(!goes(task, new, id), "{task}: {id}");
        }
    }

    #[test]
    fn test_of_code_that_the_task_deletes_with_its_tests_goes_with_the_code() {
        let old = "from m import C, D\n\n\ndef test_c():\n    assert C()\n\n\n\
                   def test_d():\n    assert D()\n";
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("test_m.py"), old).unwrap();
        let world = Workspace::open(dir.path().canonicalize().unwrap()).unwrap();
        let before = world.snapshot(Default::default());
        let goes = |names: &[&'static str], id: &str| {
            let with = before.with(FilePath::new("test_m.py"), Some("".into()));
            let renames = Renames {
                deleted_with_tests: names.to_vec(),
                ..renames(&[])
            };
            renames.takes_away((&before, &with), id)
        };
        assert!(goes(&["C"], "test_m.py::test_c"));
        assert!(!goes(&["C"], "test_m.py::test_d"));
        assert!(!goes(&[], "test_m.py::test_c"));
    }
}
