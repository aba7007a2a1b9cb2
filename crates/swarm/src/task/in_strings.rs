//! Describes uses of a name in strings, and code that may build the name at run time.

use crate::lookup::Lookup;
use crate::task::stated::KeptStrings;
use starling_index::InString;

/// Maximum number of code locations that a message lists.
pub(crate) const NAMED: usize = 4;

/// Returns the strings that contain a name which the code no longer defines. Leaves out URLs and
/// file paths, because a page or file does not change its name with the code, templates, whose objects
/// may be of any type, strings that are only the name, and strings that the task tells to keep.
pub(crate) fn of_gone(lookup: &Lookup, name: &str, kept: &KeptStrings) -> Vec<InString> {
    let mut strings = all_of_gone(lookup, name, kept);
    strings.retain(|one| !one.is_word);
    strings
}

/// Returns the strings that consist only of a name which the code no longer defines. They may be keys or
/// texts unrelated to the code.
pub(crate) fn words_of_gone(lookup: &Lookup, name: &str, kept: &KeptStrings) -> Vec<InString> {
    let mut strings = all_of_gone(lookup, name, kept);
    strings.retain(|one| one.is_word);
    strings
}

fn all_of_gone(lookup: &Lookup, name: &str, kept: &KeptStrings) -> Vec<InString> {
    let index = lookup.index();
    if index.is_defined(name) {
        return Vec::new();
    }
    let mut strings = index.in_strings(name);
    let is_kept = |one: &InString| kept.hold(lookup, (&one.file, one.line), name);
    strings.retain(|one| !one.is_address && !one.is_template && !is_kept(one));
    strings
}

/// Describes the strings that contain a name, and lists the first of them. With the verb "occurs", the
/// result is, for example, `` `EchoHandler` occurs in a string: settings.py:7``.
pub(crate) fn stands_in(name: &str, verb: &str, strings: &[InString]) -> String {
    let what = kind_of(name, verb, strings);
    format!("{what}: {}", first_of(places(strings)))
}

/// Returns the code locations of strings.
pub(crate) fn places(strings: &[InString]) -> Vec<String> {
    let places = strings
        .iter()
        .map(|one| format!("{}:{}", one.file, one.line));
    places.collect()
}

/// Describes the strings that contain a name, such as `` `EchoHandler` occurs in 2 strings``.
pub(crate) fn kind_of(name: &str, verb: &str, strings: &[InString]) -> String {
    let scripts = strings.iter().filter(|one| one.is_script).count();
    let templates = strings.iter().filter(|one| one.is_template).count();
    if templates > 0 {
        return match templates == strings.len() {
            true => format!("`{name}` {verb} in a template"),
            false => format!("`{name}` {verb} in strings, scripts or templates"),
        };
    }
    match (strings.len(), scripts) {
        (1, 0) => format!("`{name}` {verb} in a string"),
        (count, 0) => format!("`{name}` {verb} in {count} strings"),
        (1, _) => format!("`{name}` {verb} in a script"),
        (count, scripts) if count == scripts => {
            format!("`{name}` {verb} in {count} lines of scripts")
        }
        (count, _) => format!("`{name}` {verb} in {count} strings and lines of scripts"),
    }
}

/// Returns the code locations that may look up `name` dynamically, with a string that is built at run
/// time, such as `getattr(x, "a" + b)`.
pub(crate) fn looked_up(lookup: &Lookup, name: &str) -> Vec<String> {
    let found = lookup.index().dynamic_uses(name);
    let places = found.iter().map(|one| format!("{}:{}", one.file, one.line));
    places.collect()
}

/// The sentence about [`looked_up`].
pub(crate) fn may_be_looked_up(name: &str) -> String {
    format!("`{name}` may be looked up by a name that is built at run time")
}

/// Lists the code locations that may look up `name` dynamically. Returns `None` if there are none.
pub(crate) fn put_together(lookup: &Lookup, name: &str) -> Option<String> {
    let places = looked_up(lookup, name);
    (!places.is_empty()).then(|| format!("{}: {}", may_be_looked_up(name), first_of(places)))
}

/// Joins the first [`NAMED`] code locations with commas, and adds how many more there are.
pub(crate) fn first_of(mut places: Vec<String>) -> String {
    let more = places.len().saturating_sub(NAMED);
    places.truncate(NAMED);
    if more > 0 {
        places.push(format!("{more} more"));
    }
    places.join(", ")
}
