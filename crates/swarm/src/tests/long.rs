//! Conversations that are longer than the model's context window.

use serde_json::json;

use super::bed::*;
use starling_core::Tokens;

const SOURCE: &str = "def f(x):\n    return x\n";

fn big(nth: usize) -> (String, String) {
    let lines: String = (0..150)
        .map(|line| format!("    value_{line} = x * {line}\n"))
        .collect();
    let text = format!("def g{nth}(x):\n{lines}    return x\n");
    (format!("b{nth}.py"), text)
}

#[tokio::test(start_paused = true)]
async fn old_tool_results_are_dropped_when_a_conversation_nears_the_context_window() {
    let mut files = vec![("a.py".to_owned(), SOURCE.to_owned())];
    files.extend((0..9).map(big));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let read = |nth: usize| call("read", json!({"symbols": [format!("b{nth}.py::g{nth}")]}));
    let script = (0..9)
        .map(read)
        .chain([whole("def f(x):\n    return -x\n")]);
    let model = Scripted::native().window(13_000).on("agent", script);
    let mut bed = Bed::new(&files, model).begin(&["a.py::f"]);
    bed.run().await;
    assert_eq!(bed.read("a.py"), "def f(x):\n    return -x\n");
    let prompts = bed.model.prompts("agent");
    assert_eq!(prompts.len(), 10);
    for prompt in &prompts {
        assert!(Tokens::estimate(prompt) < Tokens(9_000), "{}", prompt.len());
        assert!(prompt.starts_with(&prompts[0]), "the task stays");
    }
    let last = prompts.last().expect("a prompt");
    assert!(last.contains("[Left out to save room: the result of `read b0.py::g0`"));
    assert!(last.contains("value_149"), "the last results stay");
    let is_appended = |pair: &&[String]| pair[1].starts_with(&pair[0]);
    let appended = prompts.windows(2).filter(is_appended).count();
    assert!(
        appended >= 6,
        "mostly, prompts are only appended to: {appended}"
    );
}
