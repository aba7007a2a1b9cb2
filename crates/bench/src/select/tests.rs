use super::*;
use serde_json::json;
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Finish, Limits, ModelError, ModelProfile, Price,
};
use starling_models::testing::{profile, reply};

/// Returns the trajectory of a run with this stop reason and these fixed tests.
fn story(stop: serde_json::Value, fixed: &[&str]) -> String {
    let evidence = json!({
        "tests": {"tests": "known", "command": "t", "outcome": "passed", "passed": 1, "fixed": fixed,
            "broken": [], "still_failing": [], "details": "", "millis": 1},
        "diagnostics": {"diagnostics": "absent"}, "losses": [], "contract": [], "callers": [], "millis": 1,
    });
    let lines = [
        json!({"event": "proposal_checked", "proposal": 1, "evidence": evidence}),
        json!({"event": "run_finished", "stop_reason": stop, "applied": [], "diff": "", "summary": "",
            "tally": [], "spent": {"calls": 1, "prompt_tokens": 1, "cached_tokens": 0, "output_tokens": 1,
            "dollars": 0.0, "seconds": 1.0, "waiting_seconds": 0.0, "messages": 0, "agents": 1}}),
    ];
    let stamped = (0..)
        .zip(lines)
        .map(|(seq, event)| format!("{}\n", json!({"seq": seq, "at_ms": 1, "event": event})));
    stamped.collect()
}

fn settled() -> String {
    story(json!({"reason": "settled"}), &[])
}

fn patch(line: &str) -> String {
    format!("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+{line}\n")
}

fn sample(sample: usize, patch: &str, trajectory: String) -> Candidate {
    Candidate {
        sample,
        patch: patch.to_owned(),
        trajectory,
    }
}

async fn chosen(samples: &[Candidate]) -> usize {
    choose("It breaks.", samples, None).await.chosen
}

#[tokio::test]
async fn dissimilar_changes_are_ranked_by_the_tests_of_their_runs() {
    let failing = story(json!({"reason": "tests_fail", "failing": ["t"]}), &[]);
    let samples = [
        sample(1, &patch("b"), failing),
        sample(2, &patch("c"), settled()),
    ];
    assert_eq!(chosen(&samples).await, 2);
}

#[tokio::test]
async fn fixed_test_raises_the_score_of_a_change() {
    let mended = story(json!({"reason": "settled"}), &["t::one"]);
    let samples = [
        sample(1, &patch("b"), settled()),
        sample(2, &patch("c"), mended),
    ];
    assert_eq!(chosen(&samples).await, 2);
}

#[tokio::test]
async fn change_that_most_samples_agree_on_is_chosen() {
    let samples = [
        sample(1, &patch("b"), settled()),
        sample(2, &patch("c  =  1"), settled()),
        sample(3, &patch("c = 1"), settled()),
    ];
    assert_eq!(chosen(&samples).await, 2);
}

#[tokio::test]
async fn empty_change_is_chosen_only_if_all_samples_are_empty() {
    let failing = story(json!({"reason": "tests_fail", "failing": ["t"]}), &[]);
    let samples = [sample(1, "", settled()), sample(2, &patch("b"), failing)];
    assert_eq!(chosen(&samples).await, 2);
    assert_eq!(chosen(&samples[..1]).await, 1);
    // Among equal samples, the first is chosen.
    let equal = [
        sample(3, &patch("b"), settled()),
        sample(4, &patch("c"), settled()),
    ];
    assert_eq!(chosen(&equal).await, 3);
}

fn judge(verifier: Verifier, dollars: Option<f64>) -> Judge {
    let limits = Limits {
        dollars: dollars.map(Dollars),
        ..Limits::default()
    };
    Judge {
        verifier,
        ledger: Budget::new(limits),
    }
}

/// A model that gives every change the same score at a fixed cost.
struct ConstantScoreModel {
    profile: ModelProfile,
    asked: std::sync::atomic::AtomicUsize,
}

#[async_trait::async_trait]
impl ChatModel for ConstantScoreModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(&self, _: &ChatRequest, _: &dyn ChatWatch) -> Result<ChatReply, ModelError> {
        self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(ChatReply {
            cost: Dollars(0.2),
            ..reply("m", "SCORE: 5", Finish::Stop)
        })
    }
}

#[tokio::test]
async fn verifier_is_not_called_after_its_budget_is_spent() {
    let mut profile = profile("m");
    // A reply of 512 tokens can cost about half a dollar.
    profile.price = Some(Price {
        output: 1_000.0,
        ..Price::FREE
    });
    let points = std::sync::Arc::new(ConstantScoreModel {
        profile,
        asked: Default::default(),
    });
    let judge = judge(Verifier::Model(points.clone()), Some(0.75));
    let samples = [
        sample(1, &patch("b"), settled()),
        sample(2, &patch("c"), settled()),
        sample(3, &patch("d"), settled()),
    ];
    let choice = choose("It breaks.", &samples, Some(&judge)).await;
    let scores: Vec<Option<f64>> = choice.samples.values().map(|one| one.verifier).collect();
    assert_eq!(scores, [Some(0.5), Some(0.5), None]);
    assert_eq!(points.asked.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert_eq!(choice.dollars, Dollars(0.4));
    assert!(
        choice.trouble[0].contains("the budget is used up: $0.4000 of $0.7500"),
        "{choice:?}"
    );
}

#[tokio::test]
async fn unreachable_verifier_does_not_prevent_a_choice() {
    let away = judge(Verifier::Endpoint("http://127.0.0.1:1/".into()), None);
    let samples = [sample(1, &patch("b"), settled())];
    let choice = choose("It breaks.", &samples, Some(&away)).await;
    assert_eq!(choice.samples[&1].verifier, None);
    assert!(
        choice.trouble[0].starts_with("sample 1: http://127.0.0.1:1/"),
        "{choice:?}"
    );
}

#[tokio::test]
async fn equal_changes_are_sent_to_the_verifier_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let verifier = Verifier::Endpoint(format!("http://{}/", listener.local_addr().unwrap()));
    let judge = judge(verifier, None);
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&asked);
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                          content-length: 13\r\nconnection: close\r\n\r\n{\"score\":0.5}";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let samples = [
        sample(1, &patch("b"), settled()),
        sample(2, &patch("c"), settled()),
        sample(3, &patch("b"), settled()),
    ];
    let choice = choose("It breaks.", &samples, Some(&judge)).await;
    let scores: Vec<Option<f64>> = choice.samples.values().map(|one| one.verifier).collect();
    assert_eq!(scores, [Some(0.5); 3], "{choice:?}");
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 2);
}
