//! Test fixture for runs without a real model: files in a temporary directory, a scripted model, an
//! editor that writes to disk, and tests that are a function of the texts.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use crate::evidence::ids::WHOLE_RUN;
use crate::*;
use starling_core::*;
use starling_index::Index;
use starling_syntax::FilePath;
use starling_workspace::Workspace;

/// One reply in the script of a [`Scripted`] model.
#[derive(Clone)]
pub enum Line {
    /// A reply with only this text.
    Say(String),
    /// A reply with these tool calls: names and arguments.
    Call(Vec<(String, serde_json::Value)>),
    /// A call with raw arguments, which may be invalid.
    Raw(String, String),
    /// A call with `{n}` in its arguments replaced by the number of the call.
    Numbered(String, String),
    /// The call fails with this error.
    Fail(ModelError),
    /// The call never returns.
    Hang,
}

/// Returns a reply with only this text.
pub fn say(text: &str) -> Line {
    Line::Say(text.to_owned())
}

/// Returns a reply with one tool call.
pub fn call(tool: &str, arguments: serde_json::Value) -> Line {
    Line::Call(vec![(tool.to_owned(), arguments)])
}

/// Returns a reply that proposes this source for the agent's symbol.
pub fn whole(source: &str) -> Line {
    call("propose", json!({"reason": "because", "source": source}))
}

/// Returns a reply of the scout (the agent that picks symbols) that selects these symbols.
pub fn wake(symbols: &[&str]) -> Line {
    let symbols: Vec<_> = symbols
        .iter()
        .map(|symbol| json!({"symbol": symbol, "why": "scripted"}))
        .collect();
    call("wake", json!({ "symbols": symbols }))
}

/// Maps the beginning of a conversation's name to its scripted replies: replies that are returned
/// once each, and a reply that is repeated after them.
type Script = HashMap<String, (VecDeque<Line>, Option<Line>)>;

/// Test id by which a [`Judge`] reports a test command that does not start.
pub const NO_START: &str = "no start";
/// Message by which a [`Judge`] reports that a test does not run.
pub const GONE: &str = "(gone)";
/// Message by which a [`Judge`] reports a skipped test.
pub const SKIPPED: &str = "(skipped)";
/// Message by which a [`Judge`] reports a passing test.
pub const PASSES: &str = "(passes)";

/// A model with scripted replies. Each conversation returns its replies once and in order; with
/// [`Scripted::always`] it repeats one reply.
pub struct Scripted {
    profile: ModelProfile,
    script: Mutex<Script>,
    pub asked: Mutex<Vec<ChatRequest>>,
    pub latency: Duration,
    /// Usage that every reply reports.
    usage: Usage,
    fills: bool,
}

impl Scripted {
    pub fn native() -> Self {
        Self::new(ToolCalling::Native)
    }

    /// Creates a model without native tool calls and with a small context window.
    pub fn small() -> Self {
        let mut small = Self::new(ToolCalling::Text);
        small.profile.context_window = Tokens(8_000);
        small.profile.max_output = Tokens(1_000);
        small
    }

    /// Lets the model fill in single statements (fill-in-the-middle).
    pub fn filling(mut self) -> Self {
        self.fills = true;
        self
    }

    pub fn new(tool_calling: ToolCalling) -> Self {
        let profile = ModelProfile {
            name: "scripted".into(),
            context_window: Tokens(100_000),
            max_output: Tokens(4_000),
            tool_calling,
            replayed: false,
            price: Some(Price::FREE),
        };
        Scripted {
            profile,
            script: Mutex::default(),
            asked: Mutex::default(),
            latency: Duration::ZERO,
            usage: Usage {
                prompt: Tokens(100),
                cached: Tokens(0),
                output: Tokens(10),
            },
            fills: false,
        }
    }

    /// Sets the context window.
    pub fn window(mut self, tokens: u64) -> Self {
        self.profile.context_window = Tokens(tokens);
        self
    }

    pub fn named(mut self, name: &str) -> Self {
        self.profile.name = name.to_owned();
        self
    }

    /// Sets the price, and the usage that every reply reports.
    pub fn priced(mut self, price: Option<Price>, usage: Usage) -> Self {
        self.profile.price = price;
        self.usage = usage;
        self
    }

