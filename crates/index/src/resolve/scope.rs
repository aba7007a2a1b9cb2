//! Resolves plain names to the scopes that bind them, and imports to their targets.

use std::rc::Rc;

use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{ModuleId, Target, Variable};
use crate::names::{
    Binding, BindingKind, Import, Imported, NameId, Names, Occurrence, ScopeId, ScopeKind,
};

/// Maximum length of a chain of re-exports to follow.
const MOST_HOPS: usize = 40;

/// The names of modules that were already visited while following imports, so that each name is
/// visited only once.
#[derive(Default)]
struct VisitedNames {
    passed: Vec<(ModuleId, String)>,
    hops: usize,
}

impl<S: Source> Resolver<'_, S> {
    /// Returns the scope that binds a plain name, or `None` for built-in and unknown names.
    pub(super) fn scope_of(names: &Names, found: &Occurrence) -> Option<ScopeId> {
        let mut id = found.scope;
        let mut is_first = true;
        loop {
            let scope = names.scope(id)?;
            let bindings = names.bindings(id, found.name);
            let declared = bindings.iter().find_map(|binding| match binding.kind {
                BindingKind::Global => Some(ScopeId::MODULE),
                BindingKind::Nonlocal => Some(scope.parent),
                BindingKind::Import(_)
                | BindingKind::Class(_)
                | BindingKind::Function(_)
                | BindingKind::Parameter { .. }
                | BindingKind::Value { .. }
                | BindingKind::Attribute { .. } => None,
            });
            if declared == Some(ScopeId::MODULE) {
                return Some(ScopeId::MODULE);
            }
            // Code in a class body sees only the names that are bound further above, and methods do
            // not see the names of the class body at all.
            let is_own =
                |binding: &&Binding| !matches!(binding.kind, BindingKind::Attribute { .. });
            let sees = |binding: &Binding| match scope.kind {
                ScopeKind::Class => is_first && is_own(&binding) && names.is_set(binding, found.at),
                ScopeKind::Module
                | ScopeKind::Function
                | ScopeKind::Lambda
                | ScopeKind::Comprehension => true,
            };
            if declared.is_none() && bindings.iter().any(sees) {
                return Some(id);
            }
            if id == ScopeId::MODULE {
                return None;
            }
            // Before a class body binds a name, it reads the name from the module, not from an enclosing
            // function.
            let is_of_class = scope.kind == ScopeKind::Class && is_first;
            let sees_module =
                is_of_class && declared.is_none() && bindings.iter().any(|one| is_own(&one));
            is_first = false;
            id = match sees_module {
                true => ScopeId::MODULE,
                false => scope.parent,
            };
        }
    }

    /// Returns the targets of a plain name, from its scope or from star imports.
    pub(super) fn plain_targets(&mut self, file: FileId, found: &Occurrence) -> Vec<Target> {
        let names = self.names(file);
        match Self::scope_of(&names, found) {
            Some(scope) => {
                let name = found.name;
                self.followed(Variable { file, scope, name }).to_vec()
            }
            None => {
                let module = self.module_of_file(file);
                let name = names.name(found.name).to_owned();
                let mut targets = Vec::new();
                self.starred(module, &name, &mut VisitedNames::default(), &mut targets);
                if targets.is_empty() {
                    targets.push(Target::Outside);
                }
                targets
            }
        }
    }

    /// Returns the targets of a variable, using the cache.
    fn followed(&mut self, variable: Variable) -> Rc<[Target]> {
        if let Some(targets) = self.followed.get(&variable) {
            return targets.clone();
        }
        let mut targets = Vec::new();
        self.follow(variable, &mut VisitedNames::default(), &mut targets);
        let targets: Rc<[Target]> = targets.into();
        self.followed.insert(variable, targets.clone());
        targets
    }

    /// Follows the imports that bind a variable.
    fn follow(&mut self, variable: Variable, trail: &mut VisitedNames, into: &mut Vec<Target>) {
        let names = self.names(variable.file);
        let mut is_own = false;
        for binding in names.bindings(variable.scope, variable.name) {
            match binding.kind {
                BindingKind::Import(id) => {
                    if let Some(import) = names.import(id) {
                        self.follow_import(variable.file, &names, import, trail, into);
                    }
                }
                BindingKind::Class(_)
                | BindingKind::Function(_)
                | BindingKind::Parameter { .. }
                | BindingKind::Value { .. }
                | BindingKind::Attribute { .. }
                | BindingKind::Global
                | BindingKind::Nonlocal => is_own = true,
            }
        }
        if is_own {
            add(into, Target::Variable(variable));
        }
    }

    fn follow_import(
        &mut self,
        file: FileId,
        names: &Names,
        import: &Import,
        trail: &mut VisitedNames,
        into: &mut Vec<Target>,
    ) {
        let parts = import.parts as usize;
        let wanted = match import.what {
            Imported::First => parts.min(1),
            Imported::Whole | Imported::Name(_) | Imported::Star => parts,
        };
        let module = self.imported_module(file, names, import, wanted);
        match (module, import.what) {
            (None, _) => add(into, Target::Outside),
            (Some(module), Imported::First | Imported::Whole | Imported::Star) => {
                add(into, Target::Module(module));
            }
            (Some(module), Imported::Name(name)) => {
                let name = names.name(name).to_owned();
                let before = into.len();
                self.member_of_module(module, &name, trail, into);
                if into.len() == before {
                    add(into, Target::Outside);
                }
            }
        }
    }

    /// Returns the targets of an import.
    pub(super) fn import_targets(&mut self, file: FileId, import: &Import) -> Vec<Target> {
        let names = self.names(file);
        let mut targets = Vec::new();
        self.follow_import(
            file,
            &names,
            import,
            &mut VisitedNames::default(),
            &mut targets,
        );
        targets
    }

    /// Returns the targets of `module.name`.
    pub(super) fn module_targets(&mut self, module: ModuleId, name: &str) -> Vec<Target> {
        let mut targets = Vec::new();
        self.member_of_module(module, name, &mut VisitedNames::default(), &mut targets);
        targets
    }

    fn member_of_module(
        &mut self,
        module: ModuleId,
        name: &str,
        trail: &mut VisitedNames,
        into: &mut Vec<Target>,
    ) {
        let step = (module, name.to_owned());
        if trail.hops == MOST_HOPS || trail.passed.contains(&step) {
            return;
        }
        trail.passed.push(step);
        trail.hops += 1;
        self.pass(module, name, trail, into);
        trail.hops -= 1;
    }

    fn pass(
        &mut self,
        module: ModuleId,
        name: &str,
        trail: &mut VisitedNames,
        into: &mut Vec<Target>,
    ) {
        let before = into.len();
        if let Some(file) = self.module_file(module) {
            let names = self.names(file);
            let id = names.find(name);
            let bound = id.filter(|id| !names.bindings(ScopeId::MODULE, *id).is_empty());
            if let Some(name) = bound {
                let scope = ScopeId::MODULE;
                let variable = Variable { file, scope, name };
                // `from . import x` in a package binds its own module `x`.
                if self.imports_itself(&names, variable) {
                    if let Some(module) = self.submodule(module, names.name(name)) {
                        add(into, Target::Module(module));
                    }
                } else {
                    self.follow(variable, trail, into);
                }
            } else {
                self.starred(module, name, trail, into);
            }
        }
        if into.len() == before
            && let Some(module) = self.submodule(module, name)
        {
            add(into, Target::Module(module));
        }
    }

    /// Returns whether a variable's only binding imports the same name from its own module.
    fn imports_itself(&mut self, names: &Names, variable: Variable) -> bool {
        let [binding] = names.bindings(variable.scope, variable.name) else {
            return false;
        };
        let BindingKind::Import(id) = binding.kind else {
            return false;
        };
        let Some(import) = names.import(id).copied() else {
            return false;
        };
        let parts = import.parts as usize;
        let module = self.imported_module(variable.file, names, &import, parts);
        import.what == Imported::Name(variable.name)
            && module.and_then(|module| self.module_file(module)) == Some(variable.file)
    }

    /// Adds the targets that a module's star imports bind to a name.
    fn starred(
        &mut self,
        module: ModuleId,
        name: &str,
        trail: &mut VisitedNames,
        into: &mut Vec<Target>,
    ) {
        let Some(file) = self.module_file(module).filter(|_| !name.starts_with('_')) else {
            return;
        };
        let names = self.names(file);
        for import in names.imports() {
            if import.what != Imported::Star || import.scope != ScopeId::MODULE {
                continue;
            }
            let parts = import.parts as usize;
            if let Some(module) = self.imported_module(file, &names, import, parts) {
                self.member_of_module(module, name, trail, into);
            }
        }
    }

    /// Returns the variable of a name in a scope of a file, if the scope binds it.
    pub(super) fn bound(&mut self, file: FileId, scope: ScopeId, name: &str) -> Option<Variable> {
        let names = self.names(file);
        let name: NameId = names.find(name)?;
        let is_bound = !names.bindings(scope, name).is_empty();
        is_bound.then_some(Variable { file, scope, name })
    }
}

fn add(into: &mut Vec<Target>, target: Target) {
    if !into.contains(&target) {
        into.push(target);
    }
}
