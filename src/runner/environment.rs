//! The environment that tests run in: the user's, less the secrets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Parts of names whose values no test needs to know.
const SECRET: [&str; 7] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "AUTH_SOCK",
];

/// This process's environment without secrets. Python is told to leave no caches behind: a shadow
/// lives for one command.
pub(super) fn inherited() -> BTreeMap<OsString, OsString> {
    passed_on(std::env::vars_os())
}

fn passed_on(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> BTreeMap<OsString, OsString> {
    let mut kept: BTreeMap<_, _> = variables.filter(|(name, _)| !is_secret(name)).collect();
    kept.insert("PYTHONDONTWRITEBYTECODE".into(), "1".into());
    kept
}

fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    SECRET.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_secrets_and_keeps_the_rest() {
        let given = [
            "PATH",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "db_password",
            "SSH_AUTH_SOCK",
            "PYTHONPATH",
        ];
        let kept = passed_on(given.iter().map(|name| (name.into(), "x".into())));
        let names: Vec<_> = kept.keys().filter_map(|name| name.to_str()).collect();
        assert_eq!(names, ["PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"]);
    }
}
