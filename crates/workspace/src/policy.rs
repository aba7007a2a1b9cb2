//! The path policy: which files may be read, and which files an agent may write. Every module that
//! shows a text to a model or accepts a change from a model checks the policy. Each check resolves
//! links again, so that the target of a link decides and not its name.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ignore::gitignore::Gitignore;
use starling_platform::files::{
    Identity, PathExt, identity, identity_of_open, open_without_following, open_without_links,
};

use super::compared::compared_path;
use super::dependencies::new_source;
use super::encoding::reads_otherwise;
use super::git_config::GitUser;
use super::git_copy::is_only_copy;
use super::git_names::{GitNames, GitNaming};
use super::guarded::{INSTALLED, OWN, SETTINGS, matcher, runs};
use super::links::{LinkTargets, in_directory};
use super::own_directories::{cache_directories, own_directories};
use super::paths::{ReadError, is_linked_secret, may_show, resolve};
use starling_syntax::FilePath;

/// Whether an agent may change a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteRule {
    Allowed,
    /// Only a person may accept the change, in a review of this file.
    NeedsPerson {
        why: &'static str,
    },
    Never {
        why: String,
    },
}

/// The error for an invalid glob in the list of files that agents may change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{glob}: not a valid .gitignore glob ({message}); examples: Makefile, ci/**")]
pub struct BadGlob {
    pub glob: String,
    pub message: String,
}

/// The policy of one workspace. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PathPolicy {
    root: Arc<Path>,
    /// The root as it was opened. It can lead through links.
    opened_as: Arc<Path>,
    /// Starling's cache directories below the root.
    caches: Arc<[PathBuf]>,
    /// Unset until a file is to be written: most policies are only asked what may be read.
    surroundings: Arc<OnceLock<Surroundings>>,
    /// Files that agents may change although the default rules require a person's approval.
    allowed: Arc<Gitignore>,
    git_names: GitNames,
    /// The links found by the last listing.
    links: Arc<LinkTargets>,
}

impl PathPolicy {
    /// Creates the policy of the directory at `opened_as`. [`PathPolicy::root`] is its canonical path.
    pub fn of(opened_as: &Path) -> Self {
        let root = opened_as.canonical().unwrap_or_else(|_| opened_as.into());
        PathPolicy {
            surroundings: Arc::default(),
            opened_as: opened_as.into(),
            caches: cache_directories(&root).into(),
            root: root.into(),
            allowed: Arc::new(Gitignore::empty()),
            git_names: GitNames::default(),
            links: Arc::default(),
        }
    }

    /// Adds links, so that a linked file is also checked under the links' names.
    pub(super) fn with_links(self, links: &[PathBuf]) -> Self {
        let links = Arc::new(LinkTargets::new(&self.root, links));
        PathPolicy { links, ..self }
    }

    /// Returns all paths of a file below the root: the requested path, the real path, the paths of links
    /// to it, and the paths for which another file system takes these ([`compared_path`]). The links in
    /// the root and in the file's own directory are read each time, because they may have been created
    /// since the last listing.
    fn names(&self, file: &FilePath, real: &Path) -> Vec<PathBuf> {
        let relative = real.strip_prefix(&*self.root).unwrap_or(real);
        let own = [PathBuf::from(file.as_str()), relative.to_owned()];
        let mut links = in_directory(&self.root);
        let beside = real.parent().filter(|beside| **beside != *self.root);
        links.extend(beside.map(in_directory).unwrap_or_default());
        let new = LinkTargets::new(&self.root, &links);
        let known = self.links.names(real).chain(new.names(real));
        let mut names: Vec<PathBuf> = own.into_iter().chain(known).collect();
        let compared: Vec<PathBuf> = names
            .iter()
            .filter_map(|name| compared_path(name))
            .collect();
        names.extend(compared);
        names
    }

