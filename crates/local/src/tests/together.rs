//! Tests of requests that are answered at the same time.

use std::sync::Arc;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

use super::*;

/// Sends the number of its request for each piece of the answer.
struct NumberedDeltas(usize, UnboundedSender<usize>);

impl ChatWatch for NumberedDeltas {
    fn delta(&self, _: &str) {
        let _ = self.1.send(self.0);
    }

    fn notice(&self, _: ModelNotice) {}
}

/// Sends requests to a model, and records the request number of each piece of an answer.
struct Conversations {
    model: Arc<LocalModel>,
    seen: Vec<usize>,
    sender: UnboundedSender<usize>,
    deltas: UnboundedReceiver<usize>,
}

impl Conversations {
    fn new(model: LocalModel) -> Self {
        let (sender, deltas) = mpsc::unbounded_channel();
        Self {
            model: Arc::new(model),
            seen: Vec::new(),
            sender,
            deltas,
        }
    }

    fn ask(&self, number: usize, request: ChatRequest) -> JoinHandle<ChatReply> {
        let watch = NumberedDeltas(number, self.sender.clone());
        let model = self.model.clone();
        tokio::spawn(async move { model.chat(&request, &watch).await.unwrap() })
    }

    /// Waits until the answer to this request has `pieces` more pieces.
    async fn wait_for(&mut self, number: usize, mut pieces: usize) {
        while pieces > 0 {
            let next = tokio::time::timeout(Duration::from_secs(60), self.deltas.recv());
            let next = next.await.expect("the answer has to go on").unwrap();
            self.seen.push(next);
            pieces -= usize::from(next == number);
        }
    }

    /// Returns the request number of each piece, in the order of arrival.
    fn seen(mut self) -> Vec<usize> {
        while let Ok(next) = self.deltas.try_recv() {
            self.seen.push(next);
        }
        self.seen
    }
}

fn tiny(directory: &Path, window: u32) -> LocalModel {
    let recipe = TestModelRecipe {
        window,
        ..TestModelRecipe::default()
    };
    open(&recipe, directory)
}

/// Returns several requests. Some share all or part of a prompt, and one has a long prompt.
fn requests() -> Vec<ChatRequest> {
    let long = "a long prompt ".repeat(25);
    let texts = [
        "hello", "other", "good bye", "other", &long, "hello", "help",
    ];
    let texts = texts.iter().chain(["one", "two", "three", "four"].iter());
    let request = |(number, text): (usize, &&str)| ChatRequest {
        conversation: format!("conversation {}", number % 7),
        temperature: [0.0, 1.0, 0.3][number % 3],
        seed: Some(number as u64),
        ..request(text, if number == 0 { 500 } else { 20 })
    };
    texts.enumerate().map(request).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_requests_get_the_same_answers_as_single_requests() {
    const CANCELLED: usize = 2;
    let directory = TempDir::new().unwrap();
    let requests = requests();
    let mut all = Conversations::new(tiny(directory.path(), 1024));
    let mut answers = vec![(0, all.ask(0, requests[0].clone()))];
    all.wait_for(0, 5).await;
    let endless = ChatRequest {
        max_output: Tokens(800),
        ..requests[CANCELLED].clone()
    };
    let cancelled = all.ask(CANCELLED, endless);
    answers.push((1, all.ask(1, requests[1].clone())));
    all.wait_for(CANCELLED, 3).await;
    cancelled.abort();
    // Together, these are more requests than the model answers at once.
    for (number, request) in requests.iter().enumerate().skip(CANCELLED + 1) {
        answers.push((number, all.ask(number, request.clone())));
    }
    for (number, answer) in answers {
        let reply = answer.await.unwrap();
        assert!(reply.usage.output > Tokens(0));
        if gpu::open().is_ok() {
            // The number of tokens in a step changes the rounding.
            continue;
        }
        let own = TempDir::new().unwrap();
        let alone = tiny(own.path(), 1024);
        let alone = chat(&alone, &requests[number]).await;
        assert_eq!(reply.text, alone.text, "request {number}");
        let ends = [&reply, &alone].map(|reply| (reply.finish, reply.usage.output));
        assert_eq!(ends[0], ends[1], "request {number}");
    }
    let seen = all.seen();
    let last = seen.iter().rposition(|number| *number == 0).unwrap();
    for number in [1, CANCELLED, 3] {
        let first = seen.iter().position(|other| *other == number).unwrap();
        assert!(first < last, "request {number} had to wait: {seen:?}");
    }
    let after = &seen[seen.iter().position(|number| *number == 3).unwrap()..];
    let late = after.iter().filter(|number| **number == CANCELLED).count();
    assert!(late < 10, "{late} pieces for nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_continues_while_a_long_prompt_is_read() {
    let directory = TempDir::new().unwrap();
    let mut all = Conversations::new(tiny(directory.path(), 4096));
    let endless = ChatRequest {
        temperature: 1.0,
        seed: Some(1),
        ..request("hello", 4000)
    };
    let first = all.ask(0, endless);
    all.wait_for(0, 3).await;
    let parts = 6;
    let long = ChatRequest {
        conversation: "b".into(),
        ..request(&"x".repeat(parts * 128), 1)
    };
    let second = tokio::time::timeout(Duration::from_secs(60), all.ask(1, long));
    let reply = second.await.expect("the first answer is too long").unwrap();
    assert_eq!(reply.usage.output, Tokens(1));
    first.abort();
    let pieces = all.seen().len();
    assert!(pieces > 3 + parts / 2, "{pieces} pieces");
}
