//! The findings about the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::Finding;
use crate::cli::languages;
use crate::cli::services::policy;
use starling_config::Config;
use starling_core::TestRunner;
use starling_platform::files::{PYTHON, PathExt};
use starling_runner::{Collection, ProjectTests, TestSettings, needed_variables};
use starling_sandbox::{COPY_ADVICE, Confinement, Kind, SANDBOX_ADVICE, Shadows, cache_dir};
use starling_syntax::{FilePath, Language};
use starling_workspace::{HostPrograms, Overlay, Snapshot, Variables, Workspace};

const PROGRAM_DEADLINE: Duration = Duration::from_secs(10);
const PROJECT_DEADLINE: Duration = Duration::from_secs(60);
const COLLECT_DEADLINE: Duration = Duration::from_secs(45);
/// Maximum number of cache files to count.
const MOST_FILES: usize = 200_000;

pub(super) async fn examine(root: &Path, config: Config) -> Vec<Finding> {
    let mut findings = vec![
        program(
            root,
            "git",
            "git",
            "install git: it shows and undoes changes",
        )
        .await,
        program(
            root,
            "python",
            PYTHON,
            "install Python 3: tests of Python projects need it",
        )
        .await,
    ];
    let Some(cache) = cache_dir() else {
        findings.push(Finding::fail(
            "cache",
            "no home directory was found",
            "set STARLING_CACHE_DIR to a directory with free space",
        ));
        return findings;
    };
    findings.push(cache_finding(&cache));
    match timeout(PROJECT_DEADLINE, project(root, &cache, config)).await {
        Ok(found) => findings.extend(found),
        Err(_) => findings.push(Finding::warn(
            "tests",
            format!(
                "the project could not be examined within {} s",
                PROJECT_DEADLINE.as_secs()
            ),
            "set tests.command",
        )),
    }
    findings
}

async fn program(root: &Path, what: &str, program: &str, advice: &str) -> Finding {
    let programs = HostPrograms::outside(root);
    let path = match programs.find(program) {
        Ok(path) => path,
        Err(error) => return Finding::warn(what, error.to_string(), advice),
    };
    let command = programs.command(&path, Variables::Clean, Path::new("/"));
    let asked = Command::from(command)
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(PROGRAM_DEADLINE, asked).await {
        Ok(Ok(output)) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout);
            Finding::ok(what, version.trim())
        }
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().next().unwrap_or_default();
            Finding::warn(what, format!("{program} --version failed: {line}"), advice)
        }
        Ok(Err(error)) => Finding::warn(what, format!("{program}: {error}"), advice),
        Err(_) => Finding::warn(
            what,
            format!(
                "{program} did not respond within {} s",
                PROGRAM_DEADLINE.as_secs()
            ),
            advice,
        ),
    }
}

/// Reports the kind of shadow, the confinement of tests, and the tests that would run.
async fn project(root: &Path, cache: &Path, config: Config) -> Vec<Finding> {
    let shadows = match Shadows::open(cache, policy(&config.sandbox)).await {
        Ok(shadows) => shadows,
        Err(error) => {
            let advice = "set STARLING_CACHE_DIR to a directory that can be written";
            return vec![Finding::fail("shadow", error.to_string(), advice)];
        }
    };
    let shadow = shadow_finding(shadows.kind(), shadows.reason(), COPY_ADVICE);
    let sandbox = sandbox_finding(&shadows);
    let workspace = root
        .canonical()
        .map_err(|error| error.to_string())
        .and_then(|root| Workspace::open(root).map_err(|error| error.to_string()));
    let mut findings = vec![shadow, sandbox];
    match workspace {
        Err(error) => {
            let advice = "run this command in the directory of a project";
            findings.push(Finding::fail("project", error, advice));
        }
        Ok(workspace) => {
            let snapshot = workspace.snapshot(Overlay::default());
            findings.push(code_finding(snapshot.files()));
            let settings = TestSettings {
                command: config.tests.command,
                setup: config.tests.setup,
                python: None,
                environment: config.sandbox.environment,
                readable: config.sandbox.readable.iter().map(PathBuf::from).collect(),
                ..TestSettings::default()
            };
            let tests = ProjectTests::detect(&snapshot, shadows, settings).await;
            findings.extend(tests_findings(&tests).await);
            findings.extend(withheld(&snapshot, &tests));
        }
    }
    findings
}

/// Reports how the project is kept apart from its checks.
pub(super) fn shadow_finding(kind: Kind, reason: &str, advice: Option<&str>) -> Finding {
    const WHAT: &str = "shadow";
    const COPY: &str = "a copy of the project for each check";
    match (kind, advice) {
        (Kind::Overlay, _) => Finding::ok(WHAT, format!("overlay: {reason}")),
        (Kind::Copy, Some(advice)) => Finding::warn(WHAT, format!("{COPY}: {reason}"), advice),
        (Kind::Copy, None) => Finding::ok(WHAT, COPY),
    }
}

