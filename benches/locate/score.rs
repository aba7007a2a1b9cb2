//! Measures how often, and at which rank, `locate` finds the code that a change edits.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use starling_index::Index;
use starling_syntax::{FilePath, SymbolPath, SymbolTree};

use crate::{index_of, string, strings};

const RANKS: [usize; 5] = [1, 3, 5, 10, 20];
/// Number of best symbols of which one must be in or near the right file.
const NEAR: usize = 3;
/// Maximum number of definitions of a name. A name with more is too common to connect two files.
const MOST_DEFINITIONS: usize = 8;

/// Number of instances for which the right code is among the first results, for each of [`RANKS`],
/// and the time that was needed.
#[derive(Default)]
struct RecallTally {
    instances: usize,
    files: [usize; RANKS.len()],
    symbols: [usize; RANKS.len()],
    plain: [usize; RANKS.len()],
    near: usize,
    slowest: Duration,
    all: Duration,
}

pub fn print(instances: &[Value], checkouts: &Path, gold: &[Value], cache: &Path) {
    let mut tally = RecallTally::default();
    for instance in instances {
        let id = string(instance, "instance_id");
        let gold = gold.iter().find(|gold| string(gold, "instance_id") == id);
        let gold = gold.expect("gold.jsonl has a line for each instance");
        let index = index_of(&checkouts.join(id), cache);
        tally.add(&index, string(instance, "problem_statement"), gold);
    }
    tally.print();
}

impl RecallTally {
    fn add(&mut self, index: &Index, text: &str, gold: &Value) {
        index.locate("warm", 1);
        let start = Instant::now();
        let symbols = index.locate(text, 20);
        let took = start.elapsed();
        let (files, symbols_of_gold) = (strings(&gold["files"]), strings(&gold["symbols"]));
        let found: Vec<String> = symbols.iter().map(|l| l.symbol.to_string()).collect();
        count(&mut self.symbols, &found, &symbols_of_gold);
        let found: Vec<String> = index
            .locate_files(text, 20)
            .into_iter()
            .map(|l| l.file.to_string())
            .collect();
        count(&mut self.files, &found, &files);
        count(&mut self.plain, &plain(index, text), &files);
        let top = symbols.iter().take(NEAR);
        self.near += usize::from(
            top.into_iter()
                .any(|l| files.iter().any(|file| is_near(index, &l.symbol, file))),
        );
        self.instances += 1;
        self.all += took;
        self.slowest = self.slowest.max(took);
    }

    fn print(&self) {
        let share =
            |hits: usize| format!("{:5.1}", 100.0 * hits as f64 / self.instances.max(1) as f64);
        let line = |hits: [usize; RANKS.len()]| hits.map(share).join(" / ");
        println!("{} instances; recall at {RANKS:?}", self.instances);
        println!("plain BM25, files  {}", line(self.plain));
        println!("locate, files      {}", line(self.files));
        println!("locate, symbols    {}", line(self.symbols));
        println!(
            "right file one of, beside or one hop from the first {NEAR} symbols: {}",
            share(self.near)
        );
        let mean = self.all.as_secs_f64() / self.instances.max(1) as f64;
        println!(
            "seconds for a text: mean {mean:.3}, slowest {:.3}",
            self.slowest.as_secs_f64()
        );
    }
}

fn count(hits: &mut [usize; RANKS.len()], found: &[String], right: &[&str]) {
    let place = found.iter().position(|path| right.contains(&path.as_str()));
    for (hits, rank) in hits.iter_mut().zip(RANKS) {
        *hits += usize::from(place.is_some_and(|place| place < rank));
    }
}

/// Returns the files ranked by BM25 alone, without test files.
fn plain(index: &Index, text: &str) -> Vec<String> {
    let (files, _) = index.candidates(text);
    let value = |name: &str, features: &[(&'static str, f32)]| {
        let found = features.iter().find(|(known, _)| *known == name);
        found.map_or(0.0, |(_, value)| *value)
    };
    let mut ranked: Vec<(f32, String)> = files
        .into_iter()
        .filter(|file| value("test", &file.features) == 0.0)
        .map(|file| (value("words", &file.features), file.path))
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    ranked.into_iter().map(|(_, path)| path).collect()
}

/// Returns whether the file is in the symbol's directory, or is connected with the symbol by one
/// definition or reference with a sufficiently rare name.
fn is_near(index: &Index, symbol: &SymbolPath, file: &str) -> bool {
    let file = FilePath::new(file);
    if symbol.file.directory() == file.directory() {
        return true;
    }
    let tree = |file: &FilePath| {
        let text = index.snapshot().read(file).expect("a file of the snapshot");
        SymbolTree::parse(file.clone(), text)
    };
    let (own, other) = (tree(&symbol.file), tree(&file));
    let leads = |from: &SymbolTree, inside: Option<&SymbolPath>, name: &str| {
        let defined = index.definitions(name).len();
        let rare = name.len() > 3 && (1..=MOST_DEFINITIONS).contains(&defined);
        let uses = starling_syntax::references(from, name);
        rare && uses
            .iter()
            .any(|use_| inside.is_none_or(|path| from.at_line(use_.line).path == *path))
    };
    let mut defined_there = other.symbols().iter().map(|symbol| symbol.path.base_name());
    leads(&other, None, symbol.base_name())
        || defined_there.any(|name| leads(&own, Some(symbol), name))
}
