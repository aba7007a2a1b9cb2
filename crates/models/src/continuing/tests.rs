use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::testing::{profile, reply, request};
use starling_core::{Dollars, Message, NoWatch, Tokens, ToolCall, WorstCase};

/// A deterministic pseudo-random generator (splitmix64).
struct TestRng(u64);

impl TestRng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// Whether a scripted model continues its answer exactly or with repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContinuationStyle {
    Exact,
    /// Sometimes repeats the unfinished line and sometimes opens the code fence again.
    Sloppy,
}

/// Whether a scripted answer is text or a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerForm {
    Text,
    Call,
}

/// A model that has one long answer and is cut after a random number of bytes.
struct AuthorModel {
    profile: ModelProfile,
    answer: String,
    form: AnswerForm,
    manners: ContinuationStyle,
    /// Minimum and maximum length of a part, in bytes.
    piece: (usize, usize),
    dice: Mutex<TestRng>,
}

impl AuthorModel {
    fn new(answer: &str, form: AnswerForm, manners: ContinuationStyle, seed: u64) -> Self {
        AuthorModel {
            profile: profile("author"),
            answer: answer.to_owned(),
            form,
            manners,
            piece: (512 * 3, 512 * 4),
            dice: Mutex::new(TestRng(seed)),
        }
    }

    /// Returns how many bytes of the answer the request quotes. The quote must match the answer.
    fn written(&self, request: &ChatRequest) -> usize {
        let Some(Message::Assistant { text, tool_calls }) = request.messages.iter().rev().nth(1)
        else {
            return 0;
        };
        assert!(tool_calls.is_empty());
        let text = match self.form {
            AnswerForm::Text => text.as_str(),
            AnswerForm::Call => text.split_once("arguments:\n").unwrap().1,
        };
        let same = text
            .bytes()
            .zip(self.answer.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let around = |text: &str| {
            let bytes = &text.as_bytes()[same.saturating_sub(80)..text.len().min(same + 80)];
            String::from_utf8_lossy(bytes).into_owned()
        };
        assert!(
            same == text.len(),
            "joined wrongly:\n{:?}\nis not\n{:?}",
            around(text),
            around(&self.answer),
        );
        text.len()
    }

    fn sloppy_start(&self, from: usize, dice: &mut TestRng) -> String {
        let before = &self.answer[..from];
        let mut start = String::new();
        if self.manners == ContinuationStyle::Exact || from == 0 {
            return start;
        }
        let partial = match self.form {
            AnswerForm::Text => before.rsplit('\n').next().unwrap(),
            AnswerForm::Call => before.rsplit("\\n").next().unwrap(),
        };
        let fenced = before.starts_with("```python\n") && !before.contains("\n```");
        if fenced && dice.one_in(3) {
            start.push_str("```python\n");
        }
        if self.form == AnswerForm::Call && dice.one_in(3) {
            start.push_str("```json\n");
        }
        if says_which_line(partial) && dice.one_in(2) {
            start.push_str(partial);
        }
        start
    }
}

/// Whether the start of a line is one that a reader would recognize.
fn says_which_line(partial: &str) -> bool {
    ["return", "self.", "def ", "value", "class "]
        .iter()
        .any(|word| partial.contains(word))
}

#[async_trait]
impl ChatModel for AuthorModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        _watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let from = self.written(request);
        let mut dice = self.dice.lock().unwrap();
        let start = self.sloppy_start(from, &mut dice);
        let (least, most) = self.piece;
        let mut to = (from + least + dice.below(most - least + 1)).min(self.answer.len());
        while !self.answer.is_char_boundary(to) {
            to += 1;
        }
        let piece = start + &self.answer[from..to];
        let finish = if to < self.answer.len() {
            Finish::Length
        } else {
            Finish::Stop
        };
        if self.form == AnswerForm::Call && from == 0 {
            let mut reply = reply("author", "I rewrite it.", finish);
            reply.tool_calls = vec![call("read", "{}"), call("propose", &piece)];
            return Ok(reply);
        }
        Ok(reply("author", &piece, finish))
    }
}

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: format!("id-{name}"),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

