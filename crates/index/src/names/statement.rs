//! Reads statements and definitions.

use super::kinds::{Field, Kind};
use super::model::{
    BindingKind, Class, Expr, ExprId, ExprRange, Function, FunctionResult, FunctionRole, Loop,
    Narrowing, ParameterPosition, ResultKind, Role, ScopeId, ScopeKind, SymbolNumber,
};
use super::reader::{AsMeaning, EnclosingMethod, Reader, StringMeaning, Value};
use super::table::NameId;

impl Reader<'_> {
    /// Reads the node at the cursor. For a node that is not a statement, reads its children.
    pub(super) fn statement(&mut self, kind: Kind) {
        match kind {
            Kind::Decorated => self.decorated(),
            Kind::Function => self.function(ExprRange::default()),
            Kind::Class => self.class(ExprRange::default()),
            Kind::AugmentedAssignment => self.augmented(),
            Kind::Return => {
                let value = self.visit_only();
                self.give(value, ResultKind::Return);
            }
            Kind::Delete => self.delete(),
            Kind::Global => self.declare(BindingKind::Global),
            Kind::Nonlocal => self.declare(BindingKind::Nonlocal),
            Kind::If => self.branch(),
            Kind::Assert => {
                let tests = self.tests.len();
                self.visit_children();
                self.narrow(tests, None, self.block_end);
            }
            Kind::For => {
                self.note_loop();
                self.for_clause(self.scope);
            }
            Kind::While => {
                self.note_loop();
                let tests = self.tests.len();
                self.visit_children();
                self.tests.truncate(tests);
            }
            Kind::WithItem => self.binding_as(AsMeaning::Entered),
            Kind::Except => self.except(),
            Kind::Import => self.import(),
            Kind::ImportFrom => self.import_from(),
            Kind::TypeAlias => self.type_alias(),
            Kind::DottedName => self.case_name(),
            Kind::ClassPattern => self.class_pattern(),
            Kind::KeywordPattern => self.keyword_pattern(),
            Kind::SplatPattern => self.children(|reader, kind| {
                if kind == Kind::Identifier {
                    reader.capture();
                }
            }),
            Kind::Block => {
                let end = self.end();
                let outer = std::mem::replace(&mut self.block_end, end);
                self.visit_children();
                self.block_end = outer;
            }
            Kind::Skip | Kind::FutureImport => {}
            _ => {
                let tests = self.tests.len();
                self.visit_children();
                self.tests.truncate(tests);
            }
        }
    }

    fn note_loop(&mut self) {
        let (start, end) = (self.start(), self.end());
        self.out.loops.push(Loop { start, end });
    }

    fn decorated(&mut self) {
        let mark = self.stack.len();
        let mut decorators = None;
        self.children(|reader, kind| match kind {
            Kind::Decorator => {
                let value = reader.visit_only();
                let id = reader.keep(value);
                reader.stack.push(id);
            }
            Kind::Function | Kind::Class => {
                let run = reader.keep_stack(mark);
                decorators = Some(run);
                if kind == Kind::Function {
                    reader.function(run);
                } else {
                    reader.class(run);
                }
            }
            _ => {
                reader.visit(kind);
            }
        });
        if decorators.is_none() {
            self.stack.truncate(mark);
        }
    }

    fn function(&mut self, decorators: ExprRange) {
        let outer = self.scope;
        let around = (self.function, self.method);
        let mut number = SymbolNumber(0);
        let mut inner = None;
        let mut returns = ExprId::NONE;
        let mut role = FunctionRole::Plain;
        self.children(|reader, kind| match reader.field() {
            Field::Name if inner.is_none() => {
                number = reader.take_symbol().unwrap_or(SymbolNumber(0));
                let id = reader.note(Role::Definition, ExprId::NONE);
                reader.bind(outer, id, BindingKind::Function(number));
                role = reader.function_role(decorators, reader.name_of(id));
                inner = Some(reader.open_scope(ScopeKind::Function, number));
            }
            Field::Parameters => {
                if let Some(inner) = inner {
                    let receiver = reader.parameters(inner, ParameterPosition::First);
                    reader.enter_method(outer, role, receiver);
                }
            }
            Field::ReturnType => {
                let value = reader.visit(kind);
                returns = reader.keep(value);
            }
            Field::Body => {
                let inner = inner.unwrap_or(outer);
                reader.out.functions.push(Function {
                    symbol: number,
                    scope: inner,
                    outer,
                    decorators,
                    returns,
                    role,
                });
                reader.scope = inner;
                reader.function = Some(inner);
                reader.visit(kind);
                reader.scope = outer;
            }
            _ => reader.type_parameters(kind, inner),
        });
        (self.function, self.method) = around;
    }

    /// Reads the type parameters `[T]` of a definition, or any other node.
    fn type_parameters(&mut self, kind: Kind, inner: Option<ScopeId>) {
        let (Kind::TypeParameter, Some(inner)) = (kind, inner) else {
            self.visit(kind);
            return;
        };
        let outer = std::mem::replace(&mut self.scope, inner);
        let first = self.out.occurrences.len();
        self.visit_children();
        for index in first..self.out.occurrences.len() {
            let id = super::OccurrenceId(index as u32);
            let kind = BindingKind::Value {
                annotation: ExprId::NONE,
                value: ExprId::UNKNOWN,
            };
            self.bind(inner, id, kind);
        }
        self.scope = outer;
    }

    fn enter_method(&mut self, outer: ScopeId, role: FunctionRole, first: Option<NameId>) {
        let in_class = self.out.scopes[outer.index()].kind == ScopeKind::Class;
        self.method = match (in_class, role, first) {
            (true, FunctionRole::StaticMethod, _) | (true, _, None) => None,
            (true, _, Some(receiver)) => Some(EnclosingMethod {
                class: outer,
                receiver,
            }),
            // A function inside a method can use the method's `self`, unless it has a parameter of
            // the same name.
            (false, _, first) => self.method.filter(|method| Some(method.receiver) != first),
        };
    }

    fn function_role(&self, decorators: ExprRange, name: NameId) -> FunctionRole {
        let own = self.table.get(name);
        let mut role = match own {
            "__new__" | "__init_subclass__" | "__class_getitem__" => FunctionRole::ClassMethod,
            _ => FunctionRole::Plain,
        };
        for decorator in self.out.run(decorators) {
            let last = self.last_name(*decorator);
            role = match last {
                "classmethod" | "classproperty" => FunctionRole::ClassMethod,
                "staticmethod" => FunctionRole::StaticMethod,
                "setter" | "getter" | "deleter" => FunctionRole::Property,
                _ if last.ends_with("property") => FunctionRole::Property,
                _ => role,
            };
        }
        role
    }

    /// Reads the parameters at the cursor and returns the name of the first positional one.
    /// Annotations and defaults are read in the enclosing scope.
    pub(super) fn parameters(
        &mut self,
        inner: ScopeId,
        mut place: ParameterPosition,
    ) -> Option<NameId> {
        let mut receiver = None;
        self.children(|reader, kind| {
            let (name, given) = reader.parameter(kind, inner, place);
            if place == ParameterPosition::First && given == ParameterPosition::First {
                receiver = name;
            }
            place = ParameterPosition::Later;
        });
        receiver
    }

    fn parameter(
        &mut self,
        kind: Kind,
        inner: ScopeId,
        place: ParameterPosition,
    ) -> (Option<NameId>, ParameterPosition) {
        let mut name = None;
        let mut found_place = place;
        let mut annotation = ExprId::NONE;
        let mut default = ExprId::NONE;
        match kind {
            Kind::Identifier => name = Some(self.note_in(Role::Parameter, 0, inner)),
            Kind::Splat | Kind::Pattern => {
                found_place = ParameterPosition::Rest;
                self.splat_names(inner);
            }
            _ => self.children(|reader, kind| match (reader.field(), kind) {
                (Field::Type, _) => {
                    let value = reader.visit(kind);
                    annotation = reader.keep(value);
                }
                (Field::Value, _) => {
                    let value = reader.visit(kind);
                    default = reader.keep(value);
                }
                (_, Kind::Identifier) if name.is_none() => {
                    name = Some(reader.note_in(Role::Parameter, 0, inner));
                }
                (_, Kind::Splat | Kind::Pattern) => {
                    found_place = ParameterPosition::Rest;
                    reader.splat_names(inner);
                }
                _ => {
                    reader.visit(kind);
                }
            }),
        }
        if let Some(id) = name {
            let kind = BindingKind::Parameter {
                place: found_place,
                annotation,
                default,
            };
            self.bind(inner, id, kind);
        }
        (name.map(|id| self.name_of(id)), found_place)
    }

    /// Reads `*args`, `**kwargs`, and the tuple parameters of Python 2.
    fn splat_names(&mut self, inner: ScopeId) {
        self.children(|reader, kind| {
            if kind == Kind::Identifier {
                let id = reader.note_in(Role::Parameter, 0, inner);
                let kind = BindingKind::Parameter {
                    place: ParameterPosition::Rest,
                    annotation: ExprId::NONE,
                    default: ExprId::NONE,
                };
                reader.bind(inner, id, kind);
            }
        });
    }

    fn class(&mut self, decorators: ExprRange) {
        let outer = self.scope;
        let around = (self.function, self.method.take());
        self.function = None;
        let mut number = SymbolNumber(0);
        let mut inner = None;
        let mut bases = ExprRange::default();
        self.children(|reader, kind| match reader.field() {
            Field::Name if inner.is_none() => {
                number = reader.take_symbol().unwrap_or(SymbolNumber(0));
                let id = reader.note(Role::Definition, ExprId::NONE);
                reader.bind(outer, id, BindingKind::Class(number));
                inner = Some(reader.open_scope(ScopeKind::Class, number));
            }
            Field::Superclasses => bases = reader.bases(),
            Field::Body => {
                let inner = inner.unwrap_or(outer);
                reader.out.classes.push(Class {
                    symbol: number,
                    scope: inner,
                    bases,
                    decorators,
                });
                reader.scope = inner;
                reader.visit(kind);
                reader.scope = outer;
            }
            _ => reader.type_parameters(kind, inner),
        });
        (self.function, self.method) = around;
    }

    fn bases(&mut self) -> ExprRange {
        let mark = self.stack.len();
        self.children(|reader, kind| {
            let value = reader.visit(kind);
            if kind != Kind::KeywordArgument {
                let id = reader.keep(value);
                reader.stack.push(id);
            }
        });
        self.keep_stack(mark)
    }

    /// Reads `a = b` or `a: T = b`, and returns the assigned value.
    pub(super) fn assignment(&mut self) -> Value {
        let mut targets = None;
        let mut annotation = ExprId::NONE;
        let mut value = ExprId::NONE;
        let strings = self.strings;
        self.children(|reader, kind| match reader.field() {
            Field::Left => {
                if reader.scope == ScopeId::MODULE && reader.written() == "__all__" {
                    reader.strings = StringMeaning::Exports;
                }
                targets = Some((reader.targets(kind), reader.out.bindings.len()));
            }
            Field::Type => {
                let seen = reader.visit(kind);
                annotation = reader.keep(seen);
            }
            _ => {
                let seen = reader.visit(kind);
                value = reader.keep(seen);
            }
        });
        self.strings = strings;
        if let Some((targets, end)) = targets {
            let later = self.out.bindings.split_off(end);
            self.assign(targets, value, annotation);
            self.out.bindings.extend(later);
        }
        Value::Id(value)
    }

    fn augmented(&mut self) {
        let strings = self.strings;
        self.children(|reader, kind| {
            if reader.field() == Field::Left {
                if reader.scope == ScopeId::MODULE && reader.written() == "__all__" {
                    reader.strings = StringMeaning::Exports;
                }
                let targets = reader.targets(kind);
                reader.assign(targets, ExprId::NONE, ExprId::NONE);
            } else {
                reader.visit(kind);
            }
        });
        self.strings = strings;
    }

    fn give(&mut self, value: Value, how: ResultKind) {
        if let Some(scope) = self.function {
            let value = self.keep(value);
            self.out.given.push(FunctionResult { scope, value, how });
        }
    }

    pub(super) fn give_yield(&mut self) -> Value {
        let is_from = self
            .written()
            .trim_start_matches("yield")
            .trim_start()
            .starts_with("from ");
        let value = self.visit_only();
        self.give(
            value,
            if is_from {
                ResultKind::YieldFrom
            } else {
                ResultKind::Yield
            },
        );
        Value::UNKNOWN
    }

    fn delete(&mut self) {
        self.children(|reader, kind| {
            if kind == Kind::Tuple {
                return reader.delete();
            }
            let value = reader.visit(kind);
            if let Value::Id(id) = value
                && let Some(id) = id.as_occurrence()
            {
                reader.set_role(id, Role::Delete);
            }
        });
    }

    fn declare(&mut self, how: BindingKind) {
        self.children(|reader, kind| {
            if kind == Kind::Identifier {
                let id = reader.note_in(Role::Declared, 0, reader.scope);
                reader.bind(reader.scope, id, how);
            }
        });
    }

    fn binding_as(&mut self, binder: AsMeaning) {
        let outer = std::mem::replace(&mut self.binder, binder);
        self.visit_children();
        self.binder = outer;
    }

    fn except(&mut self) {
        let outer = std::mem::replace(&mut self.binder, AsMeaning::Caught);
        let mut class = ExprId::UNKNOWN;
        self.children(|reader, kind| match (reader.field(), kind) {
            (Field::Alias, _) => {
                let value = reader.keep(Value::New(Expr::Caught(class)));
                let targets = reader.targets(kind);
                reader.assign(targets, value, ExprId::NONE);
            }
            (_, Kind::Block) => {
                reader.binder = AsMeaning::Other;
                reader.visit(kind);
            }
            _ => {
                let value = reader.visit(kind);
                class = reader.keep(value);
            }
        });
        self.binder = outer;
    }

    fn type_alias(&mut self) {
        let mut left = None;
        self.children(|reader, kind| {
            let first = reader.out.occurrences.len();
            let value = reader.visit(kind);
            if left.is_none() {
                left = Some(first);
            } else if let Some(index) = left.filter(|index| *index < first) {
                let id = super::OccurrenceId(index as u32);
                let value = reader.keep(value);
                let kind = BindingKind::Value {
                    annotation: ExprId::NONE,
                    value,
                };
                reader.set_role(id, Role::Store);
                reader.bind(reader.scope, id, kind);
            }
        });
    }

    /// Reads an `if` or `elif` clause. A type test in the condition holds in its branch. After a
    /// branch that leaves the block, the opposite of the test holds in the rest of the block.
    fn branch(&mut self) {
        let tests = self.tests.len();
        let mut negated = None;
        self.children(|reader, kind| match reader.field() {
            Field::Condition => {
                if kind != Kind::Not {
                    reader.visit(kind);
                    return;
                }
                let written = reader.written();
                let is_test = written
                    .trim_start_matches("not")
                    .trim_start()
                    .starts_with("isinstance(");
                reader.visit_only();
                negated = reader.tests.last().copied().filter(|_| is_test);
                reader.tests.truncate(tests);
            }
            Field::Consequence => {
                reader.narrow(tests, None, reader.end());
                let leaves = reader.leaves();
                negated = negated.filter(|_| leaves);
                reader.visit(kind);
            }
            _ => {
                reader.visit(kind);
            }
        });
        if let Some((tested, class, _)) = negated {
            let (start, end) = (self.end(), self.block_end);
            self.out.narrowings.push(Narrowing {
                tested,
                class,
                start,
                end,
            });
        }
    }

    /// Returns whether the last statement of the block at the cursor is a `return`, `raise`,
    /// `continue` or `break`.
    fn leaves(&self) -> bool {
        let node = self.cursor.node();
        let last = node.named_child_count().checked_sub(1);
        let last = last.and_then(|last| node.named_child(last as u32));
        last.is_some_and(|last| {
            matches!(
                last.kind(),
                "return_statement" | "raise_statement" | "continue_statement" | "break_statement"
            )
        })
    }

    /// Records that the type tests from index `first` hold until `end`, starting at `start` or at
    /// the end of each test, and removes them from the current tests.
    pub(super) fn narrow(&mut self, first: usize, start: Option<u32>, end: u32) {
        self.narrow_to(first, start, end);
        self.tests.truncate(first);
    }

    /// Like [`Self::narrow`] from the end of each test, but keeps the tests for the enclosing
    /// expression.
    pub(super) fn narrow_from(&mut self, first: usize, end: u32) {
        self.narrow_to(first, None, end);
    }

    fn narrow_to(&mut self, first: usize, start: Option<u32>, end: u32) {
        for index in first..self.tests.len() {
            let (tested, class, after) = self.tests[index];
            let start = start.unwrap_or(after);
            self.out.narrowings.push(Narrowing {
                tested,
                class,
                start,
                end,
            });
        }
    }
}
