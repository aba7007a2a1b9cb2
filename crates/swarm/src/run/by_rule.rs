//! Renames and deletions without a model ("by rule"). If a task asks for nothing else, and every
//! use of the name is certain, the changes are made from the index. They are checked and reviewed
//! like other proposals.

mod decorator;
mod doubts;
mod edits;
mod hazards;
mod module;
mod protocols;
mod uses;
mod variable;

use std::collections::BTreeMap;

use crate::lookup::Lookup;
use crate::protocol::Pick;
use crate::state::run_context::RunContext;
use crate::task::mentions;
use crate::task::method_family::{self, MethodFamily};
use crate::task::refactoring::Refactoring;
use crate::task::requested::{named, requested};
use crate::task::stated::{ExplicitEdit, ExplicitEdits, Named, stub_of};
use crate::task::whole_word::is_word_at;
use doubts::Doubts;
use edits::Edits;
use hazards::Registering;
use starling_index::{Heritage, Usage, binds, says_plainly};
use starling_syntax::{FilePath, Symbol, SymbolKind, SymbolPath, SymbolTree};
use starling_text::Edit;
use starling_workspace::WriteRule;
use uses::{offset, places};

/// A rename or deletion that was made without a model.
pub(crate) struct ChangeByRule {
    pub picks: Vec<Pick>,
    /// Why the change may be incomplete; one sentence for each reason.
    pub doubts: Vec<String>,
}

/// The edits of a rename, for an editor that makes them itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenameEdits {
    /// Edits of the definitions and of the certain uses, in order.
    pub certain: BTreeMap<FilePath, Vec<Edit>>,
    /// Edits of the places that may mean something else, in order.
    pub unsure: BTreeMap<FilePath, Vec<Edit>>,
    /// Why the rename may be incomplete; one sentence for each reason.
    pub doubts: Vec<String>,
}

/// Returns the edits that rename a symbol (`path/to/file.py::Class.method`) or a variable of a module.
///
/// # Errors
/// Returns a message if there is no such symbol, or if it cannot have the new name.
pub fn rename_edits(lookup: &Lookup, symbol: &str, to: &str) -> Result<RenameEdits, String> {
    let refactoring = Refactoring::Rename {
        symbol: symbol.to_owned(),
        to: to.to_owned(),
        only_if_certain: false,
    };
    let edit = requested(lookup, &refactoring)?;
    let (mut certain, mut unsure) = (Edits::default(), Edits::default());
    let mut doubts = Doubts::confirmed();
    if let ExplicitEdit::Renamed { from, to } = &edit {
        rename(lookup, from, to, &mut certain, &mut doubts)?;
        rename_in_documents(lookup, from, to, &mut certain);
        let mut uses = doubts.unsure().to_vec();
        uses.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
        replace_uses(lookup, &uses, (from.base_name(), to), &mut unsure)?;
    }
    Ok(RenameEdits {
        certain: certain.by_file(),
        unsure: unsure.by_file(),
        doubts: doubts.reported(),
    })
}

/// Returns the changes that carry out the renames and deletions of the task; `None` if the task
/// asks for anything else.
///
/// # Errors
/// Returns why they cannot be carried out without a model.
pub(crate) fn change(run: &RunContext) -> Option<Result<ChangeByRule, String>> {
    let lookup = run.lookup();
    if let Some(refactoring) = &run.task.refactoring {
        let edit = requested(&lookup, refactoring);
        return Some(edit.and_then(|edit| of_all(&lookup, &[edit], Doubts::of(refactoring))));
    }
    let statements = run.stated();
    if !statements.are_by_rule() {
        if let Some(all) = of_related_methods(&lookup, statements) {
            let change = of_all(&lookup, &all, Doubts::refused());
            return Some(change.map_err(|why| for_larger_model(statements, &why)));
        }
        let why = of_several_classes(&lookup, statements);
        let why = why.or_else(|| of_attribute(statements));
        let why = why.or_else(|| of_ambiguous_name(&lookup, statements))?;
        return Some(Err(for_larger_model(statements, &why)));
    }
    let change = of_all(&lookup, &statements.all, Doubts::refused());
    Some(change.map_err(|why| for_larger_model(statements, &why)))
}

