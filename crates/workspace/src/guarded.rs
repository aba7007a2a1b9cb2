//! The guarded files: files that run outside the sandbox, either automatically or when the user
//! takes an ordinary next step such as a build. `docs/security.md` contains a table that is
//! generated from the table in this file.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::compared::is_short_name;
use super::policy::BadGlob;

pub(super) const INSTALLED: &str =
    "it belongs to an installed environment, whose programs run by name";

/// Why the files of all other hidden directories are guarded.
pub(super) const SETTINGS: &str =
    "it looks like the settings of a tool, and tools run commands from their settings";

/// A kind of guarded files, as case-insensitive `.gitignore` globs. A glob that ends in `/` matches
/// the contents of a directory, and any other glob matches only files. A glob that begins with `!`
/// excludes files or directories from the preceding globs of the same kind.
pub(super) struct GuardedKind {
    why: &'static str,
    directories: Gitignore,
    files: Gitignore,
}

impl GuardedKind {
    pub(super) fn new(why: &'static str, globs: &[&str]) -> Self {
        let (directories, files): (Vec<&str>, Vec<&str>) =
            globs.iter().partition(|glob| glob.ends_with('/'));
        // A test parses all globs.
        let read = |globs| matcher(globs).unwrap_or_else(|_| Gitignore::empty());
        GuardedKind {
            why,
            directories: read(directories),
            files: read(files),
        }
    }

    pub(super) fn matches(&self, path: &Path) -> bool {
        let inside = self.directories.matched_path_or_any_parents(path, false);
        inside.is_ignore() || self.files.matched(path, false).is_ignore()
    }
}

/// A set of file names, as case-insensitive `.gitignore` globs.
#[derive(Debug)]
pub(super) struct NameGlobs(Gitignore);

/// Parses built-in globs. A test parses all of them.
pub(super) fn globs(globs: &[&str]) -> NameGlobs {
    NameGlobs(matcher(globs.to_vec()).unwrap_or_else(|_| Gitignore::empty()))
}

