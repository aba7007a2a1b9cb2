//! Ranks files by how much the rest of the code base refers to them, with a variant of PageRank:
//! rank flows from each file to the files that define the names it mentions.

use std::collections::{HashMap, HashSet};

use super::super::code::{Code, FileId, SymbolNumber, base_name};
use super::RankedFile;

/// Maximum number of definitions of a name. If there are more, it is unclear which one a mention
/// means.
const MOST_DEFINITIONS: usize = 8;
/// Weight of a mention in a file that does not mention the module of the definition.
const NOT_IMPORTED: f64 = 0.03;
const PRIVATE: f64 = 0.3;
/// Share of a file's rank that flows to other files.
const DAMPING: f64 = 0.85;
const ROUNDS: usize = 20;
const SHORTEST: usize = 3;

/// A definition that a name can refer to.
#[derive(Debug, Clone, Copy)]
struct MentionTarget {
    file: FileId,
    symbol: SymbolNumber,
}

/// The share of a file's references that go to one target.
#[derive(Debug)]
struct Mention {
    from: FileId,
    target: MentionTarget,
    weight: f64,
}

/// Returns all files that define symbols outside of tests, ordered by rank.
pub(super) fn central(code: &Code) -> Vec<RankedFile> {
    let mentions = mentions(code);
    let ranks = ranks(code.files().len(), &mentions);
    let rank = |file: FileId| ranks[file.0 as usize];
    let mut worth: HashMap<SymbolNumber, f64> = HashMap::new();
    for mention in &mentions {
        *worth.entry(mention.target.symbol).or_default() += rank(mention.from) * mention.weight;
    }
    let worth = |symbol: &SymbolNumber| worth.get(symbol).copied().unwrap_or_default();
    let mut ranked: Vec<RankedFile> = Vec::new();
    for file in code.files().filter(|file| !code.is_test(*file)) {
        let mut symbols: Vec<SymbolNumber> = code.symbols_of(file).skip(1).collect();
        symbols.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        if !symbols.is_empty() {
            let score = rank(file);
            ranked.push(RankedFile {
                file,
                score,
                symbols,
            });
        }
    }
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranked
}

/// Returns the references of each file to other files. The weights of a file add up to 1.
fn mentions(code: &Code) -> Vec<Mention> {
    let mut mentions = Vec::new();
    let mut modules: HashMap<&str, Vec<FileId>> = HashMap::new();
    for (name, targets) in targets(code) {
        let from = code.mentioning(name);
        let private = if name.starts_with('_') { PRIVATE } else { 1.0 };
        for target in &targets {
            let stem = stem(code.path(target.file).as_str());
            let importers = modules.entry(stem).or_insert_with(|| code.mentioning(stem));
            for from in from.iter().filter(|from| **from != target.file) {
                let imported = importers.binary_search(from).is_ok();
                let weight =
                    private * if imported { 1.0 } else { NOT_IMPORTED } / targets.len() as f64;
                mentions.push(Mention {
                    from: *from,
                    target: *target,
                    weight,
                });
            }
        }
    }
    // The mentions are sorted because floating-point sums depend on their order.
    mentions.sort_unstable_by_key(|mention| (mention.from, mention.target.symbol));
    for of_file in mentions.chunk_by_mut(|a, b| a.from == b.from) {
        let total: f64 = of_file.iter().map(|mention| mention.weight).sum();
        of_file
            .iter_mut()
            .for_each(|mention| mention.weight /= total);
    }
    mentions
}

/// Returns the definitions outside of tests by name. Leaves out short names, special names, and
/// names with too many definitions.
fn targets(code: &Code) -> HashMap<&str, Vec<MentionTarget>> {
    let mut targets: HashMap<&str, Vec<MentionTarget>> = HashMap::new();
    for file in code.files().filter(|file| !code.is_test(*file)) {
        for symbol in code.symbols_of(file).skip(1) {
            let name = base_name(code.symbol(symbol).name);
            if name.len() >= SHORTEST && !name.starts_with("__") {
                targets
                    .entry(name)
                    .or_default()
                    .push(MentionTarget { file, symbol });
            }
        }
    }
    // Names of directories occur in many imports, so they would gain too many references.
    let folders = code
        .files()
        .flat_map(|file| code.path(file).directory().split('/'));
    let folders: HashSet<&str> = folders.collect();
    targets.retain(|name, targets| targets.len() <= MOST_DEFINITIONS && !folders.contains(name));
    targets
}

