//! Finds uses of undefined attributes on objects of unknown type, and names that a change renamed
//! in only one of several related definitions. Code, strings, and files in other languages can
//! define an attribute.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::code::Code;
use super::dangling::{is_tried, new_lines};
use super::facts::is_test;
use super::in_strings;
use super::names::{Names, Occurrence};
use super::resolve::{Body, Dangling, Holder, Resolver, Source};
use super::search::text_of;
use starling_syntax::{FilePath, Language, SymbolPath, SymbolTree};
use starling_workspace::Snapshot;

/// Maximum number of names of one change that are searched for in all texts.
const NAMES_MOST: usize = 20;
/// Words in code that creates attributes at run time.
const MAKES: [&str; 4] = ["__dict__", "__getattr__", "__getattribute__", "setattr"];
/// Extensions of files that contain prose. A name in prose does not define an attribute.
const PROSE: [&str; 6] = ["adoc", "html", "markdown", "md", "rst", "txt"];

/// One state of the workspace: its indexed code and its texts.
#[derive(Clone, Copy)]
pub(super) struct WorkspaceState<'w> {
    pub code: &'w Code,
    pub texts: &'w Snapshot,
}

/// An attribute that a change uses and that is not defined anywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewAttribute {
    pub at: Dangling,
    /// Whether the attribute replaces an attribute that only classes of the workspace have. If so,
    /// the object is an instance of one of those classes, and the class lacks the new attribute.
    pub is_of_own: bool,
}

/// Returns the reads of an attribute. Returns nothing if an object may have an attribute of this
/// name.
pub(super) fn left_uses(world: WorkspaceState<'_>, name: &str) -> Vec<Dangling> {
    match is_held(world, name) {
        true => Vec::new(),
        false => uses(world, name),
    }
}

/// Returns the reads of attributes whose last definition was removed by a change.
pub(super) fn lost_attributes(
    before: WorkspaceState<'_>,
    after: WorkspaceState<'_>,
    changed: &[FilePath],
) -> Vec<Dangling> {
    let (mut earlier, mut later) = (Resolver::new(before.code), Resolver::new(after.code));
    let mut gone: BTreeSet<String> = BTreeSet::new();
    for file in changed {
        let names = |found: Vec<Body>| found.into_iter().map(|(_, name)| name);
        let was = before
            .code
            .find(file)
            .map(|file| earlier.own_attributes(file));
        let is = after.code.find(file).map(|file| later.bound_names(file));
        let is: FxHashSet<String> = is.into_iter().flatten().map(|(_, name)| name).collect();
        gone.extend(names(was.unwrap_or_default()).filter(|name| !is.contains(name)));
    }
    if gone.is_empty() || makes_attributes(after.code) {
        return Vec::new();
    }
    let gone = gone.iter().take(NAMES_MOST);
    let mut uses: Vec<Dangling> = gone.flat_map(|name| left_uses(after, name)).collect();
    // If the file imports installed packages, the object may be of a class of a package.
    uses.retain(|one| {
        let file = after.code.find(&one.file);
        file.is_some_and(|file| !later.imports_packages(file))
    });
    uses
}

/// Returns the attributes on objects of unknown type that a change uses and that are not defined
/// anywhere. An attribute that was already used before the change counts as defined outside of the
/// workspace.
pub(super) fn new_attributes(
    before: WorkspaceState<'_>,
    after: WorkspaceState<'_>,
    changed: &[FilePath],
) -> Vec<NewAttribute> {
    let mut later = Resolver::new(after.code);
    let mut found = Vec::new();
    for path in changed.iter().filter(|path| !is_test(path)) {
        let Some(file) = after.code.find(path) else {
            continue;
        };
        let text = after.texts.read(path).unwrap_or_else(|_| "".into());
        if text.contains("hasattr(") {
            continue;
        }
        let lines = new_lines(before.texts, after.texts, path);
        let is_new = |names: &Names, one: &Occurrence| lines.contains(&names.line(one.at));
        let written = later.attributes_of_unknown(file, &is_new).into_iter();
        found.extend(written.filter(|one| !is_tried(one, after.texts)));
    }
    let names: BTreeSet<&String> = found.iter().map(|one| &one.name).collect();
    let is_unheld = |name: &&&String| !is_used(before.code, name) && !is_held(after, name);
    let names = names.iter().filter(is_unheld).take(NAMES_MOST);
    let names: BTreeSet<String> = names.map(|name| (*name).clone()).collect();
    found.retain(|one| names.contains(&one.name));
    let found = found.into_iter().map(|at| NewAttribute {
        is_of_own: replaces_own(before, after, &at),
        at,
    });
    found.collect()
}

