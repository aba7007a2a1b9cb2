//! Finds the files that a task asks to create: "add data/lager.yaml with …", "create a new module
//! shop/tax.py". A run is not done while one of them does not exist.

use crate::lookup::Lookup;
use crate::task::asked::{Token, names_file, sentences};
use crate::task::goal::Goal;

const CREATE: [&str; 4] = ["add", "create", "write", "generate"];
/// Words between the verb and the name of the file.
const BEFORE_NAME: [&str; 26] = [
    "a",
    "an",
    "the",
    "new",
    "another",
    "empty",
    "small",
    "short",
    "simple",
    "file",
    "module",
    "script",
    "package",
    "document",
    "config",
    "configuration",
    "data",
    "test",
    "example",
    "sample",
    "stub",
    "called",
    "named",
    "python",
    "json",
    "yaml",
];
/// Words after the name of a file that do not turn it into a part of something else, as in "add
/// lager.yaml support" or "add lager.yaml to the list".
const AFTER_NAME: [&str; 17] = [
    "a",
    "an",
    "with",
    "that",
    "which",
    "containing",
    "holding",
    "for",
    "and",
    "in",
    "under",
    "so",
    "where",
    "whose",
    "like",
    "based",
    "please",
];
/// Words before the verb that leave it a request.
const BEFORE_VERB: [&str; 22] = [
    "please", "can", "could", "would", "you", "we", "i", "need", "want", "like", "to", "and",
    "then", "also", "now", "just", "kindly", "lets", "let's", "finally", "first", "id",
];
/// Words that join a further request to a sentence.
const AND: [&str; 3] = ["and", "then", "also"];
/// Words after which a sentence tells what the code does.
const TELLS: [&str; 9] = [
    "should", "must", "shall", "will", "may", "needs", "to", "does", "when",
];
/// Verbs that often tell what the code does. Their object is a file of the project only if it has a
/// directory or is a text.
const OUTPUT: [&str; 2] = ["write", "generate"];
/// Endings of the names of texts.
const TEXTS: [&str; 4] = [".md", ".rst", ".txt", ".py"];
/// Endings of the names of files that a task may name without a directory.
const ENDINGS: [&str; 24] = [
    "py", "pyi", "md", "rst", "txt", "toml", "cfg", "ini", "yaml", "yml", "json", "csv", "tsv",
    "html", "css", "js", "ts", "sql", "sh", "xml", "env", "in", "lock", "svg",
];

/// Describes the files that a task asks to create and that exist neither before the run nor after
/// it.
pub(crate) fn missing(task: &str, goal: Goal, before: &Lookup, after: &Lookup) -> Vec<String> {
    if goal == Goal::Question {
        return Vec::new();
    }
    let is_there = |lookup: &Lookup, name: &str| {
        let mut files = lookup.files().iter();
        files.any(|file| names_file(name, file))
    };
    let mut absent = asked_for(task);
    absent.retain(|name| !is_there(before, name) && !is_there(after, name));
    let absent = absent.iter();
    absent
        .map(|name| format!("the task asks for `{name}`, and it does not exist"))
        .collect()
}

