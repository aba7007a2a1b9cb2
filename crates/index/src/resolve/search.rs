//! A search for references under way, and calls of `__init__` by making an instance.

use rustc_hash::FxHashSet;

use super::class::Member;
use super::references::Certainty;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, Target, Value};
use crate::names::{ExprId, Names, OccurrenceId};

/// What is searched for, and what was found.
pub(super) struct Search {
    pub(super) wanted: Target,
    /// The symbol's own name.
    pub(super) name: String,
    pub(super) found: Vec<(FileId, OccurrenceId, Certainty)>,
    /// Imports of the name from modules that are not found, but called as the symbol's own.
    pub(super) unresolved: Vec<(FileId, OccurrenceId)>,
    /// The parts of the path of the symbol's module.
    pub(super) module_parts: Vec<String>,
    /// Whether a file that mentions the name imports a module that is not found, but may be the
    /// symbol's own.
    pub(super) is_partial: bool,
    /// Whether an `__init__` is wanted: then the names of classes are searched for as well.
    is_init: bool,
    /// Identifiers that can mean the symbol, each searched for once.
    words: Vec<String>,
    next: usize,
    known: FxHashSet<String>,
    /// Files whose classes were looked at.
    looked_at: FxHashSet<FileId>,
}

impl Search {
    pub(super) fn new(wanted: Target, name: String) -> Self {
        let mut search = Search {
            wanted,
            name,
            found: Vec::new(),
            unresolved: Vec::new(),
            module_parts: Vec::new(),
            is_partial: false,
            is_init: false,
            words: Vec::new(),
            next: 0,
            known: FxHashSet::default(),
            looked_at: FxHashSet::default(),
        };
        search.add(&search.name.clone());
        search
    }

    /// Another identifier may mean the symbol.
    pub(super) fn add(&mut self, word: &str) {
        if self.known.insert(word.to_owned()) {
            self.words.push(word.to_owned());
        }
    }

    pub(super) fn next_word(&mut self) -> Option<String> {
        self.next += 1;
        self.words.get(self.next - 1).cloned()
    }

    /// Whether a name is that of a class while its `__init__` is searched for.
    pub(super) fn is_other_name(&self, name: &str) -> bool {
        self.is_init && name != self.name
    }
}

impl<S: Source> Resolver<'_, S> {
    /// Who makes an instance calls `__init__`.
    pub(super) fn search_calls(&mut self, search: &mut Search) {
        let Target::Variable(variable) = search.wanted else {
            return;
        };
        let is_init = matches!(search.name.as_str(), "__init__" | "__new__");
        let class = self.class_of(variable).filter(|_| is_init);
        let symbol = class.and_then(|class| self.source.symbol(class.file, class.symbol));
        if let Some(symbol) = symbol {
            search.is_init = true;
            search.add(symbol.base_name());
        }
    }

    /// Whether an expression is a class whose instances the wanted `__init__` makes.
    pub(super) fn makes(&mut self, file: FileId, id: OccurrenceId, search: &Search) -> bool {
        let values = self.values(file, ExprId::of(id), None);
        values.iter().any(|value| match value {
            Value::Class(class) => self.inherits(*class, search),
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

    /// Whether the wanted member is that of a class.
    fn inherits(&mut self, class: Def, search: &Search) -> bool {
        match self.member(class, &search.name) {
            Member::Found(found) => Target::Variable(found) == search.wanted,
            Member::Outside | Member::Missing => false,
        }
    }

    /// Classes of a file that inherit the wanted `__init__` are made by their own names.
    pub(super) fn add_heirs(&mut self, file: FileId, names: &Names, search: &mut Search) {
        if !search.is_init || !search.looked_at.insert(file) {
            return;
        }
        for class in names.classes() {
            let symbol = class.symbol;
            if self.inherits(Def { file, symbol }, search)
                && let Some(path) = self.source.symbol(file, symbol)
            {
                search.add(path.base_name());
            }
        }
    }
}
