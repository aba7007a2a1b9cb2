//! Evaluates operations on values: calls, subscripts, iteration, and entering a context manager.

use super::class::Member;
use super::resolver::{EvaluationKey, Receiver, Resolver, no_values};
use super::source::{FileId, Source};
use super::value::{Def, Value, ValueSet, Values};
use crate::names::{Names, ResultKind, ScopeId};

impl<S: Source> Resolver<'_, S> {
    /// Returns the result of calling a value.
    pub(super) fn call(&mut self, value: Value) -> Values {
        match value {
            Value::Class(class) => [Value::Instance(class)].into(),
            Value::Function(def, receiver) => self.returns(def, receiver),
            Value::Callable(set) => self.elements(set),
            Value::Instance(_) => self.call_member(value, "__call__"),
            Value::Outside(kind) => [Value::Outside(kind.called())].into(),
            Value::Module(_) | Value::Super { .. } | Value::Sequence(_) | Value::Tuple(_) => {
                no_values()
            }
        }
    }

    /// Returns the value of a decorated function: an instance of a workspace class if the
    /// decorators return one, otherwise the function itself.
    pub(super) fn decorated(&mut self, def: Def, receiver: Receiver) -> Values {
        let names = self.names(def.file);
        let decorators = names
            .function(def.symbol)
            .map(|function| function.decorators);
        let decorators = names.run(decorators.unwrap_or_default());
        let mut values: Values = [Value::Function(def, receiver)].into();
        for decorator in decorators.iter().rev() {
            let mut made = ValueSet::default();
            for value in self.values(def.file, *decorator, None).iter() {
                for result in self.call(*value).iter() {
                    if let Value::Instance(class) = result
                        && self.is_plain(*class)
                    {
                        made.add(*result);
                    }
                }
            }
            let made = made.finish();
            values = if made.is_empty() { values } else { made };
        }
        values
    }

    /// Returns whether all bases of a class are known and the class has no `__get__`.
    fn is_plain(&mut self, class: Def) -> bool {
        self.line(class).is_whole && self.member(class, "__get__") == Member::Missing
    }

    /// Returns the result of `value.name()`.
    fn call_member(&mut self, value: Value, name: &str) -> Values {
        let mut values = ValueSet::default();
        for member in self.member_values(value, name).iter() {
            match member {
                Value::Function(def, receiver) => values.extend(&self.returns(*def, *receiver)),
                Value::Callable(set) => values.extend(&self.elements(*set)),
                Value::Outside(kind) => values.add(Value::Outside(kind.called())),
                Value::Module(_)
                | Value::Class(_)
                | Value::Instance(_)
                | Value::Super { .. }
                | Value::Sequence(_)
                | Value::Tuple(_) => {}
            }
        }
        values.finish()
    }

    /// Returns the possible results of a function: its return values, or a sequence of the values
    /// that it yields.
    pub(super) fn returns(&mut self, def: Def, receiver: Receiver) -> Values {
        self.remembered(EvaluationKey::Returns(def, receiver), |this| {
            let names = this.names(def.file);
            let Some(function) = names.function(def.symbol) else {
                return no_values();
            };
            if function.returns.is_some() {
                return this.annotation(def.file, function.returns, receiver);
            }
            this.given(def.file, &names, function.scope, receiver)
        })
    }

    fn given(&mut self, file: FileId, names: &Names, scope: ScopeId, receiver: Receiver) -> Values {
        let mut returned = ValueSet::default();
        let mut yielded = ValueSet::default();
        let mut is_generator = false;
        for given in names.given(scope) {
            let values = self.values(file, given.value, receiver);
            match given.how {
                ResultKind::Return => returned.extend(&values),
                ResultKind::Yield => {
                    is_generator = true;
                    yielded.extend(&values);
                }
                ResultKind::YieldFrom => {
                    is_generator = true;
                    for value in values.iter() {
                        yielded.extend(&self.element(*value));
                    }
                }
            }
        }
        if is_generator {
            let set = self.set(yielded.finish());
            return [Value::Sequence(set)].into();
        }
        returned.finish()
    }

    /// Returns the possible values of `value[...]`.
    pub(super) fn item(&mut self, value: Value) -> Values {
        match value {
            Value::Class(_) => [value].into(),
            Value::Outside(kind) => [Value::Outside(kind.held())].into(),
            Value::Sequence(set) => self.elements(set),
            Value::Instance(class) => {
                let elements = self.generic_elements(class);
                if elements.is_empty() {
                    return self.call_member(value, "__getitem__");
                }
                elements
            }
            Value::Tuple(_)
            | Value::Module(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Super { .. } => no_values(),
        }
    }

    /// Returns the element values of a class that inherits from a generic type (`class
    /// C(list[X])`).
    fn generic_elements(&mut self, class: Def) -> Values {
        let mut values = ValueSet::default();
        for class in self.line(class).classes.clone() {
            let names = self.names(class.file);
            let bases = names.class(class.symbol).map(|class| class.bases);
            for base in names.run(bases.unwrap_or_default()) {
                for base in self.annotation(class.file, *base, None).iter() {
                    if let Value::Sequence(set) = base {
                        values.extend(&self.elements(*set));
                    }
                }
            }
        }
        values.finish()
    }

    pub(super) fn part(&mut self, value: Value, index: usize) -> Values {
        match value {
            Value::Tuple(id) => {
                let elements = self.tuple_elements(id);
                elements.get(index).cloned().unwrap_or_else(no_values)
            }
            Value::Sequence(_)
            | Value::Instance(_)
            | Value::Outside(_)
            | Value::Class(_)
            | Value::Module(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Super { .. } => self.element(value),
        }
    }

    /// Returns the possible elements that iterating over a value yields.
    pub(super) fn element(&mut self, value: Value) -> Values {
        match value {
            Value::Sequence(set) => self.elements(set),
            Value::Outside(kind) => [Value::Outside(kind.held())].into(),
            Value::Tuple(id) => {
                let mut values = ValueSet::default();
                for element in self.tuple_elements(id) {
                    values.extend(&element);
                }
                values.finish()
            }
            Value::Instance(class) => {
                let mut values = ValueSet::default();
                values.extend(&self.generic_elements(class));
                for iterator in self.call_member(value, "__iter__").iter() {
                    values.extend(&self.next_of(*iterator));
                }
                values.finish()
            }
            Value::Class(_)
            | Value::Module(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Super { .. } => no_values(),
        }
    }

    /// Returns the values that an iterator yields.
    fn next_of(&mut self, iterator: Value) -> Values {
        match iterator {
            Value::Sequence(set) => self.elements(set),
            Value::Instance(_) => self.call_member(iterator, "__next__"),
            Value::Outside(kind) => [Value::Outside(kind.held())].into(),
            Value::Tuple(_)
            | Value::Class(_)
            | Value::Module(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Super { .. } => no_values(),
        }
    }

    /// Returns the values of `x` in `with value as x`. A generator is assumed to be decorated with
    /// `contextmanager`.
    pub(super) fn entered(&mut self, value: Value) -> Values {
        match value {
            Value::Sequence(set) => self.elements(set),
            Value::Instance(_) => {
                let values = self.call_member(value, "__enter__");
                if values.is_empty() {
                    return self.call_member(value, "__aenter__");
                }
                values
            }
            Value::Outside(kind) => [Value::Outside(kind.instance())].into(),
            Value::Tuple(_)
            | Value::Class(_)
            | Value::Module(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Super { .. } => no_values(),
        }
    }
}
