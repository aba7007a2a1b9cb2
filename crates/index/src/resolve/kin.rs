//! Determines whether a method overrides a member of a base class, and whether an attribute with
//! the method's name can refer to anything else.

use super::common_names::is_common;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, Target, Variable};
use crate::names::{NameId, Names, Occurrence, OccurrenceId, Role, ScopeId, ScopeKind};
use starling_syntax::SymbolPath;

/// Whether a class member overrides a member of a base class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heritage {
    /// No base class has a member of that name. Symbols outside of classes are also `Own`.
    Own,
    /// A base class has a member of that name.
    Overrides,
    /// A base class is outside of the workspace, so its members are unknown.
    Unknown,
}

impl<S: Source> Resolver<'_, S> {
    pub fn heritage(&mut self, symbol: &SymbolPath) -> Heritage {
        self.start();
        let Some((variable, class)) = self.member_of(symbol) else {
            return Heritage::Own;
        };
        let name = self.names(variable.file).name(variable.name).to_owned();
        let line = self.line(class);
        let has_it = |this: &mut Self, base: &Def| {
            let names = this.names(base.file);
            let scope = names.class(base.symbol).map(|class| class.scope);
            scope.is_some_and(|scope| this.bound(base.file, scope, &name).is_some())
        };
        let bases = line.classes.iter().filter(|base| **base != class);
        if bases.into_iter().any(|base| has_it(self, base)) {
            return Heritage::Overrides;
        }
        match self.is_closed(class) {
            true => Heritage::Own,
            false => Heritage::Unknown,
        }
    }

    /// Returns whether an attribute with the name of these methods must be one of them wherever it is
    /// used: nothing else in the workspace defines or assigns the name, and types outside of the
    /// workspace do not commonly have it. The methods must have the same name.
    pub fn are_only_attributes(&mut self, methods: &[SymbolPath]) -> bool {
        let members = methods.iter().map(|method| Some(self.member_of(method)?.0));
        let Some(own) = members.collect::<Option<Vec<Variable>>>() else {
            return false;
        };
        let name = methods.first().map_or("", SymbolPath::base_name);
        let is_unknown = |method| self.heritage(method) == Heritage::Unknown;
        if is_common(name) || methods.iter().any(is_unknown) {
            return false;
        }
        let stubs: Vec<String> = methods.iter().map(|one| format!("{}i", one.file)).collect();
        for file in self.source.mentioning(name) {
            let names = self.names(file);
            let is_stub = stubs.iter().any(|stub| self.path(file).as_str() == stub);
            let id = names.find(name).filter(|_| !is_stub);
            if id.is_some_and(|id| self.has_another(file, &names, id, &own)) {
                return false;
            }
        }
        !self.is_exhausted()
    }

    /// Returns a class, its subclasses, and the base classes of all of these, as far as the workspace defines
    /// them.
    pub fn kin(&mut self, class: &SymbolPath) -> Vec<SymbolPath> {
        self.start();
        let Some((file, symbol)) = self.source.find(class) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for heir in self.heirs(Def { file, symbol }).iter() {
            for one in &self.line(*heir).classes {
                found.extend(self.source.symbol(one.file, one.symbol));
            }
        }
        found.sort();
        found.dedup();
        found
    }

    pub(super) fn member_of(&mut self, symbol: &SymbolPath) -> Option<(Variable, Def)> {
        let (file, number) = self.source.find(symbol)?;
        let variable = self.variable_of(file, number)?;
        Some((variable, self.class_of(variable)?))
    }

    /// Returns whether a file defines or assigns a variable that is not in `own` and that an attribute of
    /// this name can refer to.
    pub(super) fn has_another(
        &mut self,
        file: FileId,
        names: &Names,
        name: NameId,
        own: &[Variable],
    ) -> bool {
        let here = own.iter().filter(|own| own.file == file);
        let is_own = |scope: ScopeId| here.clone().any(|own| own.scope == scope);
        let kind = |scope: ScopeId| names.scope(scope).map(|scope| scope.kind);
        let classes = names.classes().iter().map(|class| class.scope);
        let mut scopes = std::iter::once(ScopeId::MODULE).chain(classes);
        if scopes.any(|scope| !is_own(scope) && !names.bindings(scope, name).is_empty()) {
            return true;
        }
        // A class itself must bind the name only once.
        if here
            .clone()
            .any(|own| names.bindings(own.scope, name).len() > 1)
        {
            return true;
        }
        let may_be = |this: &mut Self, (index, one): (usize, &Occurrence)| match one.role {
            Role::Store | Role::Delete => one.receiver().is_some(),
            Role::Keyword => !this.is_parameter(file, OccurrenceId(index as u32)),
            Role::Declared | Role::ImportedName | Role::Alias | Role::ImportedModule => true,
            Role::Definition => kind(one.scope) == Some(ScopeKind::Class) && !is_own(one.scope),
            Role::Read | Role::Call | Role::Parameter | Role::Export => false,
        };
        let all = names.occurrences().iter().enumerate();
        let mut all = all.filter(|(_, one)| one.name == name);
        all.any(|found| may_be(self, found))
    }

    /// Returns whether a keyword argument names a parameter of a function in the workspace.
    pub(super) fn is_parameter(&mut self, file: FileId, keyword: OccurrenceId) -> bool {
        let targets = self.targets(file, keyword).list;
        let of_function = |this: &mut Self, target: &Target| match target {
            Target::Variable(variable) => {
                let names = this.names(variable.file);
                let kind = names.scope(variable.scope).map(|scope| scope.kind);
                kind == Some(ScopeKind::Function)
            }
            Target::Module(_) | Target::Outside => false,
        };
        !targets.is_empty() && targets.iter().all(|target| of_function(self, target))
    }
}
