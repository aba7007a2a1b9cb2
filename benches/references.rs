//! The references of symbols in a folder, as lines of JSON: what `benches/references/measure.py`
//! compares with a language server.
//!
//! ```sh
//! echo "pkg/a.py::A.f" | cargo bench --no-default-features --bench references -- path/to/repository
//! ```
//!
//! With no symbol on standard input it only tells how long reading takes.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use starling::index::names::Names;
use starling::index::resolve::{Memory, Resolver, Use};
use starling::syntax::{Language, SymbolPath, SymbolTree};
use starling::workspace::{Overlay, Workspace};

fn main() {
    let folder = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let Some(folder) = folder else {
        eprintln!("which folder? references FOLDER < symbols");
        return;
    };
    let memory = read(PathBuf::from(folder));
    let mut input = String::new();
    std::io::stdin()
        .read_to_string(&mut input)
        .expect("symbols on standard input");
    for line in input.lines().filter(|line| !line.trim().is_empty()) {
        let symbol: SymbolPath = line.parse().expect("a symbol path");
        let start = Instant::now();
        let found = Resolver::new(&memory).references(&symbol);
        let seconds = start.elapsed().as_secs_f64();
        let found = found.unwrap_or_default();
        let uses: Vec<_> = found.uses.iter().map(told).collect();
        println!(
            "{}",
            json!({"symbol": line, "seconds": seconds, "complete": found.complete, "uses": uses})
        );
    }
}

fn told(found: &Use) -> serde_json::Value {
    json!({
        "file": found.file.as_str(),
        "line": found.line,
        "column": found.column,
        "role": format!("{:?}", found.role),
        "certainty": format!("{:?}", found.certainty),
    })
}

fn read(folder: PathBuf) -> Memory {
    let workspace = Workspace::open(folder).expect("a folder");
    let snapshot = workspace.snapshot(Overlay::new());
    let mut memory = Memory::default();
    let [mut parsing, mut reading, mut decoding] = [Duration::ZERO; 3];
    let (mut files, mut bytes, mut occurrences, mut stored) = (0, 0, 0, 0);
    for file in snapshot.files() {
        let Some(text) = snapshot
            .read(file)
            .ok()
            .filter(|_| Language::of(file) == Language::Python)
        else {
            continue;
        };
        let start = Instant::now();
        let tree = SymbolTree::parse(file.clone(), Arc::clone(&text));
        parsing += start.elapsed();
        let start = Instant::now();
        let names = Names::read(&tree);
        reading += start.elapsed();
        files += 1;
        bytes += text.len();
        occurrences += names.occurrences().len();
        let blob = postcard::to_allocvec(&names).expect("names are plain data");
        stored += blob.len();
        let start = Instant::now();
        let back: Names = postcard::from_bytes(&blob).expect("what was stored");
        decoding += start.elapsed();
        assert_eq!(back.occurrences().len(), names.occurrences().len());
        memory.add(&tree);
    }
    println!(
        "{}",
        json!({
            "files": files,
            "bytes": bytes,
            "occurrences": occurrences,
            "stored_bytes": stored,
            "parse_seconds": parsing.as_secs_f64(),
            "names_seconds": reading.as_secs_f64(),
            "decoding_seconds": decoding.as_secs_f64(),
        })
    );
    memory
}
