//! Reads assignment targets: the targets of assignments and loops, and the patterns of `match`.

use super::kinds::{Field, Kind};
use super::model::{BindingKind, Expr, ExprId, Role, ScopeId};
use super::reader::{Reader, Value};

/// Marks a target inside a nested pattern, whose value is unknown.
const NESTED: u32 = u32::MAX;

/// The targets of an assignment, which are read before the assigned value. `first` is the index of
/// their first binding.
#[derive(Clone, Copy)]
pub(super) struct AssignmentTargets {
    first: usize,
    /// Whether there is only one target, which gets the whole value.
    is_whole: bool,
}

impl Reader<'_> {
    /// Records the targets at the cursor. [`Reader::assign`] adds their value.
    pub(super) fn targets(&mut self, kind: Kind) -> AssignmentTargets {
        let first = self.out.bindings.len();
        let is_whole = !matches!(kind, Kind::Pattern | Kind::Tuple | Kind::List);
        self.target(kind, 0);
        AssignmentTargets { first, is_whole }
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

    /// Returns the enclosing class if the receiver is its `self` or `cls`.
    fn class_of_receiver(&self, receiver: ExprId) -> Option<ScopeId> {
        let receiver = self
            .out
            .occurrences
            .get(receiver.as_occurrence()?.index())?;
        let method = self.method?;
        let is_plain = !receiver.receiver().is_some();
        (is_plain && receiver.name == method.receiver).then_some(method.class)
    }

    /// Assigns a value and an annotation to the targets. The value is visible from the end of the
    /// node at the cursor.
    pub(super) fn assign(&mut self, targets: AssignmentTargets, value: ExprId, annotation: ExprId) {
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

    /// Assigns a value to the targets below the node at the cursor.
    pub(super) fn bind_target_below(&mut self, value: Value) {
        let value = self.keep(value);
        self.children(|reader, kind| {
            let targets = reader.targets(kind);
            reader.assign(targets, value, ExprId::NONE);
        });
    }

    /// Reads `for left in right`. The iterable belongs to the scope `iterable`.
    pub(super) fn for_clause(&mut self, iterable: ScopeId) {
        let inner = self.scope;
        let mut targets = None;
        let mut value = ExprId::UNKNOWN;
        self.children(|reader, kind| match (reader.field(), targets) {
            (Field::Left, None) => targets = Some(reader.targets(kind)),
            _ => {
                // Bindings by `:=` in the iterable must come after the bindings of the targets.
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

    /// Binds the identifier at the cursor to an unknown value.
    pub(super) fn capture(&mut self) {
        let id = self.note(Role::Store, ExprId::NONE);
        let kind = BindingKind::Value {
            annotation: ExprId::NONE,
            value: ExprId::UNKNOWN,
        };
        self.bind(self.scope, id, kind);
    }

    /// Reads a name in a pattern: `case a.b:` reads the name, `case a:` binds it.
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

    /// Reads the dotted name at the cursor.
    pub(super) fn dotted_read(&mut self) -> ExprId {
        let mut receiver = ExprId::NONE;
        self.children(|reader, kind| {
            if kind == Kind::Identifier {
                receiver = ExprId::of(reader.note(Role::Read, receiver));
            }
        });
        receiver
    }

    /// Reads the class pattern `C(x, y=z)`.
    pub(super) fn class_pattern(&mut self) {
        let mut class = None;
        self.children(|reader, kind| match class {
            None if kind == Kind::DottedName => class = Some(reader.dotted_read()),
            _ => {
                reader.visit(kind);
            }
        });
    }

    /// Reads `y=z` in a class pattern: `y` is an attribute of the matched value.
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
