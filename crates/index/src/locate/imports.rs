//! Finds the files from which a file imports.

use std::collections::BTreeSet;

use super::corpus::Corpus;
use crate::names::{Import, Imported, Names};

/// Maximum number of definitions of an imported name. If there are more, it is unclear which one an
/// import means.
const MOST_DEFINITIONS: usize = 3;

/// Returns for each file how much the importing files import from it. The highest value is 1.
pub(super) fn imported(corpus: Corpus<'_>, importers: &[(u32, f32)]) -> Vec<f32> {
    let mut found = vec![0.0; corpus.files().len()];
    for (file, weight) in importers {
        let imported = imports(corpus, *file);
        let share = weight / (imported.len().max(1) as f32).sqrt();
        for file in imported {
            found[file as usize] += share;
        }
    }
    let most = found.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    found.iter_mut().for_each(|score| *score /= most);
    found
}

/// Returns the files outside of tests from which a file imports. These are the files that define
/// the imported names or, if no file defines them, the files of the imported modules.
fn imports(corpus: Corpus<'_>, file: u32) -> BTreeSet<u32> {
    let Some(names) = corpus.names_of(file) else {
        return BTreeSet::new();
    };
    let module = &corpus.files()[file as usize].module;
    let is_package = corpus.files()[file as usize].path.name() == "__init__.py";
    let mut found = BTreeSet::new();
    for import in names.imports() {
        let parts: Vec<&str> = names.module_parts(import).collect();
        let around = match import.level {
            0 => None,
            level => Some(above(module, level - u32::from(is_package))),
        };
        found.extend(targets(corpus, &names, import, around, module, &parts));
    }
    found.remove(&file);
    found.retain(|file| !corpus.files()[*file as usize].is_test);
    found
}

fn targets(
    corpus: Corpus<'_>,
    names: &Names,
    import: &Import,
    around: Option<&str>,
    own: &str,
    parts: &[&str],
) -> Vec<u32> {
    let at = |parts: &[&str]| match around {
        Some(around) => corpus.module(&joined(around, parts)),
        None => absolute(corpus, own, parts),
    };
    let module = at(parts);
    let Imported::Name(name) = import.what else {
        return module.into_iter().collect();
    };
    let name = names.name(name);
    let below: Vec<&str> = parts.iter().copied().chain([name]).collect();
    if let Some(below) = at(&below) {
        return vec![below];
    }
    let Some(module) = module else {
        return Vec::new();
    };
    // The imported module may be a package that only re-exports the name.
    let defined = corpus.defined(name).iter();
    let defining: BTreeSet<u32> = defined
        .filter(|id| !corpus.is_test(**id))
        .map(|id| corpus.symbol(*id).file)
        .collect();
    if defining.is_empty() || defining.contains(&module) || defining.len() > MOST_DEFINITIONS {
        vec![module]
    } else {
        defining.into_iter().collect()
    }
}

/// Returns the module with a dotted name, relative to the root or to a package around the importing
/// module.
fn absolute(corpus: Corpus<'_>, own: &str, parts: &[&str]) -> Option<u32> {
    let ends = own.match_indices('.').map(|(at, _)| &own[..at]);
    let mut roots = std::iter::once("").chain(ends);
    roots.find_map(|root| corpus.module(&joined(root, parts)))
}

fn joined(around: &str, parts: &[&str]) -> String {
    let around = std::iter::once(around).filter(|around| !around.is_empty());
    let parts: Vec<&str> = around.chain(parts.iter().copied()).collect();
    parts.join(".")
}

/// Returns the package `levels` levels above a module.
fn above(module: &str, levels: u32) -> &str {
    (0..levels).fold(module, |module, _| {
        module.rsplit_once('.').map_or("", |(above, _)| above)
    })
}

#[cfg(test)]
mod tests {
    use super::super::corpus::Table;
    use super::*;
    use crate::testing::{code_of, snapshot_of};

    const FILES: [(&str, &str); 6] = [
        ("lib/shop/__init__.py", "from .tax import rate\n"),
        (
            "lib/shop/cart.py",
            "from . import tax\nfrom shop.sub.deep import *\nimport os\n",
        ),
        (
            "lib/shop/sub/deep.py",
            "from ..cart import Cart\nfrom ...far import x\n",
        ),
        (
            "lib/shop/tax.py",
            "def rate():\n    from tests.test_a import b\n",
        ),
        (
            "lib/shop/user.py",
            "from shop import rate\nfrom shop import missing\n",
        ),
        ("tests/test_a.py", "import shop.cart as cart\n"),
    ];

    #[test]
    fn import_is_attributed_to_the_file_that_defines_the_name() {
        let (code, snapshot) = (code_of(FILES), snapshot_of(&FILES));
        let table = Table::new(&code);
        let corpus = Corpus::new(&code, &table, &snapshot);
        let of = |file| imports(corpus, file).into_iter().collect::<Vec<u32>>();
        assert_eq!(of(0), [3]);
        assert_eq!(of(1), [2, 3]);
        assert_eq!(of(2), [1]);
        // Test files are left out, and an import through a package leads to the file that defines
        // the name.
        assert_eq!(of(3), [0; 0]);
        assert_eq!(of(4), [0, 3]);
        let shares = imported(corpus, &[(4, 1.0), (2, 0.5)]);
        assert_eq!(shares[0], 1.0);
        assert!(shares[1] > 0.0 && shares[1] < shares[3] && shares[5] == 0.0);
        assert!(imported(corpus, &[]).iter().all(|share| *share == 0.0));
    }
}