/// Returns the names of the files that a task asks to create.
fn asked_for(task: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for sentence in sentences(task) {
        let is_instead = sentence.iter().any(|token| lower(token) == "instead");
        let verbs = (0..sentence.len()).filter(|at| is_any(&sentence[*at], &CREATE));
        for verb in verbs.filter(|at| !is_instead && is_request(&sentence[..*at])) {
            let is_output = is_any(&sentence[verb], &OUTPUT);
            let is_of_project =
                |name: &str| name.contains('/') || TEXTS.iter().any(|end| name.ends_with(end));
            let mut named = named_after(&sentence[verb + 1..]);
            named.retain(|name| !is_output || is_of_project(name));
            found.extend(named);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Returns whether a verb is a request. `before` are the words before it in its sentence. A verb that
/// begins a sentence or a clause is one. In "export should add a.csv", it tells what the code does.
fn is_request(before: &[Token]) -> bool {
    let of_verb = before
        .iter()
        .rev()
        .take_while(|token| is_any(token, &BEFORE_VERB));
    let count = of_verb.take_while(|token| !token.ends_clause).count();
    let (rest, beside) = before.split_at(before.len() - count);
    let is_next = beside.first().is_some_and(|one| is_any(one, &AND));
    let tells = rest.iter().any(|token| is_any(token, &TELLS));
    rest.is_empty() || !tells && (is_next || rest.last().is_some_and(|last| last.ends_clause))
}

/// Returns the file names that follow a verb, as a list or alone.
fn named_after(words: &[Token]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, token) in words.iter().enumerate() {
        if is_file_name(token) {
            let next = words.get(at + 1);
            let is_whole = token.ends_clause || next.is_none_or(|next| is_any(next, &AFTER_NAME));
            if !is_whole {
                // A list ends in a word that all its names belong to: "add a.py and b.py to the docs".
                return Vec::new();
            }
            found.push(token.word.clone());
        } else {
            let continues = !found.is_empty() && is_any(token, &["and"]);
            if !continues && !is_any(token, &BEFORE_NAME) {
                break;
            }
        }
    }
    found
}

fn is_file_name(token: &Token) -> bool {
    let word = token.word.as_str();
    let name = word.rsplit('/').next().unwrap_or(word);
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    let is_letters = ending.len() <= 5 && ending.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_path = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let is_known = ENDINGS.contains(&ending.to_lowercase().as_str());
    !stem.is_empty()
        && word.chars().all(is_path)
        && !word.contains("//")
        && !word.starts_with('/')
        && ending.chars().all(|c| c.is_ascii_alphanumeric())
        && (is_known || word.contains('/') && is_letters)
}

fn lower(token: &Token) -> String {
    token.word.to_lowercase()
}

fn is_any(token: &Token, known: &[&str]) -> bool {
    known.contains(&lower(token).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_task_asks_to_create_are_found() {
        for (task, expected) in [
            (
                "Add data/lager.yaml: a lager of 25 litres",
                vec!["data/lager.yaml"],
            ),
            (
                "Add `data/lager.yaml` with 5 kg of malt",
                vec!["data/lager.yaml"],
            ),
            (
                "Please create a new module shop/tax.py",
                vec!["shop/tax.py"],
            ),
            ("Create a file called notes.md for users.", vec!["notes.md"]),
            ("We need to write docs/api.md", vec!["docs/api.md"]),
            ("Fix mean and add CHANGES.md.", vec!["CHANGES.md"]),
            (
                "mean is wrong. Also add data/a.csv and data/b.csv.",
                vec!["data/a.csv", "data/b.csv"],
            ),
            ("Add tests/test_mean.py", vec!["tests/test_mean.py"]),
            (
                "Add assets/logo.proto that defines it",
                vec!["assets/logo.proto"],
            ),
        ] {
            assert_eq!(asked_for(task), expected, "{task}");
        }
        for task in [
            "Add lager.yaml support",
            "Add lager.yaml to the list of examples",
            "Add lager.yaml and stout.yaml to MANIFEST.in",
            "export should write out.csv",
            "Make export write out.csv",
            "Write out.csv in export",
            "export should read in.csv and write data/out.csv",
            "Change export to read in.csv and create data/out.csv",
            "Write out.csv instead of out.tsv",
            "Add a test to tests/test_mean.py",
            "Add mean() to stats.py",
            "Add json.dumps to the exports",
            "Add example.com",
            "Add 3.5 % alpha",
            "Add Recipe.original_gravity(): 1 + 0.03",
            "Fix data/lager.yaml",
            "Do not add notes.md",
            "Add /etc/hosts.txt",
            "Add and/or",
            "",
        ] {
            assert_eq!(asked_for(task), [""; 0], "{task}");
        }
    }
}
