//! Explains a proposal in Markdown, for hovers, documents and messages.

use super::run_view::RunProposal;
use starling_swarm::{ProposalId, ids};
use starling_text::{harmless, is_deceptive, visible};

/// Maximum length of a diff in a hover, in bytes.
const HOVER_DIFF: usize = 4_000;

/// Returns the reason and the evidence of a proposal in Markdown.
pub fn explain(id: ProposalId, proposal: &RunProposal) -> String {
    let mut text = format!(
        "**Starling {id}** for {}",
        code(&proposal.symbol.to_string())
    );
    if !proposal.with.is_empty() {
        let with: Vec<String> = proposal.with.iter().map(ToString::to_string).collect();
        text += &format!(", together with {}", with.join(", "));
    }
    if let Some(needs) = proposal.evidence.as_ref().map(|one| one.needs())
        && !needs.is_empty()
    {
        text += &format!(", needs {}", ids(needs));
    }
    text += &format!("\n\n{}\n", pictureless(proposal.reason.trim()));
    if let Some(conflict) = &proposal.conflict {
        text += &format!("\nIt conflicts with what you typed: {conflict}.\n");
    }
    if let Some(evidence) = &proposal.evidence {
        text += &fenced("text", &evidence.to_string());
    }
    text
}

/// Like [`explain`], with the diff.
pub fn explain_with_diff(id: ProposalId, proposal: &RunProposal) -> String {
    let diff = &proposal.diff;
    let end = (0..=HOVER_DIFF.min(diff.len()))
        .rev()
        .find(|end| diff.is_char_boundary(*end))
        .unwrap_or_default();
    let shown = match end == diff.len() {
        true => diff.clone(),
        false => format!("{}\n…", &diff[..end]),
    };
    format!("{}{}", explain(id, proposal), fenced("diff", &shown))
}

/// Returns a name as inline code. The fence is longer than any fence in the name.
fn code(name: &str) -> String {
    let longest = name.split(|c| c != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or_default() + 1);
    let space = if fence.len() > 1 { " " } else { "" };
    format!("{fence}{space}{}{space}{fence}", harmless(name))
}

/// Escapes a model's text so that no image is loaded. An image URL could leak data to any host.
fn pictureless(text: &str) -> String {
    let seen = |char: &char| *char == '\n' || !is_deceptive(*char);
    let text: String = visible(text).chars().filter(seen).collect();
    text.replace("![", "!\\[").replace('<', "\\<")
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
        insta::assert_snapshot!(explain_with_diff(id, &view.proposals[&id]));
        view.compare(&FilePath::new("a.py"), &BASE.replace("return", "raise"));
        let told = explain(id, &view.proposals[&id]);
        assert!(
            told.contains("conflicts with what you typed: both sides"),
            "{told}"
        );
    }

    #[test]
    fn escapes_images_and_code_fences() {
        let mut proposal = waiting(&[(1, "a.py::f")]).proposals[&ProposalId(1)].clone();
        proposal.symbol = "`![](http:..x)`\u{202e}.py::f".parse().unwrap();
        proposal.reason = "![x](https://e/?s) <img src=x> \x1b[2J`a[0]`".to_owned();
        let told = explain(ProposalId(1), &proposal);
        let first = "**Starling #1** for `` `![](http:..x)`\\u{202e}.py::f ``\n\n";
        let reason = "!\\[x](https://e/?s) \\<img src=x> \\u{1b}[2J`a[0]`\n";
        assert!(told.starts_with(&format!("{first}{reason}")), "{told}");
    }

    #[test]
    fn fence_is_longer_than_fences_in_the_code() {
        assert_eq!(fenced("x", "a\n"), "\n```x\na\n```\n");
        assert_eq!(fenced("x", "````"), "\n`````x\n````\n`````\n");
    }

    #[test]
    fn cuts_long_diff_at_character_boundary() {
        let view = waiting(&[(1, "a.py::f")]);
        let mut proposal = view.proposals[&ProposalId(1)].clone();
        proposal.diff = "ä".repeat(HOVER_DIFF);
        let told = explain_with_diff(ProposalId(1), &proposal);
        assert!(told.contains("ä\n…"), "cut");
    }
}
