//! The language service of a run: selects the servers and caches their results.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::find::{NotUsed, ProgramSearch, ServerProgram};
use super::keeper::{BLIND, ServerSupervisor, ToolResult};
use super::known::{options, settings};
use super::names;
use super::process;
use super::session::{ServerSession, ServerSetup};
use starling_core::{
    Diagnostics, Effort, LanguageService, LspAnswer, NameLocation, Problem, ProblemKind, Relation,
    Severity, TextRequest,
};
use starling_syntax::FilePath;
use starling_text::ContentHash;
use starling_workspace::Snapshot;

/// Maximum time for a server to report its version.
const GREETING: Duration = Duration::from_secs(20);
/// Maximum number of cached results per run.
const MOST: usize = 512;

/// The configured servers, by built-in name or as commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSelection {
    /// Servers in order of preference; the first one that is installed is used.
    pub fast: Vec<String>,
    /// Servers for a second, more thorough check, in order of preference.
    pub thorough: Vec<String>,
    /// Kinds of problems that must be fixed before a review.
    pub stops: BTreeSet<ProblemKind>,
    /// Maximum time for one request.
    pub deadline: Duration,
}

/// The identity of a started server: project root, program, and Python interpreter.
type ServerKey = (PathBuf, ServerProgram, Option<PathBuf>);

/// The servers of this process. They keep running between runs, so that later runs start faster.
pub struct ServerPool {
    cache: PathBuf,
    keepers: Mutex<HashMap<ServerKey, ServerSupervisor>>,
}

impl ServerPool {
    /// Creates an empty pool. The servers' caches are stored below `cache`.
    pub fn new(cache: PathBuf) -> Self {
        ServerPool {
            cache,
            keepers: Mutex::default(),
        }
    }

    /// Creates the language service of a run over a snapshot. No server starts before the first
    /// request.
    pub fn service(
        &self,
        snapshot: &Snapshot,
        places: &ProgramSearch,
        wanted: &ServerSelection,
    ) -> LanguageServers {
        let mut refused = Vec::new();
        let mut chosen = |entries: &[String]| {
            let find = |entry: &String| match places.find(entry) {
                Ok(program) => Some(self.keeper(program, places)),
                Err(why) => {
                    refused.push((entry.clone(), why));
                    None
                }
            };
            entries.iter().find_map(find)
        };
        let fast = chosen(&wanted.fast);
        let thorough = chosen(&wanted.thorough);
        let servers = LanguageServers::of(fast, thorough, &in_words(&refused), wanted);
        // Missing default servers are not reported in each run; `starling doctor` shows what to
        // install.
        let is_missing = |(_, why): &(String, NotUsed)| matches!(why, NotUsed::Missing { .. });
        let is_default = wanted.fast == super::known_servers() && wanted.thorough.is_empty();
        if is_default && refused.iter().all(is_missing) {
            servers.told.store(true, Ordering::Relaxed);
        }
        for keeper in servers.keepers() {
            keeper.disk(snapshot.stamps().to_vec());
        }
        servers
    }

    fn keeper(&self, program: ServerProgram, places: &ProgramSearch) -> ServerSupervisor {
        let key = (places.root.clone(), program.clone(), places.python());
        let mut keepers = lock(&self.keepers);
        let keeper = keepers.entry(key).or_insert_with(|| {
            let (root, cache) = (places.root.clone(), self.cache.clone());
            let about = about(&program, places);
            let launch = move || process::start(&program, &root, &cache);
            ServerSupervisor::new(about, Arc::new(launch))
        });
        keeper.clone()
    }
}

/// Returns the setup of a server in this project.
fn about(program: &ServerProgram, places: &ProgramSearch) -> ServerSetup {
    let (python, interpreter) = (places.python(), places.interpreter(program));
    ServerSetup {
        name: program.name.clone(),
        root: places.root.clone(),
        settings: settings(python.as_deref(), interpreter.as_deref()),
        options: options(&program.name, interpreter.as_deref()),
    }
}

