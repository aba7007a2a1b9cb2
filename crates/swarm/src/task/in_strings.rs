//! Names that stand in strings, in words.

use starling_index::InString;

/// Maximum number of places that a refusal names.
pub(crate) const NAMED: usize = 4;

/// Describes the strings that contain a name, as in `` `EchoHandler` stands in a string:
/// settings.py:7``.
pub(crate) fn stands_in(name: &str, verb: &str, strings: &[InString]) -> String {
    let places = strings
        .iter()
        .map(|one| format!("{}:{}", one.file, one.line));
    let places = first_of(places.collect());
    match strings.len() {
        1 => format!("`{name}` {verb} in a string: {places}"),
        count => format!("`{name}` {verb} in {count} strings: {places}"),
    }
}

/// Joins the first places and the number of the others.
pub(crate) fn first_of(mut places: Vec<String>) -> String {
    let more = places.len().saturating_sub(NAMED);
    places.truncate(NAMED);
    if more > 0 {
        places.push(format!("{more} more"));
    }
    places.join(", ")
}
