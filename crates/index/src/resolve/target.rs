//! Resolves the targets of an occurrence.

use super::class::Member;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Target, Value, Variable};
use crate::names::{Names, Occurrence, OccurrenceId, Role, ScopeId};

/// The variables and modules to which an occurrence can refer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Targets {
    pub(super) list: Vec<Target>,
    /// Whether the occurrence is an attribute of a value of unknown type, or an attribute that the
    /// known classes of the value lack. A subclass may have such an attribute: methods of a mixin
    /// use attributes that other classes define.
    pub(super) is_unknown: bool,
    /// Whether the occurrence is an attribute of an object that code from outside holds or returns,
    /// and that can be of the workspace: `flask.g.cart.total`.
    pub(super) is_open: bool,
}

impl Targets {
    fn of(list: Vec<Target>) -> Self {
        Targets {
            list,
            is_unknown: false,
            is_open: false,
        }
    }
}

impl<S: Source> Resolver<'_, S> {
    pub(super) fn targets(&mut self, file: FileId, id: OccurrenceId) -> Targets {
        let names = self.names(file);
        let Some(found) = names.occurrence(id).copied() else {
            return Targets::default();
        };
        let own = |scope| {
            let name = found.name;
            Targets::of(vec![Target::Variable(Variable { file, scope, name })])
        };
        match found.role {
            Role::Read | Role::Call | Role::Store | Role::Delete => {
                if found.receiver().is_some() {
                    self.attribute_targets(file, &names, &found)
                } else {
                    Targets::of(self.plain_targets(file, &found))
                }
            }
            Role::Definition | Role::Parameter => own(found.scope),
            Role::Declared | Role::Export => Targets::of(self.plain_targets(file, &found)),
            Role::Keyword => self.keyword_targets(file, &names, &found),
            Role::ImportedModule => self.module_part(file, &names, id, &found),
            Role::ImportedName | Role::Alias => {
                let import = found.import().and_then(|id| names.import(id));
                Targets::of(
                    import.map_or_else(Vec::new, |import| self.import_targets(file, import)),
                )
            }
        }
    }

    fn attribute_targets(&mut self, file: FileId, names: &Names, found: &Occurrence) -> Targets {
        let values = self.values(file, found.receiver(), None);
        let mut targets = Targets {
            list: Vec::new(),
            is_unknown: values.is_empty(),
            is_open: false,
        };
        let name = names.name(found.name);
        for value in values.iter() {
            targets.is_open |= match value {
                Value::Outside(kind) => kind.may_have(name),
                Value::Module(_)
                | Value::Class(_)
                | Value::Instance(_)
                | Value::Function(..)
                | Value::Callable(_)
                | Value::Super { .. }
                | Value::Sequence(_)
                | Value::Tuple(_) => false,
            };
            for target in self.member_targets(*value, name) {
                if !targets.list.contains(&target) {
                    targets.list.push(target);
                }
            }
        }
        targets.is_unknown |= targets.list.is_empty();
        targets
    }

    /// Returns the targets of `value.name`.
    fn member_targets(&mut self, value: Value, name: &str) -> Vec<Target> {
        let member = match value {
            Value::Module(module) => {
                let targets = self.module_targets(module, name);
                return if targets.is_empty() {
                    vec![Target::Outside]
                } else {
                    targets
                };
            }
            Value::Instance(class) | Value::Class(class) => self.member(class, name),
            Value::Super { after, of } => self.member_after(after, of, name),
            Value::Function(..)
            | Value::Callable(_)
            | Value::Sequence(_)
            | Value::Tuple(_)
            | Value::Outside(_) => Member::Outside,
        };
        match member {
            Member::Found(variable) => vec![Target::Variable(variable)],
            Member::Outside => vec![Target::Outside],
            Member::Missing => Vec::new(),
        }
    }

    /// Returns the parameter that a keyword argument names, or else the attribute of that name in
    /// the instantiated class.
    fn keyword_targets(&mut self, file: FileId, names: &Names, found: &Occurrence) -> Targets {
        let Some(called) = found.called() else {
            return Targets::default();
        };
        let name = names.name(found.name);
        let mut list = Vec::new();
        for value in self.values(file, called, None).iter() {
            let target = match value {
                Value::Function(def, _) => self.parameter(def.file, *def, name),
                Value::Class(class) => match self.member(*class, "__init__") {
                    Member::Found(init) => self.parameter_of(init, name),
                    Member::Outside | Member::Missing => match self.member(*class, name) {
                        Member::Found(attribute) => Some(attribute),
                        Member::Outside | Member::Missing => None,
                    },
                },
                Value::Module(_)
                | Value::Instance(_)
                | Value::Callable(_)
                | Value::Super { .. }
                | Value::Sequence(_)
                | Value::Tuple(_)
                | Value::Outside(_) => None,
            };
            list.extend(target.map(Target::Variable));
        }
        Targets::of(list)
    }

    fn parameter(&mut self, file: FileId, def: super::value::Def, name: &str) -> Option<Variable> {
        let names = self.names(file);
        let scope = names.function(def.symbol)?.scope;
        self.bound(file, scope, name)
    }

    fn parameter_of(&mut self, function: Variable, name: &str) -> Option<Variable> {
        let values = self.variable_values(function, None);
        values.iter().find_map(|value| match value {
            Value::Function(def, _) => self.parameter(def.file, *def, name),
            Value::Module(_)
            | Value::Class(_)
            | Value::Instance(_)
            | Value::Callable(_)
            | Value::Super { .. }
            | Value::Sequence(_)
            | Value::Tuple(_)
            | Value::Outside(_) => None,
        })
    }

    /// Returns the module that a dotted name in an import refers to, up to the part at `id`.
    fn module_part(
        &mut self,
        file: FileId,
        names: &Names,
        id: OccurrenceId,
        found: &Occurrence,
    ) -> Targets {
        let import = found.import().and_then(|import| names.import(import));
        let module = import.and_then(|import| {
            let place = id.0.checked_sub(import.module.0)? as usize;
            self.imported_module(file, names, import, place + 1)
        });
        Targets::of(vec![module.map_or(Target::Outside, Target::Module)])
    }

    /// Returns the variable that a symbol's definition binds.
    pub(super) fn variable_of(
        &mut self,
        file: FileId,
        symbol: crate::names::SymbolNumber,
    ) -> Option<Variable> {
        let names = self.names(file);
        let scope = match (names.class(symbol), names.function(symbol)) {
            (Some(class), _) => names.scope(class.scope)?.parent,
            (None, Some(function)) => function.outer,
            (None, None) => return None,
        };
        names.bindings_of(scope).iter().find_map(|binding| {
            use crate::names::BindingKind as Kind;
            let is_it = matches!(binding.kind, Kind::Class(number) | Kind::Function(number) if number == symbol);
            let name = binding.name;
            is_it.then_some(Variable { file, scope, name })
        })
    }

    /// Returns whether a scope is the body of a class.
    pub(super) fn is_class_scope(&mut self, file: FileId, scope: ScopeId) -> bool {
        let names = self.names(file);
        let kind = names.scope(scope).map(|scope| scope.kind);
        kind == Some(crate::names::ScopeKind::Class)
    }
}