fn for_larger_model(statements: &ExplicitEdits, why: &str) -> String {
    let absent = statements.absent.iter();
    let absent: String = absent.map(|one| format!("{}; ", one.in_words())).collect();
    format!("{absent}{why}; a larger model can decide this (`--model`)")
}

/// Returns the renames of a task if each of them is of a symbol, or of a name that only methods have
/// that override each other.
fn of_related_methods(lookup: &Lookup, statements: &ExplicitEdits) -> Option<Vec<ExplicitEdit>> {
    let one = |stated: &ExplicitEdit| match stated {
        ExplicitEdit::Renamed {
            from: Named::Word(word),
            to,
        } if word.is_symbol && !word.is_partial && word.kept_by.is_empty() => {
            let methods = method_family::methods(lookup, &word.name);
            let first = methods.first()?.clone();
            let family = MethodFamily::of(lookup, &first)?;
            let is_it = family.contains_all(&methods);
            is_it.then(|| ExplicitEdit::Renamed {
                from: Named::Symbol(first),
                to: to.clone(),
            })
        }
        ExplicitEdit::Renamed {
            from: Named::Symbol(_) | Named::Variable(_),
            ..
        } => Some(stated.clone()),
        ExplicitEdit::Renamed { .. } | ExplicitEdit::Deleted { .. } => None,
    };
    let all = statements.all.iter().map(one);
    all.collect::<Option<Vec<_>>>()
        .filter(|_| statements.are_whole_task)
}

/// Returns why a rename or deletion of a method that several related classes define is not made
/// without a model; `None` if the task asks for something else.
fn of_several_classes(lookup: &Lookup, statements: &ExplicitEdits) -> Option<String> {
    if !statements.are_whole_task {
        return None;
    }
    statements.all.iter().find_map(|stated| {
        let Named::Word(word) = stated.named() else {
            return None;
        };
        let methods = method_family::methods(lookup, &word.name);
        let family = MethodFamily::of(lookup, methods.first()?)?;
        let is_it = word.is_symbol && family.contains_all(&methods);
        is_it.then(|| to_follow(&family))
    })
}

/// Returns why a rename or deletion of an attribute that is not a method, such as a field or a member
/// of an enum, is not made without a model; `None` if the task asks for something else.
fn of_attribute(statements: &ExplicitEdits) -> Option<String> {
    if !statements.are_whole_task {
        return None;
    }
    statements.all.iter().find_map(|stated| {
        let Named::Word(word) = stated.named() else {
            return None;
        };
        let is_attribute = word.is_member || !word.of.is_empty();
        is_attribute.then(|| not_known(stated.named()))
    })
}

/// Returns why a rename or deletion of a name that several unrelated symbols have is not made without a
/// model; `None` if the task asks for something else, or says where it means the name.
fn of_ambiguous_name(lookup: &Lookup, statements: &ExplicitEdits) -> Option<String> {
    if !statements.are_whole_task {
        return None;
    }
    statements.all.iter().find_map(|stated| {
        let Named::Word(word) = stated.named() else {
            return None;
        };
        let is_restricted = word.is_parameter || word.is_text || !word.within.is_empty();
        let is_ambiguous = word.is_symbol && !is_restricted && word.kept_by.is_empty();
        named(lookup, &word.name).err().filter(|_| is_ambiguous)
    })
}

fn to_follow(family: &MethodFamily) -> String {
    let places = family.in_words();
    format!("all of these have to change together: {places}")
}

fn of_all(
    lookup: &Lookup,
    all: &[ExplicitEdit],
    mut doubts: Doubts,
) -> Result<ChangeByRule, String> {
    let mut edits = Edits::default();
    let mut picks = Vec::new();
    // A deleted symbol may be used by other deleted symbols.
    let gone: Vec<SymbolPath> = all.iter().filter_map(deleted_symbol).collect();
    for stated in all {
        match stated {
            ExplicitEdit::Renamed {
                from: Named::File(file),
                to,
            } => picks.extend(module::rename(lookup, file, to, &mut edits)?),
            ExplicitEdit::Renamed { from, to } => {
                rename(lookup, from, to, &mut edits, &mut doubts)?;
                rename_in_documents(lookup, from, to, &mut edits);
            }
            ExplicitEdit::Deleted { what } => picks.extend(delete(lookup, what, &gone)?),
        }
    }
    let why = format!("{}, by rule: {}", in_words(all), doubts.in_words());
    edits.leave_out(lookup, &gone);
    picks.extend(edits.picks(lookup, &why)?);
    Ok(ChangeByRule {
        picks: one_for_each_symbol(deleted_together(picks)),
        doubts: doubts.reported(),
    })
}

