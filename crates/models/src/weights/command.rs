//! Runs a client program with a deadline.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::WeightsError;
use starling_workspace::{HostPrograms, Variables};

/// Interval at which a running program is checked.
const GLANCE: Duration = Duration::from_millis(100);
/// Maximum length in bytes of a program's error output in a message.
const SHOWN: usize = 600;

/// Returns a command that runs an installed program in `directory`, which must belong to Starling.
///
/// # Errors
/// The program is not installed.
pub fn client(program: &str, directory: &Path) -> Result<Command, WeightsError> {
    let programs = HostPrograms::outside_current_directory();
    let path = programs.find(program)?;
    Ok(programs.command(&path, Variables::Clean, directory))
}

/// Runs the command. `glance` is called periodically while it runs.
///
/// # Errors
/// The command cannot be started, fails, or exceeds the deadline, after which it is killed.
pub fn run(
    command: &mut Command,
    deadline: Duration,
    glance: &mut dyn FnMut(),
) -> Result<(), WeightsError> {
    let shown = shown(command);
    let failed = |output: String| WeightsError::Failed {
        command: shown.clone(),
        output,
    };
    let spawned = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| failed(error.to_string()))?;
    let stderr = child.stderr.take();
    // The output is read on a separate thread, because a full pipe would block the program.
    let complaint = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() < deadline => {}
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(WeightsError::Late {
                    command: shown,
                    seconds: deadline.as_secs(),
                });
            }
            Err(error) => return Err(failed(error.to_string())),
        }
        glance();
        std::thread::sleep(GLANCE);
    };
    if status.success() {
        return Ok(());
    }
    let complaint = complaint.join().unwrap_or_default();
    Err(failed(format!("{status}: {}", tail(complaint.trim()))))
}

fn shown(command: &Command) -> String {
    let parts = std::iter::once(command.get_program()).chain(command.get_args());
    parts
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(SHOWN);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, deadline: Duration) -> Result<(), WeightsError> {
        let mut shell = client("sh", Path::new("/"))?;
        run(shell.args(["-c", script]), deadline, &mut || {})
    }

    #[test]
    fn client_program_reports_success_failure_and_absence() {
        let minute = Duration::from_secs(60);
        shell("exit 0", minute).unwrap();
        let error = shell("echo out of luck >&2; exit 3", minute)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("out of luck") && error.contains('3'),
            "{error}"
        );
        let error = client("no-such-program-here", Path::new("/")).unwrap_err();
        assert!(matches!(error, WeightsError::NoProgram(_)), "{error}");
    }

    #[test]
    fn hanging_client_program_is_killed_at_the_deadline() {
        let error = shell("exec sleep 1000", Duration::ZERO).unwrap_err();
        assert!(matches!(error, WeightsError::Late { .. }), "{error}");
    }

    #[test]
    fn long_error_output_is_cut_to_its_end() {
        let long = "é".repeat(1000);
        assert_eq!(tail(&long).len(), SHOWN);
    }
}
