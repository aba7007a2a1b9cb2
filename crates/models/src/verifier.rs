//! Scores a change by its problem statement and its patch, with a model and a rubric or with a
//! scoring endpoint.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::http;
use starling_core::prompts::{Prompt, VerifyPrompt, VerifySystem};
use starling_core::{ChatModel, ChatRequest, ChatWatch, Message, Tokens, WorstCase};

/// Maximum time for one score.
const DEADLINE: Duration = Duration::from_secs(300);
/// Maximum length of the model's answer.
const LONGEST: Tokens = Tokens(2048);
/// Maximum length of the patch in bytes; a longer one is cut.
const MOST_BYTES: usize = 60_000;
/// Maximum length of an endpoint's answer in bytes.
const MOST_ANSWER_BYTES: usize = 1 << 20;
/// The maximum score of the rubric.
const MOST_POINTS: f64 = 10.0;

/// A source of scores.
#[derive(Clone)]
pub enum Verifier {
    Model(Arc<dyn ChatModel>),
    /// An endpoint that receives `{"problem", "patch"}` by POST and answers `{"score"}` with a
    /// number from 0 to 1.
    Endpoint(String),
}

/// The answer of a scoring endpoint.
#[derive(Deserialize)]
struct ScoreResponse {
    score: f64,
}

impl Verifier {
    /// Returns the maximum cost of the first request for a score. Returns `None` for an endpoint,
    /// whose cost is unknown.
    pub fn worst_case(&self, problem: &str, patch: &str) -> Option<WorstCase> {
        match self {
            Verifier::Model(model) => {
                let request = request(problem, patch, LONGEST);
                Some(WorstCase::of(&request, model.profile()))
            }
            Verifier::Endpoint(_) => None,
        }
    }

    /// Scores one change from 0 to 1. A model's answer is limited to `max_output` tokens; `watch`
    /// receives the cost.
    ///
    /// # Errors
    /// The reason why there is no score.
    pub async fn score(
        &self,
        problem: &str,
        patch: &str,
        max_output: Tokens,
        watch: &dyn ChatWatch,
    ) -> Result<f64, String> {
        let judged = async {
            match self {
                Verifier::Model(model) => {
                    let request = request(problem, patch, max_output);
                    by_model(model.as_ref(), &request, watch).await
                }
                Verifier::Endpoint(url) => by_endpoint(url, problem, patch).await,
            }
        };
        match tokio::time::timeout(DEADLINE, judged).await {
            Ok(score) => score,
            Err(_) => Err(format!("no score within {} s", DEADLINE.as_secs())),
        }
    }
}

fn request(problem: &str, patch: &str, max_output: Tokens) -> ChatRequest {
    let prompt = VerifyPrompt {
        problem: problem.to_owned(),
        patch: beginning(patch).to_owned(),
    };
    ChatRequest {
        conversation: "verifier".to_owned(),
        messages: vec![
            Message::System {
                text: VerifySystem {}.render(),
            },
            Message::User {
                text: prompt.render(),
            },
        ],
        tools: Vec::new(),
        max_output: max_output.min(LONGEST),
        temperature: 0.0,
        top_p: None,
        seed: None,
        beginning: String::new(),
        following: String::new(),
        stop: Vec::new(),
        format: starling_core::AnswerFormat::Free,
    }
}

async fn by_model(
    model: &dyn ChatModel,
    request: &ChatRequest,
    watch: &dyn ChatWatch,
) -> Result<f64, String> {
    let reply = model.chat(request, watch).await;
    watch.request_ended(reply.as_ref());
    let reply = reply.map_err(|error| error.to_string())?;
    points(&reply.text).ok_or("its answer has no line of the form `SCORE: POINTS`".to_owned())
}

