use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;
use crate::testing::{profile, reply, request};
use starling_core::{Finish, NoWatch, Price, Tokens};
use tokio::time::Instant;

/// The reaction of a scripted model to one request.
enum ScriptedAction {
    Answer(&'static str),
    Fail(ModelError),
    /// Sends a delta after each of these delays in seconds, then nothing more.
    Mumble(Vec<u64>),
}

/// A model that reacts to its requests as scripted.
struct ScriptedModel {
    profile: ModelProfile,
    acts: Mutex<VecDeque<ScriptedAction>>,
    /// The output limit of each request.
    asked_for: Mutex<Vec<Tokens>>,
}

fn scripted(name: &str, acts: Vec<ScriptedAction>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel {
        profile: profile(name),
        acts: Mutex::new(acts.into()),
        asked_for: Mutex::default(),
    })
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        self.asked_for.lock().unwrap().push(request.max_output);
        let act = self.acts.lock().unwrap().pop_front().expect("no more acts");
        match act {
            ScriptedAction::Answer(text) => Ok(reply(&self.profile.name, text, Finish::Stop)),
            ScriptedAction::Fail(error) => Err(error),
            ScriptedAction::Mumble(waits) => {
                for wait in waits {
                    tokio::time::sleep(Duration::from_secs(wait)).await;
                    watch.delta("mumble ");
                }
                std::future::pending().await
            }
        }
    }
}

/// A watch that records all notices.
#[derive(Default)]
struct NoticeRecorder(Mutex<Vec<ModelNotice>>);

impl ChatWatch for NoticeRecorder {
    fn delta(&self, _text: &str) {}
    fn notice(&self, notice: ModelNotice) {
        self.0.lock().unwrap().push(notice);
    }
}

impl NoticeRecorder {
    fn lines(&self) -> Vec<String> {
        let notices = self.0.lock().unwrap();
        notices
            .iter()
            .map(|notice| match notice {
                ModelNotice::Retrying { model, attempt, .. } => format!("{model} {attempt}"),
                ModelNotice::FellBack { from, to, .. } => format!("{from} -> {to}"),
                ModelNotice::Continued { .. } | ModelNotice::Preparing { .. } => {
                    panic!("not of this layer: {notice:?}")
                }
            })
            .collect()
    }
}

fn server_error() -> ScriptedAction {
    ScriptedAction::Fail(ModelError::Server {
        model: "m".to_owned(),
        status: 503,
        message: "busy".to_owned(),
    })
}

fn refused() -> ScriptedAction {
    ScriptedAction::Fail(ModelError::Refused {
        model: "m".to_owned(),
        status: 401,
        message: "no".to_owned(),
    })
}

fn resilient(models: Vec<Arc<ScriptedModel>>) -> ResilientModel {
    let mut models = models.into_iter().map(|model| model as Arc<dyn ChatModel>);
    let first = models.next().unwrap();
    ResilientModel::new(first, models.collect(), RetryPolicy::default()).with_seed(1)
}

#[tokio::test(start_paused = true)]
async fn transient_errors_are_retried_and_counted() {
    let model = scripted(
        "a",
        vec![
            server_error(),
            server_error(),
            ScriptedAction::Answer("yes"),
        ],
    );
    let notices = NoticeRecorder::default();
    let reply = resilient(vec![model])
        .chat(&request(), &notices)
        .await
        .unwrap();
    assert_eq!(reply.text, "yes");
    assert_eq!(reply.calls, 3);
    assert_eq!(notices.lines(), ["a 2", "a 3"]);
}

#[tokio::test(start_paused = true)]
async fn next_model_is_tried_after_the_maximum_number_of_attempts() {
    let first = scripted("a", (0..4).map(|_| server_error()).collect());
    let second = scripted("b", vec![refused()]);
    let third = scripted("c", vec![ScriptedAction::Answer("at last")]);
    let notices = NoticeRecorder::default();
    let reply = resilient(vec![first, second, third])
        .chat(&request(), &notices)
        .await
        .unwrap();
    assert_eq!((reply.model.as_str(), reply.calls), ("c", 6));
    assert_eq!(notices.lines(), ["a 2", "a 3", "a 4", "a -> b", "b -> c"]);
}

