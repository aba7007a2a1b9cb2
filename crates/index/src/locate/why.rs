//! Explains in words why a symbol or a file was found.

use std::collections::HashMap;

use super::near::Spread;
use super::question::{Question, of};

/// Maximum number of words that one reason lists.
const WORDS_SHOWN: usize = 4;
/// Minimum score of a mention (of or by another candidate) that is shown as a reason.
const NEAR: f32 = 0.2;

/// For each symbol or file, by number, the words of the text that it contains, most important
/// first.
pub(super) type Words = HashMap<u32, Vec<String>>;

/// A reason with its weight.
type Reason = (f32, String);

pub(super) fn words_of_symbols(question: &Question<'_>, chosen: &[(u32, f64)]) -> Words {
    // A symbol can be found without containing any word of the text. In that case the reason lists
    // the words of its file.
    words_of(question, chosen, |id| {
        [id, file_key(question.corpus.symbol(id).file)]
    })
}

pub(super) fn words_of_files(question: &Question<'_>, chosen: &[(u32, f64)]) -> Words {
    let keys: Vec<(u32, f64)> = chosen
        .iter()
        .map(|(number, score)| (file_key(*number), *score))
        .collect();
    words_of(question, &keys, |id| [id, id])
}

/// Returns the key of a file in [`Words`]. Keys of files count down from the maximum, so that they
/// never equal a symbol's number.
fn file_key(number: u32) -> u32 {
    u32::MAX - number
}

fn words_of(
    question: &Question<'_>,
    chosen: &[(u32, f64)],
    keys: impl Fn(u32) -> [u32; 2],
) -> Words {
    let mut words: Words = chosen
        .iter()
        .flat_map(|(id, _)| keys(*id))
        .map(|key| (key, Vec::new()))
        .collect();
    let mut terms: Vec<_> = question
        .query
        .terms
        .iter()
        .zip(&question.matches.worth)
        .collect();
    terms.sort_by(|a, b| b.1.total_cmp(a.1).then_with(|| a.0.word.cmp(&b.0.word)));
    for (term, _) in terms {
        for (id, _) in question.corpus.postings(term.term) {
            for key in [id, file_key(question.corpus.symbol(id).file)] {
                let Some(known) = words.get_mut(&key) else {
                    continue;
                };
                if known.len() < WORDS_SHOWN && known.last() != Some(&term.word) {
                    known.push(term.word.clone());
                }
            }
        }
    }
    words
}

/// Returns the reasons why a symbol was found. The list is never empty.
pub(super) fn why_symbol(question: &Question<'_>, id: u32, words: &Words) -> Vec<String> {
    let corpus = question.corpus;
    let name = corpus.base_name(id);
    let mut reasons = of_file(question, corpus.symbol(id).file);
    let named = question.named(id).strength();
    if named > 0.0 {
        reasons.push((named, format!("names {name}")));
    }
    let parent = corpus.symbol(id).parent;
    let owner = if parent == id {
        0.0
    } else {
        question.named(parent).strength()
    };
    if owner > 0.0 {
        reasons.push((0.5 * owner, format!("names {}", corpus.base_name(parent))));
    }
    if of(&question.names.dotted, id) > 0.0 {
        reasons.push((2.0, format!("names {}", corpus.name(id))));
    }
    if let Some((value, line)) = question.names.frames.get(&id) {
        reasons.push((
            3.0 * value,
            match line {
                0 => "in the traceback".to_owned(),
                line => format!("line {line} in the traceback"),
            },
        ));
    }
    if of(&question.names.links, id) > 0.0 {
        reasons.push((2.0, "the text links to it".to_owned()));
    }
    if of(&question.phrases, id) > 0.0 {
        reasons.push((1.0, "contains a message of the text".to_owned()));
    }
    let base = of(&question.names.bases, id).max(if parent == id {
        0.0
    } else {
        of(&question.names.bases, parent)
    });
    if base > 0.0 {
        reasons.push((0.5 * base, "a named class inherits from it".to_owned()));
    }
    let near = &question.near;
    for (spread, what) in [
        (&near.mentioned_by_named, "mentioned by"),
        (&near.mentions_named, "mentions"),
        (&near.mentioned_by_best, "mentioned by"),
        (&near.exercised, "exercised by"),
    ] {
        reasons.extend(one_hop(question, spread, id, what));
    }
    listed(
        reasons,
        &[words.get(&id), words.get(&file_key(corpus.symbol(id).file))],
    )
}

pub(super) fn why_file(question: &Question<'_>, number: u32, words: &Words) -> Vec<String> {
    let mut reasons = of_file(question, number);
    let ids = question.corpus.files()[number as usize].symbols.clone();
    for id in ids {
        let named = question.named(id).strength();
        if named > 0.1 {
            reasons.push((named, format!("defines {}", question.corpus.base_name(id))));
        }
    }
    listed(reasons, &[words.get(&file_key(number))])
}

fn of_file(question: &Question<'_>, number: u32) -> Vec<Reason> {
    let file = &question.corpus.files()[number as usize];
    let named = question.names.files[&number];
    let stem = super::around::stem(file);
    let mut reasons = Vec::new();
    let mut push = |value: f32, what: String| {
        if value > 0.0 {
            reasons.push((value, what));
        }
    };
    push(1.2 * named.path, format!("names {}", file.path));
    push(0.9 * named.module, format!("names {}", file.module));
    push(
        0.3 * named.stem_title.max(named.stem_code).max(named.stem_plain),
        format!("names {stem}"),
    );
    push(
        0.4 * named.frame,
        format!("{} is in the traceback", file.path.name()),
    );
    push(named.link, "the text links to its file".to_owned());
    reasons
}

fn one_hop(question: &Question<'_>, spread: &Spread, id: u32, what: &str) -> Option<Reason> {
    let score = spread.of(id);
    let source = spread.from(id).filter(|_| score > NEAR)?;
    let name = match question.corpus.name(source) {
        // A module body has no name, so the path of its file is shown.
        "" => question.corpus.files()[question.corpus.symbol(source).file as usize]
            .path
            .as_str(),
        name => name,
    };
    Some((0.3 * score, format!("{what} {name}")))
}

/// Sorts the reasons by weight, removes duplicates, and adds the first non-empty list of words.
fn listed(mut reasons: Vec<Reason>, words: &[Option<&Vec<String>>]) -> Vec<String> {
    reasons.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut why: Vec<String> = Vec::new();
    for (_, what) in reasons {
        if !why.contains(&what) {
            why.push(what);
        }
    }
    let said = words.iter().flatten().find(|words| !words.is_empty());
    if let Some(said) = said {
        why.push(format!("words: {}", said.join(", ")));
    }
    if why.is_empty() {
        why.push("near a symbol that the text names".to_owned());
    }
    why
}