impl NameGlobs {
    pub(super) fn matches(&self, path: &Path) -> bool {
        self.0.matched(path, false).is_ignore()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

pub(super) fn matcher(globs: Vec<&str>) -> Result<Gitignore, BadGlob> {
    let bad = |glob: &str, error: ignore::Error| BadGlob {
        glob: glob.to_owned(),
        message: error.to_string(),
    };
    let mut builder = GitignoreBuilder::new("");
    builder.allow_unclosed_class(false);
    let setting = builder.case_insensitive(true);
    setting.map_err(|error| bad("", error))?;
    for glob in globs {
        let added = builder.add_line(None, glob);
        added.map_err(|error| bad(glob, error))?;
    }
    builder.build().map_err(|error| bad("", error))
}

/// Returns why a file runs outside the sandbox, automatically or in an ordinary step of the user:
/// opening the directory, a commit, a build, an installation. Returns `None` if the file does not
/// run.
pub(super) fn runs(path: &Path) -> Option<&'static str> {
    let is_conftest = |name: &OsStr| name.eq_ignore_ascii_case("conftest.py");
    if path.file_name().is_some_and(is_conftest) && !is_in_test_folder(path) {
        return Some("pytest runs it although it is outside the test directories");
    }
    if let Some(kind) = KINDS.iter().find(|kind| kind.matches(path)) {
        return Some(kind.why);
    }
    let mut parts = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    let is_short = parts.any(|part| is_short_name(&part));
    is_short.then_some("on Windows, it can be the short name of another file")
}

fn is_in_test_folder(path: &Path) -> bool {
    let mut folders = path.components().rev().skip(1);
    folders.any(|part| {
        let name = part.as_os_str().to_string_lossy().to_ascii_lowercase();
        let words = || name.split(['_', '-', '.']);
        words().any(|word| matches!(word, "test" | "tests" | "testing"))
    })
}

/// Starling's own configuration files: those of a project, and those of the user if the root is a
/// home directory.
pub(super) static OWN: LazyLock<GuardedKind> = LazyLock::new(|| {
    let globs = [".starling", ".config/starling", ".local/state/starling"];
    GuardedKind::new(
        "",
        &globs
            .map(|path| format!("**/{path}/"))
            .each_ref()
            .map(String::as_str),
    )
});

static KINDS: LazyLock<Vec<GuardedKind>> = LazyLock::new(|| {
    let table = TABLE.iter();
    table
        .map(|(why, globs)| GuardedKind::new(why, globs))
        .collect()
});

/// Files that run, grouped by the program that runs them. `docs/security.md` explains the choice.
const TABLE: &[(&str, &[&str])] = &[
    (
        "continuous integration runs it",
        &[
            ".github/workflows/",
            ".github/actions/",
            ".github/scripts/",
            ".github/*.y*ml",
            ".github/*.json*",
            "renovate.json*",
            ".gitea/workflows/",
            ".forgejo/workflows/",
            "*.gitlab-ci.y*ml",
            ".gitlab/",
            ".circleci/",
            "Jenkinsfile*",
            "azure-pipelines*.y*ml",
            ".azure-pipelines/",
            ".travis.yml",
            "bitbucket-pipelines.yml",
            ".drone.*",
            ".woodpecker.*",
            ".woodpecker/",
            ".buildkite/",
            "appveyor.yml",
            ".appveyor.yml",
            ".cirrus.*",
            ".semaphore/",
            ".teamcity/",
            ".builds/",
            ".build.yml",
            "cloudbuild.y*ml",
            "buildspec.y*ml",
            ".readthedocs.y*ml",
            "netlify.toml",
            "vercel.json",
            ".zuul.y*ml",
            ".zuul.d/",
            "zuul.y*ml",
            "wercker.yml",
            "codefresh.y*ml",
            ".packit.y*ml",
            "packit.y*ml",
            "mkdocs.y*ml",
            "**/docs/**/conf.py",
            "**/doc/**/conf.py",
            "Procfile",
            "Procfile.dev",
            "**/bin/pre_compile",
            "**/bin/post_compile",
            "gunicorn.conf.py",
            "uwsgi.ini",
            "firebase.json",
            "cdk.json",
            "serverless.y*ml",
            "skaffold.y*ml",
        ],
    ),
    (
        "editors run the commands in it when the folder is opened",
        &[
            ".vscode/",
            "*.code-workspace",
            ".idea/",
            ".fleet/",
            ".zed/",
            ".vs/",
            ".helix/",
            "*.sublime-project",
            "*.sublime-workspace",
            ".nova/",
            ".devcontainer/",
            ".devcontainer.json",
            "devcontainer.json",
            ".nvim.lua",
            ".nvimrc",
            ".exrc",
            ".vimrc",
            "_vimrc",
            ".gvimrc",
            ".lvimrc",
            ".dir-locals*.el",
            ".lazy.lua",
            ".vim/",
            "coc-settings.json",
            ".ycm_extra_conf.py",
            ".gdbinit",
            ".lldbinit",
            ".gitpod.yml",
            ".theia/",
            ".replit",
            "*-gdb.py",
        ],
    ),
    (
        "coding agents follow its instructions",
        &[
            ".claude/",
            ".codex/",
            ".cursor/",
            ".continue/",
            ".gemini/",
            ".kiro/",
            ".roo/",
            ".windsurf/",
            "AGENTS.md",
            "CLAUDE*.md",
            "GEMINI.md",
            "copilot-instructions.md",
            ".mcp.json",
            "mcp.json",
            "opencode.json*",
            ".opencode/",
            ".aider*",
            ".junie/",
            ".*rules",
            ".*rules/",
            ".goosehints",
            ".github/instructions/",
            ".github/prompts/",
            ".github/chatmodes/",
            ".github/agents/",
            ".github/hooks/",
            "WARP.md",
            "CRUSH.md",
        ],
    ),
    (
        "git runs the programs that it names",
        &[
            ".gitattributes",
            ".gitmodules",
            ".gitconfig",
            ".githooks/",
            ".git-hooks/",
            "git-hooks/",
            "githooks/",
            ".husky/",
            ".hooks/",
            // Names of hooks in any directory.
            "applypatch-msg",
            "commit-msg",
            "fsmonitor-watchman*",
            "post-applypatch",
            "post-checkout",
            "post-commit",
            "post-index-change",
            "post-merge",
            "post-rewrite",
            "pre-applypatch",
            "pre-auto-gc",
            "pre-commit",
            "pre-merge-commit",
            "pre-push",
            "pre-rebase",
            "prepare-commit-msg",
            "reference-transaction",
            "sendemail-validate",
            ".pre-commit-config.y*ml",
            ".pre-commit-hooks.y*ml",
            "lefthook*.y*ml",
            ".lefthook.*",
            ".lefthook/",
            ".overcommit.yml",
            ".overcommit/",
            ".simple-git-hooks.*",
            "simple-git-hooks.*",
            ".huskyrc*",
            "prek.toml",
            "captainhook.json",
            "grumphp.y*ml",
            "hk.pkl",
            // Git treats a directory with this file, `objects` and `refs` as a repository.
            "HEAD",
        ],
    ),
    (
        "shells and tool managers run it when the folder is entered",
        &[
            "mise.toml",
            "mise.*.toml",
            ".mise.*",
            ".mise/",
            ".rtx.toml",
            ".autoenv*",
            ".direnvrc",
            "devbox.json",
            "*.nix",
            ".bashrc",
            ".bash_*",
            ".profile",
            ".Rprofile",
            "renv/activate.R",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".config/",
            ".local/",
        ],
    ),
    (
        "builds run it",
        &[
            "Makefile",
            "Makefile.*",
            "GNUmakefile",
            "*.mk",
            "*.mak",
            "CMakeLists.txt",
            "*.cmake",
            "CMakePresets.json",
            "CMakeUserPresets.json",
            "meson.build",
            "SConstruct",
            "SConscript",
            "wscript",
            "configure",
            "autogen.sh",
            "BUILD",
            "BUILD.bazel",
            "WORKSPACE",
            "WORKSPACE.bazel",
            "MODULE.bazel",
            "*.bzl",
            ".bazelrc",
            "justfile",
            ".justfile",
            "*.just",
            "Taskfile*.y*ml",
            "Rakefile",
            "*.rake",
            "*.gradle",
            "*.gradle.kts",
            "gradlew",
            "gradlew.bat",
            "mvnw",
            "mvnw.cmd",
            ".mvn/",
            "pom.xml",
            "build.xml",
            "build.sbt",
            "build.rs",
            "build.zig",
            ".cargo/",
            "rust-toolchain",
            "rust-toolchain.toml",
            "mix.exs",
            "Package.swift",
            "*.csproj",
            "*.fsproj",
            "*.vcxproj",
            "*.targets",
            "*.props",
            "Dockerfile",
            "Dockerfile.*",
            "Dockerfile-*",
            "*.Dockerfile",
            "Containerfile",
            "Containerfile.*",
            "docker-compose*.y*ml",
            "compose.y*ml",
            "compose.*.y*ml",
            "Vagrantfile",
            "noxfile.py",
            "/tasks.py",
            "/tasks/__init__.py",
            "hatch_build.py",
            "pdm_build.py",
            "conanfile.*",
            "Snakefile",
            "Tiltfile",
            "Earthfile",
            "Podfile",
            "Fastfile",
            "Guardfile",
            "Capfile",
            "Thorfile",
            "rakefile.rb",
            "config.nims",
            "build.ninja",
            "wafscript",
            "*.sbt",
            "configure.ac",
            "Setup.hs",
            "Jakefile",
            "Cakefile",
            "Makevars*",
            "PKGBUILD",
            "debian/rules",
            "dune",
            "dune-project",
            "project.clj",
            "rebar.config*",
            "ansible.cfg",
            "tools/bazel",
            "fabfile.py",
            "fabfile/",
            "dodo.py",
            "tox.ini",
            "tox.toml",
            "BUCK",
            "BUCK.v2",
            ".buckconfig*",
            "pants*.toml",
            "build.sc",
            "build.mill",
            "xmake.lua",
            "premake*.lua",
            "gradle.properties",
            "gradle-wrapper.*",
            "meson.options",
            "meson_options.txt",
            "docker-bake.*",
            "magefile.go",
            "magefiles/",
            "maskfile.md",
            "pavement.py",
            "Build.PL",
            "nx.json",
            "turbo.json",
            "rush.json",
            "lerna.json",
            "make.bat",
            "stack.yaml",
            "/build.py",
        ],
    ),
    (
        "package managers run the programs that it names",
        &[
            "setup.py",
            "setup.cfg",
            "pyproject.toml",
            "uv.toml",
            "poetry.toml",
            "pdm.toml",
            "pixi.toml",
            "hatch.toml",
            ".condarc",
            "package.json",
            "pnpm-workspace.yaml",
            ".yarnrc*",
            ".yarn/",
            ".pnpmfile.*",
            "bunfig.toml",
            "deno.json*",
            "Cargo.toml",
            "Gemfile",
            ".bundle/",
            "*.gemspec",
            "composer.json",
            "Brewfile",
            // Modules that replace the tool if `python -m` starts it in the root directory.
            "/pip.py",
            "/setuptools.py",
            "/pkg_resources.py",
            "/wheel.py",
            "/twine.py",
            "/virtualenv.py",
            "/nox.py",
            "/tox.py",
        ],
    ),
    (
        "tools that read it run the code or commands in it",
        &[
            "*.config.js",
            "*.config.?js",
            "*.config.ts",
            "*.config.?ts",
            "*.conf.js",
            "*.conf.?js",
            "*.conf.ts",
            "*.conf.?ts",
            ".*rc.js",
            ".*rc.?js",
            ".*rc.ts",
            ".*rc.?ts",
            "Gruntfile.*",
            "nodemon.json",
            "gulpfile.*",
            ".eslintrc*",
            ".prettierrc*",
            ".stylelintrc*",
            ".mocharc*",
            ".lintstagedrc*",
            ".babelrc*",
            "tslint.json",
            ".flake8",
            ".pylintrc*",
            "pylintrc",
            "pylintrc.toml",
            "mypy.ini",
            ".mypy.ini",
            ".rubocop.yml",
        ],
    ),
    (
        INSTALLED,
        &[
            ".venv/",
            "venv/",
            ".tox/",
            ".nox/",
            "node_modules/",
            "site-packages/",
            "dist-packages/",
            // Tools that search the Python path for plugins load the entry points in these
            // directories.
            "*.egg-info/",
            "*.dist-info/",
            "EGG-INFO/",
            "*.egg-link",
            "pyvenv.cfg",
            "**/bin/python*",
            "**/bin/activate*",
        ],
    ),
    (
        "Python runs it at every start",
        &[
            "sitecustomize.*",
            "sitecustomize/",
            "usercustomize.*",
            "usercustomize/",
            "*.pth",
            ".pdbrc",
            ".pythonrc*",
            ".ipython/",
            "ipython_config.py",
            "jupyter_*config.py",
        ],
    ),
    // Rows that match the form of a name come last, so that the more specific rows above give the
    // reason.
    (
        SETTINGS,
        &[
            // Hidden files and directories at the root.
            "/.*",
            "/.*/",
            "!/.*ignore*",
            "!/.*-version",
            "!/.*keep",
            "!/.editorconfig",
            "!/.env*",
            "!/.mailmap",
            "!/.nojekyll",
            "!/.nvmrc",
            "!/.tool-versions",
            "!/.changeset/",
            "!/.github/",
            "!/.well-known/",
            "/*.toml",
            "/*.config.*",
            "/*.conf.*",
            // Settings files in any directory.
            ".*rc",
            ".*rc.*",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guarded_file_glob_parses() {
        for (why, globs) in TABLE {
            let kind = GuardedKind::new(why, globs);
            assert_eq!(
                kind.directories.len() + kind.files.len(),
                globs.len(),
                "{why}"
            );
        }
        assert_eq!(OWN.directories.len(), 3);
    }

    #[test]
    fn security_manual_lists_every_guarded_file_glob() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
        let manual = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = manual
            .split_once("crates/workspace/src/guarded.rs -->\n")
            .unwrap();
        let (kept, after) = rest.split_once("<!-- end of files -->").unwrap();
        let mut table = "\n| files | why |\n|---|---|\n".to_owned();
        for (why, globs) in TABLE {
            let globs: Vec<String> = globs.iter().map(|glob| format!("`{glob}`")).collect();
            table += &format!("| {} | {why} |\n", globs.join(", "));
        }
        table.push('\n');
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let start = format!("{before}crates/workspace/src/guarded.rs -->\n");
            std::fs::write(&path, format!("{start}{table}<!-- end of files -->{after}")).unwrap();
        } else {
            assert!(kept == table, "run the tests once with UPDATE_DOCS=1");
        }
    }
}
