//! The path policy: which files may be read, and which files an agent may write. Every module that
//! shows a text to a model or accepts a change from a model checks the policy. Each check resolves
//! links again, so that the target of a link decides and not its name.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::Gitignore;
use starling_platform::files::{
    Identity, PathExt, identity, identity_of_open, open_without_following, open_without_links,
};

use super::dependencies::new_source;
use super::encoding::reads_otherwise;
use super::git_names::{GitNames, GitNaming, is_tracked};
use super::guarded::{INSTALLED, OWN, matcher, runs};
use super::ignore_rules::is_ignored;
use super::links::{LinkTargets, in_directory};
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
    /// Files that agents may change although the default rules require a person's approval.
    allowed: Arc<Gitignore>,
    git_names: GitNames,
    /// The links found by the last listing.
    links: Arc<LinkTargets>,
}

impl PathPolicy {
    /// Creates the policy of the directory at `root`, with links in `root` resolved.
    pub fn of(root: &Path) -> Self {
        let root = root.canonical().unwrap_or_else(|_| root.to_owned());
        PathPolicy {
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

    /// Returns all paths of a file below the root: the requested path, the real path, and the paths
    /// of links to it. The links in the root and in the file's own directory are read each time,
    /// because they may have been created since the last listing.
    fn names(&self, file: &FilePath, real: &Path) -> Vec<PathBuf> {
        let relative = real.strip_prefix(&*self.root).unwrap_or(real);
        let own = [PathBuf::from(file.as_str()), relative.to_owned()];
        let mut links = in_directory(&self.root);
        let beside = real.parent().filter(|beside| **beside != *self.root);
        links.extend(beside.map(in_directory).unwrap_or_default());
        let new = LinkTargets::new(&self.root, &links);
        let known = self.links.names(real).chain(new.names(real));
        own.into_iter().chain(known).collect()
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

    /// Returns the real path of a file that may be read. The file need not exist.
    ///
    /// # Errors
    /// The path leads outside the root, to a secret or to version control data, by its name or
    /// through links.
    pub fn may_read(&self, file: &FilePath) -> Result<PathBuf, ReadError> {
        let real = resolve(&self.root, file)?;
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
        let real = resolve(&self.root, file)?;
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
    /// environment's directory.
    fn is_installed(&self, real: &Path) -> bool {
        let folders = real.ancestors().skip(1);
        folders
            .take_while(|folder| folder.starts_with(&*self.root) && **folder != *self.root)
            .any(|folder| folder.join("pyvenv.cfg").exists())
    }

    /// Returns whether an existing file is ignored by git and not in git's index, so that no other
    /// copy of its text exists.
    fn has_no_copy(&self, real: &Path) -> bool {
        let Ok(relative) = real.strip_prefix(&*self.root) else {
            return false;
        };
        real.exists() && is_ignored(&self.root, relative) && !is_tracked(&self.root, real)
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
        if names.iter().any(|path| OWN.matches(path)) {
            let why = format!("{file}: only people change the configuration of Starling itself");
            return WriteRule::Never { why };
        }
        let needs = |path: &PathBuf| runs(path).filter(|_| !self.is_allowed(path));
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
            None if self.has_no_copy(&real) => WriteRule::NeedsPerson {
                why: "git ignores it, so there is no other copy of it",
            },
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
            .filter(|path| runs(path).is_some())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> (tempfile::TempDir, PathPolicy) {
        let dir = tempfile::tempdir().unwrap();
        let policy = PathPolicy::of(dir.path());
        (dir, policy)
    }

    fn rule(policy: &PathPolicy, path: &str) -> &'static str {
        match policy.may_write(&FilePath::new(path)) {
            WriteRule::Allowed => "allowed",
            WriteRule::NeedsPerson { .. } => "needs a person",
            WriteRule::Never { .. } => "never",
        }
    }

    fn all_are(policy: &PathPolicy, paths: &[&str], wanted: &str) {
        for path in paths {
            assert_eq!(rule(policy, path), wanted, "{path}");
        }
    }

    #[test]
    fn agents_may_write_source_and_tests() {
        let paths = [
            "a.py",
            "pkg/new/b.py",
            "tests/conftest.py",
            "pkg/tests/unit/conftest.py",
            "unit_tests/conftest.py",
            "app/tasks.py",
            "docs/index.md",
            ".gitignore",
            ".github/CODEOWNERS",
            ".editorconfig",
            "requirements.txt",
            "starling/config.toml",
            "makefile_parser.py",
            "head.py",
            "package.json.md",
            "build/x.py",
            "workspace/head/configure/x.py",
            "pkg/data.toml",
            "pkg/.hidden",
            "tests/data/.tool/x.yml",
            "pkg/config.json",
            "app/rules.py",
            ".github/CODEOWNERS",
            ".github/ISSUE_TEMPLATE/bug.md",
            ".dockerignore",
            ".python-version",
            ".tool-versions",
            ".env.example",
            ".mailmap",
            ".gitkeep",
            ".changeset/new.md",
            "app/src.js",
            "mkdocs/a.py",
            "procfile.py",
            "buck.py",
            "x.pl",
        ];
        all_are(&policy().1, &paths, "allowed");
    }

    #[test]
    fn agents_never_write_secrets_version_control_or_starling_configuration() {
        let paths = [
            ".git/config",
            ".git/hooks/pre-commit",
            "sub/.git",
            "sub/.git/config",
            ".GIT/config",
            ".env",
            "pkg/.envrc",
            ".npmrc",
            "../x.py",
            "/etc/x.py",
            ".starling/config.toml",
            "sub/.Starling/config.toml",
            ".config/starling/config.toml",
            ".local/state/starling/trusted.json",
        ];
        all_are(&policy().1, &paths, "never");
    }

    #[test]
    fn files_that_run_automatically_need_approval() {
        let paths = [
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            ".circleci/config.yml",
            "Jenkinsfile",
            "azure-pipelines.yml",
            ".travis.yml",
            "bitbucket-pipelines.yml",
            ".drone.yml",
            ".woodpecker.yml",
            ".woodpecker/test.yml",
            ".buildkite/pipeline.yml",
            "appveyor.yml",
            ".vscode/settings.json",
            "sub/.vscode/tasks.json",
            ".idea/workspace.xml",
            ".devcontainer/devcontainer.json",
            ".claude/settings.json",
            ".pre-commit-config.yaml",
            ".gitattributes",
            "sub/.gitattributes",
            ".gitmodules",
            ".githooks/pre-commit",
            ".husky/pre-push",
            "tools/hk/pre-commit",
            "git-hooks/x",
            "fixture/HEAD",
            "Makefile",
            "makefile",
            "sub/GNUmakefile",
            "rules.mk",
            "justfile",
            "noxfile.py",
            "tasks.py",
            "fabfile.py",
            "dodo.py",
            "tox.ini",
            "conftest.py",
            "pkg/conftest.py",
            "sitecustomize.py",
            "lib/usercustomize.py",
            "lib/x.pth",
            "setup.py",
            "setup.cfg",
            "pyproject.toml",
            "build.rs",
            "package.json",
            "eslint.config.mjs",
            ".eslintrc.js",
            ".nvim.lua",
            ".exrc",
            ".vimrc",
            "sub/.lazy.lua",
            "tox.toml",
            "pkg/hatch.toml",
            "pylintrc.toml",
            "pkg/.pylintrc.toml",
            "lib/sitecustomize/__init__.py",
            "usercustomize/x.py",
            "gradle/wrapper/gradle-wrapper.properties",
            "gradle.properties",
            "web/vite.config.mts",
            "rollup.config.cts",
            "karma.conf.js",
            ".simple-git-hooks.json",
            "web/.huskyrc.json",
            "mkdocs.yml",
            "Procfile",
            ".zuul.yaml",
            ".packit.yaml",
            "BUCK",
            "pants.toml",
            "build.sc",
            "xmake.lua",
            "prek.toml",
            ".clinerules",
            ".clinerules/a.md",
            ".junie/guidelines.md",
            ".github/instructions/x.instructions.md",
            ".rules",
            ".goosehints",
            "WARP.md",
            "CRUSH.md",
            "Claude.local.md",
            // Files that are guarded because of the form of their names.
            "new-tool.toml",
            "jest.config.json",
            ".new-tool",
            ".new-tool.yml",
            ".new-tool/run.sh",
            "web/.nycrc",
            "web/.releaserc.json",
            ".eslintrc.json",
            "mcp.json",
            "hatch_build.py",
            ".bashrc",
            ".config/systemd/user/x.service",
            ".venv/bin/ty",
            "env/bin/activate",
            "env/bin/python3",
            "x/lib/python3.11/site-packages/a.py",
            "web/node_modules/.bin/tsc",
            "shop.egg-info/entry_points.txt",
            "src/shop-1.0.dist-info/entry_points.txt",
            "Shop.EGG-INFO/PKG-INFO",
            "lib.egg/EGG-INFO/entry_points.txt",
            "pip.py",
            "setuptools.py",
            "build.py",
            ".github/renovate.json",
            ".github/dependabot.yml",
            ".github/scripts/release.sh",
            "renovate.json",
            "tasks/__init__.py",
            "fabfile/__init__.py",
            "docs/conf.py",
            "pkg/doc/source/conf.py",
            "docs/make.bat",
            "firebase.json",
            "cdk.json",
            "nodemon.json",
            "bin/post_compile",
            "CMakeUserPresets.json",
            "Dockerfile-dev",
            "stack.yaml",
            "Brewfile",
            "deploy/gunicorn.conf.py",
        ];
        all_are(&policy().1, &paths, "needs a person");
    }

    #[test]
    fn installed_files_and_files_named_by_git_need_approval() {
        let (dir, policy) = policy();
        for folder in [".git", "envs/work"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let write = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).unwrap();
        write(".git/config", "[core]\n\tfsmonitor = tools/watch.sh\n");
        write("envs/work/pyvenv.cfg", "");
        let paths = [
            "tools/watch.sh",
            "envs/work/lib/a.py",
            "envs/work/Scripts/x.bat",
        ];
        all_are(&policy, &paths, "needs a person");
        all_are(&policy, &["tools/other.sh", "envs/a.py"], "allowed");
        let policy = policy.allowing(&["tools/".to_owned()]).unwrap();
        all_are(&policy, &["tools/watch.sh"], "allowed");
    }

    #[test]
    fn names_to_allow_lists_the_names_that_need_approval() {
        let (dir, policy) = policy();
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(to, dir.path().join(from)).unwrap();
        };
        std::fs::create_dir_all(dir.path().join(".github/workflows")).unwrap();
        std::fs::write(dir.path().join("rules.txt"), "").unwrap();
        link(".github/workflows", "ci");
        link("rules.txt", "Makefile");
        for (file, wanted) in [
            ("ci/x.yml", &[".github/workflows/x.yml"][..]),
            ("Makefile", &["Makefile"]),
            ("pkg/conftest.py", &["pkg/conftest.py"]),
            ("a.py", &["a.py"]),
        ] {
            let file = FilePath::new(file);
            let names = policy.names_to_allow(&file);
            let names: Vec<String> = names
                .iter()
                .map(|name| name.display().to_string())
                .collect();
            assert_eq!(names, wanted, "{file}");
            let allowing = policy.clone().allowing(&names).unwrap();
            assert_eq!(allowing.may_write(&file), WriteRule::Allowed, "{file}");
        }
    }

    #[test]
    fn write_rule_of_a_link_depends_on_its_target() {
        let (dir, policy) = policy();
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(to, dir.path().join(from)).unwrap();
        };
        for folder in [".git/hooks", ".starling", "src"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["Makefile", "src/a.py", "src/b.py", ".starling/config.toml"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        link("Makefile", "notes.txt");
        link("src/a.py", "setup.py");
        link("src/b.py", "b.py");
        link(".git/hooks", "hooks");
        link(".starling/config.toml", "settings.toml");
        link("../outside.py", "out.py");
        all_are(&policy, &["notes.txt", "setup.py"], "needs a person");
        let never = ["hooks/pre-commit", "settings.toml", "out.py", "out.py/x"];
        all_are(&policy, &never, "never");
        all_are(&policy, &["b.py"], "allowed");
        // Links are resolved again each time.
        std::fs::remove_file(dir.path().join("b.py")).unwrap();
        link("Makefile", "b.py");
        all_are(&policy, &["b.py"], "needs a person");
    }

    #[test]
    fn target_of_a_link_with_a_guarded_name_needs_approval() {
        let dir = tempfile::tempdir().unwrap();
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(to, dir.path().join(from)).unwrap();
        };
        for folder in [".git", "editor", "cfg", "ci", ".github", "tools", "hk"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["rules.txt", "deps.txt", "tools/real.sh"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let config = "[filter \"x\"]\n\tclean = sh tools/f.sh %f\n[core]\n\thooksPath = tools/hk\n";
        std::fs::write(dir.path().join(".git/config"), config).unwrap();
        link("rules.txt", "Makefile");
        link("editor", ".vscode");
        link("cfg", ".starling");
        link("../ci", ".github/workflows");
        link("deps.txt", "requirements.txt");
        link("real.sh", "tools/f.sh");
        link("../hk", "tools/hk");
        let workspace = super::super::Workspace::open(dir.path().to_owned()).unwrap();
        let policy = workspace.snapshot(Default::default()).policy().clone();
        let guarded = [
            "rules.txt",
            "editor/tasks.json",
            "ci/x.yml",
            "tools/real.sh",
            "hk/x",
        ];
        all_are(&policy, &guarded, "needs a person");
        all_are(&policy, &["cfg/config.toml"], "never");
        all_are(&policy, &["deps.txt", "tools/other.sh", "a.py"], "allowed");
        let brings = policy.may_bring(&FilePath::new("deps.txt"), "a==1\n", "-i http://x/\na==1\n");
        assert!(matches!(brings, WriteRule::NeedsPerson { .. }));
    }

    #[test]
    fn target_of_a_link_that_was_created_after_the_listing_needs_approval() {
        let (dir, policy) = policy();
        std::fs::create_dir(dir.path().join("pkg")).unwrap();
        let files = ["shop.py", "pkg/b.py", "pkg/c.py"];
        for file in files {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        all_are(&policy, &files, "allowed");
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(to, dir.path().join(from)).unwrap();
        };
        link("shop.py", "build.py");
        link("b.py", "pkg/setup.py");
        link("pkg/c.py", "tasks.py");
        all_are(&policy, &files, "needs a person");
    }

    #[test]
    fn target_of_a_git_hook_link_needs_approval() {
        let (dir, policy) = policy();
        for folder in [".git/hooks", "scripts"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("scripts/check.sh"), "").unwrap();
        all_are(&policy, &["scripts/check.sh"], "allowed");
        let hook = dir.path().join(".git/hooks/pre-commit");
        std::os::unix::fs::symlink("../../scripts/check.sh", hook).unwrap();
        all_are(&policy, &["scripts/check.sh"], "needs a person");
        all_are(&policy, &["scripts/other.sh"], "allowed");
        let allowing = policy.allowing(&["scripts/".to_owned()]).unwrap();
        all_are(&allowing, &["scripts/check.sh"], "allowed");
    }

    #[test]
    fn hard_linked_file_needs_approval() {
        let (dir, policy) = policy();
        std::fs::write(dir.path().join("a.py"), "").unwrap();
        all_are(&policy, &["a.py"], "allowed");
        std::fs::hard_link(dir.path().join("a.py"), dir.path().join("b.py")).unwrap();
        all_are(&policy, &["a.py", "b.py"], "needs a person");
    }

    #[test]
    fn allow_write_globs_permit_only_files_that_need_approval() {
        let globs = ["Makefile", "/ci/**", ".vscode/", "*", "!tox.ini"].map(str::to_owned);
        let (dir, policy) = policy();
        let some = policy.clone().allowing(&globs[..3]).unwrap();
        all_are(&some, &["Makefile", "sub/Makefile"], "allowed");
        all_are(&some, &["ci/setup.py", ".vscode/tasks.json"], "allowed");
        all_are(&some, &["setup.py", "sub/ci/setup.py"], "needs a person");
        let all = policy.clone().allowing(&globs).unwrap();
        all_are(&all, &["setup.py", ".github/workflows/ci.yml"], "allowed");
        all_are(&all, &["tox.ini"], "needs a person");
        let never = [".git/config", ".env", ".starling/config.toml", "../x.py"];
        all_are(&all, &never, "never");
        // A link to an allowed file is allowed. A link whose own path is allowed, but whose target
        // is not, is refused.
        std::fs::write(dir.path().join("setup.py"), "").unwrap();
        std::os::unix::fs::symlink("setup.py", dir.path().join("Makefile")).unwrap();
        all_are(&some, &["Makefile"], "needs a person");
    }

    #[test]
    fn new_package_source_needs_approval() {
        let (dir, policy) = policy();
        std::fs::write(dir.path().join("requirements.txt"), "a==1\n").unwrap();
        std::os::unix::fs::symlink("requirements.txt", dir.path().join("notes.md")).unwrap();
        let brings = |policy: &PathPolicy, file: &str, after: &str| {
            policy.may_bring(&FilePath::new(file), "a==1\n", after)
        };
        let evil = "a==1\n--index-url https://evil.example\n";
        for file in ["requirements.txt", "notes.md", "new/requirements-dev.txt"] {
            let rule = brings(&policy, file, evil);
            assert!(
                matches!(rule, WriteRule::NeedsPerson { .. }),
                "{file}: {rule:?}"
            );
            assert_eq!(brings(&policy, file, "a==2\nb>=1\n"), WriteRule::Allowed);
        }
        assert_eq!(brings(&policy, "a.py", evil), WriteRule::Allowed);
        let allowing = policy.allowing(&["requirements.txt".to_owned()]).unwrap();
        let rule = brings(&allowing, "requirements.txt", evil);
        assert_eq!(rule, WriteRule::Allowed);
    }

    #[test]
    fn ignored_untracked_file_needs_approval() {
        let (dir, policy) = policy();
        let write = |file: &str, text: &str| {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".gitignore", "local/\n*.dump\n!kept.dump\n");
        for file in [
            "local/creds.txt",
            "a/x.dump",
            "a/kept.dump",
            "a/tracked.dump",
        ] {
            write(file, "");
        }
        write(".git/index", "DIRC....a/tracked.dump\0....");
        let only = ["local/creds.txt", "a/x.dump"];
        all_are(&policy, &only, "needs a person");
        // Creating a file needs no approval, because it cannot overwrite anything.
        let free = ["local/new.txt", "a/kept.dump", "a/tracked.dump", "a/b.py"];
        all_are(&policy, &free, "allowed");
        let allowing = policy.allowing(&["local/".to_owned()]).unwrap();
        all_are(&allowing, &["local/creds.txt"], "allowed");
    }

    #[test]
    fn agents_never_change_a_declared_encoding() {
        let (dir, policy) = policy();
        std::fs::write(dir.path().join("a.py"), "x = 1\n").unwrap();
        std::os::unix::fs::symlink("a.py", dir.path().join("notes.txt")).unwrap();
        let odd = "# coding: unicode_escape\nx = 1\n";
        let all = policy.allowing(&["*".to_owned()]).unwrap();
        for file in ["a.py", "notes.txt", "new.py"] {
            let rule = all.may_bring(&FilePath::new(file), "x = 1\n", odd);
            assert!(matches!(rule, WriteRule::Never { .. }), "{file}: {rule:?}");
        }
        let key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n";
        let rule = all.may_bring(&FilePath::new("a.py"), "x = 1\n", key);
        assert!(matches!(rule, WriteRule::Never { .. }));
        let rule = all.may_bring(&FilePath::new("a.py"), "x = 1\n", "x = 2\n");
        assert_eq!(rule, WriteRule::Allowed);
    }

    #[test]
    fn error_for_an_invalid_glob_names_the_glob() {
        let error = policy().1.allowing(&["a".into(), "b[".into()]).unwrap_err();
        assert_eq!(error.glob, "b[");
        assert!(
            error
                .to_string()
                .starts_with("b[: not a valid .gitignore glob"),
            "{error}"
        );
    }

    #[test]
    fn only_regular_files_are_opened() {
        let (dir, policy) = policy();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for name in ["folder", "pipe"] {
            let error = policy.open(&FilePath::new(name)).unwrap_err();
            assert!(error.to_string().contains("not a file"), "{error}");
        }
    }
}
