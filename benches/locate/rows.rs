//! Writes the features of `locate`'s candidates in the format that the learning script reads.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use starling_index::Candidate;

use crate::{index_of, string};

/// Writes the features of the candidates of all instances. `files.f32` and `symbols.f32` contain
/// the numbers row by row; `rows.jsonl` names the candidates.
pub fn write(instances: &[Value], checkouts: &Path, gold: &[Value], cache: &Path, out: &Path) {
    std::fs::create_dir_all(out).expect("the directory can be made");
    let create =
        |name: &str| BufWriter::new(File::create(out.join(name)).expect("a file can be made"));
    let (mut files_out, mut symbols_out, mut rows) = (
        create("files.f32"),
        create("symbols.f32"),
        create("rows.jsonl"),
    );
    for instance in instances {
        let id = string(instance, "instance_id");
        let gold = gold
            .iter()
            .find(|gold| string(gold, "instance_id") == id)
            .expect("gold.jsonl has a line for each instance");
        let repo = string(instance, "repo");
        let index = index_of(&checkouts.join(id), cache);
        index.candidates("warm");
        let start = Instant::now();
        let (files, symbols) = index.candidates(string(instance, "problem_statement"));
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("{id} {seconds:.3}");
        put(&mut files_out, &files);
        put(&mut symbols_out, &symbols);
        let line = json!({
            "instance_id": id, "repo": repo, "seconds": seconds,
            "gold_files": gold["files"], "gold_symbols": gold["symbols"],
            "files": paths(&files), "symbols": paths(&symbols),
            "file_features": names(&files), "symbol_features": names(&symbols),
        });
        writeln!(rows, "{line}").expect("the row can be written");
    }
}

fn put(out: &mut impl Write, candidates: &[Candidate]) {
    for (_, value) in candidates.iter().flat_map(|candidate| &candidate.features) {
        out.write_all(&value.to_le_bytes())
            .expect("the row can be written");
    }
}

fn paths(candidates: &[Candidate]) -> Vec<&str> {
    candidates
        .iter()
        .map(|candidate| candidate.path.as_str())
        .collect()
}

fn names(candidates: &[Candidate]) -> Vec<&'static str> {
    let first = candidates
        .first()
        .map(|candidate| candidate.features.iter());
    first.into_iter().flatten().map(|(name, _)| *name).collect()
}
