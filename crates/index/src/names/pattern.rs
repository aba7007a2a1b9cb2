//! What gets a value: targets of assignments and loops, and patterns of `match`.

use super::kinds::{Field, Kind};
use super::model::{BindingKind, Expr, ExprId, Role, ScopeId};
use super::reader::{Reader, Value};

/// The place of a target inside a nested pattern, which nothing is told of.
const NESTED: u32 = u32::MAX;

/// Targets that were noted before their value: their bindings, from here on.
#[derive(Clone, Copy)]
pub(super) struct Targets {
    first: usize,
    /// Whether there is one for the whole value.
    is_whole: bool,
}

impl Reader<'_> {
    /// Notes the targets at the cursor. Their value comes with [`Reader::assign`].
    pub(super) fn targets(&mut self, kind: Kind) -> Targets {
        let first = self.out.bindings.len();
        let is_whole = !matches!(kind, Kind::Pattern | Kind::Tuple | Kind::List);
        self.target(kind, 0);
        Targets { first, is_whole }
    }

    fn target(&mut self, kind: Kind, index: u32) {
        match kind {
            Kind::Identifier => {
                let id = self.note(Role::Store, ExprId::NONE);
                let kind = BindingKind::Value {
                    annotation: ExprId::NONE,
                    value: ExprId(index),
                };
                self.bind(self.scope, id, kind);
            }
            Kind::Attribute => self.attribute_target(kind, index),
            Kind::Pattern | Kind::Tuple | Kind::List => {
                let mut next = 0;
                self.children(|reader, kind| {
                    let is_inner = matches!(kind, Kind::Pattern | Kind::Tuple | Kind::List);
                    let place = if index == NESTED || is_inner {
                        NESTED
                    } else {
                        next
                    };
                    reader.target(kind, place);
                    next += 1;
                });
            }
            // `*rest`, or a target in parentheses.
            Kind::Splat | Kind::Parenthesized => {
                let index = if kind == Kind::Splat { NESTED } else { index };
                self.children(|reader, kind| reader.target(kind, index));
            }
            _ => {
                self.visit(kind);
            }
        }
    }

    fn attribute_target(&mut self, kind: Kind, index: u32) {
        let Value::Id(expr) = self.visit(kind) else {
            return;
        };
        let Some(id) = expr.as_occurrence() else {
            return;
        };
        self.set_role(id, Role::Store);
        if let Some(class) = self.class_of_receiver(self.out.occurrences[id.index()].receiver()) {
            let kind = BindingKind::Attribute {
                annotation: ExprId::NONE,
                value: ExprId(index),
            };
            self.bind(class, id, kind);
        }
    }

    /// The class around whose `self` or `cls` a receiver is.
    fn class_of_receiver(&self, receiver: ExprId) -> Option<ScopeId> {
        let receiver = self
            .out
            .occurrences
            .get(receiver.as_occurrence()?.index())?;
        let method = self.method?;
        let is_plain = !receiver.receiver().is_some();
        (is_plain && receiver.name == method.receiver).then_some(method.class)
    }

    /// Gives the targets their value and their annotation; the value is there where the node at the
    /// cursor ends.
    pub(super) fn assign(&mut self, targets: Targets, value: ExprId, annotation: ExprId) {
        let there = self.end();
        for index in targets.first..self.out.bindings.len() {
            let at = self.out.occurrences[self.out.bindings[index].occurrence.index()].at;
            self.out.bindings[index].after = there.saturating_sub(at);
            let (BindingKind::Value { value: part, .. }
            | BindingKind::Attribute { value: part, .. }) = self.out.bindings[index].kind
            else {
                continue;
            };
            let is_known = value != ExprId::UNKNOWN && value.is_some();
            let value = match (targets.is_whole, part.0) {
                (true, _) => value,
                (false, place) if place != NESTED && is_known => {
                    self.keep(Value::New(Expr::Part(value, place)))
                }
                (false, _) => ExprId::UNKNOWN,
            };
            let kind = &mut self.out.bindings[index].kind;
            *kind = match kind {
                BindingKind::Attribute { .. } => BindingKind::Attribute { annotation, value },
                _ => BindingKind::Value { annotation, value },
            };
        }
    }

    /// The targets below the node at the cursor get a value.
    pub(super) fn bind_target_below(&mut self, value: Value) {
        let value = self.keep(value);
        self.children(|reader, kind| {
            let targets = reader.targets(kind);
            reader.assign(targets, value, ExprId::NONE);
        });
    }

    /// `for left in right` of a comprehension; the iterable is in the scope `iterable`.
    pub(super) fn for_clause(&mut self, iterable: ScopeId) {
        let inner = self.scope;
        let mut targets = None;
        let mut value = ExprId::UNKNOWN;
        self.children(|reader, kind| match (reader.field(), targets) {
            (Field::Left, None) => targets = Some(reader.targets(kind)),
            _ => {
                // Bindings of `:=` in the iterable come after the targets' own.
                if let Some(targets) = targets.take() {
                    reader.scope = iterable;
                    let bound = reader.out.bindings.len();
                    let seen = reader.visit(kind);
                    value = reader.keep(seen);
                    reader.scope = inner;
                    let later = reader.out.bindings.split_off(bound);
                    let element = reader.keep(Value::New(Expr::Element(value)));
                    reader.assign(targets, element, ExprId::NONE);
                    reader.out.bindings.extend(later);
                } else {
                    reader.visit(kind);
                }
            }
        });
    }

    /// The identifier at the cursor is given a value that nothing is known of.
    pub(super) fn capture(&mut self) {
        let id = self.note(Role::Store, ExprId::NONE);
        let kind = BindingKind::Value {
            annotation: ExprId::NONE,
            value: ExprId::UNKNOWN,
        };
        self.bind(self.scope, id, kind);
    }

    /// `case a.b:` reads, `case a:` captures.
    pub(super) fn case_name(&mut self) {
        if self.cursor.node().named_child_count() == 1 {
            self.children(|reader, kind| {
                if kind == Kind::Identifier {
                    reader.capture();
                }
            });
        } else {
            self.dotted_read();
        }
    }

    /// A dotted name that is read.
    pub(super) fn dotted_read(&mut self) -> ExprId {
        let mut receiver = ExprId::NONE;
        self.children(|reader, kind| {
            if kind == Kind::Identifier {
                receiver = ExprId::of(reader.note(Role::Read, receiver));
            }
        });
        receiver
    }

    /// `C(x, y=z)`.
    pub(super) fn class_pattern(&mut self) {
        let mut class = None;
        self.children(|reader, kind| match class {
            None if kind == Kind::DottedName => class = Some(reader.dotted_read()),
            _ => {
                reader.visit(kind);
            }
        });
    }

    /// `y=z` in a class pattern: an attribute of what is matched.
    pub(super) fn keyword_pattern(&mut self) {
        let mut is_first = true;
        self.children(|reader, kind| {
            if std::mem::replace(&mut is_first, false) && kind == Kind::Identifier {
                reader.note(Role::Read, ExprId::UNKNOWN);
            } else {
                reader.visit(kind);
            }
        });
    }
}
