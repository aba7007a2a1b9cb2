//! Renamings and deletions without a model: where a task asks for nothing else and every use of the symbol
//! is certain, the proposals follow from the index. They are checked and reviewed like any others.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::hub::Hub;
use super::lookup::Lookup;
use super::protocol::{Hunk, Pick};
use super::stated::Stated;
use starling_index::{Certainty, Usage, binds};
use starling_syntax::{FilePath, Symbol, SymbolId, SymbolKind, SymbolPath, SymbolTree, signature};
use starling_text::{ChangeSet, Edit};

/// Uses that are rewritten at most.
const USES_MOST: usize = 2_000;
/// Lines that are looked at for a name in a string.
const STRINGS_MOST: usize = 400;
/// Places that a refusal names.
const NAMED: usize = 4;

/// The proposals that do what the task states; `None` where it asks for more than that.
///
/// # Errors
/// Why that cannot be done by rule.
pub(super) fn picks(hub: &Hub) -> Option<Result<Vec<Pick>, String>> {
    let statements = hub.stated();
    if !statements.are_whole_task {
        return None;
    }
    let lookup = hub.lookup();
    let mut edits = Edits::default();
    let mut picks = Vec::new();
    for stated in &statements.all {
        let done = match stated {
            Stated::Renamed { from, to } => rename(&lookup, from, to, &mut edits),
            Stated::Deleted { symbol } => delete(&lookup, symbol).map(|pick| picks.push(pick)),
        };
        if let Err(why) = done {
            return Some(Err(format!(
                "{why}; a larger model can judge that (`--model`)"
            )));
        }
    }
    let why = in_words(&statements.all);
    for (file, edits) in edits.0 {
        match of_file(&lookup, &file, edits, &why) {
            Some(of_file) => picks.extend(of_file),
            None => return Some(Err(format!("{file} cannot be changed by rule"))),
        }
    }
    Some(Ok(picks))
}

fn in_words(all: &[Stated]) -> String {
    let one = |stated: &Stated| match stated {
        Stated::Renamed { from, to } => format!("rename `{}` to `{to}`", from.name),
        Stated::Deleted { symbol } => format!("delete `{}`", symbol.name),
    };
    let all: Vec<String> = all.iter().map(one).collect();
    format!("{}, by rule: every use is certain", all.join("; "))
}

/// The names that are replaced, by file.
#[derive(Default)]
struct Edits(BTreeMap<FilePath, Vec<Edit>>);

impl Edits {
    fn replace(&mut self, file: &FilePath, start: usize, old: &str, new: &str) {
        let edit = Edit {
            range: starling_text::ByteRange::new(start, start + old.len()),
            insert: new.to_owned(),
        };
        let edits = self.0.entry(file.clone()).or_default();
        if !edits.contains(&edit) {
            edits.push(edit);
        }
    }
}

fn rename(lookup: &Lookup, from: &SymbolPath, to: &str, edits: &mut Edits) -> Result<(), String> {
    let found = lookup.symbol(from)?;
    let (tree, symbol) = (&found.tree, &found.symbol);
    let old = from.base_name();
    let class = symbol.parent.map(|id| tree.get(id));
    let sibling = match class.filter(|class| class.kind == SymbolKind::Class) {
        Some(class) => format!("{}.{to}", class.path.name),
        None => to.to_owned(),
    };
    if tree.find(&sibling).is_some() || binds(tree, to) {
        return Err(format!("{} has a `{to}` already", from.file));
    }
    if let Some(class) = class.filter(|class| class.kind == SymbolKind::Class) {
        only_of_its_class(lookup, from, tree, class)?;
    }
    not_known_by_name(lookup, from, symbol)?;
    for usage in certain_uses(lookup, from, symbol)? {
        let text = lookup.tree(&usage.file)?;
        let at = offset(&text, &usage);
        // Under another name it stays; a name in `__all__` stands in quotes.
        let start = [at, at + 1];
        let start = start
            .into_iter()
            .find(|at| is_word_at(text.text(), *at, old));
        if let Some(start) = start {
            edits.replace(&usage.file, start, old, to);
        }
    }
    edits.replace(&from.file, symbol.name.start, old, to);
    Ok(())
}

