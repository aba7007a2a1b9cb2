//! Evaluates expressions to their possible values.

use super::class::Member;
use super::outside::{HOOKS, OutsideKind};
use super::resolver::{EvaluationKey, Receiver, Resolver, no_values};
use super::source::{FileId, Source};
use super::value::{Def, Target, Value, ValueSet, Values, Variable};
use crate::names::{
    Binding, BindingKind, Expr, ExprContent, ExprId, FunctionRole, Imported, Names, Occurrence,
    OccurrenceId, ParameterPosition, ScopeId, ScopeKind, SymbolNumber,
};

/// The function that returns an attribute by its name.
const BY_NAME: &str = "getattr";

impl<S: Source> Resolver<'_, S> {
    /// Returns the possible values of an expression; `receiver` is the class of `self` in it.
    pub(super) fn values(&mut self, file: FileId, expr: ExprId, receiver: Receiver) -> Values {
        let names = self.names(file);
        match names.expr(expr) {
            ExprContent::Unknown => no_values(),
            ExprContent::Occurrence(id) => self
                .remembered(EvaluationKey::Expr(file, expr, receiver), |this| {
                    this.occurrence_values(file, &names, id, receiver)
                }),
            ExprContent::Built(built) => self
                .remembered(EvaluationKey::Expr(file, expr, receiver), |this| {
                    this.built_values(file, built, receiver)
                }),
        }
    }

    fn occurrence_values(
        &mut self,
        file: FileId,
        names: &Names,
        id: OccurrenceId,
        receiver: Receiver,
    ) -> Values {
        let narrowed = self.narrowed(file, names, id, receiver);
        if !narrowed.is_empty() {
            return narrowed;
        }
        let Some(found) = names.occurrence(id).copied() else {
            return no_values();
        };
        let mut values = ValueSet::default();
        if found.receiver().is_some() {
            let name = names.name(found.name);
            for value in self.values(file, found.receiver(), receiver).iter() {
                let members = self.member_values(*value, name);
                values.extend(&members);
            }
        } else if let Some(scope) = Self::scope_of(names, &found) {
            let name = found.name;
            let kind = names.scope(scope).map(|scope| scope.kind);
            let is_inside = !matches!(kind, Some(ScopeKind::Module | ScopeKind::Class));
            let receiver = receiver.filter(|_| is_inside);
            let is_run = matches!(kind, Some(ScopeKind::Function | ScopeKind::Module));
            if is_run && runs_in(names, found.scope, scope) {
                let bindings = names.bindings(scope, name);
                for binding in names.reaching(bindings, found.at) {
                    values.extend(&self.binding_values(file, names, binding, receiver));
                }
            } else {
                let variable = Variable { file, scope, name };
                values.extend(&self.variable_values(variable, receiver));
            }
        } else {
            let kind = OutsideKind::unbound(names.name(found.name));
            for target in self.plain_targets(file, &found) {
                values.extend(&self.target_values(target, kind));
            }
        }
        values.finish()
    }

    /// Returns the values to which the `isinstance` tests around an occurrence narrow it.
    fn narrowed(
        &mut self,
        file: FileId,
        names: &Names,
        id: OccurrenceId,
        receiver: Receiver,
    ) -> Values {
        let Some(found) = names.occurrence(id) else {
            return no_values();
        };
        let mut values = ValueSet::default();
        for test in names.narrowings() {
            let holds = test.start <= found.at && found.at < test.end;
            let is_same = |tested| is_same_chain(names, tested, id);
            if holds && test.tested.as_occurrence().is_some_and(is_same) {
                for class in self.values(file, test.class, receiver).iter() {
                    values.extend(&self.instances(*class));
                }
            }
        }
        values.finish()
    }

    /// Returns an instance of a class, or of each class in a tuple.
    fn instances(&mut self, class: Value) -> Values {
        let mut values = ValueSet::default();
        values.extend(instance_of(class).as_slice());
        if let Value::Tuple(id) = class {
            for element in self.tuple_elements(id) {
                for class in element.iter() {
                    values.extend(instance_of(*class).as_slice());
                }
            }
        }
        values.finish()
    }

    /// Returns the values of a target, which are of this kind if it is outside of the workspace.
    pub(super) fn target_values(&mut self, target: Target, outside: OutsideKind) -> Values {
        match target {
            Target::Variable(variable) => self.variable_values(variable, None),
            Target::Module(module) => [Value::Module(module)].into(),
            Target::Outside => [Value::Outside(outside)].into(),
        }
    }

    /// Returns the possible values of a variable: the values of all its bindings.
    pub(super) fn variable_values(&mut self, variable: Variable, receiver: Receiver) -> Values {
        self.remembered(EvaluationKey::Variable(variable, receiver), |this| {
            let names = this.names(variable.file);
            let mut values = ValueSet::default();
            for binding in names.bindings(variable.scope, variable.name) {
                values.extend(&this.binding_values(variable.file, &names, binding, receiver));
            }
            values.finish()
        })
    }

    fn binding_values(
        &mut self,
        file: FileId,
        names: &Names,
        binding: &Binding,
        receiver: Receiver,
    ) -> Values {
        match binding.kind {
            BindingKind::Import(id) => {
                let mut values = ValueSet::default();
                if let Some(import) = names.import(id) {
                    let name = match import.what {
                        Imported::Name(name) => Some(names.name(name)),
                        Imported::First | Imported::Whole | Imported::Star => None,
                    };
                    let module = names.module_parts(import).next();
                    let kind = OutsideKind::imported(module, name);
                    for target in self.import_targets(file, import) {
                        values.extend(&self.target_values(target, kind));
                    }
                }
                values.finish()
            }
            BindingKind::Class(symbol) => [Value::Class(Def { file, symbol })].into(),
            BindingKind::Function(symbol) => self.decorated(Def { file, symbol }, None),
            BindingKind::Parameter {
                place,
                annotation,
                default,
            } => {
                if annotation.is_some() && place != ParameterPosition::Rest {
                    return self.annotation(file, annotation, receiver);
                }
                self.parameter_values(file, names, binding.scope, place, default, receiver)
            }
            BindingKind::Value { annotation, value }
            | BindingKind::Attribute { annotation, value } => {
                if annotation.is_some() {
                    self.annotation(file, annotation, receiver)
                } else {
                    self.values(file, value, receiver)
                }
            }
            BindingKind::Global => {
                let scope = ScopeId::MODULE;
                let name = binding.name;
                self.variable_values(Variable { file, scope, name }, None)
            }
            BindingKind::Nonlocal => no_values(),
        }
    }

    fn parameter_values(
        &mut self,
        file: FileId,
        names: &Names,
        scope: ScopeId,
        place: ParameterPosition,
        default: ExprId,
        receiver: Receiver,
    ) -> Values {
        if place == ParameterPosition::Rest {
            return [Value::Outside(OutsideKind::Container)].into();
        }
        if place == ParameterPosition::First
            && let Some((own, role)) = method(file, names, scope)
        {
            let class = receiver.unwrap_or(own);
            return match role {
                FunctionRole::Plain | FunctionRole::Property => [Value::Instance(class)].into(),
                FunctionRole::ClassMethod => [Value::Class(class)].into(),
                FunctionRole::StaticMethod => no_values(),
            };
        }
        let values = self.values(file, default, receiver);
        let told = values
            .iter()
            .filter(|value| matches!(value, Value::Instance(_)));
        told.copied().collect()
    }

    /// Returns the possible values of `value.name`.
    pub(super) fn member_values(&mut self, value: Value, name: &str) -> Values {
        match value {
            Value::Module(module) => {
                let mut values = ValueSet::default();
                let kind = OutsideKind::imported(None, Some(name));
                for target in self.module_targets(module, name) {
                    values.extend(&self.target_values(target, kind));
                }
                values.finish()
            }
            Value::Instance(class) if name == "__class__" => [Value::Class(class)].into(),
            Value::Instance(class) | Value::Class(class) => {
                let member = self.member(class, name);
                self.attribute_values(member, class, value)
            }
            Value::Super { after, of } => {
                let member = self.member_after(after, of, name);
                self.attribute_values(member, of, Value::Instance(of))
            }
            Value::Outside(kind) => [Value::Outside(kind.member(name))].into(),
            Value::Function(..) | Value::Callable(_) | Value::Sequence(_) | Value::Tuple(_) => {
                [Value::Outside(OutsideKind::Object)].into()
            }
        }
    }

    /// Returns the values of a member of `class` when it is accessed through `value`.
    fn attribute_values(&mut self, member: Member, class: Def, value: Value) -> Values {
        let variable = match member {
            Member::Found(variable) => variable,
            Member::Outside => return [Value::Outside(OutsideKind::Object)].into(),
            Member::Missing => return no_values(),
        };
        let file = variable.file;
        let names = self.names(file);
        let mut values = ValueSet::default();
        for binding in names.bindings(variable.scope, variable.name) {
            let BindingKind::Function(symbol) = binding.kind else {
                values.extend(&self.binding_values(file, &names, binding, Some(class)));
                continue;
            };
            let def = Def { file, symbol };
            let role = names.function(symbol).map(|function| function.role);
            if role == Some(FunctionRole::Property) {
                if matches!(value, Value::Instance(_)) {
                    values.extend(&self.returns(def, Some(class)));
                }
            } else {
                values.extend(&self.decorated(def, Some(class)));
            }
        }
        values.finish()
    }

    fn built_values(&mut self, file: FileId, expr: Expr, receiver: Receiver) -> Values {
        let mut values = ValueSet::default();
        match expr {
            // An attribute that is looked up by a string may be one of the workspace, so its value is
            // unknown and not `Outside`.
            Expr::Call(called) if self.names(file).last_name(called) == BY_NAME => {}
            Expr::Call(called) => {
                let has_hook = has_hook(&self.names(file), called);
                for value in self.values(file, called, receiver).iter() {
                    match value {
                        Value::Outside(OutsideKind::Closed) if has_hook => {
                            values.add(Value::Outside(OutsideKind::Any));
                        }
                        _ => values.extend(&self.call(*value)),
                    }
                }
            }
            Expr::TypeOf(of) => {
                for value in self.values(file, of, receiver).iter() {
                    values.extend(&self.member_values(*value, "__class__"));
                }
            }
            Expr::Super(scope) => {
                let names = self.names(file);
                if let Some(after) = class_around(file, &names, scope) {
                    let of = receiver.unwrap_or(after);
                    values.add(Value::Super { after, of });
                }
            }
            Expr::Item(base, _) => {
                for value in self.values(file, base, receiver).iter() {
                    values.extend(&self.item(*value));
                }
            }
            Expr::Either(a, b) => {
                values.extend(&self.values(file, a, receiver));
                values.extend(&self.values(file, b, receiver));
            }
            Expr::Tuple(run) => values.add(self.tuple((file, run, receiver))),
            Expr::List(first) => {
                let elements = self.values(file, first, receiver);
                let set = self.set(elements);
                values.add(Value::Sequence(set));
            }
            Expr::Part(of, index) => {
                for value in self.values(file, of, receiver).iter() {
                    values.extend(&self.part(*value, index as usize));
                }
            }
            Expr::Element(of) => {
                for value in self.values(file, of, receiver).iter() {
                    values.extend(&self.element(*value));
                }
            }
            Expr::Entered(of) => {
                for value in self.values(file, of, receiver).iter() {
                    values.extend(&self.entered(*value));
                }
            }
            Expr::Caught(class) => {
                for value in self.values(file, class, receiver).iter() {
                    values.extend(&self.instances(*value));
                }
            }
            Expr::Literal => values.add(Value::Outside(OutsideKind::Closed)),
            Expr::None => {}
        }
        values.finish()
    }
}

