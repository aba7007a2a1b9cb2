//! Finds all references to a symbol.

use serde::Serialize;

use super::module::is_standard;
use super::resolver::Resolver;
use super::search::Search;
use super::source::{FileId, Source};
use super::value::Target;
use crate::names::{Import, NameId, Names, OccurrenceId, Role, ScopeId, SymbolNumber};
use starling_syntax::{FilePath, SymbolPath};

/// A reference to a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub file: FilePath,
    /// Line of the reference, counted from 1.
    pub line: u32,
    /// Byte offset from the start of the line.
    pub column: u32,
    /// Byte offset in the file.
    pub offset: u32,
    /// The symbol that contains the reference.
    pub symbol: Option<SymbolPath>,
    pub role: Role,
    pub certainty: Certainty,
}

/// The certainty that a reference is to the requested symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Imports, scopes and types lead to the symbol.
    Certain,
    /// An attribute of a value of unknown type. Either only this symbol and its relatives have that
    /// name, or the receiver's name resembles the class name.
    Likely,
    /// An attribute that may be unrelated because the type of the object is unknown, or an attribute that
    /// names a member of a related class and refers to the symbol only for some objects.
    Possible,
}

/// All references to a symbol, including its definition, ordered by file and offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    pub uses: Vec<Use>,
    /// False if references may be missing: the search ran out of steps, a module is not found, or objects
    /// from outside the workspace may hold objects of the class.
    pub complete: bool,
    /// The lines of imports of modules that are not found and may be the symbol's module, in order.
    pub gaps: Vec<(FilePath, u32)>,
}