    /// Lets agents change files that match these `.gitignore` globs without a person's approval.
    ///
    /// # Errors
    /// [`BadGlob`] names the first invalid glob.
    pub fn allowing(self, globs: &[String]) -> Result<Self, BadGlob> {
        let allowed = Arc::new(matcher(globs.iter().map(String::as_str).collect())?);
        Ok(PathPolicy { allowed, ..self })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the real paths of Starling's cache directories below the root, which are never read.
    pub(super) fn caches(&self) -> &[PathBuf] {
        &self.caches
    }

    /// Returns the real path of a file that is no secret, version control data or record of Starling
    /// by its path.
    fn resolve(&self, file: &FilePath) -> Result<PathBuf, ReadError> {
        let real = resolve(&self.root, file)?;
        match self.caches.iter().any(|cache| real.starts_with(cache)) {
            true => Err(ReadError::Own(file.clone())),
            false => Ok(real),
        }
    }

    /// Returns the real path of a file that may be read. The file need not exist.
    ///
    /// # Errors
    /// The path leads outside the root, to a secret, to version control data or to Starling's cache,
    /// by its name or through links.
    pub fn may_read(&self, file: &FilePath) -> Result<PathBuf, ReadError> {
        let real = self.resolve(file)?;
        match of_path(&real) {
            Ok(found) if is_linked_secret(&self.root, &real, found) => {
                Err(ReadError::Secret(file.clone()))
            }
            Ok(_) | Err(_) => Ok(real),
        }
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// The file may not be read, is not a regular file, or cannot be opened.
    pub fn open(&self, file: &FilePath) -> Result<File, ReadError> {
        let failed = |error: std::io::Error| ReadError::io(file, &error);
        let real = self.resolve(file)?;
        // Does not follow a link that was created after the check, and does not block on a pipe.
        let opened = open_without_following(&real).map_err(failed)?;
        let found = opened.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(ReadError::Io {
                file: file.clone(),
                message: "not a file".into(),
            });
        }
        let found = identity_of_open(&opened, &found).map_err(failed)?;
        match is_linked_secret(&self.root, &real, found) {
            true => Err(ReadError::Secret(file.clone())),
            false => Ok(opened),
        }
    }

    /// Opens a regular file whose path was checked when it was listed. The file is checked again if
    /// its path contains a link by now, or if it has a second hard link.
    pub(super) fn open_listed(&self, file: &FilePath) -> Result<File, ReadError> {
        let is_as_listed = |opened: &File| {
            let found = opened.metadata().and_then(|found| {
                let is_file = found.is_file();
                Ok(is_file && identity_of_open(opened, &found)?.links == 1)
            });
            found.unwrap_or(false)
        };
        let opened = open_without_links(&self.root.join(file.as_str()));
        match opened.ok().filter(is_as_listed) {
            Some(opened) => Ok(opened),
            None => self.open(file),
        }
    }

    /// Returns whether the file is in a Python virtual environment, whatever the name of the
    /// environment's directory. If the root itself is an environment, the project's files are not
    /// installed, but the programs of the environment are.
    fn is_installed(&self, real: &Path) -> bool {
        if self.surroundings().is_installed {
            return true;
        }
        let programs = |folder: &Path| ["bin", "Scripts"].map(|name| folder.join(name));
        let folders = real.ancestors().skip(1);
        let mut folders = folders.take_while(|folder| folder.starts_with(&*self.root));
        folders.any(|folder| {
            let is_in = match *folder == *self.root {
                true => programs(folder)
                    .iter()
                    .any(|programs| real.starts_with(programs)),
                false => true,
            };
            is_in && folder.join("pyvenv.cfg").exists()
        })
    }

    /// Returns whether an agent may change or create a file.
    pub fn may_write(&self, file: &FilePath) -> WriteRule {
        let real = match self.may_read(file) {
            Ok(real) => real,
            Err(error) => {
                return WriteRule::Never {
                    why: error.to_string(),
                };
            }
        };
        let relative = real.strip_prefix(&self.root).unwrap_or(&real);
        let names = self.names(file, &real);
        let around = self.surroundings();
        let is_own = |path: &PathBuf| around.in_all(path).any(|path| OWN.matches(&path));
        let is_in_own = around.own.iter().any(|own| real.starts_with(own));
        if is_in_own || names.iter().any(is_own) {
            let why =
                format!("{file}: only people change the configuration and records of Starling");
            return WriteRule::Never { why };
        }
        let needs = |path: &PathBuf| self.runs(path).filter(|_| !self.is_allowed(path));
        if let Some(why) = names.iter().find_map(needs) {
            return WriteRule::NeedsPerson { why };
        }
        if self.is_allowed(relative) {
            return WriteRule::Allowed;
        }
        let in_git = |path: &PathBuf| match self.git_names.names(&self.root, path) {
            GitNaming::No => None,
            GitNaming::Yes => {
                Some("git runs it, because the repository's configuration or a hook names it")
            }
            GitNaming::Unknown => {
                Some("git may run it: the configuration of the repository is too long to be read")
            }
        };
        let named = names.iter().find_map(in_git);
        let has_other_name = || {
            let is_file = real.symlink_metadata().is_ok_and(|found| found.is_file());
            is_file && of_path(&real).is_ok_and(|found| found.links > 1)
        };
        match named {
            Some(why) => WriteRule::NeedsPerson { why },
            None if self.is_installed(&real) => WriteRule::NeedsPerson { why: INSTALLED },
            None if real.exists() && is_only_copy(&self.root, &real, &GitUser::of_process()) => {
                WriteRule::NeedsPerson {
                    why: "git ignores it, so there is no other copy of it",
                }
            }
            None if has_other_name() => WriteRule::NeedsPerson {
                why: "it has a hard link, whose other name is unknown",
            },
            None => WriteRule::Allowed,
        }
    }

    /// Returns the paths of a file that must match the globs of [`PathPolicy::allowing`] before
    /// agents may change it. These are the paths (the file's own and those of links to it) that
    /// need a person's approval, or all paths if none of them does.
    pub fn names_to_allow(&self, file: &FilePath) -> Vec<PathBuf> {
        let own = PathBuf::from(file.as_str());
        let Ok(real) = self.may_read(file) else {
            return vec![own];
        };
        let mut names = self.names(file, &real);
        names.sort();
        names.dedup();
        let running: Vec<PathBuf> = names
            .iter()
            .filter(|path| self.runs(path).is_some())
            .cloned()
            .collect();
        match running.is_empty() {
            true => names,
            false => running,
        }
    }

    /// Returns whether an agent may make this change to the text of a file.
    /// [`PathPolicy::may_write`] decides whether agents may change the file at all. The change of a
    /// dependency list may alter versions but not package sources, and no change may make Python
    /// decode a file differently.
    pub fn may_bring(&self, file: &FilePath, before: &str, after: &str) -> WriteRule {
        let Ok(real) = self.may_read(file) else {
            return WriteRule::Allowed;
        };
        if let Err(error) = may_show(file, after) {
            return WriteRule::Never {
                why: error.to_string(),
            };
        }
        let names = self.names(file, &real);
        let odd = |path: &PathBuf| reads_otherwise(path, before, after);
        if let Some(why) = names.iter().find_map(odd) {
            let why = format!("{file}: {why}");
            return WriteRule::Never { why };
        }
        let brings = |path: &PathBuf| new_source(path, before, after) && !self.is_allowed(path);
        match names.iter().any(brings) {
            true => WriteRule::NeedsPerson {
                why: "it changes from where packages are installed, or how",
            },
            false => WriteRule::Allowed,
        }
    }

    fn surroundings(&self) -> &Surroundings {
        let surroundings = || Surroundings::of(&self.root, &self.opened_as);
        self.surroundings.get_or_init(surroundings)
    }

    /// Returns why a file runs outside the sandbox, by its path below the root or below a directory
    /// above the root. That a directory above the root is hidden says nothing about the project.
    fn runs(&self, path: &Path) -> Option<&'static str> {
        let by_place = || {
            let mut paths = self.surroundings().in_repository(path);
            paths.find_map(|path| runs(&path).filter(|why| *why != SETTINGS))
        };
        runs(path).or_else(by_place)
    }

