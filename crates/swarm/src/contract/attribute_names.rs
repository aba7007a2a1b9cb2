//! Finds what may belong to a renamed attribute only by its name: methods such as `clean_<name>`, which
//! frameworks call, strings that are the name, and uses of the name where the task keeps it for something
//! else.

use crate::lookup::Lookup;
use crate::task::in_strings::{first_of, stands_in};
use crate::task::stated::{ExplicitEdit, ExplicitEdits, KeptStrings, Named, Word};
use starling_index::{InString, Usage, is_test_file};
use starling_syntax::{FilePath, SymbolKind};

/// Beginnings of the names of methods that frameworks call by the name of a field.
const BEGINNINGS: [&str; 6] = [
    "clean_",
    "dehydrate_",
    "filter_",
    "render_",
    "resolve_",
    "validate_",
];
/// Directories with database migrations, which keep old names.
const HISTORY: [&str; 3] = ["alembic", "migrations", "versions"];

/// Describes what the changes of a run left with the old name of an attribute that the task renames.
pub(super) fn left(statements: &ExplicitEdits, before: &Lookup, after: &Lookup) -> Vec<String> {
    let words = statements.all.iter().filter_map(|stated| match stated {
        ExplicitEdit::Renamed {
            from: Named::Word(word),
            ..
        } => Some(word),
        ExplicitEdit::Renamed { .. } | ExplicitEdit::Deleted { .. } => None,
    });
    let mut told = Vec::new();
    for word in words {
        let is_attribute = word.is_member || !word.of.is_empty();
        let has = |lookup: &Lookup| lookup.index().meanings(&word.name) > 0;
        if is_attribute && has(before) && !has(after) {
            told.extend(methods(after, &word.name));
            told.extend(strings(after, &word.name, &statements.kept));
        }
        if !word.kept_by.is_empty() {
            told.extend(uses_of_others(after, word));
        }
    }
    told
}

/// Describes the methods that are named after an attribute.
fn methods(after: &Lookup, name: &str) -> Option<String> {
    let mut places = Vec::new();
    for file in after.files().iter().filter(|file| !is_test_file(file)) {
        let text = after.index().snapshot().read(file).ok();
        if !file.as_str().ends_with(".py") || !text.is_some_and(|text| text.contains(name)) {
            continue;
        }
        let Ok(tree) = after.tree(file) else {
            continue;
        };
        let methods = tree.symbols().iter().filter(|one| {
            one.kind == SymbolKind::Method && is_named_after(one.path.base_name(), name)
        });
        places.extend(methods.map(|one| format!("{file}:{}", tree.line_of(one))));
    }
    let is_left = !places.is_empty();
    let told = || {
        format!(
            "`{name}` is still in the name of a method: {}",
            first_of(places)
        )
    };
    is_left.then(told)
}

/// Returns whether a method is named after an attribute: `clean_<name>`, `get_<name>_display`. If the
/// attribute's name has several words, any name that contains it in whole words counts.
fn is_named_after(method: &str, name: &str) -> bool {
    let method = method.split('#').next().unwrap_or(method);
    let has_it = method != name && format!("_{method}_").contains(&format!("_{name}_"));
    let is_of_framework = BEGINNINGS
        .iter()
        .any(|one| method.strip_prefix(one) == Some(name))
        || method == format!("get_{name}_display");
    is_of_framework || has_it && name.trim_matches('_').contains('_')
}

/// Describes the strings that are exactly the name of an attribute.
fn strings(after: &Lookup, name: &str, kept: &KeptStrings) -> Option<String> {
    let is_whole = |one: &InString| {
        let line = line(after, &one.file, one.line).unwrap_or_default();
        let mut quoted = ['"', '\''].iter();
        quoted.any(|quote| line.contains(&format!("{quote}{name}{quote}")))
    };
    let mut found = after.index().in_strings(name);
    found.retain(|one| {
        let is_history = one
            .file
            .as_str()
            .split('/')
            .any(|part| HISTORY.contains(&part));
        let is_kept = kept.hold(after, (&one.file, one.line), name);
        !one.is_script && !one.is_address && !is_history && !is_kept && is_whole(one)
    });
    (!found.is_empty()).then(|| stands_in(name, "still occurs", &found))
}

/// Describes the uses in templates and on objects of unknown type that may mean the renamed attribute,
/// where something else keeps the name. Leaves out uses on objects that are called like what keeps it.
fn uses_of_others(after: &Lookup, word: &Word) -> Option<String> {
    let name = &word.name;
    let dotted = format!(".{name}");
    let is_kept = |file: &FilePath, number: u32, class: &str| {
        let line = line(after, file, number).unwrap_or_default();
        let mut objects = line.match_indices(&dotted).map(|(at, _)| {
            let before = &line[..at];
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let object = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
            let object = if object == "self" { class } else { object };
            object.to_lowercase()
        });
        objects.any(|object| word.kept_by.contains(&object))
    };
    let mut reads: Vec<Usage> = after.index().reads_of_any(name);
    reads.retain(|one| {
        let class = one.symbol.name.split('.').next().unwrap_or_default();
        !is_test_file(&one.file) && !is_kept(&one.file, one.line, class)
    });
    let mut in_templates = after.index().in_templates(name);
    in_templates.retain(|one| !is_kept(&one.file, one.line, ""));
    let reads = reads.into_iter().map(|one| (one.file, one.line));
    let in_templates = in_templates.into_iter().map(|one| (one.file, one.line));
    let places = reads.chain(in_templates);
    let places: Vec<String> = places
        .map(|(file, line)| format!("{file}:{line}"))
        .collect();
    let is_left = !places.is_empty();
    let told = || {
        format!(
            "`{name}` may still mean what was renamed at {}",
            first_of(places)
        )
    };
    is_left.then(told)
}

/// Returns the text of a line, counted from 1.
fn line(lookup: &Lookup, file: &FilePath, number: u32) -> Option<String> {
    let text = lookup.index().snapshot().read(file).ok()?;
    let line = text.lines().nth((number as usize).checked_sub(1)?)?;
    Some(line.to_owned())
}
