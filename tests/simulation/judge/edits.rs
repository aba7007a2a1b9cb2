//! Checks of the edits to the user's texts.

use std::collections::BTreeSet;

use starling_core::{Approval, Driver, FileEdit};

use super::proposals::Proposal;
use super::{Judge, failing, tokens};
use crate::project::{Project, is_marked};

/// Paths that no agent may write.
const NEVER: [&str; 4] = [".git/", ".starling/", ".env", "../"];
/// Paths that may be written only after a person has approved.
const BY_PERSON: [&str; 7] = [
    ".github/",
    ".vscode/",
    ".idea/",
    ".envrc",
    "Makefile",
    "conftest.py",
    "setup.py",
];

impl Judge {
    pub fn edit_refused(&mut self, edit: &FileEdit) {
        if let Some(proposal) = self.proposals.awaiting(&edit.label) {
            proposal.edit_refused = true;
        }
    }

    /// Checks an edit before it changes a text.
    pub fn edit_arrives(&mut self, edit: &FileEdit, before: &str, after: &str) {
        self.check_path(edit.file.as_str());
        self.check_typed(edit, before, after);
        if self.stop_reason.is_some() && !self.undoing {
            let text = format!("{} was edited after the end", edit.file);
            self.broken("nothing after the end", "an edit", text);
        }
        if let Some(number) = edit.label.strip_prefix("undo #") {
            let undone = number
                .parse()
                .ok()
                .and_then(|id| self.proposals.all.get_mut(&id));
            if let Some(proposal) = undone {
                proposal.undone = true;
            }
            return;
        }
        if let Some(number) = edit.label.strip_prefix("redo #") {
            let again = number.parse().ok();
            let again = again.and_then(|id: u32| self.proposals.all.get_mut(&id));
            match again.filter(|one| one.arrived && one.undone) {
                // A redo is allowed for an undo by a person, or at the end of a run that nobody
                // reviewed.
                Some(proposal) if self.undoing || self.approval != Approval::Ask => {
                    proposal.undone = false;
                }
                Some(_) | None => {
                    let text = format!("{} by {}", edit.file, edit.label);
                    self.broken("only what was accepted is applied", "redo", text);
                }
            }
            return;
        }
        let arrived = self.proposals.all.values().filter(|one| one.arrived);
        let earlier = arrived.count();
        let Some(proposal) = self.proposals.awaiting(&edit.label) else {
            let text = format!("{} by {}", edit.file, edit.label);
            self.broken("only what was accepted is applied", "no acceptance", text);
            return;
        };
        proposal.arrived = true;
        proposal.arrival = Some(earlier);
        let proposal = proposal.clone();
        self.check_owner(&proposal, edit, before, after);
        self.check_candidate(&proposal, after);
        self.check_shown(&proposal, before, after);
    }

    /// Records an edit that has changed a text, and whether it made the tests worse.
    pub fn edit_arrived(&mut self, texts: super::Texts) {
        self.texts = texts;
        for unit in &self.project.units {
            if let Some(version) = self.project.version(&unit.name, &self.texts) {
                self.arrived_versions.insert(unit.path(), version);
            }
        }
        let now = failing(&self.project, &self.texts);
        let is_worse =
            |id: &&String| !self.failing.contains(*id) && !self.failing_before.contains(*id);
        if now.iter().any(|id| is_worse(&id)) {
            let last = self
                .proposals
                .all
                .iter()
                .rev()
                .find(|(_, one)| one.arrived && !one.applied);
            self.culprit = last.map(|(id, _)| *id).or(self.culprit);
        }
        self.failing = now;
    }

    fn check_path(&mut self, file: &str) {
        let is = |path: &&&str| file.starts_with(**path) || file == **path;
        if let Some(path) = NEVER.iter().find(is) {
            let text = format!("{file} was written");
            self.broken("agents write only where they may", *path, text);
        }
        if self.approval != Approval::Ask
            && let Some(path) = BY_PERSON.iter().find(is)
        {
            let text = format!("{file} was written and nobody was asked");
            self.broken("agents write only where they may", *path, text);
        }
    }

    /// Checks that text typed by the user is kept, unless a model has seen it.
    fn check_typed(&mut self, edit: &FileEdit, before: &str, after: &str) {
        let is_undo = edit.label.starts_with("undo ") || edit.label.starts_with("redo ");
        let (was, is) = (tokens(before), tokens(after));
        let lost: Vec<&String> = was
            .difference(&is)
            .filter(|one| !self.seen_tokens.contains(*one))
            .collect();
        if !lost.is_empty() {
            let text = format!("{lost:?} in {} by {}", edit.file, edit.label);
            let mechanism = if is_undo { "undo" } else { "edit" };
            self.broken("what the user typed stands", mechanism, text);
            return;
        }
        let changed = look_alikes(before).into_iter().find(|block| {
            let is_unseen = tokens(block)
                .iter()
                .any(|one| !self.seen_tokens.contains(one));
            is_unseen && !after.contains(block.as_str())
        });
        if let Some(block) = changed {
            let text = format!("{} by {}: `{block}`", edit.file, edit.label);
            let mechanism = if is_undo {
                "a look-alike (undo)"
            } else {
                "a look-alike"
            };
            self.broken("what the user typed stands", mechanism, text);
            return;
        }
        let lines: BTreeSet<&str> = before.lines().collect();
        let merged = after.lines().find(|line| {
            let unseen = tokens(line)
                .iter()
                .any(|one| !self.seen_tokens.contains(one));
            unseen && !lines.contains(line)
        });
        if let Some(line) = merged.filter(|_| !is_undo) {
            let text = format!("{}: `{}` was written by nobody", edit.file, line.trim());
            let mechanism = match self.driver {
                Driver::Swarm => "two edits of one line are merged",
                Driver::Single => "a hunk of the single agent meets a line that it has not seen",
            };
            self.broken("what the user typed stands", mechanism, text);
        }
    }

