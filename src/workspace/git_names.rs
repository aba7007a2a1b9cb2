//! The files of a project that its repository's own configuration names: hooks, monitors, filters,
//! included configurations. Git runs them, or what they name, at the user's next command.

use std::path::{Component, Path, PathBuf};

use super::regular::read_text;

/// A configuration is read up to here.
const BYTES_MOST: u64 = 256 << 10;
/// How deep configurations that include others are followed.
const DEPTH_MOST: u32 = 4;

/// Whether the configuration of the repository that holds `root` names `file`, or a directory that
/// holds it.
pub(super) fn names(root: &Path, file: &Path) -> bool {
    let Some((top, git)) = repository(root) else {
        return false;
    };
    let mut configurations = vec![git.join("config"), git.join("config.worktree")];
    let mut named = Vec::new();
    for _ in 0..DEPTH_MOST {
        let mut found = Vec::new();
        for configuration in std::mem::take(&mut configurations) {
            let Ok(text) = read_text(&configuration, BYTES_MOST) else {
                continue;
            };
            let beside = configuration.parent().unwrap_or(&git);
            found.extend(paths(&text, &top, beside));
        }
        if found.is_empty() {
            break;
        }
        configurations.clone_from(&found);
        named.extend(found);
    }
    let file = plain(&root.join(file));
    let inside = |path: &&PathBuf| path.starts_with(&top) && **path != top;
    named
        .iter()
        .filter(inside)
        .any(|path| file.starts_with(path))
}

/// The nearest directory upward with a repository, and the repository's data that all its work trees
/// share.
fn repository(root: &Path) -> Option<(PathBuf, PathBuf)> {
    let top = root
        .ancestors()
        .find(|folder| folder.join(".git").exists())?;
    let mut git = top.join(".git");
    if let Ok(text) = read_text(&git, BYTES_MOST) {
        git = plain(&top.join(text.strip_prefix("gitdir:")?.trim()));
    }
    if let Ok(common) = read_text(&git.join("commondir"), BYTES_MOST) {
        git = plain(&git.join(common.trim()));
    }
    Some((top.to_owned(), git))
}

/// What the keys have in their names whose values are paths or commands.
const KEYS: [&str; 20] = [
    "askpass", "browser", "clean", "cmd", "command", "driver", "editor", "external", "file",
    "filter", "helper", "monitor", "pack", "pager", "path", "process", "program", "proxy",
    "smudge", "textconv",
];

/// The paths in the values of a configuration: each word of a value that is a path, a command or an
/// alias may be one, from the top of the work tree or from beside the configuration.
fn paths(text: &str, top: &Path, beside: &Path) -> Vec<PathBuf> {
    let text = text.replace("\\\n", " ");
    let values = text.lines().filter_map(|line| line.split_once('='));
    let values = values.filter(|(key, value)| {
        let key = key.to_ascii_lowercase();
        value.contains('!') || KEYS.iter().any(|part| key.contains(part))
    });
    let words = values.flat_map(|(_, value)| {
        let is_border =
            |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '&' | '|' | '!');
        value.split(is_border).filter(|word| !word.is_empty())
    });
    words
        .flat_map(|word| [plain(&top.join(word)), plain(&beside.join(word))])
        .collect()
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_configuration_names_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let config = "[core]\n\thooksPath = tools/hk\n\tfsmonitor = \"tools/fsm.sh -v\"\n\
                      [include]\n\tpath = ../extra.cfg\n[filter \"x\"]\n\tclean = python3 ./tools/clean.py %f\n\
                      [remote \"origin\"]\n\turl = git@host:a/b.git\n\
                      [core]\n\tautocrlf = input\n[diff \"y\"]\n\ttextconv = sh \\\n  tools/text.sh\n";
        std::fs::write(root.join(".git/config"), config).unwrap();
        std::fs::write(root.join("extra.cfg"), "[alias]\n\tx = !scripts/x.sh\n").unwrap();
        let is_named = |file: &str| names(root, Path::new(file));
        for file in [
            "tools/hk/pre-commit",
            "tools/fsm.sh",
            "extra.cfg",
            "tools/clean.py",
            "scripts/x.sh",
            "tools/text.sh",
        ] {
            assert!(is_named(file), "{file}");
        }
        for file in [
            "tools/other.py",
            "scripts/y.sh",
            "a.py",
            "src/config",
            "input/a.py",
        ] {
            assert!(!is_named(file), "{file}");
        }
        // A project below the top of its repository.
        std::fs::create_dir_all(root.join("tools")).unwrap();
        assert!(names(&root.join("tools"), Path::new("fsm.sh")));
        assert!(!names(&root.join("tools"), Path::new("a.py")));
    }

    #[test]
    fn without_a_repository_nothing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!names(dir.path(), Path::new("a.py")));
    }
}
