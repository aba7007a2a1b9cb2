//! How sure it is that an attribute of something of unknown type is the symbol that is wanted.

use super::references::Certainty;
use super::resolver::Resolver;
use super::search::Search;
use super::source::Source;
use super::value::{Def, Target, Variable};
use crate::names::{Binding, BindingKind};

/// Much used methods of the types that are built in.
const BUILT_IN: &str = "add append clear close copy count decode difference discard encode end endswith \
    extend find flush format get group groups index insert intersection items join keys \
    lower match open pop popitem read remove replace reverse search seek setdefault sort \
    split start startswith strip union update upper values write writelines";

impl<S: Source> Resolver<'_, S> {
    /// How sure each place is; `None`: it cannot be the symbol.
    pub(super) fn judge(&mut self, search: &Search) -> Vec<Option<Certainty>> {
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
        let mut family = Family {
            // Lists, dictionaries, strings and files have these.
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

    /// The class in whose scope a variable is.
    pub(super) fn class_of(&mut self, variable: Variable) -> Option<Def> {
        let names = self.names(variable.file);
        let scope = names.scope(variable.scope)?;
        let symbol = scope.symbol;
        let file = variable.file;
        self.is_class_scope(file, variable.scope)
            .then_some(Def { file, symbol })
    }

    /// Which classes define the name: relatives of the class, or others.
    fn gather(&mut self, search: &Search, class: Def, family: &mut Family) {
        let word = search.name.as_str();
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
                let is_heir = self.line(other).classes.contains(&class);
                let path = self.source.symbol(file, symbol).filter(|_| is_heir);
                family
                    .names
                    .extend(path.map(|path| plain(path.base_name())));
                family.has_strangers |= !is_heir && !line.classes.contains(&other);
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

/// The classes that define a name.
struct Family {
    /// Of the class and its heirs, as receivers are called.
    names: Vec<String>,
    /// Whether classes that are no relatives define it, too.
    has_strangers: bool,
}

/// A name in small letters without underscores: `query_set` is `QuerySet`.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| *c != '_');
    letters.flat_map(char::to_lowercase).collect()
}
