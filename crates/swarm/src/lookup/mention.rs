//! Files and symbols that a task mentions explicitly: `@path/to/file` and `#Symbol`.

use super::Lookup;
use starling_index::{distance, is_test_file};
use starling_syntax::{FilePath, Language, SymbolPath};

/// Maximum number of symbols that are listed for one ambiguous mention.
const AMBIGUOUS_MOST: usize = 5;

/// A mention of a file or symbol in a text, after it was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mention {
    /// One file (represented by its module body) or one symbol.
    One(SymbolPath),
    /// Several symbols with this name: the first of them and their total number.
    Several {
        name: String,
        symbols: Vec<SymbolPath>,
        count: usize,
    },
    /// No file or symbol has this name: the mention as written, and what to write instead.
    Unknown { written: String, why: String },
}

/// A file that a text names after `@` and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFile {
    pub written: String,
    pub file: FilePath,
    /// Files with similar names, the most similar first.
    pub nearest: Vec<FilePath>,
}

impl MissingFile {
    /// Describes the missing file, as in `there is no a/cat.py; is a/cart.py meant?`
    pub fn in_words(&self) -> String {
        let names: Vec<&str> = self.nearest.iter().map(FilePath::as_str).collect();
        let meant = match names.as_slice() {
            [] => String::new(),
            [only] => format!("; is {only} meant?"),
            several => format!("; is one of these meant: {}?", several.join(", ")),
        };
        format!("there is no {}{meant}", self.file)
    }
}

/// A symbol in a text after `#` that does not exist, but whose name resembles that of an existing symbol.
#[derive(Debug, Clone)]
pub(crate) struct MisspelledSymbol {
    pub written: String,
    nearest: String,
}

impl MisspelledSymbol {
    /// Describes the misspelled symbol and the nearest name, as in
    /// ``no symbol is called `totl`; nearest: `total` ``.
    pub(crate) fn in_words(&self) -> String {
        let name = self.written.trim_start_matches('#');
        format!("no symbol is called `{name}`; nearest: `{}`", self.nearest)
    }
}

/// Maximum number of files that are suggested for a missing file.
const NEAREST_MOST: usize = 3;

impl Lookup {
    /// Returns the files that a text names after `@` and that do not exist. The index is not used.
    pub fn not_there(&self, text: &str) -> Vec<MissingFile> {
        let mut found: Vec<MissingFile> = Vec::new();
        for word in self.mention_words(text) {
            let Some(name) = word.strip_prefix('@').filter(|name| !name.contains("::")) else {
                continue;
            };
            let path = without_line(name);
            let file = FilePath::new(path);
            let is_known = self.file_at(path).is_some() || self.is_a_name(path);
            if !is_known && self.is_path(path) && found.iter().all(|one| one.file != file) {
                let nearest = self.nearest(&file);
                let written = format!("@{name}");
                found.push(MissingFile {
                    written,
                    file,
                    nearest,
                });
            }
        }
        found
    }

    /// Returns the symbols that a text names after `#` and that do not exist, if there is a symbol with a
    /// similar name.
    pub(crate) fn misspelled_symbols(&self, text: &str) -> Vec<MisspelledSymbol> {
        let words = self.mention_words(text).into_iter();
        let names = words.filter_map(|word| Some((word, word.strip_prefix('#')?)));
        let unknown = names
            .filter(|(_, name)| matches!(self.symbol_mention(name), Some(Mention::Unknown { .. })));
        let misspelled = unknown.filter_map(|(word, name)| {
            let nearest = self.index().nearest_name(name)?;
            Some(MisspelledSymbol {
                written: word.to_owned(),
                nearest,
            })
        });
        misspelled.collect()
    }

    /// Returns whether a file of the project has this name.
    fn is_a_name(&self, path: &str) -> bool {
        self.files().iter().any(|file| file.name() == path)
    }

    /// Returns whether a word is a path. `@app.route` and `@scope/package` are not: they have no
    /// extension of a code file, and no extension of another file in their directory.
    fn is_path(&self, path: &str) -> bool {
        let ending = |name: &str| name.rsplit_once('.').map(|(_, ending)| ending.to_owned());
        let is_code = Language::of(&FilePath::new(path)) != Language::Plain;
        let is_like_others = || {
            let own = ending(path);
            let mut files = self.files().iter();
            own.is_some() && path.contains('/') && files.any(|file| ending(file.name()) == own)
        };
        is_code || is_like_others()
    }

