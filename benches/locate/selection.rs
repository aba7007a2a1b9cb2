//! Measures how often the nearest tests of a changed symbol include the tests that the change
//! fixes, and how long the selection takes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use starling_index::Index;
use starling_syntax::{FilePath, SymbolPath, SymbolTree};

use crate::{index_of, string, strings};

const SELECTED: usize = 20;
const TIMES: usize = 3;

pub fn print(instances: &[Value], checkouts: &Path, gold: &[Value], cache: &Path) {
    let mut by_repository: BTreeMap<&str, SelectionTally> = BTreeMap::new();
    let mut all = SelectionTally::default();
    for instance in instances {
        let id = string(instance, "instance_id");
        let gold = gold
            .iter()
            .find(|gold| string(gold, "instance_id") == id)
            .expect("gold.jsonl has a line for each instance");
        let checkout = checkouts.join(id);
        let index = index_of(&checkout, cache);
        let (selected, took) = select(&index, &touched(gold));
        let found = judge(&mended(instance, &checkout), &selected);
        println!("{id:<36} {found:?} {:.1} ms", took.as_secs_f64() * 1000.0);
        let of_repository = by_repository.entry(string(instance, "repo")).or_default();
        for tally in [&mut all, of_repository] {
            tally.note(found, took);
        }
    }
    println!(
        "{:<28} {:>4} {:>6} {:>6} {:>6} {:>6} {:>8} {:>8}",
        "repository", "n", "hit", "test", "file", "absent", "ms", "max ms"
    );
    for (name, tally) in by_repository.iter().chain([(&"all", &all)]) {
        tally.print(name);
    }
}

fn touched(gold: &Value) -> Vec<SymbolPath> {
    let symbols = strings(&gold["symbols"]).into_iter();
    let all = symbols.chain(strings(&gold["modules"]));
    all.map(|path| path.parse().expect("a symbol path"))
        .collect()
}

/// Returns the nearest tests, and the shortest time of several attempts.
fn select(index: &Index, touched: &[SymbolPath]) -> (Vec<SymbolPath>, Duration) {
    let mut best = Duration::MAX;
    let mut selected = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        selected = index.nearest_tests(touched, SELECTED);
        best = best.min(start.elapsed());
    }
    (selected, best)
}

/// The tests that a change fixes: their files, and those tests that exist before the change.
#[derive(Debug, Default)]
struct FixedTests {
    files: Vec<FilePath>,
    tests: Vec<SymbolPath>,
}

fn mended(instance: &Value, checkout: &Path) -> FixedTests {
    let mut mended = FixedTests::default();
    let trees = trees(string(instance, "test_patch"), checkout);
    for id in ids(instance) {
        for (file, tree) in &trees {
            let Some(name) = named(&id, file) else {
                continue;
            };
            if !mended.files.contains(file) {
                mended.files.push(file.clone());
            }
            let last = name.rsplit('.').next().unwrap_or(&name);
            let inherited = |symbol: &&starling_syntax::Symbol| {
                symbol.path.name.rsplit('.').next() == Some(last)
            };
            let found = tree
                .find(&name)
                .or_else(|| tree.symbols().iter().find(inherited));
            mended.tests.extend(found.map(|symbol| symbol.path.clone()));
        }
    }
    if mended.files.is_empty() {
        // The ids of these tests are descriptions, which do not name a file.
        mended.files = trees.into_iter().map(|(file, _)| file).collect();
    }
    mended
}

fn ids(instance: &Value) -> Vec<String> {
    let listed = &instance["FAIL_TO_PASS"];
    let parsed: Value = match listed {
        Value::String(text) => serde_json::from_str(text).expect("a list in a string"),
        other => other.clone(),
    };
    strings(&parsed).into_iter().map(str::to_owned).collect()
}

/// Returns the test files that a patch changes, in their state before the patch.
fn trees(patch: &str, checkout: &Path) -> Vec<(FilePath, SymbolTree)> {
    let names = patch
        .lines()
        .filter_map(|line| line.strip_prefix("--- a/"))
        .filter(|name| name.ends_with(".py"));
    names
        .filter_map(|name| {
            let text = std::fs::read_to_string(checkout.join(name)).ok()?;
            let file = FilePath::new(name);
            Some((file.clone(), SymbolTree::parse(file, text.into())))
        })
        .collect()
}