    /// Sets the replies of the conversations whose names begin with `conversation`.
    pub fn on(self, conversation: &str, lines: impl IntoIterator<Item = Line>) -> Self {
        let lines = lines.into_iter().collect();
        self.script
            .lock()
            .unwrap()
            .insert(conversation.to_owned(), (lines, None));
        self
    }

    /// Repeats the same reply in the conversations whose names begin with `conversation`.
    pub fn always(self, conversation: &str, line: Line) -> Self {
        self.script
            .lock()
            .unwrap()
            .insert(conversation.to_owned(), (VecDeque::new(), Some(line)));
        self
    }

    pub fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Returns the text of all prompts of a conversation, in order.
    pub fn prompts(&self, conversation: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let of = asked
            .iter()
            .filter(|request| request.conversation.starts_with(conversation));
        of.map(|request| {
            request
                .messages
                .iter()
                .map(Message::text)
                .collect::<Vec<_>>()
                .join("\n")
        })
        .collect()
    }

    fn next(&self, conversation: &str) -> Option<Line> {
        let mut script = self.script.lock().unwrap();
        let key = script
            .keys()
            .filter(|key| conversation.starts_with(*key))
            .max_by_key(|key| key.len())?
            .clone();
        let (lines, last) = script.get_mut(&key)?;
        lines.pop_front().or_else(|| last.clone())
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn fills(&self) -> bool {
        self.fills
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        _watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        self.asked.lock().unwrap().push(request.clone());
        tokio::time::sleep(self.latency).await;
        let ordinal = self.calls();
        let mut reply = ChatReply {
            model: "scripted".into(),
            text: String::new(),
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: self.usage,
            cost: (self.profile.price).map_or(Dollars(0.0), |price| price.cost(self.usage)),
            calls: 1,
        };
        let tool_call = |at: usize, name: String, arguments: String| ToolCall {
            id: format!("c{ordinal}-{at}"),
            name,
            arguments,
        };
        match self.next(&request.conversation) {
            None => {
                let message = format!("nothing scripted for {}", request.conversation);
                return Err(ModelError::Unavailable {
                    model: "scripted".into(),
                    message,
                });
            }
            Some(Line::Say(text)) => reply.text = text,
            Some(Line::Call(calls)) => {
                let calls = calls.into_iter().enumerate();
                reply.tool_calls = calls
                    .map(|(at, (name, arguments))| tool_call(at, name, arguments.to_string()))
                    .collect();
            }
            Some(Line::Raw(name, arguments)) => {
                reply.tool_calls = vec![tool_call(0, name, arguments)]
            }
            Some(Line::Numbered(name, arguments)) => {
                reply.tool_calls = vec![tool_call(
                    0,
                    name,
                    arguments.replace("{n}", &ordinal.to_string()),
                )];
            }
            Some(Line::Fail(error)) => return Err(error),
            Some(Line::Hang) => std::future::pending().await,
        }
        Ok(reply)
    }
}

/// Returns the contents of a file as the fake tests read them. Bytes that are not UTF-8 are shown as
/// numbers.
fn as_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("{bytes:x?}"),
    }
}

/// The byte order mark, which the editor does not show.
const MARK: char = '\u{feff}';

/// An editor that writes accepted edits to the directory at once.
pub struct DiskEditor {
    root: std::path::PathBuf,
    pub writes: Mutex<u32>,
    /// A change that the user makes to a file just before the next edit arrives.
    pub typing: Mutex<Option<(String, String)>>,
    /// A file whose next edit is refused.
    pub refuses: Mutex<Option<String>>,
    /// Whether every edit is refused.
    pub refuses_all: Mutex<bool>,
    /// Number of edits before which the user types a letter at the end of the file.
    pub typed_before_edits: Mutex<usize>,
    /// Delays of the next edits.
    pub delays: Mutex<VecDeque<Duration>>,
    /// Open files with unsaved texts. Edits are not written to them.
    pub unsaved: Mutex<HashMap<String, String>>,
}

