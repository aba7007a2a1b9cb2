//! One hop along mentions: what good candidates mention, and what mentions them.

use std::collections::HashMap;

use super::corpus::{Corpus, count};
use super::fields::Field;

/// A score for some symbols.
pub(super) type Spread = HashMap<u32, f32>;

/// Names with more definitions say little about which one is meant.
const MOST_DEFINITIONS: usize = 8;
/// A name that is mentioned more often leads nowhere.
const MOST_MENTIONS: usize = 300;

/// What the seeds mention: each definition gets of its seed the more the rarer its name.
pub(super) fn mentioned(corpus: &Corpus, seeds: &[(u32, f32)]) -> Spread {
    let mut spread = Spread::new();
    for (seed, weight) in seeds {
        for (term, counts) in corpus.bag(*seed) {
            let times = count(counts, Field::Code) + count(counts, Field::Signature);
            if times == 0 {
                continue;
            }
            let definitions = corpus.defined_as(*term);
            let code: Vec<u32> = definitions.iter().copied().filter(|id| !corpus.is_test(*id) && id != seed).collect();
            let file = corpus.symbol(*seed).file;
            let near: Vec<u32> = code.iter().copied().filter(|id| corpus.symbol(*id).file == file).collect();
            let meant = if near.is_empty() { code } else { near };
            if meant.is_empty() || meant.len() > MOST_DEFINITIONS {
                continue;
            }
            let share = weight / ((meant.len() as f32).sqrt() * (2.0 + corpus.postings(*term).len() as f32).ln());
            for id in meant {
                *spread.entry(id).or_default() += share;
            }
        }
    }
    normalised(spread)
}

/// What mentions the seeds.
pub(super) fn mentioning(corpus: &Corpus, seeds: &[(u32, f32)]) -> Spread {
    let mut spread = Spread::new();
    for (seed, weight) in seeds {
        let base = corpus.symbol(*seed).path.base_name();
        if base.is_empty() {
            continue;
        }
        let definitions = corpus.defined(base).len().max(1);
        let postings = corpus.postings(crate::index::words::Term::of(base));
        if definitions > MOST_DEFINITIONS || postings.len() > MOST_MENTIONS {
            continue;
        }
        let share = weight / ((definitions as f32).sqrt() * (2.0 + postings.len() as f32).ln());
        for (id, counts) in postings {
            let mentions = count(counts, Field::Code) + count(counts, Field::Signature) > 0;
            if mentions && id != seed && !corpus.is_test(*id) {
                *spread.entry(*id).or_default() += share;
            }
        }
    }
    normalised(spread)
}

fn normalised(mut spread: Spread) -> Spread {
    let best = spread.values().copied().fold(f32::MIN_POSITIVE, f32::max);
    spread.values_mut().for_each(|score| *score /= best);
    spread
}
