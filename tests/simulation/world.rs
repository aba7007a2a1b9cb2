//! The state that all parts of a simulated run share: the user's texts, the run log, and the judge.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use starling_swarm::EventLog;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::actors::Reply;
use super::choices::Choices;
use super::judge::Judge;
use super::plan::SimulationPlan;
use super::project::{Project, Texts};

/// Texts that no model may see, with their paths.
pub const SECRETS: [(&str, &str); 3] = [
    (".env", "TOKEN=MARK-OF-ENV\n"),
    ("../outside.py", "KEY = 'MARK-OF-OUTSIDE'\n"),
    (".git/config", "[core]\n\tbare = false\n# MARK-OF-GIT\n"),
];

/// Everything that the parts of a simulated run share.
pub struct World {
    pub choices: Choices,
    pub plan: SimulationPlan,
    pub project: Project,
    pub desk: Mutex<UserTexts>,
    pub log: OnceLock<EventLog>,
    /// The part of the log that is on disk.
    pub trajectory: Mutex<String>,
    /// Notified when the run is killed while an edit is open.
    pub killed: Notify,
    judge: Mutex<Judge>,
    /// The remaining parts of truncated replies, by conversation.
    pub cuts: Mutex<BTreeMap<String, Reply>>,
    began: Instant,
    /// Number of calls of `next_key` with each name.
    counts: Mutex<BTreeMap<String, u64>>,
}

impl World {
    pub fn new(choices: Choices, root: &Path) -> Arc<World> {
        let project = Project::generate(&choices);
        let plan = SimulationPlan::generate(&choices, &project);
        let desk = UserTexts::new(root, &project, &choices);
        let judge = Judge::new(&plan, &project, &desk);
        Arc::new(World {
            choices,
            plan,
            project,
            desk: Mutex::new(desk),
            log: OnceLock::new(),
            trajectory: Mutex::default(),
            killed: Notify::new(),
            judge: Mutex::new(judge),
            cuts: Mutex::default(),
            began: Instant::now(),
            counts: Mutex::default(),
        })
    }

    pub fn desk(&self) -> MutexGuard<'_, UserTexts> {
        self.desk.lock().unwrap()
    }

    /// Returns the judge after it has processed all events so far.
    pub fn judge(&self) -> MutexGuard<'_, Judge> {
        let mut judge = self.judge.lock().unwrap();
        if let Some(log) = self.log.get() {
            let desk = self.desk();
            judge.catch_up(log, &desk, self.now());
        }
        judge
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns a unique key: the name with a number.
    pub fn next_key(&self, name: &str) -> String {
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        format!("{name} #{count}")
    }

    pub async fn wait(&self, key: &str, most: u64) {
        let delay = self.choices.delay(key, most);
        tokio::time::sleep(delay).await;
    }
}

/// The user's texts: the open buffers, and the files on disk.
#[derive(Debug)]
pub struct UserTexts {
    pub root: PathBuf,
    pub open: BTreeMap<String, String>,
    /// Time of the user's last change to each file.
    pub typed: BTreeMap<String, Duration>,
    pub tokens: u32,
}

impl UserTexts {
    fn new(root: &Path, project: &Project, choices: &Choices) -> Self {
        let outside = root.parent().expect("the project has a folder around it");
        std::fs::write(outside.join("outside.py"), SECRETS[1].1).unwrap();
        for (file, text) in project.texts() {
            write(root, &file, &text);
        }
        write(root, ".env", SECRETS[0].1);
        write(root, ".git/config", SECRETS[2].1);
        write(root, ".git/HEAD", "ref: refs/heads/main\n");
        std::os::unix::fs::symlink(outside.join("outside.py"), root.join("link.py")).unwrap();
        let mut open = BTreeMap::new();
        for (file, text) in project.texts() {
            if choices.number(&format!("desk open {file}"), 2) == 0 {
                open.insert(file, text);
            }
        }
        UserTexts {
            root: root.to_owned(),
            open,
            typed: BTreeMap::new(),
            tokens: 0,
        }
    }

    pub fn disk(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(file)).ok()
    }

    /// Returns the text as the user sees it.
    pub fn text(&self, file: &str) -> Option<String> {
        self.open.get(file).cloned().or_else(|| self.disk(file))
    }

    /// Sets the text that the user sees: the open buffer, else the file on disk.
    pub fn set(&mut self, file: &str, text: &str) {
        match self.open.get_mut(file) {
            Some(buffer) => text.clone_into(buffer),
            None => write(&self.root, file, text),
        }
    }

    pub fn remove(&mut self, file: &str) {
        self.open.remove(file);
        let _ = std::fs::remove_file(self.root.join(file));
    }

    /// Returns all Python texts of the project as the user sees them.
    pub fn texts(&self, project: &Project) -> Texts {
        let files = project.units.iter().map(|unit| unit.file.clone());
        files
            .filter_map(|file| Some((file.clone(), self.text(&file)?)))
            .collect()
    }
}

/// Writes a file. The same text is not written again, because it depends on the real clock whether
/// the file's stamp changes.
fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    if std::fs::read_to_string(&path).is_ok_and(|now| now == text) {
        return;
    }
    std::fs::create_dir_all(path.parent().expect("below the root")).unwrap();
    std::fs::write(path, text).unwrap();
}
