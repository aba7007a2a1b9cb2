//! The draft of an answer. A block is shown as soon as the block and all blocks before it pass
//! their checks.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::block::{Block, ClaimFlaw, DroppedCitation, FlawKind, blocks};
use super::cite::{Citation, CitationChecker};
use super::example::PromptExample;
use super::step::{Step, StepLog};

/// Number of characters at the end of an unfinished answer that are shown while it is written.
const TAIL: usize = 60;

/// A partly written answer whose blocks are checked as they arrive.
pub struct AnswerDraft {
    checker: CitationChecker,
    /// The prompt's example; sentences that repeat it are removed from the answer.
    example: PromptExample,
    steps: Arc<StepLog>,
    /// The text received so far.
    coming: String,
    blocks: Vec<Block>,
    /// Number of blocks shown.
    shown: usize,
}

/// A finished answer with the results of its checks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedAnswer {
    pub text: String,
    pub citations: Vec<Citation>,
    pub dropped: Vec<DroppedCitation>,
    pub uncited: Vec<String>,
}

/// A claim that the model must correct, and the block that contains it.
#[derive(Debug, Clone)]
pub struct ClaimToCorrect {
    block: usize,
    flaw: ClaimFlaw,
    pub claim: String,
    /// The problem, as described to the model.
    pub what: String,
}

/// Returns the last characters of a text, on a single line.
fn tail(text: &str) -> String {
    let from = text.char_indices().rev().nth(TAIL).map_or(0, |(at, _)| at);
    let words: Vec<&str> = text[from..].split_whitespace().collect();
    words.join(" ")
}

impl AnswerDraft {
    pub fn new(checker: CitationChecker, steps: Arc<StepLog>) -> Self {
        AnswerDraft {
            checker,
            example: PromptExample::default(),
            steps,
            coming: String::new(),
            blocks: Vec::new(),
            shown: 0,
        }
    }

    /// Reads the example in `prompt`. Sentences of the answer that repeat it are removed.
    pub fn without_example(self, prompt: &str) -> Self {
        let example = PromptExample::of(prompt, &self.checker);
        AnswerDraft { example, ..self }
    }

    /// Appends a piece of the answer and shows the blocks that pass their checks.
    pub fn push(&mut self, delta: &str) {
        self.coming.push_str(delta);
        self.steps.live(Step::Writing {
            tail: tail(&self.coming),
        });
        // The last block may be incomplete.
        let coming = self.example.taken_out(&self.coming, &self.checker);
        let whole: Vec<&str> = blocks(&coming);
        let whole = &whole[..whole.len().saturating_sub(1)];
        if whole.len() > self.blocks.len() {
            for source in &whole[self.blocks.len()..] {
                self.add_block(source);
            }
            self.show_settled();
        }
    }

    fn add_block(&mut self, source: &str) {
        let block = self.checked(self.blocks.len(), source);
        self.blocks.push(block);
    }

    /// Checks the block with this number, counted from 0.
    fn checked(&self, number: usize, source: &str) -> Block {
        match number {
            0 => Block::check_first(source, &self.checker),
            _ => {
                let before = self.blocks.iter().take(number);
                let before: String = before.map(|block| block.source.as_str()).collect();
                Block::check_behind(&before, source, &self.checker)
            }
        }
    }

    /// Discards the answer so far, for example after a lost connection.
    pub fn restart(&mut self) {
        if self.shown > 0 {
            self.steps.live(Step::Restarted);
        }
        self.coming.clear();
        self.blocks.clear();
        self.shown = 0;
    }

    /// Replaces the received text with the complete answer.
    pub fn complete(&mut self, text: &str) {
        let text = self.example.taken_out(text.trim(), &self.checker);
        let whole = blocks(text.trim());
        let same = |(block, source): (&Block, &&str)| block.source.trim() == source.trim();
        let kept =
            whole.len() >= self.shown && self.blocks[..self.shown].iter().zip(&whole).all(same);
        if !kept {
            self.restart();
        }
        self.blocks.truncate(self.shown);
        for source in &whole[self.shown..] {
            self.add_block(source);
        }
        self.show_settled();
    }

