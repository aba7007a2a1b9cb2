//! Where a task begins: symbols and files ranked by what its text says. No model.

mod corpus;
mod features;
mod fields;
mod matches;
mod named;
mod near;
mod old;
mod phrase;
mod query;
mod sections;
mod stop;

pub(in crate::index) use corpus::{Corpus, Counts};
pub(in crate::index) use fields::pieces;
pub use old::Located;
pub(super) use old::locate;

use features::Question;

/// A candidate with what is known of it.
pub struct Candidate {
    pub path: String,
    pub features: Vec<(&'static str, f32)>,
}

/// Files and symbols.
pub(in crate::index) fn candidates(corpus: &Corpus, text: &str) -> (Vec<Candidate>, Vec<Candidate>) {
    let question = Question::new(corpus, text);
    let (files, symbols) = question.candidates();
    let files = files.iter().map(|file| Candidate {
        path: corpus.files[*file as usize].path.to_string(),
        features: question.file_row(*file),
    });
    let symbols = symbols.iter().map(|id| Candidate {
        path: corpus.symbol(*id).path.to_string(),
        features: question.symbol_row(*id),
    });
    (files.collect(), symbols.collect())
}