    /// Returns whether the user allows agents to change a file that needs approval by default.
    fn is_allowed(&self, path: &Path) -> bool {
        let allowed = self.allowed.matched_path_or_any_parents(path, false);
        allowed.is_ignore()
    }
}

/// Returns the identity of a file that exists.
fn of_path(path: &Path) -> io::Result<Identity> {
    identity(path, &path.symlink_metadata()?)
}

/// What the place of the root says about its files. A root inside of `.github` or of an installed
/// environment is guarded like the same directory of a larger project.
#[derive(Debug, Default)]
struct Surroundings {
    /// Starling's own directories below the root.
    own: Vec<PathBuf>,
    /// The paths of the root relative to each directory above one of its places.
    all: Vec<PathBuf>,
    /// Those of them that are relative to a directory in the git repository around the root, or all
    /// if there is none. A hidden root counts with its own name.
    in_repository: Vec<PathBuf>,
    /// Whether the root lies among the installed files of a Python environment.
    is_installed: bool,
}

impl Surroundings {
    /// Looks at all places of the root: its real path, the path as which it was opened, and the paths
    /// that links in the directories above the root give it.
    fn of(root: &Path, opened_as: &Path) -> Self {
        let mut places = vec![root.to_owned()];
        places.extend(std::path::absolute(opened_as));
        places.extend(links_to(root));
        places.sort();
        places.dedup();
        let mut found = Surroundings {
            own: own_directories(root),
            ..Surroundings::default()
        };
        for place in &places {
            found.add(place);
        }
        found
    }

