//! Resolves addresses of symbols and files as agents write them, and finds the files that a text
//! names.

use super::Lookup;
use starling_syntax::{FilePath, SymbolPath, composed};

/// Documents that are often named without an extension.
const DOCUMENTS: [&str; 3] = ["readme", "changelog", "contributing"];

impl Lookup {
    /// Resolves an address: a symbol path, or the path of a file (`README.md`, `Makefile`), which
    /// represents the whole file. The file does not have to exist.
    ///
    /// # Errors
    /// Returns a message for the model that describes the format of an address.
    pub fn address(&self, text: &str) -> Result<SymbolPath, String> {
        let name = self.unquoted(text);
        if let Some(file) = self.file_at(name) {
            return Ok(SymbolPath::module(file));
        }
        let is_one_word = self.unusual_paths().words(name, char::is_whitespace).len() == 1;
        if name.contains(['.', '/']) && is_one_word && !name.contains("::") {
            return Ok(SymbolPath::module(FilePath::new(name)));
        }
        let path: Result<SymbolPath, _> = without_case(name).parse();
        let mut path =
            path.map_err(|error| format!("{error}, or path/to/file for a whole file"))?;
        if let Some(file) = self.file_at(path.file.as_str()) {
            path.file = file;
        }
        Ok(path)
    }

    /// Returns the class whose body or methods assign the attribute at an address. For a member of
    /// an enumeration, this is the enumeration.
    pub fn class_of_member(&self, text: &str) -> Option<SymbolPath> {
        let path = self.address(text).ok()?;
        let (class, member) = path.name.rsplit_once('.')?;
        let class = SymbolPath::new(path.file.clone(), class);
        self.index().has_attribute(&class, member).then_some(class)
    }

    /// Removes the backquotes around an address, unless they are part of a path.
    pub fn unquoted<'t>(&self, text: &'t str) -> &'t str {
        let text = text.trim();
        let file = text.split("::").next().unwrap_or(text);
        match self.file_at(file) {
            Some(_) => text,
            None => text.trim_matches('`').trim(),
        }
    }

    /// Returns the files that a text names, in the order of the text. A file name without a
    /// directory counts if only one file has this name, and "readme" matches `README.md` or a
    /// similar file.
    pub fn files_named_in(&self, text: &str) -> Vec<FilePath> {
        let is_outside = |c: char| c.is_whitespace() || "`'\"()[]{}<>,;*".contains(c);
        let mut found: Vec<FilePath> = Vec::new();
        for word in self.unusual_paths().words(text, is_outside) {
            let word = word.trim_end_matches(['.', ':', '!', '?']);
            let word = match word.rsplit_once(':') {
                Some((path, line)) if line.parse::<u32>().is_ok() => path,
                Some(_) | None => word,
            };
            let file = self.file_at(word).or_else(|| self.only_file_called(word));
            let file = file.or_else(|| self.document_called(word));
            found.extend(file.filter(|file| !found.contains(file)));
        }
        found
    }

    /// Returns the document in the root directory that is commonly called by this name, such as
    /// `README.md` for "readme".
    fn document_called(&self, name: &str) -> Option<FilePath> {
        let name = name.to_lowercase();
        if !DOCUMENTS.contains(&name.as_str()) {
            return None;
        }
        let is_it = |file: &&FilePath| {
            let stem = file.as_str().split('.').next().unwrap_or_default();
            stem.eq_ignore_ascii_case(&name)
        };
        self.files().iter().find(is_it).cloned()
    }

    /// Returns the file of the project with this path. The path may lead through a link to a directory.
    pub(super) fn file_at(&self, path: &str) -> Option<FilePath> {
        let file = FilePath::new(path);
        if self.files().binary_search(&file).is_ok() {
            return Some(file);
        }
        if let Some(file) = self.behind_link(&file) {
            return Some(file);
        }
        if path.is_ascii() {
            return None;
        }
        // The letters of one of the two paths may be decomposed.
        let path = composed(file.as_str());
        let mut files = self.files().iter();
        files.find(|one| composed(one.as_str()) == path).cloned()
    }

    /// Returns the file of the project to which a path in a linked directory leads.
    fn behind_link(&self, file: &FilePath) -> Option<FilePath> {
        if file.directory().is_empty() {
            return None;
        }
        let policy = self.index().snapshot().policy();
        let real = policy.may_read(file).ok()?;
        let relative = real.strip_prefix(policy.root()).ok()?.to_str()?;
        let behind = FilePath::new(relative);
        self.files().binary_search(&behind).ok().map(|_| behind)
    }

    /// Returns the file with this name if there is exactly one. The name must have an extension.
    pub(super) fn only_file_called(&self, name: &str) -> Option<FilePath> {
        if name.contains('/') || !name.trim_start_matches('.').contains('.') {
            return None;
        }
        let mut called = self.files().iter().filter(|file| file.name() == name);
        let only = called.next()?;
        called.next().is_none().then(|| only.clone())
    }
}

