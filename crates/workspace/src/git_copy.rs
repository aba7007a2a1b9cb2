//! Finds files whose text exists nowhere else, because git ignores them.

use std::path::{Component, Path};

use ignore::gitignore::Gitignore;

use super::git_config::{GitSettings, GitUser};
use super::git_index::lists;
use super::git_names::{GitRepository, repository};
use super::ignore_rules::{IgnoreRules, NameCase, is_ignored, rules_of_user};
use super::regular::read_regular;

/// Maximum size of a git index in bytes. A larger index is not read.
const INDEX_MOST: u64 = 64 << 20;

/// Returns whether git may ignore a file below `root`, and its index does not list the file, so that
/// no other copy of its text exists. Outside a repository, the rules of `.gitignore` count. Rules that
/// ignore `root` itself do not: it is a project of its own.
pub(super) fn is_only_copy(root: &Path, file: &Path, user: &GitUser) -> bool {
    let Ok(below) = file.strip_prefix(root) else {
        return false;
    };
    let Some(repository) = repository(root) else {
        return is_ignored(IgnoreRules::above(root), root, below, &Gitignore::empty());
    };
    let Ok(in_repository) = file.strip_prefix(&repository.top) else {
        return false;
    };
    let settings = GitSettings::read(&repository, user);
    let is_ignored = !settings.is_whole || may_ignore(&repository, &settings, root, below);
    is_ignored && !is_listed(&repository, &settings, in_repository)
}

/// Returns whether git ignores a file below `root` with one of the possible settings.
fn may_ignore(
    repository: &GitRepository,
    settings: &GitSettings,
    root: &Path,
    below: &Path,
) -> bool {
    let top = &repository.top;
    settings.ignores_case.iter().any(|ignores_case| {
        let case = match ignores_case {
            true => NameCase::Ignored,
            false => NameCase::Exact,
        };
        settings.excludes.iter().any(|excludes| {
            let excludes = excludes.as_ref().map_or(Ok(Gitignore::empty()), |file| {
                rules_of_user(top, file, case)
            });
            match excludes {
                Ok(excludes) => {
                    let rules = IgnoreRules::matching(case).between(top, root);
                    is_ignored(rules, root, below, &excludes)
                }
                Err(error) => {
                    tracing::debug!(%error, "the user's rules for ignored files were not read");
                    true
                }
            }
        })
    })
}

