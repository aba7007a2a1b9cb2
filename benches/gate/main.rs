//! Measures which changes the gate (the checks that a proposal must pass) stops. Known good changes
//! must pass, and broken variants of them must be stopped. The checks are diagnostics, optionally
//! together with the selected tests.
//!
//! ```sh
//! cargo bench --no-default-features --features bench --bench gate -- INSTANCES CHECKOUTS SERVER [COUNT]
//! cargo bench --no-default-features --features bench --bench gate -- INSTANCES CHECKOUTS SERVER COUNT ENVIRONMENTS CACHE ROWS
//! ```
//!
//! `INSTANCES` is a file of JSON lines in the format of SWE-bench. `CHECKOUTS` contains the tree of
//! each instance before its change, named by its `instance_id`. `SERVER` is looked up on `PATH`.
//! The trees are not modified.
//!
//! With `ENVIRONMENTS` (see docs/swebench.md; they are built in `CACHE`), the benchmark takes COUNT
//! instances that have an environment, in a fixed arbitrary order, and the same number of broken
//! variants. Each kind of variant occurs equally often, and each variant comes from another
//! instance. A dropped return or an inverted condition is in a function that the change touches;
//! the first variant for which the hidden tests fail is used. If a good change is stopped only by
//! tests that pass in their version after the change, these tests are reported as outdated, because
//! they test the old behaviour. Results are saved in `ROWS`, and an interrupted measurement is
//! resumed from there.

#![allow(clippy::unwrap_used)]

mod broken;
mod patch;
mod project;
mod rows;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use starling_bench::{Environment, read_environments};
use starling_sandbox::{Policy, Shadows, take_part};
use starling_syntax::{FilePath, SymbolTree};
use starling_workspace::Overlay;

use broken::DefectKind;
use patch::PatchedFile;
use project::{Project, SharedSettings, with};
use rows::{CheckResult, GOOD, Row, Rows};

/// Maximum number of variants to try until the hidden tests fail.
const PLACES: usize = 6;
/// Seed for the order of the instances.
const SEED: u64 = 4;

fn main() {
    take_part();
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let [instances, checkouts, server, rest @ ..] = arguments.as_slice() else {
        println!("usage: gate INSTANCES CHECKOUTS SERVER [COUNT [ENVIRONMENTS CACHE ROWS]]");
        return;
    };
    let count = rest
        .first()
        .map_or(60, |count| count.parse().expect("the argument is a number"));
    let text = std::fs::read_to_string(instances).expect("the file of instances can be read");
    let all: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let runtime = tokio::runtime::Runtime::new().expect("the Tokio runtime starts");
    let checkouts = Path::new(checkouts);
    let rows = match &rest[rest.len().min(1)..] {
        [environments, cache, rows] => {
            let environments =
                read_environments(Path::new(environments)).expect("the environments can be read");
            let rows = Rows::open(Some(Path::new(rows)));
            runtime.block_on(async {
                let shared = shared(server, Path::new(cache)).await;
                with_tests(&shared, all, checkouts, &environments, count, rows).await
            })
        }
        _ => runtime.block_on(async {
            let cache = std::env::temp_dir().join("starling-bench-gate");
            let shared = shared(server, &cache).await;
            by_diagnostics(&shared, &all, checkouts, count).await
        }),
    };
    rows.print();
}

async fn shared(server: &str, cache: &Path) -> SharedSettings {
    std::fs::create_dir_all(cache).expect("the cache directory can be created");
    let cache: PathBuf = cache.canonicalize().expect("the directory exists");
    let shadows = Shadows::open(&cache, Policy::default()).await;
    SharedSettings {
        server: server.to_owned(),
        shadows: shadows.expect("shadow directories can be created"),
        cache,
    }
}

/// Checks the good change and every kind of variant that diagnostics can detect, for `count`
/// instances. These are spread over the whole list, because instances of one repository are
/// adjacent.
async fn by_diagnostics(
    shared: &SharedSettings,
    all: &[Value],
    checkouts: &Path,
    count: usize,
) -> Rows {
    let mut rows = Rows::open(None);
    let step = (all.len() / count).max(1);
    for instance in all.iter().step_by(step).take(count) {
        let id = string(instance, "instance_id");
        let root = checkouts.join(id);
        let Some(change) = patch::apply_one(string(instance, "patch"), &root) else {
            println!("{id}: its patch does not change exactly one Python file");
            continue;
        };
        let project = Project::open(shared, &root, None).await;
        let good = project
            .checker
            .check_text(&change.file, Arc::clone(&change.new))
            .await;
        rows.add(Row::of(id, GOOD, &good));
        for kind in DefectKind::ALL
            .into_iter()
            .filter(|kind| kind.is_visible_to_static_checks())
        {
            for text in broken::variants(&change.file, &change.old, &change.new, kind) {
                let evidence = project.checker.check_text(&change.file, text.into()).await;
                rows.add(Row::of(id, kind.words(), &evidence));
            }
        }
    }
    rows
}

