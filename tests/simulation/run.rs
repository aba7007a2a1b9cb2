//! Runs one simulation: from a seed to the guarantees that it broke.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use starling_core::{ChatModel, Role};
use starling_index::Index;
use starling_swarm::{RoleModels, RunHandle, RunId, RunServices, start};
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Workspace};
use tokio::task::JoinHandle;

use super::checks::{SimulatedLanguageService, SimulatedTests};
use super::choices::Choices;
use super::editor::SimulatedEditor;
use super::judge::Violation;
use super::models::model;
use super::person::{self, AFTERMATH, SimulatedPerson};
use super::restart;
use super::world::World;

/// Maximum duration of a run, on the simulated clock.
const LONGEST: Duration = Duration::from_secs(60 * 24 * 60 * 60);

/// The result of a run.
pub struct Outcome {
    pub violations: Vec<Violation>,
    /// The deviations that happened.
    pub taken: Vec<String>,
    /// The log, with one record per line.
    pub log: String,
}

thread_local! {
    static FOLDER: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Counts the panics of this thread. A simulated run uses only one thread.
fn count_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.with(|panics| panics.set(panics.get() + 1));
            report(info);
        }));
    });
    PANICS.with(|panics| panics.set(0));
}

/// Returns an empty folder for a project, the same for all runs of a thread.
fn empty_folder() -> PathBuf {
    FOLDER.with(|folder| {
        let mut folder = folder.borrow_mut();
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().unwrap());
        let root = folder.path().canonicalize().unwrap().join("project");
        if root.exists() {
            std::fs::remove_dir_all(&root).unwrap();
        }
        std::fs::create_dir(&root).unwrap();
        root
    })
}

/// Runs a seed without the deviations in `dropped`.
pub fn simulate(seed: u64, dropped: &BTreeSet<String>) -> Outcome {
    count_panics();
    let root = empty_folder();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let choices = Choices::new(seed, dropped.clone());
    let world = runtime.block_on(drive(choices, &root));
    drop(runtime);
    let mut violations = world.judge().violations.clone();
    let panics = PANICS.with(Cell::get);
    if panics > 0 {
        violations.push(Violation {
            invariant: "no panic",
            mechanism: "panic".to_owned(),
            text: format!("{panics} panics"),
        });
    }
    let records = world
        .log
        .get()
        .map(|log| log.records(0))
        .unwrap_or_default();
    let lines = records
        .iter()
        .map(|one| serde_json::to_string(one).unwrap() + "\n");
    Outcome {
        violations,
        taken: world.choices.taken(),
        log: lines.collect(),
    }
}

async fn drive(choices: Choices, root: &Path) -> Arc<World> {
    let world = World::new(choices, root);
    let at_first = world.desk().texts(&world.project);
    let handle = begin(&world, root);
    let watcher = tokio::spawn(watch(Arc::clone(&world), handle.clone()));
    let person = tokio::spawn(person::live(Arc::clone(&world), handle.clone()));
    tokio::select! {
        biased;
        () = killed(&world, watcher) => {
            // No task of the run continues after this point.
            world.judge().end(true);
            restart::check(&world, &at_first).await;
            return world;
        }
        _ = tokio::time::timeout(LONGEST, handle.finished()) => {}
    }
    person.abort();
    tokio::time::sleep(AFTERMATH).await;
    world.judge().end(false);
    if world.choices.deviates("undone at the end", 30) {
        person::undo(&world, &handle).await;
    }
    drop(world.judge());
    world
}

async fn killed(world: &World, watcher: JoinHandle<()>) {
    tokio::select! {
        biased;
        _ = watcher => {}
        () = world.killed.notified() => {}
    }
}

/// Lets the judge process each event as it happens. Returns when the run must be killed.
async fn watch(world: Arc<World>, handle: RunHandle) {
    let mut cursor = handle.log.follow();
    let mut count = 0;
    while cursor.next().await.is_some() {
        count += 1;
        drop(world.judge());
        if world.plan.killed_after == Some(count) {
            return;
        }
        if world.plan.cancelled_after == Some(count) {
            world.judge().cancelled();
            handle.cancel();
        }
    }
    std::future::pending::<()>().await;
}

fn begin(world: &Arc<World>, root: &Path) -> RunHandle {
    let overlay: Overlay = {
        let desk = world.desk();
        let open = desk.open.iter();
        open.map(|(file, text)| (FilePath::new(file.as_str()), Some(text.as_str().into())))
            .collect()
    };
    let snapshot = Workspace::open(root.to_owned()).unwrap().snapshot(overlay);
    let candidates = (0..world.plan.candidates).map(|at| {
        let name = format!("editor{at}");
        model(world, Role::Editor, &name)
    });
    let editors: Vec<Arc<dyn ChatModel>> = candidates.collect();
    let outside = RunServices {
        models: RoleModels {
            scout: model(world, Role::Scout, "scout"),
            agent: model(world, Role::Agent, "agent"),
            editors,
            proxy: model(world, Role::Proxy, "proxy"),
        },
        editor: Arc::new(SimulatedEditor {
            world: Arc::clone(world),
        }),
        approver: Arc::new(SimulatedPerson {
            world: Arc::clone(world),
        }),
        tests: Arc::new(SimulatedTests {
            world: Arc::clone(world),
        }),
        language: Arc::new(SimulatedLanguageService {
            world: Arc::clone(world),
        }),
        index: Arc::new(Index::new(snapshot)),
        others: None,
    };
    let handle = start(
        RunId("simulated".to_owned()),
        world.plan.task.clone(),
        outside,
    );
    let records = handle.log.write_from(0);
    tokio::spawn(restart::write(Arc::clone(world), records));
    let _ = world.log.set(handle.log.clone());
    handle
}
