//! Determines whether a method overrides a member of a base class, and whether an attribute with
//! the method's name can refer to anything else.

use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, Target, Variable};
use crate::names::{NameId, Names, Occurrence, OccurrenceId, Role, ScopeId, ScopeKind};
use starling_syntax::SymbolPath;

/// Attributes of built-in types, of common types of the standard library, and of common protocols.
const COMMON: &str = "acquire add add_argument add_note all any append args as_integer_ratio as_posix astimezone \
    aclose anext asend athrow begin bit_count bit_length capitalize casefold cancel cause center chmod clear close \
    closed code combine commit communicate conjugate connect copy count create critical ctime cursor cwd data date \
    day debug decode default_factory delete denominator difference difference_update dirname discard done \
    elements encode encoding end endswith errno error errors exception exists exit expandtabs expanduser execute \
    extend extendleft extendswith fetchall fetchone fileno filename fill filter find findall finditer flags flush \
    fold format format_map fromhex fromisoformat fromkeys fromtimestamp fullmatch func get get_nowait glob group \
    groupdict groups handle head headers hex hour id imag index info insert intersection intersection_update is_alive \
    is_absolute is_dir is_file is_integer is_set isalnum isalpha isascii isatty isdecimal isdigit isdisjoint \
    isidentifier islower isnumeric isoformat isocalendar isoweekday isprintable isspace issubset issuperset istitle \
    isupper items iterdir join joinpath json key keys keywords kill lastgroup lineno ljust lock log lower lstrip \
    maketrans match maxlen mean message microsecond minute mkdir mode month most_common move_to_end msg name \
    next notify notify_all now number numerator open options parent parents parse parse_args part partition parts \
    path pattern pid poll pop popitem popleft pos post print process purpose put put_nowait query read read_bytes \
    read_text readable readinto readline readlines real reason recv reduce release remove removeprefix \
    removesuffix rename repeat replace reset resolve response result reverse rfind rglob rindex rjust rollback root \
    rotate rpartition rsplit rstrip run search second seconds seek seekable send setdefault set set_result setLevel \
    shape shutdown size sleep sort span split splitlines start start_time startswith stat state status step stop \
    stem strftime strip strptime sub submit subn subtract suffix sum swapcase symmetric_difference tell terminate \
    text throw time timestamp timetuple title to_bytes today tolist total total_seconds touch translate truncate type \
    tzinfo union unlink update upper url utcnow value values wait warn warning weekday width with_suffix \
    with_traceback writable write write_bytes write_text writelines year zfill";

/// Returns whether types outside of the workspace commonly have an attribute of this name. If so,
/// an attribute access says nothing about its type.
pub(super) fn is_common(name: &str) -> bool {
    name.starts_with("__") || COMMON.split_whitespace().any(|one| one == name)
}

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

    /// Returns whether an attribute with the method's name must be this method wherever it is used:
    /// nothing else in the workspace defines or assigns the name, and types outside of the
    /// workspace do not commonly have it.
    pub fn is_only_attribute(&mut self, method: &SymbolPath) -> bool {
        let Some((own, _)) = self.member_of(method) else {
            return false;
        };
        let name = method.base_name();
        if is_common(name) || self.heritage(method) != Heritage::Own {
            return false;
        }
        let stub = format!("{}i", method.file);
        for file in self.source.mentioning(name) {
            let names = self.names(file);
            let is_stub = self.path(file).as_str() == stub;
            let id = names.find(name).filter(|_| !is_stub);
            if id.is_some_and(|id| self.has_another(file, &names, id, Some(own))) {
                return false;
            }
        }
        !self.is_exhausted()
    }

    fn member_of(&mut self, symbol: &SymbolPath) -> Option<(Variable, Def)> {
        let (file, number) = self.source.find(symbol)?;
        let variable = self.variable_of(file, number)?;
        Some((variable, self.class_of(variable)?))
    }

    /// Returns whether a file defines or assigns a variable other than `own` that an attribute of
    /// this name can refer to.
    pub(super) fn has_another(
        &mut self,
        file: FileId,
        names: &Names,
        name: NameId,
        own: Option<Variable>,
    ) -> bool {
        let is_own = |scope: ScopeId| own.is_some_and(|own| file == own.file && scope == own.scope);
        let kind = |scope: ScopeId| names.scope(scope).map(|scope| scope.kind);
        let classes = names.classes().iter().map(|class| class.scope);
        let mut scopes = std::iter::once(ScopeId::MODULE).chain(classes);
        if scopes.any(|scope| !is_own(scope) && !names.bindings(scope, name).is_empty()) {
            return true;
        }
        // The class itself must bind the name only once.
        let own_count = |own: Variable| names.bindings(own.scope, name).len();
        if own.is_some_and(|own| file == own.file && own_count(own) > 1) {
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