async fn by_endpoint(url: &str, problem: &str, patch: &str) -> Result<f64, String> {
    let shown = shown(url);
    let said = |error: reqwest::Error| format!("{shown}: {}", error.without_url());
    let body = json!({"problem": problem, "patch": patch});
    let client = http::client().build().map_err(said)?;
    let answer = client.post(url).json(&body).send().await.map_err(said)?;
    let mut answer = answer.error_for_status().map_err(said)?;
    if answer.status().is_redirection() {
        return Err(format!(
            "{shown} redirects to another address; the change is sent only to the configured address"
        ));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(said)? {
        body.extend_from_slice(&chunk);
        if body.len() > MOST_ANSWER_BYTES {
            return Err(format!("{shown}: the answer is too long for a score"));
        }
    }
    let ScoreResponse { score } =
        serde_json::from_slice(&body).map_err(|error| format!("{shown}: {error}"))?;
    match (0.0..=1.0).contains(&score) {
        true => Ok(score),
        false => Err(format!("{shown}: the score {score} is not from 0 to 1")),
    }
}

/// Returns the address without parts that may be secret.
fn shown(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else {
        return "the verifier".to_owned();
    };
    // Both calls only fail for a URL without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// Parses the last line with a score and returns it as a fraction of the maximum.
fn points(text: &str) -> Option<f64> {
    let said = |line: &str| {
        let line = line.trim_matches([' ', '*', '`']);
        let points = line.strip_prefix("SCORE:")?;
        let points = points.trim_matches([' ', '*']);
        let points = points.split('/').next()?.trim();
        points
            .parse::<f64>()
            .ok()
            .filter(|points| (0.0..=MOST_POINTS).contains(points))
    };
    text.lines()
        .rev()
        .find_map(said)
        .map(|points| points / MOST_POINTS)
}

fn beginning(patch: &str) -> &str {
    &patch[..patch.floor_char_boundary(MOST_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn verifier_reads_the_score_from_the_last_score_line() {
        assert_eq!(
            points("Cause: 4\nSCORE: 3\nno, SCORE: 9\n**SCORE: 7/10**\n"),
            Some(0.7)
        );
        assert_eq!(points("SCORE: 0"), Some(0.0));
        assert_eq!(points("SCORE: 11"), None);
        assert_eq!(points("good"), None);
    }

    /// Starts an endpoint that answers one request with this body. Returns its address and the
    /// received request.
    async fn endpoint(body: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        answering("200 OK", body).await
    }

    /// Like [`endpoint`], with a status line and more header lines.
    async fn answering(
        head: &'static str,
        body: &'static str,
    ) -> (String, tokio::task::JoinHandle<String>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/score", listener.local_addr().unwrap());
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            let mut buffer = [0; 4096];
            while !asked.ends_with(b"}") {
                let count = stream.read(&mut buffer).await.unwrap();
                asked.extend_from_slice(&buffer[..count]);
            }
            let answer = format!(
                "HTTP/1.1 {head}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        (url, asked)
    }

    #[tokio::test]
    async fn verifier_endpoint_receives_the_problem_and_the_patch() {
        let (url, asked) = endpoint(r#"{"score": 0.25}"#).await;
        let score = by_endpoint(&url, "P", "D").await.unwrap();
        assert_eq!(score, 0.25);
        let asked = asked.await.unwrap();
        assert!(
            asked.contains(r#""problem":"P""#) && asked.contains(r#""patch":"D""#),
            "{asked}"
        );
    }

    #[tokio::test]
    async fn verifier_does_not_follow_redirects() {
        let (other, asked) = endpoint(r#"{"score": 1}"#).await;
        let head = format!("307 Go\r\nlocation: {other}").leak();
        let (url, _asked) = answering(head, "").await;
        let url = url.replace("http://", "http://me:hunter2@") + "?key=hunter3";
        let error = by_endpoint(&url, "P", "D").await.unwrap_err();
        assert!(
            error.contains("redirects") && !error.contains("hunter"),
            "{error}"
        );
        assert!(!asked.is_finished());
        asked.abort();
    }

    #[tokio::test]
    async fn verifier_rejects_an_oversized_answer() {
        let body = " ".repeat(MOST_ANSWER_BYTES + 1).leak();
        let (url, _asked) = endpoint(body).await;
        let error = by_endpoint(&url, "P", "D").await.unwrap_err();
        assert!(error.contains("too long"), "{error}");
    }

    #[tokio::test]
    async fn verifier_rejects_a_score_out_of_range() {
        let (url, _asked) = endpoint(r#"{"score": 7}"#).await;
        let error = by_endpoint(&url, "P", "D").await.unwrap_err();
        assert!(error.contains("not from 0 to 1"), "{error}");
    }
}
