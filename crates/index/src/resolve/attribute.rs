//! Finds the code that defines, sets or uses an attribute of given classes: in the bodies of the
//! classes, in assignments to their objects, and in reads.

use super::class::Member;
use super::common_names::is_common;
use super::dangling::{Dangling, Holder};
use super::judge::plain;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::unheld::Body;
use super::value::{Def, Value};
use crate::names::{BindingKind, ExprId, Names, Occurrence, OccurrenceId, Role, ScopeId};
use starling_syntax::SymbolPath;

/// The classes that share an attribute, in one state of the workspace.
pub(crate) struct AttributeHolders {
    pub classes: Vec<Body>,
    /// Whether an object of unknown type that has such an attribute must be one of these classes.
    pub is_alone: bool,
}

impl<S: Source> Resolver<'_, S> {
    /// Returns the classes that assign an attribute of this name, and the classes whose objects are
    /// used with it, grouped by inheritance.
    pub(crate) fn sharing(&mut self, name: &str) -> Vec<Vec<Body>> {
        self.start();
        let files = self.source.mentioning(name);
        let mut classes: Vec<Def> = Vec::new();
        for file in &files {
            let names = self.names(*file);
            let Some(id) = names.find(name) else {
                continue;
            };
            let has_it = |scope: ScopeId| {
                names
                    .bindings(scope, id)
                    .iter()
                    .any(|one| is_data(one.kind))
            };
            let holders = names.classes().iter().filter(|class| has_it(class.scope));
            let file = *file;
            classes.extend(holders.map(|class| Def {
                file,
                symbol: class.symbol,
            }));
        }
        let holders = classes.len();
        for file in files.into_iter().filter(|_| holders > 0) {
            let names = self.names(file);
            for one in names.occurrences() {
                if names.name(one.name) != name || !one.receiver().is_some() {
                    continue;
                }
                let used_as = self.classes_of(file, one.receiver());
                let new = used_as.into_iter().filter(|class| !classes.contains(class));
                let new: Vec<Def> = new.collect();
                classes.extend(new);
            }
        }
        let mut groups = self.related(&classes);
        groups.retain(|group| group.iter().any(|at| *at < holders));
        let body = |at: &usize| self.body(classes[*at]);
        groups
            .iter()
            .map(|group| group.iter().filter_map(body).collect())
            .collect()
    }

    /// Groups classes by inheritance. The groups contain indices of `classes`.
    fn related(&mut self, classes: &[Def]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (at, class) in classes.iter().enumerate() {
            let line = self.line(*class);
            let mut own = vec![at];
            let (joined, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| {
                group.iter().any(|other| {
                    let other = classes[*other];
                    line.classes.contains(&other) || self.line(other).classes.contains(class)
                })
            });
            own.extend(joined.into_iter().flatten());
            groups = others;
            groups.push(own);
        }
        groups
    }

    fn body(&self, class: Def) -> Option<Body> {
        let path = self.source.symbol(class.file, class.symbol)?;
        Some((class.file, path.name))
    }

    /// Returns the classes of the possible values of an expression.
    fn classes_of(&mut self, file: FileId, expression: ExprId) -> Vec<Def> {
        let values = self.values(file, expression, None);
        let class = |value: &Value| match value {
            Value::Class(class) | Value::Instance(class) | Value::Super { of: class, .. } => {
                Some(*class)
            }
            Value::Module(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Sequence(_)
            | Value::Tuple(_)
            | Value::Outside(_) => None,
        };
        values.iter().filter_map(class).collect()
    }

    /// Returns the locations where these classes, or classes that inherit from them, define the
    /// attribute, and where code uses it on an object that is or may be one of theirs. `may_guess`
    /// decides for which files objects of unknown type are included.
    pub(crate) fn attribute_places(
        &mut self,
        name: &str,
        sharing: &AttributeHolders,
        may_guess: &dyn Fn(&mut Self, FileId) -> bool,
    ) -> Vec<Dangling> {
        self.start();
        let classes: Vec<Def> = sharing
            .classes
            .iter()
            .filter_map(|one| self.class_named(one))
            .collect();
        let called = sharing
            .classes
            .iter()
            .map(|(_, name)| plain(name.rsplit('.').next().unwrap_or(name)));
        let called: Vec<String> = called.collect();
        let mut found = Vec::new();
        for file in self.source.mentioning(name) {
            let names = self.names(file);
            let Some(id) = names.find(name) else {
                continue;
            };
            for class in names.classes() {
                let symbol = class.symbol;
                if !self.is_one_of(Def { file, symbol }, &classes) {
                    continue;
                }
                let in_body = names.bindings(class.scope, id).iter();
                let in_body =
                    in_body.filter(|one| !matches!(one.kind, BindingKind::Attribute { .. }));
                let at = in_body.filter_map(|one| names.occurrence(one.occurrence));
                found.extend(at.map(|one| self.attribute_place(file, &names, one)));
            }
            let guesses = sharing.is_alone && may_guess(self, file);
            for one in names.occurrences() {
                let is_it =
                    one.name == id && self.is_use(file, &names, one, (&classes, &called), guesses);
                if is_it {
                    found.push(self.attribute_place(file, &names, one));
                }
            }
        }
        found.sort();
        found.dedup_by(|a, b| (&a.file, a.line) == (&b.file, b.line));
        found
    }

    /// Returns whether an occurrence is an attribute of one of the classes, or a keyword argument
    /// that sets such a field in a call of the class.
    fn is_use(
        &mut self,
        file: FileId,
        names: &Names,
        one: &Occurrence,
        (classes, called): (&[Def], &[String]),
        guesses: bool,
    ) -> bool {
        if let Some(made) = one.called() {
            let made = self.classes_of(file, made);
            return made.into_iter().any(|class| {
                let has_init = matches!(self.member(class, "__init__"), Member::Found(_));
                !has_init && self.is_one_of(class, classes)
            });
        }
        let receiver = one.receiver();
        if !receiver.is_some() {
            return false;
        }
        match self.values(file, receiver, None).is_empty() {
            true => guesses || called.contains(&plain(names.last_name(receiver))),
            false => {
                let of = self.classes_of(file, receiver);
                of.into_iter().any(|class| self.is_one_of(class, classes))
            }
        }
    }

    /// Returns whether a class is one of `classes` or inherits from one of them.
    fn is_one_of(&mut self, class: Def, classes: &[Def]) -> bool {
        self.line(class)
            .classes
            .iter()
            .any(|one| classes.contains(one))
    }

    /// Returns whether anything but these classes may have an attribute of this name: a module,
    /// another class, a function with a keyword argument of this name, or a type from outside the
    /// workspace.
    pub(crate) fn others_have(&mut self, name: &str, of: &[Body]) -> bool {
        if is_common(name) {
            return true;
        }
        let classes: Vec<Def> = of.iter().filter_map(|one| self.class_named(one)).collect();
        self.source.mentioning(name).into_iter().any(|file| {
            let names = self.names(file);
            let Some(id) = names.find(name) else {
                return false;
            };
            let in_module = names
                .bindings(ScopeId::MODULE, id)
                .iter()
                .any(|one| is_data(one.kind));
            let mut others = names
                .classes()
                .iter()
                .filter(|class| !names.bindings(class.scope, id).is_empty());
            let in_other = others.any(|class| {
                let symbol = class.symbol;
                !self.is_one_of(Def { file, symbol }, &classes)
            });
            let mut all = names.occurrences().iter().enumerate();
            let is_field = |this: &mut Self, (at, one): (usize, &Occurrence)| {
                one.name == id
                    && one.role == Role::Keyword
                    && !this.is_parameter(file, OccurrenceId(at as u32))
                    && !this.is_use(file, &names, one, (&classes, &[]), false)
            };
            in_module || in_other || all.any(|one| is_field(self, one))
        })
    }

    /// Returns the position of a use of an attribute. The owner of the attribute is recorded as
    /// unknown.
    pub(super) fn attribute_place(
        &mut self,
        file: FileId,
        names: &Names,
        one: &Occurrence,
    ) -> Dangling {
        let path = self.path(file);
        let symbol = self.source.symbol(file, names.owner(one.at));
        Dangling {
            line: names.line(one.at),
            offset: one.at,
            symbol: symbol.unwrap_or_else(|| SymbolPath::module(path.clone())),
            name: names.name(one.name).to_owned(),
            file: path,
            of: Holder::Unknown,
        }
    }
}

/// Returns whether a binding assigns a value. Functions and classes do not count.
fn is_data(kind: BindingKind) -> bool {
    match kind {
        BindingKind::Value { .. } | BindingKind::Attribute { .. } => true,
        BindingKind::Import(_)
        | BindingKind::Class(_)
        | BindingKind::Function(_)
        | BindingKind::Parameter { .. }
        | BindingKind::Global
        | BindingKind::Nonlocal => false,
    }
}