    /// Whether no block has been received.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the claims that must be corrected before the remaining blocks can be shown.
    pub fn problems(&self) -> Vec<ClaimToCorrect> {
        let borne_out = self.borne_out();
        let mut problems: Vec<ClaimToCorrect> = Vec::new();
        for (at, block) in self.blocks.iter().enumerate().skip(self.shown) {
            let uncited = block.uncited(&borne_out);
            for flaw in block.wrong.iter().cloned().chain(uncited) {
                let claim = block.source[flaw.span.clone()].trim().to_owned();
                let what = match &flaw.what {
                    FlawKind::WrongCitation(dropped) => {
                        format!("{}: {}", dropped.citation, dropped.why)
                    }
                    FlawKind::Uncited { refuted_by: None } => "no citation".to_owned(),
                    FlawKind::Uncited {
                        refuted_by: Some(place),
                    } => format!("not so: see {place}"),
                };
                // Combine all problems of a claim, so that the model sees each claim once.
                match problems.last_mut() {
                    Some(ClaimToCorrect {
                        block,
                        flaw: known,
                        what: so_far,
                        ..
                    }) if *block == at && known.span == flaw.span => {
                        so_far.push_str("; ");
                        so_far.push_str(&what);
                    }
                    Some(_) | None => problems.push(ClaimToCorrect {
                        block: at,
                        flaw,
                        claim,
                        what,
                    }),
                }
            }
        }
        problems
    }

    /// Replaces faulty claims with corrected ones. `None` deletes a claim.
    pub fn mend(&mut self, mended: Vec<(ClaimToCorrect, Option<String>)>) {
        for at in 0..self.blocks.len() {
            let claims: Vec<_> = mended
                .iter()
                .filter(|(problem, _)| problem.block == at)
                .map(|(problem, new)| (problem.flaw.span.clone(), new.clone().unwrap_or_default()))
                .collect();
            if !claims.is_empty() {
                let source = self.blocks[at].replaced(claims);
                self.blocks[at] = self.checked(at, &source);
            }
        }
    }

    /// Shows the remaining blocks, with markers on unsupported claims, and returns the whole
    /// answer.
    pub fn finish(&mut self) -> CheckedAnswer {
        let borne_out = self.borne_out();
        for at in self.shown..self.blocks.len() {
            let text = self.blocks[at].marked(&borne_out);
            self.show(at, &text);
        }
        self.shown = self.blocks.len();
        let mut checked = CheckedAnswer::default();
        for block in &self.blocks {
            checked.text.push_str(&block.marked(&borne_out));
            for citation in &block.citations {
                if !checked.citations.contains(citation) {
                    checked.citations.push(citation.clone());
                }
            }
            for flaw in &block.wrong {
                if let FlawKind::WrongCitation(dropped) = &flaw.what {
                    checked.dropped.push(dropped.clone());
                }
            }
            let uncited = block.without_citation(&borne_out).into_iter();
            let claims = uncited.map(|span| block.source[span].trim().to_owned());
            checked.uncited.extend(claims);
        }
        checked.text = checked.text.trim().to_owned();
        checked
    }

    fn borne_out(&self) -> BTreeSet<String> {
        self.blocks
            .iter()
            .flat_map(|block| block.borne_out().iter().cloned())
            .collect()
    }

    /// Shows blocks in order up to the first with a problem. Shows nothing before the first
    /// citation arrives, because text without one may be a remark that precedes tool calls.
    fn show_settled(&mut self) {
        let borne_out = self.borne_out();
        if borne_out.is_empty() {
            return;
        }
        while let Some(block) = self.blocks.get(self.shown) {
            if !block.wrong.is_empty() || !block.uncited(&borne_out).is_empty() {
                return;
            }
            let text = block.marked(&borne_out);
            self.show(self.shown, &text);
            self.shown += 1;
        }
    }

    fn show(&self, at: usize, text: &str) {
        for (written, now) in &self.blocks[at].moved {
            self.steps.add(Step::Mended {
                written: written.clone(),
                now: now.clone(),
            });
        }
        if !text.trim().is_empty() {
            self.steps.live(Step::Said {
                text: text.to_owned(),
            });
        }
    }
}
