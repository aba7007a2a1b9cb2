use std::sync::{Arc, Mutex};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::early::TOGETHER;
use super::*;
use crate::cli::input::{READING, WORD};
use crate::cli::view::prompt::CHOICES;
use crate::cli::view::text::Paint;
use starling_core::{IntentView, ProposalView};
use starling_headless::testing::{
    RunScript, editor, finished, folder, review_asked, said, symbol, task,
};
use starling_swarm::{ActorId, Ending, Event, ProposalId, Spent, StopReason};

/// A writer that collects the output for a test.
#[derive(Clone, Default)]
struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CapturedOutput {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Asks about an intent and then about two proposals, unless cancelled.
async fn asks(scene: RunScript) {
    let view = |id| ProposalView {
        id,
        symbol: symbol("a.py::f"),
        symbols: vec![symbol("a.py::f")],
        reason: String::new(),
        diff: String::new(),
        evidence: String::new(),
        version: None,
    };
    let intent = IntentView {
        symbol: symbol("a.py::f"),
        intent: "rename".to_owned(),
        reason: String::new(),
    };
    let approver = &scene.outside.approver;
    let asking = async {
        let verdict = approver.intent(intent).await;
        scene.log.event(Event::IntentReviewed {
            agent: ActorId::Agent(symbol("a.py::f")),
            by: ActorId::User,
            verdict,
        });
        for id in [1, 2] {
            scene.log.event(review_asked(id, "a.py::f"));
            let verdict = approver.proposal(view(id)).await.verdict().unwrap();
            scene.log.event(Event::ProposalReviewed {
                proposal: ProposalId(id),
                by: ActorId::User,
                verdict,
            });
        }
    };
    tokio::select! {
        () = asking => scene.log.event(finished(StopReason::Settled)),
        () = scene.cancel.cancelled() => scene.log.event(finished(StopReason::Cancelled)),
    }
}

async fn shown(inputs: &[Input], screen: fn(CapturedOutput) -> Screen) -> (Outcome, String) {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let (tell, heard) = Inputs::channel();
    let paper = CapturedOutput::default();
    let viewer = Viewer::new(&editor, screen(paper.clone()));
    let mut show = std::pin::pin!(viewer.show(folder.path(), task("x"), heard));
    // Give each answer when a new question appears.
    for (asked, input) in inputs.iter().enumerate() {
        let questions =
            |text: String| text.matches(CHOICES).count() + text.matches("\"intent\"").count();
        while questions(paper.text()) <= asked {
            assert!(futures::poll!(&mut show).is_pending(), "it ended early");
            tokio::task::yield_now().await;
        }
        tell.send(input.clone()).unwrap();
    }
    let outcome = show.await.unwrap();
    (outcome, paper.text())
}

fn lines(paper: CapturedOutput) -> Screen {
    Screen::lines(Box::new(paper), Paint::Plain)
}

#[tokio::test]
async fn entered_lines_answer_the_questions_in_order() {
    let say = |text: &str| Input::Line(text.to_owned());
    let (outcome, text) = shown(&[say("a"), say("r too long"), say("s shorter")], lines).await;
    assert_eq!(outcome, Outcome::Settled);
    let verdicts: Vec<&str> = text.lines().filter(|line| line.starts_with('•')).collect();
    let expected = [
        "• a.py::f accepted by you",
        "• #1 rejected by you: too long",
        "• #2 steered by you: shorter",
    ];
    assert_eq!(verdicts, expected, "{text}");
}

#[tokio::test]
async fn lines_entered_early_are_kept_for_their_questions() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let (tell, heard) = Inputs::channel();
    for early in ["y", "r too long", "a"] {
        tell.send(Input::Line(early.to_owned())).unwrap();
    }
    tell.send(Input::Closed).unwrap();
    let paper = CapturedOutput::default();
    let viewer = Viewer::new(&editor, lines(paper.clone()));
    let outcome = viewer.show(folder.path(), task("x"), heard).await.unwrap();
    assert_eq!(outcome, Outcome::Settled);
    let text = paper.text();
    let told = |line: &&str| line.starts_with('•') || *line == CHOICES;
    let expected = [
        CHOICES,
        "• a.py::f accepted by you",
        CHOICES,
        "• #1 rejected by you: too long",
        CHOICES,
        "• #2 accepted by you",
    ];
    assert_eq!(
        text.lines().filter(told).collect::<Vec<_>>(),
        expected,
        "{text}"
    );
}