/// Returns the last part of a module's name: `query` for `db/query.py`, `db` for `db/__init__.py`.
fn stem(path: &str) -> &str {
    let path = path.strip_suffix(".py").unwrap_or(path);
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the rank of each file. All files start with the same rank. In each round, every file
/// gives a share of its rank to the files that it refers to.
fn ranks(files: usize, mentions: &[Mention]) -> Vec<f64> {
    let even = 1.0 / files.max(1) as f64;
    let mut ranks = vec![even; files];
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; files];
        for mention in mentions {
            let passed = DAMPING * ranks[mention.from.0 as usize] * mention.weight;
            next[mention.target.file.0 as usize] += passed;
        }
        // The rank that no file received is distributed evenly.
        let rest = (1.0 - next.iter().sum::<f64>()) * even;
        next.iter_mut().for_each(|rank| *rank += rest);
        ranks = next;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::code_of;
    use super::*;

    fn order(texts: &[(&str, &str)]) -> Vec<String> {
        let code = code_of(texts.iter().copied());
        let show = |ranked: &RankedFile| {
            let names = ranked
                .symbols
                .iter()
                .map(|number| code.symbol(*number).name);
            format!(
                "{}: {}",
                code.path(ranked.file),
                names.collect::<Vec<_>>().join(" ")
            )
        };
        central(&code).iter().map(show).collect()
    }

    #[test]
    fn most_referenced_definition_is_ranked_first() {
        let order = order(&[
            (
                "app.py",
                "from base import connect, close\ndef main(): connect(); close()\n",
            ),
            ("base.py", "def close(): pass\ndef connect(): pass\n"),
            (
                "view.py",
                "from base import connect\ndef view(): connect()\n",
            ),
            (
                "tests/test_app.py",
                "from app import main\ndef test_main(): main()\n",
            ),
        ]);
        assert_eq!(order[0], "base.py: connect close");
        // Definitions in tests do not count, but references from tests do.
        assert_eq!(order[1..], ["app.py: main", "view.py: view"]);
    }

    #[test]
    fn file_used_by_an_often_used_file_is_ranked_higher() {
        let order = order(&[
            ("core.py", "from deep import root\ndef core(): root()\n"),
            ("deep.py", "def root(): pass\n"),
            ("one.py", "from core import core\nfrom side import lone\n"),
            ("side.py", "def lone(): pass\n"),
            ("two.py", "from core import core\n"),
        ]);
        let place = |file: &str| {
            order
                .iter()
                .position(|line| line.starts_with(file))
                .unwrap()
        };
        assert!(place("deep.py") < place("side.py") && place("core.py") < place("side.py"));
    }

    #[test]
    fn reference_to_an_ambiguous_name_counts_for_the_imported_definition() {
        let order = order(&[
            ("alpha.py", "def load(): pass\n"),
            ("beta.py", "def load(): pass\n"),
            ("user.py", "from beta import load\nload()\n"),
        ]);
        assert_eq!(order[0], "beta.py: load");
    }

    #[test]
    fn name_with_too_many_definitions_is_ignored() {
        let text = "def run(): pass\n";
        let names: Vec<String> = (0..=MOST_DEFINITIONS).map(|n| format!("m{n}.py")).collect();
        let mut texts: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), text)).collect();
        texts.push(("user.py", "from m8 import run\nrun()\n"));
        let ranked = central(&code_of(texts));
        assert!(ranked.iter().all(|file| file.score == ranked[0].score));
    }

    #[test]
    fn mention_of_a_directory_does_not_raise_the_rank_of_a_symbol_with_the_same_name() {
        let order = order(&[
            ("kind.py", "class Kind:\n    def app(self): pass\n"),
            ("app/deep.py", "def root(): pass\n"),
            ("one.py", "from app.deep import root\n"),
            ("two.py", "import app.deep\n"),
        ]);
        assert!(order[0].starts_with("app/deep.py"), "{order:?}");
    }

    #[test]
    fn ranks_of_all_files_add_up_to_one() {
        let code = code_of([
            ("a.py", "def one(): two()\n"),
            ("b.py", "def two(): one()\n"),
            ("c.py", "x = 1\n"),
        ]);
        let ranks = ranks(code.files().len(), &mentions(&code));
        assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(central(&Code::default()).is_empty());
    }

    #[test]
    fn stem_of_a_package_is_its_directory_name() {
        assert_eq!(stem("db/query.py"), "query");
        assert_eq!(stem("db/__init__.py"), "db");
        assert_eq!(stem("__init__.py"), "__init__");
    }
}
