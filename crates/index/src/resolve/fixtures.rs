//! Finds the parameters of tests and fixtures that take a pytest fixture, and the uses of these parameters.

use super::references::Certainty;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Target, Variable};
use crate::facts::is_test;
use crate::names::{
    Expr, ExprContent, ExprId, Function, Names, Occurrence, OccurrenceId, Role, ScopeId, ScopeKind,
};
use starling_syntax::FilePath;

impl<S: Source> Resolver<'_, S> {
    /// Returns whether a variable is a function that pytest passes to parameters of its name.
    pub(super) fn is_fixture(&mut self, variable: Variable) -> bool {
        let names = self.names(variable.file);
        let file = variable.file;
        let mut functions = names.functions().iter();
        functions.any(|one| {
            one.outer == variable.scope
                && is_decorated(&names, one, "fixture")
                && !is_renamed(&names, one)
                && self.variable_of(file, one.symbol) == Some(variable)
        })
    }

    /// Returns how certain it is that pytest passes a fixture to the parameter at `id`, or to the
    /// parameter that the variable at `id` refers to; `None` if it does not.
    pub(super) fn takes_fixture(
        &mut self,
        file: FileId,
        names: &Names,
        id: OccurrenceId,
        fixture: Variable,
    ) -> Option<Certainty> {
        let found = names.occurrence(id)?;
        if found.role != Role::Parameter {
            let id = Self::parameter_behind(names, found)?;
            return self.takes_fixture(file, names, id, fixture);
        }
        let mut functions = names.functions().iter();
        let function = functions.find(|one| one.scope == found.scope)?;
        let path = self.source.symbol(file, function.symbol)?;
        let is_of_fixture = is_decorated(names, function, "fixture");
        let is_of_test = path.base_name().starts_with("test") && is_test(&path.file);
        if !is_of_fixture && !is_of_test {
            return None;
        }
        let name = names.name(found.name);
        let is_own = (file, function.outer) == (fixture.file, fixture.scope);
        // A fixture that takes one of its own name takes the one that it replaces.
        let replaces = is_of_fixture && path.base_name() == name;
        let is_in_class = |scope| names.scope(scope).map(|one| one.kind) == Some(ScopeKind::Class);
        if is_in_class(function.outer) && !replaces {
            let is_bound = self.bound(file, function.outer, name).is_some();
            if is_bound {
                return is_own.then_some(Certainty::Certain);
            }
        }
        if fixture.scope != ScopeId::MODULE {
            return None;
        }
        let is_sure = self.is_visible(file, &path.file, name, replaces, fixture)?;
        // A value of `parametrize` may take the place of the fixture.
        match is_sure && !is_decorated(names, function, "parametrize") {
            true => Some(Certainty::Certain),
            false => Some(Certainty::Possible),
        }
    }

    /// Returns the parameter that a variable refers to.
    fn parameter_behind(names: &Names, found: &Occurrence) -> Option<OccurrenceId> {
        let is_variable = matches!(
            found.role,
            Role::Read | Role::Call | Role::Store | Role::Delete
        );
        if !is_variable || found.receiver().is_some() {
            return None;
        }
        let scope = Self::scope_of(names, found)?;
        let is_it = |one: &Occurrence| {
            one.role == Role::Parameter && one.scope == scope && one.name == found.name
        };
        let at = names.occurrences().iter().position(is_it)?;
        Some(OccurrenceId(at as u32))
    }

    /// Returns whether a module-level fixture is the one that functions of a file get: true if it is
    /// the nearest of its name, in the file or in a `conftest.py` beside or above it, and false if a
    /// plugin may provide it. Returns `None` if it is another one.
    fn is_visible(
        &mut self,
        file: FileId,
        path: &FilePath,
        name: &str,
        replaces: bool,
        fixture: Variable,
    ) -> Option<bool> {
        let mut places: Vec<FileId> = Vec::new();
        if !replaces {
            places.push(file);
        }
        let mut directory = Some(path.directory());
        while let Some(at) = directory {
            let conftest = match at {
                "" => "conftest.py".to_owned(),
                at => format!("{at}/conftest.py"),
            };
            places.extend(self.source.file(&conftest).filter(|one| *one != file));
            directory =
                (!at.is_empty()).then(|| at.rsplit_once('/').map_or("", |(above, _)| above));
        }
        for place in places {
            let module = self.module_of_file(place);
            let targets = self.module_targets(module, name);
            if !targets.is_empty() {
                return targets.contains(&Target::Variable(fixture)).then_some(true);
            }
        }
        let of = self.path(fixture.file);
        // The fixtures of test modules and of other directories are not plugins.
        let is_plugin = of.name() != "conftest.py" && !of.name().starts_with("test");
        is_plugin.then_some(false)
    }
}

/// Returns whether a function has a decorator of this name, called or not.
fn is_decorated(names: &Names, function: &Function, name: &str) -> bool {
    let mut decorators = names.run(function.decorators).iter();
    decorators.any(|one| names.last_name(callee(names, *one)) == name)
}

/// Returns whether the decorator of a fixture gives it another name than its function has.
fn is_renamed(names: &Names, function: &Function) -> bool {
    let decorators = names.run(function.decorators);
    let callees: Vec<ExprId> = decorators.iter().map(|one| callee(names, *one)).collect();
    names.occurrences().iter().any(|one| {
        let called = one.called();
        names.name(one.name) == "name" && called.is_some_and(|called| callees.contains(&called))
    })
}

fn callee(names: &Names, decorator: ExprId) -> ExprId {
    match names.expr(decorator) {
        ExprContent::Built(Expr::Call(callee)) => callee,
        ExprContent::Built(_) | ExprContent::Occurrence(_) | ExprContent::Unknown => decorator,
    }
}