#[tokio::test]
async fn line_typed_before_its_question_accepts_nothing() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let (tell, mut heard) = Inputs::channel();
    heard.typed = true;
    for early in ["a", "y", "r not this", "accept", "s shorter", "r no"] {
        tell.send(Input::Line(early.to_owned())).unwrap();
    }
    let paper = CapturedOutput::default();
    let viewer = Viewer::new(&editor, lines(paper.clone()));
    let outcome = viewer.show(folder.path(), task("x"), heard).await.unwrap();
    assert_eq!(outcome, Outcome::Settled);
    let text = paper.text();
    let told = |line: &&str| line.starts_with('•') || *line == EARLY_LINE;
    let expected = [
        EARLY_LINE,
        EARLY_LINE,
        EARLY_LINE,
        "• a.py::f rejected by you: not this",
        "• #1 steered by you: shorter",
        "• #2 rejected by you: no",
    ];
    let mut said: Vec<&str> = text.lines().filter(told).collect();
    said.sort_by_key(|line| line.starts_with('•'));
    assert_eq!(said, expected, "{text}");
}

#[tokio::test]
async fn line_begun_before_its_question_accepts_nothing_when_enter_follows() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let paper = CapturedOutput::default();
    let (mut viewer, run) = asked(&editor, &paper).await;
    viewer.are_lines_typed = true;
    age(&mut viewer);
    let early = |text: &str| Input::EarlyLine(text.to_owned());
    viewer.input(early("a"), &run).await.unwrap();
    viewer.take_lines(&run).await.unwrap();
    assert_eq!(viewer.state.reviews.len(), 1, "{}", paper.text());
    assert_eq!(paper.text().matches(EARLY_LINE).count(), 1);
    // Other answers may be begun early.
    viewer.input(early("r not this"), &run).await.unwrap();
    viewer.take_lines(&run).await.unwrap();
    assert!(viewer.state.reviews.is_empty(), "{}", paper.text());
}

#[tokio::test]
async fn quit_line_takes_effect_after_the_earlier_lines() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let (tell, heard) = Inputs::channel();
    for early in ["a", "q"] {
        tell.send(Input::Line(early.to_owned())).unwrap();
    }
    let paper = CapturedOutput::default();
    let viewer = Viewer::new(&editor, lines(paper.clone()));
    let outcome = viewer.show(folder.path(), task("x"), heard).await.unwrap();
    assert_eq!(outcome, Outcome::NotSettled);
    let text = paper.text();
    assert!(text.contains("• a.py::f accepted by you"), "{text}");
    assert_eq!(
        text.matches(CHOICES).count(),
        2,
        "the second was asked: {text}"
    );
}

#[test]
fn outcome_of_a_run_follows_from_its_proof() {
    let of = |proof: Option<Proof>, stop_reason| {
        let ending = proof.map(|proof| Ending::new(proof, ""));
        outcome(&Finished {
            stop_reason,
            applied: Vec::new(),
            diff: String::new(),
            spent: Spent::default(),
            ending,
            waiting: 0,
        })
    };
    for (proof, expected) in [
        (Proof::Proven, Outcome::Settled),
        (Proof::AsBefore, Outcome::Settled),
        (Proof::NothingToProve, Outcome::Settled),
        (Proof::Unproven, Outcome::Unproven),
        (Proof::NotDone, Outcome::NotSettled),
    ] {
        assert_eq!(of(Some(proof), StopReason::Settled), expected, "{proof:?}");
    }
    assert_eq!(of(None, StopReason::Settled), Outcome::Settled);
    assert_eq!(of(None, StopReason::Cancelled), Outcome::NotSettled);
}

#[tokio::test]
async fn interrupt_cancels_the_run() {
    let (outcome, text) = shown(&[Input::Interrupt], lines).await;
    assert_eq!(outcome, Outcome::NotSettled);
    assert!(
        text.contains("Stopping") && text.contains("cancelled"),
        "{text}"
    );
}

#[tokio::test]
async fn run_with_a_question_is_stopped_if_stdin_is_closed() {
    let (outcome, text) = shown(&[Input::Closed], lines).await;
    assert_eq!(outcome, Outcome::NotSettled);
    assert!(text.contains("cancelled"), "{text}");
}

#[tokio::test]
async fn json_output_has_one_event_per_line_and_ends_with_run_finished() {
    let json = |paper| Screen::json(Box::new(paper));
    let (_, text) = shown(&[Input::Line("q".to_owned())], json).await;
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.last().unwrap();
    assert_eq!(last["event"]["event"], "run_finished");
    assert_eq!(last["event"]["stop_reason"]["reason"], "cancelled");
    assert!(last["event"]["spent"].is_object() && last["event"]["diff"].is_string());
}

