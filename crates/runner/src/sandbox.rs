//! Explains failures that the sandbox causes, so that their cause is not searched for in the code.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::environment::withheld;

/// Error messages of the system and of Python about a missing network.
pub(super) const NO_NETWORK: [&str; 9] = [
    "Network is unreachable",
    "ENETUNREACH",
    "Temporary failure in name resolution",
    "Name or service not known",
    "nodename nor servname provided",
    "getaddrinfo failed",
    "EAI_AGAIN",
    "Could not resolve host",
    "No route to host",
];
const READ_ONLY: [&str; 3] = ["Read-only file system", "EROFS", "[Errno 30]"];
const TOO_LARGE: [&str; 3] = ["File too large", "File size limit exceeded", "EFBIG"];
const NO_FORK: [&str; 4] = [
    "Cannot fork",
    "fork: Resource temporarily unavailable",
    "BlockingIOError: [Errno 11]",
    "can't start new thread",
];

/// Start of the note about an environment variable that is set but withheld from tests.
const VARIABLE: &str = "note: the variable ";

/// Returns the part of a message about a variable that is withheld from tests: its name and the reason.
pub fn withheld_in(message: &str) -> Option<&str> {
    message
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(VARIABLE))
}

/// Adds notes to the message of a failing test if the sandbox may have caused the failure.
/// `environment` is the environment of the tests.
pub(super) fn explain(message: &mut String, environment: &BTreeMap<OsString, OsString>) {
    let notes = [
        (
            &NO_NETWORK[..],
            "tests have no network except their own loopback interface",
        ),
        (
            &READ_ONLY,
            "tests can write only in the shadow (their copy of the project) and in the temporary directory",
        ),
        (&TOO_LARGE, "the size of files that tests write is limited"),
        (
            &NO_FORK,
            "tests can start at most as many processes as sandbox.processes allows",
        ),
    ];
    let said = |marks: &[&str]| marks.iter().any(|mark| message.contains(mark));
    let mut notes: String = notes
        .iter()
        .filter(|(marks, _)| said(marks))
        .map(|(_, note)| format!("\nnote: {note}"))
        .collect();
    let missing = missing_variable(message);
    if let Some((name, why)) = missing.and_then(|name| Some((name, withheld(environment, name)?))) {
        notes.push_str(&format!("\n{VARIABLE}{name} is set, but {why}"));
    }
    if !notes.is_empty() {
        message.truncate(message.trim_end().len());
        message.push_str(&notes);
    }
}

/// Returns the variable that is missing in `os.environ`, if a `KeyError` for it ends the message.
fn missing_variable(message: &str) -> Option<&str> {
    let (before, after) = message.rsplit_once("KeyError: '")?;
    let (name, _) = after.split_once('\'')?;
    before.contains("environ").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(message: &str) -> String {
        let mut message = message.to_owned();
        explain(&mut message, &BTreeMap::new());
        message
    }

    #[test]
    fn sandbox_error_gets_a_note_about_the_restriction() {
        let message = "OSError: [Errno 101] Network is unreachable\n";
        let expected = "OSError: [Errno 101] Network is unreachable\n\
                        note: tests have no network except their own loopback interface";
        assert_eq!(explained(message), expected);
        let all = explained("[Errno 30] Read-only file system: '/a'; then EFBIG; Cannot fork");
        assert_eq!(all.lines().count(), 4, "{all}");
    }

    #[test]
    fn note_names_the_variable_that_is_withheld_from_tests() {
        // Cargo sets `CARGO_PKG_NAME`.
        let message =
            "t.py:7: in test_a\n    os.environ[\"CARGO_PKG_NAME\"]\nE   KeyError: 'CARGO_PKG_NAME'";
        let note = "note: the variable CARGO_PKG_NAME is set, but tests see it only if \
                    `sandbox.environment` names it";
        assert_eq!(explained(message), format!("{message}\n{note}"));
        let told = "CARGO_PKG_NAME is set, but tests see it only if `sandbox.environment` names it";
        assert_eq!(withheld_in(&explained(message)), Some(told));
        assert_eq!(withheld_in(message), None);
        let other = message.replace("CARGO_PKG_NAME", "SET_BY_NOBODY");
        assert_eq!(explained(&other), other);
        let no_variable = message.replace("os.environ", "table");
        assert_eq!(explained(&no_variable), no_variable);
    }

    #[test]
    fn unrelated_failures_get_no_note() {
        for message in ["", "assert 1 == 2\n"] {
            assert_eq!(explained(message), message);
        }
    }
}
