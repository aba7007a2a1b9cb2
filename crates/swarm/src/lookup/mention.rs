//! Files and symbols that a task names outright: `@path/to/file` and `#Symbol`.

use super::Lookup;
use starling_index::is_test_file;
use starling_syntax::{FilePath, Language, SymbolPath};

/// Symbols that one ambiguous mention offers at most.
const AMBIGUOUS_MOST: usize = 5;

/// A mention of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mention {
    /// It names one file (the module body stands for it) or one symbol.
    One(SymbolPath),
    /// Several symbols have this name: the first of them, and how many there are.
    Several {
        name: String,
        symbols: Vec<SymbolPath>,
        count: usize,
    },
    /// No file or symbol has this name: the mention as it is written, and what to write instead.
    Unknown { written: String, why: String },
}

impl Lookup {
    /// The mentions of a text, in its order. `@` names a file, `#` a symbol; either may name a symbol by
    /// its whole path. Words as `@property` and `#12`, which look like mentions only, are left out.
    pub fn mentions_in(&self, text: &str) -> Vec<Mention> {
        let is_outside = |c: char| c.is_whitespace() || "`'\"()[]{}<>,;*".contains(c);
        let mut found: Vec<Mention> = Vec::new();
        for word in self.unusual_paths().words(text, is_outside) {
            let word = word.trim_end_matches(['.', ':', '!', '?']);
            let mention = match (word.strip_prefix('@'), word.strip_prefix('#')) {
                (Some(name), _) => self.file_mention(name),
                (_, Some(name)) => self.symbol_mention(name),
                (None, None) => None,
            };
            found.extend(mention.filter(|mention| !found.contains(mention)));
        }
        found
    }

    fn file_mention(&self, name: &str) -> Option<Mention> {
        if name.contains("::") {
            return self.path_mention('@', name);
        }
        let path = match name.rsplit_once(':') {
            Some((path, line)) if line.parse::<u32>().is_ok() => path,
            Some(_) | None => name,
        };
        let file = self.file_at(path).or_else(|| self.only_file_called(path));
        if let Some(file) = file {
            return Some(Mention::One(SymbolPath::module(file)));
        }
        // `@app.route` and `@scope/package` are no paths of files.
        let is_path = Language::of(&FilePath::new(path)) != Language::Plain;
        is_path.then(|| Mention::Unknown {
            written: format!("@{name}"),
            why: match self
                .files()
                .iter()
                .filter(|file| file.name() == path)
                .count()
            {
                0 => format!("there is no file {path}"),
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
            [] => Mention::Unknown {
                written: format!("#{name}"),
                why: format!("no symbol is called `{name}`"),
            },
            [only] => Mention::One(only.clone()),
            _ => Mention::Several {
                name: name.to_owned(),
                symbols,
                count,
            },
        })
    }

    /// `path/to/file::Symbol` after a mark.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use starling_index::Index;
    use starling_workspace::Workspace;

    /// The mentions of a text in a small shop, each as one line.
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
            (
                "tests/test_cart.py",
                "def add(): pass\ndef test_add(): pass\n",
            ),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, source).unwrap();
        }
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

    #[test]
    fn a_mention_names_a_file_or_a_symbol() {
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
    fn an_ambiguous_or_unknown_mention_is_said() {
        let several = mentions("#total");
        assert_eq!(several, ["2: shop/bill.py::total shop/cart.py::Cart.total"]);
        assert_eq!(
            mentions("#nowhere @gone.py @__init__.py"),
            [
                "#nowhere? no symbol is called `nowhere`",
                "@gone.py? there is no file gone.py",
                "@__init__.py? 2 files are called __init__.py: write the whole path",
            ]
        );
    }

    #[test]
    fn decorators_numbers_and_addresses_are_no_mentions() {
        let none = mentions("@property @app.route #12 # me@shop/cart.py @org/package a#total");
        assert_eq!(none, [""; 0]);
    }
}
