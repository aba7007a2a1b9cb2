//! Mentions of a name in text files that are neither code nor documents: templates, scripts of web pages,
//! configuration, SQL, shell scripts.

use super::prose::{DOCUMENTS, NO_DOCUMENTS, is_like_code, is_word};
use crate::lookup::Lookup;
use crate::task::stated::KeptStrings;
use starling_syntax::{FilePath, Language};
use starling_text::ByteRange;

/// Endings of files that programs write: notebooks with their results, lists of versions, code without
/// line breaks.
const WRITTEN: [&str; 6] = [".ipynb", ".lock", ".log", ".map", ".min.css", ".min.js"];
/// Maximum length of a line that is searched, in bytes. Longer lines are not written by people.
const LINE_MOST: usize = 1_000;

/// Returns the lines that mention a name which the code no longer defines, as a word that looks like a
/// Returns the lines that mention a name which the code no longer defines, if the name looks like code.
/// Leaves out templates whose expressions use the name, because these are reported as possible uses. Also
/// leaves out strings if all strings keep the name.
pub(super) fn mentions(lookup: &Lookup, name: &str, kept: &KeptStrings) -> Vec<(FilePath, u32)> {
    let snapshot = lookup.index().snapshot();
    let mut used = lookup.index().in_templates(name);
    if kept.all {
        used.extend(lookup.index().in_strings(name));
    }
    let mut found = Vec::new();
    let files = snapshot.files_with_hidden();
    for file in files.into_iter().filter(|file| is_searched(file)) {
        let Some(text) = snapshot.read(file).ok().filter(|text| text.contains(name)) else {
            continue;
        };
        for (line, written) in (1..).zip(text.lines()) {
            let mut places = written.match_indices(name);
            let is_mentioned = written.len() <= LINE_MOST
                && places.any(|(at, _)| {
                    let place = ByteRange::new(at, at + name.len());
                    is_word(written, place) && is_like_code(written, place, name)
                });
            let is_told = || used.iter().any(|one| one.file == *file && one.line == line);
            if is_mentioned && !is_told() && !kept.hold_in_line(written, name) {
                found.push((file.clone(), line));
            }
        }
    }
    found
}

fn is_searched(file: &FilePath) -> bool {
    let name = file.name().to_lowercase();
    let is_written = WRITTEN.iter().any(|ending| name.ends_with(ending));
    let is_prose = match name.rsplit_once('.') {
        Some((_, ending)) => DOCUMENTS.contains(&ending),
        None => NO_DOCUMENTS.iter().any(|start| name.starts_with(start)),
    };
    Language::of(file) == Language::Plain && !is_prose && !is_written
}
