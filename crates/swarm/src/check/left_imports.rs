//! Finds code that still takes a definition from its old module after a run moved it, which works because
//! the old module imports the definition itself.

use std::collections::BTreeSet;

use crate::check::moved::{MovedDefinition, Moves, asks_to_move};
use crate::lookup::Lookup;
use crate::task::stated::KEEPS;
use crate::task::whole_word::is_word_part;
use starling_index::{Certainty, Usage};
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::Snapshot;

/// Maximum number of uses of a definition or a module that are considered.
const USES_MOST: usize = 1000;
/// Words that ask to keep the old import, in addition to [`KEEPS`].
const KEEPS_IMPORT: [&str; 5] = ["reexport", "reexported", "reexports", "shims", "wrapper"];
/// Words for the code that imports a definition.
const IMPORTS: [&str; 9] = [
    "caller",
    "callers",
    "import",
    "importable",
    "imported",
    "importer",
    "importers",
    "importing",
    "imports",
];
/// Words that say that something does not change.
const STAYS: [&str; 15] = [
    "continue",
    "continues",
    "keep",
    "keeping",
    "keeps",
    "leave",
    "remain",
    "remains",
    "stay",
    "stays",
    "still",
    "unchanged",
    "untouched",
    "work",
    "works",
];
const NOT: [&str; 8] = [
    "cannot", "don't", "never", "no", "nobody", "not", "nothing", "without",
];
/// Words for a change that a task may forbid.
const CHANGES: [&str; 10] = [
    "adapt", "change", "changing", "edit", "editing", "modify", "touch", "touching", "update",
    "updating",
];

/// Describes the code that still takes a definition from its old module although the task asks to move it,
/// in the form `` cli.py:3 still imports `f` from importer.py ``. Returns nothing if the task asks to keep
/// the old imports.
pub(crate) fn left_imports(
    task: &str,
    (without, with): (&Snapshot, &Snapshot),
    lookup: &Lookup,
) -> Vec<String> {
    if !asks_to_move(task) || keeps_old_imports(task) {
        return Vec::new();
    }
    let moves = Moves::named(task, without, with);
    let mut places: BTreeSet<(FilePath, u32, String)> = BTreeSet::new();
    for one in moves.all() {
        let imports = importing(one, with, lookup).into_iter();
        let what = format!("imports `{}` from {}", one.name, one.from);
        places.extend(imports.map(|(file, line)| (file, line, what.clone())));
        let reading = reading(one, with, lookup).into_iter();
        let what = format!("uses `{}` of {}", one.name, one.from);
        places.extend(reading.map(|(file, line)| (file, line, what.clone())));
    }
    let told = places.into_iter();
    told.map(|(file, line, what)| format!("{file}:{line} still {what}"))
        .collect()
}

/// Returns the statements that import a moved definition from its old module.
fn importing(moved: &MovedDefinition, with: &Snapshot, lookup: &Lookup) -> Vec<(FilePath, u32)> {
    let module = SymbolPath::module(moved.from.clone()).to_string();
    let of_module = lookup.index().references(&module, USES_MOST).found;
    let imports_name = |one: &Usage| {
        let names = statement_at(with, one);
        one.is_import && names.is_some_and(|names| takes(&names, &moved.name))
    };
    elsewhere(moved, of_module, imports_name)
}

/// Returns the lines that use a moved definition as an attribute of its old module.
fn reading(moved: &MovedDefinition, with: &Snapshot, lookup: &Lookup) -> Vec<(FilePath, u32)> {
    let symbol = SymbolPath::new(moved.to.clone(), moved.name.clone()).to_string();
    if !lookup.index().is_defined(&moved.name) {
        return Vec::new();
    }
    let of_symbol = lookup.index().references(&symbol, USES_MOST).found;
    let module = moved.from.as_str().trim_end_matches(".py");
    let module = module.trim_end_matches("/__init__");
    let attribute = format!("{}.", module.rsplit('/').next().unwrap_or(module));
    let reads = |one: &Usage| {
        let text = with.read(&one.file).ok();
        let line = text.as_ref().and_then(|text| {
            let at = (one.line as usize).checked_sub(1)?;
            text.lines().nth(at)?.get(..one.column as usize)
        });
        let before = line.and_then(|line| line.strip_suffix(&attribute));
        !one.is_import
            && one.certainty == Certainty::Certain
            && before.is_some_and(|before| !before.ends_with(is_word_part))
    };
    elsewhere(moved, of_symbol, reads)
}

/// Returns the places of the uses that count, outside the two modules of a move.
fn elsewhere(
    moved: &MovedDefinition,
    uses: Vec<Usage>,
    counts: impl Fn(&Usage) -> bool,
) -> Vec<(FilePath, u32)> {
    let is_elsewhere = |one: &Usage| one.file != moved.from && one.file != moved.to;
    let uses = uses.into_iter();
    uses.filter(|one| is_elsewhere(one) && counts(one))
        .map(|one| (one.file, one.line))
        .collect()
}

