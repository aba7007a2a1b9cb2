//! Starts programs of the host. A program has an absolute path outside the project, runs in a
//! directory that the caller chooses, and has no project directory in its `PATH`. Otherwise a
//! project could contain its own `git`, and even `git --version` would run it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::git_names::plain;
use starling_platform::files::{LIST_SEPARATOR, PathExt, is_path, is_program, program_files};
use starling_platform::processes::variables;

/// Variables that a program inherits with [`Variables::Clean`]: the user, the language, the
/// directories of caches and settings, and the network settings.
const CLEAN: [&str; 35] = [
    // On Windows, programs do not start without these variables, or do not find the user's files.
    "APPDATA",
    "COMSPEC",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERPROFILE",
    "WINDIR",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];
/// Prefixes of further variables: the locale, and the settings of `pip` and `hf`.
const CLEAN_PREFIXES: [&str; 3] = ["LC_", "PIP_", "HF_"];

/// Why a program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error("{0} is not installed")]
    Missing(String),
    #[error("{} is inside the project and is not started; name a program outside of the project", .0.display())]
    InProject(PathBuf),
}

/// The environment variables of this process that a program inherits, apart from `PATH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variables {
    /// Only the variables that every program needs.
    Clean,
    /// All variables except those that redirect git.
    Inherited,
}

/// The programs of the host outside the project.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPrograms {
    project: Option<PathBuf>,
    path: OsString,
}

impl HostPrograms {
    /// Returns the programs on this process's `PATH` outside the project at `root`.
    pub fn outside(root: &Path) -> Self {
        HostPrograms::on(&std::env::var_os("PATH").unwrap_or_default(), root)
    }

    /// Returns the programs on a `PATH` outside the project at `root`.
    pub fn on(path: &OsStr, root: &Path) -> Self {
        let root = root.canonical().unwrap_or_else(|_| root.to_owned());
        // A root at or above the home directory contains the user's own programs, which are
        // trusted.
        let is_above_home = std::env::home_dir().is_some_and(|home| home.starts_with(&root));
        let mut programs = HostPrograms {
            project: Some(root).filter(|_| !is_above_home),
            path: OsString::new(),
        };
        let places = std::env::split_paths(path)
            .filter(|place| place.is_absolute() && !programs.is_in_project(place));
        programs.path = std::env::join_paths(places).unwrap_or_default();
        programs
    }

    /// Returns the programs on a `PATH` including those inside the project, which the user trusts.
    pub fn with_project(path: &OsStr) -> Self {
        let places = std::env::split_paths(path).filter(|place| place.is_absolute());
        HostPrograms {
            project: None,
            path: std::env::join_paths(places).unwrap_or_default(),
        }
    }

    /// Returns the programs on this process's `PATH` for a command without a project. The current
    /// directory is excluded because its contents may not be trusted.
    pub fn outside_current_directory() -> Self {
        HostPrograms::outside(&std::env::current_dir().unwrap_or_default())
    }

    fn is_in_project(&self, path: &Path) -> bool {
        let Some(root) = &self.project else {
            return false;
        };
        let real = path.canonical();
        path.starts_with(root) || real.is_ok_and(|real| real.starts_with(root))
    }

    /// Returns whether the value of a variable contains a path into the project: as the whole
    /// value, as an item of a list, or after other text. Relative paths are resolved at the
    /// project's root, because language servers of the project run there.
    pub fn is_named_in(&self, value: &OsStr) -> bool {
        let Some(root) = &self.project else {
            return false;
        };
        let bytes = |text: &OsStr| text.as_encoded_bytes().to_vec();
        let (whole, start) = (bytes(value), bytes(root.as_os_str()));
        let holds_root = whole.windows(start.len()).enumerate().any(|(at, part)| {
            let after = whole.get(at + start.len());
            part == start && after.is_none_or(|next| !is_of_name(*next))
        });
        let is_list = whole.contains(&LIST_SEPARATOR);
        let leads_inside = |part: PathBuf| match part.as_os_str().is_empty() {
            // In a list, an empty entry means the current directory of the program.
            true => is_list,
            false if part.is_absolute() => {
                self.is_in_project(&part) || plain(&part).starts_with(root)
            }
            false => {
                let path = root.join(&part);
                path.symlink_metadata().is_ok() && self.is_in_project(&path)
            }
        };
        holds_root || std::env::split_paths(value).any(leads_inside)
    }

    /// Returns the directories in which programs are searched, which is also the `PATH` of started
    /// programs.
    pub fn path(&self) -> &OsStr {
        &self.path
    }

    /// Returns the absolute path of a program on `PATH`, or of a program that a person named by its
    /// path.
    pub fn find(&self, name: &str) -> Result<PathBuf, ProgramError> {
        if is_path(name) {
            // A path that a person named is used even if it is inside the project.
            let path = std::path::absolute(name).ok();
            let path = path.filter(|path| is_program(path));
            return path.ok_or_else(|| ProgramError::Missing(name.to_owned()));
        }
        let mut refused = None;
        let files = program_files(name);
        let places = std::env::split_paths(&self.path);
        let paths = places.flat_map(|place| files.iter().map(move |file| place.join(file)));
        for path in paths.filter(|path| is_program(path)) {
            if !self.is_in_project(&path) {
                return Ok(path);
            }
            refused = refused.or(Some(ProgramError::InProject(path)));
        }
        Err(refused.unwrap_or_else(|| ProgramError::Missing(name.to_owned())))
    }

