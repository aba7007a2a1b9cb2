//! Every place that refers to a symbol.

use super::class::Member;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, Target, Value, Variable};
use crate::index::names::{
    Binding, BindingKind, ExprId, NameId, Names, OccurrenceId, Role, ScopeId, SymbolNumber,
};
use crate::syntax::{FilePath, SymbolPath};
use serde::Serialize;

/// A place that refers to a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub file: FilePath,
    /// From 1.
    pub line: u32,
    /// Bytes from the start of the line, from 0.
    pub column: u32,
    /// Byte offset in the file.
    pub offset: u32,
    /// The symbol that it stands in.
    pub symbol: Option<SymbolPath>,
    pub role: Role,
    pub certainty: Certainty,
}

/// How sure it is that a place refers to the symbol that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Imports, scopes and types lead there.
    Certain,
    /// An attribute of something of unknown type, and only this symbol or its relatives have that
    /// name, or the receiver is called as the class is.
    Likely,
    /// An attribute of something of unknown type.
    Possible,
}

/// The places that refer to a symbol, its definition among them, in the order of files and text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    pub uses: Vec<Use>,
    /// Whether everything was looked at; else the code was too entangled.
    pub complete: bool,
}

impl<S: Source> Resolver<'_, S> {
    /// The places that refer to a symbol; `None`: there is no such symbol.
    pub fn references(&mut self, symbol: &SymbolPath) -> Option<References> {
        self.start();
        let (file, number) = self.source.find(symbol)?;
        let (wanted, name) = self.wanted(file, number)?;
        let mut search = Search {
            wanted,
            made: None,
            words: vec![name],
            found: Vec::new(),
        };
        self.search_calls(&mut search);
        let mut next = 0;
        while let Some(word) = search.words.get(next).cloned() {
            next += 1;
            for file in self.source.mentioning(&word) {
                self.search_file(file, &word, &mut search);
            }
        }
        let mut uses = self.uses(search);
        uses.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        uses.dedup_by(|a, b| (&a.file, a.offset) == (&b.file, b.offset));
        Some(References {
            uses,
            complete: !self.is_exhausted(),
        })
    }

    /// What the symbol is, and the identifier that mentions it.
    fn wanted(&mut self, file: FileId, number: SymbolNumber) -> Option<(Target, String)> {
        if number == SymbolNumber(0) {
            let module = self.module_of_file(file);
            let path = &self.module(module).path;
            let name = path.rsplit('/').next().unwrap_or(path).to_owned();
            return Some((Target::Module(module), name));
        }
        let variable = self.variable_of(file, number)?;
        let name = self.names(file).name(variable.name).to_owned();
        Some((Target::Variable(variable), name))
    }

    /// Who makes an instance calls `__init__`.
    fn search_calls(&mut self, search: &mut Search) {
        let Target::Variable(variable) = search.wanted else {
            return;
        };
        let is_called = matches!(search.words[0].as_str(), "__init__" | "__new__");
        let class = self.class_of(variable).filter(|_| is_called);
        let symbol = class.and_then(|class| self.source.symbol(class.file, class.symbol));
        search.made = class;
        search
            .words
            .extend(symbol.map(|symbol| symbol.base_name().to_owned()));
    }

    /// Whether an expression is a class whose instances the wanted `__init__` makes.
    fn makes(&mut self, file: FileId, id: OccurrenceId, search: &Search) -> bool {
        let name = search.words[0].as_str();
        let values = self.values(file, ExprId::of(id), None);
        values.iter().any(|value| match value {
            Value::Class(class) => self.is_member(*class, name, search.wanted),
            Value::Module(_)
            | Value::Instance(_)
            | Value::Function(..)
            | Value::Callable(_)
            | Value::Super { .. }
            | Value::Sequence(_)
            | Value::Tuple(_)
            | Value::Outside => false,
        })
    }

    fn is_member(&mut self, class: Def, name: &str, wanted: Target) -> bool {
        match self.member(class, name) {
            Member::Found(found) => Target::Variable(found) == wanted,
            Member::Outside | Member::Missing => false,
        }
    }

    /// Classes of a file that inherit the wanted `__init__` are made by their own names.
    fn add_heirs(&mut self, file: FileId, names: &Names, search: &mut Search) {
        for class in names.classes() {
            let symbol = class.symbol;
            if self.is_member(Def { file, symbol }, &search.words[0], search.wanted)
                && let Some(path) = self.source.symbol(file, symbol)
                && !search.words.iter().any(|word| word == path.base_name())
            {
                search.words.push(path.base_name().to_owned());
            }
        }
    }

    fn search_file(&mut self, file: FileId, word: &str, search: &mut Search) {
        let names = self.names(file);
        if search.made.is_some() {
            self.add_heirs(file, &names, search);
        }
        let Some(name) = names.find(word) else {
            return;
        };
        let mut wanted = vec![name];
        let mut next = 0;
        while let Some(name) = wanted.get(next).copied() {
            next += 1;
            self.search_name(file, &names, name, &mut wanted, search);
        }
    }

    /// Looks at the occurrences of one name in a file. Other names that an import gives to what is
    /// wanted are put into `also`.
    fn search_name(
        &mut self,
        file: FileId,
        names: &Names,
        name: NameId,
        also: &mut Vec<NameId>,
        search: &mut Search,
    ) {
        for (index, found) in names.occurrences().iter().enumerate() {
            if found.name != name {
                continue;
            }
            let id = OccurrenceId(index as u32);
            if search.made.is_some() && names.name(name) != search.words[0] {
                if found.role == Role::Call && self.makes(file, id, search) {
                    search.found.push((file, id, Certainty::Certain));
                }
                continue;
            }
            let targets = self.targets(file, id);
            if targets.list.contains(&search.wanted) {
                search.found.push((file, id, Certainty::Certain));
                if found.role == Role::ImportedName
                    && let Some(alias) = alias_of(names, id)
                    && alias != name
                {
                    if !also.contains(&alias) {
                        also.push(alias);
                    }
                    let word = names.name(alias);
                    if found.scope == ScopeId::MODULE && !search.words.iter().any(|w| w == word) {
                        search.words.push(word.to_owned());
                    }
                }
            } else if targets.is_unknown {
                search.found.push((file, id, Certainty::Possible));
            }
        }
    }

    fn uses(&mut self, search: Search) -> Vec<Use> {
        let certainty = self.judge(&search);
        let mut uses = Vec::with_capacity(search.found.len());
        for ((file, id, _), certainty) in search.found.into_iter().zip(certainty) {
            let names = self.names(file);
            let (Some(found), Some(certainty)) = (names.occurrence(id), certainty) else {
                continue;
            };
            let line = names.line(found.at);
            uses.push(Use {
                file: self.path(file),
                line,
                column: found.at - names.line_start(line).unwrap_or(found.at),
                offset: found.at,
                symbol: self.source.symbol(file, names.owner(found.at)),
                role: found.role,
                certainty,
            });
        }
        uses
    }

    /// How sure each place is; `None`: it cannot be the symbol.
    fn judge(&mut self, search: &Search) -> Vec<Option<Certainty>> {
        let class = match search.wanted {
            Target::Variable(variable) => self.class_of(variable),
            Target::Module(_) | Target::Outside => None,
        };
        let Some(class) = class else {
            // What is no member of a class is reached through modules, whose types are known.
            let sure = |(_, _, certainty): &(_, _, Certainty)| {
                (*certainty == Certainty::Certain).then_some(Certainty::Certain)
            };
            return search.found.iter().map(sure).collect();
        };
        let mut family = Family::default();
        self.gather(search, class, &mut family);
        let judged = search
            .found
            .iter()
            .map(|(file, id, certainty)| match certainty {
                Certainty::Certain | Certainty::Likely => Some(*certainty),
                Certainty::Possible => {
                    let names = self.names(*file);
                    let found = names.occurrence(*id)?;
                    let receiver = plain(names.last_name(found.receiver()));
                    let is_called_so = !receiver.is_empty() && family.names.contains(&receiver);
                    let is_likely = !family.has_strangers || is_called_so;
                    Some(if is_likely {
                        Certainty::Likely
                    } else {
                        Certainty::Possible
                    })
                }
            });
        judged.collect()
    }

    /// The class in whose scope a variable is.
    fn class_of(&mut self, variable: Variable) -> Option<Def> {
        let names = self.names(variable.file);
        let scope = names.scope(variable.scope)?;
        let symbol = scope.symbol;
        let file = variable.file;
        self.is_class_scope(file, variable.scope)
            .then_some(Def { file, symbol })
    }

    /// Which classes define the name: relatives of the class, or others.
    fn gather(&mut self, search: &Search, class: Def, family: &mut Family) {
        let Some(word) = search.words.first() else {
            return;
        };
        let line = self.line(class);
        for file in self.source.mentioning(word) {
            let names = self.names(file);
            let Some(name) = names.find(word) else {
                continue;
            };
            for other in names.classes() {
                let is_defined = names.bindings(other.scope, name).iter().any(is_definition);
                if !is_defined {
                    continue;
                }
                let symbol = other.symbol;
                let other = Def { file, symbol };
                let is_relative =
                    line.classes.contains(&other) || self.line(other).classes.contains(&class);
                if is_relative {
                    if let Some(path) = self.source.symbol(file, symbol) {
                        family.names.push(plain(path.base_name()));
                    }
                } else {
                    family.has_strangers = true;
                }
            }
        }
    }
}

