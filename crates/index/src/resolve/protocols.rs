//! Finds the classes that may implement a `Protocol` without inheriting from it: those that define
//! all of its methods.

use super::common_names::is_common;
use super::reach::{CallReceiver, IndirectAccess};
use super::references::Certainty;
use super::resolver::Resolver;
use super::source::Source;
use super::value::Def;
use crate::facts::is_test;
use crate::names::{
    BindingKind, Expr, ExprContent, NameId, Names, OccurrenceId, Role, ScopeId, SymbolNumber,
};
use starling_syntax::SymbolPath;

const PROTOCOL: &str = "Protocol";

impl<S: Source> Resolver<'_, S> {
    /// Returns the methods with the name of a method of a `Protocol`, in the classes that may
    /// implement the `Protocol` and do not inherit from it. Classes in tests are left out, and so is
    /// a `Protocol` whose only method has a common name.
    pub(crate) fn implementing(&mut self, method: &SymbolPath) -> Vec<SymbolPath> {
        self.start();
        let Some((own, class)) = self.member_of(method) else {
            return Vec::new();
        };
        if !self.is_protocol(class) {
            return Vec::new();
        }
        let name = self.names(own.file).name(own.name).to_owned();
        if is_common(&name) && self.methods_of_protocol(class).len() < 2 {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (other, symbol) in self.classes_defining(&name) {
            if is_test(&self.path(other.file)) || !self.may_implement(other, class) {
                continue;
            }
            found.extend(self.source.symbol(other.file, symbol));
        }
        found
    }

    /// Returns the calls and reads of a `Protocol`'s method that may reach this method, because its
    /// class may implement the `Protocol`.
    pub(crate) fn uses_through_protocols(&mut self, method: &SymbolPath) -> Vec<IndirectAccess> {
        self.start();
        let Some((own, class)) = self.member_of(method) else {
            return Vec::new();
        };
        let name = self.names(own.file).name(own.name).to_owned();
        let mut protocols = Vec::new();
        for (other, symbol) in self.classes_defining(&name) {
            if self.is_protocol(other) && self.may_implement(class, other) {
                protocols.push((other, symbol));
            }
        }
        let mut found = Vec::new();
        if protocols.is_empty() {
            return found;
        }
        for file in self.source.mentioning(&name) {
            let names = self.names(file);
            let id = names.find(&name);
            for (index, one) in names.occurrences().iter().enumerate() {
                let is_access =
                    matches!(one.role, Role::Call | Role::Read) && one.receiver().is_some();
                if !is_access || Some(one.name) != id || self.is_exhausted() {
                    continue;
                }
                let objects = self.receiving(file, one.receiver()).unwrap_or_default();
                let is_object = |protocol: Def| objects.contains(&CallReceiver::Object(protocol));
                let through = protocols.iter().find(|(protocol, _)| is_object(*protocol));
                let Some((protocol, symbol)) = through else {
                    continue;
                };
                let through = self.source.symbol(protocol.file, *symbol);
                let occurrence = OccurrenceId(index as u32);
                let access = self.use_at(file, occurrence, Certainty::Possible);
                found.extend(access.map(|access| IndirectAccess { access, through }));
            }
        }
        found
    }

    /// Returns the classes that define a method with this name, each with the method.
    fn classes_defining(&mut self, name: &str) -> Vec<(Def, SymbolNumber)> {
        let mut found = Vec::new();
        for file in self.source.mentioning(name) {
            let names = self.names(file);
            let Some(id) = names.find(name) else {
                continue;
            };
            for class in names.classes() {
                let symbol = class.symbol;
                let method = method_named(&names, class.scope, id);
                found.extend(method.map(|method| (Def { file, symbol }, method)));
            }
        }
        found
    }

    /// Returns whether a class has `Protocol` as a base class.
    fn is_protocol(&mut self, class: Def) -> bool {
        let names = self.names(class.file);
        let bases = names.class(class.symbol).map(|class| class.bases);
        let mut bases = names.run(bases.unwrap_or_default()).iter();
        bases.any(|base| {
            let base = match names.expr(*base) {
                ExprContent::Built(Expr::Item(of, _)) => of,
                ExprContent::Built(_) | ExprContent::Occurrence(_) | ExprContent::Unknown => *base,
            };
            names.last_name(base) == PROTOCOL
        })
    }

    /// Returns whether a class defines or inherits all methods of a `Protocol` and does not inherit
    /// from it.
    fn may_implement(&mut self, class: Def, protocol: Def) -> bool {
        if class == protocol || self.is_protocol(class) || self.are_related(protocol, class) {
            return false;
        }
        let line = self.line(class);
        let wanted = self.methods_of_protocol(protocol);
        let mut wanted = wanted.iter();
        wanted.all(|name| {
            let mut classes = line.classes.iter();
            classes.any(|one| self.defines(*one, name))
        })
    }

    /// Returns the names of the methods of a `Protocol` and of those from which it inherits.
    fn methods_of_protocol(&mut self, protocol: Def) -> Vec<String> {
        let mut found = Vec::new();
        for one in &self.line(protocol).classes {
            let names = self.names(one.file);
            let scope = names.class(one.symbol).map(|class| class.scope);
            let bindings = scope.map_or(&[][..], |scope| names.bindings_of(scope));
            let methods = bindings
                .iter()
                .filter(|binding| matches!(binding.kind, BindingKind::Function(_)));
            found.extend(methods.map(|method| names.name(method.name).to_owned()));
        }
        found
    }

    fn defines(&mut self, class: Def, name: &str) -> bool {
        let names = self.names(class.file);
        let scope = names.class(class.symbol).map(|class| class.scope);
        scope.is_some_and(|scope| self.bound(class.file, scope, name).is_some())
    }
}

fn method_named(names: &Names, scope: ScopeId, name: NameId) -> Option<SymbolNumber> {
    let mut bindings = names.bindings(scope, name).iter();
    bindings.find_map(|binding| match binding.kind {
        BindingKind::Function(symbol) => Some(symbol),
        BindingKind::Class(_)
        | BindingKind::Import(_)
        | BindingKind::Parameter { .. }
        | BindingKind::Value { .. }
        | BindingKind::Attribute { .. }
        | BindingKind::Global
        | BindingKind::Nonlocal => None,
    })
}
