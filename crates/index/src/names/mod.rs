//! The facts about names in one Python file: imports, classes, the bindings of names, and every
//! occurrence of an identifier. This module reads only one file; `resolve` connects files.

mod expression;
mod forward;
mod imports;
mod kinds;
mod model;
mod pack;
mod pattern;
mod reader;
mod rebound;
mod statement;
mod table;
#[cfg(test)]
mod tests;
mod undefined;

pub use model::{
    Binding, BindingKind, Class, Expr, ExprId, ExprRange, Function, FunctionResult, FunctionRole,
    Import, ImportId, Imported, Loop, Narrowing, Occurrence, OccurrenceId, ParameterPosition,
    ResultKind, Role, Scope, ScopeId, ScopeKind, SymbolNumber, SymbolPlace,
};
pub use rebound::{Rebound, rebound};
pub use table::NameId;
pub(crate) use undefined::is_always_defined;
pub use undefined::{
    LostUse, binds, bound_at, given_names, is_built_in, lost_uses, newly_undefined, says_plainly,
    sets_attribute, undefined_names,
};

use serde::{Deserialize, Serialize};

use starling_syntax::SymbolTree;

/// The names of one file. Empty for a file that is not Python.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    table: table::Table,
    /// Byte offset of the start of each line.
    lines: Vec<u32>,
    symbols: Vec<SymbolPlace>,
    scopes: Vec<Scope>,
    #[serde(with = "pack")]
    occurrences: Vec<Occurrence>,
    /// The bindings, sorted by scope, name and position in the text.
    bindings: Vec<Binding>,
    imports: Vec<Import>,
    /// The class definitions, sorted by the number of their symbol.
    classes: Vec<Class>,
    functions: Vec<Function>,
    /// The values that functions return or yield, sorted by the scope of the function.
    given: Vec<FunctionResult>,
    narrowings: Vec<Narrowing>,
    /// The loops, sorted by their start.
    loops: Vec<Loop>,
    exprs: Vec<Expr>,
    lists: Vec<ExprId>,
}

/// The content of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExprContent {
    /// The type of the expression is unknown, or there is no expression.
    Unknown,
    Occurrence(OccurrenceId),
    Built(Expr),
}

impl Names {
    /// Reads the names of a parsed file.
    pub fn read(tree: &SymbolTree) -> Self {
        reader::read(tree)
    }