/// Returns the name of a test in a file, or `None` if the test is in another file. Accepts ids of
/// pytest, of Django (`test_x (package.module.Class)`) and of SymPy (`test_x`).
fn named(id: &str, file: &FilePath) -> Option<String> {
    if let Some((path, rest)) = id.split_once("::") {
        let bare = rest.split('[').next().unwrap_or(rest);
        return (path == file.as_str()).then(|| bare.replace("::", "."));
    }
    let Some((test, class)) = id.strip_suffix(')').and_then(|id| id.split_once(" (")) else {
        return (!id.contains(' ')).then(|| id.to_owned());
    };
    let class = class.strip_suffix(&format!(".{test}")).unwrap_or(class);
    let (module, class) = class.rsplit_once('.')?;
    let path = format!("{}.py", module.replace('.', "/"));
    file.as_str()
        .ends_with(&path)
        .then(|| format!("{class}.{test}"))
}

/// The best match between the selected tests and the tests that the change fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SelectionResult {
    /// A fixed test itself.
    Test,
    /// A class or module body that contains a fixed test.
    Holder,
    /// A file of fixed tests, if none of these tests exists before the change.
    File,
    /// A file of fixed tests, but not one of the fixed tests that exist before the change.
    OtherTest,
    Nothing,
    /// The change does not fix any test in a known file.
    Absent,
}

fn judge(mended: &FixedTests, selected: &[SymbolPath]) -> SelectionResult {
    let holds = |entry: &&SymbolPath| {
        mended.tests.iter().any(|test| {
            let inside = test.name.strip_prefix(&entry.name);
            test.file == entry.file
                && (entry.is_module() || inside.is_some_and(|rest| rest.starts_with('.')))
        })
    };
    let in_file = selected
        .iter()
        .any(|entry| mended.files.contains(&entry.file));
    if mended.files.is_empty() {
        SelectionResult::Absent
    } else if selected.iter().any(|entry| mended.tests.contains(entry)) {
        SelectionResult::Test
    } else if selected.iter().any(|entry| holds(&entry)) {
        SelectionResult::Holder
    } else if in_file && mended.tests.is_empty() {
        SelectionResult::File
    } else if in_file {
        SelectionResult::OtherTest
    } else {
        SelectionResult::Nothing
    }
}

/// Numbers of instances by their result, and the time that was needed.
#[derive(Default)]
struct SelectionTally {
    count: usize,
    tests: usize,
    files: usize,
    beside: usize,
    absent: usize,
    sum: Duration,
    max: Duration,
}

impl SelectionTally {
    fn note(&mut self, found: SelectionResult, took: Duration) {
        self.count += 1;
        match found {
            SelectionResult::Test | SelectionResult::Holder => self.tests += 1,
            SelectionResult::File => self.files += 1,
            SelectionResult::OtherTest => self.beside += 1,
            SelectionResult::Absent => self.absent += 1,
            SelectionResult::Nothing => {}
        }
        self.sum += took;
        self.max = self.max.max(took);
    }

    /// Prints shares of all instances. `hit`: a fixed test was selected, or its file if the test
    /// does not exist yet. `test`: a fixed test or its class or module was selected. `file`: any
    /// test in a file of fixed tests was selected.
    fn print(&self, name: &str) {
        let share = |part: usize| format!("{:.0}%", 100.0 * part as f64 / self.count as f64);
        println!(
            "{name:<28} {:>4} {:>6} {:>6} {:>6} {:>6} {:>8.1} {:>8.1}",
            self.count,
            share(self.tests + self.files),
            share(self.tests),
            share(self.tests + self.files + self.beside),
            self.absent,
            self.sum.as_secs_f64() * 1000.0 / self.count as f64,
            self.max.as_secs_f64() * 1000.0,
        );
    }
}
