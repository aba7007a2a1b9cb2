//! Evaluates type annotations to the possible values of the annotated expressions.

use super::resolver::{EvaluationKey, Receiver, Resolver, no_values};
use super::source::{FileId, Source};
use super::value::{Target, Value, ValueSet, Values};
use crate::names::{BindingKind, Expr, ExprContent, ExprId, ExprRange, OccurrenceId};

/// The way in which the arguments of a generic type of the standard library determine the values of
/// an annotation.
enum GenericEvaluation {
    /// A value of any of the argument types (`Union`).
    AnyOf,
    /// A value of the first argument type (`Optional`).
    First,
    /// A sequence whose elements have the first argument type (`list`).
    Elements,
    /// A sequence whose elements have any of the argument types (`tuple`).
    Parts,
    /// The class that the argument names, not an instance (`type`).
    Class,
    /// A callable that returns a value of the last argument type.
    Callable,
    Other,
}

fn generic(name: &str) -> GenericEvaluation {
    match name {
        "Union" => GenericEvaluation::AnyOf,
        "Optional" | "Annotated" | "ClassVar" | "Final" | "Required" | "NotRequired"
        | "Awaitable" => GenericEvaluation::First,
        "list" | "List" | "set" | "Set" | "frozenset" | "FrozenSet" | "Sequence"
        | "MutableSequence" | "Iterable" | "Iterator" | "Collection" | "Container"
        | "Generator" | "AsyncIterable" | "AsyncIterator" | "AsyncGenerator" | "deque"
        | "Deque" | "AbstractSet" | "MutableSet" | "Reversible" => GenericEvaluation::Elements,
        "tuple" | "Tuple" => GenericEvaluation::Parts,
        "Callable" => GenericEvaluation::Callable,
        "type" | "Type" => GenericEvaluation::Class,
        _ => GenericEvaluation::Other,
    }
}

impl<S: Source> Resolver<'_, S> {
    /// Returns the possible values of an expression with this annotation.
    pub(super) fn annotation(&mut self, file: FileId, expr: ExprId, receiver: Receiver) -> Values {
        let names = self.names(file);
        let seen = names.expr(expr);
        if seen == ExprContent::Unknown {
            return no_values();
        }
        self.remembered(
            EvaluationKey::Annotation(file, expr, receiver),
            |this| match seen {
                ExprContent::Unknown => no_values(),
                ExprContent::Occurrence(id) => this.named_type(file, id, expr, receiver),
                ExprContent::Built(built) => this.built_type(file, built, receiver),
            },
        )
    }

    fn named_type(
        &mut self,
        file: FileId,
        id: OccurrenceId,
        expr: ExprId,
        receiver: Receiver,
    ) -> Values {
        let names = self.names(file);
        if names.last_name(expr) == "Self" {
            return receiver.map_or_else(no_values, |class| [Value::Instance(class)].into());
        }
        let mut values = ValueSet::default();
        for target in self.targets(file, id).list {
            match target {
                Target::Outside => {
                    let name = names.last_name(expr);
                    for value in self.values(file, expr, receiver).iter() {
                        if let Value::Outside(kind) = value {
                            values.add(Value::Outside(kind.annotated(name)));
                        }
                    }
                }
                Target::Module(_) => {}
                Target::Variable(variable) => {
                    let names = self.names(variable.file);
                    for binding in names.bindings(variable.scope, variable.name) {
                        if let BindingKind::Value { value, .. } = binding.kind {
                            values.extend(&self.annotation(variable.file, value, None));
                        }
                    }
                    for value in self.variable_values(variable, None).iter() {
                        if let Value::Class(class) = value {
                            values.add(Value::Instance(*class));
                        }
                    }
                }
            }
        }
        values.finish()
    }

    fn built_type(&mut self, file: FileId, expr: Expr, receiver: Receiver) -> Values {
        match expr {
            Expr::Either(a, b) => {
                let mut values = ValueSet::default();
                values.extend(&self.annotation(file, a, receiver));
                values.extend(&self.annotation(file, b, receiver));
                values.finish()
            }
            Expr::Item(base, arguments) => self.generic_type(file, base, arguments, receiver),
            Expr::Call(_)
            | Expr::TypeOf(_)
            | Expr::Super(_)
            | Expr::Tuple(_)
            | Expr::List(_)
            | Expr::Part(..)
            | Expr::Element(_)
            | Expr::Entered(_)
            | Expr::Caught(_)
            | Expr::Literal
            | Expr::None => no_values(),
        }
    }

    fn generic_type(
        &mut self,
        file: FileId,
        base: ExprId,
        arguments: ExprRange,
        receiver: Receiver,
    ) -> Values {
        let names = self.names(file);
        let arguments = names.run(arguments);
        let first = arguments.first().copied().unwrap_or(ExprId::NONE);
        let mut values = ValueSet::default();
        match generic(names.last_name(base)) {
            GenericEvaluation::AnyOf => {
                for argument in arguments {
                    values.extend(&self.annotation(file, *argument, receiver));
                }
            }
            GenericEvaluation::First => return self.annotation(file, first, receiver),
            GenericEvaluation::Elements => {
                let elements = self.annotation(file, first, receiver);
                let set = self.set(elements);
                values.add(Value::Sequence(set));
            }
            GenericEvaluation::Parts => {
                let mut parts = ValueSet::default();
                for argument in arguments {
                    parts.extend(&self.annotation(file, *argument, receiver));
                }
                let set = self.set(parts.finish());
                values.add(Value::Sequence(set));
            }
            GenericEvaluation::Callable => {
                let last = arguments.last().copied().unwrap_or(ExprId::NONE);
                let given = self.annotation(file, last, receiver);
                let set = self.set(given);
                values.add(Value::Callable(set));
            }
            GenericEvaluation::Class => {
                for value in self.annotation(file, first, receiver).iter() {
                    if let Value::Instance(class) = value {
                        values.add(Value::Class(*class));
                    }
                }
            }
            GenericEvaluation::Other => return self.annotation(file, base, receiver),
        }
        values.finish()
    }
}
