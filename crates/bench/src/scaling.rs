//! Measures the value of several samples after grading: of a random one, of the best one, of the
//! chosen one, and how well each signal of the selector predicts the grade.

use std::collections::BTreeMap;

use serde::Serialize;

use super::grade::Grade;
use super::select::{Choice, Signal};

/// Comparison of samples with their grades.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaling {
    pub instances: usize,
    /// The largest number of graded samples of one instance.
    pub samples: usize,
    /// Share of instances that k randomly drawn samples would resolve at least once, by k (pass@k).
    /// This is the unbiased estimate; instances with fewer than k samples are left out.
    pub pass_at: BTreeMap<usize, f64>,
    /// The share of instances whose chosen sample is resolved.
    pub chosen: f64,
    /// Accuracy of each signal: the share of pairs of a resolved and an unresolved sample of one
    /// instance in which the signal is higher for the resolved sample. Ties count half. 0.5 is
    /// chance.
    pub leads: BTreeMap<Signal, f64>,
    /// Number of these pairs.
    pub pairs: usize,
}

/// Compares grades, by instance and sample, with the choices that were made without them.
pub fn scaling(
    grades: &BTreeMap<String, BTreeMap<usize, Grade>>,
    choices: &BTreeMap<String, Choice>,
) -> Scaling {
    let resolved: BTreeMap<&String, BTreeMap<usize, bool>> = grades
        .iter()
        .map(|(id, of)| {
            (
                id,
                of.iter()
                    .map(|(sample, grade)| (*sample, *grade == Grade::Resolved))
                    .collect(),
            )
        })
        .collect();
    let samples = resolved
        .values()
        .map(BTreeMap::len)
        .max()
        .unwrap_or_default();
    let counts: Vec<(usize, usize)> = resolved
        .values()
        .map(|of| (of.len(), of.values().filter(|resolved| **resolved).count()))
        .collect();
    let is_chosen = |(id, of): &(&&String, &BTreeMap<usize, bool>)| {
        let chosen = choices.get(**id).map(|choice| choice.chosen);
        chosen
            .and_then(|sample| of.get(&sample))
            .is_some_and(|resolved| *resolved)
    };
    let chosen = resolved.iter().filter(is_chosen).count();
    let (leads, pairs) = leads(&resolved, choices);
    Scaling {
        instances: resolved.len(),
        samples,
        pass_at: (1..=samples).map(|k| (k, pass_at(k, &counts))).collect(),
        chosen: share(chosen as f64, resolved.len()),
        leads,
        pairs,
    }
}

/// Returns the mean over instances of 1 - C(n - c, k) / C(n, k), for n samples of which c are
/// resolved.
fn pass_at(k: usize, counts: &[(usize, usize)]) -> f64 {
    let enough = counts.iter().filter(|(n, _)| *n >= k);
    let each = enough.map(|(n, c)| {
        // The probability that k samples, drawn one after the other, include none of the c.
        let none: f64 = (0..k)
            .map(|drawn| (n - c).saturating_sub(drawn) as f64 / (n - drawn) as f64)
            .product();
        1.0 - none
    });
    let each: Vec<f64> = each.collect();
    share(each.iter().sum(), each.len())
}

fn leads(
    resolved: &BTreeMap<&String, BTreeMap<usize, bool>>,
    choices: &BTreeMap<String, Choice>,
) -> (BTreeMap<Signal, f64>, usize) {
    let mut won: BTreeMap<Signal, (f64, usize)> = BTreeMap::new();
    let mut pairs = 0;
    for (id, of) in resolved {
        let Some(choice) = choices.get(*id) else {
            continue;
        };
        let with = |wanted: bool| {
            let these = of.iter().filter(move |(_, resolved)| **resolved == wanted);
            these.filter_map(|(sample, _)| choice.samples.get(sample))
        };
        for good in with(true) {
            for bad in with(false) {
                pairs += 1;
                for signal in Signal::ALL {
                    let (Some(good), Some(bad)) = (good.of(signal), bad.of(signal)) else {
                        continue;
                    };
                    let (sum, count) = won.entry(signal).or_default();
                    *sum += match good.total_cmp(&bad) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                    *count += 1;
                }
            }
        }
    }
    let leads = won
        .into_iter()
        .map(|(signal, (sum, count))| (signal, share(sum, count)));
    (leads.collect(), pairs)
}

fn share(sum: f64, of: usize) -> f64 {
    match of {
        0 => 0.0,
        of => sum / of as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::Signals;
    use starling_core::Dollars;

    fn graded(samples: &[bool]) -> BTreeMap<usize, Grade> {
        let grade = |resolved: &bool| match resolved {
            true => Grade::Resolved,
            false => Grade::Unresolved("w".into()),
        };
        (1..).zip(samples.iter().map(grade)).collect()
    }

    fn choice(chosen: usize, tests: &[f64]) -> Choice {
        let signals = |tests: &f64| Signals {
            tests: *tests,
            ..Signals::default()
        };
        Choice {
            chosen,
            samples: (1..).zip(tests.iter().map(signals)).collect(),
            dollars: Dollars(0.0),
            trouble: Vec::new(),
        }
    }

    #[test]
    fn pass_at_k_is_the_probability_that_one_of_k_random_samples_is_resolved() {
        // One of four samples is resolved: one draw finds it in a quarter of the cases, two draws
        // in half.
        assert_eq!(pass_at(1, &[(4, 1)]), 0.25);
        assert!((pass_at(2, &[(4, 1)]) - 0.5).abs() < 1e-12);
        assert_eq!(pass_at(4, &[(4, 1), (4, 0)]), 0.5);
        assert_eq!(pass_at(2, &[(4, 3)]), 1.0);
        // An instance with fewer than k samples is left out.
        assert_eq!(pass_at(2, &[(1, 1), (2, 0)]), 0.0);
    }

    #[test]
    fn share_of_resolved_choices_and_accuracy_of_each_signal_are_computed() {
        let grades = BTreeMap::from([
            ("a".to_owned(), graded(&[true, false, false])),
            ("b".to_owned(), graded(&[false, true, false])),
        ]);
        let choices = BTreeMap::from([
            ("a".to_owned(), choice(1, &[1.0, 0.0, 1.0])),
            ("b".to_owned(), choice(3, &[0.0, 0.0, 1.0])),
        ]);
        let found = scaling(&grades, &choices);
        assert_eq!((found.instances, found.samples, found.pairs), (2, 3, 4));
        assert_eq!(found.chosen, 0.5);
        assert_eq!(found.pass_at[&3], 1.0);
        // The pairs are one win, two ties and one loss.
        assert_eq!(found.leads[&Signal::Tests], 0.5);
        assert!(!found.leads.contains_key(&Signal::Verifier));
    }
}
