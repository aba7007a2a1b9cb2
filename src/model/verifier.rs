//! Judges a change by the problem and by itself: a model with a rubric, or an endpoint that gives a score.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::ports::{ChatModel, ChatRequest, Dollars, Message, NoWatch, Tokens};
use crate::prompts::{Prompt, VerifyPrompt, VerifySystem};

/// How long one judgement may take.
const DEADLINE: Duration = Duration::from_secs(300);
/// The longest answer that is asked for.
const LONGEST: Tokens = Tokens(2048);
/// Of a longer change, the beginning is read.
const MOST_BYTES: usize = 60_000;
/// What the rubric gives at most.
const MOST_POINTS: f64 = 10.0;

/// Who gives scores.
#[derive(Clone)]
pub enum Verifier {
    Model(Arc<dyn ChatModel>),
    /// Takes `{"problem", "patch"}` by POST and answers `{"score"}`, from 0 to 1.
    Endpoint(String),
}

/// A score from 0 to 1, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    pub score: f64,
    pub dollars: Dollars,
}

#[derive(Deserialize)]
struct Answer {
    score: f64,
}

impl Verifier {
    /// Judges one change.
    ///
    /// # Errors
    /// There is no score, and why.
    pub async fn score(&self, problem: &str, patch: &str) -> Result<Score, String> {
        let judged = async {
            match self {
                Verifier::Model(model) => by_model(model.as_ref(), problem, patch).await,
                Verifier::Endpoint(url) => by_endpoint(url, problem, patch).await,
            }
        };
        match tokio::time::timeout(DEADLINE, judged).await {
            Ok(score) => score,
            Err(_) => Err(format!("no score within {} s", DEADLINE.as_secs())),
        }
    }
}

async fn by_model(model: &dyn ChatModel, problem: &str, patch: &str) -> Result<Score, String> {
    let prompt = VerifyPrompt {
        problem: problem.to_owned(),
        patch: beginning(patch).to_owned(),
    };
    let request = ChatRequest {
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
        max_output: LONGEST.min(model.profile().max_output),
        temperature: 0.0,
        seed: None,
        stop: Vec::new(),
    };
    let reply = model
        .chat(&request, &NoWatch)
        .await
        .map_err(|error| error.to_string())?;
    let score = points(&reply.text).ok_or("its answer has no line with SCORE: and points")?;
    Ok(Score {
        score,
        dollars: reply.cost,
    })
}

async fn by_endpoint(url: &str, problem: &str, patch: &str) -> Result<Score, String> {
    let said = |error: reqwest::Error| format!("{url}: {error}");
    let body = json!({"problem": problem, "patch": patch});
    let request = reqwest::Client::new().post(url).json(&body);
    let answer = request.send().await.map_err(said)?;
    let answer = answer.error_for_status().map_err(said)?;
    let Answer { score } = answer.json().await.map_err(said)?;
    match (0.0..=1.0).contains(&score) {
        true => Ok(Score {
            score,
            dollars: Dollars(0.0),
        }),
        false => Err(format!("{url}: the score {score} is not from 0 to 1")),
    }
}

/// The last line with points, as a share of the most.
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
    fn the_last_line_with_points_counts() {
        assert_eq!(
            points("Cause: 4\nSCORE: 3\nno, SCORE: 9\n**SCORE: 7/10**\n"),
            Some(0.7)
        );
        assert_eq!(points("SCORE: 0"), Some(0.0));
        assert_eq!(points("SCORE: 11"), None);
        assert_eq!(points("good"), None);
    }

    /// Answers one request with this body; the address, and what was asked.
    async fn endpoint(body: &'static str) -> (String, tokio::task::JoinHandle<String>) {
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
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        (url, asked)
    }

    #[tokio::test]
    async fn an_endpoint_is_given_the_problem_and_the_change() {
        let (url, asked) = endpoint(r#"{"score": 0.25}"#).await;
        let score = Verifier::Endpoint(url).score("P", "D").await.unwrap();
        assert_eq!(score.score, 0.25);
        let asked = asked.await.unwrap();
        assert!(
            asked.contains(r#""problem":"P""#) && asked.contains(r#""patch":"D""#),
            "{asked}"
        );
    }

    #[tokio::test]
    async fn a_score_that_is_none_is_told() {
        let (url, _asked) = endpoint(r#"{"score": 7}"#).await;
        let error = Verifier::Endpoint(url).score("P", "D").await.unwrap_err();
        assert!(error.contains("not from 0 to 1"), "{error}");
    }
}
