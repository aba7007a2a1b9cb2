//! Finds calls with a certain callee: the called expression can mean only one definition, or the
//! object can have only one of several known methods.

use rustc_hash::FxHashSet;

use super::eval::{is_same_chain, method};
use super::reach::CallReceiver;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, ModuleId, Target, Value, Variable};
use crate::names::{
    Binding, BindingKind, Expr, ExprContent, ExprId, FunctionRole, Imported, Names, OccurrenceId,
    ParameterPosition, Role, ScopeId,
};
use starling_syntax::{Receiver, SymbolPath};

/// Maximum number of steps from a called expression to its definition.
const STEPS_MOST: u32 = 16;
/// Decorators that leave the parameters of a function as they are.
const KEEP_PARAMETERS: [&str; 7] = [
    "abstractmethod",
    "asynccontextmanager",
    "classmethod",
    "contextmanager",
    "final",
    "override",
    "staticmethod",
];
/// Decorators that leave a class and its constructor as they are. `dataclass` is handled
/// separately.
const KEEP_CLASS: [&str; 3] = ["final", "runtime_checkable", "total_ordering"];
/// Base classes from outside the workspace with which a class still creates its objects by its own
/// `__init__`.
const PLAIN_BASES: [&str; 3] = ["ABC", "Protocol", "object"];
/// Methods to which Python passes the first argument in a special way.
const SPECIAL: [&str; 3] = ["__new__", "__init_subclass__", "__class_getitem__"];

/// A call whose callee is certain, or is certainly one of several methods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SureCall {
    /// Byte offset of the called name.
    pub at: u32,
    pub line: u32,
    /// The symbol that contains the call.
    pub symbol: SymbolPath,
    pub name: String,
    /// The callee. If several methods can be called, the first one.
    pub callee: Callee,
    file: FileId,
    /// The objects on which a method is called, if a subclass of their class may override the
    /// method.
    objects: Vec<CallReceiver>,
}

/// The function or class that a call calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Callee {
    Function {
        path: SymbolPath,
        receiver: Receiver,
    },
    /// A class with an `__init__`. `line` lists the classes in which `__init__` was looked up.
    Class {
        class: SymbolPath,
        init: SymbolPath,
        line: Vec<SymbolPath>,
    },
    /// A data class. `line` lists the data classes that define its fields, base classes first.
    DataClass {
        class: SymbolPath,
        line: Vec<SymbolPath>,
    },
}

impl Callee {
    /// Returns the symbol that the call names: the function, or the class.
    pub fn named(&self) -> &SymbolPath {
        match self {
            Callee::Function { path, .. } => path,
            Callee::Class { class, .. } | Callee::DataClass { class, .. } => class,
        }
    }
}

/// A callee, and the objects on which it is called, if it is a method that a subclass may override.
type CalledOn = (Callee, Vec<CallReceiver>);

/// The value of an expression, if it is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CertainValue {
    Module(ModuleId),
    Class(Def),
    /// A class or a class that inherits from it, as the value of `cls`.
    SomeClass(Def),
    /// An object of exactly this class, not of a subclass.
    Made(Def),
    /// An object of this class or of a subclass.
    Instance(Def),
    Super(Def),
    Function(Def, FunctionAccess),
}

/// The expression through which a function is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FunctionAccess {
    Plain,
    /// Through exactly this class, as in `Class.method`.
    Class,
    /// Through an object. Subclasses may override the method, unless `None` says that the class of
    /// the object is exactly known.
    Object(Option<CallReceiver>),
    SomeClass(CallReceiver),
}