/// Returns the names that a `from … import …` statement takes, as text, without comments.
fn statement_at(with: &Snapshot, one: &Usage) -> Option<String> {
    let text = with.read(&one.file).ok()?;
    let first = (one.line as usize).checked_sub(1)?;
    let mut statement = String::new();
    for line in text.lines().skip(first) {
        let line = line.split('#').next().unwrap_or(line).trim_end();
        statement.push_str(line.trim_end_matches('\\'));
        statement.push(' ');
        let is_open = statement.contains('(') && !statement.contains(')');
        if !is_open && !line.ends_with('\\') {
            break;
        }
    }
    let (from, names) = statement.split_once(" import ")?;
    from.trim_start()
        .starts_with("from ")
        .then(|| names.to_owned())
}

/// Returns whether the names after `import` contain a name, be it under another one.
fn takes(names: &str, name: &str) -> bool {
    let names = names.split([',', '(', ')', ';']);
    names
        .filter_map(|one| one.split_whitespace().next())
        .any(|one| one == name)
}

/// Returns whether a task asks that code can still import a definition from its old module.
fn keeps_old_imports(task: &str) -> bool {
    let lower = task.to_lowercase().replace("re-export", "reexport");
    let mut clauses = lower
        .split([',', ';', ':', '\n'])
        .flat_map(|part| part.split(". "));
    clauses.any(|clause| {
        // The name of a file or a module is no word of the sentence.
        let words = clause.split_whitespace();
        let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let words: Vec<&str> = words.filter(|word| !word.contains(['.', '/'])).collect();
        let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
        let stays = match has(&NOT) {
            true => has(&CHANGES),
            false => has(&STAYS),
        };
        let is_kept = !has(&NOT) && (has(&KEEPS) || has(&KEEPS_IMPORT));
        is_kept || stays && has(&IMPORTS)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use starling_index::Index;
    use starling_workspace::Workspace;

    const AGE: &str = "def age(x):\n    return x + 1\n";

    /// Returns the imports that a move of `age` from lab/decay.py to lab/ages.py leaves in lab/cli.py.
    fn left(task: &str, cli: &str, decay: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("lab")).unwrap();
        let files = [
            ("lab/__init__.py", ""),
            ("lab/decay.py", AGE),
            ("lab/cli.py", "from .decay import age\n"),
        ];
        for (file, text) in files {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let root = dir.path().canonicalize().unwrap();
        let without = Workspace::open(root).unwrap().snapshot(Default::default());
        let mut with = without.clone();
        for (file, text) in [
            ("lab/decay.py", decay),
            ("lab/ages.py", AGE),
            ("lab/cli.py", cli),
        ] {
            with = with.with(FilePath::new(file), Some(text.into()));
        }
        let lookup = Lookup::new(with.clone(), Arc::new(Index::new(with.clone())));
        left_imports(task, (&without, &with), &lookup)
    }

    #[test]
    fn import_from_the_old_module_of_a_moved_definition_is_reported() {
        let task = "Move age from decay.py to lab/ages.py; all importers follow.";
        let decay = "from .ages import age\n\n\ndef half(x):\n    return age(x)\n";
        for (cli, line) in [
            ("from .decay import age\n", 1),
            (
                "import os\nfrom lab.decay import (\n    half,  # of it\n    age as a,\n)\n",
                2,
            ),
            ("def main():\n    from .decay import half, age\n", 2),
        ] {
            let expected = format!("lab/cli.py:{line} still imports `age` from lab/decay.py");
            assert_eq!(left(task, cli, decay), [expected], "{cli}");
        }
        let attribute = "from . import ages, decay\n\n\ndef main():\n    return decay.age(1)\n";
        let expected = ["lab/cli.py:5 still uses `age` of lab/decay.py"];
        assert_eq!(left(task, attribute, decay), expected);
        for cli in [
            &attribute.replace("decay.age", "ages.age"),
            "from .ages import age\n",
            "from .decay import half  # and age\n",
            "from .ages import age\nfrom .decay import half\n",
            "import age\n",
        ] {
            assert_eq!(left(task, cli, decay), [""; 0], "{cli}");
        }
    }

    #[test]
    fn import_from_the_old_module_may_stay_if_the_task_asks_for_it_or_for_no_move() {
        let decay = "from .ages import age\n";
        let cli = "from .decay import age\n";
        for task in [
            "Move age to lab/ages.py; the old imports must keep working.",
            "Move age to lab/ages.py, re-export it from decay.py.",
            "Move age to lab/ages.py. Don't change the importers.",
            "Move age to lab/ages.py; `from lab.decay import age` still works.",
            "Move age to lab/ages.py, backwards compatible.",
            "Import age from the new lab/ages.py",
        ] {
            assert_eq!(left(task, cli, decay), [""; 0], "{task}");
        }
        for task in [
            "Move age to lab/ages.py. Update all imports.",
            "Split decay.py by topic.",
            "Move age from lab/importer.py to lab/ages.py and keep its doctest.",
            "Move age to lab/ages.py; nothing may still import it from decay: no re-export, no shim.",
        ] {
            assert_eq!(left(task, cli, decay).len(), 1, "{task}");
        }
    }
}
