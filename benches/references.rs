//! Prints the references of symbols in a directory as lines of JSON, which
//! `benches/references/measure.py` compares with those of a language server. The queries are
//! answered from a stored index that is reopened.
//!
//! ```sh
//! echo "pkg/a.py::A.f" | cargo bench --no-default-features --bench references -- path/to/repository
//! ```

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use starling_index::{Index, Usage};
use starling_workspace::{Overlay, Workspace};

fn main() {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let Some(folder) = folder else {
        eprintln!("usage: references DIRECTORY < symbols (one symbol path for each line)");
        return;
    };
    let cache = tempfile::tempdir().expect("a temporary directory can be created");
    let start = Instant::now();
    let built = open(Path::new(&folder), cache.path()).report();
    let cold = start.elapsed();
    let start = Instant::now();
    let index = open(Path::new(&folder), cache.path());
    let again = index.report();
    let warm = start.elapsed();
    println!(
        "{}",
        json!({
            "files": built.files,
            "bytes": built.bytes,
            "from_cache": again.from_cache,
            "cold_seconds": cold.as_secs_f64(),
            "warm_seconds": warm.as_secs_f64(),
        })
    );
    let mut input = String::new();
    std::io::stdin()
        .read_to_string(&mut input)
        .expect("symbols on standard input");
    for symbol in input.lines().filter(|line| !line.trim().is_empty()) {
        let start = Instant::now();
        let found = index.references(symbol, usize::MAX);
        let seconds = start.elapsed().as_secs_f64();
        let uses: Vec<_> = found.found.iter().map(told).collect();
        println!(
            "{}",
            json!({"symbol": symbol, "seconds": seconds, "complete": found.complete, "uses": uses})
        );
    }
}

fn open(folder: &Path, cache: &Path) -> Index {
    let workspace = Workspace::open(folder.to_owned()).expect("the directory can be opened");
    Index::open(workspace.snapshot(Overlay::new()), cache.to_owned())
}

fn told(found: &Usage) -> serde_json::Value {
    json!({
        "file": found.file.as_str(),
        "line": found.line,
        "column": found.column,
        "certainty": format!("{:?}", found.certainty),
    })
}