/// Removes the case of a parametrized test (`[…]`) from its id, also if the case is cut off.
fn without_case(id: &str) -> String {
    let Some((file, name)) = id.split_once("::") else {
        return id.to_owned();
    };
    match name.split_once('[') {
        Some((function, _)) if !function.is_empty() => format!("{file}::{function}"),
        Some(_) | None => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use starling_index::Index;
    use starling_workspace::Workspace;

    fn lookup(dir: &std::path::Path) -> Lookup {
        std::fs::create_dir_all(dir.join("src")).unwrap();
        std::fs::create_dir_all(dir.join("my kit/100%")).unwrap();
        for file in [
            "README.md",
            "Makefile",
            "src/app.py",
            "src/util.py",
            "util.py",
            "my kit/100%/a.py",
            "it's `so`.md",
            "r\u{e4}ume.py",
        ] {
            std::fs::write(dir.join(file), "x = 1\n").unwrap();
        }
        let workspace = Workspace::open(dir.canonicalize().unwrap()).unwrap();
        let world = workspace.snapshot(Default::default());
        Lookup::new(world.clone(), Arc::new(Index::new(world)))
    }

    #[test]
    fn file_path_without_a_symbol_addresses_the_whole_file() {
        let dir = tempfile::tempdir().unwrap();
        let lookup = lookup(dir.path());
        for (address, symbol) in [
            ("README.md", "README.md::"),
            (" `README.md` ", "README.md::"),
            ("./README.md", "README.md::"),
            ("Makefile", "Makefile::"),
            ("src/app.py", "src/app.py::"),
            ("src/new.py", "src/new.py::"),
            ("src/app.py::f", "src/app.py::f"),
            ("src/app.py::", "src/app.py::"),
            ("src/app.py::test_f[37-1:02:03]", "src/app.py::test_f"),
            ("src/app.py::test_f[37-1:02:03", "src/app.py::test_f"),
            ("src/app.py::T::test_f[a::b]", "src/app.py::T.test_f"),
            ("`my kit/100%/a.py`", "my kit/100%/a.py::"),
            ("my kit/100%/a.py::f", "my kit/100%/a.py::f"),
            ("my kit/new.py", "my kit/new.py::"),
            ("it's `so`.md", "it's `so`.md::"),
            ("ra\u{308}ume.py", "r\u{e4}ume.py::"),
            ("ra\u{308}ume.py::fu\u{308}r", "r\u{e4}ume.py::f\u{fc}r"),
        ] {
            let path = lookup.address(address).unwrap();
            assert_eq!(path.to_string(), symbol, "{address}");
        }
        for wrong in ["", "nothing", "two words.py", "two words/a.py", "::f"] {
            let error = lookup.address(wrong).unwrap_err();
            assert!(error.contains("is not a symbol path"), "{wrong}: {error}");
        }
    }

    #[test]
    fn file_paths_in_a_text_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let lookup = lookup(dir.path());
        for (text, files) in [
            ("Mention in README.md how to run it", &["README.md"][..]),
            ("add a target to the Makefile.", &["Makefile"]),
            (
                "`src/app.py:12` and (util.py) are slow",
                &["src/app.py", "util.py"],
            ),
            ("app.py, app.py: twice", &["src/app.py"]),
            ("README says nosetests", &["README.md"]),
            (
                "In \"my kit/100%/a.py:3\", not its `so`.md, but it's `so`.md.",
                &["my kit/100%/a.py", "it's `so`.md"],
            ),
            ("the readme, the changelog and readme.txt", &["README.md"]),
        ] {
            let named = lookup.files_named_in(text);
            let named: Vec<&str> = named.iter().map(FilePath::as_str).collect();
            assert_eq!(named, files, "{text}");
        }
    }
}
