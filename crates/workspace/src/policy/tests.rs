use super::super::testing::git;
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
fn odd_names_are_guarded_as_the_file_that_they_are_elsewhere() {
    let (_dir, policy) = policy();
    let guarded = [
        "setup.py.",
        "Makefile ",
        "sub/Makefile. .",
        "CONFTEST.PY",
        "Conftest.py",
        "conftest.py.",
        "Ma\u{212a}efile",
        "doc\u{212a}erFile",
        "\u{ff33}etup.py",
        "\u{17f}etup.py",
        "setup.py::$DATA",
        "pyproject.toml:x",
        ".github./workflows /ci.yml",
        ".\u{ff56}scode/tasks.json",
        "sub\\Makefile",
        "SETUP~1.PY",
        "PYPROJ~1.TOM",
    ];
    all_are(&policy, &guarded, "needs a person");
    let never = [
        ".env.",
        ".en\u{ff36}",
        "\u{ff0e}env.local",
        ".ENV::$DATA",
        "id_r\u{17f}a",
        "sub/.gi\u{ff54}/config",
        ".git::$INDEX_ALLOCATION/config",
        ".git ./config",
        "HG~1/hgrc",
        "GIT~2/config",
        ".starling./config.toml",
        ".Star\u{ff4c}ing/config.toml",
    ];
    all_are(&policy, &never, "never");
    let free = [
        "a.py.",
        "stra\u{df}e.py",
        "\u{e4}.py",
        "notes:1.txt",
        "makefil\u{e9}",
        "digit~1.conf",
    ];
    all_are(&policy, &free, "allowed");
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
    all_are(
        &policy,
        &["tools/other.sh", "envs/a.py", "bin/run"],
        "allowed",
    );
    write("pyvenv.cfg", "");
    all_are(&policy, &["bin/run", "Scripts/run.py"], "needs a person");
    all_are(&policy, &["a.py", "envs/a.py"], "allowed");
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
    git(dir.path(), &["init", "-q"]);
    git(dir.path(), &["add", "-f", "a/tracked.dump"]);
    // Its path is the end of a tracked one.
    write("tracked.dump", "");
    let only = ["local/creds.txt", "a/x.dump", "tracked.dump"];
    all_are(&policy, &only, "needs a person");
    git(dir.path(), &["update-index", "--index-version", "4"]);
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

#[test]
fn root_inside_a_guarded_directory_is_guarded() {
    let dir = tempfile::tempdir().unwrap();
    let policy_of = |path: &str| {
        let root = dir.path().join(path);
        std::fs::create_dir_all(&root).unwrap();
        PathPolicy::of(&root)
    };
    for (root, file) in [
        (".github", "workflows/ci.yml"),
        (".github/workflows", "ci.yml"),
        ("p/.vscode", "tasks.json"),
        ("lib/site-packages/pkg", "a.py"),
    ] {
        assert_eq!(rule(&policy_of(root), file), "needs a person", "{root}");
    }
    for root in [".starling", ".config/starling", ".local/state"] {
        let file = match root {
            ".local/state" => "starling/trusted.json",
            _ => "config.toml",
        };
        assert_eq!(rule(&policy_of(root), file), "never", "{root}");
    }
    // A glob that allows a file is relative to the root.
    let allowed = policy_of(".github").allowing(&["workflows/ci.yml".to_owned()]);
    assert_eq!(rule(&allowed.unwrap(), "workflows/ci.yml"), "allowed");
    let own = policy_of(".starling").allowing(&["config.toml".to_owned()]);
    assert_eq!(rule(&own.unwrap(), "config.toml"), "never");
    // What lies above the repository does not guard its files.
    std::fs::create_dir_all(dir.path().join("debian/.git")).unwrap();
    assert_eq!(rule(&policy_of("debian/src"), "a.py"), "allowed");
    std::fs::create_dir_all(dir.path().join(".config/.git")).unwrap();
    assert_eq!(rule(&policy_of(".config"), "fish/a.fish"), "needs a person");
    let environment = dir.path().join("py311");
    std::fs::create_dir_all(&environment).unwrap();
    std::fs::write(environment.join("pyvenv.cfg"), "").unwrap();
    assert_eq!(rule(&policy_of("py311/lib/pkg"), "a.py"), "needs a person");
    assert_eq!(rule(&policy_of("py311/src/pkg"), "a.py"), "allowed");
}

#[test]
fn own_directories_inside_the_project_are_never_written() {
    let (dir, policy) = policy();
    let root = dir.path().canonicalize().unwrap();
    let surroundings = Surroundings {
        own: vec![root.join("dotfiles/conf")],
        ..Surroundings::of(&root, &root)
    };
    policy.surroundings.set(surroundings).unwrap();
    all_are(&policy, &["dotfiles/conf/config.toml"], "never");
    all_are(&policy, &["dotfiles/confer.toml"], "allowed");
}

#[test]
fn cache_inside_the_project_is_neither_listed_nor_read_nor_written() {
    let (dir, mut policy) = policy();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("cache/runs")).unwrap();
    for file in ["a.py", "cache/runs/one.jsonl", "cache/x.py"] {
        std::fs::write(root.join(file), "x = 1\n").unwrap();
    }
    std::os::unix::fs::symlink("cache/runs", root.join("records")).unwrap();
    policy.caches = [root.join("cache")].into();
    let files = crate::walk::files(&root, policy.caches()).files;
    let files: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(files, ["a.py"]);
    for name in ["cache/runs/one.jsonl", "records/one.jsonl", "cache/new.py"] {
        let file = FilePath::new(name);
        assert_eq!(policy.may_read(&file), Err(ReadError::Own(file.clone())));
        assert_eq!(policy.open(&file).unwrap_err(), ReadError::Own(file));
        assert_eq!(rule(&policy, name), "never", "{name}");
    }
    assert!(policy.may_read(&FilePath::new("a.py")).is_ok());
}

#[test]
fn root_counts_under_the_names_of_links_that_lead_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    for path in ["elsewhere/ci/workflows", "p/.git", "p/editor/sub", "p/src"] {
        std::fs::create_dir_all(at(path)).unwrap();
    }
    // Opened through a link that no directory above the real root contains.
    std::fs::create_dir_all(at("u")).unwrap();
    std::os::unix::fs::symlink("../elsewhere/ci", at("u/.github")).unwrap();
    let policy = PathPolicy::of(&at("u/.github/workflows"));
    assert_eq!(rule(&policy, "ci.yml"), "needs a person");
    let policy = PathPolicy::of(&at("elsewhere/ci/workflows"));
    assert_eq!(rule(&policy, "ci.yml"), "allowed");
    // A link above the root, however the root is opened.
    std::os::unix::fs::symlink("editor", at("p/.vscode")).unwrap();
    std::os::unix::fs::symlink("p/editor", at("opened")).unwrap();
    for root in ["p/editor", "p/.vscode/sub", "p/editor/sub", "opened/sub"] {
        let policy = PathPolicy::of(&at(root));
        assert_eq!(rule(&policy, "tasks.json"), "needs a person", "{root}");
    }
    assert_eq!(rule(&PathPolicy::of(&at("p/src")), "tasks.json"), "allowed");
}
