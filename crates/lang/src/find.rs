//! Finds installed language servers, and reports why a server is not used.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use super::known::KNOWN;
use starling_platform::files::{
    PROGRAMS_OF_ENVIRONMENT, PYTHON, PYTHON_OF_ENVIRONMENT, PathExt, is_path, is_program,
    program_files,
};
use starling_workspace::HostPrograms;

/// Whether programs inside the project may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnPrograms {
    Allowed,
    Refused,
}

/// The directories in which programs are searched.
#[derive(Debug, Clone)]
pub struct ProgramSearch {
    pub root: PathBuf,
    pub own_programs: OwnPrograms,
    /// The value of `$PATH`.
    pub path: OsString,
    /// The value of `$VIRTUAL_ENV`.
    pub virtual_env: Option<PathBuf>,
}

/// A language server program that can be started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerProgram {
    /// The server's name for display.
    pub name: String,
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// The programs that the server may start by name.
    pub others: HostPrograms,
}

/// Why a server is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotUsed {
    #[error("not installed: {program} is neither in the project's virtual environment nor on PATH")]
    Missing { program: String },
    #[error("{} is inside the project, which is not trusted: run `starling trust` to allow it", .path.display())]
    Untrusted { path: PathBuf },
    #[error("an empty command")]
    Empty,
}

impl ProgramSearch {
    /// Returns the search directories of the current process.
    pub fn of_process(root: PathBuf, own_programs: OwnPrograms) -> Self {
        ProgramSearch {
            root,
            own_programs,
            path: env::var_os("PATH").unwrap_or_default(),
            virtual_env: env::var_os("VIRTUAL_ENV").map(PathBuf::from),
        }
    }

    /// Finds a server by its built-in name, or else parses the entry as a command with arguments.
    ///
    /// # Errors
    /// See [`NotUsed`].
    pub fn find(&self, entry: &str) -> Result<ServerProgram, NotUsed> {
        let (name, program, arguments) = match KNOWN.iter().find(|known| known.name == entry) {
            Some(known) => {
                let arguments = known.arguments.iter().map(|one| (*one).to_owned());
                (known.name, known.program, arguments.collect())
            }
            None => {
                let mut words = entry.split_whitespace();
                let program = words.next().ok_or(NotUsed::Empty)?;
                let name = program
                    .rsplit(std::path::is_separator)
                    .next()
                    .unwrap_or(program);
                (name, program, words.map(str::to_owned).collect())
            }
        };
        Ok(ServerProgram {
            name: name.to_owned(),
            path: self.program(program)?,
            arguments,
            others: match self.own_programs {
                OwnPrograms::Allowed => HostPrograms::with_project(&self.path),
                OwnPrograms::Refused => HostPrograms::on(&self.path, &self.root),
            },
        })
    }

    /// Returns the project's Python interpreter. Servers read the packages that are installed for
    /// it, and some servers start it.
    pub fn python(&self) -> Option<PathBuf> {
        let mut homes = self.homes();
        homes.find_map(|home| self.usable(home.join(PYTHON_OF_ENVIRONMENT))?.ok())
    }

    /// Returns the interpreter that a server may start to inspect packages: the project's
    /// interpreter, or, if that may not be started, the interpreter next to the server or on the
    /// host's `PATH`. Servers without a setting would search for one themselves.
    pub(super) fn interpreter(&self, server: &ServerProgram) -> Option<PathBuf> {
        let of_host = || {
            let own = server.path.with_file_name("python");
            let own = self.usable(own).and_then(Result::ok);
            own.or_else(|| server.others.find(PYTHON).ok())
        };
        match (self.python(), self.own_programs) {
            (Some(python), _) => Some(python),
            (None, OwnPrograms::Refused) => of_host(),
            (None, OwnPrograms::Allowed) => None,
        }
    }

    /// Returns the virtual environments, the project's own first.
    fn homes(&self) -> impl Iterator<Item = PathBuf> {
        let own = [".venv", "venv"].map(|name| self.root.join(name));
        own.into_iter().chain(self.virtual_env.clone())
    }

