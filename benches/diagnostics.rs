//! Measures how long diagnostics of one changed file take, for each installed language server.
//!
//! ```sh
//! STARLING_BENCH_TREE=path/to/django STARLING_BENCH_SERVERS=ty,basedpyright \
//!     cargo bench --no-default-features --bench diagnostics
//! ```
//!
//! The requests follow those of a run: the file is checked when its agent wakes, then several
//! proposals change it one after the other. The tree is not modified. Servers are looked up on
//! `PATH`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use starling_core::{Diagnostics, Effort, LanguageService, TextRequest};
use starling_lang::{OwnPrograms, ProgramSearch, ServerPool, ServerSelection, known_servers};
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Snapshot, Workspace};

/// Number of files that are changed, and number of changes to each file.
const FILES: usize = 12;
const CHANGES: usize = 5;

fn main() {
    let Some(root) = std::env::var_os("STARLING_BENCH_TREE").map(PathBuf::from) else {
        println!("set STARLING_BENCH_TREE to a checkout, for example of Django");
        return;
    };
    let servers = match std::env::var("STARLING_BENCH_SERVERS") {
        Ok(names) => names.split(',').map(str::to_owned).collect(),
        Err(_) => known_servers(),
    };
    let root = root.canonicalize().expect("the tree exists");
    let snapshot = Workspace::open(root)
        .expect("the directory can be opened")
        .snapshot(Overlay::new());
    let files = sample(&snapshot);
    println!(
        "{:<24} {:>9} {:>12} {:>12} {:>10} {:>10} {:>8}",
        "server", "first ms", "file ms", "gate ms", "worst ms", "unknown", "changes"
    );
    let runtime = tokio::runtime::Runtime::new().expect("the Tokio runtime starts");
    for server in servers {
        runtime.block_on(measure(&server, &snapshot, &files));
    }
    println!("first: from nothing to the first answer; file: the first look at each further file");
    println!("gate: after each change, median and worst");
}

/// Returns files of medium length, spread over the tree.
fn sample(snapshot: &Snapshot) -> Vec<(FilePath, Arc<str>)> {
    let is_code =
        |file: &&FilePath| file.as_str().ends_with(".py") && !file.as_str().contains("test");
    let texts = snapshot.files().iter().filter(is_code).filter_map(|file| {
        let text = snapshot.read(file).ok()?;
        let lines = text.lines().count();
        (200..1500).contains(&lines).then(|| (file.clone(), text))
    });
    let all: Vec<_> = texts.collect();
    let step = (all.len() / FILES).max(1);
    all.into_iter().step_by(step).take(FILES).collect()
}

async fn measure(server: &str, snapshot: &Snapshot, files: &[(FilePath, Arc<str>)]) {
    let cache = tempfile::tempdir().expect("a temporary directory can be created");
    let places = ProgramSearch::of_process(snapshot.root().to_owned(), OwnPrograms::Refused);
    if let Err(why) = places.find(server) {
        println!("{server:<24} {why}");
        return;
    }
    let wanted = ServerSelection {
        fast: vec![server.to_owned()],
        thorough: Vec::new(),
        stops: Default::default(),
        deadline: Duration::from_secs(60),
    };
    let pool = ServerPool::new(cache.path().to_owned());
    let service = pool.service(snapshot, &places, &wanted);
    let mut tool = server.to_owned();
    let (mut looks, mut gates, mut unknown) = (Vec::new(), Vec::new(), 0);
    for (file, text) in files {
        let mut ask = async |text: Arc<str>| {
            let began = Instant::now();
            match service.diagnostics(request(file, text)).await {
                Diagnostics::Known { tool: name, .. } => tool = name,
                Diagnostics::Unknown { .. } => unknown += 1,
            }
            began.elapsed()
        };
        looks.push(ask(Arc::clone(text)).await);
        for change in 0..CHANGES {
            let changed =
                format!("{text}\n\ndef changed_{change}():\n    return missing_{change}\n");
            // The checks of a proposal request diagnostics for the text before the change, which
            // the server already knows, and for the text after the change.
            let before = ask(Arc::clone(text)).await;
            gates.push(before + ask(changed.into()).await);
        }
    }
    let first = looks.remove(0);
    gates.sort();
    looks.sort();
    println!(
        "{tool:<24} {:>9} {:>12} {:>12} {:>10} {unknown:>10} {:>8}",
        first.as_millis(),
        looks[looks.len() / 2].as_millis(),
        gates[gates.len() / 2].as_millis(),
        gates[gates.len() - 1].as_millis(),
        gates.len(),
    );
}

fn request(file: &FilePath, text: Arc<str>) -> TextRequest {
    TextRequest {
        file: file.clone(),
        text,
        overlay: Vec::new(),
        effort: Effort::Fast,
        deadline: Duration::from_secs(60),
    }
}