    /// Returns the files with similar names, the most similar first.
    fn nearest(&self, file: &FilePath) -> Vec<FilePath> {
        let parts = |file: &'_ FilePath| {
            let name = file.name();
            let end = name.rfind('.').filter(|end| *end > 0).unwrap_or(name.len());
            (name[..end].to_owned(), name[end..].to_owned())
        };
        let (stem, ending) = parts(file);
        let most = match stem.chars().count() {
            0..=3 => 1,
            4..=8 => 2,
            _ => 3,
        };
        let near = self.files().iter().filter_map(|other| {
            let (own, own_ending) = parts(other);
            let far = distance(&stem, &own) + distance(&ending, &own_ending);
            let places = distance(file.directory(), other.directory());
            let is_alike = own_ending == ending || own == stem;
            (far <= most && is_alike).then_some((far, places, other))
        });
        let mut near: Vec<(usize, usize, &FilePath)> = near.collect();
        near.sort();
        let nearest = near.into_iter().take(NEAREST_MOST);
        nearest.map(|(_, _, other)| other.clone()).collect()
    }

    /// Returns the mentions of a text in order. `@` names a file and `#` a symbol; either may name
    /// a symbol by its full path. Words that only look like mentions, such as `@property` and
    /// `#12`, are left out.
    pub fn mentions_in(&self, text: &str) -> Vec<Mention> {
        let mut found: Vec<Mention> = Vec::new();
        for word in self.mention_words(text) {
            let mention = match (word.strip_prefix('@'), word.strip_prefix('#')) {
                (Some(name), _) => self.file_mention(name),
                (_, Some(name)) => self.symbol_mention(name),
                (None, None) => None,
            };
            found.extend(mention.filter(|mention| !found.contains(mention)));
        }
        found
    }

    /// Returns the words of a text that may be mentions. A path of the project with spaces is one
    /// word.
    fn mention_words<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let is_outside = |c: char| c.is_whitespace() || "`'\"()[]{}<>,;*".contains(c);
        let words = self.unusual_paths().words(text, is_outside);
        let words = words.into_iter();
        words
            .map(|word| word.trim_end_matches(['.', ':', '!', '?']))
            .collect()
    }

    fn file_mention(&self, name: &str) -> Option<Mention> {
        if name.contains("::") {
            return self.path_mention('@', name);
        }
        let path = without_line(name);
        let file = self.file_at(path).or_else(|| self.only_file_called(path));
        if let Some(file) = file {
            return Some(Mention::One(SymbolPath::module(file)));
        }
        self.is_path(path).then(|| Mention::Unknown {
            written: format!("@{name}"),
            why: match self
                .files()
                .iter()
                .filter(|file| file.name() == path)
                .count()
            {
                0 => {
                    let gone = self.not_there(&format!("@{name}"));
                    gone.first().map_or_else(String::new, MissingFile::in_words)
                }
                count => format!("{count} files are called {path}: write the whole path"),
            },
        })
    }

    fn symbol_mention(&self, name: &str) -> Option<Mention> {
        if name.contains("::") {
            return self.path_mention('#', name);
        }
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return None;
        }
        let all = self.index().definitions(name);
        let mut symbols: Vec<SymbolPath> = all.into_iter().map(|one| one.symbol).collect();
        if symbols.iter().any(|symbol| !is_test_file(&symbol.file)) {
            symbols.retain(|symbol| !is_test_file(&symbol.file));
        }
        let count = symbols.len();
        symbols.truncate(AMBIGUOUS_MOST);
        Some(match symbols.as_slice() {
            [] => {
                let nearest = self.index().nearest_name(name).into_iter();
                let nearest: String = nearest.map(|near| format!("; nearest: `{near}`")).collect();
                Mention::Unknown {
                    written: format!("#{name}"),
                    why: format!("no symbol is called `{name}`{nearest}"),
                }
            }
            [only] => Mention::One(only.clone()),
            _ => Mention::Several {
                name: name.to_owned(),
                symbols,
                count,
            },
        })
    }

    /// Parses `path/to/file::Symbol` after the mark `@` or `#`.
    fn path_mention(&self, mark: char, name: &str) -> Option<Mention> {
        let known = self
            .address(name)
            .and_then(|path| self.symbol(&path).map(|_| path));
        Some(match known {
            Ok(path) => Mention::One(path),
            Err(why) => Mention::Unknown {
                written: format!("{mark}{name}"),
                why,
            },
        })
    }
}

