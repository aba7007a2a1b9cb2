//! Finds unresolved names: imports that a module does not define, and attributes that a module or
//! class of the workspace does not have.

use rustc_hash::FxHashSet;

use super::class::Member;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, ModuleId, Target, Value};
use crate::names::{
    Imported, Names, Occurrence, OccurrenceId, Role, ScopeId, SymbolNumber, is_always_defined,
};
use starling_syntax::{FilePath, SymbolPath};

/// A module that mentions one of these words may define names at run time.
const MAKES_NAMES: [&str; 6] = [
    "__getattr__",
    "__dict__",
    "exec",
    "globals",
    "setattr",
    "vars",
];
/// A class in a module that mentions one of these words may define attributes at run time.
const MAKES_ATTRIBUTES: [&str; 7] = [
    "__getattr__",
    "__getattribute__",
    "__dict__",
    "metaclass",
    "setattr",
    "type",
    "vars",
];
/// A package that mentions one of these words may have modules that are not in its directory.
const MAKES_MODULES: [&str; 3] = ["__path__", "import_module", "modules"];
/// Maximum depth of star imports to follow.
const STARS_DEEP: usize = 4;

/// An unresolved name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dangling {
    pub file: FilePath,
    /// Line of the name, counted from 1.
    pub line: u32,
    /// Byte offset in the file.
    pub offset: u32,
    /// The symbol that contains the name.
    pub symbol: SymbolPath,
    pub name: String,
    pub of: Holder,
}

/// The module or class that lacks the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Module(FilePath),
    /// The name is listed in the `__all__` of the module that lacks it.
    Exporting(FilePath),
    Class(SymbolPath),
    /// The name is that of this module, which was removed.
    Removed(FilePath),
    /// The type of the value is unknown, but nothing in the workspace has such an attribute.
    Unknown,
}

