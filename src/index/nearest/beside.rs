//! What is defined beside a symbol: tests of a module say its other names, too, and often only those.

use std::collections::HashMap;

use super::super::code::{Code, FileId, SymbolNumber, base_name};
use super::super::words::Term;
use crate::syntax::SymbolPath;

/// More names of a module than that are not looked for.
const NAMES: usize = 60;
/// A name that more than this share of the tests' files say tells nothing.
const COMMON: f64 = 0.2;

/// How much the rare names of a symbol's module are said, from 0 to 1.
#[derive(Default)]
pub(super) struct Beside {
    files: HashMap<FileId, f64>,
    tests: HashMap<SymbolNumber, f64>,
}

impl Beside {
    pub(super) fn of(code: &Code, symbol: &SymbolPath) -> Self {
        let mut beside = Beside::default();
        let test_files = code.files().filter(|file| code.is_test(*file)).count() as f64;
        for name in names(code, symbol) {
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

/// The names at the top of the symbol's file.
fn names<'c>(code: &'c Code, symbol: &SymbolPath) -> Vec<&'c str> {
    let Some(file) = code.find(&symbol.file) else {
        return Vec::new();
    };
    let own = symbol.name.split(['.', '#']).next().unwrap_or_default();
    let top = code.symbols_of(file).map(|number| code.symbol(number).name);
    let mut names: Vec<&str> = top
        .filter(|name| !name.contains('.'))
        .map(base_name)
        .filter(|name| name.len() > 2 && *name != own)
        .collect();
    names.dedup();
    names.truncate(NAMES);
    names
}

fn of_the_most<K>(scores: &mut HashMap<K, f64>) {
    let most = scores.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    scores.values_mut().for_each(|score| *score /= most);
}
