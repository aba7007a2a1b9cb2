//! Draws agents as nodes on a circle, with questions, requests and follow-ups as edges between
//! them.

use std::f64::consts::TAU;
use std::fmt::Write;

use super::page::escaped;
use crate::cli::view::words;
use starling_swarm::{ActorId, AgentOutcome, Event};

const RADIUS: f64 = 150.0;
const NODE: f64 = 9.0;
/// Width of the space for names beside the circle, in pixels.
const SIDE: f64 = 240.0;
const TOP: f64 = 40.0;

/// The kind of message that an edge of the picture stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EdgeKind {
    Question,
    Request,
    FollowUp,
}

impl EdgeKind {
    fn class(self) -> &'static str {
        match self {
            EdgeKind::Question => "edge",
            EdgeKind::Request => "request edge",
            EdgeKind::FollowUp => "follow edge",
        }
    }
}

/// The agents of a run as nodes, and their messages as edges between node indexes.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<(ActorId, &'static str)>,
    edges: Vec<(usize, usize, EdgeKind, String)>,
}

/// Draws a run as SVG, or returns `None` if no agent took part.
pub(super) fn picture(events: &[(u64, Event)]) -> Option<String> {
    let mut graph = Graph::default();
    for (_, event) in events {
        graph.take(event);
    }
    (!graph.nodes.is_empty()).then(|| graph.drawn())
}

impl Graph {
    fn node(&mut self, party: &ActorId) -> usize {
        if let Some(at) = self.nodes.iter().position(|(known, _)| known == party) {
            return at;
        }
        self.nodes.push((party.clone(), "node"));
        self.nodes.len() - 1
    }

    fn tie(&mut self, from: &ActorId, to: &ActorId, tie: EdgeKind, text: &str) {
        let (from, to) = (self.node(from), self.node(to));
        self.edges.push((from, to, tie, text.to_owned()));
    }

    fn take(&mut self, event: &Event) {
        if let Event::AgentWoken { agent, .. } = event {
            self.node(agent);
        } else if let Event::AgentFinished { agent, outcome, .. } = event {
            let at = self.node(agent);
            self.nodes[at].1 = match outcome {
                AgentOutcome::GaveUp { .. } => "bad node",
                AgentOutcome::Changed | AgentOutcome::NothingToChange => self.nodes[at].1,
            };
        } else if let Event::ProposalApplied { symbols, .. } = event {
            for symbol in symbols {
                let party = ActorId::Agent(symbol.clone());
                if let Some(node) = self.nodes.iter_mut().find(|(known, _)| *known == party) {
                    node.1 = "good node";
                }
            }
        } else if let Event::Asked { from, to, text, .. } = event {
            self.tie(from, to, EdgeKind::Question, text);
        } else if let Event::ChangeRequested { from, to, reason } = event {
            self.tie(from, to, EdgeKind::Request, reason);
        } else if let Event::FollowedUp {
            changed,
            changes,
            to,
        } = event
        {
            let from = ActorId::Agent(changed.clone());
            for owner in to {
                let owner = ActorId::Agent(owner.clone());
                self.tie(&from, &owner, EdgeKind::FollowUp, &changes.join("; "));
            }
        }
    }

    /// Returns the center of a node. Nodes are placed clockwise from the top.
    fn place(&self, at: usize) -> (f64, f64) {
        let middle = (SIDE + RADIUS, TOP + RADIUS);
        if self.nodes.len() == 1 {
            return (middle.0, TOP);
        }
        let angle = TAU * at as f64 / self.nodes.len() as f64;
        (
            middle.0 + RADIUS * angle.sin(),
            middle.1 - RADIUS * angle.cos(),
        )
    }

    fn drawn(&self) -> String {
        let width = 2.0 * (SIDE + RADIUS);
        let height = match self.nodes.len() {
            1 => 2.0 * TOP,
            _ => 2.0 * (TOP + RADIUS),
        };
        let mut svg = format!(
            "<svg role=\"img\" aria-label=\"{} agents, {} messages\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\">\
             <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" \
             markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"currentColor\"/></marker></defs>\n",
            self.nodes.len(),
            self.edges.len(),
        );
        for edge in &self.edges {
            self.draw_edge(&mut svg, edge);
        }
        for at in 0..self.nodes.len() {
            self.draw_node(&mut svg, at);
        }
        svg.push_str("</svg>");
        svg
    }

    fn draw_edge(
        &self,
        svg: &mut String,
        (from, to, tie, text): &(usize, usize, EdgeKind, String),
    ) {
        let ((x1, y1), (x2, y2)) = (self.place(*from), self.place(*to));
        let length = (x2 - x1).hypot(y2 - y1).max(1.0);
        // The edge ends at the rim of the node. It is curved, so that an edge in the opposite
        // direction does not cover it.
        let (dx, dy) = ((x2 - x1) / length, (y2 - y1) / length);
        let (ex, ey) = (x2 - dx * (NODE + 2.0), y2 - dy * (NODE + 2.0));
        let bend = match tie {
            EdgeKind::Question => 18.0,
            EdgeKind::Request => -18.0,
            EdgeKind::FollowUp => 36.0,
        };
        let (mx, my) = ((x1 + x2) / 2.0 - dy * bend, (y1 + y2) / 2.0 + dx * bend);
        let _ = writeln!(
            svg,
            "<path class=\"{}\" d=\"M{x1:.0} {y1:.0}Q{mx:.0} {my:.0} {ex:.0} {ey:.0}\" \
             marker-end=\"url(#tip)\"><title>{}</title></path>",
            tie.class(),
            escaped(text),
        );
    }

    fn draw_node(&self, svg: &mut String, at: usize) {
        let (party, class) = &self.nodes[at];
        let (x, y) = self.place(at);
        let name = words::party(party);
        let short = match party {
            ActorId::Agent(symbol) if !symbol.is_module() => symbol.name.clone(),
            ActorId::Agent(_)
            | ActorId::Scout
            | ActorId::Proxy
            | ActorId::Solo
            | ActorId::User
            | ActorId::Starling => name.clone(),
        };
        let (dx, anchor) = match x < SIDE + RADIUS - 1.0 {
            true => (-NODE - 5.0, "end"),
            false => (NODE + 5.0, "start"),
        };
        let _ = writeln!(
            svg,
            "<g><title>{}</title><circle class=\"{class}\" cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"{NODE}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{}</text></g>",
            escaped(&name),
            x + dx,
            y + 4.0,
            escaped(&short),
        );
    }
}