    fn program(&self, program: &str) -> Result<PathBuf, NotUsed> {
        let candidates: Vec<PathBuf> = if is_path(program) {
            vec![self.root.join(program)]
        } else {
            let environments = self.homes().map(|home| home.join(PROGRAMS_OF_ENVIRONMENT));
            // What stands relative in the path would be looked for in the project.
            let path = env::split_paths(&self.path).filter(|place| place.is_absolute());
            let places = environments.chain(path);
            let files = program_files(program);
            places
                .flat_map(|place| files.iter().map(move |file| place.join(file)))
                .collect()
        };
        let mut refused = None;
        for found in candidates.into_iter().filter_map(|one| self.usable(one)) {
            match found {
                Ok(path) => return Ok(path),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        Err(refused.unwrap_or(NotUsed::Missing {
            program: program.to_owned(),
        }))
    }

    /// Returns the path if it is a program, or an error if the program may not be started.
    fn usable(&self, path: PathBuf) -> Option<Result<PathBuf, NotUsed>> {
        if !is_program(&path) {
            return None;
        }
        let inside = path.starts_with(&self.root)
            || path
                .canonical()
                .is_ok_and(|real| real.starts_with(&self.root));
        if inside && self.own_programs == OwnPrograms::Refused {
            return Some(Err(NotUsed::Untrusted { path }));
        }
        Some(Ok(path))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn places(dir: &Path, own_programs: OwnPrograms) -> ProgramSearch {
        ProgramSearch {
            root: dir.join("project"),
            own_programs,
            path: env::join_paths([dir.join("bin"), "relative".into()]).unwrap(),
            virtual_env: Some(dir.join("active")),
        }
    }

    #[test]
    fn server_of_a_trusted_project_environment_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonical().unwrap();
        let own = dir.join("project/.venv/bin/ty");
        let on_path = dir.join("bin/ty");
        program(&own);
        let found = |trust| places(&dir, trust).find("ty");
        assert_eq!(found(OwnPrograms::Allowed).unwrap().path, own);
        assert_eq!(
            found(OwnPrograms::Refused),
            Err(NotUsed::Untrusted { path: own })
        );
        program(&on_path);
        let passed_over = found(OwnPrograms::Refused).unwrap();
        assert_eq!(passed_over.path, on_path);
        assert_eq!(passed_over.arguments, ["server"]);
        let active = dir.join("active/bin/ty");
        program(&active);
        assert_eq!(found(OwnPrograms::Refused).unwrap().path, active);
    }

    #[test]
    fn link_to_an_untrusted_project_program_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonical().unwrap();
        let own = dir.join("project/tool");
        program(&own);
        std::fs::create_dir_all(dir.join("bin")).unwrap();
        std::os::unix::fs::symlink(&own, dir.join("bin/ty")).unwrap();
        let found = places(&dir, OwnPrograms::Refused).find("ty");
        assert!(matches!(found, Err(NotUsed::Untrusted { .. })), "{found:?}");
    }

    #[test]
    fn configured_server_command_is_used_with_its_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonical().unwrap();
        let own = dir.join("elsewhere/my-server");
        program(&own);
        let places = places(&dir, OwnPrograms::Refused);
        let found = places.find(&format!("{} --stdio -v", own.display()));
        let expected = ServerProgram {
            name: "my-server".to_owned(),
            path: own,
            arguments: vec!["--stdio".to_owned(), "-v".to_owned()],
            others: HostPrograms::on(&places.path, &dir.join("project")),
        };
        assert_eq!(found, Ok(expected));
        assert_eq!(places.find("  "), Err(NotUsed::Empty));
        let missing = places.find("pylsp").unwrap_err().to_string();
        assert!(missing.contains("pylsp is neither"), "{missing}");
    }

    #[test]
    fn python_interpreter_comes_from_a_virtual_environment() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonical().unwrap();
        let places = |trust| places(&dir, trust).python();
        assert_eq!(places(OwnPrograms::Allowed), None);
        let own = dir.join("project/venv/bin/python");
        program(&own);
        assert_eq!(places(OwnPrograms::Allowed), Some(own));
        assert_eq!(places(OwnPrograms::Refused), None);
        let active = dir.join("active/bin/python");
        program(&active);
        assert_eq!(places(OwnPrograms::Refused), Some(active));
    }

    #[test]
    fn server_of_an_untrusted_project_gets_an_interpreter_outside_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonical().unwrap();
        let (own, tool) = (dir.join("project/.venv/bin/python"), dir.join("tool/bin"));
        program(&own);
        program(&tool.join("pylsp"));
        let interpreter = |trust| {
            let places = ProgramSearch {
                path: tool.clone().into(),
                virtual_env: Some(dir.join("project/.venv")),
                ..places(&dir, trust)
            };
            let server = places.find(&tool.join("pylsp").display().to_string());
            places.interpreter(&server.unwrap())
        };
        assert_eq!(interpreter(OwnPrograms::Allowed), Some(own));
        assert_eq!(interpreter(OwnPrograms::Refused), None);
        program(&tool.join("python3"));
        assert_eq!(
            interpreter(OwnPrograms::Refused),
            Some(tool.join("python3"))
        );
        program(&tool.join("python"));
        assert_eq!(interpreter(OwnPrograms::Refused), Some(tool.join("python")));
    }
}