/// Returns the remaining definitions of `old` after an incomplete rename: a related definition, in
/// a base class or subclass or in the stub of a module, was renamed to `new`.
pub(super) fn half_renamed(before: &Code, after: &Code, old: &str, new: &str) -> Vec<Dangling> {
    let (mut earlier, mut later) = (Resolver::new(before), Resolver::new(after));
    let left = later.bodies_with(old);
    if left.is_empty() {
        return Vec::new();
    }
    let mut renamed = later.bodies_with(new);
    renamed.retain(|body| {
        let had_old = before.find(after.path(body.0)).is_some_and(|file| {
            let bound = earlier.bound_names(file);
            bound.contains(&(body.1.clone(), old.to_owned()))
        });
        had_old && !left.contains(body)
    });
    let is_half = |body: &&Body| {
        let mut renamed = renamed.iter();
        renamed.any(|one| later.belong_together(one, body))
    };
    let half: Vec<Body> = left.iter().filter(is_half).cloned().collect();
    let place = |body: Body| Dangling {
        line: later.line_of_binding(&body, old).unwrap_or(1),
        offset: 0,
        symbol: SymbolPath::new(after.path(body.0).clone(), body.1),
        name: old.to_owned(),
        file: after.path(body.0).clone(),
        of: Holder::Unknown,
    };
    half.into_iter().map(place).collect()
}

fn uses(world: WorkspaceState<'_>, name: &str) -> Vec<Dangling> {
    let mut resolver = Resolver::new(world.code);
    let is_it = |names: &Names, one: &Occurrence| names.name(one.name) == name;
    let mut found = Vec::new();
    for file in world.code.mentioning(name) {
        let text = text_of(world.texts, world.code.path(file)).unwrap_or_default();
        let makes_up = is_test(world.code.path(file)) && text.to_lowercase().contains("mock");
        if makes_up || resolver.is_all_foreign(file) {
            continue;
        }
        let of_file = resolver.attributes_of_unknown(file, &is_it).into_iter();
        found.extend(of_file.filter(|one| !is_tried(one, world.texts)));
    }
    found
}

/// Returns whether any object may have an attribute of this name: because of a class, an
/// assignment, a keyword argument, a field named in a string, a command-line option, or a table or
/// message in a file of another language.
fn is_held(world: WorkspaceState<'_>, name: &str) -> bool {
    Resolver::new(world.code).is_attribute_of_some(name)
        || is_held_by_text(world, name)
        || in_strings::in_strings(world.texts, name)
            .iter()
            .any(|one| !one.is_script)
}

/// Returns whether a field of a tuple, a command-line option, or a table or message in a file of
/// another language has this name.
pub(super) fn is_held_by_text(world: WorkspaceState<'_>, name: &str) -> bool {
    let option = format!("--{}", name.replace('_', "-"));
    let holds = |file: &FilePath| {
        let text = text_of(world.texts, file).unwrap_or_default();
        match Language::of(file) {
            Language::Python => text.contains(&option),
            Language::Plain => !is_prose(file) && has_word(&text, name),
        }
    };
    in_strings::is_field(world.texts, name) || world.texts.files().iter().any(holds)
}

fn is_prose(file: &FilePath) -> bool {
    let ending = file.name().rsplit_once('.').map(|(_, ending)| ending);
    ending.is_none_or(|ending| PROSE.contains(&ending))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let after = &text[at + word.len()..];
        !after.starts_with(is_part) && !text[..at].ends_with(is_part)
    })
}

/// Returns whether code outside of tests uses an attribute of this name.
fn is_used(code: &Code, name: &str) -> bool {
    code.mentioning(name).into_iter().any(|file| {
        let names = Source::names(code, file).filter(|_| !is_test(code.path(file)));
        names.is_some_and(|names| {
            let is_use =
                |one: &Occurrence| one.receiver().is_some() && names.name(one.name) == name;
            names.occurrences().iter().any(is_use)
        })
    })
}

