//! Estimates whether an attribute of a value of unknown type refers to the wanted symbol.

use super::references::Certainty;
use super::resolver::Resolver;
use super::search::Search;
use super::source::Source;
use super::value::{Def, Target, Variable};
use crate::names::{Binding, BindingKind};

/// Common methods of the built-in types.
const BUILT_IN: &str = "add append clear close copy count decode difference discard encode end endswith \
    extend find flush format get group groups index insert intersection items join keys \
    lower match open pop popitem read remove replace reverse search seek setdefault sort \
    split start startswith strip union update upper values write writelines";

impl<S: Source> Resolver<'_, S> {
    /// Returns the certainty of each occurrence that was found, or `None` for an occurrence that
    /// cannot refer to the symbol.
    pub(super) fn judge(&mut self, search: &Search) -> Vec<Option<Certainty>> {
        let class = match search.wanted {
            Target::Variable(variable) => self.class_of(variable),
            Target::Module(_) | Target::Outside => None,
        };
        let Some(class) = class else {
            // A symbol outside classes is accessed through its module, so every use of it is
            // certain. An uncertain use is an attribute of something else.
            let sure = |(_, _, certainty): &(_, _, Certainty)| {
                (*certainty == Certainty::Certain).then_some(Certainty::Certain)
            };
            return search.found.iter().map(sure).collect();
        };
        let mut family = DefiningClasses {
            // Built-in types, such as lists, strings and files, may have a method of this name.
            has_strangers: BUILT_IN.split(' ').any(|name| name == search.name),
            names: Vec::new(),
        };
        if (search.found.iter()).any(|(_, _, certainty)| *certainty == Certainty::Possible) {
            self.gather(search, class, &mut family);
        }
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

    /// Returns the class whose scope contains a variable.
    pub(super) fn class_of(&mut self, variable: Variable) -> Option<Def> {
        let names = self.names(variable.file);
        let scope = names.scope(variable.scope)?;
        let symbol = scope.symbol;
        let file = variable.file;
        self.is_class_scope(file, variable.scope)
            .then_some(Def { file, symbol })
    }

    /// Collects the classes that define the name, and whether one of them is unrelated to `class`.
    fn gather(&mut self, search: &Search, class: Def, family: &mut DefiningClasses) {
        let word = search.name.as_str();
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
                let is_heir = self.line(other).classes.contains(&class);
                let path = self.source.symbol(file, symbol).filter(|_| is_heir);
                family
                    .names
                    .extend(path.map(|path| plain(path.base_name())));
                family.has_strangers |= !is_heir && !self.are_related(class, other);
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

/// The classes that define a member of the searched name.
struct DefiningClasses {
    /// Names of the class and its subclasses, normalized by [`plain`]. They are compared with the
    /// names of the objects on which the attribute is used.
    names: Vec<String>,
    /// Whether unrelated classes also define the name.
    has_strangers: bool,
}

/// Returns a name in lower case without underscores, so that `query_set` equals `QuerySet`.
pub(super) fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| *c != '_');
    letters.flat_map(char::to_lowercase).collect()
}