#[async_trait]
impl Editor for DiskEditor {
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError> {
        match std::fs::read_to_string(self.root.join(file.as_str())) {
            Ok(text) => Ok(CurrentText {
                text: text.strip_prefix(MARK).unwrap_or(&text).into(),
                version: None,
            }),
            Err(_) => Err(EditorError::Missing { file: file.clone() }),
        }
    }

    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        let unsaved = self.unsaved.lock().unwrap();
        let texts = unsaved.iter();
        let texts = texts.map(|(file, text)| (FilePath::new(file), text.as_str().into()));
        Ok(texts.collect())
    }

    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError> {
        let delay = self.delays.lock().unwrap().pop_front();
        tokio::time::sleep(delay.unwrap_or_default()).await;
        if let Some((file, text)) = self.typing.lock().unwrap().take() {
            std::fs::write(self.root.join(file), text).unwrap();
        }
        {
            let mut left = self.typed_before_edits.lock().unwrap();
            if *left > 0 {
                *left -= 1;
                let path = self.root.join(edit.file.as_str());
                let text = std::fs::read_to_string(&path).unwrap();
                let text = match text.strip_suffix("k\n") {
                    Some(text) => format!("{text}kk\n"),
                    None => format!("{text}# k\n"),
                };
                std::fs::write(path, text).unwrap();
            }
        }
        let refused = |file: &mut String| file == edit.file.as_str();
        if *self.refuses_all.lock().unwrap()
            || self.refuses.lock().unwrap().take_if(refused).is_some()
        {
            return Err(ApplyError::Refused {
                file: edit.file,
                message: "permission denied".to_owned(),
            });
        }
        let path = self.root.join(edit.file.as_str());
        let on_disk = std::fs::read_to_string(&path).unwrap_or_default();
        let now = on_disk.strip_prefix(MARK).unwrap_or(&on_disk);
        if *now != *edit.base.text {
            return Err(ApplyError::Stale { file: edit.file });
        }
        let text = edit.changes.apply(now).unwrap();
        let mark = &on_disk[..on_disk.len() - now.len()];
        let is_there = path.exists();
        match edit.effect {
            Effect::Change => assert!(is_there),
            Effect::Create => assert!(!is_there),
            Effect::Delete => assert!(text.is_empty()),
        }
        match edit.effect {
            Effect::Change | Effect::Create => {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, format!("{mark}{text}")).unwrap();
            }
            Effect::Delete => std::fs::remove_file(&path).unwrap(),
        }
        *self.writes.lock().unwrap() += 1;
        Ok(CurrentText {
            text: text.into(),
            version: None,
        })
    }
}

/// Returns the failing test ids with their messages, given the text of all files.
///
/// [`WHOLE_RUN`] stands for a command that fails without naming a test, and [`NO_START`] for a
/// command that does not start. With [`GONE`], [`SKIPPED`] or [`PASSES`] as its message, a test
/// does not run, is skipped or passes.
pub type Judge = Box<dyn Fn(&str) -> Vec<(String, String)> + Send + Sync>;

/// If a Python file contains this text, the fake compiler reports that the file cannot be compiled.
pub const UNCOMPILED: &str = "# cannot be compiled";
/// If a file contains this text, the fake compiler reports that there is no Python.
pub const NO_PYTHON: &str = "# no Python";

/// A test runner that computes its results from the texts of the files with a [`Judge`].
pub struct FakeTests {
    root: std::path::PathBuf,
    judge: Option<Judge>,
    chosen: CommandOrigin,
    selects: bool,
    unknown: Option<String>,
    /// Tests that have failed in any run. Later reports list them as passed unless they fail again.
    known: Mutex<BTreeSet<String>>,
    lists: bool,
    times: Arc<Mutex<VecDeque<Duration>>>,
    asked: Arc<Mutex<Vec<Vec<String>>>>,
    tries: Option<Tries>,
}

/// Returns the output of code that is tried and its exit status, given the text of all files.
pub type Tries = Box<dyn Fn(&str, &TryCode) -> (String, i32) + Send + Sync>;

impl FakeTests {
    /// Returns the texts of all files in the shadow, by their paths.
    fn texts(&self, overlay: Vec<(FilePath, Option<Arc<[u8]>>)>) -> BTreeMap<String, String> {
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let mut waiting = vec![self.root.clone()];
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path);
                    continue;
                }
                let name = path.strip_prefix(&self.root).unwrap().to_str().unwrap();
                let bytes = std::fs::read(&path).unwrap();
                texts.insert(name.to_owned(), as_text(&bytes));
            }
        }
        for (file, text) in overlay {
            texts.insert(
                file.as_str().to_owned(),
                text.as_deref().map(as_text).unwrap_or_default(),
            );
        }
        texts
    }
}