    /// Returns the identifiers that occur in the file, without duplicates.
    pub fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.table.iter()
    }

    /// Returns the number of an identifier, or `None` if it does not occur in the file.
    pub fn find(&self, name: &str) -> Option<NameId> {
        self.table.find(name)
    }

    pub fn name(&self, name: NameId) -> &str {
        self.table.get(name)
    }

    /// Returns all occurrences, in the order of the text.
    pub fn occurrences(&self) -> &[Occurrence] {
        &self.occurrences
    }

    pub fn occurrence(&self, id: OccurrenceId) -> Option<&Occurrence> {
        self.occurrences.get(id.index())
    }

    /// Returns the identifier that contains a byte offset or ends at it.
    pub fn occurrence_at(&self, offset: u32) -> Option<OccurrenceId> {
        let after = self.occurrences.partition_point(|found| found.at <= offset);
        let index = after.checked_sub(1)?;
        let found = &self.occurrences[index];
        let end = found.at as usize + self.name(found.name).len();
        (offset as usize <= end).then_some(OccurrenceId(index as u32))
    }

    pub fn scope(&self, id: ScopeId) -> Option<&Scope> {
        self.scopes.get(id.index())
    }

    /// Returns all bindings of a name in a scope, in the order of the text.
    pub fn bindings(&self, scope: ScopeId, name: NameId) -> &[Binding] {
        let start =
            (self.bindings).partition_point(|found| (found.scope, found.name) < (scope, name));
        let rest = &self.bindings[start..];
        &rest[..rest.partition_point(|found| (found.scope, found.name) == (scope, name))]
    }

    /// Returns all bindings in a scope.
    pub fn bindings_of(&self, scope: ScopeId) -> &[Binding] {
        let start = self.bindings.partition_point(|found| found.scope < scope);
        let rest = &self.bindings[start..];
        &rest[..rest.partition_point(|found| found.scope == scope)]
    }

    /// Returns the bindings of all scopes.
    pub fn all_bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.iter()
    }

    /// Returns whether a name is used only for attributes: of objects, and in the bodies of
    /// classes.
    pub(crate) fn is_member_only(&self, name: NameId) -> bool {
        let in_class = |one: &Occurrence| {
            let kind = self.scope(one.scope).map(|scope| scope.kind);
            kind == Some(ScopeKind::Class)
        };
        let mut all = self.occurrences.iter().filter(|one| one.name == name);
        all.all(|one| one.receiver().is_some() || one.role == Role::Keyword || in_class(one))
    }

    /// Returns the number of scopes that bind a name other than by an import.
    pub(crate) fn meanings(&self, name: NameId) -> usize {
        let gives = |one: &&Binding| match one.kind {
            BindingKind::Class(_)
            | BindingKind::Function(_)
            | BindingKind::Parameter { .. }
            | BindingKind::Value { .. }
            | BindingKind::Attribute { .. } => one.name == name,
            BindingKind::Import(_) | BindingKind::Global | BindingKind::Nonlocal => false,
        };
        let mut scopes: Vec<ScopeId> = self
            .bindings
            .iter()
            .filter(gives)
            .map(|one| one.scope)
            .collect();
        scopes.dedup();
        scopes.len()
    }

    pub fn imports(&self) -> &[Import] {
        &self.imports
    }

    pub fn import(&self, id: ImportId) -> Option<&Import> {
        self.imports.get(id.index())
    }

    /// Returns the parts of the dotted module name in an import.
    pub fn module_parts(&self, import: &Import) -> impl Iterator<Item = &str> {
        let first = import.module.index();
        let parts = self.occurrences.get(first..first + import.parts as usize);
        parts
            .unwrap_or_default()
            .iter()
            .map(|part| self.name(part.name))
    }

    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    pub fn class(&self, symbol: SymbolNumber) -> Option<&Class> {
        let place = self
            .classes
            .binary_search_by_key(&symbol, |class| class.symbol);
        place.ok().map(|place| &self.classes[place])
    }

    pub fn function(&self, symbol: SymbolNumber) -> Option<&Function> {
        let place = (self.functions).binary_search_by_key(&symbol, |function| function.symbol);
        place.ok().map(|place| &self.functions[place])
    }

    /// Returns the values that a function returns and yields.
    pub fn given(&self, function: ScopeId) -> &[FunctionResult] {
        let start = self.given.partition_point(|given| given.scope < function);
        let rest = &self.given[start..];
        &rest[..rest.partition_point(|given| given.scope == function)]
    }

    /// Returns whether a binding is in effect at a position: at the bound name itself, or after the statement
    /// that binds the name.
    pub fn is_set(&self, binding: &Binding, at: u32) -> bool {
        let bound = self.occurrence(binding.occurrence);
        let start = bound.map_or(0, |bound| bound.at);
        at == start || start + binding.after <= at
    }

    /// Returns the bindings of a plain name, in its own scope, whose values can reach an
    /// occurrence: the last binding that is always executed before it, the bindings that may be
    /// executed after that one, and the bindings of an enclosing loop that reach it in the next
    /// iteration.
    pub fn reaching<'b>(
        &self,
        bindings: &'b [Binding],
        at: u32,
    ) -> impl Iterator<Item = &'b Binding> {
        let start = |binding: &Binding| {
            self.occurrence(binding.occurrence)
                .map_or(0, |found| found.at)
        };
        let is_before = move |binding: &Binding| start(binding) + binding.after <= at;
        let is_passed = move |binding: &&Binding| {
            is_before(binding) && binding.gives() && at < start(binding) + binding.reach
        };
        let last = bindings.iter().filter(is_passed).map(start).next_back();
        let mut loops = Vec::new();
        for around in &self.loops {
            let holds_last = last.is_some_and(|last| around.start <= last && last < around.end);
            if around.start <= at && at < around.end && !holds_last {
                loops.push(*around);
            }
        }
        bindings.iter().filter(move |binding| {
            let place = start(binding);
            if is_before(binding) {
                return last.is_none_or(|last| last <= place);
            }
            loops
                .iter()
                .any(|around| around.start <= place && place < around.end)
        })
    }

    pub fn narrowings(&self) -> &[Narrowing] {
        &self.narrowings
    }

    pub fn expr(&self, id: ExprId) -> ExprContent {
        if let Some(occurrence) = id.as_occurrence() {
            return ExprContent::Occurrence(occurrence);
        }
        let built = id.as_built().and_then(|index| self.exprs.get(index));
        built.map_or(ExprContent::Unknown, |expr| ExprContent::Built(*expr))
    }

    /// Returns the name of an expression that is a name or an attribute, or an empty string for
    /// other expressions.
    pub fn last_name(&self, id: ExprId) -> &str {
        let found = id.as_occurrence().and_then(|id| self.occurrence(id));
        found.map_or("", |found| self.name(found.name))
    }

    pub fn run(&self, run: ExprRange) -> &[ExprId] {
        let start = run.start as usize;
        self.lists
            .get(start..start + run.len as usize)
            .unwrap_or_default()
    }

    /// Returns the line of a byte offset, counted from 1.
    pub fn line(&self, offset: u32) -> u32 {
        self.lines.partition_point(|start| *start <= offset) as u32
    }

    /// Returns the byte offset at which a line, counted from 1, starts.
    pub fn line_start(&self, line: u32) -> Option<u32> {
        self.lines.get((line as usize).checked_sub(1)?).copied()
    }

    /// Returns the innermost symbol whose definition, including decorators, contains a byte offset.
    pub fn owner(&self, offset: u32) -> SymbolNumber {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.start <= offset);
        let mut owner = after.saturating_sub(1);
        while owner > 0 && self.symbols[owner].end <= offset {
            owner = self.symbols[owner].parent.index().min(owner - 1);
        }
        SymbolNumber(owner as u32)
    }
}
