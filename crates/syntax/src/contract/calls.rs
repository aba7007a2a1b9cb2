//! Property tests of [`Contract::can_break`] and [`Contract::call_holds`]: if the contracts are
//! compatible, the newer function accepts the same calls with the same meaning. Calls are checked
//! with a reimplementation of Python's argument binding.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::tests::contract;
use super::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A parameter of a generated function: its kind, and whether it has a default.
type ParameterForm = (ParameterKind, bool);

/// Generates the signature of a function with some of the names in any order.
fn head() -> impl Strategy<Value = String> {
    use ParameterKind::*;
    let form = (
        prop::sample::select(vec![PositionalOnly, Positional, KeywordOnly]),
        any::<bool>(),
    );
    let named = prop::collection::vec(prop::option::of(form), NAMES.len());
    let order = Just(NAMES.to_vec()).prop_shuffle();
    (named, order, any::<bool>(), any::<bool>())
        .prop_map(|(forms, names, stars, keywords)| written(&forms, &names, stars, keywords))
}

fn written(forms: &[Option<ParameterForm>], names: &[&str], stars: bool, keywords: bool) -> String {
    let of = |wanted: ParameterKind| {
        let chosen = names.iter().zip(forms);
        chosen
            .filter_map(move |(name, form)| {
                form.filter(|(kind, _)| *kind == wanted)
                    .map(|form| (*name, form.1))
            })
            .collect::<Vec<_>>()
    };
    let mut parts = Vec::new();
    let mut optional = false;
    for (kind, mark) in [
        (ParameterKind::PositionalOnly, "/"),
        (ParameterKind::Positional, ""),
    ] {
        let these = of(kind);
        for (name, default) in &these {
            // In Python, a parameter after a parameter with a default needs a default.
            optional |= default;
            parts.push(parameter(name, optional));
        }
        if !mark.is_empty() && !these.is_empty() {
            parts.push(mark.to_owned());
        }
    }
    let by_keyword = of(ParameterKind::KeywordOnly);
    match (stars, by_keyword.is_empty()) {
        (true, _) => parts.push("*args".to_owned()),
        (false, false) => parts.push("*".to_owned()),
        (false, true) => {}
    }
    parts.extend(
        by_keyword
            .iter()
            .map(|(name, default)| parameter(name, *default)),
    );
    if keywords {
        parts.push("**kw".to_owned());
    }
    format!("def f({}): pass\n", parts.join(", "))
}

fn parameter(name: &str, optional: bool) -> String {
    match optional {
        true => format!("{name}=1"),
        false => name.to_owned(),
    }
}

/// Returns the parameter that each argument binds to, for a call with `count` positional arguments
/// and the given keywords. Returns `None` if Python would raise a `TypeError`.
fn bind(contract: &Contract, count: usize, keywords: &[&str]) -> Option<BTreeMap<String, String>> {
    let parameters = contract.parameters.as_deref()?;
    let find = |kind: ParameterKind| parameters.iter().find(|one| one.kind == kind);
    let mut bound = BTreeMap::new();
    let mut taken: Vec<&str> = Vec::new();
    let places: Vec<&Parameter> = parameters
        .iter()
        .filter(|one| one.is_positional())
        .collect();
    for at in 0..count {
        let name = match places.get(at) {
            Some(parameter) => parameter.name.as_str(),
            None => find(ParameterKind::VarPositional)?.name.as_str(),
        };
        bound.insert(format!("{at}"), name.to_owned());
        taken.push(name);
    }
    for keyword in keywords {
        let named = parameters.iter().find(|one| {
            let by_name = matches!(
                one.kind,
                ParameterKind::Positional | ParameterKind::KeywordOnly
            );
            by_name && one.name == *keyword
        });
        let name = match named {
            Some(parameter) if taken.contains(&parameter.name.as_str()) => return None,
            Some(parameter) => parameter.name.as_str(),
            None => find(ParameterKind::VarKeyword)?.name.as_str(),
        };
        bound.insert(format!("{keyword}="), name.to_owned());
        taken.push(name);
    }
    let complete = parameters
        .iter()
        .all(|one| one.is_optional() || taken.contains(&one.name.as_str()));
    complete.then_some(bound)
}

