//! A temporary project whose lines are cited.

use crate::block::Block;
use crate::cite::{Citation, CitationChecker, Files};
use starling_workspace::{Snapshot, Workspace};

const SHOP: &str = "RATE = 2


class Cart:
    \"\"\"Goods.\"\"\"

    def total(self):
        return RATE * self.sum


def pay(cart):
    # The till is open.
    return cart.total()
";

/// Paths that contain unusual characters.
pub const ODD: [&str; 4] = [
    "story kit/line 4/chair.py",
    "50% \"off\"/it's [new].py",
    "c#/ünï `cödé`.py",
    "(old)/sofa + bed",
];

/// A temporary project, with a checker and a snapshot of its files.
pub struct CitationProject {
    _dir: tempfile::TempDir,
    pub checker: CitationChecker,
    pub files: Snapshot,
}

pub fn place() -> CitationProject {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("lib/deep")).unwrap();
    std::fs::write(dir.path().join("lib/shop.py"), SHOP).unwrap();
    std::fs::write(dir.path().join("lib/deep/till.py"), "OPEN = 1\n").unwrap();
    std::fs::write(dir.path().join("Makefile"), "all:\n\ttrue\n").unwrap();
    std::fs::write(dir.path().join("lib/deep/runner"), "OPEN=1\n").unwrap();
    std::fs::write(dir.path().join(".env"), "KEY=1\n").unwrap();
    for odd in ODD {
        std::fs::create_dir_all(dir.path().join(odd).parent().unwrap()).unwrap();
        std::fs::write(dir.path().join(odd), "SEATS = 1\n\n\ndef sit(): pass\n").unwrap();
    }
    std::fs::write(dir.path().join(".flake8"), "[flake8]\n").unwrap();
    let root = dir.path().canonicalize().unwrap();
    let files = Workspace::open(root).unwrap().snapshot(Default::default());
    CitationProject {
        _dir: dir,
        checker: CitationChecker::new(files.clone()),
        files,
    }
}

pub fn check(text: &str) -> Block {
    Block::check(text, &place().checker)
}

pub fn places(text: &str) -> Vec<String> {
    check(text).citations.iter().map(Citation::place).collect()
}

/// A project without files.
pub struct EmptyProject;

impl Files for EmptyProject {
    fn is_file(&self, _: &str) -> bool {
        false
    }

    fn paths_in(&self, _: &str) -> Vec<std::ops::Range<usize>> {
        Vec::new()
    }
}