#[async_trait]
impl TestRunner for FakeTests {
    fn command(&self) -> Option<String> {
        self.judge.as_ref().map(|_| "fake tests".to_owned())
    }

    fn missing(&self) -> Option<&str> {
        match self.judge {
            Some(_) => None,
            None => self.unknown.as_deref(),
        }
    }

    fn chosen(&self) -> CommandOrigin {
        self.chosen
    }

    fn has_installed(&self, module: &str) -> bool {
        module == "iniconfig"
    }

    fn selects(&self) -> bool {
        self.selects
    }

    async fn try_code(&self, request: TryRequest) -> TryReport {
        let Some(tries) = &self.tries else {
            return TryReport::not_run("nothing can be tried in this test".to_owned());
        };
        let texts = self.texts(request.overlay);
        let all: String = texts.values().map(String::as_str).collect();
        let (output, exit) = tries(&all, &request.code);
        let frames = starling_index::frames(&output).into_iter();
        let frames = frames.filter(|frame| texts.contains_key(frame.path));
        let frames = frames
            .map(|frame| (FilePath::new(frame.path), frame.line))
            .collect();
        TryReport {
            outcome: match exit {
                0 => TestOutcome::Passed,
                _ => TestOutcome::Failed,
            },
            exit: Some(exit),
            output,
            frames,
            millis: 100,
        }
    }

    async fn run(&self, request: TestRequest) -> TestReport {
        let command = match self.selects {
            true => {
                let ids = request.select.iter().map(|one| one.replace(".py::", "."));
                let words = std::iter::once("fake tests".to_owned()).chain(ids);
                words.collect::<Vec<_>>().join(" ")
            }
            false => "fake tests".to_owned(),
        };
        self.asked.lock().unwrap().push(request.select.clone());
        let time = self.times.lock().unwrap().pop_front().unwrap_or_default();
        tokio::time::sleep(time.min(request.deadline)).await;
        let millis = u64::try_from(time.min(request.deadline).as_millis()).unwrap();
        let says_nothing = |outcome| TestReport {
            outcome,
            exit: None,
            command: command.clone(),
            cases: Vec::new(),
            source: Default::default(),
            output: String::new(),
            millis,
        };
        if time > request.deadline {
            return says_nothing(TestOutcome::TimedOut);
        }
        if self
            .unknown
            .as_ref()
            .is_some_and(|name| request.select.contains(name))
        {
            return says_nothing(TestOutcome::NotRun);
        }
        let texts = self.texts(request.overlay);
        let all: String = texts.values().map(String::as_str).collect();
        let failing = self
            .judge
            .as_ref()
            .map(|judge| judge(&all))
            .unwrap_or_default();
        let said = |what: &str| failing.iter().find(|(id, _)| id == what);
        let without_cases = said(WHOLE_RUN)
            .map(|(_, output)| (TestOutcome::Failed, 1, output))
            .or(said(NO_START).map(|(_, output)| (TestOutcome::NotRun, 127, output)));
        if let Some((outcome, status, output)) = without_cases {
            return TestReport {
                outcome,
                exit: Some(status),
                command,
                cases: Vec::new(),
                source: Default::default(),
                output: output.clone(),
                millis,
            };
        }
        let (others, failing): (Vec<_>, Vec<_>) = failing
            .into_iter()
            .partition(|(_, message)| [GONE, SKIPPED, PASSES].contains(&message.as_str()));
        let outcome = if failing.is_empty() {
            TestOutcome::Passed
        } else {
            TestOutcome::Failed
        };
        let mut cases: Vec<TestCase> = failing
            .into_iter()
            .map(|(id, message)| TestCase {
                // The path or the name of a module stands for a test file that cannot be loaded.
                status: match id.ends_with(".py")
                    || !id.contains(['.', ':']) && message.contains("ImportError")
                {
                    true => TestStatus::Error,
                    false => TestStatus::Failed,
                },
                id,
                message,
            })
            .collect();
        let gone = |id: &str| (others.iter()).any(|(other, how)| other == id && how == GONE);
        let others = others.iter().filter(|(_, how)| how != GONE);
        cases.extend(others.map(|(id, how)| TestCase {
            id: id.clone(),
            status: match how.as_str() {
                SKIPPED => TestStatus::Skipped,
                _ => TestStatus::Passed,
            },
            message: String::new(),
        }));
        let mut known = self.known.lock().unwrap();
        known.extend(
            (cases.iter())
                .filter(|case| case.status == TestStatus::Failed)
                .map(|case| case.id.clone()),
        );
        let listed = match self.lists {
            true => tests_in(&texts),
            false => vec!["t1".to_owned(), "t2".to_owned()],
        };
        let selected = request.select.iter().cloned();
        for id in listed
            .into_iter()
            .chain(selected)
            .chain(known.iter().cloned())
        {
            if !gone(&id) && !cases.iter().any(|case| case.id == id) {
                cases.push(TestCase {
                    id,
                    status: TestStatus::Passed,
                    message: String::new(),
                });
            }
        }
        TestReport {
            outcome,
            exit: None,
            command,
            cases,
            source: Default::default(),
            output: String::new(),
            millis,
        }
    }