fn deleted_symbol(stated: &ExplicitEdit) -> Option<SymbolPath> {
    match stated {
        ExplicitEdit::Deleted {
            what: Named::Symbol(path),
        } => Some(path.clone()),
        ExplicitEdit::Deleted { .. } | ExplicitEdit::Renamed { .. } => None,
    }
}

/// Assigns several deletions in one file to the module, so that they become one change. If
/// neighbouring symbols were deleted by separate changes, both changes would contain the lines
/// between them.
fn deleted_together(picks: Vec<Pick>) -> Vec<Pick> {
    let module_of = |pick: &Pick| {
        let symbol: Option<SymbolPath> = pick.symbol.parse().ok();
        symbol.map(|symbol| SymbolPath::module(symbol.file).to_string())
    };
    let is_deletion = |pick: &Pick| !pick.delete.is_empty() && pick.draft().is_some();
    let is_alone = |pick: &Pick| {
        let same = picks
            .iter()
            .filter(|other| module_of(other) == module_of(pick));
        let mut others = same.filter(|other| !is_deletion(other));
        others.all(|other| module_of(other).as_ref() == Some(&other.symbol))
    };
    let together: Vec<bool> = picks
        .iter()
        .map(|pick| is_deletion(pick) && is_alone(pick))
        .collect();
    let moved = picks.iter().zip(together).map(|(pick, together)| {
        let of_file = picks
            .iter()
            .filter(|other| is_deletion(other) && module_of(other) == module_of(pick));
        match module_of(pick).filter(|_| together && of_file.count() > 1) {
            Some(symbol) => Pick {
                symbol,
                ..pick.clone()
            },
            None => pick.clone(),
        }
    });
    moved.collect()
}

/// Combines changes of the same symbol, such as of the body of a module, into one change.
fn one_for_each_symbol(picks: Vec<Pick>) -> Vec<Pick> {
    let mut all: Vec<Pick> = Vec::new();
    for pick in picks {
        let Some(known) = all.iter_mut().find(|known| known.symbol == pick.symbol) else {
            all.push(pick);
            continue;
        };
        known.hunks.extend(pick.hunks);
        known.delete.extend(pick.delete);
        known.intended_losses |= pick.intended_losses;
        known.why = format!("{}; {}", known.why, pick.why);
    }
    all
}

fn in_words(all: &[ExplicitEdit]) -> String {
    let one = |stated: &ExplicitEdit| {
        let name = name_of(stated.named());
        match stated {
            ExplicitEdit::Renamed { to, .. } => format!("rename `{name}` to `{to}`"),
            ExplicitEdit::Deleted { .. } => format!("delete `{name}`"),
        }
    };
    let all: Vec<String> = all.iter().map(one).collect();
    all.join("; ")
}

/// Returns the name with the names of its enclosing symbols, but without the module.
fn name_of(named: &Named) -> &str {
    match named {
        Named::Symbol(path) => &path.name,
        Named::Variable(_) | Named::Word(_) | Named::File(_) => named.base_name(),
    }
}

/// Returns the error for a name that the index does not define. Without a definition, no use of the
/// name is certain.
fn not_known(named: &Named) -> String {
    uses::unknown_uses(named.base_name())
}

fn rename(
    lookup: &Lookup,
    from: &Named,
    to: &str,
    edits: &mut Edits,
    doubts: &mut Doubts,
) -> Result<(), String> {
    match from {
        Named::Symbol(path) => rename_symbol(lookup, path, to, edits, doubts),
        Named::Variable(variable) => variable::rename(lookup, variable, to, edits, doubts),
        Named::Word(_) | Named::File(_) => Err(not_known(from)),
    }
}

/// Adds edits to the new name at the mentions in documents that can only refer to the symbol.
fn rename_in_documents(lookup: &Lookup, from: &Named, to: &str, edits: &mut Edits) {
    let policy = lookup.index().snapshot().policy();
    for one in mentions::in_documents(lookup, from) {
        if one.is_sure && policy.may_write(&one.file) == WriteRule::Allowed {
            edits.replace(&one.file, one.at, from.base_name(), to);
        }
    }
}

