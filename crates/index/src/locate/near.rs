//! Scores symbols that good candidates mention, and symbols that mention good candidates.

use std::collections::HashMap;

use super::corpus::{Corpus, Texts};
use super::phrase::code_of;
use super::query::is_identifier;
use crate::facts::Field;
use crate::words::{Term, words};

/// Scores of symbols that are connected with good candidates by a mention, in either direction. The
/// best score is 1.
#[derive(Debug, Default)]
pub(super) struct Spread(HashMap<u32, SpreadScore>);

/// The score that one symbol receives from other symbols.
#[derive(Debug, Default, Clone, Copy)]
struct SpreadScore {
    score: f32,
    /// The symbol that contributed most to the score, and its contribution.
    from: Option<u32>,
    most: f32,
}

/// Maximum number of definitions of a name. If there are more, it is unclear which one a mention
/// means.
const MOST_DEFINITIONS: usize = 8;
/// Maximum number of mentions of a name. A name with more is too common to be a hint.
const MOST_MENTIONS: usize = 300;

impl Spread {
    fn give(&mut self, to: u32, from: u32, share: f32) {
        let reached = self.0.entry(to).or_default();
        reached.score += share;
        if share > reached.most {
            (reached.from, reached.most) = (Some(from), share);
        }
    }

    fn normalised(mut self) -> Self {
        let scores = self.0.values().map(|reached| reached.score);
        let best = scores.fold(f32::MIN_POSITIVE, f32::max);
        self.0
            .values_mut()
            .for_each(|reached| reached.score /= best);
        self
    }

    pub(super) fn of(&self, id: u32) -> f32 {
        self.0.get(&id).map_or(0.0, |reached| reached.score)
    }

    /// Returns the symbol that contributed most to the score of `id`.
    pub(super) fn from(&self, id: u32) -> Option<u32> {
        self.0.get(&id)?.from
    }
}

/// Scores the symbols that the seeds (good candidates) mention. A mention of a rare name gives a
/// higher score.
pub(super) fn mentioned(corpus: Corpus<'_>, texts: &mut Texts, seeds: &[(u32, f32)]) -> Spread {
    let mut spread = Spread::default();
    for (seed, weight) in seeds {
        let own = code_of(&texts.own(&corpus, *seed));
        let mut names: Vec<&str> = words(&own).filter(|word| is_identifier(word)).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let meant = meant(corpus, *seed, name);
            if meant.is_empty() || meant.len() > MOST_DEFINITIONS {
                continue;
            }
            let rarity = (2.0 + texts.mentions(&corpus, name) as f32).ln();
            let share = weight / ((meant.len() as f32).sqrt() * rarity);
            meant
                .into_iter()
                .for_each(|id| spread.give(id, *seed, share));
        }
    }
    spread.normalised()
}

/// Returns the definitions that a name in a symbol's text may refer to: the definitions in the
/// symbol's file or, if there are none, all definitions of the name.
fn meant(corpus: Corpus<'_>, seed: u32, name: &str) -> Vec<u32> {
    let all = corpus.defined(name).iter().copied();
    let mut code: Vec<u32> = all
        .filter(|id| *id != seed && !corpus.is_test(*id))
        .collect();
    let file = corpus.symbol(seed).file;
    if code.iter().any(|id| corpus.symbol(*id).file == file) {
        code.retain(|id| corpus.symbol(*id).file == file);
    }
    code
}

/// Scores the symbols that mention the seeds (good candidates).
pub(super) fn mentioning(corpus: Corpus<'_>, seeds: &[(u32, f32)]) -> Spread {
    let mut spread = Spread::default();
    for (seed, weight) in seeds {
        let name = corpus.base_name(*seed);
        if name.is_empty() {
            continue;
        }
        let definitions = corpus.defined(name).len().max(1);
        let holders: Vec<_> = corpus
            .postings(Term::of(name))
            .take(MOST_MENTIONS + 1)
            .collect();
        if definitions > MOST_DEFINITIONS || holders.len() > MOST_MENTIONS {
            continue;
        }
        let rarity = (2.0 + holders.len() as f32).ln();
        let share = weight / ((definitions as f32).sqrt() * rarity);
        for (id, counts) in holders {
            let mentions = counts.of(Field::Code) > 0 || counts.of(Field::Signature) > 0;
            if mentions && id != *seed && !corpus.is_test(id) {
                spread.give(id, *seed, share);
            }
        }
    }
    spread.normalised()
}