#[tokio::test(start_paused = true)]
async fn refused_request_is_not_retried() {
    let notices = NoticeRecorder::default();
    let error = resilient(vec![scripted("a", vec![refused()])])
        .chat(&request(), &notices)
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Refused { .. }));
    assert!(notices.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn retry_waits_as_long_as_the_server_requests() {
    let limited = ScriptedAction::Fail(ModelError::RateLimited {
        model: "a".to_owned(),
        retry_after: Some(Duration::from_secs(20)),
        message: String::new(),
    });
    let start = Instant::now();
    resilient(vec![scripted(
        "a",
        vec![limited, ScriptedAction::Answer("yes")],
    )])
    .chat(&request(), &NoWatch)
    .await
    .unwrap();
    let waited = start.elapsed();
    assert!((20..=21).contains(&waited.as_secs()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn silent_model_fails_after_the_timeout() {
    let start = Instant::now();
    let policy = RetryPolicy {
        attempts: 1,
        ..RetryPolicy::default()
    };
    let mute = scripted("a", vec![ScriptedAction::Mumble(Vec::new())]);
    let error = ResilientModel::new(mute, Vec::new(), policy)
        .chat(&request(), &NoWatch)
        .await
        .unwrap_err();
    assert_eq!(
        error,
        ModelError::Timeout {
            model: "a".to_owned(),
            after: policy.timeout,
        }
    );
    assert_eq!(start.elapsed().as_secs(), 600);
}

#[tokio::test(start_paused = true)]
async fn stalled_answer_fails_after_the_idle_timeout() {
    let start = Instant::now();
    let policy = RetryPolicy {
        attempts: 1,
        ..RetryPolicy::default()
    };
    // The idle timeout does not apply before the first delta.
    let tired = scripted("a", vec![ScriptedAction::Mumble(vec![200, 100, 100])]);
    let error = ResilientModel::new(tired, Vec::new(), policy)
        .chat(&request(), &NoWatch)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ModelError::Timeout { after, .. } if after == policy.idle_timeout),
        "{error:?}"
    );
    assert_eq!(start.elapsed().as_secs(), 520);
}

#[tokio::test(start_paused = true)]
async fn interrupted_answer_is_charged_its_worst_case_cost() {
    let model = scripted(
        "a",
        vec![
            ScriptedAction::Mumble(vec![1]),
            ScriptedAction::Answer("yes"),
        ],
    );
    let answered = resilient(vec![model])
        .chat(&request(), &NoWatch)
        .await
        .unwrap();
    let whole = reply("a", "yes", Finish::Stop);
    let worst = WorstCase::of(&request(), &profile("a"));
    assert_eq!(answered.calls, 2);
    assert_eq!(answered.usage, whole.usage + worst.usage());
}

/// A budget with room for a limited number of requests after the first. Records all reports and
/// reservations.
struct LimitedBudget {
    left: Mutex<u32>,
    told: Mutex<Vec<String>>,
}

impl LimitedBudget {
    fn of(left: u32) -> Self {
        LimitedBudget {
            left: Mutex::new(left),
            told: Mutex::default(),
        }
    }
}

#[async_trait]
impl ChatWatch for LimitedBudget {
    fn delta(&self, _text: &str) {}
    fn notice(&self, _notice: ModelNotice) {}
    fn request_ended(&self, end: Result<&ChatReply, &ModelError>) {
        let end = end.map_or("failed", |_| "answered");
        self.told.lock().unwrap().push(end.to_owned());
    }
    async fn reserve(&self, next: &WorstCase) -> Option<Tokens> {
        let mut left = self.left.lock().unwrap();
        *left = left.checked_sub(1)?;
        let price = next.price.unwrap().output;
        let reserved = format!("reserved {} at {price}", next.model);
        self.told.lock().unwrap().push(reserved);
        Some(Tokens(100))
    }
}

/// Creates a model with a price per million output tokens.
fn priced(name: &str, output: f64, acts: Vec<ScriptedAction>) -> Arc<ScriptedModel> {
    let mut model = ScriptedModel {
        profile: profile(name),
        acts: Mutex::new(acts.into()),
        asked_for: Mutex::default(),
    };
    model.profile.price = Some(Price {
        output,
        ..Price::FREE
    });
    Arc::new(model)
}

#[tokio::test(start_paused = true)]
async fn retries_and_fallbacks_reserve_budget_at_the_price_of_their_model() {
    let cheap = priced("cheap", 1.0, vec![server_error(), refused()]);
    let dear = priced("dear", 9.0, vec![ScriptedAction::Answer("yes")]);
    let watch = LimitedBudget::of(2);
    let chain = resilient(vec![Arc::clone(&cheap), Arc::clone(&dear)]);
    chain.chat(&request(), &watch).await.unwrap();
    let expected = [
        "failed",
        "reserved cheap at 1",
        "failed",
        "reserved dear at 9",
        "answered",
    ];
    assert_eq!(*watch.told.lock().unwrap(), expected);
    let limits = |model: &ScriptedModel| model.asked_for.lock().unwrap().clone();
    assert_eq!(limits(&cheap), [Tokens(512), Tokens(100)]);
    assert_eq!(limits(&dear), [Tokens(100)]);
}

#[tokio::test(start_paused = true)]
async fn fallback_is_not_sent_if_the_budget_has_no_room() {
    let first = scripted("a", vec![server_error()]);
    let second = scripted("b", Vec::new());
    let watch = LimitedBudget::of(0);
    let error = resilient(vec![first, second])
        .chat(&request(), &watch)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ModelError::Server { status: 503, .. }),
        "{error}"
    );
    assert_eq!(*watch.told.lock().unwrap(), ["failed"]);
}

#[tokio::test(start_paused = true)]
async fn endless_answer_fails_at_the_timeout() {
    let policy = RetryPolicy {
        attempts: 1,
        ..RetryPolicy::default()
    };
    let endless = scripted("a", vec![ScriptedAction::Mumble(vec![50; 100])]);
    let error = ResilientModel::new(endless, Vec::new(), policy)
        .chat(&request(), &NoWatch)
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Timeout { after, .. } if after == policy.timeout));
}