/// Returns a path without a line number at its end.
fn without_line(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((path, line)) if line.parse::<u32>().is_ok() => path,
        Some(_) | None => name,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use starling_index::Index;
    use starling_workspace::Workspace;

    /// Returns the mentions of a text in a small sample project, one line for each.
    fn mentions(text: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (file, source) in [
            (
                "shop/cart.py",
                "class Cart:\n    def total(self): pass\n    def add(self): pass\n",
            ),
            ("shop/bill.py", "def total(): pass\n"),
            ("shop/__init__.py", ""),
            ("old shop/till.py", "def ring(): pass\n"),
            ("lib/__init__.py", ""),
            ("tests/conftest.py", ""),
            (
                "tests/test_cart.py",
                "def add(): pass\ndef test_add(): pass\n",
            ),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, source).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("shop", dir.path().join("current")).unwrap();
        let workspace = Workspace::open(dir.path().canonicalize().unwrap()).unwrap();
        let world = workspace.snapshot(Default::default());
        let lookup = Lookup::new(world.clone(), Arc::new(Index::new(world)));
        let line = |mention: Mention| match mention {
            Mention::One(symbol) => symbol.to_string(),
            Mention::Several { symbols, count, .. } => {
                let symbols: Vec<String> = symbols.iter().map(ToString::to_string).collect();
                format!("{count}: {}", symbols.join(" "))
            }
            Mention::Unknown { written, why } => format!("{written}? {why}"),
        };
        lookup.mentions_in(text).into_iter().map(line).collect()
    }

    #[cfg(unix)]
    #[test]
    fn path_through_a_linked_directory_resolves_to_the_file() {
        for (text, expected) in [
            ("see @current/cart.py:2", &["shop/cart.py::"][..]),
            ("#current/bill.py::total", &["shop/bill.py::total"]),
            (
                "@current/crat.py",
                &["@current/crat.py? there is no current/crat.py; is shop/cart.py meant?"],
            ),
        ] {
            assert_eq!(mentions(text), expected, "{text}");
        }
    }

    #[test]
    fn mention_in_a_task_resolves_to_a_file_or_symbol() {
        for (text, expected) in [
            ("Look at @shop/cart.py.", &["shop/cart.py::"][..]),
            ("(@cart.py:12) and @cart.py", &["shop/cart.py::"]),
            ("#Cart.total is wrong", &["shop/cart.py::Cart.total"]),
            ("#add, not its test", &["shop/cart.py::Cart.add"]),
            ("#test_add", &["tests/test_cart.py::test_add"]),
            ("#shop/bill.py::total", &["shop/bill.py::total"]),
            ("@shop/bill.py::total", &["shop/bill.py::total"]),
            ("(@old shop/till.py:1)", &["old shop/till.py::"]),
            ("#old shop/till.py::ring?", &["old shop/till.py::ring"]),
        ] {
            assert_eq!(mentions(text), expected, "{text}");
        }
    }

    #[test]
    fn ambiguous_or_unknown_mention_is_reported() {
        let several = mentions("#total");
        assert_eq!(several, ["2: shop/bill.py::total shop/cart.py::Cart.total"]);
        assert_eq!(
            mentions("#nowhere @gone.py @__init__.py"),
            [
                "#nowhere? no symbol is called `nowhere`",
                "@gone.py? there is no gone.py",
                "@__init__.py? 2 files are called __init__.py: write the whole path",
            ]
        );
    }

    #[test]
    fn misspelt_file_mention_suggests_the_nearest_file() {
        for (text, expected) in [
            (
                "@shop/crat.py",
                "@shop/crat.py? there is no shop/crat.py; is shop/cart.py meant?",
            ),
            (
                "@carts.py:3",
                "@carts.py:3? there is no carts.py; is shop/cart.py meant?",
            ),
            (
                "@lib/cart.py",
                "@lib/cart.py? there is no lib/cart.py; is shop/cart.py meant?",
            ),
            (
                "@shop/convert.py",
                "@shop/convert.py? there is no shop/convert.py",
            ),
            (
                "@shop/cart.pyi",
                "@shop/cart.pyi? there is no shop/cart.pyi; is shop/cart.py meant?",
            ),
            (
                "#Cart.totl",
                "#Cart.totl? no symbol is called `Cart.totl`; nearest: `Cart.total`",
            ),
        ] {
            assert_eq!(mentions(text), [expected]);
        }
    }

    #[test]
    fn decorators_numbers_and_email_addresses_are_not_mentions() {
        let none = mentions("@property @app.route #12 # me@shop/cart.py @org/package a#total");
        assert_eq!(none, [""; 0]);
    }
}
