//! Tests of the loop of turns.

use starling_core::*;

use super::fixture::*;
use crate::*;

fn end(why: &str) -> ChatReply {
    reply("", &[("end", &format!("{{\"why\": {why:?}}}"))])
}

fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(Message::text).collect()
}

#[tokio::test]
async fn tool_results_are_appended_to_the_conversation_until_a_call_ends_it() {
    let mut turns = ScriptedTurns::new([Ok(look("a")), Ok(look("b")), Ok(end("done"))]);
    assert_eq!(converse(&mut turns, 5).await.as_deref(), Some("done"));
    let last = texts(&turns.asked[2]);
    assert_eq!(
        last,
        ["system", "the task", "", "found a\n", "", "found b\n"]
    );
    for pair in turns.asked.windows(2) {
        assert_eq!(
            pair[0],
            pair[1][..pair[0].len()],
            "prompts are only appended to"
        );
    }
    assert_eq!(turns.conversation.messages.len(), 8, "the last result, too");
    assert_eq!((turns.turns_over, turns.times_left_out), (2, 0));
}

#[tokio::test]
async fn conversation_ends_at_its_turn_limit() {
    let mut turns = ScriptedTurns::new([Ok(look("a")), Ok(look("b"))]);
    assert_eq!(converse(&mut turns, 2).await, None);
    assert_eq!((turns.asked.len(), turns.turns_over), (2, 2));
}

#[tokio::test]
async fn reply_without_a_tool_call_is_passed_to_its_own_hook() {
    let mut turns = ScriptedTurns::new([Ok(reply("", &[])), Ok(reply("It is so.", &[]))]);
    assert_eq!(converse(&mut turns, 5).await.as_deref(), Some("It is so."));
    let told = texts(&turns.asked[1]);
    assert_eq!(told, ["system", "the task", "", "It was empty."]);
    assert_eq!(
        turns.conversation.messages.len(),
        4,
        "an answer is not appended"
    );
}

#[tokio::test]
async fn hook_decides_whether_a_failed_model_call_ends_the_conversation() {
    let passing = ModelError::Server {
        model: "m".to_owned(),
        status: 500,
        message: "no".to_owned(),
    };
    let lasting = ModelError::Refused {
        model: "m".to_owned(),
        status: 401,
        message: "no".to_owned(),
    };
    let mut turns = ScriptedTurns::new([Err(passing), Err(lasting)]);
    let ended = converse(&mut turns, 5).await.expect("an end");
    assert!(ended.contains("request refused"), "{ended}");
    assert_eq!((turns.asked.len(), turns.turns_over), (2, 1));
}

fn too_long() -> ModelError {
    ModelError::TooLong {
        model: "m".to_owned(),
        prompt: Tokens(2),
        window: Tokens(1),
        message: String::new(),
    }
}

#[tokio::test]
async fn prompt_rejected_as_too_long_is_shortened_and_sent_once_more() {
    let looks = ["a", "b", "c"].map(|name| Ok(look(name)));
    let then = [Err(too_long()), Ok(end("done"))];
    let mut turns = ScriptedTurns::new(looks.into_iter().chain(then));
    turns.padding = 2_000;
    assert_eq!(converse(&mut turns, 9).await.as_deref(), Some("done"));
    let length = |nth: usize| texts(&turns.asked[nth]).concat().len();
    assert!(length(4) < length(3), "{} {}", length(3), length(4));
    assert_eq!(turns.times_left_out, 1);

    let mut turns = ScriptedTurns::new([Err(too_long())]);
    let ended = converse(&mut turns, 9).await.expect("an end");
    assert!(ended.contains("leaves no room") || ended.contains("exceeds the context window"));
    assert_eq!(turns.asked.len(), 1, "nothing can be left out of the task");
}

#[tokio::test]
async fn conversation_longer_than_the_window_continues_with_a_shortened_prompt() {
    let looks = (0..60).map(|nth| Ok(look(&format!("name{nth}"))));
    let mut turns = ScriptedTurns::new(looks.chain([Ok(end("done"))]));
    turns.profile = profile(4_000);
    turns.padding = 2_000;
    assert_eq!(converse(&mut turns, 99).await.as_deref(), Some("done"));
    let room = Tokens(4_000 - 100);
    for asked in &turns.asked {
        let length = Tokens::of_prompt(asked, &[], Tokens::estimate);
        assert!(length < room, "{length}");
        assert_eq!(texts(&asked[..2]), ["system", "the task"]);
    }
    assert!(
        (5..30).contains(&turns.times_left_out),
        "much is left out at once: {}",
        turns.times_left_out
    );
}
