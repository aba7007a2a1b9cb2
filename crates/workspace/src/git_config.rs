//! The settings of git that decide which files it ignores, from the files of the system, the user and
//! the repository. Settings in files that git includes only on a condition, and files whose place
//! depends on how git was built, count as possible.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::git_names::GitRepository;
use super::regular::read_regular;

/// Maximum number of bytes read of a configuration file.
const BYTES_MOST: u64 = 1 << 20;
/// Maximum depth of files that include others, as in git.
const DEPTH_MOST: u32 = 10;
/// Maximum number of configuration files to read.
const FILES_MOST: usize = 256;
/// Files of the system, as the usual builds of git name them.
const SYSTEM: [&str; 6] = [
    "/etc/gitconfig",
    "/usr/local/etc/gitconfig",
    "/opt/homebrew/etc/gitconfig",
    "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
    "/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
    "C:/Program Files/Git/etc/gitconfig",
];

/// Where git finds the settings of the system and the user.
#[derive(Debug, Clone)]
pub(super) struct GitUser {
    home: Option<PathBuf>,
    /// The user's rules for ignored files where no setting names others.
    ignore: Option<PathBuf>,
    system: Vec<PathBuf>,
    own: Vec<PathBuf>,
}

impl GitUser {
    /// Returns the places that git uses in this process.
    pub(super) fn of_process() -> Self {
        GitUser::of(&|name| std::env::var_os(name))
    }

    /// Returns the places that git uses with these environment variables.
    pub(super) fn of(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = path("HOME").or_else(|| path("USERPROFILE"));
        let home = home.map(PathBuf::from);
        let in_home = || home.as_ref().map(|home| home.join(".config"));
        let settings = path("XDG_CONFIG_HOME").map(PathBuf::from).or_else(in_home);
        let settings = settings.map(|settings| settings.join("git"));
        let own = [
            settings.as_ref().map(|settings| settings.join("config")),
            home.as_ref().map(|home| home.join(".gitconfig")),
        ];
        let own = match variable("GIT_CONFIG_GLOBAL") {
            Some(file) => vec![PathBuf::from(file)],
            None => own.into_iter().flatten().collect(),
        };
        let is_closed = variable("GIT_CONFIG_NOSYSTEM").is_some_and(|value| {
            let value = value.to_string_lossy();
            is_true(Some(&value))
        });
        let system = match variable("GIT_CONFIG_SYSTEM") {
            _ if is_closed => Vec::new(),
            Some(file) => vec![PathBuf::from(file)],
            None => SYSTEM.map(PathBuf::from).into(),
        };
        GitUser {
            ignore: settings.map(|settings| settings.join("ignore")),
            home,
            system,
            own,
        }
    }
}

/// The settings that decide which files git ignores in a repository. Each has more than one value if
/// it is not certain which one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitSettings {
    /// The user's file of ignore rules, or `None` if there is none.
    pub(super) excludes: BTreeSet<Option<PathBuf>>,
    /// Whether ignore rules match names in upper and lower case.
    pub(super) ignores_case: BTreeSet<bool>,
    /// The length of the ids of objects, or `None` if the repository has ids of an unknown kind.
    pub(super) hash_bytes: Option<usize>,
    /// Whether all settings were read and understood.
    pub(super) is_whole: bool,
}

impl GitSettings {
    pub(super) fn read(repository: &GitRepository, user: &GitUser) -> Self {
        let settings = GitSettings {
            excludes: BTreeSet::from([user.ignore.clone()]),
            ignores_case: BTreeSet::from([false]),
            hash_bytes: Some(20),
            is_whole: true,
        };
        let mut reader = SettingsReader {
            top: &repository.top,
            home: user.home.as_deref(),
            files: 0,
            settings,
        };
        for file in &user.system {
            reader.read(file, Certainty::Possible, 0);
        }
        for file in &user.own {
            reader.read(file, Certainty::Certain, 0);
        }
        // Only the repository itself says how it is stored.
        reader.settings.hash_bytes = Some(20);
        let mut files = repository.configurations().into_iter();
        if let Some(file) = files.next() {
            reader.read(&file, Certainty::Certain, 0);
        }
        for file in files {
            // Used only where an extension of the repository says so.
            reader.read(&file, Certainty::Possible, 0);
        }
        reader.settings
    }
}

/// Whether git uses a file or a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Certain,
    Possible,
}

/// Reads configuration files in git's order.
struct SettingsReader<'s> {
    top: &'s Path,
    home: Option<&'s Path>,
    files: usize,
    settings: GitSettings,
}

