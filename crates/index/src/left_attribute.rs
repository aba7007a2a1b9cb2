//! Finds the code that still uses the old name of a renamed attribute.

use super::dangling::is_tried;
use super::facts::is_test;
use super::in_strings;
use super::resolve::{AttributeHolders, Body, Dangling, Holder, Resolver, Source};
use super::search::text_of;
use super::unheld::{WorkspaceState, is_held_by_text};
use starling_syntax::{FilePath, Language, SymbolPath};

/// Calls that take the name of an attribute.
const BY_NAME: [&str; 5] = [
    "attrgetter(",
    "delattr(",
    "getattr(",
    "hasattr(",
    "setattr(",
];

/// The classes whose attribute is renamed.
#[derive(Debug, Clone, Copy)]
pub enum AttributeOf<'c> {
    /// These classes, and the classes that share the attribute with them.
    Classes(&'c [SymbolPath]),
    /// The classes that share an attribute of this name, if they are related by inheritance. If
    /// there are several unrelated groups, the same classes as for [`Self::Renamed`].
    Only,
    /// The classes in which the new name already replaces the old one.
    Renamed,
}

/// Returns the locations in `after` that still use the attribute `old` of the classes that `of`
/// selects.
pub(super) fn left_attribute(
    before: WorkspaceState<'_>,
    after: WorkspaceState<'_>,
    (old, new): (&str, &str),
    of: AttributeOf<'_>,
) -> Vec<Dangling> {
    let groups = Resolver::new(before.code).sharing(old);
    let count = groups.len();
    let meant = meant(before, after, groups, (old, new), of);
    if meant.is_empty() {
        return Vec::new();
    }
    let are_all = meant.len() == count;
    let mut later = Resolver::new(after.code);
    let now = |(file, class): Body| Some((after.code.find(before.code.path(file))?, class));
    let classes: Vec<Body> = meant.into_iter().flatten().filter_map(now).collect();
    let by_name = by_name(after, old, &classes);
    let is_other = |string: &in_strings::InString| {
        let place = (&string.file, string.line);
        !string.is_script && !by_name.iter().any(|one| (&one.file, one.line) == place)
    };
    let is_alone = are_all
        && !later.others_have(old, &classes)
        && !is_held_by_text(after, old)
        && !in_strings::in_strings(after.texts, old)
            .iter()
            .any(is_other);
    let sharing = AttributeHolders { classes, is_alone };
    let may_guess = |resolver: &mut Resolver<'_, _>, file| {
        let path = after.code.path(file);
        let text = text_of(after.texts, path).unwrap_or_default();
        let makes_up = is_test(path) && text.to_lowercase().contains("mock");
        !makes_up && !resolver.is_all_foreign(file)
    };
    let mut found = later.attribute_places(old, &sharing, &may_guess);
    found.retain(|one| !is_tried(one, after.texts));
    if are_all {
        found.extend(by_name);
    }
    found.sort();
    found.dedup_by(|a, b| (&a.file, a.line) == (&b.file, b.line));
    found
}

/// Selects the groups of related classes whose attribute is renamed.
fn meant(
    before: WorkspaceState<'_>,
    after: WorkspaceState<'_>,
    groups: Vec<Vec<Body>>,
    (old, new): (&str, &str),
    of: AttributeOf<'_>,
) -> Vec<Vec<Body>> {
    let (mut earlier, mut later) = (Resolver::new(before.code), Resolver::new(after.code));
    let named = match of {
        AttributeOf::Classes(classes) => classes,
        AttributeOf::Only if groups.len() == 1 => return groups,
        AttributeOf::Only | AttributeOf::Renamed => &[],
    };
    let named: Vec<Body> = named
        .iter()
        .filter_map(|class| Some((before.code.find(&class.file)?, class.name.clone())))
        .collect();
    let is_named = |earlier: &mut Resolver<'_, _>, group: &[Body]| {
        group.iter().any(|one| {
            let mut named = named.iter();
            named.any(|class| one == class || earlier.belong_together(one, class))
        })
    };
    let by_class: Vec<bool> = groups
        .iter()
        .map(|group| is_named(&mut earlier, group))
        .collect();
    let has_named = by_class.contains(&true);
    let mut binds =
        |world: WorkspaceState<'_>, is_later: bool, (file, class): &Body, name: &str| {
            let path = before.code.path(*file);
            let resolver = if is_later { &mut later } else { &mut earlier };
            let bound = world.code.find(path).map(|file| resolver.bound_names(file));
            bound.is_some_and(|bound| bound.contains(&(class.clone(), name.to_owned())))
        };
    let mut is_renamed = |group: &[Body]| {
        let mut lost = false;
        let mut gained = false;
        for one in group {
            lost |= binds(before, false, one, old) && !binds(after, true, one, old);
            gained |= !binds(before, false, one, new) && binds(after, true, one, new);
        }
        lost && gained
    };
    let chosen = groups.into_iter().zip(by_class);
    let chosen = chosen.filter(|(group, is_named)| match has_named {
        true => *is_named,
        false => is_renamed(group),
    });
    chosen.map(|(group, _)| group).collect()
}

