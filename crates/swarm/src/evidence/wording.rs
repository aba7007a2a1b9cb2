//! Formats counts and lists of names.

/// Maximum number of names in one headline.
pub(crate) const NAMES_MOST: usize = 4;

pub(crate) fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

pub(crate) fn some_of(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MOST)].join(", ");
    match names.len().saturating_sub(NAMES_MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
