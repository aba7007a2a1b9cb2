//! Measures how long the index takes to open without a cache, with a cache and after one change,
//! and how long a few queries take.
//!
//! ```sh
//! cargo bench --no-default-features --bench index_speed -- path/to/tree
//! ```

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::time::Instant;

use starling_index::Index;
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Workspace};

const RUNS: usize = 5;
/// Maximum number of lines of the file that is changed. The longest such file is used.
const CHANGED_LINES: usize = 2_800;

fn main() {
    let Some(root) = std::env::args().skip(1).find(|arg| !arg.starts_with("--")) else {
        eprintln!("usage: cargo bench --bench index_speed -- PATH");
        return;
    };
    let root = PathBuf::from(root).canonicalize().expect("the tree exists");
    let workspace = Workspace::open(root).expect("the directory can be opened");
    for _ in 0..RUNS {
        let cache = tempfile::tempdir().expect("a temporary directory can be created");
        let open = || {
            let start = Instant::now();
            let snapshot = workspace.snapshot(Overlay::new());
            let listed = start.elapsed();
            let index = Index::open(snapshot, cache.path().to_owned());
            index.warm();
            (index, listed, start.elapsed())
        };
        let (cold, _, cold_time) = open();
        let report = cold.report();
        drop(cold);
        let (warm, listed, warm_time) = open();
        println!(
            "files {} symbols {} MB {:.1} | cold {:.0} ms, warm {:.0} ms (listing {:.0}), parsed {} | {}",
            report.files,
            report.symbols,
            report.bytes as f64 / 1e6,
            millis(cold_time),
            millis(warm_time),
            millis(listed),
            warm.report().parsed,
            questions(&warm),
        );
    }
    println!("peak {:.0} MB", peak_bytes() as f64 / 1e6);
}

fn questions(index: &Index) -> String {
    let lines = |file: &FilePath| {
        let text = index.snapshot().read(file);
        text.map_or(0, |text| text.lines().count())
    };
    let largest = index
        .snapshot()
        .files()
        .iter()
        .filter(|file| file.as_str().ends_with(".py"))
        .filter(|file| lines(file) <= CHANGED_LINES)
        .max_by_key(|file| lines(file))
        .expect("a Python file")
        .clone();
    let text = index
        .snapshot()
        .read(&largest)
        .expect("the snapshot has the text of the file");
    let changed: std::sync::Arc<str> = format!("{text}\nx = 1\n").into();
    let after = index.after(index.snapshot().with(largest.clone(), Some(changed)));
    let change = timed(|| after.warm());
    let task = "QuerySet.filter() with a Q object and an F expression raises FieldError: Cannot resolve keyword";
    let locate = timed(|| drop(index.locate(task, 20)));
    let search = timed(|| drop(index.search("def get_queryset", 20)));
    let definitions = timed(|| drop(index.definitions("QuerySet")));
    let class = index.definitions("QuerySet");
    let class = class.iter().find(|class| !class.symbol.name.contains('.'));
    let class = class.map_or("QuerySet".to_owned(), |class| class.symbol.to_string());
    let mut uses = 0;
    let references = timed(|| uses = index.references(&class, 100_000).found.len());
    format!(
        "one change of {} lines {change}, locate {locate}, search {search}, definitions {definitions}, {uses} references of {class} {references}",
        text.lines().count()
    )
}

fn timed(work: impl FnOnce()) -> String {
    let start = Instant::now();
    work();
    format!("{:.1} ms", millis(start.elapsed()))
}

fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns the peak memory of this process in bytes, or 0 if it is unknown.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