/// Returns the locations where code looks up the attribute by a string that contains its name.
fn by_name(world: WorkspaceState<'_>, name: &str, classes: &[Body]) -> Vec<Dangling> {
    let bases = classes
        .iter()
        .map(|(_, class)| class.rsplit('.').next().unwrap_or(class));
    let items: Vec<String> = bases.map(|class| format!("{class}[")).collect();
    let strings = in_strings::in_strings(world.texts, name).into_iter();
    let strings = strings.filter(|one| Language::of(&one.file) == Language::Python);
    let takes_it = |file: &FilePath, line: u32| {
        let text = text_of(world.texts, file).unwrap_or_default();
        let line = text.lines().nth(line as usize - 1).unwrap_or_default();
        let quoted = [format!("\"{name}\""), format!("'{name}'")];
        quoted.iter().any(|quoted| {
            let item = |class: &String| line.contains(&format!("{class}{quoted}"));
            let is_called = BY_NAME.iter().any(|call| line.contains(call));
            line.contains(quoted.as_str()) && (is_called || items.iter().any(item))
        })
    };
    let places = strings.filter(|one| takes_it(&one.file, one.line));
    let place = |one: in_strings::InString| Dangling {
        symbol: SymbolPath::module(one.file.clone()),
        file: one.file,
        line: one.line,
        offset: 0,
        name: name.to_owned(),
        of: Holder::Unknown,
    };
    places.map(place).collect()
}

/// Returns whether code outside tests uses an identifier only for attributes, and never for a
/// variable or a parameter.
pub(super) fn is_attribute_only(world: WorkspaceState<'_>, name: &str) -> bool {
    let files = world.code.mentioning(name).into_iter();
    let mut files = files.filter(|file| !is_test(world.code.path(*file)));
    files.all(|file| {
        let names = Source::names(world.code, file).unwrap_or_default();
        names.find(name).is_none_or(|id| names.is_member_only(id))
    })
}