    async fn compile(&self, request: CompileRequest) -> Result<Vec<Problem>, String> {
        let mut found = Vec::new();
        for one in request.files {
            if one.after.contains(NO_PYTHON) {
                return Err("there is no Python".to_owned());
            }
            let had = one.before.is_some_and(|before| before.contains(UNCOMPILED));
            if one.after.contains(UNCOMPILED) && !had {
                found.push(Problem {
                    file: one.file,
                    line: 2,
                    severity: Severity::Error,
                    message: "Python 3.9 cannot compile this: invalid syntax".to_owned(),
                    source: "Python 3.9".to_owned(),
                    kind: ProblemKind::Syntax,
                    stops: true,
                    range: None,
                });
            }
        }
        Ok(found)
    }
}

/// Returns the ids of the tests in test files.
fn tests_in(texts: &BTreeMap<String, String>) -> Vec<String> {
    let files = texts.iter().filter(|(name, _)| name.starts_with("test_"));
    let tests = files.flat_map(|(name, text)| {
        let names = text.lines().filter_map(|line| line.strip_prefix("def "));
        let names = names.filter(|rest| rest.starts_with("test_"));
        names.map(move |rest| {
            let test = rest.split('(').next().unwrap_or(rest);
            format!("{name}::{test}")
        })
    });
    tests.collect()
}

/// A person who returns the scripted verdicts in order, and accepts when none is left.
#[derive(Default)]
pub struct FakeApprover {
    pub verdicts: Mutex<VecDeque<Verdict>>,
    pub seen: Mutex<Vec<ProposalView>>,
    pub intents: Mutex<Vec<IntentView>>,
    /// Time that a person takes to decide.
    pub latency: Mutex<Duration>,
    /// Times that a person takes for the next decisions.
    pub latencies: Mutex<VecDeque<Duration>>,
    /// Proposals that the person rejects, regardless of the scripted verdicts.
    pub rejected: Mutex<Option<Box<Rejects>>>,
    /// The person's own versions of a proposal. Without a version, the person decides on the
    /// proposal.
    pub edits: Mutex<Option<Box<Edits>>>,
}

/// Returns whether the person rejects a proposal.
pub type Rejects = dyn Fn(&ProposalView) -> bool + Send;

/// Returns the person's own version of a proposal, if the person edits it.
pub type Edits = dyn FnMut(&ProposalView) -> Option<Vec<EditedPart>> + Send;

impl FakeApprover {
    /// Rejects the matching proposals.
    pub fn rejects(&self, which: impl Fn(&ProposalView) -> bool + Send + 'static) {
        *self.rejected.lock().unwrap() = Some(Box::new(which));
    }

    async fn decide(&self) -> Verdict {
        let latency = self.latencies.lock().unwrap().pop_front();
        let latency = latency.unwrap_or(*self.latency.lock().unwrap());
        tokio::time::sleep(latency).await;
        let verdict = self.verdicts.lock().unwrap().pop_front();
        verdict.unwrap_or(Verdict::Accept)
    }
}

#[async_trait]
impl Approver for FakeApprover {
    async fn intent(&self, view: IntentView) -> Verdict {
        self.intents.lock().unwrap().push(view);
        self.decide().await
    }