impl SettingsReader<'_> {
    fn read(&mut self, file: &Path, certainty: Certainty, depth: u32) {
        self.files += 1;
        if depth > DEPTH_MOST || self.files > FILES_MOST {
            self.settings.is_whole = false;
            return;
        }
        let bytes = match read_regular(file, BYTES_MOST) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.settings.is_whole &= error.kind() != ErrorKind::FileTooLarge;
                return;
            }
        };
        for entry in entries(&String::from_utf8_lossy(&bytes)) {
            self.take(&entry, file, certainty, depth);
        }
    }

    fn take(&mut self, entry: &Entry, file: &Path, certainty: Certainty, depth: u32) {
        let value = entry.value.as_deref();
        match (entry.section.as_str(), entry.key.as_str(), &entry.condition) {
            ("core", "excludesfile", None) => {
                let path = value.and_then(|value| self.path(value, self.top));
                learn(&mut self.settings.excludes, path, certainty);
            }
            ("core", "ignorecase", None) => {
                learn(&mut self.settings.ignores_case, is_true(value), certainty);
            }
            ("extensions", "objectformat", None) => {
                self.settings.hash_bytes = match value.map(str::to_ascii_lowercase).as_deref() {
                    Some("sha1") => Some(20),
                    Some("sha256") => Some(32),
                    Some(_) | None => None,
                };
            }
            ("include", "path", None) | ("includeif", "path", Some(_)) => {
                let beside = file.parent().unwrap_or(self.top);
                let included = value.and_then(|value| self.path(value, beside));
                let certainty = match entry.condition {
                    Some(_) => Certainty::Possible,
                    None => certainty,
                };
                if let Some(included) = included {
                    self.read(&included, certainty, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Returns the path that a value names, if it names one. `beside` is the directory of relative
    /// paths.
    fn path(&mut self, value: &str, beside: &Path) -> Option<PathBuf> {
        let value = value.strip_prefix(":(optional)").unwrap_or(value);
        let is_unknown = value.starts_with("%(")
            || value.contains('\u{fffd}')
            || value.starts_with('~') && value != "~" && !value.starts_with("~/");
        if is_unknown {
            self.settings.is_whole = false;
            return None;
        }
        match (value.strip_prefix('~'), self.home) {
            _ if value.is_empty() => None,
            (Some(rest), Some(home)) => Some(home.join(rest.trim_start_matches('/'))),
            (Some(_), None) => None,
            (None, _) => Some(beside.join(value)),
        }
    }
}

/// Replaces the values of a setting, or adds a possible one.
fn learn<T: Ord>(values: &mut BTreeSet<T>, value: T, certainty: Certainty) {
    if certainty == Certainty::Certain {
        values.clear();
    }
    values.insert(value);
}

/// Returns whether git reads a value as true. A key without a value is true.
fn is_true(value: Option<&str>) -> bool {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "yes" | "on") => true,
        Some(other) => other.bytes().any(|byte| (b'1'..=b'9').contains(&byte)),
    }
}

/// A key of a configuration file with its value.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    section: String,
    /// The second part of the section's name, as in `[includeIf "gitdir:~/work/"]`.
    condition: Option<String>,
    key: String,
    value: Option<String>,
}

/// Reads the entries of a configuration file in order. Lines that git would refuse are skipped.
fn entries(text: &str) -> Vec<Entry> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (mut section, mut condition) = (String::new(), None);
    let mut found = Vec::new();
    let mut rest = text.as_str();
    loop {
        rest = rest.trim_start();
        if let Some(header) = rest.strip_prefix('[') {
            (section, condition, rest) = section_name(header);
            continue;
        }
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let length = rest.find(|c| !is_of_key(c)).unwrap_or(rest.len());
        if length == 0 {
            let Some((_, next)) = rest.split_once('\n') else {
                return found;
            };
            rest = next;
            continue;
        }
        let (key, after) = rest.split_at(length);
        let after = after.trim_start_matches([' ', '\t']);
        let (value, after) = match after.strip_prefix('=') {
            Some(after) => {
                let (value, after) = value_of(after);
                (Some(value), after)
            }
            None => (None, after.find('\n').map_or("", |end| &after[end..])),
        };
        rest = after;
        found.push(Entry {
            section: section.clone(),
            condition: condition.clone(),
            key: key.to_ascii_lowercase(),
            value,
        });
    }
}

/// Reads the rest of a section's line after `[`. Returns both parts of the name, and the text after
/// it.
fn section_name(text: &str) -> (String, Option<String>, &str) {
    let end = text.find(['"', ']', '\n']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let name = name.trim().to_ascii_lowercase();
    let Some(quoted) = rest.strip_prefix('"') else {
        let rest = rest.strip_prefix(']').unwrap_or(rest);
        return match name.split_once('.') {
            Some((name, condition)) => (name.to_owned(), Some(condition.to_owned()), rest),
            None => (name, None, rest),
        };
    };
    let mut condition = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' | '\n' => {
                let rest = &quoted[at..];
                let rest = rest.strip_prefix('"').unwrap_or(rest);
                let rest = rest.strip_prefix(']').unwrap_or(rest);
                return (name, Some(condition), rest);
            }
            '\\' => condition.extend(chars.next().map(|(_, c)| c)),
            c => condition.push(c),
        }
    }
    (name, Some(condition), "")
}

