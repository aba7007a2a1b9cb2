//! Measures how well `locate` finds the code that a change edits, and how well the tests of a
//! change are selected, on the instances of a benchmark. Also writes the rows from which the
//! weights of `locate` are learned.
//!
//! ```sh
//! cargo bench --no-default-features --bench locate -- gold INSTANCES CHECKOUTS > gold.jsonl
//! cargo bench --no-default-features --bench locate -- score INSTANCES CHECKOUTS gold.jsonl CACHE
//! cargo bench --no-default-features --bench locate -- selection INSTANCES CHECKOUTS gold.jsonl CACHE
//! cargo bench --no-default-features --bench locate -- rows INSTANCES CHECKOUTS gold.jsonl CACHE ROWS
//! cargo bench --no-default-features --bench locate -- planted PLANTED PROJECTS CACHE PYTHON
//! python benches/locate/learn.py ROWS HISTORY_ROWS crates/index/src/locate/weights.rs
//! ```
//!
//! `PLANTED` is written by `plant.py`, from the same `PROJECTS` and with the same `PYTHON`.
//! `HISTORY_ROWS` is written by the same commands from the output of `history.py`.
//!
//! `INSTANCES` is a file of JSON lines with `instance_id`, `repo`, `problem_statement` and `patch`;
//! `selection` also needs `test_patch` and `FAIL_TO_PASS`. `CHECKOUTS` contains the tree of each
//! instance before its change, named by its `instance_id`. Indexes are cached in `CACHE`.

#![allow(clippy::unwrap_used)]

mod gold;
mod planted;
mod rows;
mod score;
mod selection;

use std::path::Path;

use serde_json::Value;
use starling_index::Index;
use starling_workspace::{Overlay, Workspace};

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["gold", instances, checkouts] => gold::print(&read(instances), Path::new(checkouts)),
        ["score", instances, checkouts, gold, cache] => {
            score::print(
                &read(instances),
                Path::new(checkouts),
                &read(gold),
                Path::new(cache),
            );
        }
        ["selection", instances, checkouts, gold, cache] => {
            let (checkouts, cache) = (Path::new(checkouts), Path::new(cache));
            selection::print(&read(instances), checkouts, &read(gold), cache);
        }
        ["planted", planted, projects, cache, python] => {
            let (projects, cache) = (Path::new(projects), Path::new(cache));
            planted::print(&read(planted), projects, cache, Path::new(python));
        }
        ["rows", instances, checkouts, gold, cache, out] => {
            let (checkouts, cache) = (Path::new(checkouts), Path::new(cache));
            rows::write(
                &read(instances),
                checkouts,
                &read(gold),
                cache,
                Path::new(out),
            );
        }
        _ => println!("unknown arguments; for the usage, see the top of benches/locate/main.rs"),
    }
}

fn read(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the file can be read");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

/// Returns the value of a string field.
fn string<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().expect("the field is a string")
}

fn strings(value: &Value) -> Vec<&str> {
    let items = value.as_array().expect("the field is a list").iter();
    items.map(|item| item.as_str().expect("a string")).collect()
}

/// Returns the index of a checkout, which is cached in `cache` between runs.
fn index_of(checkout: &Path, cache: &Path) -> Index {
    let workspace = Workspace::open(checkout.to_owned()).expect("the checkout can be opened");
    let index = Index::open(workspace.snapshot(Overlay::new()), cache.to_owned());
    index.warm();
    index
}