/// Returns whether a call has a keyword argument that tells it which objects to make. For `json.dumps`,
/// `cls` only tells it how to write them.
fn has_hook(names: &Names, called: ExprId) -> bool {
    if names.last_name(called).starts_with("dump") {
        return false;
    }
    let hooks: Vec<_> = HOOKS.iter().filter_map(|hook| names.find(hook)).collect();
    let is_hook = |one: &Occurrence| one.called() == Some(called) && hooks.contains(&one.name);
    !hooks.is_empty() && names.occurrences().iter().any(is_hook)
}

/// Returns an instance of a class, or `None` for a value that is not a class.
fn instance_of(class: Value) -> Option<Value> {
    match class {
        Value::Class(class) => Some(Value::Instance(class)),
        Value::Outside(kind) => Some(Value::Outside(kind.instance())),
        Value::Module(_)
        | Value::Instance(_)
        | Value::Function(..)
        | Value::Callable(_)
        | Value::Super { .. }
        | Value::Sequence(_)
        | Value::Tuple(_) => None,
    }
}

/// Returns whether a scope's code runs together with the code of the surrounding scope `outer`.
fn runs_in(names: &Names, mut id: ScopeId, outer: ScopeId) -> bool {
    while id != outer {
        match names.scope(id) {
            Some(scope) if scope.kind == ScopeKind::Comprehension => id = scope.parent,
            Some(_) | None => return false,
        }
    }
    true
}

