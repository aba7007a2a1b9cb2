//! The documents that are ranked by words: symbols, files, and outermost symbols with everything
//! inside them.

use crate::facts::{Field, FieldCounts};

/// BM25 parameter: how quickly repetitions of a word saturate.
pub(super) const SATURATION: f32 = 1.2;
/// BM25 parameter: how strongly long documents are penalized.
const LENGTH: f32 = 0.5;
/// Weight of a word in each field of a symbol, in the order of [`Field::ALL`].
const FIELD_WEIGHTS: [f32; Field::ALL.len()] = [5.0, 2.0, 1.0, 1.0, 0.7, 1.0];

/// The documents of one kind, identified by their numbers, with the data that BM25 needs.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// The document of each symbol, by symbol number.
    of: Vec<u32>,
    lengths: Vec<f32>,
    average: f32,
}

impl Documents {
    /// Creates `count` documents from `symbols`. Each item is a symbol number, the number of the
    /// document that contains the symbol, and the lengths of the symbol's fields. `limit` is
    /// greater than all symbol numbers.
    pub(super) fn new(
        count: usize,
        limit: usize,
        symbols: impl Iterator<Item = (u32, u32, [u32; Field::ALL.len()])>,
    ) -> Self {
        let mut documents = Documents {
            of: vec![0; limit],
            lengths: vec![0.0; count],
            average: 1.0,
        };
        for (symbol, document, lengths) in symbols {
            documents.of[symbol as usize] = document;
            let own = lengths.iter().zip(FIELD_WEIGHTS);
            let own: f32 = own.map(|(count, weight)| *count as f32 * weight).sum();
            documents.lengths[document as usize] += own;
        }
        let filled = documents.lengths.iter().filter(|length| **length > 0.0);
        let filled = filled.count().max(1) as f32;
        documents.average = (documents.lengths.iter().sum::<f32>() / filled).max(1.0);
        documents
    }

    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Calls `note` with each document that contains a term and its match score, from 0 to 1. In
    /// `postings`, the symbols of a document must be adjacent.
    pub(super) fn each(&self, postings: &[(u32, FieldCounts)], mut note: impl FnMut(usize, f32)) {
        let mut rest = postings;
        while let Some((first, _)) = rest.first() {
            let document = self.of[*first as usize];
            let inside = |(symbol, _): &&(u32, FieldCounts)| self.of[*symbol as usize] == document;
            let (own, after) = rest.split_at(rest.iter().take_while(inside).count());
            rest = after;
            let count: f32 = own.iter().map(|(_, counts)| weighted(counts)).sum();
            let length = self.lengths[document as usize] / self.average;
            let norm = SATURATION * (1.0 - LENGTH + LENGTH * length);
            note(document as usize, count / (count + norm));
        }
    }
}

fn weighted(counts: &FieldCounts) -> f32 {
    let parts = counts.0.iter().zip(FIELD_WEIGHTS);
    parts
        .map(|(count, weight)| f32::from(*count) * weight)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(name: u8, code: u8) -> FieldCounts {
        let mut counts = FieldCounts::default();
        counts.0[Field::Name as usize] = name;
        counts.0[Field::Code as usize] = code;
        counts
    }

    #[test]
    fn document_score_sums_its_symbols_and_is_lower_for_long_documents() {
        let lengths = |code: u32| [0, 0, code, 0, 0, 0];
        let symbols = [
            (0, 0, lengths(10)),
            (1, 0, lengths(10)),
            (2, 1, lengths(80)),
        ];
        let documents = Documents::new(2, 3, symbols.into_iter());
        let mut found = Vec::new();
        let postings = [(0, counts(0, 1)), (1, counts(0, 1)), (2, counts(0, 2))];
        documents.each(&postings, |document, hit| found.push((document, hit)));
        assert_eq!(found.len(), 2);
        assert!(found[0].1 > found[1].1 && found[1].1 > 0.0 && found[0].1 < 1.0);
        let mut named = 0.0;
        documents.each(&[(2, counts(1, 0))], |_, hit| named = hit);
        assert!(named > found[1].1);
    }
}