/// Returns the number of modules, classes and functions that bind a name. Imports and tests do not
/// count.
pub(super) fn meanings(world: WorkspaceState<'_>, name: &str) -> usize {
    let files = world.code.mentioning(name).into_iter();
    let files = files.filter(|file| {
        let path = world.code.path(*file);
        !is_test(path) && !path.as_str().ends_with(".pyi")
    });
    let in_file = |file| {
        let names = Source::names(world.code, file).unwrap_or_default();
        names.find(name).map_or(0, |id| names.meanings(id))
    };
    files.map(in_file).sum()
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use super::*;
    use crate::Index;

    const UNITS: &str = "class Unit:\n    reach = 1\n\n    def far(self):\n        return self.reach\n\n\n\
                         class Mage(Unit):\n    reach = 3\n\n\nclass Archer(Unit):\n    reach = 4\n";

    /// Returns the locations that still use the attribute `old` after `changes` are applied to
    /// `files`, as `file:line`.
    fn left(
        (old, new): (&str, &str),
        files: &[(&str, &str)],
        changes: &[(&str, &str)],
        of: AttributeOf<'_>,
    ) -> Vec<String> {
        let is_kept = |(name, _): &&(&str, &str)| !changes.iter().any(|(other, _)| other == name);
        let mut after: Vec<(&str, &str)> = files.iter().filter(is_kept).copied().collect();
        after.extend(changes);
        let (before, after) = (
            Index::new(snapshot_of(files)),
            Index::new(snapshot_of(&after)),
        );
        let found = after.left_attribute(&before, old, new, of);
        let words = found.iter().map(|one| format!("{}:{}", one.file, one.line));
        words.collect()
    }

    #[test]
    fn related_class_that_keeps_the_old_attribute_name_is_reported() {
        let half = UNITS
            .replacen("reach", "span", 3)
            .replace("reach = 1", "span = 1");
        assert!(half.contains("reach = 4"));
        for of in [AttributeOf::Renamed, AttributeOf::Only] {
            let found = left(
                ("reach", "span"),
                &[("u.py", UNITS)],
                &[("u.py", &half)],
                of,
            );
            assert_eq!(found, ["u.py:13"]);
            let all = UNITS.replace("reach", "span");
            let found = left(("reach", "span"), &[("u.py", UNITS)], &[("u.py", &all)], of);
            assert_eq!(found, [""; 0]);
        }
        // Two classes are related if they inherit from a base class whose code reads the attribute.
        let base = UNITS.replace("    reach = 1\n\n", "");
        let half = base.replacen("reach", "span", 2);
        let files = [("u.py", &*base)];
        let found = left(
            ("reach", "span"),
            &files,
            &[("u.py", &half)],
            AttributeOf::Renamed,
        );
        assert_eq!(found, ["u.py:11"]);
    }

    #[test]
    fn assignment_of_the_old_attribute_to_a_possible_instance_is_reported() {
        let battle = "class Battle:\n    most = 1\n\n\ndef load():\n    return Battle()\n";
        let new = battle.replace("most", "limit");
        let play = "from battle import load\n\n\ndef play(b):\n    b.most = 2\n    c = load()\n    c.most = 3\n    \
                    setattr(b, 'most', 4)\n";
        let of = AttributeOf::Renamed;
        let found = |more: (&str, &str)| {
            let files = [("battle.py", battle), ("play.py", play), more];
            left(("most", "limit"), &files, &[("battle.py", &new)], of)
        };
        assert_eq!(found(("a.py", "")), ["play.py:5", "play.py:7", "play.py:8"]);
        // Another class has an attribute of the same name, so only objects that are known to be a
        // `Battle` are reported.
        let other = "class Other:\n    most = 1\n\n\nOther().most = 2\n";
        assert_eq!(found(("a.py", other)), ["play.py:7"]);
        let by_name = "def f(battle):\n    battle.most = 1\n";
        let files = [("battle.py", battle), ("a.py", other), ("f.py", by_name)];
        let found = left(("most", "limit"), &files, &[("battle.py", &new)], of);
        assert_eq!(found, ["f.py:2"]);
    }

    #[test]
    fn given_class_determines_which_classes_are_searched_for_the_old_attribute() {
        let text = "class A:\n    size = 1\n\n\nclass B:\n    size = 2\n\n\nclass C(B):\n    pass\n\n\nC.size\n";
        let files = [("a.py", text)];
        let renamed = text.replacen("size", "bulk", 1);
        let found = |of| left(("size", "bulk"), &files, &[("a.py", &renamed)], of);
        assert_eq!(found(AttributeOf::Renamed), [""; 0]);
        let b = [SymbolPath::new(FilePath::new("a.py"), "B")];
        assert_eq!(found(AttributeOf::Classes(&b)), ["a.py:6", "a.py:13"]);
    }

    #[test]
    fn old_names_of_data_class_fields_and_enum_members_are_reported() {
        let text = "from dataclasses import dataclass\nfrom enum import Enum\n\n\n@dataclass\nclass P:\n    wide: int\n\n\n\
                    class Phase(Enum):\n    STRIKE = 1\n";
        let user = "from p import P, Phase\n\nP(wide=1)\nprint(Phase.STRIKE, Phase['STRIKE'])\nQ(wide=2)\n";
        let files = [("p.py", text), ("user.py", user)];
        let of = AttributeOf::Renamed;
        let renamed = text.replace("wide", "broad");
        let found = left(("wide", "broad"), &files, &[("p.py", &renamed)], of);
        assert_eq!(found, ["user.py:3"]);
        let renamed = text.replace("STRIKE", "ATTACK");
        let found = left(("STRIKE", "ATTACK"), &files, &[("p.py", &renamed)], of);
        assert_eq!(found, ["user.py:4"]);
    }
}
