//! Drops keys and lines that were typed before the user can have read the question, and keys that
//! came together.

use std::io;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::input::{READING, WORD};
use super::super::view::prompt::{PendingQuestion, Prompt, UserCommand};
use super::super::view::text::{Line, Style};
use super::Viewer;
use starling_core::Verdict;

/// Message about a key that was pressed before the user can have read the question.
pub(super) const EARLY: &str =
    "key ignored: the question just appeared; wait a second, then try again";
/// Message about a line that accepts and was typed before the user can have read the question.
pub(super) const EARLY_LINE: &str =
    "line ignored: it was typed before its question could be read; wait a second, then try again";
/// Message about keys that are ignored because several arrived at once.
pub(super) const TOGETHER: &str =
    "keys ignored: several came at once; wait a second, then press one key";

impl Viewer<'_> {
    /// Whether to drop a key because it was typed before the user can have read the question, or
    /// directly after a dropped key. Ctrl-C is never dropped. A key that begins a text, such as a reason,
    /// is dropped only after another dropped key, because the letters that follow it would be taken as
    /// answers. Text that was started before the question continues, but Enter is dropped because it may
    /// have been meant for something else.
    pub(super) fn is_too_early(&self, key: KeyEvent) -> bool {
        if self.asked.is_none() || key.modifiers.contains(KeyModifiers::CONTROL) {
            return false;
        }
        let just_asked = self.asked_at.elapsed() < READING;
        match self.prompt {
            Prompt::Choosing | Prompt::Kept(_) => {
                self.is_in_dropped_word()
                    || just_asked && !self.prompt.opens_text(key, self.awaited())
            }
            Prompt::Ahead(_) | Prompt::Rejecting(_) | Prompt::Steering(_) => {
                just_asked && key.code == KeyCode::Enter
            }
        }
    }

    /// Whether the last key was dropped so recently that the next one belongs to it.
    pub(super) fn is_in_dropped_word(&self) -> bool {
        self.dropped_at.is_some_and(|at| at.elapsed() < WORD)
    }

    /// Whether a typed line accepts a proposal that the user cannot have read: its question was not yet
    /// shown, or has just appeared. Lines from a pipe or a file answer the questions in order.
    pub(super) fn accepts_too_early(&self, line: &str) -> bool {
        if !self.are_lines_typed || !self.accepts(line) {
            return false;
        }
        let front = self.state.reviews.front();
        let is_shown = front.is_some() && front == self.asked.as_ref();
        !is_shown || self.asked_at.elapsed() < READING
    }

    /// Whether a line accepts a proposal.
    pub(super) fn accepts(&self, line: &str) -> bool {
        let is_text = self.next_line.is_some();
        !is_text && self.said(line) == UserCommand::Verdict(Verdict::Accept)
    }

    /// Drops a key. Only the first key of a word causes a message.
    pub(super) fn drop_key(&mut self, why: &str) -> io::Result<()> {
        let is_told = self.is_in_dropped_word();
        self.dropped_at = Some(Instant::now());
        if is_told {
            return Ok(());
        }
        self.screen.say(&[Line::of(Style::Warning, why)])
    }

    /// Handles keys that came together. What follows the first key that is not used is dropped with
    /// it, as the rest of a word.
    pub(super) fn burst(
        &mut self,
        keys: &[KeyEvent],
        asked: PendingQuestion,
    ) -> io::Result<Option<UserCommand>> {
        for key in keys {
            if self.is_too_early(*key) {
                self.drop_key(EARLY)?;
                continue;
            }
            match self.prompt.key_of_burst(*key, asked) {
                (Some(said), _) => return Ok(Some(said)),
                (None, true) => {}
                (None, false) => self.drop_key(TOGETHER)?,
            }
        }
        Ok(None)
    }
}
