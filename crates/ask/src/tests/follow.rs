//! Tests of follow-up questions.

use super::fixture::*;
use crate::Answer;
use crate::session::{Session, SessionError};

const FIRST: &str = "It adds up by `total` [shop.py:13].";

async fn first(project: &AskTestProject) -> (Answer, Session) {
    let new = Session::new(&project.files());
    project
        .try_ask("How is it paid?", new)
        .await
        .expect("an answer")
}

fn asks_an_owner() -> AskScriptedModel {
    let ask = || question("shop.py::pay", "What does it do?");
    let script = [
        ask(),
        say("`pay` does it [shop.py:11]."),
        ask(),
        say("As `pay` said [shop.py:11]."),
    ];
    AskScriptedModel::new(script).owners([say(FIRST)])
}

#[tokio::test]
async fn follow_up_question_reuses_answers_of_owners() {
    let project = AskTestProject::new(asks_an_owner());
    let (_, session) = first(&project).await;
    let text = serde_json::to_string(&session).unwrap();
    let session: Session = serde_json::from_str(&text).unwrap();
    let session = session.resumed(&project.files()).unwrap();
    let (answer, session) = project.try_ask("And what then?", session).await.unwrap();
    // The owner's answer comes from memory, without a model call.
    assert_eq!(answer.calls, 2);
    let remembered = answer
        .steps
        .iter()
        .any(|step| format!("{step:?}").contains("Memory"));
    assert!(remembered, "{:?}", answer.steps);
    let prompt = project.model.prompt(3);
    assert!(
        prompt.contains("Question: How is it paid?\nAnswer: `pay` does it"),
        "{prompt}"
    );
    assert!(
        prompt.contains("shop.py::pay, asked \"What does it do?\": It adds up"),
        "{prompt}"
    );
    // The follow-up names no symbol, but its context includes the last answer's symbols.
    assert!(prompt.contains("   11 def pay(cart):"), "{prompt}");
    assert_eq!(session.turns().len(), 2);
}

#[tokio::test]
async fn findings_about_changed_files_are_discarded() {
    let project = AskTestProject::new(asks_an_owner());
    let (_, session) = first(&project).await;
    std::fs::write(
        project.dir.path().join("shop.py"),
        SHOP.replace("RATE = 2", "RATE = 3"),
    )
    .unwrap();
    let session = session.resumed(&project.files()).unwrap();
    assert!(session.turns().is_empty() && session.findings().is_empty());
    let (answer, _) = project.try_ask("And what then?", session).await.unwrap();
    assert_eq!(answer.calls, 3);
}

#[tokio::test]
async fn session_of_another_directory_or_version_is_rejected() {
    let (project, other) = (
        AskTestProject::new(asks_an_owner()),
        AskTestProject::new(asks_an_owner()),
    );
    let (_, session) = first(&project).await;
    let error = session.clone().resumed(&other.files()).unwrap_err();
    assert!(matches!(error, SessionError::OtherFolder { .. }));
    let mut json = serde_json::to_value(&session).unwrap();
    json["version"] = 99.into();
    let old: Session = serde_json::from_value(json).unwrap();
    let error = old.resumed(&project.files()).unwrap_err();
    assert_eq!(error, SessionError::Version { found: 99 });
}

#[tokio::test]
async fn session_keeps_only_the_last_six_turns() {
    let project = AskTestProject::new(AskScriptedModel::new([say("`pay` does it [shop.py:11].")]));
    let mut session = Session::new(&project.files());
    for n in 0..20 {
        let question = format!("What is {n}?");
        session = project.try_ask(&question, session).await.unwrap().1;
    }
    assert_eq!(session.turns().len(), 6);
    assert_eq!(session.turns()[5].question, "What is 19?");
}