/// Returns source code that is difficult to join: repeated lines, rulers, tables, lines of one
/// word, unusual characters, code fences in a docstring.
fn source(lines: usize, dice: &mut TestRng) -> String {
    const LINES: [&str; 16] = [
        "        pass\n",
        "        pass\n",
        "        value += 1\n",
        "        value += 1\n",
        "        return value\n",
        "        self.total = self.total + value  # größer\n",
        "\n",
        "        # ----------------------------------------------\n",
        "==========================\n",
        "0  0  0  0  0  0  0  0\n",
        "        x = [[1, 1, 1, 1], [1, 1, 1, 1]]\n",
        "\"\"\"ha ha ha ha ha\"\"\"\n",
        "        ```\n",
        "        }}}}}}\n",
        "aaaaaaaaaaaaaaaaaaa\n",
        "        text = \"a\\nb\\\\n😀\\td\"\n",
    ];
    let mut text = "class Long:\n".to_owned();
    for number in 1..lines {
        if dice.one_in(12) {
            text.push_str(&format!("    def method_{number}(self, value):\n"));
        } else if dice.one_in(10) {
            text.push_str(&"        value += 1\n".repeat(1 + dice.below(30)));
        } else {
            text.push_str(LINES[dice.below(LINES.len())]);
        }
    }
    text
}

async fn rewrite(author: AuthorModel) -> ChatReply {
    ContinuingModel::new(author)
        .chat(&request(), &NoWatch)
        .await
        .unwrap()
}

#[tokio::test]
async fn long_texts_are_complete_after_many_continuations() {
    for lines in [700, 2000] {
        let mut text = "class Long:\n".to_owned();
        for number in 1..lines {
            text.push_str(match number % 7 {
                0 => "    def same(self):\n",
                1 | 2 => "        value += 1\n",
                3 => "\n",
                _ => "        return self.value\n",
            });
        }
        let reply = rewrite(AuthorModel::new(
            &text,
            AnswerForm::Text,
            ContinuationStyle::Exact,
            lines as u64,
        ))
        .await;
        assert_eq!(reply.finish, Finish::Stop);
        assert!(reply.text == text, "{lines} lines differ");
        assert!(reply.calls > 5);
    }
}

#[tokio::test]
async fn continued_text_does_not_depend_on_the_piece_length() {
    for seed in 0..300 {
        let mut dice = TestRng(seed);
        let text = source(100, &mut dice);
        let mut author = AuthorModel::new(&text, AnswerForm::Text, ContinuationStyle::Exact, seed);
        author.piece = (text.len() / 60, text.len() / 8);
        let reply = rewrite(author).await;
        assert!(reply.text == text, "seed {seed}");
        assert_eq!(reply.finish, Finish::Stop);
    }
}

#[tokio::test]
async fn repeated_lines_and_reopened_fences_are_removed_from_continuations() {
    for seed in 0..300 {
        let mut dice = TestRng(seed);
        let text = format!(
            "```python\n{}```\nThat is all.\n",
            source(100, &mut dice).replace("        ```\n", "")
        );
        let mut author = AuthorModel::new(&text, AnswerForm::Text, ContinuationStyle::Sloppy, seed);
        author.piece = (text.len() / 50, text.len() / 8);
        let reply = rewrite(author).await;
        assert!(reply.text == text, "seed {seed}");
    }
}