/// Returns whether the index is known to list a file.
fn is_listed(repository: &GitRepository, settings: &GitSettings, below: &Path) -> bool {
    let names = below.components().map(|part| match part {
        Component::Normal(name) => name.as_encoded_bytes(),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => &[],
    });
    let name = names.collect::<Vec<&[u8]>>().join(&b'/');
    let index = read_regular(&repository.index(), INDEX_MOST).unwrap_or_default();
    let is_listed = |hash_bytes| lists(&index, hash_bytes, &name);
    settings.hash_bytes.and_then(is_listed).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Stdio;

    use super::super::testing::{git, git_command};
    use super::*;

    const FILES: [&str; 14] = [
        "n.md",
        "N.MD",
        "{n}.md",
        "n{1,2}.md",
        "x.py",
        "d/n.md",
        "d/x.py",
        "d/e/n.md",
        "d/e/x.py",
        "e/n.md",
        "e/d/x.py",
        "D/n.md",
        "a b.md",
        "e/#n.md",
    ];
    const RULES: [&str; 30] = [
        "n.md",
        "N.MD",
        "*.md",
        "!n.md",
        "!d/n.md",
        "d/",
        "/d",
        "d",
        "D/",
        "d/*",
        "d/**",
        "**/e",
        "e/d",
        "/e/",
        "?.md",
        "[mn].md",
        "[!n].py",
        "[^x].md",
        "*",
        "!*/",
        "!*.py",
        "{n}.md",
        "n{1,2}.md",
        "*.{md,py}",
        "d/**/x.py",
        "/*.md",
        "\\#n.md",
        "# n.md",
        "a b.md  ",
        "a\\ b.md",
    ];

    /// Numbers that look random, and are the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 33) as usize % limit
        }

        /// Returns a file of one to three rules, or nothing.
        fn rules(&mut self) -> Option<String> {
            let some = (self.below(2) == 0).then(|| self.below(3) + 1)?;
            Some(
                (0..some)
                    .map(|_| format!("{}\n", RULES[self.below(RULES.len())]))
                    .collect(),
            )
        }
    }

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Creates a repository and a home directory with ignore files and git settings that `numbers` choose.
    fn generate(numbers: &mut Numbers, top: &Path, home: &Path) {
        for file in FILES {
            write(&top.join(file), "");
        }
        git(top, &["init", "-q"]);
        let places = [
            top.join(".gitignore"),
            top.join("d/.gitignore"),
            top.join("e/.gitignore"),
            top.join(".git/info/exclude"),
            home.join(".config/git/ignore"),
            home.join("excludes"),
            top.join("excludes"),
        ];
        for place in places {
            if let Some(rules) = numbers.rules() {
                write(&place, &rules);
            }
        }
        let values = [
            "excludesFile = ~/excludes",
            "excludesFile = excludes",
            "ignoreCase = true",
        ];
        let values = values.map(|value| format!("[core]\n\t{value}\n"));
        for place in [".gitconfig", ".config/git/config", "included"] {
            if numbers.below(2) == 0 {
                write(&home.join(place), &values[numbers.below(3)]);
            }
        }
        if numbers.below(3) == 0 {
            write(
                &home.join(".gitconfig"),
                "[include]\n\tpath = \"included\"\n",
            );
        }
        let mut own = std::fs::read_to_string(top.join(".git/config")).unwrap();
        if numbers.below(3) == 0 {
            own.push_str(&values[numbers.below(3)]);
        }
        write(&top.join(".git/config"), &own);
    }

    /// Returns the files that git says are ignored.
    fn ignored_by_git(top: &Path, home: &Path) -> Vec<String> {
        let mut command = git_command(top, home, &["check-ignore", "--no-index", "--stdin", "-z"]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let files = FILES.map(|file| format!("{file}\0")).concat();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(files.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let names = String::from_utf8(output.stdout).unwrap();
        names.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn files_count_as_ignored_exactly_where_git_says_so() {
        let mut seen = 0;
        for seed in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            let (top, home) = (dir.path().join("top"), dir.path().join("home"));
            generate(&mut Numbers(seed), &top, &home);
            let user = user_in(&home);
            let found = repository(&top).unwrap();
            let settings = GitSettings::read(&found, &user);
            let ours = FILES.into_iter();
            let ours: Vec<&str> = ours
                .filter(|file| may_ignore(&found, &settings, &top, Path::new(file)))
                .collect();
            assert_eq!(ours, ignored_by_git(&top, &home), "seed {seed}");
            seen += ours.len();
        }
        assert!(seen > 100, "too few files were ignored: {seen}");
    }

    fn user_in(home: &Path) -> GitUser {
        GitUser::of(&|name| match name {
            "HOME" => Some(home.to_owned().into_os_string()),
            "GIT_CONFIG_NOSYSTEM" => Some("1".into()),
            _ => None,
        })
    }

    #[test]
    fn ignored_file_is_the_only_copy_unless_the_index_lists_it() {
        let dir = tempfile::tempdir().unwrap();
        let (top, home) = (dir.path().join("top"), dir.path().join("home"));
        for file in ["sub/n.md", "sub/kept.md", "docs/n.md", "sub/x.py"] {
            write(&top.join(file), "");
        }
        write(&home.join(".config/git/ignore"), "*.md\n");
        let user = user_in(&home);
        let only = |file: &str| is_only_copy(&top.join("sub"), &top.join("sub").join(file), &user);
        for format in ["sha1", "sha256"] {
            git(&top, &["init", "-q", &format!("--object-format={format}")]);
            git(&top, &["add", "-f", "sub/kept.md", "docs/n.md", "sub/x.py"]);
            let found = ["n.md", "kept.md", "x.py"].map(only);
            assert_eq!(found, [true, false, false], "{format}");
            git(&top, &["update-index", "--split-index"]);
            assert!(
                only("kept.md") && !only("x.py"),
                "unknown is strict: {format}"
            );
            std::fs::remove_dir_all(top.join(".git")).unwrap();
        }
        // A rule of `.ignore` does not take back what git ignores.
        git(&top, &["init", "-q"]);
        write(&top.join(".ignore"), "!n.md\n");
        assert!(only("n.md"));
        // Rules from above the project count, but not that the project itself is ignored.
        write(&top.join(".gitignore"), "/sub/\n/sub/x.py\n");
        assert!(only("x.py"));
        write(&top.join(".gitignore"), "/sub/\n");
        assert!(!only("x.py"));
        let long = "x\n".repeat(1 << 20);
        write(&home.join(".config/git/ignore"), &long);
        assert!(only("x.py"), "rules that are too long to be read");
    }
}
