//! Finds attributes of values of unknown type whose name is not defined anywhere in the workspace,
//! and names that were renamed in one definition but not in a related one.

use super::common_names::is_common;
use super::dangling::Dangling;
use super::module::is_standard;
use super::outside::OutsideKind;
use super::references::{Certainty, Use};
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, Value};
use crate::names::{NameId, Names, Occurrence, OccurrenceId, Role, ScopeId};
use starling_syntax::FilePath;

/// Base classes outside of the workspace that do not add attributes for subclasses to use.
const PLAIN_BASES: [&str; 8] = [
    "ABC",
    "Enum",
    "Exception",
    "Generic",
    "IntEnum",
    "NamedTuple",
    "Protocol",
    "object",
];

/// The body of a module or class: the file, and the class name or an empty string for the module.
pub(crate) type Body = (FileId, String);

impl<S: Source> Resolver<'_, S> {
    /// Returns whether a value of unknown type may have an attribute of this name: the workspace
    /// defines or assigns it, or types outside of the workspace commonly have it.
    pub(crate) fn is_attribute_of_some(&mut self, name: &str) -> bool {
        self.start();
        if is_common(name) {
            return true;
        }
        let files = self.source.mentioning(name);
        let holds = |this: &mut Self, file: FileId| {
            let names = this.names(file);
            let id = names.find(name);
            id.is_some_and(|id| this.has_another(file, &names, id, &[]))
        };
        files.into_iter().any(|file| holds(self, file)) || self.is_exhausted()
    }

    /// Returns the attributes in a file that are read from values of unknown type and whose names
    /// `wanted` selects.
    pub(crate) fn attributes_of_unknown(
        &mut self,
        file: FileId,
        wanted: &dyn Fn(&Names, &Occurrence) -> bool,
    ) -> Vec<Dangling> {
        self.start();
        let names = self.names(file);
        let mut found = Vec::new();
        for (index, one) in names.occurrences().iter().enumerate() {
            let is_read = matches!(one.role, Role::Read | Role::Call) && one.receiver().is_some();
            if !is_read || !wanted(&names, one) || self.is_exhausted() {
                continue;
            }
            let targets = self.targets(file, OccurrenceId(index as u32));
            let is_unknown = targets.is_unknown && targets.list.is_empty();
            if !is_unknown || self.may_be_made(file, &names, one) {
                continue;
            }
            found.push(self.attribute_place(file, &names, one));
        }
        found
    }

    /// Returns the reads of an attribute of this name on objects that may be of any class: objects of
    /// unknown type, unless common types have such an attribute, and objects that code from outside
    /// holds or returns.
    pub(crate) fn reads_of_any(&mut self, name: &str) -> Vec<Use> {
        self.reads(name, |this, file, id, _| {
            let targets = this.targets(file, id);
            let is_unknown = targets.is_unknown && targets.list.is_empty();
            targets.is_open || is_unknown && !is_common(name)
        })
    }

    /// Returns the reads of an attribute of this name on modules that code looks up at run time, as in
    /// `sys.modules["shop"].cart`, and on objects with the names of a module.
    pub(crate) fn reads_of_namespaces(&mut self, name: &str) -> Vec<Use> {
        let is_namespace = |value: &Value| *value == Value::Outside(OutsideKind::Namespace);
        self.reads(name, |this, file, _, one| {
            let values = this.values(file, one.receiver(), None);
            values.iter().any(is_namespace)
        })
    }

    /// Returns the reads of an attribute of this name for which `fits` returns true.
    fn reads(
        &mut self,
        name: &str,
        mut fits: impl FnMut(&mut Self, FileId, OccurrenceId, &Occurrence) -> bool,
    ) -> Vec<Use> {
        self.start();
        let mut found = Vec::new();
        for file in self.source.mentioning(name) {
            let names = self.names(file);
            let Some(id) = names.find(name) else {
                continue;
            };
            for (index, one) in names.occurrences().iter().enumerate() {
                let is_read = matches!(one.role, Role::Read | Role::Call);
                if one.name != id || !is_read || !one.receiver().is_some() {
                    continue;
                }
                let occurrence = OccurrenceId(index as u32);
                if fits(self, file, occurrence, one) {
                    found.extend(self.use_at(file, occurrence, Certainty::Possible));
                }
            }
        }
        found
    }

    /// Returns whether a class of the value may create the attribute at run time.
    fn may_be_made(&mut self, file: FileId, names: &Names, one: &Occurrence) -> bool {
        let values = self.values(file, one.receiver(), None);
        values.iter().any(|value| match value {
            Value::Class(class) | Value::Instance(class) => {
                self.has_not(*class, names.name(one.name)).is_none()
            }
            Value::Module(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Super { .. }
            | Value::Sequence(_)
            | Value::Tuple(_)
            | Value::Outside(_) => false,
        })
    }

    /// Returns the names that the classes of a file bind. Leaves out classes that have a base class
    /// from outside of the workspace, because the base class may also define the name.
    pub(crate) fn own_attributes(&mut self, file: FileId) -> Vec<Body> {
        self.start();
        let names = self.names(file);
        let mut bound = Vec::new();
        for class in names.classes() {
            let def = Def {
                file,
                symbol: class.symbol,
            };
            if self.has_foreign_base(def) {
                continue;
            }
            let of_class = names.bindings_of(class.scope).iter();
            bound.extend(of_class.map(|one| (file, names.name(one.name).to_owned())));
        }
        bound
    }

    fn has_foreign_base(&mut self, class: Def) -> bool {
        let line = self.line(class);
        if line.is_whole {
            return false;
        }
        let classes = line.classes.clone();
        classes.into_iter().any(|one| {
            let names = self.names(one.file);
            let bases = names.class(one.symbol).map(|class| class.bases);
            names.run(bases.unwrap_or_default()).iter().any(|base| {
                let values = self.values(one.file, *base, None);
                let is_own = values.iter().any(|value| matches!(value, Value::Class(_)));
                !is_own && !PLAIN_BASES.contains(&names.last_name(*base))
            })
        })
    }

    /// Returns the classes that bind a name. Returns nothing if common types from outside of the
    /// workspace also have an attribute of this name.
    pub(crate) fn classes_with(&mut self, name: &str) -> Vec<Body> {
        let mut bodies = match is_common(name) {
            true => Vec::new(),
            false => self.bodies_with(name),
        };
        bodies.retain(|(_, class)| !class.is_empty());
        bodies
    }

    /// Returns whether a class certainly has no attribute of this name, or does not exist.
    pub(crate) fn lacks_attribute(&mut self, class: &Body, name: &str) -> bool {
        self.start();
        let class = self.class_named(class);
        class.is_none_or(|class| self.has_not(class, name).is_some())
    }

    /// Returns whether a file imports installed packages but nothing of the workspace. Objects in
    /// such a file are likely objects of the packages.
    pub(crate) fn is_all_foreign(&mut self, file: FileId) -> bool {
        let (of_packages, is_own) = self.kinds_of_imports(file);
        of_packages && !is_own
    }

    /// Returns whether a file imports installed packages.
    pub(crate) fn imports_packages(&mut self, file: FileId) -> bool {
        self.kinds_of_imports(file).0
    }

    /// Returns whether a file imports installed packages, and whether it imports modules of the
    /// workspace.
    fn kinds_of_imports(&mut self, file: FileId) -> (bool, bool) {
        self.start();
        let names = self.names(file);
        let (mut of_packages, mut is_own) = (false, false);
        for import in names.imports() {
            let parts = import.parts as usize;
            let first = names.module_parts(import).next();
            if import.level > 0 || self.imported_module(file, &names, import, parts).is_some() {
                is_own = true;
            } else {
                of_packages |= first.is_some_and(|first| first != "pytest" && !is_standard(first));
            }
        }
        (of_packages, is_own)
    }

    /// Returns the bodies of modules and classes that bind a name.
    pub(crate) fn bodies_with(&mut self, name: &str) -> Vec<Body> {
        self.start();
        let mut bodies = Vec::new();
        for file in self.source.mentioning(name) {
            let bound = self.bound_names(file).into_iter();
            let of_name = bound.filter(|(_, bound)| bound == name);
            bodies.extend(of_name.map(|(body, _)| (file, body)));
        }
        bodies
    }

    /// Returns whether a name in one body is related to the same name in the other body. That is
    /// the case if one body is a class that inherits from the other, or if one is a module and the
    /// other is its stub.
    pub(crate) fn belong_together(&mut self, one: &Body, other: &Body) -> bool {
        let (a, b) = (self.path(one.0), self.path(other.0));
        if one.1 == other.1 && (is_stub_of(&a, &b) || is_stub_of(&b, &a)) {
            return true;
        }
        let classes = (self.class_named(one), self.class_named(other));
        let (Some(one), Some(other)) = classes else {
            return false;
        };
        let inherits = |this: &mut Self, one, other| this.line(one).classes.contains(&other);
        one != other && (inherits(self, one, other) || inherits(self, other, one))
    }

    pub(super) fn class_named(&mut self, (file, name): &Body) -> Option<Def> {
        let names = self.names(*file);
        let mut classes = names.classes().iter().map(|class| class.symbol);
        let symbol = classes.find(|symbol| {
            let path = self.source.symbol(*file, *symbol);
            path.is_some_and(|path| path.name == *name)
        })?;
        Some(Def {
            file: *file,
            symbol,
        })
    }

    /// Returns the line on which a body binds a name.
    pub(crate) fn line_of_binding(&mut self, body: &Body, name: &str) -> Option<u32> {
        let names = self.names(body.0);
        let scope = match self.class_named(body) {
            Some(class) => names.class(class.symbol)?.scope,
            None => ScopeId::MODULE,
        };
        let id: NameId = names.find(name)?;
        let binding = names.bindings(scope, id).first()?;
        let at = names.occurrence(binding.occurrence)?.at;
        Some(names.line(at))
    }
}

fn is_stub_of(stub: &FilePath, module: &FilePath) -> bool {
    stub.as_str().strip_suffix('i') == Some(module.as_str())
}