    fn check_owner(&mut self, proposal: &Proposal, edit: &FileEdit, before: &str, after: &str) {
        let file = edit.file.as_str();
        let version_line = |text: &str, name: &str| {
            text.lines()
                .find(|line| is_marked(line, name))
                .map(str::to_owned)
        };
        let others: Vec<String> = self
            .project
            .units
            .iter()
            .filter(|unit| unit.file == file)
            .filter(|unit| version_line(before, &unit.name) != version_line(after, &unit.name))
            .filter(|unit| {
                !proposal
                    .symbols
                    .iter()
                    .any(|own| own.to_string() == unit.path())
            })
            .map(|unit| unit.path())
            .collect();
        let is_of_whole_file = proposal.symbols.iter().any(|own| own.is_module());
        if !others.is_empty() && !is_of_whole_file {
            let text = format!("{} changed {others:?}", proposal.agent);
            self.broken("one owner for each symbol", "foreign edit", text);
        }
    }

    fn check_candidate(&mut self, proposal: &Proposal, after: &str) {
        let Some(model) = &proposal.candidate else {
            return;
        };
        if model.starts_with("editor")
            && !after.contains(&format!("by:{}", model.replace(' ', "-")))
        {
            let text = format!(
                "{} of {} won, another text was applied",
                model, proposal.agent
            );
            self.broken(
                "the chosen candidate is applied",
                "drafted again from the loser",
                text,
            );
        }
    }

    /// Checks that a person was shown every line that is written.
    fn check_shown(&mut self, proposal: &Proposal, before: &str, after: &str) {
        if self.approval != Approval::Ask {
            return;
        }
        let old: BTreeSet<&str> = before.lines().collect();
        let shown: BTreeSet<&str> = proposal
            .diff
            .lines()
            .filter_map(|line| line.strip_prefix('+'))
            .collect();
        let hidden = after
            .lines()
            .find(|line| !old.contains(line) && !shown.contains(line) && !line.trim().is_empty());
        if let Some(line) = hidden {
            let text = format!("`{}` of {}", line.trim(), proposal.agent);
            self.broken(
                "only what was accepted is applied",
                "a line that was not shown",
                text,
            );
        }
    }

    /// Checks that nothing is worse than before at the end of a run that nobody reviewed.
    pub(super) fn check_landing(&mut self, is_settled: bool) {
        // Changes that could not be undone were reported.
        let is_told = self.proposals.all.values().any(|one| one.stays);
        if self.approval == Approval::Ask || self.user_changed_behaviour || is_told {
            return;
        }
        let by = |judge: &Judge| {
            let culprit = judge.culprit.and_then(|id| judge.proposals.all.get(&id));
            let mut all = judge.proposals.all.values();
            let excuse = match all.any(Proposal::was_accepted_in_vain) {
                true => "an accepted part was not applied",
                false => culprit.map_or("several", Proposal::excuse),
            };
            format!("{:?}: {excuse}", judge.approval).to_lowercase()
        };
        let worse: Vec<String> = self
            .failing
            .difference(&self.failing_before)
            .cloned()
            .collect();
        if !worse.is_empty() && self.has_tests && !self.checks_had_trouble {
            let text = format!("{worse:?} passed before the run");
            let mechanism = by(self);
            self.broken("nothing lands that breaks a test", mechanism, text);
        }
        let texts = self.texts.iter();
        let problems = texts
            .map(|(file, text)| Project::problems(file, text).len())
            .sum::<usize>();
        if problems > 0 && self.has_language_server && !self.checks_had_trouble {
            let mechanism = by(self);
            let text = format!("{problems} new problems");
            self.broken(
                "nothing lands that a language server objects to",
                mechanism,
                text,
            );
        }
        let in_tree = self
            .proposals
            .all
            .values()
            .any(|one| one.arrived && !one.undone && !one.stays);
        if in_tree && !is_settled && self.approval == Approval::Auto {
            let text = format!("{:?}", self.stop_reason);
            self.broken(
                "an unsettled auto run leaves the tree as it was",
                "auto",
                text,
            );
        }
    }
}

/// Returns the functions that the user typed as copies of an agent's function, with their lines.
fn look_alikes(text: &str) -> Vec<String> {
    let heads = text.match_indices("def alike_typed");
    let block = |(at, _): (usize, &str)| {
        let lines = text[at..].lines().take_while(|line| !line.is_empty());
        lines.collect::<Vec<&str>>().join("\n")
    };
    heads.map(block).collect()
}
