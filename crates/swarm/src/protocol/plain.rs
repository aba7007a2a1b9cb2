//! The plain text protocol for models without tool calls: a fenced block is a proposal, lines that
//! begin with `@` are commands, and `<<<<<<< OLD` blocks are hunks.

use super::action::{Action, Hunk, Pick, Propose, ToolSet, Wake};
use super::{Asked, RunToolbox};
use starling_dialogue::{ToolCost, words};
use starling_workspace::UnusualPaths;

/// Parses the actions of a plain-text reply in order. The proposal comes last.
pub(super) fn parse(
    tools: &RunToolbox,
    text: &str,
    role: ToolSet,
    paths: &UnusualPaths,
) -> Vec<Asked> {
    match role {
        ToolSet::Scout => picks(text, paths),
        ToolSet::Answerer => commands(tools, text, paths).0,
        ToolSet::Owner | ToolSet::Solo => owner(tools, text, paths),
    }
}

fn owner(tools: &RunToolbox, text: &str, paths: &UnusualPaths) -> Vec<Asked> {
    let (prose, blocks) = fenced_blocks(text);
    let (mut asked, flags) = commands(tools, &prose, paths);
    let mut propose = Propose {
        reason: first_sentences(&prose),
        imports: flags.imports,
        insist: flags.insist,
        symbol: flags.symbol,
        ..Propose::default()
    };
    let hunks: Vec<Hunk> = blocks.iter().flat_map(|block| hunks(block)).collect();
    let label = (
        "propose".to_owned(),
        propose.symbol.clone().unwrap_or_default(),
    );
    let code = blocks
        .into_iter()
        .filter(|block| !block.contains("<<<<<<<"))
        .max_by_key(String::len);
    if !hunks.is_empty() {
        propose.hunks = hunks;
    } else if let Some(code) = code {
        propose.source = Some(code);
    } else if propose.imports.is_empty() {
        return asked;
    }
    asked.retain(|one| !matches!(one.action, Ok(Action::Finish(_))));
    asked.push(Asked {
        call_id: None,
        tool: "propose".to_owned(),
        label,
        cost: ToolCost::Change,
        action: Ok(Action::Propose(Box::new(propose))),
    });
    asked
}

/// The flags of the proposal in a plain-text reply.
#[derive(Default)]
struct ProposalFlags {
    imports: Vec<String>,
    insist: bool,
    symbol: Option<String>,
}

/// Parses the lines of a text into tool calls and flags of the proposal.
fn commands(tools: &RunToolbox, text: &str, paths: &UnusualPaths) -> (Vec<Asked>, ProposalFlags) {
    let mut flags = ProposalFlags::default();
    let mut asked = Vec::new();
    for line in text.lines() {
        let command = line.trim().split_once(char::is_whitespace);
        let (word, rest) = command.unwrap_or((line.trim(), ""));
        match word {
            "@import" => flags.imports.push(rest.trim().to_owned()),
            "@insist" => flags.insist = true,
            "@symbol" => flags.symbol = Some(rest.trim().to_owned()),
            _ => asked.extend(tools.line(line, paths)),
        }
    }
    (asked, flags)
}

/// Returns a pick for every word of the scout's reply that looks like a symbol path. (The scout is
/// the agent that picks the symbols where work begins.)
fn picks(text: &str, paths: &UnusualPaths) -> Vec<Asked> {
    let mut symbols: Vec<Pick> = Vec::new();
    for word in words(text, paths) {
        let word = paths.trimmed(word, |c: char| {
            !c.is_alphanumeric() && !matches!(c, '_' | ':' | '/' | '.' | '#')
        });
        let word = word.trim_end_matches(['.', ',']);
        if word.contains("::") && !symbols.iter().any(|pick| pick.symbol == word) {
            symbols.push(Pick {
                symbol: word.to_owned(),
                ..Pick::default()
            });
        }
    }
    if symbols.is_empty() {
        return Vec::new();
    }
    let shown = symbols
        .iter()
        .map(|pick| pick.symbol.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    vec![Asked {
        call_id: None,
        tool: "wake".to_owned(),
        label: ("wake".to_owned(), shown),
        cost: ToolCost::Change,
        action: Ok(Action::Wake(Wake { symbols })),
    }]
}

/// Splits a text into the prose outside fences and the blocks inside. An unclosed fence ends at the
/// end of the text.
fn fenced_blocks(text: &str) -> (String, Vec<String>) {
    let mut prose = String::new();
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for line in text.split_inclusive('\n') {
        let ticks = line.trim_start().chars().take_while(|c| *c == '`').count();
        match &mut open {
            None if ticks >= 3 => open = Some((ticks, String::new())),
            None => prose.push_str(line),
            Some((fence, block)) if ticks >= *fence && line.trim().len() == ticks => {
                blocks.push(std::mem::take(block));
                open = None;
            }
            Some((_, block)) => block.push_str(line),
        }
    }
    if let Some((_, block)) = open {
        blocks.push(block);
    }
    (prose, blocks)
}

/// Parses `<<<<<<< OLD … ======= … >>>>>>> NEW` blocks.
fn hunks(block: &str) -> Vec<Hunk> {
    let mut hunks = Vec::new();
    let mut rest = block;
    while let Some((_, after)) = rest.split_once("<<<<<<<") {
        let after = after.split_once('\n').map_or("", |(_, text)| text);
        let Some((old, after)) = after.split_once("\n=======\n") else {
            break;
        };
        let (new, after) = after.split_once(">>>>>>>").unwrap_or((after, ""));
        hunks.push(Hunk {
            old: old.to_owned(),
            new: new.strip_suffix('\n').unwrap_or(new).to_owned(),
        });
        rest = after;
    }
    hunks
}

/// Returns the prose of a reply, cut to a maximum length. It is used as the reason of the proposal.
fn first_sentences(prose: &str) -> String {
    let lines = prose
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('@'));
    let text = lines.collect::<Vec<_>>().join(" ");
    text.chars().take(400).collect()
}
