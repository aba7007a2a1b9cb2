//! Other answers to the same prompt. An answer that was not good is not written again: the next one takes
//! the second choice at the place where the network was least sure, and goes on from there. Random
//! sampling repeats a small model's favourite answer over and over.

/// Alternatives that are noted at one place.
const MOST: usize = 3;
/// An alternative is noted up to this difference of the scores: so much less likely (e⁴, some fifty
/// times) it seldom leads to anything.
const FARTHEST: f32 = 4.0;

/// The places where the answers to one prompt could have gone on otherwise.
#[derive(Default)]
pub struct Forks {
    prompt: Vec<u32>,
    open: Vec<Fork>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Fork {
    /// The tokens of the answer, the last one being the second choice.
    pub beginning: Vec<u32>,
    /// How much less likely than the best answer, as a difference of scores.
    loss: f32,
}

impl Forks {
    /// The most likely beginning of an answer that was not given yet. `None`: this is the first answer
    /// to the prompt, or nothing is left.
    pub fn next(&mut self, prompt: &[u32], answered: u32) -> Option<Fork> {
        if answered == 0 || self.prompt != prompt {
            prompt.clone_into(&mut self.prompt);
            self.open.clear();
            return None;
        }
        let best = (0..self.open.len())
            .min_by(|one, other| self.open[*one].loss.total_cmp(&self.open[*other].loss))?;
        Some(self.open.swap_remove(best))
    }

    /// Notes what may stand in place of the best token behind `written`, in an answer that began with a
    /// fork of this loss. `text` is what is written so far.
    pub fn note(
        &mut self,
        written: &[u32],
        text: &str,
        scores: &[f32],
        loss: f32,
        bytes: impl Fn(u32) -> Vec<u8>,
    ) {
        if !is_in_code(text) {
            return;
        }
        let mut best: Vec<(u32, f32)> = Vec::with_capacity(MOST + 2);
        for (token, score) in scores.iter().enumerate() {
            if best.len() > MOST && *score <= best[MOST].1 {
                continue;
            }
            let at = best.partition_point(|(_, known)| known >= score);
            best.insert(at, (token as u32, *score));
            best.truncate(MOST + 1);
        }
        let Some((_, top)) = best.first().copied() else {
            return;
        };
        for (token, score) in best.into_iter().skip(1) {
            let less = top - score;
            if less <= FARTHEST && is_code(&bytes(token)) {
                let mut beginning = written.to_vec();
                beginning.push(token);
                self.open.push(Fork {
                    beginning,
                    loss: loss + less,
                });
            }
        }
    }

    /// The loss of an answer that begins with this fork.
    pub fn loss(fork: Option<&Fork>) -> f32 {
        fork.map_or(0.0, |fork| fork.loss)
    }
}

/// Whether the next token changes what code does: behind the head of a definition, outside of comments
/// and of texts in triple quotes.
fn is_in_code(text: &str) -> bool {
    let Some(at) = text.find("def ") else {
        return false;
    };
    let body = &text[at..];
    let is_closed = |quotes: &str| body.matches(quotes).count().is_multiple_of(2);
    let line = body.rsplit('\n').next().unwrap_or_default();
    // A line that begins at the margin ends the definition.
    let is_inside = body.contains(":\n") && !body.contains("```") && !line.is_empty();
    is_inside && is_closed("\"\"\"") && is_closed("'''") && !line.contains('#')
}

/// Whether a token changes what code does: no blank, no comment, no fence.
fn is_code(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii();
    !text.is_empty() && !text.starts_with(b"#") && !text.contains(&b'`')
}