/// Returns whether the change of a symbol only replaces another attribute with this one. The
/// replaced attribute must be one that only classes of the workspace have, and none of these
/// classes may have the new attribute.
fn replaces_own(before: WorkspaceState<'_>, after: WorkspaceState<'_>, at: &Dangling) -> bool {
    let tree = |world: WorkspaceState<'_>| {
        let text = world.texts.read(&at.file).ok()?;
        let tree = SymbolTree::parse(at.file.clone(), text);
        let span = tree.find(&at.symbol.name)?.span;
        Some(span.of(tree.text()).to_owned())
    };
    let (Some(old), Some(new)) = (tree(before), tree(after)) else {
        return false;
    };
    let Some(file) = before.code.find(&at.file) else {
        return false;
    };
    let names = Source::names(before.code, file).unwrap_or_default();
    let attributes = names.occurrences().iter();
    let attributes = attributes.filter(|one| one.receiver().is_some());
    let attributes: BTreeSet<&str> = attributes.map(|one| names.name(one.name)).collect();
    let (mut earlier, mut later) = (Resolver::new(before.code), Resolver::new(after.code));
    let mut attributes = attributes.into_iter();
    attributes.any(|name| {
        let is_in_place = has_word(&old, name) && with_word(&new, &at.name, name) == old;
        is_in_place
            && only_own_have(
                &mut earlier,
                &mut later,
                (before.code, after.code),
                (name, &at.name),
            )
    })
}

fn only_own_have(
    earlier: &mut Resolver<'_, Code>,
    later: &mut Resolver<'_, Code>,
    (before, after): (&Code, &Code),
    (old, new): (&str, &str),
) -> bool {
    let classes = earlier.classes_with(old);
    !classes.is_empty()
        && classes.iter().all(|(file, class)| {
            let now = after.find(before.path(*file));
            let lacks_now = now.is_none_or(|now| later.lacks_attribute(&(now, class.clone()), new));
            earlier.lacks_attribute(&(*file, class.clone()), new) && lacks_now
        })
}

/// Returns a text in which each whole word `from` is replaced by `to`.
fn with_word(text: &str, from: &str, to: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut made = String::new();
    let mut rest = 0;
    for (at, _) in text.match_indices(from) {
        let end = at + from.len();
        if !text[..at].ends_with(is_part) && !text[end..].starts_with(is_part) {
            made.push_str(&text[rest..at]);
            made.push_str(to);
            rest = end;
        }
    }
    made.push_str(&text[rest..]);
    made
}