/// Starts a server to get its name and version, then stops it.
///
/// # Errors
/// The reason why the server cannot be used.
pub async fn version(
    program: &ServerProgram,
    places: &ProgramSearch,
    cache: &Path,
) -> Result<String, String> {
    let link = process::start(program, &places.root, cache)
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let about = about(program, places);
    let deadline = Instant::now() + GREETING;
    match ServerSession::open(link, &about, deadline).await {
        Ok(mut session) => match session.sees_errors(deadline).await {
            Ok(true) => Ok(session.tool),
            Ok(false) => Err(BLIND.to_owned()),
            Err(failure) => Err(failure.to_string()),
        },
        Err(refusal) => Err(refusal.told().await),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Identifies a request: effort, file, and the hash of all texts.
type AnswerKey = (Effort, FilePath, ContentHash);
/// Cached results: the tool and its problems, by text.
type AnswerCache = Arc<Mutex<HashMap<AnswerKey, (String, Vec<Problem>)>>>;

/// A language service that forwards requests to the selected servers.
pub struct LanguageServers {
    fast: Option<ServerSupervisor>,
    thorough: Option<ServerSupervisor>,
    /// The reason why there is no server.
    none: String,
    /// Whether this reason was already reported.
    told: AtomicBool,
    stops: BTreeSet<ProblemKind>,
    deadline: Duration,
    known: AnswerCache,
}

/// Returns the reasons why servers are not used. Servers that are not installed share one reason
/// with an instruction.
fn in_words(refused: &[(String, NotUsed)]) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut missing: Vec<&str> = Vec::new();
    for (entry, why) in refused {
        match why {
            NotUsed::Missing { .. } if missing.contains(&entry.as_str()) => {}
            NotUsed::Missing { .. } => missing.push(entry),
            NotUsed::Untrusted { .. } | NotUsed::Empty => reasons.push(format!("{entry}: {why}")),
        }
    }
    if let Some(first) = missing.first() {
        reasons.push(format!(
            "not installed: {} (install one in the project's virtual environment or on PATH, for \
             example: pip install {first})",
            missing.join(", ")
        ));
    }
    reasons
}

impl LanguageServers {
    pub(super) fn of(
        fast: Option<ServerSupervisor>,
        thorough: Option<ServerSupervisor>,
        reasons: &[String],
        wanted: &ServerSelection,
    ) -> Self {
        let none = match reasons {
            [] => "no language server is configured".to_owned(),
            reasons => format!("no language server: {}", reasons.join("; ")),
        };
        LanguageServers {
            fast,
            thorough,
            none,
            told: AtomicBool::new(false),
            stops: wanted.stops.clone(),
            deadline: wanted.deadline,
            known: Arc::default(),
        }
    }

    fn keepers(&self) -> impl Iterator<Item = &ServerSupervisor> {
        self.fast.iter().chain(&self.thorough)
    }

    fn keeper(&self, request: &TextRequest) -> Result<ServerSupervisor, String> {
        if !is_known(&request.file) {
            return Err(format!("no language server knows {}", request.file));
        }
        let keeper = match request.effort {
            Effort::Fast => &self.fast,
            Effort::Thorough => &self.thorough,
        };
        keeper.clone().ok_or_else(|| self.none.clone())
    }

    /// Returns the server if it is ready. Requests about names do not start a server, because the
    /// index can answer them as well.
    fn ready(&self, request: &TextRequest) -> Result<ServerSupervisor, String> {
        let keeper = self.keeper(request)?;
        match keeper.is_ready() {
            true => Ok(keeper),
            false => Err(format!("{}: it is not ready", keeper.name)),
        }
    }
}

fn answer<T>(said: ToolResult<T>) -> LspAnswer<T> {
    match said {
        Ok((tool, value)) => LspAnswer::Known { tool, value },
        Err(reason) => LspAnswer::Unknown { reason },
    }
}

/// Whether the servers support the language of a file.
fn is_known(file: &FilePath) -> bool {
    let ending = file.as_str().rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| matches!(ending, "py" | "pyi"))
}

async fn diagnose(
    keeper: ServerSupervisor,
    known: AnswerCache,
    request: TextRequest,
) -> Result<(String, Vec<Problem>), String> {
    let key = key(&request);
    if let Some(found) = lock(&known).get(&key) {
        return Ok(found.clone());
    }
    let found = keeper.diagnose(request).await?;
    let mut known = lock(&known);
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(key, found.clone());
    Ok(found)
}

/// Returns the cache key of a request. It covers all texts that the result depends on and that may
/// change during a run.
fn key(request: &TextRequest) -> AnswerKey {
    let mut all = String::new();
    let mut others: Vec<_> = request
        .overlay
        .iter()
        .filter(|(file, _)| *file != request.file)
        .collect();
    others.sort_by(|one, other| one.0.cmp(&other.0));
    for (file, text) in others {
        let hash = text.as_ref().map(|text| ContentHash::of(text));
        all.push_str(&format!("{file}\0{hash:?}\0"));
    }
    all.push_str(&request.text);
    (request.effort, request.file.clone(), ContentHash::of(&all))
}

