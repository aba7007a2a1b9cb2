//! BM25: ranks symbols or files by how well their words match a query.

use super::code::{Code, FileId, SymbolNumber};
use super::facts::{Field, FieldCounts};
use super::words::Term;

/// BM25 parameters: how quickly repetitions of a word saturate, and how strongly long documents are
/// penalized. They were tuned on one half of SWE-bench Lite.
const SATURATION: f64 = 1.5;
const LENGTH: f64 = 0.4;

/// Weight of a word in a symbol's own name.
const NAME_WEIGHT: f64 = 4.0;
/// Weight of a word in a file's path, which counts as the name of the module body.
const PATH_WEIGHT: f64 = 1.0;

/// A word of the query, with its weight.
#[derive(Debug)]
pub(super) struct QueryTerm {
    pub(super) term: Term,
    /// The word in lower case.
    pub(super) word: String,
    pub(super) weight: f64,
}

/// The documents that are ranked. Each document is a bag of words: the words of one symbol, or of
/// all symbols of one file.
pub(super) struct DocumentBags {
    /// The number of the bag that contains the words of each symbol, indexed by symbol number.
    of: Vec<Option<u32>>,
    /// How much a word counts if it occurs in the symbol's name, indexed by symbol number.
    name_weights: Vec<f64>,
    /// Weighted number of words in each bag.
    lengths: Vec<f64>,
}

impl DocumentBags {
    /// Creates one bag for each symbol that `keep` accepts, indexed by symbol number. Words of file
    /// paths are not counted.
    pub(super) fn symbols(code: &Code, keep: impl Fn(FileId, SymbolNumber) -> bool) -> Self {
        let count = code.symbol_limit() as usize;
        let mut units = DocumentBags::empty(code, count);
        for file in code.files() {
            for (place, number) in code.symbols_of(file).enumerate() {
                if keep(file, number) {
                    let name_weight = if place == 0 { 0.0 } else { NAME_WEIGHT };
                    units.add(code, number, number.0, name_weight);
                }
            }
        }
        units
    }

    /// Creates one bag for each file that `keep` accepts, indexed by file id.
    pub(super) fn files(code: &Code, keep: impl Fn(FileId) -> bool) -> Self {
        let mut units = DocumentBags::empty(code, code.files().len());
        for file in code.files().filter(|file| keep(*file)) {
            for (place, number) in code.symbols_of(file).enumerate() {
                let name_weight = if place == 0 { PATH_WEIGHT } else { NAME_WEIGHT };
                units.add(code, number, file.0, name_weight);
            }
        }
        units
    }

    fn empty(code: &Code, bags: usize) -> Self {
        let symbols = code.symbol_limit() as usize;
        DocumentBags {
            of: vec![None; symbols],
            name_weights: vec![0.0; symbols],
            lengths: vec![0.0; bags],
        }
    }

    fn add(&mut self, code: &Code, number: SymbolNumber, bag: u32, name_weight: f64) {
        let lengths = code.lengths(number);
        let all = lengths.iter().sum::<u32>();
        let name = lengths[Field::Name as usize];
        self.of[number.0 as usize] = Some(bag);
        self.name_weights[number.0 as usize] = name_weight;
        self.lengths[bag as usize] += f64::from(all - name) + name_weight * f64::from(name);
    }

    fn count(&self, number: SymbolNumber, counts: &FieldCounts) -> f64 {
        let name = u32::from(counts.of(Field::Name));
        let rest = counts.total() - name;
        f64::from(rest) + self.name_weights[number.0 as usize] * f64::from(name)
    }
}

/// Returns the score of each bag for the terms, in the order of the bags. The best score is 1.
pub(super) fn rank(code: &Code, units: &DocumentBags, terms: &[QueryTerm]) -> Vec<f64> {
    let filled = units.lengths.iter().filter(|length| **length > 0.0);
    let filled = filled.count().max(1) as f64;
    let average = (units.lengths.iter().sum::<f64>() / filled).max(1.0);
    let mut scores = vec![0.0; units.lengths.len()];
    let mut hits: Vec<(u32, f64)> = Vec::new();
    for term in terms {
        hits.clear();
        for (number, counts) in code.postings(term.term) {
            let Some(bag) = units.of[number.0 as usize] else {
                continue;
            };
            let count = units.count(number, &counts);
            match hits.last_mut() {
                // All symbols of a file are adjacent in the postings.
                Some((last, sum)) if *last == bag => *sum += count,
                Some(_) | None if count > 0.0 => hits.push((bag, count)),
                Some(_) | None => {}
            }
        }
        let holders = hits.len() as f64;
        let rarity = (1.0 + (filled - holders + 0.5) / (holders + 0.5)).ln();
        for (bag, count) in &hits {
            let length = units.lengths[*bag as usize];
            let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / average);
            scores[*bag as usize] += term.weight * rarity * count / (count + norm);
        }
    }
    let best = scores.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    scores.iter_mut().for_each(|score| *score /= best);
    scores
}

#[cfg(test)]
mod tests {
    use super::super::testing::code_of;
    use super::super::words::all_words;
    use super::*;

    fn terms(question: &str) -> Vec<QueryTerm> {
        let term = |word| QueryTerm {
            term: Term::of(word),
            word: word.to_lowercase(),
            weight: 1.0,
        };
        all_words(question).map(term).collect()
    }

    fn scores(files: &[&str], question: &str) -> Vec<f64> {
        let texts: Vec<_> = files
            .iter()
            .enumerate()
            .map(|(place, text)| (format!("f{place}.py"), format!("# {text}\n")))
            .collect();
        let code = code_of(
            texts
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_str())),
        );
        let units = DocumentBags::files(&code, |_| true);
        rank(&code, &units, &terms(question))
    }

    #[test]
    fn rare_words_and_short_documents_score_higher() {
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
    fn empty_query_or_empty_code_scores_zero() {
        assert_eq!(scores(&["a word"], ""), [0.0]);
        assert_eq!(scores(&[], "word"), [0.0; 0]);
    }

    #[test]
    fn words_in_symbol_names_score_higher_than_in_code() {
        let code = code_of([
            (
                "shop.py",
                "def tax():\n    pass\n\ndef f():\n    return tax\n",
            ),
            ("tax.py", "x = 1\n"),
        ]);
        let terms = &terms("tax");
        let units = DocumentBags::symbols(&code, |_, _| true);
        let found = rank(&code, &units, terms);
        let score = |name: &str| {
            let number = code.files().flat_map(|f| code.symbols_of(f));
            let mut number = number.filter(|n| code.symbol(*n).name == name);
            found[number.next().unwrap().0 as usize]
        };
        assert_eq!(score("tax"), 1.0);
        assert!(score("f") > 0.0 && score("f") < 1.0 && score("") == 0.0);
        // The words of the path count for the file, but not for its module body.
        let files = rank(&code, &DocumentBags::files(&code, |_| true), terms);
        assert!(files[1] > 0.0);
        let none = rank(
            &code,
            &DocumentBags::files(&code, |file| file.0 == 0),
            terms,
        );
        assert_eq!(none[1], 0.0);
    }
}