/// Reads a value after `=`. Returns it without comments, quotes and escapes, and the text after it.
fn value_of(text: &str) -> (String, &str) {
    let mut value = String::new();
    // Spaces count only in quotes, or if something follows them.
    let mut kept = 0;
    let mut is_quoted = false;
    let mut rest = "";
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' => {
                rest = &text[at..];
                break;
            }
            '#' | ';' if !is_quoted => {
                rest = text[at..].find('\n').map_or("", |end| &text[at + end..]);
                break;
            }
            '"' => is_quoted = !is_quoted,
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('\n') | None => continue,
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some(other) => value.push(other),
            },
            c if c.is_whitespace() && !is_quoted => {
                if !value.is_empty() {
                    value.push(c);
                }
                continue;
            }
            c => value.push(c),
        }
        kept = value.len();
    }
    value.truncate(kept);
    (value, rest)
}

#[cfg(test)]
mod tests {
    use super::super::git_names::repository;
    use super::*;

    #[test]
    fn values_are_read_as_git_writes_them() {
        let text = "\u{feff}; first\n[core]\r\n\tignoreCase\n\
                    excludesFile = \"a # b\" c ; comment\n bad line [x]\n\
                    [Core] excludesFile = d \\\n  e\\\"\\\\\n[core \"x\"] k = \" v \"\n\
                    [includeIf \"gitdir:~/w/\\\"\"]\npath = p # no\n[a.b]c=\n=x\n[end";
        let found: Vec<_> = entries(text)
            .into_iter()
            .map(|one| (one.section, one.condition, one.key, one.value))
            .collect();
        let entry = |section: &str, condition: Option<&str>, key: &str, value: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let (condition, value) = (owned(condition), owned(value));
            (section.to_owned(), condition, key.to_owned(), value)
        };
        assert_eq!(
            found,
            [
                entry("core", None, "ignorecase", None),
                entry("core", None, "excludesfile", Some("a # b c")),
                entry("core", None, "bad", None),
                entry("core", None, "excludesfile", Some("d   e\"\\")),
                entry("core", Some("x"), "k", Some(" v ")),
                entry("includeif", Some("gitdir:~/w/\""), "path", Some("p")),
                entry("a", Some("b"), "c", Some("")),
            ]
        );
        assert!(
            ["1", "on", "Yes", "TRUE", "12"]
                .iter()
                .all(|one| is_true(Some(one)))
        );
        assert!(
            ["", "0", "off", "no", "false"]
                .iter()
                .all(|one| !is_true(Some(one)))
        );
    }

    /// Returns the settings of a repository with these files in the home directory, whose own
    /// configuration is `own`.
    fn settings(home: &[(&str, &str)], own: &str) -> (GitSettings, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (top, user) = (dir.path().join("top"), dir.path().join("home"));
        std::fs::create_dir_all(top.join(".git")).unwrap();
        std::fs::write(top.join(".git/config"), own).unwrap();
        for (file, text) in home {
            let path = user.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let variable = |name: &str| match name {
            "HOME" => Some(user.clone().into_os_string()),
            "GIT_CONFIG_NOSYSTEM" => Some("1".into()),
            _ => None,
        };
        let found = GitSettings::read(&repository(&top).unwrap(), &GitUser::of(&variable));
        (found, user, top)
    }

    #[test]
    fn last_setting_counts_and_conditional_ones_are_possible() {
        let (found, home, _) = settings(&[], "");
        assert_eq!(
            found.excludes,
            [Some(home.join(".config/git/ignore"))].into()
        );
        assert_eq!((found.hash_bytes, found.is_whole), (Some(20), true));
        let user = [
            (".config/git/config", "[core]\nexcludesFile = ~/first\n"),
            (".gitconfig", "[include]\npath = more/config\n"),
            (
                "more/config",
                "[core]\nexcludesFile = ~/second\nignoreCase = true\n",
            ),
        ];
        let (found, home, _) = settings(&user, "");
        assert_eq!(found.excludes, [Some(home.join("second"))].into());
        assert_eq!(found.ignores_case, [true].into());
        let own = "[core]\nexcludesFile = rules\nignorecase = false\n[extensions]\nobjectFormat = sha256\n";
        let (found, _, top) = settings(&user, own);
        assert_eq!(found.excludes, [Some(top.join("rules"))].into());
        assert_eq!(found.ignores_case, [false].into());
        assert_eq!(found.hash_bytes, Some(32));
        let own = format!("{own}[includeIf \"onbranch:x\"]\npath = ~/other\n");
        let others = [("other", "[core]\nexcludesFile =\nignoreCase\n")];
        let (found, _, top) = settings(&others, &own);
        assert_eq!(found.excludes, [None, Some(top.join("rules"))].into());
        assert_eq!(found.ignores_case, [false, true].into());
    }

    #[test]
    fn settings_that_cannot_be_understood_are_reported() {
        for own in [
            "[core]\nexcludesFile = ~someone/rules\n",
            "[core]\nexcludesFile = %(prefix)/rules\n",
            "[include]\npath = config\n",
        ] {
            assert!(!settings(&[], own).0.is_whole, "{own}");
        }
        let long = " ".repeat(BYTES_MOST as usize + 1);
        assert!(!settings(&[(".gitconfig", &long)], "").0.is_whole);
        let other = settings(&[], "[extensions]\nobjectFormat = sha512\n").0;
        assert_eq!(other.hash_bytes, None);
    }
}