/// Returns whether two occurrences are the same chain of names, such as `a.b.c`.
pub(super) fn is_same_chain(names: &Names, one: OccurrenceId, other: OccurrenceId) -> bool {
    let (Some(one), Some(other)) = (names.occurrence(one), names.occurrence(other)) else {
        return false;
    };
    if one.name != other.name {
        return false;
    }
    let (one, other) = (one.receiver(), other.receiver());
    match (one.as_occurrence(), other.as_occurrence()) {
        (Some(one), Some(other)) => is_same_chain(names, one, other),
        (None, None) => !one.is_some() && !other.is_some(),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Returns the class of a method, and the method's role. `scope` is the scope of the method.
pub(super) fn method(file: FileId, names: &Names, scope: ScopeId) -> Option<(Def, FunctionRole)> {
    let inner = names
        .scope(scope)
        .filter(|inner| inner.kind == ScopeKind::Function)?;
    let outer = names
        .scope(inner.parent)
        .filter(|outer| outer.kind == ScopeKind::Class)?;
    let role = names.function(inner.symbol)?.role;
    let symbol = outer.symbol;
    Some((Def { file, symbol }, role))
}

/// Returns the class whose method encloses a scope.
pub(super) fn class_around(file: FileId, names: &Names, scope: ScopeId) -> Option<Def> {
    let mut id = scope;
    while id != ScopeId::MODULE {
        let scope = names.scope(id)?;
        if scope.kind == ScopeKind::Class && scope.symbol != SymbolNumber(0) {
            let symbol = scope.symbol;
            return Some(Def { file, symbol });
        }
        id = scope.parent;
    }
    None
}