fn key(code: KeyCode) -> Input {
    Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Creates a viewer that shows its first question.
async fn asked<'e>(
    editor: &'e HeadlessEditor,
    paper: &CapturedOutput,
) -> (Viewer<'e>, HeadlessRun) {
    let mut run = editor.run(task("x")).await.unwrap();
    let mut viewer = Viewer::new(editor, lines(paper.clone()));
    while viewer.state.reviews.is_empty() {
        let note = run.notes.recv().await.unwrap();
        viewer.note(&note).unwrap();
    }
    viewer.ask().unwrap();
    (viewer, run)
}

#[tokio::test]
async fn keys_pressed_right_after_a_question_appears_are_ignored() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let (mut viewer, run) = asked(&editor, &CapturedOutput::default()).await;
    viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
    assert_eq!(viewer.state.reviews.len(), 1, "too soon");
    age(&mut viewer);
    viewer.input(Input::Resized, &run).await.unwrap();
    viewer
        .input(Input::Pasted("a".to_owned()), &run)
        .await
        .unwrap();
    assert_eq!(viewer.state.reviews.len(), 1, "nobody pressed a key");
    viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
    assert!(viewer.state.reviews.is_empty());
}

/// Moves time forward so that keys are no longer too early.
fn age(viewer: &mut Viewer<'_>) {
    viewer.asked_at -= READING;
    viewer.dropped_at = viewer.dropped_at.map(|at| at - WORD);
}

#[tokio::test]
async fn keys_right_after_an_ignored_key_are_ignored_too() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let paper = CapturedOutput::default();
    let (mut viewer, run) = asked(&editor, &paper).await;
    viewer.input(key(KeyCode::Char('n')), &run).await.unwrap();
    // By now the user may have read the question, but these keys belong to the word whose first key was
    // ignored.
    viewer.asked_at -= READING;
    for code in [
        KeyCode::Char('o'),
        KeyCode::Char('a'),
        KeyCode::Char('r'),
        KeyCode::Enter,
    ] {
        viewer.input(key(code), &run).await.unwrap();
    }
    assert_eq!(viewer.state.reviews.len(), 1, "nothing was answered");
    assert_eq!(viewer.prompt, Prompt::Choosing);
    assert_eq!(paper.text().matches(EARLY).count(), 1, "once for a burst");
    age(&mut viewer);
    viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
    assert!(viewer.state.reviews.is_empty());
}

#[tokio::test]
async fn rejection_reason_on_its_own_line_is_never_read_as_accept() {
    let say = |text: &str| Input::Line(text.to_owned());
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let (tell, heard) = Inputs::channel();
    for line in [
        "r",
        "",
        "r",
        "a plain x",
        "a, but shorter",
        "s",
        "y",
        "r no",
    ] {
        tell.send(say(line)).unwrap();
    }
    tell.send(Input::Closed).unwrap();
    let paper = CapturedOutput::default();
    let viewer = Viewer::new(&editor, lines(paper.clone()));
    viewer.show(folder.path(), task("x"), heard).await.unwrap();
    let text = paper.text();
    let verdicts: Vec<&str> = text.lines().filter(|line| line.starts_with('•')).collect();
    let expected = [
        "• a.py::f rejected by you: a plain x",
        "• #1 steered by you: y",
        "• #2 rejected by you: no",
    ];
    assert_eq!(verdicts, expected, "{text}");
}

#[tokio::test]
async fn rejection_reason_started_early_stays_a_reason() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let paper = CapturedOutput::default();
    let (mut viewer, run) = asked(&editor, &paper).await;
    viewer.input(key(KeyCode::Char('r')), &run).await.unwrap();
    age(&mut viewer);
    viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
    assert_eq!(viewer.state.reviews.len(), 1);
    assert_eq!(viewer.prompt, Prompt::Rejecting("a".to_owned()));
}