#[async_trait]
impl LanguageService for LanguageServers {
    async fn diagnostics(&self, mut request: TextRequest) -> Diagnostics {
        request.deadline = request.deadline.min(self.deadline);
        let keeper = match self.keeper(&request) {
            Ok(keeper) => keeper,
            Err(reason) => return Diagnostics::Unknown { reason },
        };
        match diagnose(keeper, Arc::clone(&self.known), request).await {
            Ok((tool, mut problems)) => {
                for problem in &mut problems {
                    problem.stops =
                        problem.severity == Severity::Error && self.stops.contains(&problem.kind);
                }
                Diagnostics::Known { tool, problems }
            }
            Err(reason) => Diagnostics::Unknown { reason },
        }
    }

    fn has(&self, effort: Effort, file: &FilePath) -> bool {
        let keeper = match effort {
            Effort::Fast => &self.fast,
            Effort::Thorough => &self.thorough,
        };
        keeper.is_some() && is_known(file)
    }

    fn prepare(&self, request: TextRequest) {
        if let Ok(keeper) = self.keeper(&request) {
            tokio::spawn(diagnose(keeper, Arc::clone(&self.known), request));
        }
    }

    async fn imports(&self, mut request: TextRequest, problem: &Problem) -> Vec<String> {
        request.deadline = request.deadline.min(self.deadline);
        if problem.kind != ProblemKind::Name {
            return Vec::new();
        }
        let Ok(keeper) = self.keeper(&request) else {
            return Vec::new();
        };
        let problem = Problem {
            stops: false,
            ..problem.clone()
        };
        match keeper.imports(request, problem).await {
            Ok(statements) => statements,
            Err(why) => {
                tracing::debug!(why, "no quick fixes");
                Vec::new()
            }
        }
    }

    async fn spots(
        &self,
        mut request: TextRequest,
        at: usize,
        relation: Relation,
    ) -> LspAnswer<Vec<NameLocation>> {
        request.deadline = request.deadline.min(self.deadline);
        let found = async {
            let keeper = self.ready(&request)?;
            let (tool, places) = keeper.places(request.clone(), at, relation).await?;
            let look = move || names::spots(&places, &request, &keeper.root);
            match tokio::task::spawn_blocking(look).await {
                Ok(spots) => Ok((tool, spots)),
                Err(_) => Err("internal error while places were read; see the log".to_owned()),
            }
        };
        answer(found.await)
    }

    async fn hover(&self, mut request: TextRequest, at: usize) -> LspAnswer<String> {
        request.deadline = request.deadline.min(self.deadline);
        match self.ready(&request) {
            Ok(keeper) => answer(keeper.hover(request, at).await),
            Err(reason) => LspAnswer::Unknown { reason },
        }
    }

    fn news(&self) -> Vec<String> {
        let none = self.keepers().next().is_none() && !self.told.swap(true, Ordering::Relaxed);
        let none = none.then(|| self.none.clone());
        let news = self.keepers().flat_map(|keeper| keeper.news.take());
        none.into_iter().chain(news).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_default_servers_are_not_reported_in_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = starling_workspace::Workspace::open(dir.path().to_owned()).unwrap();
        let snapshot = workspace.snapshot(Default::default());
        let pool = ServerPool::new(dir.path().join("cache"));
        let places = ProgramSearch {
            root: dir.path().to_owned(),
            own_programs: super::super::find::OwnPrograms::Refused,
            path: dir.path().join("bin").into(),
            virtual_env: None,
        };
        let news = |fast: Vec<String>| {
            let wanted = ServerSelection {
                fast,
                thorough: Vec::new(),
                stops: BTreeSet::new(),
                deadline: Duration::from_secs(1),
            };
            pool.service(&snapshot, &places, &wanted).news()
        };
        assert_eq!(news(super::super::known_servers()), Vec::<String>::new());
        let chosen = news(vec!["pylsp".to_owned()]);
        assert!(chosen[0].contains("not installed: pylsp"), "{chosen:?}");
    }

    #[test]
    fn missing_servers_are_reported_in_one_reason() {
        let missing = |name: &str| {
            let program = name.to_owned();
            (name.to_owned(), NotUsed::Missing { program })
        };
        let refused = [
            missing("ty"),
            (" ".to_owned(), NotUsed::Empty),
            missing("pylsp"),
            missing("ty"),
        ];
        assert_eq!(
            in_words(&refused),
            [
                " : an empty command",
                "not installed: ty, pylsp (install one in the project's virtual environment or on \
                 PATH, for example: pip install ty)",
            ]
        );
        assert!(in_words(&[]).is_empty());
    }
}