#[tokio::test]
async fn pieces_of_tool_arguments_are_joined_into_one_call() {
    for seed in 0..300 {
        let mut dice = TestRng(seed);
        let manners = if dice.one_in(2) {
            ContinuationStyle::Exact
        } else {
            ContinuationStyle::Sloppy
        };
        let arguments = json!({
            "symbol": "a.py::Long",
            "text": source(80, &mut dice),
            "reason": "because",
        })
        .to_string();
        let mut author = AuthorModel::new(&arguments, AnswerForm::Call, manners, seed);
        author.piece = (arguments.len() / 50, arguments.len() / 5);
        let reply = rewrite(author).await;
        assert_eq!(reply.text, "I rewrite it.");
        assert_eq!(reply.finish, Finish::ToolCalls);
        assert_eq!(reply.tool_calls.len(), 2, "seed {seed}");
        assert_eq!(reply.tool_calls[1].id, "id-propose");
        assert!(
            reply.tool_calls[1].arguments == arguments,
            "seed {seed} {manners:?}"
        );
    }
}

/// Returns these replies in order and records the requests.
struct ScriptedReplies {
    profile: ModelProfile,
    replies: Mutex<Vec<Result<ChatReply, ModelError>>>,
    requests: Mutex<Vec<ChatRequest>>,
}

impl ScriptedReplies {
    fn new(mut replies: Vec<Result<ChatReply, ModelError>>) -> Self {
        replies.reverse();
        ScriptedReplies {
            profile: profile("p"),
            replies: Mutex::new(replies),
            requests: Mutex::default(),
        }
    }

    fn texts(pieces: &[&str]) -> Self {
        let (last, cut) = pieces.split_last().unwrap();
        let cut = cut.iter().map(|text| Ok(reply("p", text, Finish::Length)));
        ScriptedReplies::new(cut.chain([Ok(reply("p", last, Finish::Stop))]).collect())
    }
}

#[async_trait]
impl ChatModel for ScriptedReplies {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        _watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        self.replies.lock().unwrap().pop().expect("no more replies")
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

async fn joined(pieces: &[&str]) -> String {
    let model = ContinuingModel::new(ScriptedReplies::texts(pieces));
    model.chat(&request(), &NoWatch).await.unwrap().text
}

#[tokio::test]
async fn complete_answer_is_returned_without_a_continuation() {
    let model = ContinuingModel::new(ScriptedReplies::texts(&["done"]));
    let reply = model.chat(&request(), &NoWatch).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.calls), ("done", 1));
}

#[tokio::test]
async fn usage_is_summed_and_each_continuation_is_notified() {
    let model = ContinuingModel::new(ScriptedReplies::texts(&["one ", "zwö", "lf"]));
    let notices = NoticeRecorder::default();
    let whole = model.chat(&request(), &notices).await.unwrap();
    assert_eq!(whole.text, "one zwölf");
    assert_eq!(whole.calls, 3);
    assert_eq!(whole.usage.prompt, Tokens(30));
    assert_eq!(whole.usage.cached, Tokens(12));
    assert_eq!(whole.usage.output, Tokens(9));
    assert_eq!(whole.cost, Dollars(1.5));
    let told = |joined| ModelNotice::Continued {
        model: "p".to_owned(),
        joined,
    };
    assert_eq!(*notices.0.lock().unwrap(), [told(4), told(7)]);
}

#[tokio::test]
async fn continuation_request_quotes_the_text_and_its_end() {
    let model = ContinuingModel::new(ScriptedReplies::texts(&["a = 1\nb", " = 2\n", "c = 3\n"]));
    model.chat(&request(), &NoWatch).await.unwrap();
    let requests = model.inner.requests.lock().unwrap();
    let asked = |number: usize| requests[number].messages[1..].to_vec();
    insta::assert_json_snapshot!([asked(1), asked(2)]);
    assert_eq!(requests[2].messages[0], requests[0].messages[0]);
    assert_eq!(requests[2].conversation, requests[0].conversation);
}