/// Returns the changes that delete `what`. `gone` contains all symbols that the task deletes.
fn delete(lookup: &Lookup, what: &Named, gone: &[SymbolPath]) -> Result<Vec<Pick>, String> {
    match what {
        Named::Symbol(path) => delete_symbol(lookup, path, gone),
        Named::Variable(variable) => variable::delete(lookup, variable, gone),
        Named::File(file) => module::delete(lookup, file),
        Named::Word(_) => Err(not_known(what)),
    }
}

/// Renames a symbol. The methods of related classes that have the same name are renamed together, and so
/// are several definitions of the name in one scope.
fn rename_symbol(
    lookup: &Lookup,
    from: &SymbolPath,
    to: &str,
    edits: &mut Edits,
    doubts: &mut Doubts,
) -> Result<(), String> {
    let found = lookup.symbol(from)?;
    let is_method = class_of(&found.tree, &found.symbol).is_some();
    let family: Vec<SymbolPath> = match is_method {
        true => method_family::with_related(lookup, from)
            .into_iter()
            .collect(),
        false => vec![from.clone()],
    };
    let mut related = Vec::new();
    for one in &family {
        related.extend(with_twins(lookup, one)?);
    }
    related.sort();
    related.dedup();
    for one in &related {
        rename_definition(lookup, one, to, &family, edits, doubts)?;
    }
    doubts.add(uses::in_no_string(lookup, from.base_name()))?;
    let uses = uses::certain(lookup, &related, doubts)?;
    if is_method {
        doubts.add(protocols::not_called_from_outside(from))?;
        let computed = hazards::no_computed_base(lookup, from.base_name(), &related);
        doubts.add(computed)?;
    }
    if !is_method {
        uses::bound_once(lookup, (&from.file, from.base_name()), &uses)?;
    }
    replace_uses(lookup, &uses, (from.base_name(), to), edits)
}

/// Returns a symbol and the other definitions of its name in its scope: overloads, the setter of a property, and
/// definitions under other conditions.
fn with_twins(lookup: &Lookup, symbol: &SymbolPath) -> Result<Vec<SymbolPath>, String> {
    let tree = lookup.tree(&symbol.file)?;
    let all = tree.symbols().iter().map(|one| &one.path);
    let twins = all.filter(|one| one.is_twin_of(symbol));
    Ok(twins.cloned().collect())
}

fn rename_definition(
    lookup: &Lookup,
    from: &SymbolPath,
    to: &str,
    family: &[SymbolPath],
    edits: &mut Edits,
    doubts: &mut Doubts,
) -> Result<(), String> {
    let found = lookup.symbol(from)?;
    let (tree, symbol) = (&found.tree, &found.symbol);
    let old = from.base_name();
    let class = class_of(tree, symbol);
    let sibling = match class {
        Some(class) => format!("{}.{to}", class.path.name),
        None => to.to_owned(),
    };
    if tree.find(&sibling).is_some() || binds(tree, to) {
        return Err(format!("{} already contains the name `{to}`", from.file));
    }
    // A twin overrides what its first definition overrides.
    if class.is_some() && family.contains(from) {
        doubts.add(overrides_only(lookup, from, family))?;
    }
    if let Some(class) = class {
        hazards::not_private(to)?;
        hazards::free_in_kin(lookup, &class.path, to)?;
        hazards::free_in_outside_bases(lookup, &class.path, to)?;
    }
    if symbol.kind == SymbolKind::Class {
        hazards::no_private_name_of(lookup, old)?;
        doubts.add(hazards::no_registering_base(
            lookup,
            from,
            Registering::Known,
        ))?;
    }
    not_of_python(from)?;
    doubts.add(not_registered(lookup, from, symbol, decorator::is_fixture))?;
    doubts.add(looked_up_in_its_place(lookup, from, symbol))?;
    edits.replace(&from.file, symbol.name.start, old, to);
    if let Some(twin) = stub_symbol(lookup, from)? {
        let tree = lookup.tree(&twin.path.file)?;
        if tree.find(&sibling).is_some() {
            return Err(format!(
                "{} already contains the name `{to}`",
                twin.path.file
            ));
        }
        let uses = uses::of_stub(lookup, &twin);
        replace_uses(lookup, &uses, (old, to), edits)?;
        edits.replace(&twin.path.file, twin.name.start, old, to);
    }
    Ok(())
}

