use serde::{Deserialize, Serialize};

mod binding;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod tests;

pub use binding::{Arguments, Misfit, Receiver};

/// How arguments are passed to a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    PositionalOnly,
    Positional,
    KeywordOnly,
    VarPositional,
    VarKeyword,
}

/// A function parameter. The annotation and the default are kept as source text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub kind: ParameterKind,
    pub annotation: Option<String>,
    pub default: Option<String>,
}

/// The parts of a symbol on which code that uses it relies, such as the name and the parameters. A
/// change of the contract can break that code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    pub name: String,
    pub decorators: Vec<String>,
    /// The parameters of a function. `None` for a class or a module.
    pub parameters: Option<Vec<Parameter>>,
    /// Base classes and keyword arguments of a class definition.
    pub bases: Vec<String>,
    pub returns: Option<String>,
    pub is_async: bool,
    pub is_generator: bool,
    /// Exception names in `raise` statements of the body, sorted and unique.
    pub raises: Vec<String>,
}

/// One difference between two contracts.
struct ContractDifference {
    text: String,
    weight: ChangeImpact,
}

/// The effect of a contract change on code that uses the older contract.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeImpact {
    /// Code that uses the older contract can break.
    Breaks,
    Harmless,
}

impl Contract {
    /// Describes the differences in words, for example `parameter "y" added (required)`. The result
    /// is empty if the contracts are equal.
    pub fn changes(&self, newer: &Contract) -> Vec<String> {
        let changes = self.differences(newer);
        changes.into_iter().map(|change| change.text).collect()
    }

    /// Returns whether code that uses the older contract can break. The following changes are safe:
    /// changed exceptions or annotations, a default for a parameter that had none, added bases, and
    /// optional parameters added at the end.
    pub fn can_break(&self, newer: &Contract) -> bool {
        let changes = self.differences(newer);
        changes
            .iter()
            .any(|change| change.weight == ChangeImpact::Breaks)
    }

    /// Returns whether the symbol is a property, so that code reads its value without a call.
    pub fn is_property(&self) -> bool {
        let mut names = self.decorators.iter().map(|one| decorator_name(one));
        names.any(|name| name.ends_with("property"))
    }

    /// Returns whether a property became a plain function. Code that reads the property then gets the
    /// function instead of its value. Returns `false` if a decorator was added that may do what the
    /// property did.
    pub fn becomes_plain_function(&self, newer: &Contract) -> bool {
        const PLAIN: [&str; 6] = [
            "abstractmethod",
            "cache",
            "classmethod",
            "lru_cache",
            "override",
            "staticmethod",
        ];
        let is_plain =
            |one: &String| self.decorators.contains(one) || PLAIN.contains(&decorator_name(one));
        self.is_property() && !newer.is_property() && newer.decorators.iter().all(is_plain)
    }

    fn differences(&self, newer: &Contract) -> Vec<ContractDifference> {
        let mut changes = DifferenceList(Vec::new());
        if self.name != newer.name {
            changes.breaks(format!("renamed from `{}` to `{}`", self.name, newer.name));
        }
        changes.list(
            "decorator",
            &self.decorators,
            &newer.decorators,
            ChangeImpact::Breaks,
        );
        match (&self.parameters, &newer.parameters) {
            (Some(old), Some(new)) => changes.parameters(old, new),
            (None, None) => {}
            (Some(_), None) => changes.breaks("is no longer a function".to_owned()),
            (None, Some(_)) => changes.breaks("became a function".to_owned()),
        }
        changes.list("base", &self.bases, &newer.bases, ChangeImpact::Harmless);
        changes.value(
            "return annotation",
            &self.returns,
            &newer.returns,
            ChangeImpact::Harmless,
        );
        if self.is_async != newer.is_async {
            changes.breaks(became(newer.is_async, "async"));
        }
        if self.is_generator != newer.is_generator {
            changes.breaks(became(newer.is_generator, "a generator"));
        }
        for name in self
            .raises
            .iter()
            .filter(|name| !newer.raises.contains(name))
        {
            changes.harmless(format!("no longer raises `{name}`"));
        }
        for name in newer
            .raises
            .iter()
            .filter(|name| !self.raises.contains(name))
        {
            changes.harmless(format!("raises `{name}`"));
        }
        changes.0
    }
}

/// Returns the last part of a decorator's name: `cached_property` for
/// `@functools.cached_property`.
fn decorator_name(decorator: &str) -> &str {
    let name = decorator.trim_start_matches('@').split('(').next();
    let name = name.and_then(|name| name.rsplit('.').next());
    name.unwrap_or_default().trim()
}

fn became(is_now: bool, what: &str) -> String {
    if is_now {
        format!("became {what}")
    } else {
        format!("is no longer {what}")
    }
}

/// The differences that were found so far.
struct DifferenceList(Vec<ContractDifference>);

impl DifferenceList {
    fn breaks(&mut self, text: String) {
        self.push(text, ChangeImpact::Breaks);
    }

    fn harmless(&mut self, text: String) {
        self.push(text, ChangeImpact::Harmless);
    }

    fn push(&mut self, text: String, weight: ChangeImpact) {
        self.0.push(ContractDifference { text, weight });
    }

    /// Records the changes of a list, such as the base classes. Removed and reordered items can
    /// break code that uses the symbol; `added` is the impact of an added item.
    fn list(&mut self, what: &str, old: &[String], new: &[String], added: ChangeImpact) {
        for item in old.iter().filter(|item| !new.contains(item)) {
            self.breaks(format!("{what} `{item}` removed"));
        }
        for item in new.iter().filter(|item| !old.contains(item)) {
            self.push(format!("{what} `{item}` added"), added);
        }
        let kept = |from: &[String], other: &[String]| -> Vec<String> {
            from.iter()
                .filter(|item| other.contains(item))
                .cloned()
                .collect()
        };
        if kept(old, new) != kept(new, old) {
            self.breaks(format!("order or number of {what}s changed"));
        }
    }