#[tokio::test]
async fn only_a_repeated_unfinished_line_is_removed() {
    assert_eq!(joined(&["x = 1\n", "x = 1\n"]).await, "x = 1\nx = 1\n");
    assert_eq!(
        joined(&["    pass", "\n    pass\n"]).await,
        "    pass\n    pass\n"
    );
    assert_eq!(joined(&["    retu", "    return 1"]).await, "    return 1");
    assert_eq!(joined(&["    retu", "return 1"]).await, "    return 1");
    assert_eq!(
        joined(&["a = 1\n    retu", "a = 1\n    return 1"]).await,
        "a = 1\n    return 1"
    );
    assert_eq!(joined(&["    ", "    pass"]).await, "        pass");
    assert_eq!(joined(&["-----", "-----\n"]).await, "----------\n");
    assert_eq!(joined(&["pass ", "pass\n"]).await, "pass pass\n");
    assert_eq!(joined(&["ha ", "ha ha\n"]).await, "ha ha ha\n");
    assert_eq!(joined(&["1, ", "1, 2"]).await, "1, 1, 2");
}

#[tokio::test]
async fn fence_around_the_continuation_of_bare_text_is_removed() {
    let text = joined(&[
        "def f():\n    x = ca",
        "```python\nll()\n",
        "    return x\n```",
    ])
    .await;
    assert_eq!(text, "def f():\n    x = call()\n    return x\n");
}

#[tokio::test]
async fn continued_text_can_end_in_tool_calls() {
    let mut last = reply("p", "it.", Finish::ToolCalls);
    last.tool_calls = vec![call("read", "{}")];
    let model = ContinuingModel::new(ScriptedReplies::new(vec![
        Ok(reply("p", "I read ", Finish::Length)),
        Ok(last),
    ]));
    let whole = model.chat(&request(), &NoWatch).await.unwrap();
    assert_eq!(whole.text, "I read it.");
    assert_eq!(whole.tool_calls.len(), 1);
    assert_eq!(whole.finish, Finish::ToolCalls);
}

fn cut_call(arguments: &str) -> ChatReply {
    let mut reply = reply("p", "", Finish::Length);
    reply.tool_calls = vec![call("propose", arguments)];
    reply
}

async fn arguments_of(replies: Vec<ChatReply>) -> (String, Finish) {
    let model = ContinuingModel::new(ScriptedReplies::new(replies.into_iter().map(Ok).collect()));
    let mut whole = model.chat(&request(), &NoWatch).await.unwrap();
    (whole.tool_calls.remove(0).arguments, whole.finish)
}

#[tokio::test]
async fn cut_call_can_be_continued_as_text_or_as_a_new_call() {
    let start = "{\"text\": \"ab";
    let rest = |text: &str| vec![cut_call(start), reply("p", text, Finish::Stop)];
    let whole = ("{\"text\": \"abc\"}".to_owned(), Finish::ToolCalls);
    assert_eq!(arguments_of(rest("c\"}")).await, whole);
    assert_eq!(arguments_of(rest("c\"}\n```\nDone.")).await, whole);
    assert_eq!(arguments_of(rest("```json\nc\"}\n```")).await, whole);
    assert_eq!(
        arguments_of(rest("{\"text\": \"abc\"}")).await,
        whole,
        "from the start"
    );
    assert_eq!(
        arguments_of(rest("{ \"text\" : 1 }")).await.0,
        "{ \"text\" : 1 }",
        "anew"
    );
    let mut again = cut_call("{\"text\": \"abc\"}");
    again.finish = Finish::ToolCalls;
    assert_eq!(
        arguments_of(vec![cut_call(start), again]).await,
        whole,
        "called again"
    );
    let nothing_yet = vec![
        cut_call(""),
        reply("p", "{\"text\": \"abc\"}", Finish::Stop),
    ];
    assert_eq!(arguments_of(nothing_yet).await, whole);
}