impl<S: Source> Resolver<'_, S> {
    /// Returns the references to a symbol, or `None` if the symbol does not exist.
    pub fn references(&mut self, symbol: &SymbolPath) -> Option<References> {
        self.start();
        let (file, number) = self.source.find(symbol)?;
        let (wanted, name) = self.wanted(file, number)?;
        Some(self.gathered(Search::new(wanted, name), &symbol.file))
    }

    /// Returns the references to a module-level variable, or `None` if the module does not bind it.
    pub fn variable_references(&mut self, file: &FilePath, name: &str) -> Option<References> {
        self.start();
        let id = self.source.file(file.as_str())?;
        let variable = self.bound(id, ScopeId::MODULE, name)?;
        let search = Search::new(Target::Variable(variable), name.to_owned());
        Some(self.gathered(search, file))
    }

    /// Runs a search for a definition in `file` and collects the references.
    fn gathered(&mut self, mut search: Search, file: &FilePath) -> References {
        search.module_parts = parts_of(file);
        self.search_calls(&mut search);
        search.is_member = match search.wanted {
            Target::Variable(variable) => self.class_of(variable).is_some(),
            Target::Module(_) | Target::Outside => false,
        };
        search.fixture = match search.wanted {
            Target::Variable(variable) => Some(variable).filter(|one| self.is_fixture(*one)),
            Target::Module(_) | Target::Outside => None,
        };
        while let Some(word) = search.next_word() {
            for file in self.source.mentioning(&word) {
                self.search_file(file, &word, &mut search);
            }
        }
        let mut uses = self.uses(&search);
        uses.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        uses.dedup_by(|a, b| (&a.file, a.offset) == (&b.file, b.offset));
        let gaps = self.lines_of(&search.unknown_imports);
        References {
            uses,
            complete: !self.is_exhausted() && gaps.is_empty() && search.open.is_empty(),
            gaps,
        }
    }

    /// Returns the files and lines of occurrences, in order.
    fn lines_of(&mut self, places: &[(FileId, OccurrenceId)]) -> Vec<(FilePath, u32)> {
        let mut lines = Vec::new();
        for (file, id) in places {
            let names = self.names(*file);
            let line = names.occurrence(*id).map(|found| names.line(found.at));
            lines.extend(line.map(|line| (self.path(*file), line)));
        }
        lines.sort();
        lines.dedup();
        lines
    }

    /// Returns the target of a symbol and the identifier by which code refers to it.
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

    fn search_file(&mut self, file: FileId, word: &str, search: &mut Search) {
        let names = self.names(file);
        self.add_heirs(file, &names, search);
        let imports = names.imports().iter();
        let unknown = imports.filter(|import| self.is_unresolved(file, &names, import, search));
        let unknown: Vec<_> = unknown.map(|import| (file, import.module)).collect();
        search.unknown_imports.extend(unknown);
        let mut wanted: Vec<NameId> = names.find(word).into_iter().collect();
        let mut next = 0;
        while let Some(name) = wanted.get(next).copied() {
            next += 1;
            for (index, found) in names.occurrences().iter().enumerate() {
                if found.name == name {
                    let id = OccurrenceId(index as u32);
                    let alias = self.search_occurrence(file, &names, id, search);
                    wanted.extend(alias.filter(|alias| !wanted.contains(alias)));
                }
            }
        }
    }

    /// Checks one occurrence of a searched name. If the occurrence is in an import that gives the
    /// target an alias, returns the alias.
    fn search_occurrence(
        &mut self,
        file: FileId,
        names: &Names,
        id: OccurrenceId,
        search: &mut Search,
    ) -> Option<NameId> {
        let found = names.occurrence(id)?;
        if search.is_other_name(names.name(found.name)) {
            if found.role == Role::Call && self.makes(file, id, search) {
                search.found.push((file, id, Certainty::Certain));
            }
            return None;
        }
        let targets = self.targets(file, id);
        if let Some(fixture) = search.fixture
            && let Some(certainty) = self.takes_fixture(file, names, id, fixture)
        {
            match certainty {
                Certainty::Certain | Certainty::Likely => search.found.push((file, id, certainty)),
                Certainty::Possible => search.unresolved.push((file, id)),
            }
            return None;
        }
        if !targets.list.contains(&search.wanted) {
            let import = found.import().and_then(|id| names.import(id));
            let import = import.filter(|_| found.role == Role::ImportedName);
            if targets.is_unknown {
                search.found.push((file, id, Certainty::Possible));
            } else if targets.is_open && search.is_member {
                search.open.push((file, id));
            } else if import.is_some_and(|one| self.is_unresolved(file, names, one, search)) {
                search.unresolved.push((file, id));
            } else if search.is_member && self.may_refer(file, names, id, search.wanted) {
                search.indirect.push((file, id));
            }
            return None;
        }
        search.found.push((file, id, Certainty::Certain));
        let alias = alias_of(names, id).filter(|alias| *alias != found.name)?;
        if found.scope == ScopeId::MODULE {
            search.add(names.name(alias));
        }
        Some(alias)
    }

    /// Returns whether an import refers to a module that is not found in the workspace, although
    /// part of its name occurs in the path of the searched symbol.
    fn is_unresolved(
        &mut self,
        file: FileId,
        names: &Names,
        import: &Import,
        search: &Search,
    ) -> bool {
        let is_part = |part: &str| search.module_parts.iter().any(|one| one == part);
        let first = names.module_parts(import).next();
        let is_foreign = import.level > 0 || first.is_none_or(is_standard);
        let may_be_it = !is_foreign && names.module_parts(import).any(is_part);
        let parts = import.parts as usize;
        may_be_it && self.imported_module(file, names, import, parts).is_none()
    }

    fn uses(&mut self, search: &Search) -> Vec<Use> {
        let certainty = self.judge(search);
        let judged = search.found.iter().zip(certainty);
        let judged = judged.map(|((file, id, _), certainty)| ((*file, *id), certainty));
        let unsure = search.unresolved.iter().chain(&search.open);
        let unsure = unsure.chain(&search.indirect);
        let unsure = unsure.map(|place| (*place, Some(Certainty::Possible)));
        let places: Vec<_> = judged.chain(unsure).collect();
        let mut uses = Vec::with_capacity(places.len());
        for ((file, id), certainty) in &places {
            uses.extend(certainty.and_then(|certainty| self.use_at(*file, *id, certainty)));
        }
        uses
    }

    pub(super) fn use_at(
        &mut self,
        file: FileId,
        id: OccurrenceId,
        certainty: Certainty,
    ) -> Option<Use> {
        let names = self.names(file);
        let found = names.occurrence(id)?;
        let line = names.line(found.at);
        Some(Use {
            file: self.path(file),
            line,
            column: found.at - names.line_start(line).unwrap_or(found.at),
            offset: found.at,
            symbol: self.source.symbol(file, names.owner(found.at)),
            role: found.role,
            certainty,
        })
    }
}

/// Returns the names of a file's packages and module.
fn parts_of(file: &FilePath) -> Vec<String> {
    const NO_PARTS: [&str; 5] = ["", "src", "lib", "python", "__init__"];
    let path = file.as_str();
    let path = path.rsplit_once('.').map_or(path, |(path, _)| path);
    let parts = path.split('/').filter(|part| !NO_PARTS.contains(part));
    parts.map(str::to_owned).collect()
}

/// Returns the alias that an import gives to the name at `id`.
fn alias_of(names: &Names, id: OccurrenceId) -> Option<NameId> {
    let found = names.occurrence(id)?;
    let next = names.occurrence(OccurrenceId(id.0 + 1))?;
    let is_its = found.role == Role::ImportedName
        && next.role == Role::Alias
        && next.import() == found.import();
    is_its.then_some(next.name)
}
