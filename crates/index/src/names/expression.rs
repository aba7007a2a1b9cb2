//! Reads expressions: the occurrences of names in them, and what determines their types.

use super::kinds::{Field, Kind};
use super::model::{
    BindingKind, Expr, ExprId, ExprRange, ParameterPosition, Role, ScopeId, ScopeKind,
};
use super::reader::{AsMeaning, Reader, StringMeaning, Value};

impl Reader<'_> {
    /// Reads the node at the cursor, which is not an identifier.
    pub(super) fn expression(&mut self, kind: Kind) -> Value {
        let strings = self.strings;
        if strings == StringMeaning::Exports && !self.lists_exports(kind) {
            self.strings = StringMeaning::Plain;
        }
        let value = self.expression_of(kind);
        self.strings = strings;
        value
    }

    fn expression_of(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Attribute | Kind::MemberType => self.attribute(),
            Kind::Call => self.call(),
            Kind::KeywordArgument => self.keyword(ExprId::UNKNOWN),
            Kind::Subscript | Kind::GenericType => self.item(),
            Kind::Parenthesized | Kind::Await => self.visit_only(),
            Kind::Type => self.annotation(),
            Kind::BooleanOperator | Kind::UnionType => self.either(),
            Kind::BinaryOperator => self.binary(),
            Kind::Conditional => self.conditional(),
            Kind::NamedExpression => self.named(),
            Kind::Lambda => self.lambda(),
            Kind::Comprehension => self.comprehension(),
            Kind::Tuple => Value::New(Expr::Tuple(self.elements())),
            Kind::List => {
                let first = self.first_element();
                Value::New(Expr::List(first))
            }
            Kind::Literal => Value::New(Expr::Literal),
            Kind::None => Value::New(Expr::None),
            Kind::String => self.string(),
            Kind::ConcatenatedString => {
                self.visit_children();
                Value::New(Expr::Literal)
            }
            Kind::AsPattern => self.as_pattern(),
            Kind::Yield => self.give_yield(),
            Kind::Assignment => self.assignment(),
            _ => {
                self.statement(kind);
                Value::UNKNOWN
            }
        }
    }

    fn attribute(&mut self) -> Value {
        let mut receiver = None;
        let mut value = Value::UNKNOWN;
        self.children(|reader, kind| match receiver {
            None => {
                let object = reader.visit(kind);
                receiver = Some(reader.keep(object));
            }
            Some(receiver) if kind == Kind::Identifier => {
                let id = reader.note(Role::Read, receiver);
                value = Value::Id(ExprId::of(id));
            }
            Some(_) => {
                reader.visit(kind);
            }
        });
        value
    }

    fn call(&mut self) -> Value {
        let mut called = None;
        let mut arguments = [ExprId::NONE; 2];
        self.children(|reader, kind| match called {
            None => {
                let value = reader.visit(kind);
                let id = reader.keep(value);
                if let Some(id) = id.as_occurrence() {
                    reader.set_role(id, Role::Call);
                }
                called = Some(id);
            }
            Some(called) => {
                let strings = reader.strings;
                reader.strings = reader.strings_of_arguments(called);
                arguments = reader.arguments(kind, called);
                reader.strings = strings;
            }
        });
        let called = called.unwrap_or(ExprId::UNKNOWN);
        if self.is_plain_name(called) {
            match self.last_name(called) {
                "super" => return Value::New(Expr::Super(self.scope)),
                "isinstance" if arguments[1].is_some() => {
                    let end = self.end();
                    self.tests.push((arguments[0], arguments[1], end));
                }
                "type" if arguments[0].is_some() && !arguments[1].is_some() => {
                    return Value::New(Expr::TypeOf(arguments[0]));
                }
                // `cast(T, x)` has the type `T`.
                "cast" if arguments[1].is_some() => return Value::New(Expr::Call(arguments[0])),
                _ => {}
            }
        }
        Value::New(Expr::Call(called))
    }

    /// Returns whether the strings in the node at the cursor are elements of the value of `__all__`.
    /// Strings in conditions, comprehensions and calls of other functions are not.
    fn lists_exports(&self, kind: Kind) -> bool {
        match kind {
            Kind::Assignment
            | Kind::BinaryOperator
            | Kind::Call
            | Kind::Conditional
            | Kind::List
            | Kind::Parenthesized
            | Kind::String
            | Kind::Tuple => true,
            Kind::Other => self.written().starts_with('*'),
            _ => false,
        }
    }

    /// Returns the meaning of the strings in the arguments of a call: the names that a call of
    /// `__all__.append`, `extend` or `insert` adds are exported, and `list(…)` exports what it
    /// lists.
    fn strings_of_arguments(&self, called: ExprId) -> StringMeaning {
        let receiver = called.as_occurrence().map_or(ExprId::NONE, |id| {
            self.out.occurrences[id.index()].receiver()
        });
        let method = self.last_name(called);
        let is_collection = matches!(method, "frozenset" | "list" | "set" | "sorted" | "tuple");
        match self.strings {
            StringMeaning::Exports if is_collection && !receiver.is_some() => {
                StringMeaning::Exports
            }
            StringMeaning::Exports => StringMeaning::Plain,
            StringMeaning::Plain
                if self.scope == ScopeId::MODULE
                    && receiver.is_some()
                    && self.last_name(receiver) == "__all__"
                    && matches!(method, "append" | "extend" | "insert")
                    && self.is_plain_name(receiver) =>
            {
                StringMeaning::Exports
            }
            other @ (StringMeaning::Plain | StringMeaning::Types) => other,
        }
    }

    fn is_plain_name(&self, id: ExprId) -> bool {
        let found = id
            .as_occurrence()
            .map(|id| &self.out.occurrences[id.index()]);
        found.is_some_and(|found| !found.receiver().is_some())
    }

    /// Reads the arguments of a call. Returns the first two arguments if the called function is one
    /// whose arguments determine types, such as `isinstance`.
    fn arguments(&mut self, kind: Kind, called: ExprId) -> [ExprId; 2] {
        let mut found = [ExprId::NONE; 2];
        if kind != Kind::Arguments {
            self.visit(kind);
            return found;
        }
        let wants = matches!(self.last_name(called), "isinstance" | "cast" | "type");
        let is_cast = self.last_name(called) == "cast";
        let mut count = 0;
        self.children(|reader, kind| {
            if kind == Kind::KeywordArgument {
                reader.keyword(called);
                return;
            }
            let value = if is_cast && count == 0 {
                reader.typed(|reader| reader.visit(kind))
            } else {
                reader.visit(kind)
            };
            if wants && count < 2 {
                found[count] = reader.keep(value);
            }
            count += 1;
        });
        found
    }

    pub(super) fn keyword(&mut self, called: ExprId) -> Value {
        let mut value = Value::UNKNOWN;
        let scope = self.scope;
        self.children(|reader, kind| {
            if kind == Kind::Identifier && reader.field() == Field::Name {
                reader.note_in(Role::Keyword, called.0, scope);
            } else {
                value = reader.visit(kind);
            }
        });
        value
    }

    fn item(&mut self) -> Value {
        let mut base = None;
        let mark = self.stack.len();
        let strings = self.strings;
        self.children(|reader, kind| match base {
            None => {
                let value = reader.visit(kind);
                let id = reader.keep(value);
                if reader.last_name(id) == "Literal" {
                    reader.strings = StringMeaning::Plain;
                }
                base = Some(id);
            }
            Some(_) if kind == Kind::TypeParameter => reader.children(|reader, kind| {
                let value = reader.visit(kind);
                let id = reader.keep(value);
                reader.stack.push(id);
            }),
            Some(_) => {
                let value = reader.visit(kind);
                let id = reader.keep(value);
                reader.stack.push(id);
            }
        });
        self.strings = strings;
        let arguments = self.keep_stack(mark);
        Value::New(Expr::Item(base.unwrap_or(ExprId::UNKNOWN), arguments))
    }

    fn annotation(&mut self) -> Value {
        self.typed(Self::visit_only)
    }

    /// Reads expressions in which strings are types, such as annotations.
    fn typed(&mut self, read: impl FnOnce(&mut Self) -> Value) -> Value {
        let strings = std::mem::replace(&mut self.strings, StringMeaning::Types);
        let value = read(self);
        self.strings = strings;
        value
    }

    fn either(&mut self) -> Value {
        let tests = self.tests.len();
        let mut sides = [ExprId::UNKNOWN; 2];
        let mut count = 0;
        let is_or = self.operator_is("or");
        self.children(|reader, kind| {
            let value = reader.visit(kind);
            sides[count.min(1)] = reader.keep(value);
            count += 1;
        });
        if is_or {
            self.tests.truncate(tests);
        } else {
            self.narrow_from(tests, self.end());
        }
        Value::New(Expr::Either(sides[0], sides[1]))
    }

    fn binary(&mut self) -> Value {
        if self.written().contains('|') && self.operator_is("|") {
            return self.either();
        }
        self.visit_children();
        Value::UNKNOWN
    }

    fn operator_is(&mut self, wanted: &str) -> bool {
        let mut found = false;
        if self.cursor.goto_first_child() {
            while self.cursor.goto_next_sibling() {
                if self.field() == Field::Operator {
                    found = self.written() == wanted;
                    break;
                }
            }
            self.cursor.goto_parent();
        }
        found
    }

    fn conditional(&mut self) -> Value {
        let tests = self.tests.len();
        let mut parts = [ExprId::UNKNOWN; 3];
        let mut span = (0, 0);
        let mut count = 0;
        self.children(|reader, kind| {
            if count == 0 {
                span = (reader.start(), reader.end());
            }
            let value = reader.visit(kind);
            parts[count.min(2)] = reader.keep(value);
            count += 1;
        });
        self.narrow(tests, Some(span.0), span.1);
        Value::New(Expr::Either(parts[0], parts[2]))
    }

    fn named(&mut self) -> Value {
        let scope = self.scope_past_comprehensions();
        let mut value = Value::UNKNOWN;
        let mut target = None;
        self.children(|reader, kind| {
            if target.is_none() && kind == Kind::Identifier {
                target = Some(reader.note(Role::Store, ExprId::NONE));
            } else {
                value = reader.visit(kind);
            }
        });
        let id = self.keep(value);
        if let Some(target) = target {
            let kind = BindingKind::Value {
                annotation: ExprId::NONE,
                value: id,
            };
            self.bind(scope, target, kind);
            let end = self.end();
            if let Some(binding) = self.out.bindings.last_mut() {
                binding.after = end.saturating_sub(self.out.occurrences[target.index()].at);
            }
            return Value::Id(ExprId::of(target));
        }
        Value::Id(id)
    }

    fn lambda(&mut self) -> Value {
        let outer = self.scope;
        let tests = self.tests.len();
        let inner = self.open_scope(ScopeKind::Lambda, self.symbol_of_scope());
        self.children(|reader, kind| {
            if kind == Kind::Parameters {
                reader.parameters(inner, ParameterPosition::Later);
            } else {
                reader.scope = inner;
                reader.visit(kind);
                reader.scope = outer;
            }
        });
        self.tests.truncate(tests);
        Value::UNKNOWN
    }

    /// Reads a comprehension. Its first iterable belongs to the enclosing scope.
    fn comprehension(&mut self) -> Value {
        let outer = self.scope;
        let tests = self.tests.len();
        let inner = self.open_scope(ScopeKind::Comprehension, self.symbol_of_scope());
        self.scope = inner;
        let mut body = None;
        let mut clauses = 0;
        self.children(|reader, kind| match (kind, body) {
            (Kind::ForInClause, _) => {
                clauses += 1;
                reader.for_clause(if clauses == 1 { outer } else { inner });
            }
            (_, None) => {
                let value = reader.visit(kind);
                body = Some(reader.keep(value));
            }
            (_, Some(_)) => {
                reader.visit(kind);
            }
        });
        self.scope = outer;
        self.tests.truncate(tests);
        Value::New(Expr::List(body.unwrap_or(ExprId::UNKNOWN)))
    }

    pub(super) fn elements(&mut self) -> ExprRange {
        let mark = self.stack.len();
        self.children(|reader, kind| {
            let value = reader.visit(kind);
            let id = reader.keep(value);
            reader.stack.push(id);
        });
        self.keep_stack(mark)
    }

    fn first_element(&mut self) -> ExprId {
        let mut first = None;
        self.children(|reader, kind| {
            let value = reader.visit(kind);
            if first.is_none() {
                first = Some(reader.keep(value));
            }
        });
        first.unwrap_or(ExprId::UNKNOWN)
    }

    fn string(&mut self) -> Value {
        let written = self.written();
        let quote = written.find(['"', '\'']).unwrap_or(0);
        if written[..quote].contains(['f', 'F', 't', 'T']) {
            let strings = std::mem::replace(&mut self.strings, StringMeaning::Plain);
            self.visit_children();
            self.strings = strings;
            return Value::New(Expr::Literal);
        }
        match self.strings {
            StringMeaning::Plain => Value::New(Expr::Literal),
            StringMeaning::Types => self.forward_type(written),
            StringMeaning::Exports => {
                self.export(written);
                Value::New(Expr::Literal)
            }
        }
    }

    fn as_pattern(&mut self) -> Value {
        let binder = std::mem::replace(&mut self.binder, AsMeaning::Other);
        let mut value = Value::UNKNOWN;
        self.children(|reader, kind| match kind {
            Kind::AsPatternTarget => {
                let value = reader.keep(value);
                let given = match binder {
                    AsMeaning::Entered => Value::New(Expr::Entered(value)),
                    AsMeaning::Caught => Value::New(Expr::Caught(value)),
                    AsMeaning::Other => Value::UNKNOWN,
                };
                reader.bind_target_below(given);
            }
            // The syntax is `case pattern as name`.
            Kind::Identifier if binder == AsMeaning::Other => reader.capture(),
            _ => value = reader.visit(kind),
        });
        self.binder = binder;
        value
    }
}