    fn add(&mut self, root: &Path) {
        let above = || root.ancestors().skip(1);
        let all =
            above().filter_map(|directory| Some(root.strip_prefix(directory).ok()?.to_owned()));
        let all: Vec<PathBuf> = all.collect();
        // Programs read their settings from `~/.config` also if it is a repository.
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        let is_hidden = name.starts_with('.') && !all.is_empty();
        let top = repository_depth(root).unwrap_or(all.len());
        let in_repository = &all[..top.max(usize::from(is_hidden))];
        self.in_repository.extend_from_slice(in_repository);
        self.all.extend(all);
        self.is_installed |= above().any(|directory| {
            let has_root = |name: &str| root.starts_with(directory.join(name));
            let places = ["bin", "lib", "lib64", "Lib", "Scripts"];
            places.into_iter().any(has_root) && directory.join("pyvenv.cfg").exists()
        });
    }

    /// Returns the path of a file relative to the root (`path`), and relative to each directory above
    /// the root.
    fn in_all<'p>(&'p self, path: &'p Path) -> impl Iterator<Item = PathBuf> + 'p {
        Self::below(&self.all, path)
    }

    /// Same as [`Surroundings::in_all`], for the directories in the repository around the root.
    fn in_repository<'p>(&'p self, path: &'p Path) -> impl Iterator<Item = PathBuf> + 'p {
        Self::below(&self.in_repository, path)
    }

    fn below<'p>(prefixes: &'p [PathBuf], path: &'p Path) -> impl Iterator<Item = PathBuf> + 'p {
        let own = std::iter::once(path.to_owned());
        own.chain(prefixes.iter().map(move |prefix| prefix.join(path)))
    }
}

/// Returns how many directories the top of the git repository is above `root`, which can be the top.
fn repository_depth(root: &Path) -> Option<usize> {
    let mut directories = root.ancestors();
    directories.position(|directory| directory.join(".git").exists())
}

/// Returns the paths of the root through the links in the directories above it, as far as the git
/// repository around it reaches.
fn links_to(root: &Path) -> Vec<PathBuf> {
    let depth = repository_depth(root).unwrap_or(usize::MAX);
    let above = root.ancestors().skip(1).take(depth);
    let through = |link: PathBuf| {
        let target = link.canonical().ok()?;
        Some(link.join(root.strip_prefix(target).ok()?))
    };
    above.flat_map(in_directory).filter_map(through).collect()
}

#[cfg(test)]
mod tests;
