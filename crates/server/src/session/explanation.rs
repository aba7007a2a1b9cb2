//! Explains a proposal in Markdown or plain text, for hovers, documents and messages.

use super::run_view::RunProposal;
use starling_swarm::{ProposalId, ids};
use starling_text::harmless;

/// Maximum length of a diff in a hover, in bytes.
const HOVER_DIFF: usize = 4_000;

/// The format in which a client shows texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    Markdown,
    Plain,
}

/// Returns the reason and the evidence of a proposal.
pub fn explain(id: ProposalId, proposal: &RunProposal, format: TextFormat) -> String {
    let text = Markup { format };
    let mut told = format!(
        "{} for {}",
        text.strong(&format!("Starling {id}")),
        text.name(&proposal.symbol.to_string())
    );
    if !proposal.with.is_empty() {
        let with: Vec<String> = proposal.with.iter().map(ToString::to_string).collect();
        told += &format!(", together with {}", with.join(", "));
    }
    if let Some(needs) = proposal.evidence.as_ref().map(|one| one.needs())
        && !needs.is_empty()
    {
        told += &format!(", needs {}", ids(needs));
    }
    told += &format!("\n\n{}\n", text.words(proposal.reason.trim()));
    if let Some(conflict) = &proposal.conflict {
        let conflict = text.words(conflict);
        told += &format!("\nIt conflicts with what you typed: {conflict}.\n");
    }
    if let Some(evidence) = &proposal.evidence {
        told += &text.block("text", &evidence.to_string());
    }
    told
}

/// Like [`explain`], with the diff.
pub fn explain_with_diff(id: ProposalId, proposal: &RunProposal, format: TextFormat) -> String {
    let diff = &proposal.diff;
    let end = (0..=HOVER_DIFF.min(diff.len()))
        .rev()
        .find(|end| diff.is_char_boundary(*end))
        .unwrap_or_default();
    let shown = match end == diff.len() {
        true => diff.clone(),
        false => format!("{}\n…", &diff[..end]),
    };
    let summary = explain(id, proposal, format);
    format!("{summary}{}", Markup { format }.block("diff", &shown))
}

/// Formats texts as Markdown or plain text.
struct Markup {
    format: TextFormat,
}

impl Markup {
    fn strong(&self, text: &str) -> String {
        match self.format {
            TextFormat::Markdown => format!("**{text}**"),
            TextFormat::Plain => text.to_owned(),
        }
    }

    fn name(&self, name: &str) -> String {
        match self.format {
            TextFormat::Markdown => code(name),
            TextFormat::Plain => harmless(name),
        }
    }

    /// Returns a model's text as plain words: invisible characters are escaped, and no link, image,
    /// heading or block is rendered. An image URL could leak data to any host.
    fn words(&self, text: &str) -> String {
        let lines: Vec<String> = match self.format {
            TextFormat::Markdown => text.lines().map(escaped).collect(),
            TextFormat::Plain => text.lines().map(harmless).collect(),
        };
        lines.join("\n")
    }

    fn block(&self, language: &str, text: &str) -> String {
        match self.format {
            TextFormat::Markdown => fenced(language, text),
            TextFormat::Plain => format!("\n{}\n", text.trim_end()),
        }
    }
}

/// Escapes the Markdown of a line, except code between two single backticks.
fn escaped(line: &str) -> String {
    let line = harmless(line);
    let mut rest = line.trim();
    let mut shown = String::new();
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        let ticks = from.len() - from.trim_start_matches('`').len();
        let inside = from[ticks..].find('`').map(|end| ticks + end);
        let span = inside.filter(|end| ticks == 1 && *end > 1 && !from[end + 1..].starts_with('`'));
        shown += &without_markup(before, shown.is_empty());
        match span {
            Some(end) => {
                shown += &from[..=end];
                rest = &from[end + 1..];
            }
            None => {
                shown += &"\\`".repeat(ticks);
                rest = &from[ticks..];
            }
        }
    }
    let is_first = shown.is_empty();
    shown + &without_markup(rest, is_first)
}

/// Escapes the Markdown of a text without backticks. Nothing else is escaped, so that the text stays
/// readable where Markdown is not rendered.
fn without_markup(text: &str, is_first: bool) -> String {
    let number = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let list = (is_first && number.len() < text.len()).then(|| text.len() - number.len());
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    for (at, char) in text.char_indices() {
        let after = &text[at + char.len_utf8()..];
        let next = after.chars().next();
        let is_word = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
        let is_read = match char {
            '*' | '[' | ']' | '<' | '~' | '|' => true,
            '\\' => next.is_none_or(|next| next.is_ascii_punctuation()),
            '_' => !(is_word(before) && is_word(next)),
            '#' | '>' | '-' | '+' | '=' => is_first && at == 0,
            '.' => list == Some(at) || (text[..at].ends_with("www") && is_word(next)),
            ')' => list == Some(at),
            // A URL would become a link.
            ':' => after.starts_with("//"),
            '&' => is_word(next) || next == Some('#'),
            _ => false,
        };
        if is_read {
            shown.push('\\');
        }
        shown.push(char);
        before = Some(char);
    }
    shown
}

