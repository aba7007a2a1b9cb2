//! Shortens a conversation that nears the model's context window. Tool results are left out first,
//! the cheapest and oldest before others, then whole turns. The messages before the first reply and
//! the last turns are kept, and a call is kept together with its result.

use starling_core::{Message, ModelProfile, Tokens, ToolSpec};

use crate::conversation::{CallLabel, Conversation, ToolResults, TurnsSummary, first_line};
use crate::tool::ToolCost;

/// Number of turns at the end of a conversation that are never shortened.
const LAST_TURNS: usize = 2;
/// The conversation is shortened if its prompt needs more than this many eighths of the window. The
/// rest is a reserve, because the number of tokens is an estimate.
const NEAR: u64 = 7;
/// Maximum number of characters of a message that a summary quotes.
const QUOTED: usize = 600;
/// Maximum number of lines of a summary. The oldest are dropped.
const LINES: usize = 60;
const HEAD: &str = "Earlier turns were left out to save room. In them:";

impl Conversation {
    /// Shortens the conversation if the next request would come near the model's window. Returns
    /// whether it was shortened. Much is left out at once, so that this is rare and the prompt
    /// caches of model providers hit in between.
    pub(crate) fn make_room(&mut self, tools: &[ToolSpec], profile: &ModelProfile) -> bool {
        let of_tools = Tokens::of_prompt(&[], tools, Tokens::estimate);
        let room = profile
            .context_window
            .saturating_sub(self.longest_answer(profile))
            .saturating_sub(of_tools);
        // If the window has no room for any prompt, leaving out messages does not help.
        let is_near = room > Tokens(0) && self.estimate() > Tokens(room.0 / 8 * NEAR);
        is_near && self.leave_out(room)
    }

    /// Shortens the conversation as if its current prompt exactly filled the window. Returns
    /// whether it was shortened.
    pub(crate) fn shorten(&mut self) -> bool {
        self.leave_out(self.estimate())
    }

    fn estimate(&self) -> Tokens {
        Tokens::of_prompt(&self.messages, &[], Tokens::estimate)
    }

    /// Leaves out tool results until the prompt takes half of `room`. If it still takes more than
    /// three quarters, also leaves out whole turns.
    fn leave_out(&mut self, room: Tokens) -> bool {
        let Some((first, last)) = self.middle() else {
            return false;
        };
        let results_are_left_out = self.leave_results_out(last, Tokens(room.0 / 2));
        let is_full = self.estimate() > Tokens(room.0 / 4 * 3);
        let turns_are_left_out = is_full && self.leave_turns_out(first, last);
        let is_changed = results_are_left_out || turns_are_left_out;
        if is_changed {
            // Earlier messages have changed, so the whole conversation must be recorded again.
            self.recorded = 0;
        }
        is_changed
    }

    /// Returns the range of messages between the task and the last turns; `None` if it is empty.
    fn middle(&self) -> Option<(usize, usize)> {
        let says = |at: &usize| matches!(self.messages[*at], Message::Assistant { .. });
        let replies: Vec<usize> = (0..self.messages.len()).filter(says).collect();
        let last = *replies.iter().rev().nth(LAST_TURNS - 1)?;
        let first = *replies.first()?;
        (first < last).then_some((first, last))
    }

    /// Replaces tool results before the message `last` by notes until the prompt has at most `most`
    /// tokens. Returns whether any was replaced.
    fn leave_results_out(&mut self, last: usize, most: Tokens) -> bool {
        let mut is_changed = false;
        let is_kept = |one: &&mut ToolResults| one.at < last && !one.is_left_out;
        let mut results: Vec<&mut ToolResults> = self.results.iter_mut().filter(is_kept).collect();
        results.sort_by_key(|one| (one.cost, one.at));
        for one in results {
            if Tokens::of_prompt(&self.messages, &[], Tokens::estimate) <= most {
                break;
            }
            let (Message::Tool { text, .. } | Message::User { text }) = &mut self.messages[one.at]
            else {
                continue;
            };
            let short = in_place_of(one, text.chars().count());
            if short.len() < text.len() {
                *text = short;
                one.is_left_out = true;
                is_changed = true;
            }
        }
        is_changed
    }

    /// Replaces a range of messages by a summary. Returns false if the summary would not be
    /// shorter.
    fn leave_turns_out(&mut self, first: usize, last: usize) -> bool {
        let earlier = self.summary.as_ref().filter(|one| one.at + 1 == first);
        let mut lines = earlier.map_or_else(Vec::new, |one| one.lines.clone());
        let start = earlier.map_or(first, |one| one.at);
        lines.extend(self.lines(first, last));
        lines.drain(..lines.len().saturating_sub(LINES));
        let text = format!("{HEAD}\n{}", lines.join("\n"));
        let before: usize = self.messages[start..last].iter().map(length).sum();
        if text.len() >= before {
            return false;
        }
        self.messages
            .splice(start..last, [Message::User { text }])
            .for_each(drop);
        self.results.retain(|one| one.at >= last);
        for one in &mut self.results {
            one.at -= last - start - 1;
        }
        self.summary = Some(TurnsSummary { at: start, lines });
        true
    }

    /// Returns one line of the summary for each message of a range.
    fn lines(&self, first: usize, last: usize) -> Vec<String> {
        let describe = |at: usize| {
            let results = self.results.iter().find(|one| one.at == at);
            match (&self.messages[at], results) {
                (_, Some(results)) => results.calls.iter().map(called).collect(),
                (Message::Assistant { text, .. }, None) => quoted("you wrote", text),
                (
                    Message::System { text } | Message::User { text } | Message::Tool { text, .. },
                    None,
                ) => quoted("you were told", text),
            }
        };
        (first..last).flat_map(describe).collect()
    }
}

fn length(message: &Message) -> usize {
    let calls = match message {
        Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
        Message::System { .. } | Message::User { .. } | Message::Tool { .. } => &[],
    };
    let of_calls = calls.iter().map(|call| call.arguments.len());
    message.text().len() + of_calls.sum::<usize>()
}

/// Returns the note that replaces tool results that were left out.
fn in_place_of(results: &ToolResults, characters: usize) -> String {
    let calls: Vec<String> = results.calls.iter().map(|(call, _)| name(call)).collect();
    let calls = calls.join(", ");
    let again = match results.cost {
        ToolCost::Lookup | ToolCost::Command | ToolCost::Model => {
            " Call again what you still need."
        }
        ToolCost::Change => "",
    };
    format!("[Left out to save room: the result of {calls}, {characters} characters.{again}]")
}

fn name((tool, argument): &CallLabel) -> String {
    match argument.is_empty() {
        true => format!("`{tool}`"),
        false => format!("`{tool} {}`", first_line(argument)),
    }
}

fn called((label, result): &(CallLabel, String)) -> String {
    format!("- {}: {result}", name(label))
}

/// Quotes a message in one line. Returns no line if the message is empty.
fn quoted(who: &str, text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    if text.is_empty() {
        return Vec::new();
    }
    let mut quote: String = text.chars().take(QUOTED).collect();
    if quote.len() < text.len() {
        quote.push('…');
    }
    vec![format!("- {who}: {quote}")]
}
