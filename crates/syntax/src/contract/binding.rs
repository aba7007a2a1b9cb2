//! Decides whether a call fits a contract, and whether it has the same meaning under a newer one.

use std::fmt;

use super::{Contract, Parameter, ParameterKind};

/// The arguments of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The number of positional arguments.
    pub positional: usize,
    pub keywords: Vec<String>,
    /// Whether the call unpacks `*args` or `**kwargs`, so that some arguments are unknown.
    pub is_open: bool,
}

/// How the first parameter of a function gets its argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// The first argument of the call is passed to the first parameter.
    Given,
    /// The first parameter gets an implicit argument: the object before the dot, or the new
    /// instance.
    Bound,
}

/// Why Python would raise a `TypeError` for a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    TooMany { given: usize, taken: usize },
    Unknown { keyword: String },
    Twice { keyword: String },
    Missing { parameters: Vec<String> },
}

impl fmt::Display for Misfit {
    /// Writes the reason as the end of a sentence that starts with "`f` is called".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::TooMany { given: 1, taken } => {
                write!(f, "with 1 argument by position, and takes {taken}")
            }
            Misfit::TooMany { given, taken } => {
                write!(f, "with {given} arguments by position, and takes {taken}")
            }
            Misfit::Unknown { keyword } => {
                write!(f, "with `{keyword}=`, and has no such parameter")
            }
            Misfit::Twice { keyword } => write!(f, "with two values for `{keyword}`"),
            Misfit::Missing { parameters } => {
                let names: Vec<String> =
                    parameters.iter().map(|name| format!("`{name}`")).collect();
                write!(f, "without {}, and needs it", names.join(", "))
            }
        }
    }
}

/// The result of binding the arguments of a call to parameters.
struct BoundCall<'c> {
    /// The parameter to which each argument is bound, first for the positional and then for the
    /// keyword arguments.
    taken: Vec<&'c Parameter>,
    /// The parameters to which the call passes no argument, so that they have their default values.
    left: Vec<&'c Parameter>,
}

impl Contract {
    /// Returns why a call does not fit. `None` if it fits, or if its arguments or the parameters are
    /// not fully known.
    pub fn misfit(&self, call: &Arguments, receiver: Receiver) -> Option<Misfit> {
        let parameters = self.parameters.as_ref().filter(|_| !call.is_open)?;
        bind(parameters, call, receiver).err()
    }

    /// Returns whether a call that is valid for this contract has the same meaning under a newer
    /// contract: each argument binds to the same parameter, or to a renamed parameter at the same
    /// position, and the other parameters keep their defaults. Returns `false` if the arguments are
    /// not fully known. A call of a property that became a function only has to fit the function.
    pub fn call_holds(&self, newer: &Contract, call: &Arguments, receiver: Receiver) -> bool {
        let (Some(old), Some(new)) = (&self.parameters, &newer.parameters) else {
            return false;
        };
        if self.becomes_plain_function(newer) {
            // The older function could not be called, so the call was written for the newer one.
            return call.is_open || bind(new, call, receiver).is_ok();
        }
        let mut same_parameters = newer.clone();
        same_parameters.parameters.clone_from(&self.parameters);
        if call.is_open || self.can_break(&same_parameters) {
            return false;
        }
        let Ok(after) = bind(new, call, receiver) else {
            return false;
        };
        // A call that was invalid before cannot break.
        let Ok(before) = bind(old, call, receiver) else {
            return true;
        };
        let is_known = |list: &[Parameter], name: &str| list.iter().any(|one| one.name == name);
        let goes_there = |(old_one, new_one): (&&Parameter, &&Parameter)| {
            let renamed = old_one.is_positional()
                && new_one.is_positional()
                && !is_known(new, &old_one.name)
                && !is_known(old, &new_one.name);
            old_one.name == new_one.name || renamed
        };
        let default_of = |name: &str| after.left.iter().find(|one| one.name == name);
        let same_default = |old_one: &&Parameter| match default_of(&old_one.name) {
            Some(new_one) => new_one.default == old_one.default,
            None => true,
        };
        before.taken.iter().zip(&after.taken).all(goes_there)
            && before.left.iter().all(same_default)
    }

    /// Returns whether a function with this contract can override a function with the contract
    /// `other`: it must accept every call that the other function accepts, and be a property exactly if
    /// the other one is.
    pub fn stands_in_for(&self, other: &Contract) -> bool {
        if self.is_property() != other.is_property() {
            return false;
        }
        let (Some(own), Some(theirs)) = (&self.parameters, &other.parameters) else {
            return self.parameters == other.parameters;
        };
        let has = |kind: ParameterKind| own.iter().any(|one| one.kind == kind);
        let takes = |wanted: &Parameter| {
            let same = own.iter().find(|one| one.name == wanted.name);
            match (same, wanted.kind) {
                (Some(_), _) => true,
                (None, ParameterKind::PositionalOnly | ParameterKind::VarPositional) => {
                    has(ParameterKind::VarPositional)
                }
                (None, ParameterKind::KeywordOnly | ParameterKind::VarKeyword) => {
                    has(ParameterKind::VarKeyword)
                }
                (None, ParameterKind::Positional) => {
                    has(ParameterKind::VarKeyword) && has(ParameterKind::VarPositional)
                }
            }
        };
        let is_given = |one: &Parameter| theirs.iter().any(|other| other.name == one.name);
        let needs_no_more = own.iter().all(|one| one.is_optional() || is_given(one));
        needs_no_more && theirs.iter().all(takes) && self.is_async == other.is_async
    }
}

/// Binds the arguments of a call, as Python does.
fn bind<'c>(
    parameters: &'c [Parameter],
    call: &Arguments,
    receiver: Receiver,
) -> Result<BoundCall<'c>, Misfit> {
    let skipped = match receiver {
        Receiver::Given => 0,
        Receiver::Bound => usize::from(parameters.first().is_some_and(Parameter::is_positional)),
    };
    let parameters = &parameters[skipped..];
    let gathers = |kind: ParameterKind| parameters.iter().find(|one| one.kind == kind);
    let mut places = parameters.iter().filter(|one| one.is_positional());
    let mut taken: Vec<&Parameter> = Vec::new();
    for _ in 0..call.positional {
        let place = places.next().or(gathers(ParameterKind::VarPositional));
        taken.push(place.ok_or(Misfit::TooMany {
            given: call.positional,
            taken: parameters.iter().filter(|one| one.is_positional()).count(),
        })?);
    }
    for keyword in &call.keywords {
        let named = parameters.iter().find(|one| match one.kind {
            ParameterKind::Positional | ParameterKind::KeywordOnly => one.name == *keyword,
            ParameterKind::PositionalOnly
            | ParameterKind::VarPositional
            | ParameterKind::VarKeyword => false,
        });
        let twice = named.is_some_and(|one| taken.iter().any(|other| other.name == one.name));
        if twice {
            let keyword = keyword.clone();
            return Err(Misfit::Twice { keyword });
        }
        let place = named.or_else(|| gathers(ParameterKind::VarKeyword));
        taken.push(place.ok_or_else(|| Misfit::Unknown {
            keyword: keyword.clone(),
        })?);
    }
    let is_left = |one: &&Parameter| !taken.iter().any(|other| other.name == one.name);
    let left: Vec<&Parameter> = parameters.iter().filter(is_left).collect();
    let missing = left.iter().filter(|one| !one.is_optional());
    let missing: Vec<String> = missing.map(|one| one.name.clone()).collect();
    match missing.is_empty() {
        true => Ok(BoundCall { taken, left }),
        false => Err(Misfit::Missing {
            parameters: missing,
        }),
    }
}