#[tokio::test]
async fn call_that_stays_incomplete_is_returned_with_its_partial_arguments() {
    let (arguments, finish) = arguments_of(vec![
        cut_call("{\"text\": \"ab"),
        reply("p", "c", Finish::Stop),
    ])
    .await;
    assert_eq!(
        (arguments.as_str(), finish),
        ("{\"text\": \"abc", Finish::ToolCalls)
    );
    let same = || cut_call("{\"text\": \"ab");
    let (arguments, finish) = arguments_of(vec![same(), same()]).await;
    assert_eq!(
        (arguments.as_str(), finish),
        ("{\"text\": \"ab", Finish::Length)
    );
}

#[tokio::test]
async fn answer_cut_between_two_calls_keeps_the_complete_calls_and_counts_as_cut() {
    let (arguments, finish) = arguments_of(vec![cut_call("{}")]).await;
    assert_eq!((arguments.as_str(), finish), ("{}", Finish::Length));
}

#[tokio::test]
async fn continuation_stops_after_an_empty_piece_or_the_maximum_count() {
    let endless = |text: &'static str| move |_| Ok(reply("p", text, Finish::Length));
    let mute = ContinuingModel::new(ScriptedReplies::new(
        [
            Ok(reply("p", "start", Finish::Length)),
            Ok(reply("p", "", Finish::Length)),
        ]
        .into(),
    ));
    let cut = mute.chat(&request(), &NoWatch).await.unwrap();
    assert_eq!((cut.text.as_str(), cut.finish), ("start", Finish::Length));

    let chatty = ContinuingModel::new(ScriptedReplies::new(
        (0..100).map(endless("and so on ")).collect(),
    ));
    let cut = chatty.chat(&request(), &NoWatch).await.unwrap();
    assert_eq!((cut.calls, cut.finish), (65, Finish::Length));

    let few = ContinuingModel::new(ScriptedReplies::new(
        (0..100).map(endless("and so on ")).collect(),
    ))
    .at_most(2);
    assert_eq!(few.chat(&request(), &NoWatch).await.unwrap().calls, 3);

    let thoughtful = ContinuingModel::new(ScriptedReplies::new(vec![Ok(reply(
        "p",
        "",
        Finish::Length,
    ))]));
    assert_eq!(
        thoughtful.chat(&request(), &NoWatch).await.unwrap().calls,
        1
    );
}

#[tokio::test]
async fn failed_continuation_returns_the_partial_answer_as_cut() {
    let lost = || ModelError::Transport {
        model: "p".to_owned(),
        message: "lost".to_owned(),
    };
    let model = ContinuingModel::new(ScriptedReplies::new(vec![
        Ok(reply("p", "half", Finish::Length)),
        Err(lost()),
    ]));
    let cut = model.chat(&request(), &NoWatch).await.unwrap();
    assert_eq!((cut.text.as_str(), cut.finish), ("half", Finish::Length));
    let first = ContinuingModel::new(ScriptedReplies::new(vec![Err(lost())]));
    assert_eq!(first.chat(&request(), &NoWatch).await, Err(lost()));
}

/// A budget with room for a limited number of continuations, each with a shorter answer.
struct LimitedBudget(std::sync::Mutex<u32>);

#[async_trait]
impl ChatWatch for LimitedBudget {
    fn delta(&self, _text: &str) {}

    fn notice(&self, _notice: ModelNotice) {}

    async fn reserve(&self, next: &WorstCase) -> Option<Tokens> {
        let mut left = self.0.lock().unwrap();
        *left = left.checked_sub(1)?;
        Some(next.output.min(Tokens(100)))
    }
}

#[tokio::test]
async fn continuation_is_not_sent_if_the_budget_has_no_room() {
    let endless = |_| Ok(reply("p", "and so on ", Finish::Length));
    let model = ContinuingModel::new(ScriptedReplies::new((0..100).map(endless).collect()));
    let cut = model
        .chat(&request(), &LimitedBudget(2.into()))
        .await
        .unwrap();
    assert_eq!((cut.calls, cut.finish), (3, Finish::Length));
}
