use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;
use crate::model::testing::{profile, reply, request};
use crate::ports::{Finish, NoWatch};
use tokio::time::Instant;

/// What a scripted model does with one request.
enum Act {
    Answer(&'static str),
    Fail(ModelError),
    /// Says each piece after so many seconds, then nothing more.
    Mumble(Vec<u64>),
}

struct Scripted {
    profile: ModelProfile,
    acts: Mutex<VecDeque<Act>>,
}

fn scripted(name: &str, acts: Vec<Act>) -> Arc<Scripted> {
    Arc::new(Scripted {
        profile: profile(name),
        acts: Mutex::new(acts.into()),
    })
}

#[async_trait]
impl ChatModel for Scripted {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        _request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let act = self.acts.lock().unwrap().pop_front().expect("no more acts");
        match act {
            Act::Answer(text) => Ok(reply(&self.profile.name, text, Finish::Stop)),
            Act::Fail(error) => Err(error),
            Act::Mumble(waits) => {
                for wait in waits {
                    tokio::time::sleep(Duration::from_secs(wait)).await;
                    watch.delta("mumble ");
                }
                std::future::pending().await
            }
        }
    }
}

#[derive(Default)]
struct Notices(Mutex<Vec<ModelNotice>>);

impl ChatWatch for Notices {
    fn delta(&self, _text: &str) {}
    fn notice(&self, notice: ModelNotice) {
        self.0.lock().unwrap().push(notice);
    }
}

impl Notices {
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

fn server_error() -> Act {
    Act::Fail(ModelError::Server {
        model: "m".to_owned(),
        status: 503,
        message: "busy".to_owned(),
    })
}

fn refused() -> Act {
    Act::Fail(ModelError::Refused {
        model: "m".to_owned(),
        status: 401,
        message: "no".to_owned(),
    })
}

fn resilient(models: Vec<Arc<Scripted>>) -> Resilient {
    let mut models = models.into_iter().map(|model| model as Arc<dyn ChatModel>);
    let first = models.next().unwrap();
    Resilient::new(first, models.collect(), Policy::default()).with_seed(1)
}

#[tokio::test(start_paused = true)]
async fn a_passing_trouble_is_retried_and_counted() {
    let model = scripted(
        "a",
        vec![server_error(), server_error(), Act::Answer("yes")],
    );
    let notices = Notices::default();
    let reply = resilient(vec![model])
        .chat(&request(), &notices)
        .await
        .unwrap();
    assert_eq!(reply.text, "yes");
    assert_eq!(reply.calls, 3);
    assert_eq!(notices.lines(), ["a 2", "a 3"]);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_and_the_next_model_follows() {
    let first = scripted("a", (0..4).map(|_| server_error()).collect());
    let second = scripted("b", vec![refused()]);
    let third = scripted("c", vec![Act::Answer("at last")]);
    let notices = Notices::default();
    let reply = resilient(vec![first, second, third])
        .chat(&request(), &notices)
        .await
        .unwrap();
    assert_eq!((reply.model.as_str(), reply.calls), ("c", 6));
    assert_eq!(notices.lines(), ["a 2", "a 3", "a 4", "a -> b", "b -> c"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_asked_again() {
    let notices = Notices::default();
    let error = resilient(vec![scripted("a", vec![refused()])])
        .chat(&request(), &notices)
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Refused { .. }));
    assert!(notices.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_named_wait_is_waited() {
    let limited = Act::Fail(ModelError::RateLimited {
        model: "a".to_owned(),
        retry_after: Some(Duration::from_secs(20)),
    });
    let start = Instant::now();
    resilient(vec![scripted("a", vec![limited, Act::Answer("yes")])])
        .chat(&request(), &NoWatch)
        .await
        .unwrap();
    let waited = start.elapsed();
    assert!((20..=21).contains(&waited.as_secs()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_left_after_the_timeout() {
    let start = Instant::now();
    let policy = Policy {
        attempts: 1,
        ..Policy::default()
    };
    let mute = scripted("a", vec![Act::Mumble(Vec::new())]);
    let error = Resilient::new(mute, Vec::new(), policy)
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
async fn a_model_that_falls_silent_is_left_after_the_idle_timeout() {
    let start = Instant::now();
    let policy = Policy {
        attempts: 1,
        ..Policy::default()
    };
    // The first word may take its time; the pauses after it may not.
    let tired = scripted("a", vec![Act::Mumble(vec![200, 100, 100])]);
    let error = Resilient::new(tired, Vec::new(), policy)
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
async fn an_answer_that_was_lost_in_the_middle_is_counted() {
    let model = scripted("a", vec![Act::Mumble(vec![1]), Act::Answer("yes")]);
    let answered = resilient(vec![model])
        .chat(&request(), &NoWatch)
        .await
        .unwrap();
    let whole = reply("a", "yes", Finish::Stop);
    assert_eq!(answered.calls, 2);
    assert_eq!(
        answered.usage.output,
        whole.usage.output + Tokens::estimate("mumble ")
    );
    assert!(answered.usage.prompt > whole.usage.prompt);
}

#[tokio::test(start_paused = true)]
async fn an_endless_answer_is_cut_at_the_timeout() {
    let policy = Policy {
        attempts: 1,
        ..Policy::default()
    };
    let endless = scripted("a", vec![Act::Mumble(vec![50; 100])]);
    let error = Resilient::new(endless, Vec::new(), policy)
        .chat(&request(), &NoWatch)
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Timeout { after, .. } if after == policy.timeout));
}
