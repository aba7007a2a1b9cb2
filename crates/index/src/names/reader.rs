//! The walk over the syntax tree of a file, with one cursor in the order of the text.

use tree_sitter::TreeCursor;

use super::Names;
use super::kinds::{Field, Kind, Kinds};
use super::model::{
    Binding, BindingKind, Expr, ExprId, ExprRange, Occurrence, OccurrenceId, Role, Scope, ScopeId,
    ScopeKind, SymbolNumber, SymbolPlace,
};
use super::table::{Interner, NameId};
use starling_syntax::{Symbol, SymbolTree};

/// Maximum recursion depth. Below it, only identifiers are recorded, so that no source text can
/// overflow the stack.
const MOST_DEPTH: u32 = 160;

/// An expression that was read. It is stored in the file's list only if something refers to it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    Id(ExprId),
    New(Expr),
}

impl Value {
    pub(super) const UNKNOWN: Value = Value::Id(ExprId::UNKNOWN);
}

/// The enclosing method: the class to which attributes of its receiver belong, and the name of the
/// receiver, which is its first parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnclosingMethod {
    pub(super) class: ScopeId,
    pub(super) receiver: NameId,
}

/// The meaning of string literals at the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringMeaning {
    Plain,
    /// Strings are types, as in an annotation.
    Types,
    /// Strings are exported names, as in `__all__`.
    Exports,
}

/// The meaning of `as` at the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AsMeaning {
    Entered,
    Caught,
    Other,
}

/// The state of the walk over a file's syntax tree.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) cursor: TreeCursor<'t>,
    kinds: &'static Kinds,
    pub(super) table: Interner<'t>,
    pub(super) out: Names,
    symbols: &'t [Symbol],
    next_symbol: usize,
    pub(super) scope: ScopeId,
    /// The scope of the innermost function.
    pub(super) function: Option<ScopeId>,
    pub(super) method: Option<EnclosingMethod>,
    pub(super) strings: StringMeaning,
    pub(super) binder: AsMeaning,
    /// The elements of lists that are being read.
    pub(super) stack: Vec<ExprId>,
    /// The `isinstance` tests of the condition that is being read: the tested expression, the
    /// class, and the end of the test.
    pub(super) tests: Vec<(ExprId, ExprId, u32)>,
    /// Byte offset of the end of the innermost block.
    pub(super) block_end: u32,
    depth: u32,
}

pub(super) fn read(tree: &SymbolTree) -> Names {
    let Some(root) = tree.root() else {
        return Names::default();
    };
    let text: &str = tree.text();
    let mut out = Names {
        lines: tree
            .line_starts()
            .iter()
            .map(|start| *start as u32)
            .collect(),
        symbols: tree.symbols().iter().map(place).collect(),
        ..Names::default()
    };
    out.scopes.push(Scope {
        kind: ScopeKind::Module,
        parent: ScopeId::MODULE,
        symbol: SymbolNumber(0),
    });
    out.occurrences.reserve(text.len() / 10);
    let mut reader = Reader {
        text,
        cursor: root.walk(),
        kinds: Kinds::get(),
        table: Interner::default(),
        out,
        symbols: tree.symbols(),
        next_symbol: 1,
        scope: ScopeId::MODULE,
        function: None,
        method: None,
        strings: StringMeaning::Plain,
        binder: AsMeaning::Other,
        stack: Vec::new(),
        tests: Vec::new(),
        block_end: text.len() as u32,
        depth: 0,
    };
    reader.visit_children();
    reader.finish()
}

fn place(symbol: &Symbol) -> SymbolPlace {
    SymbolPlace {
        start: symbol.definition.start as u32,
        end: symbol.definition.end as u32,
        parent: SymbolNumber(symbol.parent.map_or(0, |parent| parent.0 as u32)),
    }
}

impl<'t> Reader<'t> {
    fn finish(self) -> Names {
        let mut out = self.out;
        out.table = self.table.finish();
        let key = |found: &Binding| (found.scope, found.name, found.occurrence);
        out.bindings.sort_unstable_by_key(key);
        out.given.sort_by_key(|given| given.scope);
        out.occurrences.shrink_to_fit();
        out
    }

    pub(super) fn kind(&self) -> Kind {
        self.kinds.kind(&self.cursor)
    }

    pub(super) fn field(&self) -> Field {
        self.kinds.field(&self.cursor)
    }

    pub(super) fn start(&self) -> u32 {
        self.cursor.node().start_byte() as u32
    }

    pub(super) fn end(&self) -> u32 {
        self.cursor.node().end_byte() as u32
    }

    pub(super) fn written(&self) -> &'t str {
        let node = self.cursor.node();
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Moves the cursor to every child that is not skipped and calls `each`.
    pub(super) fn children(&mut self, mut each: impl FnMut(&mut Self, Kind)) {
        if !self.cursor.goto_first_child() {
            return;
        }
        loop {
            let kind = self.kind();
            if kind != Kind::Skip {
                each(self, kind);
            }
            if !self.cursor.goto_next_sibling() {
                break;
            }
        }
        self.cursor.goto_parent();
    }

    pub(super) fn visit_children(&mut self) {
        self.children(|reader, kind| {
            reader.visit(kind);
        });
    }