/// Returns a name as inline code. The fence is longer than any fence in the name.
fn code(name: &str) -> String {
    let longest = name.split(|c| c != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or_default() + 1);
    let space = if fence.len() > 1 { " " } else { "" };
    format!("{fence}{space}{}{space}{fence}", harmless(name))
}

/// Returns a fenced code block. The fence is longer than any fence in the code.
fn fenced(language: &str, code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    format!("\n{fence}{language}\n{}\n{fence}\n", code.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{BASE, waiting};
    use starling_syntax::FilePath;

    #[test]
    fn explains_reason_evidence_and_conflict() {
        let mut view = waiting(&[(1, "a.py::f"), (2, "a.py::g")]);
        let id = ProposalId(2);
        insta::assert_snapshot!(explain_with_diff(
            id,
            &view.proposals[&id],
            TextFormat::Markdown
        ));
        view.compare(&FilePath::new("a.py"), &BASE.replace("return", "raise"));
        let told = explain(id, &view.proposals[&id], TextFormat::Markdown);
        assert!(
            told.contains("conflicts with what you typed: both sides"),
            "{told}"
        );
    }

    #[test]
    fn explanation_escapes_images_and_code_fences() {
        let mut proposal = waiting(&[(1, "a.py::f")]).proposals[&ProposalId(1)].clone();
        proposal.symbol = "`![](http:..x)`\u{202e}.py::f".parse().unwrap();
        proposal.reason = "![x](https://e/?s) <img src=x> \x1b[2J`a[0]`".to_owned();
        let told = explain(ProposalId(1), &proposal, TextFormat::Markdown);
        let first = "**Starling #1** for `` `![](http:..x)`\\u{202e}.py::f ``\n\n";
        let reason = "!\\[x\\](https\\://e/?s) \\<img src=x> \\u{1b}\\[2J`a[0]`\n";
        assert!(told.starts_with(&format!("{first}{reason}")), "{told}");
    }

    #[test]
    fn explanation_escapes_links_headings_and_blocks() {
        let mut proposal = waiting(&[(1, "a.py::f")]).proposals[&ProposalId(1)].clone();
        proposal.reason = "Fixes `a_b`.\n\n```text\ntests: 40 of 40 pass\n```\n# Head\n---\n1. one\n\
            [Accept](command:starling.accept) <a href=\"command:x\"> https://e www.e.de *b* my_name _i_"
            .to_owned();
        let told = explain(ProposalId(1), &proposal, TextFormat::Markdown);
        let words = told.lines().skip(2).collect::<Vec<&str>>();
        let expected = [
            "Fixes `a_b`.",
            "",
            "\\`\\`\\`text",
            "tests: 40 of 40 pass",
            "\\`\\`\\`",
            "\\# Head",
            "\\---",
            "1\\. one",
            "\\[Accept\\](command:starling.accept) \\<a href=\"command:x\"> https\\://e www\\.e.de \\*b\\* \
             my_name \\_i\\_",
        ];
        assert_eq!(words[..expected.len()], expected, "{told}");
    }

    #[test]
    fn plain_text_explanation_has_no_markdown() {
        let mut proposal = waiting(&[(1, "a.py::f")]).proposals[&ProposalId(1)].clone();
        proposal.reason = "a_b [c] \x1b[2J".to_owned();
        let told = explain_with_diff(ProposalId(1), &proposal, TextFormat::Plain);
        assert!(
            told.starts_with("Starling #1 for a.py::f\n\na_b [c] \\u{1b}[2J\n"),
            "{told}"
        );
        assert!(!told.contains("```"), "{told}");
    }

    #[test]
    fn code_fence_is_longer_than_the_fences_in_the_code() {
        assert_eq!(fenced("x", "a\n"), "\n```x\na\n```\n");
        assert_eq!(fenced("x", "````"), "\n`````x\n````\n`````\n");
    }

    #[test]
    fn long_diff_is_cut_at_a_character_boundary() {
        let view = waiting(&[(1, "a.py::f")]);
        let mut proposal = view.proposals[&ProposalId(1)].clone();
        proposal.diff = "ä".repeat(HOVER_DIFF);
        let told = explain_with_diff(ProposalId(1), &proposal, TextFormat::Markdown);
        assert!(told.contains("ä\n…"), "cut");
    }
}