/// Returns whether code outside of tests creates attributes at run time.
fn makes_attributes(code: &Code) -> bool {
    MAKES.iter().any(|word| {
        code.mentioning(word).into_iter().any(|file| {
            let names = Source::names(code, file).filter(|_| !is_test(code.path(file)));
            names.is_some_and(|names| names.find(word).is_some())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use crate::Index;
    use starling_syntax::FilePath;

    const NOTE: &str = "class Note:\n    def short(self):\n        return 1\n\n    def strip(self):\n        return 2\n";

    /// Returns the lost attributes and the new attributes of a change, as `file:line name`.
    fn found(before: &[(&str, &str)], changes: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let is_kept = |(name, _): &&(&str, &str)| !changes.iter().any(|(other, _)| other == name);
        let mut after: Vec<(&str, &str)> = before.iter().filter(is_kept).copied().collect();
        after.extend(changes);
        let files = changes.iter().map(|(name, _)| FilePath::new(*name));
        let files: Vec<FilePath> = files.collect();
        let old = Index::new(snapshot_of(before));
        let new = Index::new(snapshot_of(&after));
        let lost = new.lost_attributes(&old, &files).into_iter();
        let lost = lost.map(|one| format!("{}:{} {}", one.file, one.line, one.name));
        let introduced = new.new_attributes(&old, &files).into_iter();
        let introduced = introduced.map(|one| {
            let own = if one.is_of_own { " for an own" } else { "" };
            format!("{}:{} {}{own}", one.at.file, one.at.line, one.at.name)
        });
        (lost.collect(), introduced.collect())
    }

    #[test]
    fn use_of_an_attribute_whose_last_definition_is_removed_is_reported() {
        let user = "def f(note):\n    return note.short(), note.strip()\n";
        let gone = NOTE
            .replace("short", "brief")
            .replace("def strip", "def peel");
        let lost = |more: &[(&str, &str)]| {
            let files = [&[("note.py", NOTE), ("user.py", user)], more].concat();
            found(&files, &[("note.py", &gone)]).0
        };
        assert_eq!(lost(&[]), ["user.py:2 short"]);
        for other in [
            ("other.py", "class Other:\n    short = 1\n"),
            ("other.py", "def f(x):\n    x.short = 1\n"),
            ("other.py", "X = dict(short=1)\n"),
            ("other.py", "X = getattr(x, 'short')\n"),
            ("other.py", "parser.add_argument('--short')\n"),
            ("other.sql", "CREATE TABLE notes (short TEXT);\n"),
        ] {
            assert_eq!(lost(&[other]), [""; 0], "{other:?}");
        }
        let prose = ("README.md", "A note is short.\n");
        assert_eq!(lost(&[prose]), ["user.py:2 short"]);
        for other in [
            "class Other:\n    def __getattr__(self, name):\n        return 1\n",
            "def fill(x, name):\n    setattr(x, name, 1)\n",
        ] {
            assert_eq!(lost(&[("other.py", other)]), [""; 0], "{other}");
        }
        let with_package = format!("import httpx\n\nfrom note import Note\n\n\n{user}");
        let files = [("note.py", NOTE), ("user.py", &*with_package)];
        assert_eq!(found(&files, &[("note.py", &gone)]).0, [""; 0]);
        let of_outside = NOTE.replace("Note:", "Note(Thread):");
        let files = [("note.py", &*of_outside), ("user.py", user)];
        let changed = of_outside.replace("short", "brief");
        assert_eq!(found(&files, &[("note.py", &changed)]).0, [""; 0]);
    }

    #[test]
    fn new_use_of_an_undefined_attribute_is_reported() {
        let user = "def f(note):\n    return note.short()\n";
        let used = "def g(answer):\n    return answer.raise_for_status()\n";
        let files = [("note.py", NOTE), ("user.py", user), ("used.py", used)];
        let written = |text: &str| found(&files, &[("user.py", text)]).1;
        let instead = user.replace("short", "brief");
        assert_eq!(written(&instead), ["user.py:2 brief for an own"]);
        let beside = user.replace("note.short()", "note.short() + note.brief()");
        assert_eq!(written(&beside), ["user.py:2 brief"]);
        for text in [
            user.replace("short", "raise_for_status"),
            user.replace("short", "lower"),
            format!("import os\n\n\n{}", user.replace("note.short", "os.brief")),
            format!("{user}    if hasattr(note, 'brief'):\n        note.brief()\n"),
            "def f(note):\n    try:\n        note.brief()\n    except AttributeError:\n        pass\n"
                .to_owned(),
        ] {
            assert_eq!(written(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn new_attribute_on_an_object_that_may_be_from_outside_the_workspace_is_not_marked_as_own() {
        let user = "def f(note):\n    data = note\n    return data.short()\n";
        let instead = user.replace("short", "brief");
        let fetched = instead.replace("= note", "= note.strip()");
        let written = |note: &str, after: &str, user_after: &str| {
            let files = [("note.py", note), ("user.py", user)];
            found(&files, &[("note.py", after), ("user.py", user_after)]).1
        };
        let own = ["user.py:3 brief for an own"];
        assert_eq!(written(NOTE, NOTE, &instead), own);
        let unsure = ["user.py:3 brief"];
        assert_eq!(written(NOTE, NOTE, &fetched), unsure);
        let model = NOTE.replace("Note:", "Note(BaseModel):");
        assert_eq!(written(&model, &model, &instead), unsure);
        assert_eq!(written(NOTE, &model, &instead), unsure);
        let made = format!("{NOTE}\n    def __getattr__(self, name):\n        return name\n");
        assert_eq!(written(&made, &made, &instead), unsure);
    }

    #[test]
    fn rename_in_only_one_related_class_is_reported() {
        let text = "class A:\n    def f(self):\n        return 1\n\n\nclass B(A):\n    def f(self):\n        return 2\n\n\n\
                    class C:\n    def f(self):\n        return 3\n";
        let half = |new: &str| {
            let old = Index::new(snapshot_of(&[("a.py", text), ("a.pyi", "")]));
            let new = Index::new(snapshot_of(&[("a.py", new), ("a.pyi", "")]));
            let left = new.half_renamed(&old, "f", "g").into_iter();
            left.map(|one| one.symbol.name).collect::<Vec<_>>()
        };
        let only = |at: usize| {
            let mut parts: Vec<&str> = text.split("def f").collect();
            let rest = parts.split_off(at);
            format!("{}def g{}", parts.join("def f"), rest.join("def f"))
        };
        assert_eq!(half(&only(1)), ["B"]);
        assert_eq!(half(&only(2)), ["A"]);
        assert_eq!(half(&only(3)), [""; 0]);
        assert_eq!(half(&text.replace("def f", "def g")), [""; 0]);
    }
}