/// Returns the class of a method; `None` for other symbols.
fn class_of<'t>(tree: &'t SymbolTree, symbol: &Symbol) -> Option<&'t Symbol> {
    let parent = symbol.parent.map(|id| tree.get(id));
    parent.filter(|parent| parent.kind == SymbolKind::Class)
}

/// Adds an edit for each use that replaces the old name by the new name.
fn replace_uses(
    lookup: &Lookup,
    uses: &[Usage],
    (old, to): (&str, &str),
    edits: &mut Edits,
) -> Result<(), String> {
    for file in uses.chunk_by(|a, b| a.file == b.file) {
        let tree = lookup.tree(&file[0].file)?;
        let text = tree.text();
        for usage in file {
            let at = offset(&tree, usage);
            // If the text at the position is not the old name, it is not replaced: it may be an
            // import alias. In `__all__`, the name follows a quote.
            let start = [at, at + 1];
            let Some(start) = start.into_iter().find(|at| is_word_at(text, *at, old)) else {
                continue;
            };
            let is_plain = !text[..start].ends_with('.') && !text[..start].ends_with(['"', '\'']);
            if is_plain && says_plainly(&tree, to) {
                return Err(format!("{} already contains the name `{to}`", usage.file));
            }
            edits.replace(&usage.file, start, old, to);
        }
    }
    Ok(())
}

