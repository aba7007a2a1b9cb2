//! Finds tests by the other names that are defined in a symbol's module. Tests of a module often
//! mention only these names.

use std::collections::HashMap;

use super::super::code::{Code, FileId, SymbolNumber, base_name};
use super::super::words::Term;
use starling_syntax::{FilePath, SymbolPath};

/// Maximum number of names of a module to search for.
const NAMES: usize = 60;
/// A name is ignored if more than this share of the test files mention it.
const COMMON: f64 = 0.2;

/// How much each test file and each test mentions the other names of a symbol's module. Rare names
/// weigh more. The values are from 0 to 1.
#[derive(Default)]
pub(super) struct ModuleNameMentions {
    files: HashMap<FileId, f64>,
    tests: HashMap<SymbolNumber, f64>,
}

impl ModuleNameMentions {
    /// Computes the mentions of the names that a file defines, except the names of the `touched`
    /// symbols.
    pub(super) fn of(code: &Code, file: &FilePath, touched: &[SymbolPath]) -> Self {
        let mut beside = ModuleNameMentions::default();
        let test_files = code.files().filter(|file| code.is_test(*file)).count() as f64;
        for name in names(code, file, touched) {
            let mut said = code.mentioning(name);
            said.retain(|file| code.is_test(*file));
            let share = said.len() as f64 / test_files;
            if said.is_empty() || share > COMMON {
                continue;
            }
            let rarity = -share.ln();
            for file in said {
                *beside.files.entry(file).or_default() += rarity;
            }
            let in_test = |number| code.file_of(number).is_some_and(|file| code.is_test(file));
            let holders = code.postings(Term::of(name)).map(|(number, _)| number);
            for number in holders.filter(|number| in_test(*number)) {
                *beside.tests.entry(number).or_default() += rarity;
            }
        }
        of_the_most(&mut beside.files);
        of_the_most(&mut beside.tests);
        beside
    }

    pub(super) fn of_file(&self, file: FileId) -> f64 {
        self.files.get(&file).copied().unwrap_or_default()
    }

    pub(super) fn of_test(&self, test: SymbolNumber) -> f64 {
        self.tests.get(&test).copied().unwrap_or_default()
    }
}

/// Returns the top-level names that a file defines, except the names of the `touched` symbols.
fn names<'c>(code: &'c Code, file: &FilePath, touched: &[SymbolPath]) -> Vec<&'c str> {
    let Some(number) = code.find(file) else {
        return Vec::new();
    };
    let own = |name: &str| {
        let touched = touched.iter().filter(|symbol| symbol.file == *file);
        let mut tops = touched.map(|symbol| symbol.name.split(['.', '#']).next());
        tops.any(|top| top == Some(name))
    };
    let top = code
        .symbols_of(number)
        .map(|number| code.symbol(number).name);
    let mut names: Vec<&str> = top
        .filter(|name| !name.contains('.'))
        .map(base_name)
        .filter(|name| name.len() > 2 && !own(name))
        .collect();
    names.dedup();
    names.truncate(NAMES);
    names
}

fn of_the_most<K>(scores: &mut HashMap<K, f64>) {
    let most = scores.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    scores.values_mut().for_each(|score| *score /= most);
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::code_of;
    use super::*;

    #[test]
    fn test_that_mentions_rare_other_names_of_the_module_scores_higher() {
        let mut texts = vec![
            (
                "m.py".to_owned(),
                "def load(): pass\nclass Loader: pass\ndef ab(): pass\n".to_owned(),
            ),
            (
                "tests/test_a.py".to_owned(),
                "def test_it(): Loader()\ndef test_other(): pass\n".to_owned(),
            ),
        ];
        let more = (0..9).map(|at| {
            (
                format!("tests/test_{at}.py"),
                "def test_x(): load()\n".to_owned(),
            )
        });
        texts.extend(more);
        let code = code_of(
            texts
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_str())),
        );
        let touched: SymbolPath = "m.py::load".parse().unwrap();
        let beside = ModuleNameMentions::of(&code, &touched.file, std::slice::from_ref(&touched));
        let file = code.find(&FilePath::new("tests/test_a.py")).unwrap();
        assert_eq!(beside.of_file(file), 1.0);
        let named =
            |name: &str| code.number_of(&format!("tests/test_a.py::{name}").parse().unwrap());
        assert_eq!(beside.of_test(named("test_it").unwrap()), 1.0);
        assert_eq!(beside.of_test(named("test_other").unwrap()), 0.0);
        let none = ModuleNameMentions::of(&code, &FilePath::new("gone.py"), &[]);
        assert_eq!(none.of_file(file), 0.0);
    }
}
