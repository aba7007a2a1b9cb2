//! Tests of the shortening of a conversation that nears the model's window.

use std::collections::BTreeSet;

use starling_core::*;

use super::fixture::*;
use crate::*;

/// Returns a conversation of `turns` turns. Each has one call, whose result has `padding` extra
/// characters.
fn long(calling: ToolCalling, turns: usize, padding: usize) -> Conversation {
    let mut conversation = Conversation::new("c".to_owned(), Role::Agent, "system".to_owned());
    conversation.user("the task");
    for nth in 0..turns {
        let mut said = look(&format!("name{nth}"));
        if calling == ToolCalling::Text {
            said = reply(&format!("@look name{nth}"), &[]);
        }
        let lines = |text: &str| toolbox(TestRole::Writer).lines(text, &Default::default());
        let calls = toolbox(TestRole::Writer).calls(calling, &said, lines);
        conversation.said(&said);
        let result = |call| (call, format!("result {nth}\n{}", "x".repeat(padding)));
        conversation.results(calls.into_iter().map(result).collect());
    }
    conversation.recorded = conversation.messages.len();
    conversation
}

fn make_room(conversation: &mut Conversation, window: u64) -> bool {
    conversation.make_room(&[], &profile(window))
}

/// Asserts that each native call is directly followed by its result, and each result follows its
/// call, as model providers require.
fn assert_whole(messages: &[Message]) {
    let mut open = BTreeSet::new();
    for message in messages {
        match message {
            Message::Tool { call_id, .. } => assert!(open.remove(call_id), "{messages:?}"),
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => {
                assert!(open.is_empty(), "{messages:?}");
            }
        }
        if let Message::Assistant { tool_calls, .. } = message {
            open.extend(tool_calls.iter().map(|call| call.id.clone()));
        }
    }
    assert!(open.is_empty(), "{messages:?}");
}

#[test]
fn conversation_that_fits_the_window_is_not_shortened() {
    let mut conversation = long(ToolCalling::Native, 6, 700);
    let before = conversation.messages.clone();
    assert!(!make_room(&mut conversation, 10_000));
    assert_eq!(conversation.messages, before);
    assert_eq!(conversation.recorded, before.len());
    // If the window has no room for any prompt, the conversation is not shortened either.
    assert!(!make_room(&mut conversation, 0));
}

#[test]
fn oldest_results_are_left_out_first_and_the_task_and_last_turns_are_kept() {
    for calling in [ToolCalling::Native, ToolCalling::Text] {
        let mut conversation = long(calling, 8, 1_500);
        let before = conversation.messages.clone();
        assert!(make_room(&mut conversation, 4_400));
        let after = &conversation.messages;
        assert_eq!(after.len(), before.len());
        assert_eq!(after[..3], before[..3]);
        assert_eq!(after[14..], before[14..], "two turns");
        let is_short = |at: usize| after[at].text().starts_with("[Left out to save room:");
        let shortened: Vec<bool> = (0..8).map(|nth| is_short(3 + 2 * nth)).collect();
        let count = shortened.iter().filter(|short| **short).count();
        assert!((1..=6).contains(&count), "{shortened:?}");
        assert!(
            shortened[..count].iter().all(|short| *short),
            "{shortened:?}"
        );
        let told = after[3].text();
        let call = match calling {
            ToolCalling::Native => "`look name0`",
            ToolCalling::Text => "`@look name0`",
        };
        assert!(
            told.contains(call) && told.contains(" characters."),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1);
        assert_whole(after);
        assert_eq!(conversation.recorded, 0, "the record gets it as it is now");
    }
}

#[test]
fn results_that_are_cheap_to_repeat_are_left_out_first() {
    let mut conversation = Conversation::new("c".to_owned(), Role::Agent, "system".to_owned());
    conversation.user("the task");
    let padding = "x".repeat(1_500);
    for nth in 0..8 {
        let name = if nth == 0 { "end" } else { "look" };
        let said = reply("", &[(name, "{\"names\": [\"a\"]}")]);
        conversation.said(&said);
        let calls = toolbox(TestRole::Writer).calls(ToolCalling::Native, &said, |_| Vec::new());
        conversation.results(
            calls
                .into_iter()
                .map(|call| (call, padding.clone()))
                .collect(),
        );
    }
    assert!(make_room(&mut conversation, 4_400));
    let is_whole = |at: usize| conversation.messages[at].text() == padding;
    assert!(is_whole(3) && !is_whole(5), "{:?}", conversation.messages);
}

#[test]
fn old_turns_are_summarized_if_leaving_out_results_is_not_enough() {
    let mut conversation = long(ToolCalling::Native, 40, 300);
    conversation.messages.insert(
        4,
        Message::User {
            text: "Another\nasks for this.".to_owned(),
        },
    );
    for one in &mut conversation.results {
        one.at += usize::from(one.at >= 4);
    }
    let before = conversation.messages.clone();
    assert!(make_room(&mut conversation, 1_500));
    let after = &conversation.messages;
    assert_eq!(after[..2], before[..2]);
    assert_eq!(after[3..], before[before.len() - 4..], "two turns");
    let told = after[2].text();
    assert!(told.starts_with("Earlier turns were left out to save room. In them:\n"));
    assert!(told.contains("\n- `look name0`: result 0\n"), "{told}");
    assert!(
        told.contains("\n- you were told: Another asks for this.\n"),
        "{told}"
    );
    assert!(told.contains("\n- `look name37`: result 37"), "{told}");
    assert_whole(after);
}

#[test]
fn second_summary_replaces_and_extends_the_first() {
    let mut conversation = long(ToolCalling::Native, 40, 300);
    assert!(make_room(&mut conversation, 1_500));
    for nth in 40..100 {
        let said = look(&format!("name{nth}"));
        let calls = toolbox(TestRole::Writer).calls(ToolCalling::Native, &said, |_| Vec::new());
        conversation.said(&said);
        let result = |call| (call, format!("result {nth}"));
        conversation.results(calls.into_iter().map(result).collect());
        make_room(&mut conversation, 1_500);
        assert_whole(&conversation.messages);
    }
    let is_summary = |message: &&Message| message.text().starts_with("Earlier turns");
    let summaries: Vec<&Message> = conversation.messages.iter().filter(is_summary).collect();
    assert_eq!(summaries.len(), 1);
    assert_eq!(&conversation.messages[2], summaries[0]);
    let told = summaries[0].text();
    let lines: Vec<&str> = told.lines().skip(1).collect();
    assert!(lines.len() <= 60, "{told}");
    let is_in_order = lines.windows(2).all(|pair| pair[0].len() <= pair[1].len());
    assert!(is_in_order, "{told}");
}

#[test]
fn conversation_of_two_turns_is_never_shortened() {
    let mut conversation = long(ToolCalling::Native, 2, 9_000);
    let before = conversation.messages.clone();
    assert!(!make_room(&mut conversation, 1_000));
    assert!(!conversation.shorten());
    assert_eq!(conversation.messages, before);
}

#[test]
fn forgetting_a_conversation_resets_messages_results_and_temperature() {
    let mut conversation = long(ToolCalling::Native, 40, 300);
    assert!(make_room(&mut conversation, 1_500));
    conversation.temperature = 0.7;
    conversation.beginning = "def".to_owned();
    conversation.forget();
    let request = conversation.request(Vec::new(), &profile(100));
    assert_eq!((request.messages.len(), request.temperature), (1, 0.0));
    assert_eq!(request.beginning, "");
    conversation.user("other");
    assert!(!make_room(&mut conversation, 200));
    assert_eq!(conversation.messages.len(), 2);
}
