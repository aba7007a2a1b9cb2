use super::action::{Hunk, Read};
use super::*;
use std::path::Path;

use starling_core::{Dollars, ToolCall, ToolSpec, Usage};
use starling_syntax::FilePath;

fn reply(text: &str, calls: &[(&str, &str)]) -> ChatReply {
    let tool_calls = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| ToolCall {
            id: format!("c{at}"),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        })
        .collect();
    ChatReply {
        model: "m".into(),
        text: text.into(),
        tool_calls,
        finish: Finish::Stop,
        usage: Usage::default(),
        cost: Dollars(0.0),
        calls: 1,
    }
}

/// Parses a reply in a project whose paths contain no unusual characters.
fn parse(calling: ToolCalling, toolset: ToolSet, reply: &ChatReply) -> Vec<Asked> {
    super::parse(calling, toolset, reply, &UnusualPaths::default())
}

fn tools(calling: ToolCalling, toolset: ToolSet) -> Vec<ToolSpec> {
    toolbox(toolset, &Executors::default()).specs(calling)
}

fn only(asked: Vec<Asked>) -> Action {
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked
        .into_iter()
        .next()
        .expect("one")
        .action
        .expect("readable")
}

#[test]
fn native_tool_calls_are_parsed_into_actions() {
    let reply = reply(
        "",
        &[
            ("propose", r#"{"reason":"r","source":"def f(): pass"}"#),
            ("read", r#"{"symbols":"a.py::f"}"#),
        ],
    );
    let asked = parse(ToolCalling::Native, ToolSet::Owner, &reply);
    let Ok(Action::Propose(propose)) = &asked[0].action else {
        panic!("{asked:?}")
    };
    assert_eq!(propose.source.as_deref(), Some("def f(): pass"));
    assert_eq!(
        asked[1].action,
        Ok(Action::Read(Read {
            symbols: vec!["a.py::f".into()]
        }))
    );
}

#[test]
fn other_fields_of_a_change_request_are_part_of_its_reason() {
    let read = |arguments: &str| {
        let reply = reply("", &[("request_change", arguments)]);
        let asked = parse(ToolCalling::Native, ToolSet::Owner, &reply);
        asked.into_iter().next().expect("one").action
    };
    for (arguments, reason) in [
        (r#"{"symbol":"a.py::f","reason":"r"}"#, "r"),
        (
            r#"{"symbol":"a.py::f","reason":"r","change":"return 2","lines":[3],"source":null}"#,
            "r\nchange: return 2\nlines: [3]",
        ),
        (
            r#"{"symbol":"a.py::f","what":"return 2"}"#,
            "what: return 2",
        ),
    ] {
        let Ok(Action::Request(wanted)) = read(arguments) else {
            panic!("{arguments}")
        };
        assert_eq!(
            (wanted.symbol.as_str(), wanted.reason.as_str()),
            ("a.py::f", reason)
        );
    }
    assert!(read(r#"{"symbol":"a.py::f"}"#).is_err());
    assert!(read(r#"{"reason":"r"}"#).is_err());
}

#[test]
fn each_role_has_only_its_own_tools() {
    let names = |toolset| {
        tools(ToolCalling::Native, toolset)
            .into_iter()
            .map(|tool| tool.name)
            .collect::<Vec<_>>()
    };
    assert!(
        !names(ToolSet::Answerer).iter().any(|name| [
            "propose",
            "intent",
            "request_change",
            "wake"
        ]
        .contains(&name.as_str()))
    );
    assert!(!names(ToolSet::Scout).contains(&"propose".to_owned()));
    assert!(!names(ToolSet::Solo).contains(&"request_change".to_owned()));
    let asked = parse(
        ToolCalling::Native,
        ToolSet::Answerer,
        &reply("", &[("propose", "{}")]),
    );
    assert!(
        asked[0]
            .action
            .as_ref()
            .is_err_and(|error| error.contains("There is no tool `propose`")),
        "{asked:?}"
    );
}

#[test]
fn unparsable_tool_arguments_are_reported_to_the_model() {
    let asked = parse(
        ToolCalling::Native,
        ToolSet::Owner,
        &reply("", &[("search", r#"{"query": "#)]),
    );
    assert!(
        asked[0]
            .action
            .as_ref()
            .is_err_and(|error| error.contains("valid JSON")),
        "{asked:?}"
    );
}

#[test]
fn tool_schemas_contain_no_references() {
    insta::assert_json_snapshot!(tools(ToolCalling::Native, ToolSet::Scout));
    let propose = tools(ToolCalling::Native, ToolSet::Owner)
        .into_iter()
        .find(|tool| tool.name == "propose");
    let text = serde_json::to_string(&propose).expect("json");
    assert!(
        !text.contains("$ref") && !text.contains("$schema"),
        "{text}"
    );
}

#[test]
fn code_block_in_plain_text_is_parsed_as_a_proposal() {
    let text = "The bound is off by one.\n\n```python\n@cached\ndef f(x):\n    return x\n```\n";
    let Action::Propose(propose) =
        only(parse(ToolCalling::Text, ToolSet::Owner, &reply(text, &[])))
    else {
        panic!()
    };
    assert_eq!(
        propose.source.as_deref(),
        Some("@cached\ndef f(x):\n    return x\n")
    );
    assert_eq!(propose.reason, "The bound is off by one.");
}

#[test]
fn unclosed_code_block_is_parsed_and_a_shorter_inner_fence_does_not_close_it() {
    let text = "````python\ndef f():\n    '''\n    ```\n    doc\n    ```\n    '''\n";
    let Action::Propose(propose) =
        only(parse(ToolCalling::Text, ToolSet::Owner, &reply(text, &[])))
    else {
        panic!()
    };
    assert!(
        propose
            .source
            .expect("source")
            .ends_with("    ```\n    '''\n")
    );
}

#[test]
fn commands_hunks_and_imports_are_parsed_from_plain_text() {
    let text = "@read a.py::g b.py::h\n@ask a.py::g what does it return?\n@import import os\n```\n<<<<<<< OLD\n    a\n=======\n    b\n>>>>>>> NEW\n```";
    let asked = parse(ToolCalling::Text, ToolSet::Owner, &reply(text, &[]));
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!(
        asked[0].action,
        Ok(Action::Read(Read {
            symbols: vec!["a.py::g".into(), "b.py::h".into()]
        }))
    );
    let Ok(Action::Propose(propose)) = &asked[2].action else {
        panic!("{asked:?}")
    };
    assert_eq!(
        propose.hunks,
        [Hunk {
            old: "    a".into(),
            new: "    b".into()
        }]
    );
    assert_eq!(propose.imports, ["import os"]);
}

#[test]
fn single_agent_has_no_ask_and_request_commands_in_plain_text() {
    let text = "@ask a.py::g what?\n@request a.py::g change\n@read\n@finish done";
    let reply = reply(text, &[]);
    let only = only(parse(ToolCalling::Text, ToolSet::Solo, &reply));
    let summary = "done".to_owned();
    assert_eq!(only, Action::Finish(FinishWork { summary }));
    assert_eq!(parse(ToolCalling::Text, ToolSet::Owner, &reply).len(), 3);
}

#[test]
fn answering_agent_cannot_edit_in_plain_text() {
    let text = "@finish\n@request a.py::f change\n```python\ndef f(): pass\n```";
    assert_eq!(
        parse(ToolCalling::Text, ToolSet::Answerer, &reply(text, &[])),
        []
    );
}

#[test]
fn symbol_paths_of_the_scout_are_parsed_from_lists_and_prose() {
    let text =
        "1. `loans/fees.py::late_fee`\n- loans/shelf.py::Shelf.find, and loans/fees.py::late_fee.";
    let Action::Wake(wake) = only(parse(ToolCalling::Text, ToolSet::Scout, &reply(text, &[])))
    else {
        panic!()
    };
    let paths: Vec<_> = wake
        .symbols
        .iter()
        .map(|pick| pick.symbol.as_str())
        .collect();
    assert_eq!(
        paths,
        ["loans/fees.py::late_fee", "loans/shelf.py::Shelf.find"]
    );
}

#[test]
fn reply_without_a_tool_call_contains_no_action() {
    for text in ["", "I think it is fine."] {
        let reply = reply(text, &[]);
        assert_eq!(parse(ToolCalling::Native, ToolSet::Owner, &reply), []);
        assert!(nothing_asked(ToolCalling::Native, ToolSet::Owner, &reply).contains("propose"));
    }
}

#[test]
fn code_block_of_a_cut_off_reply_is_not_a_proposal() {
    let mut cut = reply("```python\ndef f():\n    a = 1\n", &[]);
    cut.finish = Finish::Length;
    assert_eq!(parse(ToolCalling::Text, ToolSet::Owner, &cut), []);
    assert!(nothing_asked(ToolCalling::Text, ToolSet::Owner, &cut).contains("cut"));
}

#[test]
fn known_paths_with_spaces_and_punctuation_are_parsed_whole() {
    let files = ["story kit/x.py", "50% (off)/it's.py", "a b/c#.py"].map(FilePath::new);
    let paths = UnusualPaths::of(&files, Path::new("/w"));
    let parse = |toolset, text: &str| {
        let asked = super::parse(ToolCalling::Text, toolset, &reply(text, &[]), &paths);
        asked.into_iter().map(|one| one.action.expect("readable"))
    };
    let text =
        "1. `story kit/x.py::World.find`, (50% (off)/it's.py::f)\nstory kit/new.py:: a.py::g";
    let Some(Action::Wake(wake)) = parse(ToolSet::Scout, text).next() else {
        panic!("{text}")
    };
    let symbols: Vec<&str> = wake
        .symbols
        .iter()
        .map(|pick| pick.symbol.as_str())
        .collect();
    assert_eq!(
        symbols,
        [
            "story kit/x.py::World.find",
            "50% (off)/it's.py::f",
            "story kit/new.py::",
            "a.py::g"
        ]
    );
    let text = "@read story kit/x.py::f a b/c#.py:1-9\n@ask 50% (off)/it's.py::f  why (so)?";
    let asked: Vec<Action> = parse(ToolSet::Answerer, text).collect();
    let [Action::Read(read), Action::Ask(ask)] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    assert_eq!(read.symbols, ["story kit/x.py::f", "a b/c#.py:1-9"]);
    assert_eq!(
        (ask.symbol.as_str(), ask.question.as_str()),
        ("50% (off)/it's.py::f", "why (so)?")
    );
}
