//! What diagnostics catch: known good changes, which must pass, and broken variants of them, which
//! must not.
//!
//! ```sh
//! cargo bench --no-default-features --bench gate -- INSTANCES CHECKOUTS SERVER [COUNT]
//! ```
//!
//! `INSTANCES` is a file of JSON lines with `instance_id` and `patch`; `CHECKOUTS` holds the tree of
//! each before its change, by its `instance_id`. `SERVER` is looked for on `PATH`. Nothing is
//! written to the trees.

mod broken;
mod patch;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use starling::lang::{LanguageServers, OwnPrograms, Places, ServerPool, Wanted};
use starling::ports::{
    Diagnostics, Effort, LanguageService, Problem, ProblemKind, Severity, TextRequest,
};
use starling::swarm::{CheckedText, new_problems};
use starling::syntax::{FilePath, SymbolTree};
use starling::workspace::{Overlay, Workspace};

use broken::Kind;

/// How many were tried, stopped and unknown; and shown with some new error.
#[derive(Debug, Default)]
struct Count {
    tried: usize,
    stopped: usize,
    shown: usize,
    unknown: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let [instances, checkouts, server, rest @ ..] = arguments.as_slice() else {
        println!("usage: gate INSTANCES CHECKOUTS SERVER [COUNT]");
        return;
    };
    let count = rest
        .first()
        .map_or(60, |count| count.parse().expect("a number"));
    let text = std::fs::read_to_string(instances).expect("the instances");
    let all: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut table: BTreeMap<String, Count> = BTreeMap::new();
    // Spread over all of them: the same repository stands in rows.
    let step = (all.len() / count).max(1);
    for instance in all.iter().step_by(step).take(count) {
        runtime.block_on(one(instance, Path::new(checkouts), server, &mut table));
    }
    println!(
        "{:<26} {:>6} {:>8} {:>8} {:>8}",
        "", "tried", "stopped", "shown", "unknown"
    );
    for (what, count) in &table {
        let Count {
            tried,
            stopped,
            shown,
            unknown,
        } = count;
        println!("{what:<26} {tried:>6} {stopped:>8} {shown:>8} {unknown:>8}");
    }
}

async fn one(
    instance: &Value,
    checkouts: &Path,
    server: &str,
    table: &mut BTreeMap<String, Count>,
) {
    let string = |key: &str| instance[key].as_str().unwrap_or_default();
    let id = string("instance_id");
    let Some((file, old, good)) = patch::apply(string("patch"), &checkouts.join(id)) else {
        println!("{id}: its patch is not one of one Python file");
        return;
    };
    let file = FilePath::new(file);
    let service = service(server, &checkouts.join(id));
    let mut variants: Vec<(String, Arc<str>)> = vec![("the good change".to_owned(), good.clone())];
    for kind in Kind::ALL {
        if let Some(text) = broken::variant(&file, &old, &good, kind) {
            variants.push((kind.words().to_owned(), text.into()));
        }
    }
    let before = ask(&service, &file, &old).await;
    for (what, text) in variants {
        let after = ask(&service, &file, &text).await;
        let count = table.entry(what.clone()).or_default();
        count.tried += 1;
        let (Some(before), Some(after)) = (&before, &after) else {
            count.unknown += 1;
            continue;
        };
        let new = new_problems(
            &CheckedText::new(&file, Arc::clone(&old), before),
            &CheckedText::new(&file, text, after),
        );
        let stops = new.iter().any(|problem| problem.stops);
        let errors = new
            .iter()
            .any(|problem| problem.severity == Severity::Error);
        count.stopped += usize::from(stops);
        count.shown += usize::from(errors && !stops);
        let is_good = what == "the good change";
        if stops == is_good {
            let said: Vec<&str> = new.iter().map(|problem| problem.message.as_str()).collect();
            println!("{id}: {what}: {}", said.join(" | "));
        }
    }
}

fn service(server: &str, root: &Path) -> LanguageServers {
    let root = root.canonicalize().expect("a checkout");
    let snapshot = Workspace::open(root.clone())
        .expect("a folder")
        .snapshot(Overlay::new());
    let places = Places::of_process(root, OwnPrograms::Refused);
    let wanted = Wanted {
        fast: vec![server.to_owned()],
        thorough: Vec::new(),
        stops: [
            ProblemKind::Syntax,
            ProblemKind::Name,
            ProblemKind::Import,
            ProblemKind::Call,
        ]
        .into(),
        deadline: Duration::from_secs(120),
    };
    let cache = std::env::temp_dir().join("starling-bench-language");
    ServerPool::new(cache).service(&snapshot, &places, &wanted)
}

async fn ask(service: &LanguageServers, file: &FilePath, text: &Arc<str>) -> Option<Vec<Problem>> {
    let request = TextRequest {
        file: file.clone(),
        text: Arc::clone(text),
        overlay: Vec::new(),
        effort: Effort::Fast,
        deadline: Duration::from_secs(120),
    };
    match service.diagnostics(request).await {
        Diagnostics::Known { problems, .. } => Some(problems),
        Diagnostics::Unknown { reason } => {
            println!("unknown: {reason}");
            None
        }
    }
}

/// The lines of a text that another has not, from 0.
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