/// Returns the symbol that the stub file of the module defines for a symbol; `None` if there is
/// none.
///
/// # Errors
/// Returns a message if the stub file has several definitions of the symbol, such as overloads.
/// Their numbers would change if the first of them was renamed or deleted.
fn stub_symbol(lookup: &Lookup, symbol: &SymbolPath) -> Result<Option<Symbol>, String> {
    let Some(stub) = stub_of(lookup, &symbol.file) else {
        return Ok(None);
    };
    let tree = lookup.tree(&stub)?;
    let is_it = |one: &&Symbol| {
        let rest = one.path.name.strip_prefix(&symbol.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#') && !rest.contains('.'))
    };
    let mut found = tree.symbols().iter().filter(is_it);
    let only = found.next().cloned();
    match found.next() {
        Some(_) => Err(format!(
            "{stub} has several definitions of `{}`",
            symbol.base_name()
        )),
        None => Ok(only),
    }
}

fn delete_symbol(
    lookup: &Lookup,
    symbol: &SymbolPath,
    gone: &[SymbolPath],
) -> Result<Vec<Pick>, String> {
    let found = lookup.symbol(symbol)?;
    if symbol.name.contains('#') {
        return Err(format!(
            "{} has several definitions of `{}`",
            symbol.file,
            symbol.base_name()
        ));
    }
    not_of_python(symbol)?;
    if found.symbol.kind == SymbolKind::Class {
        hazards::no_registering_base(lookup, symbol, Registering::Possible)?;
    }
    not_registered(lookup, symbol, &found.symbol, |_| false)?;
    looked_up_in_its_place(lookup, symbol, &found.symbol)?;
    uses::in_no_string(lookup, symbol.base_name())?;
    may_be_missed(lookup, symbol)?;
    let is_method = class_of(&found.tree, &found.symbol).is_some();
    if is_method {
        protocols::not_called_from_outside(symbol)?;
    }
    if is_method && method_family::with_related(lookup, symbol).len() > 1 {
        return Err(format!(
            "another class has a `{}` by which it may be used: {}",
            symbol.base_name(),
            MethodFamily::of(lookup, symbol).map_or(String::new(), |family| family.in_words())
        ));
    }
    let twin = stub_symbol(lookup, symbol)?;
    let mut doubts = Doubts::of_deletion();
    let alone = std::slice::from_ref(symbol);
    let mut uses = uses::certain(lookup, alone, &mut doubts)?;
    let mut all = vec![symbol.clone()];
    if let Some(twin) = twin {
        uses.extend(uses::of_stub(lookup, &twin));
        all.push(twin.path);
    }
    let own = all.iter().chain(gone);
    uses.retain(|usage| !own.clone().any(|one| one.encloses(&usage.symbol)));
    if !uses.is_empty() {
        let places = places(&uses);
        return Err(format!("`{}` is still used: {places}", symbol.name));
    }
    let pick = |one: SymbolPath| Pick {
        symbol: one.to_string(),
        why: format!("delete `{}`, by rule: nothing uses it", symbol.name),
        delete: vec![one.to_string()],
        intended_losses: true,
        ..Pick::default()
    };
    Ok(all.into_iter().map(pick).collect())
}

/// Checks that a symbol's name has no special meaning to Python (`__init__`) or pytest (`pytest_configure`).
fn not_of_python(path: &SymbolPath) -> Result<(), String> {
    let name = path.base_name();
    if name.starts_with("__") && name.ends_with("__") {
        return Err(format!("Python itself uses the name `{}`", path.name));
    }
    match name.starts_with("pytest_") {
        true => Err(format!("pytest itself calls `{}`", path.name)),
        false => Ok(()),
    }
}

/// Checks that no decorator of a symbol may register the symbol under its name, except decorators whose
/// uses are `known`.
///
/// # Errors
/// Returns a message that names the decorator.
fn not_registered(
    lookup: &Lookup,
    path: &SymbolPath,
    symbol: &Symbol,
    known: fn(&str) -> bool,
) -> Result<(), String> {
    let decorators = symbol.contract.decorators.iter();
    let registers =
        |one: &&String| !known(one) && !decorator::registers_nothing(lookup, one, path.base_name());
    let mut others = decorators.filter(registers);
    match others.next() {
        None => Ok(()),
        Some(other) => Err(format!(
            "`{}` is decorated with {other}, which may register it for use under its name",
            path.name
        )),
    }
}

/// Checks that the class of a method, or the module of a function, does not look up its own names
/// dynamically.
///
/// # Errors
/// Returns a message that names the class or module.
fn looked_up_in_its_place(
    lookup: &Lookup,
    path: &SymbolPath,
    symbol: &Symbol,
) -> Result<(), String> {
    let tree = lookup.tree(&path.file)?;
    let class = symbol.parent.map(|id| tree.get(id));
    let class = class.filter(|class| class.kind == SymbolKind::Class);
    let (place, text, lookups) = match class {
        Some(class) => (
            class.path.name.clone(),
            class.span.of(tree.text()),
            ["getattr(self, ", "getattr(cls, "],
        ),
        None => (
            path.file.to_string(),
            &**tree.text(),
            ["globals()[", "globals().get("],
        ),
    };
    let is_literal = |rest: &str| rest.starts_with(['"', '\'']);
    let looks_up = |lookup: &str| {
        let mut places = text.match_indices(lookup);
        places.any(|(at, _)| !is_literal(&text[at + lookup.len()..]))
    };
    match lookups.into_iter().any(looks_up) {
        true => Err(format!("{place} looks up its own names dynamically")),
        false => Ok(()),
    }
}

/// Checks that a method overrides no other methods than those that are `related` to it. Returns a message
/// if it may.
fn overrides_only(
    lookup: &Lookup,
    method: &SymbolPath,
    related: &[SymbolPath],
) -> Result<(), String> {
    match lookup.index().heritage(method) {
        Heritage::Own => Ok(()),
        Heritage::Overrides if related.len() > 1 => Ok(()),
        Heritage::Overrides | Heritage::Unknown => Err(may_override(method)),
    }
}

fn may_override(method: &SymbolPath) -> String {
    let name = &method.name;
    format!("`{name}` may override a method of a base class")
}

/// Checks that no base class outside the project can call a method, because such calls cannot be
/// found. Returns a message if this is possible. A name that begins with one underscore is assumed
/// to be private to the class.
fn may_be_missed(lookup: &Lookup, symbol: &SymbolPath) -> Result<(), String> {
    let is_own = symbol.base_name().starts_with('_') && !symbol.base_name().starts_with("__");
    match lookup.index().heritage(symbol) {
        Heritage::Own => Ok(()),
        Heritage::Unknown if is_own => Ok(()),
        Heritage::Overrides | Heritage::Unknown => Err(may_override(symbol)),
    }
}
