//! Paths of files and symbols.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::normalized;

/// A file path relative to the workspace root, with `/` as the separator.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FilePath(String);

impl FilePath {
    pub fn new(path: impl Into<String>) -> Self {
        let path = path.into().replace('\\', "/");
        FilePath(path.strip_prefix("./").map(str::to_owned).unwrap_or(path))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part after the last `/`.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns the part before the last `/`, or an empty string for a file in the root.
    pub fn directory(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(dir, _)| dir)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A symbol address such as `path/to/file.py::Class.method`. A redefinition of a name in the same
/// scope is `name#2`. The module body (and a file without a grammar) is `path/to/file.py::`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SymbolPath {
    pub file: FilePath,
    /// The dotted name; empty for the module body.
    pub name: String,
}

impl SymbolPath {
    pub fn new(file: FilePath, name: impl Into<String>) -> Self {
        SymbolPath {
            file,
            name: name.into(),
        }
    }

    pub fn module(file: FilePath) -> Self {
        SymbolPath {
            file,
            name: String::new(),
        }
    }

    pub fn is_module(&self) -> bool {
        self.name.is_empty()
    }

    /// Returns whether `other` is this symbol or is nested inside it.
    pub fn encloses(&self, other: &SymbolPath) -> bool {
        self.file == other.file
            && (self.name.is_empty()
                || self.name == other.name
                || other
                    .name
                    .strip_prefix(&self.name)
                    .is_some_and(|rest| rest.starts_with('.')))
    }

    /// Returns whether both are definitions of one name in the same scope: overloads of a function,
    /// or a property and its setter.
    pub fn is_twin_of(&self, other: &SymbolPath) -> bool {
        let scope = |path: &SymbolPath| path.name.len() - path.last_part().len();
        self.file == other.file
            && !self.is_module()
            && self.base_name() == other.base_name()
            && self.name[..scope(self)] == other.name[..scope(other)]
    }

    fn last_part(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// Returns the last part of the name, without `#2`.
    pub fn base_name(&self) -> &str {
        let last = self.last_part();
        last.split('#').next().unwrap_or(last)
    }
}

impl fmt::Display for SymbolPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.file, self.name)
    }
}

impl fmt::Debug for SymbolPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not of the form `file::name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a symbol path: write path/to/file.py::Class.method")]
pub struct BadSymbolPath(pub String);

impl FromStr for SymbolPath {
    type Err = BadSymbolPath;

    fn from_str(text: &str) -> Result<Self, BadSymbolPath> {
        match text.trim().split_once("::") {
            Some((file, name)) if !file.is_empty() => Ok(SymbolPath::new(
                FilePath::new(file),
                normalized(name).replace("::", "."),
            )),
            Some(_) | None => Err(BadSymbolPath(text.to_owned())),
        }
    }
}

impl TryFrom<String> for SymbolPath {
    type Error = BadSymbolPath;

    fn try_from(text: String) -> Result<Self, BadSymbolPath> {
        text.parse()
    }
}

impl From<SymbolPath> for String {
    fn from(path: SymbolPath) -> String {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> SymbolPath {
        text.parse().expect("the text is a valid symbol path")
    }

    #[test]
    fn name_is_normalized_as_python_does() {
        let decomposed = path("a.py::raum_fu\u{308}r");
        assert_eq!(decomposed, path("a.py::raum_f\u{fc}r"));
    }

    #[test]
    fn file_path_is_normalized() {
        let file = FilePath::new(".\\pkg\\a.py");
        assert_eq!(
            (file.as_str(), file.name(), file.directory()),
            ("pkg/a.py", "a.py", "pkg")
        );
        assert_eq!(FilePath::new("a.py").directory(), "");
    }

    #[test]
    fn symbol_path_is_parsed_and_formatted() {
        let read = path(" a.py::A::f#2 ");
        assert_eq!(read.to_string(), "a.py::A.f#2");
        assert_eq!(read.base_name(), "f");
        assert!(path("a.py::").is_module());
        let error = "no path".parse::<SymbolPath>().expect_err("no `::`");
        assert!(error.to_string().contains("`no path`"));
        assert!("::f".parse::<SymbolPath>().is_err());
        let json = serde_json::to_string(&read).expect("a symbol path can be serialized");
        assert_eq!(json, "\"a.py::A.f#2\"");
        assert_eq!(
            serde_json::from_str::<SymbolPath>(&json).expect("the JSON is a valid symbol path"),
            read
        );
    }

    #[test]
    fn twins_are_definitions_of_one_name_in_the_same_scope() {
        let f = path("a.py::A.f");
        assert!(f.is_twin_of(&path("a.py::A.f#2")) && path("a.py::A.f#3").is_twin_of(&f));
        for other in [
            "a.py::A.g",
            "a.py::A#2.f",
            "a.py::f",
            "b.py::A.f",
            "a.py::A",
        ] {
            assert!(!f.is_twin_of(&path(other)), "{other}");
        }
        assert!(!path("a.py::").is_twin_of(&path("a.py::")));
    }

    #[test]
    fn symbol_encloses_itself_and_nested_symbols_only() {
        let a = path("a.py::A");
        assert!(a.encloses(&path("a.py::A.f")) && a.encloses(&a));
        assert!(path("a.py::").encloses(&a));
        assert!(!a.encloses(&path("a.py::AB.f")) && !a.encloses(&path("b.py::A.f")));
        assert!(!a.encloses(&path("a.py::")));
    }
}