    async fn proposal(&self, view: ProposalView) -> ReviewAnswer {
        let mut edits = self.edits.lock().unwrap().take();
        let edited = edits.as_mut().and_then(|edits| edits(&view));
        *self.edits.lock().unwrap() = edits;
        let is_rejected = {
            let rejected = self.rejected.lock().unwrap();
            rejected.as_ref().is_some_and(|rejects| rejects(&view))
        };
        self.seen.lock().unwrap().push(view);
        if is_rejected {
            let reason = "not like this".to_owned();
            return Verdict::Reject { reason }.into();
        }
        match edited {
            Some(parts) => ReviewAnswer::Edited(parts),
            None => self.decide().await.into(),
        }
    }
}

/// A language service without diagnostics.
struct NoLanguage;

#[async_trait]
impl LanguageService for NoLanguage {
    async fn diagnostics(&self, _: TextRequest) -> Diagnostics {
        Diagnostics::Unknown {
            reason: "none in this test".into(),
        }
    }
}

/// A test project for one run: files in a temporary directory, the task, the scripted model, and
/// fake services.
pub struct Bed {
    dir: tempfile::TempDir,
    pub task: Task,
    /// Globs of files that may be changed without a person.
    pub allow_write: Vec<String>,
    pub model: Arc<Scripted>,
    pub editors: Vec<Arc<dyn ChatModel>>,
    /// A model that is used instead of the scripted one.
    pub other_model: Option<Arc<dyn ChatModel>>,
    pub editor: Arc<DiskEditor>,
    pub approver: Arc<FakeApprover>,
    /// Durations of the next test runs.
    pub test_times: Arc<Mutex<VecDeque<Duration>>>,
    /// Whether the user configured the test command, or it was found in the project.
    pub chosen: CommandOrigin,
    /// Whether the test command can run selected tests.
    pub selects: bool,
    /// The name of a test. If it is among the selected tests, the test command runs no test at all.
    pub unknown: Option<String>,
    /// Whether a report lists the functions of the test files whose names begin with `test_`.
    pub lists: bool,
    /// The selected tests of every test run.
    pub selected: Arc<Mutex<Vec<Vec<String>>>>,
    judge: Option<Judge>,
    tries: Option<Tries>,
    pub language: Option<Arc<dyn LanguageService>>,
    pub others: Option<Arc<dyn OtherRuns>>,
    /// The index of the run that was started last.
    pub index: Option<Arc<Index>>,
}