/// Reports how many files have symbols.
fn code_finding(files: &[FilePath]) -> Finding {
    const WHAT: &str = "code";
    let number = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    match languages::count(files) {
        (0, _) => Finding::warn(
            WHAT,
            languages::NO_SYMBOLS,
            "run Starling in a Python project, or name the files to change in the task",
        ),
        (known, 0) => Finding::ok(WHAT, number(known, "Python file")),
        (known, other) => Finding::ok(
            WHAT,
            format!(
                "{}; {}, without symbols (each is read and changed as a whole)",
                number(known, "Python file"),
                number(other, "other file")
            ),
        ),
    }
}

/// Reports the result of collecting the tests, and why a better interpreter or runner is not used.
async fn tests_findings(tests: &ProjectTests) -> Vec<Finding> {
    const WHAT: &str = "tests";
    let python = tests.python().map(|version| format!(" (Python {version})"));
    let python = python.unwrap_or_default();
    let collected = match tests.collect(COLLECT_DEADLINE).await {
        Collection::Counted(counted) => {
            let number = match counted.tests {
                1 => "1 test".to_owned(),
                tests => format!("{tests} tests"),
            };
            let seconds = counted.millis as f64 / 1000.0;
            let detail = format!(
                "{number}, collected in {seconds:.1} s: {}{python}",
                counted.command
            );
            match counted.broken_files {
                0 => Finding::ok(WHAT, detail),
                files => Finding::warn(
                    WHAT,
                    format!("{detail}; test files that cannot be imported: {files}"),
                    "run the command to see the errors",
                ),
            }
        }
        Collection::Uncounted { command } => Finding::ok(
            WHAT,
            format!("{command}{python}: its tests are counted only in a run"),
        ),
        Collection::NoTestRan { reason } => Finding::warn(
            WHAT,
            reason,
            "try the command in a shell, then set tests.command",
        ),
        Collection::Nothing { reason } => Finding::warn(
            WHAT,
            reason,
            "set tests.command where the project has tests",
        ),
    };
    let warnings = tests.warnings().iter();
    let advice = "fix the Python environment, or set tests.command";
    let warnings = warnings.map(|why| Finding::warn(WHAT, why.clone(), advice));
    std::iter::once(collected).chain(warnings).collect()
}

/// Reports variables that are set and that the code needs, but that are withheld from its tests.
fn withheld(snapshot: &Snapshot, tests: &ProjectTests) -> Vec<Finding> {
    let is_python = |file: &&FilePath| Language::of(file) == Language::Python;
    let mut found: BTreeMap<String, (&'static str, &FilePath)> = BTreeMap::new();
    for file in snapshot.files().iter().filter(is_python) {
        let Ok(text) = snapshot.read(file) else {
            continue;
        };
        for name in needed_variables(&text) {
            if let Some(why) = tests.withholds(name) {
                found.entry(name.to_owned()).or_insert((why, file));
            }
        }
    }
    let finding = |(name, (why, file)): (String, (&str, &FilePath))| {
        let detail =
            format!("{file} uses the environment variable {name}, which is set, but {why}");
        let advice = format!("set sandbox.environment = [\"{name}\"] to pass it to the tests");
        Finding::warn("tests", detail, advice)
    };
    found.into_iter().map(finding).collect()
}

fn sandbox_finding(shadows: &Shadows) -> Finding {
    let advice = SANDBOX_ADVICE;
    match shadows.confinement() {
        Some(Confinement::Namespaces) => Finding::ok("sandbox", "user namespaces"),
        Some(Confinement::Bubblewrap) => Finding::ok("sandbox", "bubblewrap"),
        Some(Confinement::SandboxExec) => Finding::ok("sandbox", "sandbox-exec"),
        Some(Confinement::Nothing) => Finding::warn(
            "sandbox",
            format!(
                "no sandbox (allowed by sandbox.missing), so tests can access your files and the network: {}",
                shadows.reason()
            ),
            advice,
        ),
        None => Finding::fail(
            "sandbox",
            format!("no sandbox, so no tests can run: {}", shadows.reason()),
            format!("{advice}; or set sandbox.missing = \"allow\""),
        ),
    }
}

/// Reports whether the cache is writable, and its size.
pub(super) fn cache_finding(cache: &Path) -> Finding {
    let probe = cache.join(format!("doctor-{}", std::process::id()));
    let written = fs::create_dir_all(cache)
        .and_then(|()| fs::write(&probe, ""))
        .and_then(|()| fs::remove_file(&probe));
    match written {
        Ok(()) => Finding::ok("cache", format!("{}, {}", cache.display(), size(cache))),
        Err(error) => Finding::fail(
            "cache",
            format!("{}: {error}", cache.display()),
            "set STARLING_CACHE_DIR to a directory that can be written",
        ),
    }
}

/// Returns the total size of the files below a directory. Does not follow links.
fn size(directory: &Path) -> String {
    let mut waiting: Vec<PathBuf> = vec![directory.to_owned()];
    let (mut bytes, mut files) = (0u64, 0usize);
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            files += 1;
            match entry.metadata() {
                Ok(data) if data.is_dir() => waiting.push(entry.path()),
                Ok(data) => bytes += data.len(),
                Err(_) => {}
            }
        }
        if files > MOST_FILES {
            return format!("more than {}", readable(bytes));
        }
    }
    readable(bytes)
}

fn readable(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