fn is_definition(binding: &Binding) -> bool {
    match binding.kind {
        BindingKind::Import(_)
        | BindingKind::Class(_)
        | BindingKind::Function(_)
        | BindingKind::Value { .. }
        | BindingKind::Attribute { .. } => true,
        BindingKind::Parameter { .. } | BindingKind::Global | BindingKind::Nonlocal => false,
    }
}

/// A search under way.
struct Search {
    wanted: Target,
    /// The class whose `__init__` is wanted.
    made: Option<Def>,
    /// Identifiers that can mean the symbol.
    words: Vec<String>,
    found: Vec<(FileId, OccurrenceId, Certainty)>,
}

/// The classes that define a name.
#[derive(Default)]
struct Family {
    /// Of the class and its relatives.
    names: Vec<String>,
    /// Whether classes that are no relatives define it, too.
    has_strangers: bool,
}

/// A name in small letters without underscores: `query_set` is `QuerySet`.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| *c != '_');
    letters.flat_map(char::to_lowercase).collect()
}

/// The other name that an import gives to the name at `id`.
fn alias_of(names: &Names, id: OccurrenceId) -> Option<NameId> {
    let found = names.occurrence(id)?;
    let next = names.occurrence(OccurrenceId(id.0 + 1))?;
    let is_its = next.role == Role::Alias && next.import() == found.import();
    is_its
        .then_some(next.name)
        .filter(|_| found.receiver() == ExprId::NONE)
}