fn delete(lookup: &Lookup, symbol: &SymbolPath) -> Result<Pick, String> {
    let found = lookup.symbol(symbol)?;
    not_known_by_name(lookup, symbol, &found.symbol)?;
    let mut uses = certain_uses(lookup, symbol, &found.symbol)?;
    uses.retain(|usage| !symbol.encloses(&usage.symbol));
    if !uses.is_empty() {
        return Err(format!(
            "`{}` is still used: {}",
            symbol.name,
            places(&uses)
        ));
    }
    Ok(Pick {
        symbol: symbol.to_string(),
        why: format!("delete `{}`, by rule: nothing uses it", symbol.name),
        delete: vec![symbol.to_string()],
        intended_losses: true,
        ..Pick::default()
    })
}

/// A symbol that nothing can reach by its name alone: no decorator takes note of it, and it stands in no
/// string.
fn not_known_by_name(lookup: &Lookup, path: &SymbolPath, symbol: &Symbol) -> Result<(), String> {
    const PLAIN: [&str; 4] = ["@property", "@staticmethod", "@classmethod", "@dataclass"];
    let decorators = symbol.contract.decorators.iter();
    let mut others = decorators.filter(|one| !PLAIN.contains(&one.trim()));
    if let Some(other) = others.next() {
        return Err(format!("`{}` is decorated with {other}", path.name));
    }
    let name = path.base_name();
    let is_quoted = |text: &str| {
        ["'", "\""]
            .iter()
            .any(|quote| text.contains(&format!("{quote}{name}{quote}")))
    };
    let hits = lookup.index().search(name, STRINGS_MOST).hits;
    let mut quoted = hits.iter().filter(|hit| is_quoted(&hit.text));
    match quoted.find(|hit| !is_exported(lookup, &hit.symbol.file, hit.line)) {
        Some(hit) => Err(format!(
            "`{name}` stands in a string: {}:{}",
            hit.symbol.file, hit.line
        )),
        None => Ok(()),
    }
}

/// Whether a line belongs to a list of exported names, which is followed.
fn is_exported(lookup: &Lookup, file: &FilePath, line: u32) -> bool {
    let Ok(tree) = lookup.tree(file) else {
        return false;
    };
    let lines: Vec<&str> = tree.text().lines().take(line as usize).collect();
    let mut above = lines.iter().rev();
    let opening = above.find(|line| line.contains('=') || line.contains(']'));
    opening.is_some_and(|line| line.trim_start().starts_with("__all__"))
}

/// A method that stands alone: no other class gives it or has it from elsewhere.
fn only_of_its_class(
    lookup: &Lookup,
    method: &SymbolPath,
    tree: &SymbolTree,
    class: &Symbol,
) -> Result<(), String> {
    let others = lookup.index().definitions(method.base_name());
    if let Some(other) = others.iter().find(|other| other.symbol != *method) {
        let (name, other) = (method.base_name(), &other.symbol);
        return Err(format!("{other} is called `{name}` as well"));
    }
    let head = signature(tree, class);
    let bases = head.split_once('(').map(|(_, bases)| bases.trim_start());
    let has_bases =
        bases.is_some_and(|bases| !bases.starts_with(')') && !bases.starts_with("object)"));
    match has_bases {
        true => Err(format!(
            "`{}` may override a method of a base class",
            method.name
        )),
        false => Ok(()),
    }
}

/// All uses of a symbol.
///
/// # Errors
/// Some are not certain, or not all are known.
fn certain_uses(lookup: &Lookup, path: &SymbolPath, symbol: &Symbol) -> Result<Vec<Usage>, String> {
    if path.name.contains('#') {
        return Err(format!("{} has several `{}`", path.file, path.base_name()));
    }
    let usages = lookup.usages(&path.to_string(), USES_MOST);
    let (unsure, sure): (Vec<Usage>, Vec<Usage>) = usages
        .found
        .into_iter()
        .partition(|usage| usage.certainty != Certainty::Certain);
    // Of an object of unknown type, a function of a module is no attribute.
    let is_attribute = |usage: &Usage| {
        let text = lookup.tree(&usage.file);
        text.is_ok_and(|text| text.text()[..offset(&text, usage)].ends_with('.'))
    };
    let mut unsure = unsure;
    if symbol.kind != SymbolKind::Method {
        unsure.retain(|usage| !is_attribute(usage));
    }
    if !unsure.is_empty() {
        let count = super::ending::counted(unsure.len(), "place");
        return Err(format!(
            "{count} may mean another `{}`: {}",
            path.base_name(),
            places(&unsure)
        ));
    }
    match usages.complete {
        true => Ok(sure),
        false => Err(format!("not all uses of `{}` are known", path.name)),
    }
}

