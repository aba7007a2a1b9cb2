//! Renames and deletes variables of a module. A variable is renamed together with all its uses, and
//! deleted only if it has no uses.

use super::doubts::Doubts;
use super::edits::Edits;
use super::replace_uses;
use super::uses::{self, offset, places};
use crate::lookup::Lookup;
use crate::protocol::{Hunk, Pick};
use crate::task::examples::Examples;
use crate::task::stated::stub_of;
use starling_index::{Usage, Variable, binds};
use starling_syntax::{SymbolPath, SymbolTree};
use starling_text::ByteRange;

pub(super) fn rename(
    lookup: &Lookup,
    variable: &Variable,
    to: &str,
    edits: &mut Edits,
    doubts: &mut Doubts,
) -> Result<(), String> {
    let name = &variable.name;
    let all = with_stub(lookup, variable);
    let mut own_strings = Vec::new();
    for variable in &all {
        let tree = lookup.tree(&variable.file)?;
        let strings = variable.set_at.iter();
        for at in strings.filter_map(|at| own_string(tree.text(), *at as usize, name)) {
            let line = tree.line_starts().partition_point(|start| *start <= at);
            own_strings.push((variable.file.clone(), line as u32));
            edits.replace(&variable.file, at, name, to);
        }
    }
    doubts.add(uses::in_no_string_but(lookup, name, &own_strings))?;
    for variable in all {
        if binds(&*lookup.tree(&variable.file)?, to) {
            return Err(format!(
                "{} already contains the name `{to}`",
                variable.file
            ));
        }
        let uses = certain(lookup, &variable, doubts)?;
        uses::bound_once(lookup, (&variable.file, name), &uses)?;
        replace_uses(lookup, &uses, (name, to), edits)?;
    }
    Ok(())
}

/// Returns the changes that delete a variable. `gone` contains the symbols that the task deletes as
/// well; uses of the variable in these symbols do not count.
pub(super) fn delete(
    lookup: &Lookup,
    variable: &Variable,
    gone: &[SymbolPath],
) -> Result<Vec<Pick>, String> {
    let name = &variable.name;
    uses::in_no_string(lookup, name)?;
    let mut picks = Vec::new();
    for variable in with_stub(lookup, variable) {
        let mut doubts = Doubts::refused();
        let mut uses = certain(lookup, &variable, &mut doubts)?;
        let tree = lookup.tree(&variable.file)?;
        let sets = |usage: &Usage| {
            usage.file == variable.file && variable.set_at.contains(&(offset(&tree, usage) as u32))
        };
        let goes = |usage: &Usage| gone.iter().any(|one| one.encloses(&usage.symbol));
        uses.retain(|usage| !sets(usage) && !goes(usage));
        if !uses.is_empty() {
            let places = places(&uses);
            return Err(format!("`{name}` is still used: {places}"));
        }
        if is_made_by_call(&tree, &variable) {
            return Err(format!(
                "`{name}` is set by a call, which may have an effect"
            ));
        }
        let lines = statement(&tree, &variable).filter(|lines| {
            let old = lines.of(tree.text());
            tree.text().matches(old).count() == 1
        });
        let lines = lines.ok_or(format!(
            "`{name}` is not assigned in a separate statement that occurs once"
        ))?;
        picks.push(Pick {
            symbol: SymbolPath::module(variable.file.clone()).to_string(),
            why: format!("delete `{name}`, by rule: nothing uses it"),
            hunks: vec![Hunk {
                old: lines.of(tree.text()).to_owned(),
                new: String::new(),
            }],
            intended_losses: true,
            ..Pick::default()
        });
    }
    Ok(picks)
}

/// Returns the variable and the variable of the same name in the module's stub file.
fn with_stub(lookup: &Lookup, variable: &Variable) -> Vec<Variable> {
    let mut all = vec![variable.clone()];
    if let Some(stub) = stub_of(lookup, &variable.file) {
        all.extend(
            lookup
                .index()
                .variables(&format!("{stub}::{}", variable.name)),
        );
    }
    all
}