impl Bed {
    pub fn new(files: &[(&str, &str)], model: Scripted) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let task = Task {
            text: "Make it right.".into(),
            refactoring: None,
            driver: Driver::Swarm,
            approval: Approval::Auto,
            ask_intent: AskIntent::Never,
            limits: Limits::default(),
            test_deadline: Duration::from_secs(60),
            begin: Vec::new(),
            require_tests: false,
            try_examples: true,
            patch: None,
            request: None,
        };
        let editor = DiskEditor {
            root: dir.path().to_owned(),
            writes: Mutex::default(),
            typing: Mutex::default(),
            refuses: Mutex::default(),
            refuses_all: Mutex::default(),
            typed_before_edits: Mutex::default(),
            delays: Mutex::default(),
            unsaved: Mutex::default(),
        };
        Bed {
            dir,
            task,
            allow_write: Vec::new(),
            model: Arc::new(model),
            editors: Vec::new(),
            other_model: None,
            editor: Arc::new(editor),
            approver: Arc::default(),
            test_times: Arc::default(),
            chosen: CommandOrigin::ByUser,
            selects: false,
            unknown: None,
            lists: false,
            selected: Arc::default(),
            judge: None,
            tries: None,
            language: None,
            others: None,
            index: None,
        }
    }

    pub fn begin(mut self, symbols: &[&str]) -> Self {
        self.task.begin = symbols
            .iter()
            .map(|symbol| symbol.parse().unwrap())
            .collect();
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Task)) -> Self {
        change(&mut self.task);
        self
    }

    pub fn tests(
        mut self,
        judge: impl Fn(&str) -> Vec<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        self.judge = Some(Box::new(judge));
        self
    }

    /// Sets what code prints when it is tried, and its exit status.
    pub fn tries(
        mut self,
        tries: impl Fn(&str, &TryCode) -> (String, i32) + Send + Sync + 'static,
    ) -> Self {
        self.tries = Some(Box::new(tries));
        self
    }

    pub fn path(&self, file: &str) -> std::path::PathBuf {
        self.dir.path().join(file)
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(file)).unwrap()
    }

    pub fn start(&mut self) -> RunHandle {
        let root = self.dir.path().canonicalize().unwrap();
        let unsaved = self.editor.unsaved.lock().unwrap().clone().into_iter();
        let unsaved = unsaved.map(|(file, text)| (FilePath::new(file), Some(text.into())));
        let workspace = Workspace::open(root.clone()).unwrap();
        let workspace = workspace.allowing(&self.allow_write).unwrap();
        let snapshot = workspace.snapshot(unsaved.collect());
        let model: Arc<dyn ChatModel> = self
            .other_model
            .clone()
            .unwrap_or_else(|| self.model.clone());
        let index = Arc::new(Index::new(snapshot));
        self.index = Some(Arc::clone(&index));
        let outside = RunServices {
            models: RoleModels {
                scout: model.clone(),
                agent: model.clone(),
                editors: self.editors.clone(),
                proxy: model,
            },
            editor: self.editor.clone(),
            approver: self.approver.clone(),
            tests: self.fake_tests(root),
            language: self.language.take().unwrap_or(Arc::new(NoLanguage)),
            index,
            others: self.others.clone(),
        };
        start(RunId("test".into()), self.task.clone(), outside)
    }

    fn fake_tests(&mut self, root: std::path::PathBuf) -> Arc<FakeTests> {
        Arc::new(FakeTests {
            root,
            judge: self.judge.take(),
            chosen: self.chosen,
            selects: self.selects,
            unknown: self.unknown.clone(),
            known: Mutex::default(),
            lists: self.lists,
            times: Arc::clone(&self.test_times),
            asked: Arc::clone(&self.selected),
            tries: self.tries.take(),
        })
    }

    /// Creates the checks of proposals over these files and tests, without a run.
    pub fn checker(&mut self) -> Checker {
        let root = self.dir.path().canonicalize().unwrap();
        let workspace = Workspace::open(root.clone()).unwrap();
        let index = Arc::new(Index::new(workspace.snapshot(Default::default())));
        let tests = self.fake_tests(root);
        Checker::standalone(index, tests, Arc::new(NoLanguage), self.task.test_deadline)
    }

    /// Runs the task to its end and returns all events of the run.
    pub async fn run(&mut self) -> Vec<Event> {
        let handle = self.start();
        handle.finished().await;
        handle.log.events()
    }
}

/// Waits until a matching event is in the log of a run.
pub async fn until(handle: &RunHandle, happened: impl Fn(&Event) -> bool) {
    let mut cursor = handle.log.follow();
    while let Some(stamped) = cursor.next().await {
        if matches!(&stamped.record, Record::Event(event) if happened(event)) {
            return;
        }
    }
    panic!("it did not happen: {:#?}", handle.log.events());
}

/// Returns a reply that finishes the agent's work.
pub fn finish(summary: &str) -> Line {
    call("finish", json!({ "summary": summary }))
}

/// Returns the agents that were woken (started), in order, each with the cause.
pub fn woken(events: &[Event]) -> Vec<(String, Cause)> {
    let woken = |event: &Event| match event {
        Event::AgentWoken {
            agent: ActorId::Agent(symbol),
            cause,
        } => Some((symbol.to_string(), cause.clone())),
        _ => None,
    };
    events.iter().filter_map(woken).collect()
}

/// Returns the stop reason of a finished run.
pub fn stop(events: &[Event]) -> StopReason {
    match events.last() {
        Some(Event::RunFinished { stop_reason, .. }) => stop_reason.clone(),
        other => panic!("the last event is {other:?}"),
    }
}

/// Returns whether tests prove the changes of a finished run, and its headline.
pub fn ending(events: &[Event]) -> (Proof, String) {
    match events.last() {
        Some(Event::RunFinished {
            ending: Some(Ending {
                proof, headline, ..
            }),
            ..
        }) => (*proof, headline.clone()),
        other => panic!("the last event is {other:?}"),
    }
}

/// Returns why replies were malformed or proposals were refused, in order.
pub fn malformed(events: &[Event]) -> Vec<String> {
    let what = |event: &Event| match event {
        Event::Malformed { what, .. } | Event::ProposalRefused { why: what, .. } => {
            Some(what.clone())
        }
        _ => None,
    };
    events.iter().filter_map(what).collect()
}
