//! Determines the Python version of a command from the files around its program, without starting a
//! process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use starling_platform::files::PathExt;
use starling_workspace::{MAX_FILE_BYTES, read_text};

/// Returns the version of an interpreter, such as `3.9`, from its virtual environment or its file
/// name.
pub(super) fn of_program(program: &Path) -> Option<String> {
    let home = program.parent().and_then(Path::parent);
    let settings = home.map(|home| home.join("pyvenv.cfg"));
    let settings = settings.and_then(|path| read_text(&path, MAX_FILE_BYTES).ok());
    settings
        .as_deref()
        .and_then(of_settings)
        .or_else(|| of_name(&program.canonical().ok()?))
}

/// Returns the interpreter that a command line starts with, after any variable assignments.
pub(super) fn program_of(line: &str, root: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let mut words = line.split_whitespace();
    let program = words
        .find(|word| !word.contains('='))?
        .trim_matches(['\'', '"']);
    let name = program.rsplit('/').next().unwrap_or(program);
    if !name.starts_with("python") {
        return None;
    }
    match program.contains('/') {
        true => Some(root.join(program)),
        false => std::env::split_paths(path?)
            .map(|place| place.join(program))
            .find(|program| program.is_file()),
    }
}

fn of_settings(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        ["version", "version_info"]
            .contains(&key.trim())
            .then_some(value)
    });
    two_parts(value?.trim())
}

/// Parses a file name such as `python3.9`.
fn of_name(program: &Path) -> Option<String> {
    two_parts(program.file_name()?.to_str()?.strip_prefix("python")?)
}

fn two_parts(version: &str) -> Option<String> {
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = version.split('.').filter(is_number);
    let (major, minor) = (parts.next()?, parts.next()?);
    Some(format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_version_is_read_from_pyvenv_cfg_or_the_file_name() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        let real = dir.path().join("python3.8");
        std::fs::write(&real, "").unwrap();
        let program = bin.join("python");
        std::os::unix::fs::symlink(&real, &program).unwrap();
        assert_eq!(of_program(&program).as_deref(), Some("3.8"));
        let settings = dir.path().join("venv/pyvenv.cfg");
        std::fs::write(&settings, "home = /usr/bin\nversion = 3.9.18\n").unwrap();
        assert_eq!(of_program(&program).as_deref(), Some("3.9"));
        std::fs::write(&settings, "version_info = 3.10.2.final.0\n").unwrap();
        assert_eq!(of_program(&program).as_deref(), Some("3.10"));
        assert_eq!(of_program(Path::new("/bin/true")), None);
        assert_eq!(of_program(Path::new("python")), None);
    }

    #[test]
    fn program_of_a_command_line_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let on_path = dir.path().join("python3");
        std::fs::write(&on_path, "").unwrap();
        let path = dir.path().as_os_str();
        let found = |line: &str| program_of(line, Path::new("/w"), Some(path));
        assert_eq!(found("A=1 python3 -m pytest"), Some(on_path));
        assert_eq!(found("'/v/bin/python' -m x"), Some("/v/bin/python".into()));
        assert_eq!(
            found(".venv/bin/python x"),
            Some("/w/.venv/bin/python".into())
        );
        for other in ["make test", "", "pytest", "python9 x"] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