async fn with_tests(
    shared: &SharedSettings,
    mut all: Vec<Value>,
    checkouts: &Path,
    environments: &BTreeMap<String, Environment>,
    count: usize,
    mut rows: Rows,
) -> Rows {
    all.retain(|one| environments.contains_key(string(one, "instance_id")));
    let place = |one: &Value| {
        xxhash_rust::xxh3::xxh3_64_with_seed(string(one, "instance_id").as_bytes(), SEED)
    };
    all.sort_by_key(place);
    let each = count.div_ceil(DefectKind::ALL.len());
    for (at, instance) in all.iter().enumerate() {
        let id = string(instance, "instance_id");
        let root = checkouts.join(id);
        let is_full = |kind: &DefectKind| rows.count(kind.words()) >= each;
        let wants_good = rows.count(GOOD) < count && !rows.has(id, true);
        let wants_broken = !DefectKind::ALL.iter().all(is_full) && !rows.has(id, false);
        let change = patch::apply_one(string(instance, "patch"), &root);
        let (Some(change), true) = (change, wants_good || wants_broken) else {
            continue;
        };
        let project = Project::open(shared, &root, environments.get(id)).await;
        if wants_good {
            let text = Arc::clone(&change.new);
            let evidence = project.checker.check_text(&change.file, text).await;
            let mut row = Row::of(id, GOOD, &evidence);
            let broken = evidence.tests.broken();
            if let (CheckResult::Stops, Some((_, good))) =
                (row.tests, hidden(instance, &root, &change))
                && project.are_outdated(broken, &good).await
            {
                row.tests = CheckResult::Outdated;
            }
            rows.add(row);
        }
        let mut kinds = DefectKind::ALL;
        kinds.rotate_left(at % DefectKind::ALL.len());
        for kind in kinds.into_iter().filter(|_| wants_broken) {
            if rows.count(kind.words()) < each
                && let Some(text) = variant(&project, instance, &root, &change, kind).await
            {
                let evidence = project.checker.check_text(&change.file, text).await;
                rows.add(Row::of(id, kind.words(), &evidence));
                break;
            }
        }
    }
    rows
}

/// Returns a variant with this kind of defect, for which the hidden tests fail if only tests can
/// detect the defect.
async fn variant(
    project: &Project<'_>,
    instance: &Value,
    root: &Path,
    change: &PatchedFile,
    kind: DefectKind,
) -> Option<Arc<str>> {
    let mut texts = broken::variants(&change.file, &change.old, &change.new, kind).into_iter();
    if kind.is_visible_to_static_checks() {
        return texts.next().map(Arc::from);
    }
    let (hidden, good) = hidden(instance, root, change)?;
    for text in texts.take(PLACES).map(Arc::from) {
        let broken = with(&hidden, &change.file, &text);
        if project.is_broken(&good, &broken).await {
            return Some(text);
        }
    }
    None
}

/// Returns the texts of the hidden tests, and these texts together with the good change.
fn hidden(instance: &Value, root: &Path, change: &PatchedFile) -> Option<(Overlay, Overlay)> {
    let tests = patch::apply(string(instance, "test_patch"), root)?;
    let texts = tests.into_iter().map(|one| (one.file, Some(one.new)));
    let hidden: Overlay = texts.collect();
    let good = with(&hidden, &change.file, &change.new);
    Some((hidden, good))
}

fn string<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the numbers of the lines in the new text that the old text does not contain, counted
/// from 0.
fn added(old: &str, new: &str) -> Vec<usize> {
    let known: std::collections::HashSet<&str> = old.lines().collect();
    let lines = new.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !known.contains(line))
        .map(|(at, _)| at)
        .collect()
}

fn tree(file: &FilePath, text: &str) -> SymbolTree {
    SymbolTree::parse(file.clone(), text.into())
}