    fn value(
        &mut self,
        what: &str,
        old: &Option<String>,
        new: &Option<String>,
        weight: ChangeImpact,
    ) {
        match (old, new) {
            (Some(old), Some(new)) if old != new => {
                self.push(format!("{what} changed from `{old}` to `{new}`"), weight);
            }
            (Some(old), None) => self.push(format!("{what} `{old}` removed"), weight),
            (None, Some(new)) => self.push(format!("{what} `{new}` added"), weight),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    fn parameters(&mut self, old: &[Parameter], new: &[Parameter]) {
        let find = |list: &[Parameter], name: &str| {
            list.iter().position(|parameter| parameter.name == name)
        };
        for parameter in old.iter().filter(|old| find(new, &old.name).is_none()) {
            self.breaks(format!("parameter \"{}\" removed", parameter.name));
        }
        for (index, parameter) in new.iter().enumerate() {
            match find(old, &parameter.name) {
                Some(was) => {
                    self.parameter(&old[was], parameter, old);
                    let joins = parameter.is_positional() && !old[was].is_positional();
                    if joins && takes_a_place(index, old, new) {
                        let name = &parameter.name;
                        self.breaks(format!("parameter \"{name}\" moved before others"));
                    }
                }
                None => self.added(parameter, index, old, new),
            }
        }
        let order = |list: &[Parameter], other: &[Parameter]| -> Vec<String> {
            list.iter()
                .filter(|parameter| {
                    let there = find(other, &parameter.name).map(|place| &other[place]);
                    parameter.is_positional() && there.is_some_and(Parameter::is_positional)
                })
                .map(|parameter| parameter.name.clone())
                .collect()
        };
        let (before, after) = (order(old, new), order(new, old));
        if before != after {
            self.breaks(format!("parameters reordered: {}", after.join(", ")));
        }
    }

    /// Records the changes of one parameter. `all` are the parameters of the older function.
    fn parameter(&mut self, old: &Parameter, new: &Parameter, all: &[Parameter]) {
        let name = &new.name;
        if old.kind != new.kind {
            let (from, to) = (old.kind.words(), new.kind.words());
            let text = format!("parameter \"{name}\" changed from {from} to {to}");
            // If the function has a `**` parameter, a keyword argument with the name of a
            // positional-only parameter was passed to the `**` parameter before.
            let takes_names = all.iter().any(|one| one.kind == ParameterKind::VarKeyword);
            let widened = new.kind == ParameterKind::Positional
                && match old.kind {
                    ParameterKind::PositionalOnly => !takes_names,
                    ParameterKind::KeywordOnly => true,
                    ParameterKind::Positional
                    | ParameterKind::VarPositional
                    | ParameterKind::VarKeyword => false,
                };
            self.push(
                text,
                if widened {
                    ChangeImpact::Harmless
                } else {
                    ChangeImpact::Breaks
                },
            );
        }
        let what = format!("annotation of parameter \"{name}\"");
        self.value(
            &what,
            &old.annotation,
            &new.annotation,
            ChangeImpact::Harmless,
        );
        let weight = match old.default {
            Some(_) => ChangeImpact::Breaks,
            None => ChangeImpact::Harmless,
        };
        let what = format!("default of parameter \"{name}\"");
        self.value(&what, &old.default, &new.default, weight);
    }

    fn added(&mut self, parameter: &Parameter, index: usize, old: &[Parameter], new: &[Parameter]) {
        let name = &parameter.name;
        if !parameter.is_optional() {
            self.breaks(format!("parameter \"{name}\" added (required)"));
        } else if parameter.is_positional() && takes_a_place(index, old, new) {
            self.breaks(format!(
                "parameter \"{name}\" added before others (optional)"
            ));
        } else {
            self.harmless(format!("parameter \"{name}\" added (optional)"));
        }
    }
}

/// Returns whether a new positional parameter at `index` receives an argument that was passed to an
/// older parameter before. That is the case if a later parameter existed before and is positional
/// or `*args`.
fn takes_a_place(index: usize, old: &[Parameter], new: &[Parameter]) -> bool {
    let by_place = |parameter: &Parameter| {
        parameter.is_positional() || parameter.kind == ParameterKind::VarPositional
    };
    let was_there = |later: &Parameter| {
        let mut same = old.iter().filter(|old| old.name == later.name);
        same.any(by_place)
    };
    let mut later = new[index + 1..].iter().filter(|later| by_place(later));
    later.any(was_there)
}

impl Parameter {
    pub(super) fn is_positional(&self) -> bool {
        match self.kind {
            ParameterKind::PositionalOnly | ParameterKind::Positional => true,
            ParameterKind::KeywordOnly
            | ParameterKind::VarPositional
            | ParameterKind::VarKeyword => false,
        }
    }

    fn is_optional(&self) -> bool {
        match self.kind {
            ParameterKind::PositionalOnly
            | ParameterKind::Positional
            | ParameterKind::KeywordOnly => self.default.is_some(),
            ParameterKind::VarPositional | ParameterKind::VarKeyword => true,
        }
    }
}

impl ParameterKind {
    fn words(self) -> &'static str {
        match self {
            ParameterKind::PositionalOnly => "positional only",
            ParameterKind::Positional => "positional",
            ParameterKind::KeywordOnly => "keyword only",
            ParameterKind::VarPositional => "any positional",
            ParameterKind::VarKeyword => "any keyword",
        }
    }
}