/// Returns every call with up to six positional arguments and any subset of the names as keywords.
fn calls() -> impl Iterator<Item = (usize, Vec<&'static str>)> {
    (0..=6).flat_map(|count| {
        (0..1 << NAMES.len()).map(move |chosen: usize| {
            let keywords = NAMES.iter().enumerate();
            let keywords = keywords.filter(|(at, _)| chosen & (1 << at) != 0);
            (count, keywords.map(|(_, name)| *name).collect())
        })
    })
}

#[test]
fn compatible_contract_accepts_every_old_call_with_the_same_meaning() {
    let mut runner = TestRunner::new(Config {
        cases: 3_000,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..Config::default()
    });
    let checked = std::cell::Cell::new(0);
    let law = runner.run(&(head(), head()), |(older, newer)| {
        let (old, new) = (contract(&older), contract(&newer));
        if old.can_break(&new) {
            return Ok(());
        }
        checked.set(checked.get() + 1);
        for (count, keywords) in calls() {
            let Some(before) = bind(&old, count, &keywords) else {
                continue;
            };
            let Some(after) = bind(&new, count, &keywords) else {
                let call = format!("{count} and {keywords:?}");
                return Err(TestCaseError::fail(format!("{older}{newer}{call}")));
            };
            for (argument, name) in &before {
                // A new optional parameter receives a keyword argument that `**kw` received before
                // the change.
                let widened = name == "kw" && argument.ends_with('=');
                prop_assert!(
                    widened || after[argument] == *name,
                    "{older}{newer}{argument}"
                );
            }
        }
        Ok(())
    });
    law.unwrap();
    assert!(
        checked.get() > 20,
        "too few pairs say anything: {}",
        checked.get()
    );
}

/// If `call_holds` returns `true`, Python binds the arguments of the call as before.
#[test]
fn call_that_stays_valid_binds_its_arguments_as_before() {
    let mut runner = TestRunner::new(Config {
        cases: 1_500,
        rng_seed: RngSeed::Fixed(9),
        failure_persistence: None,
        ..Config::default()
    });
    let checked = std::cell::Cell::new(0);
    let law = runner.run(&(head(), head()), |(older, newer)| {
        let (old, new) = (contract(&older), contract(&newer));
        for (count, keywords) in calls() {
            let call = Arguments {
                positional: count,
                keywords: keywords.iter().map(|name| (*name).to_owned()).collect(),
                is_open: false,
            };
            let holds = old.call_holds(&new, &call, Receiver::Given);
            let (before, after) = (bind(&old, count, &keywords), bind(&new, count, &keywords));
            let Some(after) = after else {
                prop_assert!(!holds, "{older}{newer}{count} {keywords:?}");
                continue;
            };
            let Some(before) = before.filter(|_| holds) else {
                continue;
            };
            checked.set(checked.get() + 1);
            let names = |list: &BTreeMap<String, String>| -> Vec<String> {
                let known = |name: &&String| {
                    let has = |one: &Contract| {
                        let all = one.parameters.as_deref().unwrap_or_default();
                        all.iter().any(|parameter| parameter.name == **name)
                    };
                    has(&old) && has(&new)
                };
                list.values().filter(known).cloned().collect()
            };
            prop_assert_eq!(names(&before), names(&after), "{}{}{}", older, newer, count);
        }
        Ok(())
    });
    law.unwrap();
    assert!(checked.get() > 1_000, "{}", checked.get());
}

#[test]
fn contracts_are_equal_exactly_if_no_change_is_described() {
    let mut runner = TestRunner::new(Config {
        cases: 500,
        rng_seed: RngSeed::Fixed(8),
        failure_persistence: None,
        ..Config::default()
    });
    let law = runner.run(&(head(), head()), |(one, other)| {
        let (one, other) = (contract(&one), contract(&other));
        prop_assert!(one.changes(&one).is_empty() && !one.can_break(&one));
        prop_assert_eq!(one == other, one.changes(&other).is_empty());
        prop_assert!(!one.can_break(&other) || !one.changes(&other).is_empty());
        Ok(())
    });
    law.unwrap();
}
