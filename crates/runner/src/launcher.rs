//! Recognizes test commands that failed because their launcher needs the network. A launcher
//! (`uv run`, `tox`) prepares an environment before it starts the tests. If that fails, no test
//! has run, and the project's code is not the cause.

use super::sandbox::NO_NETWORK;

/// A launcher as written in a command, and the command that prepares its environment.
struct Launcher {
    name: &'static str,
    prepare: &'static str,
}

const LAUNCHERS: [Launcher; 12] = [
    of("uv run", "uv sync"),
    of("uvx", "uv tool install"),
    of("uv sync", "uv sync"),
    of("poetry run", "poetry install"),
    of("pipenv run", "pipenv install --dev"),
    of("pdm run", "pdm install"),
    of("rye run", "rye sync"),
    of("pixi run", "pixi install"),
    of("hatch", "hatch env create"),
    of("tox", "tox run --notest"),
    of("nox", "nox --install-only"),
    of("pip install", "pip install"),
];
/// Error messages of launchers about a package that is missing and cannot be downloaded.
const NOT_DOWNLOADED: [&str; 4] = [
    "the network was disabled",
    "Failed to fetch",
    "No matching distribution found for",
    "All attempts to connect to",
];

const fn of(name: &'static str, prepare: &'static str) -> Launcher {
    Launcher { name, prepare }
}

/// Explains in one line why a command ran no test. Returns `None` unless a launcher needed the
/// network. The command may also start the launcher indirectly, as `make test` can.
pub(super) fn without_network(command: &str, output: &str) -> Option<String> {
    let said = |marks: &[&str]| marks.iter().any(|mark| output.contains(mark));
    if !said(&NO_NETWORK) && !said(&NOT_DOWNLOADED) {
        return None;
    }
    let started = |line: &str| LAUNCHERS.iter().find(|one| starts(line, one.name));
    let Launcher { name, prepare } =
        started(command).or_else(|| output.lines().find_map(started))?;
    Some(format!(
        "no test ran: `{name}` needs the network, which tests do not have: run `{prepare}` first, then \
         give the test command without `{name}`, or none"
    ))
}

/// Returns whether a shell line starts a program with its first arguments.
fn starts(line: &str, program: &str) -> bool {
    let mut places = line.match_indices(program);
    places.any(|(at, _)| {
        let before = line[..at].trim_end();
        let after = &line[at + program.len()..];
        let is_path = before.len() == at && before.ends_with('/');
        let is_first = before.is_empty()
            || is_path
            || before.ends_with(['&', ';', '|', '(', '@'])
            || before.ends_with("-m")
            || before.rsplit(' ').next().is_some_and(is_assignment);
        is_first && (after.is_empty() || after.starts_with(char::is_whitespace))
    })
}

/// Returns whether a word sets an environment variable for a command, as `CI=1` does in `CI=1 tox`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && !name.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UV: &str = "Creating virtual environment at: .venv\nerror: Request failed after 3 retries\n  \
        cause: Failed to fetch: https://pypi.org/simple/six/\n  cause: dns error\n";
    const OFFLINE: &str = "error: No solution found when resolving dependencies\nhint: Packages were \
        unavailable because the network was disabled.\n";

    #[test]
    fn launcher_without_network_is_named_with_a_remedy() {
        let told = "no test ran: `uv run` needs the network, which tests do not have: run `uv sync` \
                    first, then give the test command without `uv run`, or none";
        for command in [
            "uv run pytest",
            "CI=1 uv run -q pytest",
            "cd a && uv run pytest",
        ] {
            for output in [UV, OFFLINE] {
                let found = without_network(command, output);
                assert_eq!(found.as_deref(), Some(told), "{command}");
            }
        }
        let made = format!("uv run pytest -q\n{UV}make: *** [Makefile:2: test] Error 2\n");
        assert_eq!(without_network("make test", &made).as_deref(), Some(told));
        let tox = without_network("python3 -m tox -e py311", UV).unwrap();
        assert!(tox.contains("`tox run --notest`"), "{tox}");
    }

    #[test]
    fn failure_without_a_launcher_or_of_the_code_gets_no_explanation() {
        for (command, output) in [
            ("make test", UV),
            ("uv run pytest", "E   assert 1 == 2\n"),
            ("python3 check_tox.py", UV),
            ("./run-uv run", UV),
        ] {
            assert_eq!(without_network(command, output), None, "{command}");
        }
    }
}
