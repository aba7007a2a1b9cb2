//! The task of a simulated run, and its limits.

use std::time::Duration;

use starling_core::{Approval, AskIntent, Dollars, Driver, Limits, Tokens, ToolCalling};
use starling_swarm::Task;

use super::choices::Choices;
use super::project::Project;

/// Everything that the seed decides about a run before it starts.
#[derive(Debug, Clone)]
pub struct SimulationPlan {
    pub task: Task,
    pub calling: ToolCalling,
    pub latencies: Latencies,
    /// Number of models that write candidates.
    pub candidates: u64,
    /// Whether each model has a fallback.
    pub falls_back: bool,
    pub attempts: u32,
    pub has_tests: bool,
    pub has_language_server: bool,
    /// The run is killed after this number of records in its log.
    pub killed_after: Option<usize>,
    /// The run is killed when this number of edits have changed a text, before the editor replies.
    pub killed_at_edit: Option<u64>,
    /// The person cancels the run after this number of records.
    pub cancelled_after: Option<usize>,
}

/// The maximum latency of each part of the simulation, in milliseconds.
#[derive(Debug, Clone)]
pub struct Latencies {
    pub model: u64,
    pub tests: u64,
    pub language: u64,
    pub editor: u64,
    pub person: u64,
}

impl SimulationPlan {
    pub fn generate(choices: &Choices, project: &Project) -> Self {
        let approval = match choices.number("plan approval", 10) {
            0..=3 => Approval::Auto,
            4..=6 => Approval::Proxy,
            _ => Approval::Ask,
        };
        let ask_intent = match choices.number("plan intent", 6) {
            0 => AskIntent::Always,
            1 => AskIntent::Contract,
            _ => AskIntent::Never,
        };
        let driver = match choices.number("plan driver", 16) {
            0 => Driver::Single,
            _ => Driver::Swarm,
        };
        let task = Task {
            text: "Bring the versions up to date and make the tests pass.".to_owned(),
            refactoring: None,
            driver,
            approval,
            ask_intent,
            limits: limits(choices),
            test_deadline: Duration::from_secs(60),
            begin: begin(choices, project),
            require_tests: false,
            try_examples: false,
            patch: None,
            request: None,
        };
        SimulationPlan {
            task,
            calling: match choices.number("plan calling", 8) {
                0 => ToolCalling::Text,
                _ => ToolCalling::Native,
            },
            latencies: Latencies {
                model: *choices.pick("plan model latency", &[1, 50, 3_000, 40_000]),
                tests: *choices.pick("plan test latency", &[1, 500, 5_000, 30_000]),
                language: *choices.pick("plan language latency", &[1, 300, 4_000]),
                editor: *choices.pick("plan editor latency", &[1, 200, 9_000]),
                person: *choices.pick("plan person latency", &[1, 5_000, 600_000, 7_200_000]),
            },
            candidates: match choices.number("plan candidates", 8) {
                0 => 1,
                1 => 2,
                _ => 0,
            },
            falls_back: choices.number("plan fallback", 2) == 0,
            attempts: 1 + u32::try_from(choices.number("plan attempts", 4)).expect("small"),
            has_tests: choices.number("plan tests", 12) > 0,
            has_language_server: choices.number("plan language", 3) > 0,
            cancelled_after: choices.deviates("cancelled", 10).then(|| {
                5 + usize::try_from(choices.number("cancelled after", 120)).expect("small")
            }),
            killed_after: choices
                .deviates("killed", 6)
                .then(|| 5 + usize::try_from(choices.number("killed after", 80)).expect("small")),
            killed_at_edit: choices
                .deviates("killed at an edit", 6)
                .then(|| 1 + choices.number("killed at edit", 4)),
        }
    }
}

fn limits(choices: &Choices) -> Limits {
    let mut limits = Limits::default();
    if choices.deviates("few calls", 20) {
        limits.calls = 2 + u32::try_from(choices.number("calls", 14)).expect("small");
    }
    if choices.deviates("few tokens", 20) {
        limits.tokens = Tokens(6_000 + choices.number("tokens", 50_000));
    }
    if choices.deviates("few dollars", 20) {
        let cents = 2 + choices.number("cents", 30);
        limits.dollars = Some(Dollars(cents as f64 / 100.0));
    }
    if choices.deviates("few seconds", 15) {
        limits.seconds = 20 + choices.number("seconds", 400);
    }
    if choices.deviates("few agents", 20) {
        limits.agents = 1 + u32::try_from(choices.number("agents", 4)).expect("small");
    }
    if choices.deviates("few messages", 10) {
        limits.messages = u32::try_from(choices.number("messages", 4)).expect("small");
    }
    limits
}

/// Returns the symbols that the user names, or none if the scout must choose.
fn begin(choices: &Choices, project: &Project) -> Vec<starling_syntax::SymbolPath> {
    if choices.number("plan scout", 3) == 0 {
        return Vec::new();
    }
    let chosen = project
        .units
        .iter()
        .filter(|unit| choices.number(&format!("plan begin {}", unit.name), 3) > 0);
    let paths = chosen.map(|unit| unit.path().parse().expect("a path of the project"));
    paths.collect()
}