    /// Reads all children and returns the value of the last one.
    pub(super) fn visit_only(&mut self) -> Value {
        let mut value = Value::UNKNOWN;
        self.children(|reader, kind| value = reader.visit(kind));
        value
    }

    /// Reads the node at the cursor. Afterwards the cursor is at the same node.
    pub(super) fn visit(&mut self, kind: Kind) -> Value {
        if kind == Kind::Skip {
            return Value::UNKNOWN;
        }
        if kind == Kind::Identifier {
            return Value::Id(ExprId::of(self.note(Role::Read, ExprId::NONE)));
        }
        if self.depth >= MOST_DEPTH {
            self.skim();
            return Value::UNKNOWN;
        }
        self.depth += 1;
        let value = self.expression(kind);
        self.depth -= 1;
        value
    }

    /// Records only the identifiers below the node at the cursor, without recursion.
    fn skim(&mut self) {
        let mut level = 0u32;
        loop {
            if self.kind() == Kind::Identifier {
                let receiver = match self.field() {
                    Field::Attribute => ExprId::UNKNOWN,
                    _ => ExprId::NONE,
                };
                self.note(Role::Read, receiver);
            }
            if self.cursor.goto_first_child() {
                level += 1;
                continue;
            }
            loop {
                if level == 0 {
                    return;
                }
                if self.cursor.goto_next_sibling() {
                    break;
                }
                self.cursor.goto_parent();
                level -= 1;
            }
        }
    }

    /// Records the identifier at the cursor.
    pub(super) fn note(&mut self, role: Role, receiver: ExprId) -> OccurrenceId {
        self.note_in(role, receiver.0, self.scope)
    }

    pub(super) fn note_in(&mut self, role: Role, receiver: u32, scope: ScopeId) -> OccurrenceId {
        let written = self.written();
        self.note_text(written, self.start(), role, receiver, scope)
    }

    pub(super) fn note_text(
        &mut self,
        written: &'t str,
        at: u32,
        role: Role,
        receiver: u32,
        scope: ScopeId,
    ) -> OccurrenceId {
        let name = self.table.intern(written);
        let id = OccurrenceId(self.out.occurrences.len() as u32);
        self.out.occurrences.push(Occurrence {
            at,
            name,
            scope,
            role,
            receiver,
        });
        id
    }

    pub(super) fn set_role(&mut self, id: OccurrenceId, role: Role) {
        self.out.occurrences[id.index()].role = role;
    }

    pub(super) fn name_of(&self, id: OccurrenceId) -> NameId {
        self.out.occurrences[id.index()].name
    }

    /// Returns the name of an expression that is a name or an attribute, or an empty string for
    /// other expressions.
    pub(super) fn last_name(&self, expr: ExprId) -> &str {
        let id = expr.as_occurrence();
        id.map_or("", |id| self.table.get(self.name_of(id)))
    }

    pub(super) fn bind(&mut self, scope: ScopeId, occurrence: OccurrenceId, kind: BindingKind) {
        let found = self.out.occurrences[occurrence.index()];
        self.out.bindings.push(Binding {
            scope,
            name: found.name,
            occurrence,
            kind,
            after: 0,
            reach: self.block_end.saturating_sub(found.at),
        });
    }

    /// Stores an expression in the file's list and returns its id.
    pub(super) fn keep(&mut self, value: Value) -> ExprId {
        match value {
            Value::Id(id) => id,
            Value::New(expr) => {
                self.out.exprs.push(expr);
                ExprId::built(self.out.exprs.len() - 1)
            }
        }
    }

    /// Moves the elements above `mark` from the stack to the file's list of expressions.
    pub(super) fn keep_stack(&mut self, mark: usize) -> ExprRange {
        let start = self.out.lists.len();
        self.out.lists.extend_from_slice(&self.stack[mark..]);
        self.stack.truncate(mark);
        ExprRange {
            start: start as u32,
            len: (self.out.lists.len() - start) as u32,
        }
    }

    /// Adds a new scope inside the current one.
    pub(super) fn open_scope(&mut self, kind: ScopeKind, symbol: SymbolNumber) -> ScopeId {
        let id = ScopeId(self.out.scopes.len() as u32);
        self.out.scopes.push(Scope {
            kind,
            parent: self.scope,
            symbol,
        });
        id
    }

    pub(super) fn symbol_of_scope(&self) -> SymbolNumber {
        self.out.scopes[self.scope.index()].symbol
    }

    /// Returns the scope in which `:=` binds a name: the innermost one that is not a comprehension.
    pub(super) fn scope_past_comprehensions(&self) -> ScopeId {
        let mut scope = self.scope;
        while self.out.scopes[scope.index()].kind == ScopeKind::Comprehension {
            scope = self.out.scopes[scope.index()].parent;
        }
        scope
    }

    /// Returns the symbol whose name is at the cursor.
    pub(super) fn take_symbol(&mut self) -> Option<SymbolNumber> {
        let start = self.start() as usize;
        let rest = self.symbols.get(self.next_symbol..)?;
        let ahead = rest.iter().position(|symbol| symbol.name.start == start)?;
        let found = self.next_symbol + ahead;
        self.next_symbol = found + 1;
        Some(SymbolNumber(found as u32))
    }
}
