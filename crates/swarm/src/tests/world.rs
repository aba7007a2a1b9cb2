//! The environment of the agents: new files, imports, the rules of the repository, unknown symbols,
//! and a panic in one agent.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::*;

const ONE: &str = "def f(x):\n    return x\n";

#[tokio::test(start_paused = true)]
async fn new_file_is_created_only_if_the_proposal_contains_its_whole_text_without_a_syntax_error() {
    let broken = call(
        "propose",
        json!({"reason": "r", "symbol": "b.py", "source": "def h(:\n"}),
    );
    let hunks = call(
        "propose",
        json!({"reason": "r", "symbol": "b.py", "hunks": [{"old": "a", "new": "b"}]}),
    );
    let good = call(
        "propose",
        json!({"reason": "r", "symbol": "b.py", "source": "def h():\n    return 1"}),
    );
    let model = Scripted::native().on("agent a.py::f", [broken, hunks, good]);
    let mut bed = Bed::new(&[("a.py", ONE)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("b.py"), "def h():\n    return 1\n");
    let why = malformed(&events);
    assert!(
        why[0].contains("The new file b.py has a syntax error at line 1"),
        "{why:?}"
    );
    assert!(
        why[1].contains("There is no file b.py. To make it, give its whole text"),
        "{why:?}"
    );
    let Some(Event::RunFinished { diff, .. }) = events.last() else {
        panic!()
    };
    assert!(diff.contains("+def h():"), "{diff}");
}

#[tokio::test(start_paused = true)]
async fn imports_of_a_proposal_are_added_to_its_file() {
    let change = json!({
        "reason": "r",
        "hunks": [{"old": "return x", "new": "return math.floor(x)"}],
        "imports": ["import math", "import os"],
    });
    let text = format!("import os\n\n\n{ONE}");
    let model = Scripted::native().on("agent a.py::f", [call("propose", change)]);
    let mut bed = Bed::new(&[("a.py", &text)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let now = bed.read("a.py");
    assert!(now.contains("return math.floor(x)"));
    assert_eq!(
        (
            now.matches("import math\n").count(),
            now.matches("import os\n").count()
        ),
        (1, 1),
        "{now}"
    );
    assert_eq!(woken(&events).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn scout_and_agent_prompts_contain_the_rules_of_the_repository() {
    let files = [("a.py", ONE), ("AGENTS.md", "Never use eval.\n")];
    let model = Scripted::native()
        .on("scout", [wake(&["a.py::f"])])
        .on("agent a.py::f", [finish("nothing")]);
    let mut bed = Bed::new(&files, model);
    bed.run().await;
    for name in ["scout", "agent a.py::f"] {
        assert!(
            bed.model.prompts(name)[0].contains("Never use eval."),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn run_with_only_an_unknown_start_symbol_ends_without_a_model_call() {
    let mut bed = Bed::new(&[("a.py", ONE)], Scripted::native()).begin(&["a.py::h"]);
    let events = bed.run().await;
    let StopReason::NothingChanged { why } = stop(&events) else {
        panic!("{events:#?}")
    };
    assert_eq!(why, "There is no symbol a.py::h. a.py has: f.");
    assert_eq!(bed.model.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn run_starts_with_the_known_start_symbols_if_others_are_unknown() {
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&[("a.py", ONE)], model).begin(&["a.py::h", "a.py::f"]);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
}

/// A model that panics when the agent of `a.py::f` calls it.
struct PanickingModel(Scripted);

#[async_trait]
impl ChatModel for PanickingModel {
    fn profile(&self) -> &ModelProfile {
        self.0.profile()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        assert!(!request.conversation.contains("a.py::f"), "on purpose");
        self.0.chat(request, watch).await
    }
}

#[tokio::test(start_paused = true)]
async fn panic_in_one_agent_ends_only_that_agent() {
    let text = format!("{ONE}\n\ndef g(x):\n    return x\n");
    let inner = Scripted::native().on("agent a.py::g", [whole("def g(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&[("a.py", &text)], Scripted::native()).begin(&["a.py::f", "a.py::g"]);
    bed.other_model = Some(Arc::new(PanickingModel(inner)));
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let gave_up = |event: &Event| match event {
        Event::AgentFinished {
            agent: ActorId::Agent(symbol),
            outcome: AgentOutcome::GaveUp { why },
            ..
        } => symbol.name == "f" && why.contains("internal error"),
        _ => false,
    };
    assert!(events.iter().any(gave_up), "{events:#?}");
    assert!(bed.read("a.py").contains("return x + 1"));
}