impl<S: Source> Resolver<'_, S> {
    /// Returns the calls in a file whose callee is certain, if `wanted` selects the called name. If
    /// `guessed` selects the name and the calling symbol, also returns the calls of methods on
    /// objects whose possible methods are all known.
    pub(crate) fn sure_calls(
        &mut self,
        file: FileId,
        wanted: &dyn Fn(&str) -> bool,
        guessed: &dyn Fn(&str, &SymbolPath) -> bool,
    ) -> Vec<SureCall> {
        self.start();
        let names = self.names(file);
        let mut found = Vec::new();
        for (index, one) in names.occurrences().iter().enumerate() {
            let name = names.name(one.name);
            if one.role != Role::Call || !wanted(name) || self.is_exhausted() {
                continue;
            }
            let called = ExprId::of(OccurrenceId(index as u32));
            let Some(symbol) = self.source.symbol(file, names.owner(one.at)) else {
                continue;
            };
            let mut callee = self.callee(file, called);
            if callee.is_none() && one.receiver().is_some() && guessed(name, &symbol) {
                callee = self.method_of(file, one.receiver(), name);
            }
            let Some((callee, objects)) = callee else {
                continue;
            };
            found.push(SureCall {
                at: one.at,
                line: names.line(one.at),
                symbol,
                name: name.to_owned(),
                callee,
                file,
                objects,
            });
        }
        found
    }

    /// Returns each symbol of a file with the names of the methods that it calls.
    pub(crate) fn method_calls(&mut self, file: FileId) -> FxHashSet<(SymbolPath, String)> {
        let names = self.names(file);
        let calls = names.occurrences().iter();
        let calls = calls.filter(|one| one.role == Role::Call && one.receiver().is_some());
        let calls = calls.filter_map(|one| {
            let symbol = self.source.symbol(file, names.owner(one.at))?;
            Some((symbol, names.name(one.name).to_owned()))
        });
        calls.collect()
    }

    /// Returns the first of the methods that a call on an object can reach, and the objects on
    /// which it is called.
    fn method_of(&mut self, file: FileId, receiver: ExprId, name: &str) -> Option<CalledOn> {
        let objects = match self.sure(file, receiver, STEPS_MOST) {
            Some(CertainValue::Super(class)) => vec![CallReceiver::Super {
                after: class,
                of: class,
            }],
            Some(CertainValue::Instance(class)) => vec![CallReceiver::Object(class)],
            Some(
                CertainValue::Module(_)
                | CertainValue::Class(_)
                | CertainValue::SomeClass(_)
                | CertainValue::Made(_)
                | CertainValue::Function(..),
            ) => return None,
            // The inferred type may be incomplete, so the attribute name must also be unique to
            // known methods.
            None => {
                let known = !self.reachable(CallReceiver::Unknown, name, file).is_empty();
                known.then_some(())?;
                self.receiving(file, receiver)?
            }
        };
        let methods = self.methods(&objects, name, file)?;
        let path = methods.into_iter().next()?;
        let receiver = Receiver::Bound;
        Some((Callee::Function { path, receiver }, objects))
    }

    /// Returns the methods that a name can refer to on these objects, or `None` if it can also
    /// refer to something that is not a known method.
    fn methods(
        &mut self,
        objects: &[CallReceiver],
        name: &str,
        from: FileId,
    ) -> Option<Vec<SymbolPath>> {
        let mut found = Vec::new();
        for object in objects {
            for variable in self.reachable(*object, name, from) {
                let def = self.plain_method(variable)?;
                let path = self.path_of(def)?;
                if !found.contains(&path) {
                    found.push(path);
                }
            }
        }
        Some(found)
    }

    /// Returns the methods other than its callee that a call can reach, or `None` if it can also
    /// reach something that is not a known method.
    pub(crate) fn alternatives(&mut self, call: &SureCall) -> Option<Vec<SymbolPath>> {
        self.start();
        let mut found = Vec::new();
        for object in &call.objects {
            for variable in self.reachable(*object, &call.name, call.file) {
                let names = self.names(variable.file);
                let BindingKind::Function(symbol) =
                    only(names.bindings(variable.scope, variable.name))?.kind
                else {
                    return None;
                };
                let path = self.source.symbol(variable.file, symbol)?;
                if path != *call.callee.named() && !found.contains(&path) {
                    found.push(path);
                }
            }
        }
        Some(found)
    }

    /// Returns the names of these classes and of the classes that inherit from them.
    pub(crate) fn names_of_heirs(&mut self, classes: &[SymbolPath]) -> FxHashSet<String> {
        self.start();
        let mut names: FxHashSet<String> = classes
            .iter()
            .map(|one| one.base_name().to_owned())
            .collect();
        for class in classes {
            let Some((file, symbol)) = self.source.find(class) else {
                continue;
            };
            for heir in self.heirs(Def { file, symbol }).iter() {
                let path = self.path_of(*heir);
                names.extend(path.map(|path| path.base_name().to_owned()));
            }
        }
        names
    }

    /// Returns the aliases under which a file imports the names in `of`: `g` in
    /// `from m import f as g`.
    pub(crate) fn aliases(&mut self, file: FileId, of: &FxHashSet<String>) -> FxHashSet<String> {
        let names = self.names(file);
        let occurrences = names.occurrences();
        let pairs = occurrences.iter().zip(occurrences.iter().skip(1));
        let aliases = pairs.filter(|(one, next)| {
            one.role == Role::ImportedName
                && next.role == Role::Alias
                && next.import() == one.import()
                && of.contains(names.name(one.name))
        });
        let aliases = aliases.map(|(_, next)| names.name(next.name).to_owned());
        aliases.collect()
    }

    fn callee(&mut self, file: FileId, called: ExprId) -> Option<CalledOn> {
        match self.sure(file, called, STEPS_MOST)? {
            CertainValue::Class(class) => Some((self.constructor(class)?, Vec::new())),
            CertainValue::Function(def, access) => {
                let receiver = self.receiver(def, access)?;
                let objects = match access {
                    FunctionAccess::Plain | FunctionAccess::Class => None,
                    FunctionAccess::Object(object) => object,
                    FunctionAccess::SomeClass(object) => Some(object),
                };
                let path = self.path_of(def)?;
                let callee = Callee::Function { path, receiver };
                Some((callee, objects.into_iter().collect()))
            }
            CertainValue::Module(_)
            | CertainValue::SomeClass(_)
            | CertainValue::Made(_)
            | CertainValue::Instance(_)
            | CertainValue::Super(_) => None,
        }
    }

    /// Returns how a call passes the first parameter of a method: written as an argument, or bound
    /// to the object.
    fn receiver(&mut self, def: Def, access: FunctionAccess) -> Option<Receiver> {
        let names = self.names(def.file);
        let role = names.function(def.symbol)?.role;
        Some(match (role, access) {
            (FunctionRole::Property, _) | (FunctionRole::ClassMethod, FunctionAccess::Plain) => {
                return None;
            }
            (FunctionRole::StaticMethod, _)
            | (
                FunctionRole::Plain,
                FunctionAccess::Plain | FunctionAccess::Class | FunctionAccess::SomeClass(_),
            ) => Receiver::Given,
            (
                FunctionRole::ClassMethod,
                FunctionAccess::Class | FunctionAccess::SomeClass(_) | FunctionAccess::Object(_),
            )
            | (FunctionRole::Plain, FunctionAccess::Object(_)) => Receiver::Bound,
        })
    }

    /// Returns the `__init__` or the data class fields that determine the arguments of a call of
    /// the class.
    fn constructor(&mut self, class: Def) -> Option<Callee> {
        let line = self.line(class);
        let is_closed = self.is_closed(class);
        let mut passed = Vec::new();
        for (at, one) in line.classes.iter().enumerate() {
            let is_data = self.class_kind(*one)?;
            let is_first_or_whole = at == 0 || is_closed;
            if !is_first_or_whole || !self.has_plain_bases(*one) {
                return None;
            }
            let names = self.names(one.file);
            let scope = names.class(one.symbol)?.scope;
            if self.bound(one.file, scope, "__new__").is_some() {
                return None;
            }
            passed.push(self.path_of(*one)?);
            if let Some(init) = self.bound(one.file, scope, "__init__") {
                let BindingKind::Function(symbol) =
                    only(names.bindings(init.scope, init.name))?.kind
                else {
                    return None;
                };
                let def = Def {
                    file: one.file,
                    symbol,
                };
                self.keeps_parameters(def).then_some(())?;
                return Some(Callee::Class {
                    class: self.path_of(class)?,
                    init: self.path_of(def)?,
                    line: passed,
                });
            }
            if is_data {
                let rest = line.classes[at..].to_vec();
                return self.data_class(class, &rest);
            }
        }
        None
    }

    fn data_class(&mut self, class: Def, line: &[Def]) -> Option<Callee> {
        let mut fields = Vec::new();
        for one in line.iter().rev() {
            if !self.has_plain_bases(*one) {
                return None;
            }
            if self.class_kind(*one)? {
                fields.push(self.path_of(*one)?);
            }
        }
        let class = self.path_of(class)?;
        Some(Callee::DataClass {
            class,
            line: fields,
        })
    }

    /// Returns whether a class is a data class, or `None` if a decorator may change how the class
    /// creates its objects.
    fn class_kind(&mut self, class: Def) -> Option<bool> {
        let names = self.names(class.file);
        let decorators = names.class(class.symbol)?.decorators;
        let mut is_data = false;
        for decorator in names.run(decorators) {
            let called = decorator_function(&names, *decorator);
            let name = names.last_name(called);
            if name == "dataclass" && self.is_of_dataclasses(class.file, &names, called) {
                is_data = true;
            } else if !KEEP_CLASS.contains(&name) || !self.is_outside(class.file, called) {
                return None;
            }
        }
        Some(is_data)
    }

    fn is_of_dataclasses(&mut self, file: FileId, names: &Names, called: ExprId) -> bool {
        let Some(found) = called.as_occurrence().and_then(|id| names.occurrence(id)) else {
            return false;
        };
        if found.receiver().is_some() {
            return names.last_name(found.receiver()) == "dataclasses"
                && self.is_outside(file, called);
        }
        let binding = only(names.bindings(ScopeId::MODULE, found.name));
        let import = binding.and_then(|binding| match binding.kind {
            BindingKind::Import(id) => names.import(id),
            BindingKind::Class(_)
            | BindingKind::Function(_)
            | BindingKind::Parameter { .. }
            | BindingKind::Value { .. }
            | BindingKind::Attribute { .. }
            | BindingKind::Global
            | BindingKind::Nonlocal => None,
        });
        import.is_some_and(|import| {
            matches!(import.what, Imported::Name(_))
                && names.module_parts(import).eq(["dataclasses"])
        })
    }

    /// Returns whether an expression certainly refers to something outside the workspace.
    fn is_outside(&mut self, file: FileId, expr: ExprId) -> bool {
        let values = self.values(file, expr, None);
        let mut all = values.iter();
        !values.is_empty() && all.all(|value| matches!(value, Value::Outside(_)))
    }

    /// Returns whether the base classes from outside the workspace leave it to the `__init__` of
    /// the class how its objects are created.
    fn has_plain_bases(&mut self, class: Def) -> bool {
        let names = self.names(class.file);
        let bases = names.class(class.symbol).map(|class| class.bases);
        let bases = names.run(bases.unwrap_or_default()).to_vec();
        bases.into_iter().all(|base| {
            let base = match names.expr(base) {
                ExprContent::Built(Expr::Item(of, _)) => of,
                ExprContent::Built(_) | ExprContent::Occurrence(_) | ExprContent::Unknown => base,
            };
            let name = names.last_name(base);
            let is_plain = PLAIN_BASES.contains(&name)
                || name == "Generic"
                || name.ends_with("Error")
                || name.ends_with("Exception");
            let values = self.values(class.file, base, None);
            is_plain || matches!(*values, [Value::Class(_)])
        })
    }

    pub(super) fn keeps_parameters(&mut self, def: Def) -> bool {
        let names = self.names(def.file);
        let Some(function) = names.function(def.symbol) else {
            return false;
        };
        let decorators = names.run(function.decorators);
        decorators.iter().all(|decorator| {
            let is_call = decorator.as_occurrence().is_none();
            let name = names.last_name(*decorator);
            !is_call && KEEP_PARAMETERS.contains(&name) && self.is_outside(def.file, *decorator)
        })
    }

    /// Returns whether an expression certainly creates an object of one class, so that the object is of no
    /// subclass.
    pub(super) fn is_made(&mut self, file: FileId, expr: ExprId) -> bool {
        let value = self.sure(file, expr, STEPS_MOST);
        matches!(value, Some(CertainValue::Made(_)))
    }

    /// Returns the value of an expression, or `None` if it is not certain.
    fn sure(&mut self, file: FileId, expr: ExprId, steps: u32) -> Option<CertainValue> {
        let steps = steps.checked_sub(1)?;
        let names = self.names(file);
        match names.expr(expr) {
            ExprContent::Unknown => None,
            ExprContent::Occurrence(id) => self.sure_name(file, &names, id, steps),
            ExprContent::Built(Expr::Call(called)) => match self.sure(file, called, steps)? {
                CertainValue::Class(class) => {
                    self.constructor(class).map(|_| CertainValue::Made(class))
                }
                CertainValue::Function(def, _) => self.returned(def),
                CertainValue::Module(_)
                | CertainValue::SomeClass(_)
                | CertainValue::Made(_)
                | CertainValue::Instance(_)
                | CertainValue::Super(_) => None,
            },
            ExprContent::Built(Expr::Super(scope)) => {
                super::eval::class_around(file, &names, scope).map(CertainValue::Super)
            }
            ExprContent::Built(
                Expr::TypeOf(_)
                | Expr::Item(..)
                | Expr::Either(..)
                | Expr::Tuple(_)
                | Expr::List(_)
                | Expr::Part(..)
                | Expr::Element(_)
                | Expr::Entered(_)
                | Expr::Caught(_)
                | Expr::Literal
                | Expr::None,
            ) => None,
        }
    }

    /// Returns an object of the class in the return annotation of a function.
    fn returned(&mut self, def: Def) -> Option<CertainValue> {
        let names = self.names(def.file);
        let function = names.function(def.symbol)?;
        let is_decorated = !names.run(function.decorators).is_empty();
        let returns = function.returns;
        match is_decorated {
            true => None,
            false => self.annotated(def.file, returns),
        }
    }

    fn sure_name(
        &mut self,
        file: FileId,
        names: &Names,
        id: OccurrenceId,
        steps: u32,
    ) -> Option<CertainValue> {
        let found = *names.occurrence(id)?;
        let is_tested = names.narrowings().iter().any(|test| {
            let is_inside = test.start <= found.at && found.at < test.end;
            let mut tested = test.tested.as_occurrence().into_iter();
            is_inside && tested.any(|tested| is_same_chain(names, tested, id))
        });
        if is_tested {
            return None;
        }
        if found.receiver().is_some() {
            let object = self.sure(file, found.receiver(), steps)?;
            return self.sure_member(object, names.name(found.name), steps);
        }
        match Self::scope_of(names, &found) {
            Some(scope) => {
                let name = found.name;
                self.sure_variable(Variable { file, scope, name }, steps)
            }
            None => match *self.plain_targets(file, &found) {
                [Target::Variable(variable)] => self.sure_variable(variable, steps),
                _ => None,
            },
        }
    }

    fn sure_variable(&mut self, variable: Variable, steps: u32) -> Option<CertainValue> {
        let steps = steps.checked_sub(1)?;
        let Variable { file, scope, name } = variable;
        let names = self.names(file);
        let binding = *only(names.bindings(scope, name))?;
        let is_declared =
            |found: &crate::names::Occurrence| found.role == Role::Declared && found.name == name;
        if names.occurrences().iter().any(is_declared) {
            return None;
        }
        let is_of_class = self.is_class_scope(file, scope);
        match binding.kind {
            BindingKind::Import(id) => {
                let import = *names.import(id)?;
                match *self.import_targets(file, &import) {
                    [Target::Module(module)] => Some(CertainValue::Module(module)),
                    [Target::Variable(other)] if other != variable => {
                        self.sure_variable(other, steps)
                    }
                    _ => None,
                }
            }
            BindingKind::Class(symbol) => Some(CertainValue::Class(Def { file, symbol })),
            BindingKind::Function(symbol) => {
                let def = Def { file, symbol };
                let is_kept = self.keeps_parameters(def);
                is_kept.then_some(CertainValue::Function(def, FunctionAccess::Plain))
            }
            BindingKind::Parameter {
                place, annotation, ..
            } => match method(file, &names, scope).filter(|_| place == ParameterPosition::First) {
                Some((class, FunctionRole::Plain | FunctionRole::Property)) => {
                    Some(CertainValue::Instance(class))
                }
                Some((class, FunctionRole::ClassMethod)) => Some(CertainValue::SomeClass(class)),
                Some((_, FunctionRole::StaticMethod)) | None
                    if place != ParameterPosition::Rest =>
                {
                    self.annotated(file, annotation)
                }
                Some((_, FunctionRole::StaticMethod)) | None => None,
            },
            BindingKind::Value { annotation, value }
            | BindingKind::Attribute { annotation, value } => {
                let value = match annotation.is_some() {
                    true => self.annotated(file, annotation),
                    false => self.sure(file, value, steps),
                };
                // A function in the body of a class becomes a method.
                value.filter(|value| !is_of_class || !matches!(value, CertainValue::Function(..)))
            }
            BindingKind::Global | BindingKind::Nonlocal => None,
        }
    }

    /// Returns an object of the class in an annotation, if the annotation names only one class.
    fn annotated(&mut self, file: FileId, annotation: ExprId) -> Option<CertainValue> {
        match *self.annotation(file, annotation, None) {
            [Value::Instance(class)] if self.is_closed(class) => {
                Some(CertainValue::Instance(class))
            }
            _ => None,
        }
    }

    fn sure_member(
        &mut self,
        object: CertainValue,
        name: &str,
        steps: u32,
    ) -> Option<CertainValue> {
        match object {
            CertainValue::Module(module) => match *self.module_targets(module, name) {
                [Target::Variable(variable)] => self.sure_variable(variable, steps),
                [Target::Module(module)] => Some(CertainValue::Module(module)),
                _ => None,
            },
            CertainValue::Made(class) | CertainValue::Instance(class) => {
                self.member_of_line(object, class, 0, name, steps)
            }
            CertainValue::Class(class) | CertainValue::SomeClass(class) => {
                self.member_of_line(object, class, 0, name, steps)
            }
            CertainValue::Super(class) => self.member_of_line(object, class, 1, name, steps),
            CertainValue::Function(..) => None,
        }
    }

    /// Returns a member of `object`. The member is looked up in the method resolution order of
    /// `class`, starting at the index `first`.
    fn member_of_line(
        &mut self,
        object: CertainValue,
        class: Def,
        first: usize,
        name: &str,
        steps: u32,
    ) -> Option<CertainValue> {
        let line = self.line(class);
        let mut before = line.classes.iter().take(first);
        if SPECIAL.contains(&name) || before.any(|one| self.has_outside_base(*one)) {
            return None;
        }
        for one in line.classes.iter().skip(first) {
            self.class_kind(*one)?;
            let names = self.names(one.file);
            let scope = names.class(one.symbol)?.scope;
            let Some(variable) = self.bound(one.file, scope, name) else {
                match self.has_outside_base(*one) {
                    true => return None,
                    false => continue,
                }
            };
            let BindingKind::Function(symbol) =
                only(names.bindings(variable.scope, variable.name))?.kind
            else {
                return self.sure_variable(variable, steps);
            };
            let function = names.function(symbol)?;
            if function.role == FunctionRole::Property {
                let value = self.annotated(one.file, function.returns);
                return value.filter(|_| {
                    matches!(object, CertainValue::Made(_) | CertainValue::Instance(_))
                });
            }
            let CertainValue::Function(def, _) = self.sure_variable(variable, steps)? else {
                return None;
            };
            return Some(CertainValue::Function(def, access(object)));
        }
        None
    }

    fn path_of(&mut self, def: Def) -> Option<SymbolPath> {
        self.source.symbol(def.file, def.symbol)
    }
}

/// Returns how a member of `object` is accessed.
fn access(object: CertainValue) -> FunctionAccess {
    match object {
        CertainValue::Made(_) => FunctionAccess::Object(None),
        CertainValue::Instance(class) => FunctionAccess::Object(Some(CallReceiver::Object(class))),
        CertainValue::Super(class) => FunctionAccess::Object(Some(CallReceiver::Super {
            after: class,
            of: class,
        })),
        CertainValue::SomeClass(class) => FunctionAccess::SomeClass(CallReceiver::Object(class)),
        CertainValue::Class(_) => FunctionAccess::Class,
        CertainValue::Module(_) | CertainValue::Function(..) => FunctionAccess::Plain,
    }
}

pub(super) fn only(bindings: &[Binding]) -> Option<&Binding> {
    match bindings {
        [only] => Some(only),
        _ => None,
    }
}

/// Returns the function of a decorator: `d` for `@d` and for `@d(x)`.
fn decorator_function(names: &Names, decorator: ExprId) -> ExprId {
    match names.expr(decorator) {
        ExprContent::Built(Expr::Call(called)) => called,
        ExprContent::Built(_) | ExprContent::Occurrence(_) | ExprContent::Unknown => decorator,
    }
}
