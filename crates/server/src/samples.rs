//! Sample values for the tests of this crate.

use serde_json::json;

use super::protocol::ClientCommand;
use super::review_actions::{ReviewAction, all_review_actions};
use super::session::RunView;
use super::settings::ClientSettings;
use starling_core::ModelNotice;
use starling_swarm::{
    ActorId, Cause, DiagnosticEvidence, Event, FileChange, JointEvidence, ProposalId, RunId,
};
use starling_syntax::{FilePath, SymbolPath};
use starling_text::ChangeSet;

pub use crate::testing::evidence;

/// Returns the settings of a client that shows lenses and implements the given commands.
pub fn client(commands: &[ClientCommand]) -> ClientSettings {
    let names: Vec<&str> = commands.iter().map(|command| command.name()).collect();
    let params = json!({"rootUri": "file:///w", "capabilities": {
        "textDocument": {"codeLens": {}}, "experimental": {"starling": {"commands": names}},
    }});
    ClientSettings::negotiate(&serde_json::from_value(params).unwrap())
}

/// The text for which [`waiting`] makes proposals.
pub const BASE: &str = "def f():\n    return 1\n\n\nclass C:\n    def m(self):\n        return 2\n\n\ndef g():\n    return 3\n";

/// Returns the events of a set of proposals that waits for one review. Each proposal replaces
/// `return` by `yield` in its symbol.
pub fn asked(proposals: &[(u32, &str)]) -> Vec<Event> {
    let symbol = |path: &str| -> SymbolPath { path.parse().unwrap() };
    let part = |(id, path): &(u32, &str)| {
        let symbol = symbol(path);
        let markers = super::symbol_markers::SymbolMarkers::read("a.py".as_ref(), BASE);
        let head = markers.find(&symbol.name).unwrap().name_start;
        let (before, after) = BASE.split_at(head);
        let text = format!("{before}{}", after.replacen("return", "yield", 1));
        FileChange {
            proposal: ProposalId(*id),
            symbols: vec![symbol.clone()],
            reason: format!("reason {id}"),
            file: symbol.file.clone(),
            symbol,
            base: BASE.into(),
            changes: ChangeSet::between(BASE, &text),
            deleted: false,
        }
    };
    let parts: Vec<FileChange> = proposals.iter().map(part).collect();
    let mut events: Vec<Event> = parts
        .iter()
        .map(|part| Event::ProposalMade {
            proposal: part.proposal,
            agent: ActorId::Agent(part.symbol.clone()),
            symbols: part.symbols.clone(),
            reason: part.reason.clone(),
            diff: String::new(),
            revises: None,
        })
        .collect();
    let last = parts.last().unwrap().clone();
    let others = parts.iter().map(|part| part.proposal);
    events.push(Event::ReviewAsked {
        proposal: last.proposal,
        agent: ActorId::Agent(last.symbol.clone()),
        symbol: last.symbol,
        diff: "-    return\n+    yield\n".to_owned(),
        reason: "all of them".to_owned(),
        evidence: evidence(),
        with: others.filter(|other| *other != last.proposal).collect(),
        parts,
    });
    events
}

/// Returns the events of a proposal that waits for review and passes its checks only together with
/// the proposal `needed`.
pub fn asked_with_need(proposal: (u32, &str), needed: u32) -> Vec<Event> {
    let mut events = asked(&[proposal]);
    if let Some(Event::ReviewAsked { evidence, .. }) = events.last_mut() {
        evidence.together = Some(JointEvidence {
            with: Vec::new(),
            proposals: Vec::new(),
            tests: evidence.tests.clone(),
            diagnostics: DiagnosticEvidence::Absent,
            examples: Vec::new(),
            needs: vec![ProposalId(needed)],
            checked_in: 0,
        });
    }
    events
}

/// Returns the view of a run with a set of proposals that waits for one review.
pub fn waiting(proposals: &[(u32, &str)]) -> RunView {
    let mut view = RunView::default();
    for (seq, event) in asked(proposals).iter().enumerate() {
        view.record(seq as u64, event);
    }
    view
}

/// Adds a working agent to a run.
pub fn doing(view: &mut RunView, path: &str) {
    let agent = ActorId::Agent(path.parse().unwrap());
    let woken = Event::AgentWoken {
        agent: agent.clone(),
        cause: Cause::Steered {
            text: "go".to_owned(),
        },
    };
    let notice = ModelNotice::Preparing {
        model: "m".to_owned(),
        message: "loads".to_owned(),
    };
    view.record(90, &woken);
    view.record(91, &Event::Notice { agent, notice });
}

/// Returns the open document `a.py` with a text.
pub fn document(text: &str) -> super::documents::DocumentView {
    super::documents::DocumentView {
        uri: tower_lsp::lsp_types::Url::parse("file:///w/a.py").unwrap(),
        text: ropey::Rope::from_str(text),
        markers: super::symbol_markers::SymbolMarkers::read("a.py".as_ref(), text),
    }
}

/// Returns the review actions of a run in one file.
pub fn review_actions(run: &RunId, view: &RunView, file: &FilePath) -> Vec<ReviewAction> {
    let mut review_actions = all_review_actions(run, view);
    review_actions.retain(|action| action.symbol.file == *file);
    review_actions
}