    /// Returns a command that runs the program at an absolute path in `directory`.
    pub fn command(&self, program: &Path, variables: Variables, directory: &Path) -> Command {
        debug_assert!(program.is_absolute(), "{}", program.display());
        let mut command = Command::new(program);
        match variables {
            Variables::Clean => {
                command.env_clear().envs(clean_variables());
            }
            Variables::Inherited => {
                for (name, _) in std::env::vars_os() {
                    if name.as_encoded_bytes().starts_with(b"GIT_") {
                        command.env_remove(name);
                    }
                }
            }
        }
        command.env("PATH", &self.path).current_dir(directory);
        command
    }
}

/// Returns whether a byte can be part of a file name.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') || !byte.is_ascii()
}

fn clean_variables() -> impl Iterator<Item = (OsString, OsString)> {
    variables().filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            CLEAN.contains(&name) || CLEAN_PREFIXES.iter().any(|start| name.starts_with(start))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\necho \"$PATH|$PWD\"\n").unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A temporary directory with a project and directories of programs.
    struct TestDirectories {
        dir: tempfile::TempDir,
        base: PathBuf,
    }

    impl TestDirectories {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonical().unwrap();
            program(&base.join("project/git"));
            program(&base.join("project/.venv/bin/git"));
            TestDirectories { dir, base }
        }

        fn programs(&self, places: &[&str]) -> HostPrograms {
            let path = std::env::join_paths(places.iter().map(|place| match *place {
                "" | "." | "bin" => PathBuf::from(place),
                inside => self.base.join(inside),
            }));
            HostPrograms::on(&path.unwrap(), &self.base.join("project"))
        }
    }

    #[test]
    fn project_directories_and_relative_directories_on_path_are_skipped() {
        let bed = TestDirectories::new();
        let places = ["", ".", "bin", "project", "project/.venv/bin", "host"];
        let programs = bed.programs(&places);
        assert_eq!(
            programs.find("git"),
            Err(ProgramError::Missing("git".to_owned()))
        );
        program(&bed.base.join("host/git"));
        assert_eq!(programs.find("git"), Ok(bed.base.join("host/git")));
        assert_eq!(Path::new(programs.path()), bed.base.join("host"));
    }

    #[test]
    fn program_link_into_the_project_is_rejected() {
        let bed = TestDirectories::new();
        std::fs::create_dir(bed.base.join("host")).unwrap();
        let link = bed.base.join("host/git");
        std::os::unix::fs::symlink(bed.base.join("project/git"), &link).unwrap();
        std::os::unix::fs::symlink(bed.base.join("project"), bed.base.join("linked")).unwrap();
        let programs = bed.programs(&["linked", "host"]);
        assert_eq!(programs.find("git"), Err(ProgramError::InProject(link)));
        assert_eq!(Path::new(programs.path()), bed.base.join("host"));
    }

    #[test]
    fn absolute_program_path_from_the_user_is_accepted() {
        let bed = TestDirectories::new();
        let programs = bed.programs(&[]);
        let own = bed.base.join("project/git");
        assert_eq!(programs.find(own.to_str().unwrap()), Ok(own));
        assert_eq!(
            programs.find("./no-such-program"),
            Err(ProgramError::Missing("./no-such-program".to_owned()))
        );
    }

    #[test]
    fn command_runs_in_the_given_directory_with_a_clean_path() {
        let bed = TestDirectories::new();
        program(&bed.base.join("host/tool"));
        let programs = bed.programs(&[".", "project", "host"]);
        let tool = programs.find("tool").unwrap();
        let mut command = programs.command(&tool, Variables::Clean, bed.dir.path());
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let host = bed.base.join("host");
        assert_eq!(
            said.trim(),
            format!("{}|{}", host.display(), bed.base.display())
        );
        // Cargo sets this variable for tests, and it is not in the list of passed variables.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        let clean: Vec<_> = command.get_envs().map(|(name, _)| name).collect();
        assert!(!clean.contains(&OsStr::new("CARGO_PKG_NAME")), "{clean:?}");
    }

    #[test]
    fn variable_values_that_point_into_the_project_are_detected() {
        let bed = TestDirectories::new();
        let programs = bed.programs(&[]);
        std::os::unix::fs::symlink(bed.base.join("project/.venv"), bed.base.join("env")).unwrap();
        let base = bed.base.display();
        let is_named = |value: String| programs.is_named_in(OsStr::new(&value));
        for value in [
            format!("{base}/project"),
            format!("{base}/project/.venv"),
            format!("{base}/x/../project/.venv"),
            format!("{base}/env"),
            format!("/usr/lib:{base}/project/lib"),
            format!("file://{base}/project/lib"),
            "/usr/lib:".to_owned(),
            ".venv".to_owned(),
            "./.venv/bin".to_owned(),
        ] {
            assert!(is_named(value.clone()), "{value}");
        }
        for value in [
            format!("{base}/project-two/.venv"),
            format!("{base}/elsewhere"),
            "/usr/lib:/opt/lib".to_owned(),
            "C.UTF-8".to_owned(),
            "3.11.7".to_owned(),
            String::new(),
        ] {
            assert!(!is_named(value.clone()), "{value}");
        }
        let trusted = HostPrograms::with_project(OsStr::new(""));
        assert!(!trusted.is_named_in(bed.base.join("project").as_os_str()));
    }

    #[test]
    fn path_directories_are_kept_if_the_project_is_the_home_directory() {
        let home = std::env::home_dir().unwrap().canonical().unwrap();
        let path = std::env::join_paths([home.join(".local/bin")]).unwrap();
        assert_eq!(HostPrograms::on(&path, &home).path(), path);
    }
}