impl<S: Source> Resolver<'_, S> {
    /// Returns the unresolved names of a file among those that `wanted` selects. Excludes names
    /// that may be defined at run time or outside the workspace.
    pub(crate) fn dangling(
        &mut self,
        file: FileId,
        wanted: &dyn Fn(&Names, &Occurrence) -> bool,
    ) -> Vec<Dangling> {
        self.start();
        let names = self.names(file);
        let mut found = Vec::new();
        for (index, one) in names.occurrences().iter().enumerate() {
            if !wanted(&names, one) || self.is_exhausted() {
                continue;
            }
            let holder = match one.role {
                Role::ImportedName => self.imported_from_nowhere(file, &names, one),
                Role::Read | Role::Call if one.receiver().is_some() => {
                    self.attribute_of_none(file, &names, OccurrenceId(index as u32))
                }
                Role::Read | Role::Call => self.starred_from_nowhere(file, &names, one),
                Role::Store
                | Role::Delete
                | Role::Definition
                | Role::Parameter
                | Role::Keyword
                | Role::Alias
                | Role::Declared => None,
                Role::ImportedModule => {
                    self.imported_module_of_none(file, &names, OccurrenceId(index as u32))
                }
                Role::Export => self.exported_from_nowhere(file, &names, one),
            };
            let Some(of) = holder else { continue };
            found.push(self.dangling_at(file, &names, one, of));
        }
        found
    }

    /// Describes an occurrence of a name that has no definition.
    pub(super) fn dangling_at(
        &mut self,
        file: FileId,
        names: &Names,
        one: &Occurrence,
        of: Holder,
    ) -> Dangling {
        let path = self.path(file);
        let symbol = self.source.symbol(file, names.owner(one.at));
        Dangling {
            line: names.line(one.at),
            offset: one.at,
            symbol: symbol.unwrap_or_else(|| SymbolPath::module(path.clone())),
            name: names.name(one.name).to_owned(),
            file: path,
            of,
        }
    }

    /// Returns the names that the module body and the classes of a file bind.
    pub(crate) fn bound_names(&mut self, file: FileId) -> FxHashSet<(String, String)> {
        let names = self.names(file);
        let mut bound = FxHashSet::default();
        let mut add = |of: &str, scope| {
            for binding in names.bindings_of(scope) {
                bound.insert((of.to_owned(), names.name(binding.name).to_owned()));
            }
        };
        add("", ScopeId::MODULE);
        for class in names.classes() {
            if let Some(symbol) = self.source.symbol(file, class.symbol) {
                add(&symbol.name, class.scope);
            }
        }
        bound
    }

    fn imported_from_nowhere(
        &mut self,
        file: FileId,
        names: &Names,
        one: &Occurrence,
    ) -> Option<Holder> {
        let import = names.import(one.import()?)?;
        if !matches!(import.what, Imported::Name(_)) {
            return None;
        }
        let module = self.imported_module(file, names, import, import.parts as usize)?;
        self.lacks(module, names.name(one.name))
    }

    /// Returns the package of the workspace that certainly does not contain the submodule at `id`, as
    /// `gone` in `from package.gone import f`.
    fn imported_module_of_none(
        &mut self,
        file: FileId,
        names: &Names,
        id: OccurrenceId,
    ) -> Option<Holder> {
        let import = names.import(names.occurrence(id)?.import()?)?;
        let at = (id.0.checked_sub(import.module.0)?) as usize;
        let package = self.package_of_part(file, names, import, at)?;
        let body = self.module_file(package)?;
        let name = names.name(names.occurrence(id)?.name);
        let is_package = self.path(body).name().starts_with("__init__.");
        if !is_package || self.submodule(package, name).is_some() {
            return None;
        }
        let of_body = self.names(body);
        let has_path = MAKES_MODULES
            .iter()
            .any(|word| of_body.find(word).is_some());
        if has_path || self.makes_names(body, STARS_DEEP) {
            return None;
        }
        Some(Holder::Module(self.path(body)))
    }

    /// Returns the module of a file if a plain name in it is neither bound nor built in, and certainly no
    /// star import brings it.
    fn starred_from_nowhere(
        &mut self,
        file: FileId,
        names: &Names,
        one: &Occurrence,
    ) -> Option<Holder> {
        let name = names.name(one.name);
        let mut imports = names.imports().iter();
        let has_stars = imports.any(|import| import.what == Imported::Star);
        let is_bound = Self::scope_of(names, one).is_some();
        if !has_stars || is_bound || name.starts_with('_') || is_always_defined(name) {
            return None;
        }
        let is_there = self.plain_targets(file, one) != [Target::Outside];
        if is_there || self.makes_names(file, STARS_DEEP) {
            return None;
        }
        Some(Holder::Module(self.path(file)))
    }

    /// Returns the module of a file if the name in its `__all__` is certainly not one of its own.
    fn exported_from_nowhere(
        &mut self,
        file: FileId,
        names: &Names,
        one: &Occurrence,
    ) -> Option<Holder> {
        let module = self.module_of_file(file);
        // A stub file and its module are the same module, and only one of them is known to it.
        if self.module_file(module) != Some(file) {
            return None;
        }
        self.lacks(module, names.name(one.name))?;
        Some(Holder::Exporting(self.path(file)))
    }

    /// Returns the module if it certainly does not define a name. Otherwise returns `None`.
    fn lacks(&mut self, module: ModuleId, name: &str) -> Option<Holder> {
        let file = self.module_file(module)?;
        let is_there = name.starts_with("__") || !self.module_targets(module, name).is_empty();
        if is_there || self.makes_names(file, STARS_DEEP) {
            return None;
        }
        Some(Holder::Module(self.path(file)))
    }

    /// Returns whether a module may define names at run time.
    fn makes_names(&mut self, file: FileId, deep: usize) -> bool {
        let names = self.names(file);
        if MAKES_NAMES.iter().any(|word| names.find(word).is_some()) {
            return true;
        }
        let stars = names.imports().iter();
        let mut stars = stars.filter(|import| import.what == Imported::Star);
        stars.any(|import| {
            let module = self.imported_module(file, &names, import, import.parts as usize);
            match module.and_then(|module| self.module_file(module)) {
                Some(other) if deep > 0 && other != file => self.makes_names(other, deep - 1),
                Some(_) | None => true,
            }
        })
    }

    /// Returns the module or class that certainly lacks the attribute at `id`.
    fn attribute_of_none(
        &mut self,
        file: FileId,
        names: &Names,
        id: OccurrenceId,
    ) -> Option<Holder> {
        let one = names.occurrence(id)?;
        let name = names.name(one.name);
        if name.starts_with("__") {
            return None;
        }
        let values = self.values(file, one.receiver(), None);
        let mut holder = None;
        for value in values.iter() {
            let of = match value {
                Value::Module(module) => self.lacks(*module, name)?,
                Value::Class(class) | Value::Instance(class) => self.has_not(*class, name)?,
                Value::Function(..)
                | Value::Callable(_)
                | Value::Super { .. }
                | Value::Sequence(_)
                | Value::Tuple(_)
                | Value::Outside(_) => return None,
            };
            holder.get_or_insert(of);
        }
        holder
    }

    /// Returns the class if neither it nor its base classes can have a member of this name.
    /// Otherwise returns `None`.
    pub(super) fn has_not(&mut self, class: Def, name: &str) -> Option<Holder> {
        let is_missing = match self.member(class, name) {
            Member::Found(_) => false,
            Member::Missing => true,
            // Classes with `ABCMeta` have a method `register`.
            Member::Outside => name != "register" && self.is_closed(class),
        };
        if !is_missing {
            return None;
        }
        let line = self.line(class);
        for one in &line.classes {
            let names = self.names(one.file);
            let makes = MAKES_ATTRIBUTES.iter();
            let is_decorated = !names.run(names.class(one.symbol)?.decorators).is_empty();
            let is_set =
                |found: &Occurrence| found.role == Role::Store && names.name(found.name) == name;
            if is_decorated
                || makes.clone().any(|word| names.find(word).is_some())
                || names.occurrences().iter().any(is_set)
            {
                return None;
            }
        }
        let symbol: SymbolNumber = class.symbol;
        Some(Holder::Class(self.source.symbol(class.file, symbol)?))
    }
}
