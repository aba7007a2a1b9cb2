//! Finds the methods that a call on an object can reach: the methods of the object's class and of
//! its subclasses.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::calls::only;
use super::common_names::is_common;
use super::references::{Certainty, Use};
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, Target, Value, Variable};
use crate::facts::is_test;
use crate::names::{
    BindingKind, Expr, ExprContent, ExprId, FunctionRole, Names, Occurrence, OccurrenceId, Role,
};
use starling_syntax::SymbolPath;

/// Maximum number of subclasses of one class that are considered.
const HEIRS_MOST: usize = 400;
/// Base classes from outside the workspace without methods of their own.
const WITHOUT_METHODS: [&str; 4] = ["ABC", "Generic", "Protocol", "object"];

/// The object through which a method is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallReceiver {
    /// An object of this class or of a subclass.
    Object(Def),
    /// `super()` in the class `after`, for an object of the class `of` or of a subclass.
    Super { after: Def, of: Def },
    /// An object of unknown type.
    Unknown,
}

/// A call or a read of an attribute that names one method, but may reach a method that overrides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndirectAccess {
    pub access: Use,
    /// The method that the attribute names, usually a method of a base class. `None` if the object's class
    /// has no known method with that name.
    pub through: Option<SymbolPath>,
}

impl<S: Source> Resolver<'_, S> {
    /// Returns a class and the classes of the workspace that inherit from it.
    pub(super) fn heirs(&mut self, class: Def) -> Rc<[Def]> {
        if let Some(known) = self.heirs.get(&class) {
            return known.clone();
        }
        let mut found = vec![class];
        let mut known: FxHashSet<String> = FxHashSet::default();
        let mut next = 0;
        while let Some(one) = found.get(next).copied() {
            next += 1;
            let path = self.source.symbol(one.file, one.symbol);
            let name = path.map(|path| path.base_name().to_owned());
            let Some(name) = name.filter(|name| known.insert(name.clone())) else {
                continue;
            };
            for file in self.source.mentioning(&name) {
                let names = self.names(file);
                for symbol in names.classes().iter().map(|class| class.symbol) {
                    let heir = Def { file, symbol };
                    let is_new = found.len() < HEIRS_MOST && !found.contains(&heir);
                    if is_new && self.line(heir).classes.contains(&class) {
                        found.push(heir);
                    }
                }
            }
        }
        let found: Rc<[Def]> = found.into();
        self.heirs.insert(class, found.clone());
        found
    }

    /// Returns whether one object can be an instance of both classes: one class inherits from the
    /// other, or a third class inherits from both.
    pub(super) fn are_related(&mut self, class: Def, other: Def) -> bool {
        let heirs = self.heirs(class);
        heirs
            .iter()
            .any(|heir| self.line(*heir).classes.contains(&other))
    }

    /// Returns whether a class has a base class from outside the workspace that may have methods.
    pub(super) fn has_outside_base(&mut self, class: Def) -> bool {
        let names = self.names(class.file);
        let bases = names.class(class.symbol).map(|class| class.bases);
        let bases = names.run(bases.unwrap_or_default()).to_vec();
        bases.into_iter().any(|base| {
            let base = match names.expr(base) {
                ExprContent::Built(Expr::Item(of, _)) => of,
                ExprContent::Built(_) | ExprContent::Occurrence(_) | ExprContent::Unknown => base,
            };
            let values = self.values(class.file, base, None);
            let is_own = values.iter().any(|value| matches!(value, Value::Class(_)));
            !is_own && !WITHOUT_METHODS.contains(&names.last_name(base))
        })
    }

    /// Returns whether all methods of a class are known, because no base class from outside the
    /// workspace has methods.
    pub(super) fn is_closed(&mut self, class: Def) -> bool {
        let line = self.line(class);
        line.is_whole || !line.classes.iter().any(|one| self.has_outside_base(*one))
    }

    /// Returns the first of these classes' members with this name, in lookup order. Returns `None`
    /// if a base class from outside the workspace, which may define the name, comes earlier.
    fn first_member(&mut self, classes: &[Def], name: &str) -> Option<Variable> {
        for class in classes {
            let names = self.names(class.file);
            let scope = names.class(class.symbol)?.scope;
            if let Some(variable) = self.bound(class.file, scope, name) {
                return Some(variable);
            }
            if self.has_outside_base(*class) {
                return None;
            }
        }
        None
    }

    /// Returns the members that `name` can refer to on an object. `from` is the file of the use: if
    /// it is not a test, classes that are defined in tests are ignored.
    pub(super) fn reachable(
        &mut self,
        object: CallReceiver,
        name: &str,
        from: FileId,
    ) -> Vec<Variable> {
        let mut found: Vec<Variable> = Vec::new();
        let (of, after) = match object {
            CallReceiver::Object(of) => (of, None),
            CallReceiver::Super { after, of } => (of, Some(after)),
            CallReceiver::Unknown => return self.family(name),
        };
        let in_test = is_test(&self.path(from));
        for heir in self.heirs(of).iter() {
            if !in_test && heir.file != from && is_test(&self.path(heir.file)) {
                continue;
            }
            let line = self.line(*heir);
            let start = match after {
                Some(after) => match line.classes.iter().position(|one| *one == after) {
                    Some(place) if !self.has_outside_base(after) => place + 1,
                    Some(_) | None => continue,
                },
                None => 0,
            };
            let member = self.first_member(&line.classes[start..], name);
            found.extend(member.filter(|member| !found.contains(member)));
        }
        found
    }

    /// Returns the methods to which an attribute of this name must refer on an object of unknown
    /// type. Returns nothing if the name may refer to something else, or if the methods belong to
    /// unrelated classes.
    fn family(&mut self, name: &str) -> Vec<Variable> {
        if is_common(name) {
            return Vec::new();
        }
        let mut found: Vec<Variable> = Vec::new();
        let mut classes: Vec<Def> = Vec::new();
        for file in self.source.mentioning(name) {
            let path = self.path(file);
            if is_test(&path) || path.as_str().ends_with(".pyi") {
                continue;
            }
            let names = self.names(file);
            let Some(id) = names.find(name) else {
                continue;
            };
            let is_set = |one: &Occurrence| {
                one.name == id && one.role == Role::Store && one.receiver().is_some()
            };
            if names.occurrences().iter().any(is_set) {
                return Vec::new();
            }
            for class in names.classes() {
                let (scope, symbol) = (class.scope, class.symbol);
                if !names.bindings(scope, id).is_empty() {
                    let name = id;
                    found.push(Variable { file, scope, name });
                    classes.push(Def { file, symbol });
                }
            }
        }
        match self.is_one_family(&classes) {
            true => found,
            false => Vec::new(),
        }
    }

    /// Returns whether all classes are related to one another, directly or through other classes in
    /// the list.
    fn is_one_family(&mut self, classes: &[Def]) -> bool {
        let mut others = classes.to_vec();
        let mut next: Vec<Def> = others.pop().into_iter().collect();
        while let Some(class) = next.pop() {
            let (related, rest): (Vec<Def>, Vec<Def>) = others
                .into_iter()
                .partition(|other| self.are_related(class, *other));
            next.extend(related);
            others = rest;
        }
        others.is_empty()
    }

    /// Returns the method that a variable of a class refers to. Returns `None` for static methods,
    /// class methods and properties, and if a decorator may change the parameters.
    pub(super) fn plain_method(&mut self, variable: Variable) -> Option<Def> {
        let names = self.names(variable.file);
        let BindingKind::Function(symbol) =
            only(names.bindings(variable.scope, variable.name))?.kind
        else {
            return None;
        };
        let file = variable.file;
        let def = Def { file, symbol };
        let is_plain = names.function(symbol)?.role == FunctionRole::Plain;
        (is_plain && self.keeps_parameters(def)).then_some(def)
    }

    /// Returns the objects that the expression before an attribute can evaluate to, or `None` if it
    /// can also evaluate to something that is not an object of a known class.
    pub(super) fn receiving(
        &mut self,
        file: FileId,
        receiver: ExprId,
    ) -> Option<Vec<CallReceiver>> {
        let values = self.values(file, receiver, None);
        let object = |value: &Value| match value {
            Value::Instance(class) => Some(CallReceiver::Object(*class)),
            Value::Super { after, of } => Some(CallReceiver::Super {
                after: *after,
                of: *of,
            }),
            Value::Module(_)
            | Value::Class(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Sequence(_)
            | Value::Tuple(_)
            | Value::Outside(_) => None,
        };
        match values.is_empty() {
            true => Some(vec![CallReceiver::Unknown]),
            false => values.iter().map(object).collect(),
        }
    }

    /// Returns the calls and reads that may reach this method without naming it. They name a method of a base
    /// class, or no known method, and reach this method only for some classes of the object.
    pub(crate) fn indirect_uses(&mut self, method: &SymbolPath) -> Vec<IndirectAccess> {
        self.start();
        let Some((file, symbol)) = self.source.find(method) else {
            return Vec::new();
        };
        let own = self.variable_of(file, symbol);
        let Some(own) = own.filter(|own| self.class_of(*own).is_some()) else {
            return Vec::new();
        };
        let name = self.names(own.file).name(own.name).to_owned();
        let mut found = Vec::new();
        for file in self.source.mentioning(&name) {
            let names = self.names(file);
            for (index, one) in names.occurrences().iter().enumerate() {
                let is_access =
                    matches!(one.role, Role::Call | Role::Read) && one.receiver().is_some();
                if !is_access || names.name(one.name) != name || self.is_exhausted() {
                    continue;
                }
                let occurrence = OccurrenceId(index as u32);
                let Some(through) = self.reached_through(file, &names, occurrence, own) else {
                    continue;
                };
                let access = self.use_at(file, occurrence, Certainty::Likely);
                found.extend(access.map(|access| IndirectAccess { access, through }));
            }
        }
        found
    }

    /// Returns whether an attribute refers to `member` for some of the possible objects. The object is of the
    /// receiver's class or of a subclass.
    pub(super) fn may_refer(
        &mut self,
        file: FileId,
        names: &Names,
        attribute: OccurrenceId,
        member: Target,
    ) -> bool {
        let (Some(one), Target::Variable(member)) = (names.occurrence(attribute).copied(), member)
        else {
            return false;
        };
        let is_read = matches!(one.role, Role::Call | Role::Read) && one.receiver().is_some();
        if !is_read {
            return false;
        }
        let name = names.name(one.name).to_owned();
        let receiver = names.last_name(one.receiver());
        let values = self.values(file, one.receiver(), None);
        values.iter().any(|value| {
            let object = match *value {
                Value::Instance(class) => CallReceiver::Object(class),
                // A class that is written by name is exactly that class, but `cls` can be a subclass.
                Value::Class(class) => {
                    let path = self.source.symbol(class.file, class.symbol);
                    if path.is_none_or(|path| path.base_name() == receiver) {
                        return false;
                    }
                    CallReceiver::Object(class)
                }
                Value::Super { after, of } => CallReceiver::Super { after, of },
                Value::Module(_)
                | Value::Function(..)
                | Value::Callable(_)
                | Value::Sequence(_)
                | Value::Tuple(_)
                | Value::Outside(_) => return false,
            };
            self.reachable(object, &name, file).contains(&member)
        })
    }

    /// Returns the method that an access names, if the access can reach `own` although it names another
    /// method. An object that is created in place (`A().f`) is never of a subclass.
    fn reached_through(
        &mut self,
        file: FileId,
        names: &Names,
        access: OccurrenceId,
        own: Variable,
    ) -> Option<Option<SymbolPath>> {
        let one = *names.occurrence(access)?;
        if self.is_made(file, one.receiver()) {
            return None;
        }
        let objects = self.receiving(file, one.receiver())?;
        let name = names.name(one.name).to_owned();
        let mut through = None;
        let mut reaches = false;
        for object in objects {
            let named = match object {
                CallReceiver::Object(of) => self.line(of).classes.clone(),
                CallReceiver::Super { after, of } => {
                    let line = self.line(of).classes.clone();
                    let after = line.iter().skip_while(|one| **one != after).skip(1);
                    after.copied().collect()
                }
                CallReceiver::Unknown => return None,
            };
            let named = self.first_member(&named, &name);
            if named == Some(own) {
                return None;
            }
            reaches |= self.reachable(object, &name, file).contains(&own);
            through = through.or(named);
        }
        let path = through.and_then(|through| {
            let names = self.names(through.file);
            match only(names.bindings(through.scope, through.name))?.kind {
                BindingKind::Function(symbol) => self.source.symbol(through.file, symbol),
                BindingKind::Class(_)
                | BindingKind::Import(_)
                | BindingKind::Parameter { .. }
                | BindingKind::Value { .. }
                | BindingKind::Attribute { .. }
                | BindingKind::Global
                | BindingKind::Nonlocal => None,
            }
        });
        reaches.then_some(path)
    }

    /// Returns the methods that override a method in subclasses of its class. Also returns methods
    /// of other base classes that come earlier in the method resolution order of a subclass.
    pub(crate) fn overriding(&mut self, method: &SymbolPath) -> Vec<SymbolPath> {
        self.start();
        let Some((file, symbol)) = self.source.find(method) else {
            return Vec::new();
        };
        let own = self.variable_of(file, symbol);
        let class = own.and_then(|own| self.class_of(own));
        let (Some(own), Some(class)) = (own, class) else {
            return Vec::new();
        };
        let name = self.names(own.file).name(own.name).to_owned();
        let mut found = Vec::new();
        for heir in self.heirs(class).iter() {
            let line = self.line(*heir);
            for one in line.classes.iter().take_while(|one| **one != class) {
                let names = self.names(one.file);
                let scope = names.class(one.symbol).map(|class| class.scope);
                let bound = scope.and_then(|scope| self.bound(one.file, scope, &name));
                let bindings =
                    bound.map_or(&[][..], |bound| names.bindings(bound.scope, bound.name));
                let functions = bindings.iter().map(|binding| match binding.kind {
                    BindingKind::Function(symbol) => Some(symbol),
                    BindingKind::Import(_)
                    | BindingKind::Class(_)
                    | BindingKind::Parameter { .. }
                    | BindingKind::Global
                    | BindingKind::Nonlocal
                    | BindingKind::Value { .. }
                    | BindingKind::Attribute { .. } => None,
                });
                // A property with a setter and an overloaded function bind the name several times.
                let functions: Option<Vec<_>> = functions.collect();
                let symbols = functions.into_iter().flatten();
                found.extend(symbols.filter_map(|symbol| self.source.symbol(one.file, symbol)));
            }
        }
        found.sort();
        found.dedup();
        found
    }
}
