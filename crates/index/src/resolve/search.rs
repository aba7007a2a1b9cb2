//! The state of a search for references. A search for the references of an `__init__` also finds
//! the calls of its class.

use rustc_hash::FxHashSet;

use super::class::Member;
use super::references::Certainty;
use super::resolver::Resolver;
use super::source::{FileId, Source};
use super::value::{Def, Target, Value, Variable};
use crate::names::{ExprId, Names, OccurrenceId};

/// The target of a search and its results so far.
pub(super) struct Search {
    pub(super) wanted: Target,
    /// The searched symbol's own name.
    pub(super) name: String,
    pub(super) found: Vec<(FileId, OccurrenceId, Certainty)>,
    /// Imports of the name from modules that are not found but whose name resembles that of the
    /// symbol's module.
    pub(super) unresolved: Vec<(FileId, OccurrenceId)>,
    /// Attributes of the name on objects that code from outside the workspace holds or returns.
    pub(super) open: Vec<(FileId, OccurrenceId)>,
    /// Attributes that name a member of a base class, a mixin or a sibling class, and refer to the target
    /// only for some objects.
    pub(super) indirect: Vec<(FileId, OccurrenceId)>,
    /// Whether the target is a member of a class.
    pub(super) is_member: bool,
    /// The target, if it is a pytest fixture.
    pub(super) fixture: Option<Variable>,
    /// The parts of the path of the symbol's module.
    pub(super) module_parts: Vec<String>,
    /// Imports of modules that are not found and may be the symbol's module, in files that mention the
    /// name. If there are any, references may be missing.
    pub(super) unknown_imports: Vec<(FileId, OccurrenceId)>,
    /// Whether the target is an `__init__` or `__new__` method. If so, class names are also
    /// searched.
    is_init: bool,
    /// Identifiers that can refer to the symbol, without duplicates.
    words: Vec<String>,
    next: usize,
    known: FxHashSet<String>,
    /// Files whose classes were already searched.
    looked_at: FxHashSet<FileId>,
}

impl Search {
    pub(super) fn new(wanted: Target, name: String) -> Self {
        let mut search = Search {
            wanted,
            name,
            found: Vec::new(),
            unresolved: Vec::new(),
            open: Vec::new(),
            indirect: Vec::new(),
            is_member: false,
            fixture: None,
            module_parts: Vec::new(),
            unknown_imports: Vec::new(),
            is_init: false,
            words: Vec::new(),
            next: 0,
            known: FxHashSet::default(),
            looked_at: FxHashSet::default(),
        };
        search.add(&search.name.clone());
        search
    }

    /// Adds an identifier that can refer to the symbol.
    pub(super) fn add(&mut self, word: &str) {
        if self.known.insert(word.to_owned()) {
            self.words.push(word.to_owned());
        }
    }

    pub(super) fn next_word(&mut self) -> Option<String> {
        self.next += 1;
        self.words.get(self.next - 1).cloned()
    }

    /// Returns whether a search for an `__init__` also looks for this name because it is the name
    /// of a class.
    pub(super) fn is_other_name(&self, name: &str) -> bool {
        self.is_init && name != self.name
    }
}

impl<S: Source> Resolver<'_, S> {
    /// Adds the class name to a search for `__init__`, because instantiation calls it.
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

    /// Returns whether an expression is a class whose instantiation calls the searched `__init__`.
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
            | Value::Outside(_) => false,
        })
    }

    /// Returns whether the class has or inherits the member that is searched for.
    fn inherits(&mut self, class: Def, search: &Search) -> bool {
        match self.member(class, &search.name) {
            Member::Found(found) => Target::Variable(found) == search.wanted,
            Member::Outside | Member::Missing => false,
        }
    }

    /// Adds the names of the classes in a file that inherit the `__init__` that is searched for.
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
