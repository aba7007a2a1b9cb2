//! Pairs of conversations with the same beginning, one of a resolved and one of an unresolved
//! attempt at the same instance.

use std::collections::BTreeSet;

use serde_json::Value;

use super::conversation::Conversation;
use super::{Export, Exported, InstanceConversations, Outcome, chat};
use starling_core::Message;

/// A conversation, split for use in a pair.
struct Side<'t> {
    told: &'t InstanceConversations,
    talk: Conversation,
    /// The messages before the model's first reply.
    prompt: Value,
    completion: Value,
}

/// Adds all pairs. Each conversation is used in at most one pair.
pub(super) fn pairs(export: &Export, told: &[InstanceConversations], exported: &mut Exported) {
    let sides: Vec<Side> = told
        .iter()
        .flat_map(InstanceConversations::conversations)
        .filter_map(|(told, talk)| Side::of(told, talk))
        .collect();
    let of = |outcome| {
        sides
            .iter()
            .filter(move |side| side.told.outcome == outcome)
    };
    exported.other_outcomes = told
        .iter()
        .filter(|one| one.outcome == Outcome::Ungraded)
        .count();
    let mut used = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for chosen in of(Outcome::Resolved) {
        let fits = |(at, rejected): &(usize, &Side)| {
            !used.contains(at) && rejected.begins_like(chosen) && !rejected.says_as(chosen)
        };
        let Some((at, rejected)) = of(Outcome::Unresolved).enumerate().find(fits) else {
            continue;
        };
        let said = format!(
            "{} {} {}",
            chosen.prompt, chosen.completion, rejected.completion
        );
        used.insert(at);
        if !seen.insert(said) {
            exported.duplicates += 1;
            continue;
        }
        let mut line = export.heading(chosen.told);
        line["conversation"] = chosen.talk.name.clone().into();
        line["role"] = serde_json::json!(chosen.talk.role);
        line["model_chosen"] = chosen.told.settings.model.clone().into();
        line["model_rejected"] = rejected.told.settings.model.clone().into();
        line["prompt"] = chosen.prompt.clone();
        line["chosen"] = chosen.completion.clone();
        line["rejected"] = rejected.completion.clone();
        line["tools"] = chat::tools(&chosen.talk.tools);
        exported.lines.push(line);
    }
}

impl<'t> Side<'t> {
    fn of(told: &'t InstanceConversations, talk: Conversation) -> Option<Self> {
        let says = |message: &Message| matches!(message, Message::Assistant { .. });
        let first = talk.messages.iter().position(says)?;
        let mut all = chat::messages(&talk.messages).as_array()?.clone();
        let completion = all.split_off(first);
        Some(Side {
            told,
            talk,
            prompt: all.into(),
            completion: completion.into(),
        })
    }

    fn begins_like(&self, other: &Side<'_>) -> bool {
        self.told.record.instance_id == other.told.record.instance_id
            && self.talk.role == other.talk.role
            && self.prompt == other.prompt
    }

    fn says_as(&self, other: &Side<'_>) -> bool {
        self.completion == other.completion
    }
}