#[tokio::test]
async fn burst_of_keys_does_not_accept_a_proposal() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let paper = CapturedOutput::default();
    let (mut viewer, run) = asked(&editor, &paper).await;
    age(&mut viewer);
    let keys = |text: &str| {
        let keys = text.chars().map(KeyCode::Char);
        Input::Keys(
            keys.map(|code| KeyEvent::new(code, KeyModifiers::NONE))
                .collect(),
        )
    };
    viewer.input(keys("a"), &run).await.unwrap();
    viewer.input(keys("xa"), &run).await.unwrap();
    viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
    assert_eq!(viewer.state.reviews.len(), 1, "{}", paper.text());
    assert_eq!(paper.text().matches(TOGETHER).count(), 1);
    age(&mut viewer);
    viewer.input(keys("rad"), &run).await.unwrap();
    assert_eq!(viewer.prompt, Prompt::Rejecting("ad".to_owned()));
}

#[tokio::test]
async fn early_key_does_not_answer_with_the_kept_text() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let (mut viewer, run) = asked(&editor, &CapturedOutput::default()).await;
    viewer.prompt = Prompt::Kept("shorter".to_owned());
    viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
    assert_eq!(viewer.state.reviews.len(), 1);
    assert_eq!(viewer.prompt, Prompt::Kept("shorter".to_owned()));
}

#[tokio::test]
async fn control_c_stops_the_run_even_right_after_a_question() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let (mut viewer, run) = asked(&editor, &CapturedOutput::default()).await;
    viewer.input(key(KeyCode::Char('r')), &run).await.unwrap();
    let stop = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    viewer.input(Input::Key(stop), &run).await.unwrap();
    assert!(viewer.stopping);
}

#[tokio::test]
async fn rejection_reason_can_be_typed_and_pasted() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let paper = CapturedOutput::default();
    let (mut viewer, mut run) = asked(&editor, &paper).await;
    viewer.asked_at -= READING;
    viewer.input(key(KeyCode::Char('r')), &run).await.unwrap();
    viewer
        .input(Input::Pasted("too\nlong".to_owned()), &run)
        .await
        .unwrap();
    viewer.input(key(KeyCode::Char('!')), &run).await.unwrap();
    viewer.input(key(KeyCode::Enter), &run).await.unwrap();
    while !paper.text().contains("a.py::f rejected by you: too long!") {
        let note = run.notes.recv().await.unwrap();
        viewer.note(&note).unwrap();
    }
    // Text that was typed about one question is not an answer to the next.
    while viewer.state.reviews.is_empty() {
        let note = run.notes.recv().await.unwrap();
        viewer.note(&note).unwrap();
    }
    viewer.prompt = Prompt::Steering("half".to_owned());
    viewer.ask().unwrap();
    assert_eq!(viewer.prompt, Prompt::Choosing);
}

#[tokio::test]
async fn text_typed_without_a_question_is_kept_for_the_next_one() {
    let folder = folder(&[]);
    let editor = editor(&folder, asks).await;
    let mut run = editor.run(task("x")).await.unwrap();
    let paper = CapturedOutput::default();
    let mut viewer = Viewer::new(&editor, lines(paper.clone()));
    let type_in = async |viewer: &mut Viewer<'_>, text: &str, run: &HeadlessRun| {
        for char in text.chars() {
            let code = if char == '\n' {
                KeyCode::Enter
            } else {
                KeyCode::Char(char)
            };
            viewer.input(key(code), run).await.unwrap();
        }
    };
    type_in(&mut viewer, "r not li", &run).await;
    while viewer.state.reviews.is_empty() {
        let note = run.notes.recv().await.unwrap();
        viewer.note(&note).unwrap();
    }
    viewer.ask().unwrap();
    // The question has just appeared: the text grows, but Enter does not send it yet.
    type_in(&mut viewer, "ke a\n", &run).await;
    assert_eq!(viewer.state.reviews.len(), 1);
    viewer.asked_at -= READING;
    type_in(&mut viewer, "ny\n", &run).await;
    while !paper
        .text()
        .contains("a.py::f rejected by you: not like any")
    {
        let note = run.notes.recv().await.unwrap();
        viewer.note(&note).unwrap();
    }
}

#[tokio::test]
async fn second_interrupt_quits_without_waiting_for_the_run() {
    let folder = folder(&[]);
    let editor = editor(&folder, async |scene: RunScript| {
        scene.log.event(said("deaf"));
        std::future::pending::<()>().await;
    })
    .await;
    let (tell, heard) = Inputs::channel();
    tell.send(Input::Interrupt).unwrap();
    tell.send(Input::Interrupt).unwrap();
    let viewer = Viewer::new(&editor, lines(CapturedOutput::default()));
    let outcome = viewer.show(folder.path(), task("x"), heard).await.unwrap();
    assert_eq!(outcome, Outcome::NotSettled);
}
