//! Checks of the definitions and the references in small projects.

use crate::resolve::{Certainty, Resolver};
use crate::testing::code_of;
use starling_syntax::FilePath;

/// Returns the definitions of the identifier before `$`, as symbols or positions.
fn defined(files: &[(&str, &str)]) -> Vec<String> {
    let (path, text) = *files.iter().find(|(_, text)| text.contains('$')).unwrap();
    let at = text.find('$').unwrap();
    let line = text[..at].matches('\n').count() as u32 + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |start| start + 1);
    let clean: Vec<(&str, String)> = (files.iter())
        .map(|(path, text)| (*path, text.replace('$', "")))
        .collect();
    let clean: Vec<(&str, &str)> = clean
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    let code = code_of(clean.iter().copied());
    let found = Resolver::new(&code).definition(&FilePath::new(path), line, column as u32);
    let told = found.iter().map(|place| match &place.symbol {
        Some(symbol) => symbol.to_string(),
        None => format!("{}:{}:{}", place.file, place.line, place.column),
    });
    told.collect()
}

#[track_caller]
pub fn check_definition(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(defined(files), expected, "{files:#?}");
}

/// Checks the definitions of the identifier before `$` in a single file.
#[track_caller]
pub fn check_defined(text: &str, expected: &[&str]) {
    check_definition(&[("m.py", text)], expected);
}

/// Checks the references of a symbol, as `file:line:column`, followed by the certainty if it is not
/// `Certain`.
#[track_caller]
pub fn check_references(files: &[(&str, &str)], symbol: &str, expected: &[&str]) {
    let code = code_of(files.iter().copied());
    let found = Resolver::new(&code)
        .references(&symbol.parse().unwrap())
        .unwrap();
    let told: Vec<String> = (found.uses.iter())
        .map(|place| {
            let mark = match place.certainty {
                Certainty::Certain => "",
                Certainty::Likely => " likely",
                Certainty::Possible => " possible",
            };
            format!("{}:{}:{}{mark}", place.file, place.line, place.column)
        })
        .collect();
    assert_eq!(told, expected);
    assert!(found.complete);
}