fn certain(
    lookup: &Lookup,
    variable: &Variable,
    doubts: &mut Doubts,
) -> Result<Vec<Usage>, String> {
    let usages = lookup.index().variable_uses(variable);
    let mut usages = usages.ok_or_else(|| uses::unknown_uses(&variable.name))?;
    let examples = Examples::of(lookup, &variable.name);
    if let Some(index) = &examples.index {
        let found = index.variable_uses(variable).map(|usages| usages.found);
        let found = examples.uses(lookup, found.unwrap_or_default(), &variable.name);
        usages.found.extend(found);
    }
    let uses = uses::sorted(usages, &variable.name, doubts)?;
    doubts.add(uses::no_attribute(lookup, &variable.name, &uses))?;
    let loaded = uses::module_in_no_string(lookup, &variable.file, &variable.name);
    doubts.add(loaded)?;
    Ok(uses)
}

/// Returns the offset of the string in which an assignment repeats the name of its variable, as in
/// `T = TypeVar("T")`. Type checkers require that both are the same.
fn own_string(text: &str, at: usize, name: &str) -> Option<usize> {
    const DECLARED_BY: [&str; 7] = [
        "NamedTuple",
        "NewType",
        "ParamSpec",
        "TypeAliasType",
        "TypeVar",
        "TypeVarTuple",
        "namedtuple",
    ];
    let value = text[at + name.len()..].trim_start().strip_prefix('=')?;
    let (called, arguments) = value.split_once('(')?;
    let called = called.trim();
    let is_declared =
        !called.contains(char::is_whitespace) && DECLARED_BY.contains(&called.rsplit('.').next()?);
    let string = arguments.trim_start();
    let inner = string.strip_prefix(['"', '\''])?;
    let is_own = inner.starts_with(name) && inner[name.len()..].starts_with(['"', '\'']);
    (is_declared && is_own).then(|| text.len() - inner.len())
}

/// Returns whether the value that is assigned to a variable contains a call.
fn is_made_by_call(tree: &SymbolTree, variable: &Variable) -> bool {
    let calls = |at: &u32| {
        let at = *at as usize;
        let root = tree.root()?;
        let name = root.descendant_for_byte_range(at, at + variable.name.len())?;
        let assignment = name.parent().filter(|node| node.kind() == "assignment")?;
        let mut waiting = vec![assignment];
        while let Some(node) = waiting.pop() {
            if matches!(node.kind(), "call" | "await" | "yield") {
                return Some(());
            }
            waiting.extend((0..node.child_count()).filter_map(|child| node.child(child as _)));
        }
        None
    };
    variable.set_at.iter().any(|at| calls(at).is_some())
}

/// Returns the range of the only statement that assigns a variable, if its lines contain nothing
/// else. If blank lines precede the statement, the blank lines after it are included.
fn statement(tree: &SymbolTree, variable: &Variable) -> Option<ByteRange> {
    let [at] = variable.set_at.as_slice() else {
        return None;
    };
    let at = *at as usize;
    let text = tree.text();
    let name = tree
        .root()?
        .descendant_for_byte_range(at, at + variable.name.len())?;
    let assignment = name.parent().filter(|node| node.kind() == "assignment")?;
    let is_chain = assignment
        .child_by_field_name("right")
        .is_some_and(|right| right.kind() == "assignment");
    let statement = assignment.parent()?;
    let is_own = statement.kind() == "expression_statement"
        && statement
            .parent()
            .is_some_and(|node| node.kind() == "module")
        && statement.start_byte() == at;
    let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
    let rest = &text[statement.end_byte()..];
    let line_end = rest.find('\n').map_or(rest.len(), |line| line + 1);
    let after = rest[..line_end].trim();
    if is_chain || !is_own || start != at || !(after.is_empty() || after.starts_with('#')) {
        return None;
    }
    let mut end = statement.end_byte() + line_end;
    let is_after_blank = start == 0 || text[..start].ends_with("\n\n");
    while is_after_blank && text[end..].starts_with('\n') {
        end += 1;
    }
    Some(ByteRange::new(start, end))
}
