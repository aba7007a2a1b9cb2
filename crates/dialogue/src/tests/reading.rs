//! Tests that replies are parsed into tool calls, and that these calls return results.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use starling_core::*;
use starling_syntax::FilePath;
use starling_workspace::UnusualPaths;

use super::fixture::*;
use crate::*;

fn none() -> UnusualPaths {
    UnusualPaths::default()
}

fn native(user: TestRole, calls: &[(&str, &str)]) -> Vec<Call<Action>> {
    let reply = reply("@look a", calls);
    toolbox(user).calls(ToolCalling::Native, &reply, |_| panic!("text is no call"))
}

#[test]
fn each_role_can_call_only_its_own_tools_in_both_protocols() {
    let names = |user| {
        let specs = toolbox(user).specs(ToolCalling::Native);
        specs.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(names(TestRole::Reader), ["look", "ask_owner"]);
    assert_eq!(names(TestRole::Writer), ["look", "end"]);
    assert_eq!(toolbox(TestRole::Writer).specs(ToolCalling::Text), []);
    let calls = native(TestRole::Reader, &[("end", "{}")]);
    let error = calls[0].action.as_ref().unwrap_err();
    assert_eq!(
        error,
        "There is no tool `end`. The tools are: look, ask_owner."
    );
    let lines = toolbox(TestRole::Writer).lines("@ask a.py::f what?\n@end", &none());
    let tools: Vec<&str> = lines.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["end"]);
}

#[test]
fn unreadable_arguments_are_reported_to_the_model() {
    let calls = native(TestRole::Writer, &[("look", "{\"names\": "), ("end", " ")]);
    let error = calls[0].action.as_ref().unwrap_err();
    assert!(
        error.starts_with("The arguments of `look` cannot be read:"),
        "{error}"
    );
    assert_eq!(calls[0].label.1, "{\"names\": ");
    let end = Action::End(End { why: String::new() });
    assert_eq!(calls[1].action, Ok(end), "no arguments are an empty object");
}

#[test]
fn each_tool_defines_how_its_line_is_parsed() {
    let paths = UnusualPaths::of(&[FilePath::new("my kit/x.py")], Path::new("/w"));
    let text =
        "@look my kit/x.py::f  b\nI think @look c\n@fly d\n@look\n@ask my kit/x.py::f why (so)?";
    let calls = toolbox(TestRole::Reader).lines(text, &paths);
    let actions: Vec<Action> = calls
        .iter()
        .map(|call| call.action.clone().unwrap())
        .collect();
    let names = ["my kit/x.py::f", "b"].map(str::to_owned).to_vec();
    let ask = Ask {
        who: "my kit/x.py::f".to_owned(),
        what: "why (so)?".to_owned(),
    };
    assert_eq!(actions, [Action::Look(Look { names }), Action::Ask(ask)]);
    assert_eq!(
        calls[1].label,
        ("@ask".to_owned(), "my kit/x.py::f why (so)?".to_owned())
    );
}

#[test]
fn text_lines_are_calls_only_in_complete_replies_of_the_text_protocol() {
    let toolbox = toolbox(TestRole::Reader);
    let calls = |calling, reply: &ChatReply| {
        let lines = |text: &str| toolbox.lines(text, &none());
        toolbox.calls(calling, reply, lines).len()
    };
    let said = reply("@look a\n@look b", &[]);
    assert_eq!(calls(ToolCalling::Text, &said), 2);
    assert_eq!(calls(ToolCalling::Native, &said), 0);
    let both = reply("@look a\n@look b", &[("look", "{\"names\": []}")]);
    assert_eq!(calls(ToolCalling::Text, &both), 1);
    let mut cut = said.clone();
    cut.finish = Finish::Length;
    assert_eq!(calls(ToolCalling::Text, &cut), 0);
}

#[tokio::test]
async fn each_call_is_executed_by_the_executor_of_its_tool() {
    let toolbox = toolbox(TestRole::Writer);
    let calls = native(
        TestRole::Writer,
        &[
            ("look", "{\"names\": [\"a\"]}"),
            ("end", "{}"),
            ("fly", "{}"),
        ],
    );
    assert_eq!(toolbox.execute(&calls[0]).await.as_deref(), Some("found a"));
    assert_eq!(
        toolbox.execute(&calls[1]).await,
        None,
        "for whoever leads the conversation"
    );
    let error = toolbox.execute(&calls[2]).await.unwrap();
    assert!(error.contains("no tool `fly`"), "{error}");
}

#[tokio::test]
async fn external_tool_can_be_called_in_both_protocols() {
    let spec = ToolSpec {
        name: "tickets".to_owned(),
        description: "Find tickets.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    let users = &[TestRole::Reader];
    let outside = Tool::from_outside(spec, users, ToolCost::Command, Action::Outside)
        .by(Some(Arc::new(EchoExecutor)));
    let toolbox = Toolbox::of(TestRole::Reader, tools().into_iter().chain([outside]));
    let reply = reply("", &[("tickets", "{\"open\": true}")]);
    let mut calls = toolbox.calls(ToolCalling::Native, &reply, |_| Vec::new());
    calls.extend(toolbox.lines("@tickets {\"open\": true}\n@tickets open", &none()));
    for call in &calls[..2] {
        assert_eq!(call.action, Ok(Action::Outside(json!({"open": true}))));
        let result = toolbox.execute(call).await;
        assert_eq!(result.as_deref(), Some("found {\"open\":true}"));
    }
    let error = calls[2].action.as_ref().unwrap_err();
    assert!(
        error.starts_with("The arguments of `@tickets` cannot be read:"),
        "{error}"
    );
}

#[test]
fn calls_with_equal_arguments_have_the_same_fingerprint() {
    let calls = native(
        TestRole::Writer,
        &[
            ("look", "{\"names\": [\"a\"]}"),
            ("look", "{ \"names\":[\"a\"] }"),
            ("look", "{\"names\": [\"b\"]}"),
        ],
    );
    assert_eq!(calls[0].fingerprint(), calls[1].fingerprint());
    assert_ne!(calls[0].fingerprint(), calls[2].fingerprint());
}
