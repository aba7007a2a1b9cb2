//! Measures the cost of a shadow (a copy of the tree in which tests run) and its sandbox: the time
//! for a command that does nothing, including the creation and removal of the shadow, compared with
//! the same command alone.
//!
//! ```sh
//! STARLING_BENCH_TREE=path/to/django cargo bench --no-default-features --bench shadow
//! ```
//!
//! The tree is only read. The shadow changes the text of one of its files.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use starling_workspace::{FileContents, Overlay, Workspace};

use starling_sandbox::{Policy, ShadowCommand, Shadows, take_part};

const TIMES: usize = 30;

fn main() {
    take_part();
    let tree = std::env::var_os("STARLING_BENCH_TREE").expect("STARLING_BENCH_TREE names a tree");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("the Tokio runtime starts");
    runtime.block_on(measure(tree.into()));
}

async fn measure(tree: PathBuf) {
    let workspace = Workspace::open(tree).expect("the workspace can be opened");
    let snapshot = workspace.snapshot(Overlay::new());
    let file = snapshot.files().first().expect("a file").clone();
    let overlay = FileContents::from([(file, Some("changed".as_bytes().into()))]);
    let cache = tempfile::tempdir_in("target").expect("a temporary directory can be created");
    let cache = cache.path().canonicalize().expect("the directory exists");
    let shadows = Shadows::open(&cache, Policy::default()).await;
    let shadows = shadows.expect("shadow directories can be created");
    println!(
        "{:?} in {:?}: {}",
        shadows.kind(),
        shadows.confinement(),
        shadows.reason()
    );
    println!("{} files", snapshot.files().len());
    let command = ShadowCommand {
        line: "true".into(),
        environment: std::env::vars_os().collect(),
        keep: Vec::new(),
        deadline: Duration::from_secs(60),
        output_cap: 4096,
    };
    let mut alone = Vec::new();
    let mut inside = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        Command::new("/bin/sh")
            .args(["-c", "true"])
            .status()
            .expect("the shell starts");
        alone.push(start.elapsed());
        let start = Instant::now();
        let done = shadows.run(workspace.root(), &overlay, &command).await;
        done.expect("the command runs");
        inside.push(start.elapsed());
    }
    say("alone", alone);
    say("in a shadow", inside);
}

fn say(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let of = |place: usize| times[place].as_secs_f64() * 1000.0;
    println!(
        "{what:<12} best {:>6.1} ms, median {:>6.1} ms, worst {:>6.1} ms",
        of(0),
        of(times.len() / 2),
        of(times.len() - 1)
    );
}
