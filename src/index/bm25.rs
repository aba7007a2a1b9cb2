//! BM25: how well bags of words answer a question.

use super::facts::Bag;
use super::query::QueryTerm;

/// How soon repetitions of a word stop to count, and how much a long bag is held against it.
/// Found on the tuning half of SWE-bench Lite.
const SATURATION: f64 = 1.5;
const LENGTH: f64 = 0.4;

/// Scores of some bags for some terms.
pub(super) struct Ranking {
    /// In the order of the bags; the best has 1.
    pub(super) scores: Vec<f64>,
    /// What each term is worth, in the order of the terms: its weight, more when it is rare.
    pub(super) worth: Vec<f64>,
}

pub(super) fn rank<'b>(bags: impl Iterator<Item = &'b Bag>, terms: &[QueryTerm]) -> Ranking {
    let mut lengths = Vec::new();
    let mut hits: Vec<Vec<(usize, f64)>> = Vec::new();
    let mut holders = vec![0_u32; terms.len()];
    for bag in bags {
        let found: Vec<_> = terms
            .iter()
            .enumerate()
            .map(|(place, term)| (place, f64::from(bag.count(term.term))))
            .filter(|(_, count)| *count > 0.0)
            .collect();
        for (place, _) in &found {
            holders[*place] += 1;
        }
        lengths.push(f64::from(bag.length));
        hits.push(found);
    }
    let filled = lengths
        .iter()
        .filter(|length| **length > 0.0)
        .count()
        .max(1) as f64;
    let average = (lengths.iter().sum::<f64>() / filled).max(1.0);
    let rarity = |holders: f64| (1.0 + (filled - holders + 0.5) / (holders + 0.5)).ln();
    let worth: Vec<f64> = terms
        .iter()
        .zip(holders)
        .map(|(term, holders)| term.weight * rarity(f64::from(holders)))
        .collect();
    let score = |hits: &[(usize, f64)], length: f64| {
        let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / average);
        let part = |(place, count): &(usize, f64)| worth[*place] * count / (count + norm);
        hits.iter().map(part).sum::<f64>()
    };
    let mut scores: Vec<f64> = hits
        .iter()
        .zip(&lengths)
        .map(|(hits, length)| score(hits, *length))
        .collect();
    let best = scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    scores.iter_mut().for_each(|score| *score /= best);
    Ranking { scores, worth }
}

#[cfg(test)]
mod tests {
    use super::super::query::Query;
    use super::*;

    fn scores(bags: &[&str], question: &str) -> Vec<f64> {
        let bags: Vec<Bag> = bags.iter().map(|text| Bag::of_text(text)).collect();
        rank(bags.iter(), &Query::read(question).terms).scores
    }

    #[test]
    fn rare_words_and_short_bags_win() {
        let found = scores(
            &["common rare", "common other", "common more", ""],
            "common rare",
        );
        assert_eq!(found[0], 1.0);
        assert!(found[1] < 0.5 && found[3] == 0.0);
        let padded = format!("rare {}", "filler ".repeat(50));
        let found = scores(&[&padded, "rare short"], "rare");
        assert!(found[0] < found[1]);
    }

    #[test]
    fn nothing_asked_or_nothing_there() {
        assert_eq!(scores(&["a word"], ""), [0.0]);
        assert_eq!(scores(&[], "word"), [0.0; 0]);
    }
}