fn places(uses: &[Usage]) -> String {
    let mut named: Vec<String> = uses
        .iter()
        .take(NAMED)
        .map(|usage| format!("{}:{}", usage.file, usage.line))
        .collect();
    if uses.len() > NAMED {
        named.push(format!("{} more", uses.len() - NAMED));
    }
    named.join(", ")
}

/// Where a use begins, in bytes of its file.
fn offset(tree: &SymbolTree, usage: &Usage) -> usize {
    let line = (usage.line as usize).saturating_sub(1);
    let start = tree.line_starts().get(line).copied();
    start.unwrap_or_default() + usage.column as usize
}

fn is_word_at(text: &str, at: usize, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let rest = text.get(at..).and_then(|rest| rest.strip_prefix(word));
    rest.is_some_and(|rest| !rest.starts_with(is_part)) && !text[..at].ends_with(is_part)
}

/// The proposals of one file: one for each symbol, and one for what stands beside them. `None` where a
/// place cannot be told from others.
fn of_file(lookup: &Lookup, file: &FilePath, mut edits: Vec<Edit>, why: &str) -> Option<Vec<Pick>> {
    let tree: Arc<SymbolTree> = lookup.tree(file).ok()?;
    let text = tree.text();
    edits.sort_by_key(|edit| edit.range.start);
    let outermost = |symbol: &&Symbol| symbol.parent == Some(SymbolId(0));
    let mut picks = Vec::new();
    for symbol in tree.symbols().iter().filter(outermost) {
        let (own, rest): (Vec<Edit>, Vec<Edit>) = edits.into_iter().partition(|edit| {
            symbol.span.start <= edit.range.start && edit.range.end <= symbol.span.end
        });
        edits = rest;
        if own.is_empty() {
            continue;
        }
        let length = own.iter().fold(symbol.span.end, |end, edit| {
            end + edit.insert.len() - (edit.range.end - edit.range.start)
        });
        let after = ChangeSet::new(text.len(), own)?.apply(text).ok()?;
        picks.push(Pick {
            symbol: symbol.path.to_string(),
            why: why.to_owned(),
            source: Some(after.get(symbol.span.start..length)?.to_owned()),
            intended_losses: true,
            ..Pick::default()
        });
    }
    if !edits.is_empty() {
        picks.push(Pick {
            symbol: SymbolPath::module(file.clone()).to_string(),
            why: why.to_owned(),
            hunks: hunks(text, &edits)?,
            ..Pick::default()
        });
    }
    Some(picks)
}

/// Edits as replacements of whole lines, each of which the text has once.
fn hunks(text: &str, edits: &[Edit]) -> Option<Vec<Hunk>> {
    let line_of = |at: usize| {
        let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        (start, end)
    };
    let mut by_line: BTreeMap<(usize, usize), Vec<Edit>> = BTreeMap::new();
    for edit in edits {
        by_line
            .entry(line_of(edit.range.start))
            .or_default()
            .push(edit.clone());
    }
    let mut hunks = Vec::new();
    for ((start, end), edits) in by_line {
        let old = text.get(start..end)?;
        if text.matches(old).count() != 1 {
            return None;
        }
        let inside = |edit: Edit| Edit {
            range: starling_text::ByteRange::new(edit.range.start - start, edit.range.end - start),
            ..edit
        };
        let edits = edits.into_iter().map(inside).collect();
        let new = ChangeSet::new(old.len(), edits)?.apply(old).ok()?;
        hunks.push(Hunk {
            old: old.to_owned(),
            new,
        });
    }
    Some(hunks)
}
