//! Handles a proposal that a person edited during its review: splits the edited file among the
//! proposals that change it, and drafts these proposals again, so that they are checked and shown
//! again.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::check::checks::contract_changes;
use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::evidence::file_change::FileChange;
use crate::evidence::ids::ProposalId;
use crate::evidence::joint::JointEvidence;
use crate::proposal::permission::Permission;
use crate::proposal::{joint_check, made};
use crate::state::draft::Draft;
use crate::state::proposal::Proposal;
use crate::state::refresh;
use crate::state::run_context::RunContext;
use starling_core::{EditedPart, Verdict};
use starling_syntax::{FilePath, Symbol, SymbolPath, SymbolTree, carry, touched};
use starling_text::{ByteRange, ChangeSet, Edit};
use starling_workspace::encode;

/// The reason that is recorded for a proposal that the person removed.
pub const TAKEN_OUT: &str = "the user took it out";

/// A file as the person edited it: the whole text with the changes of a proposal and its set.
#[derive(Debug, Clone)]
pub struct EditedFile {
    pub file: FilePath,
    /// The whole text without the changes, from when the person began to edit.
    pub before: Arc<str>,
    /// The whole text that the person saved.
    pub text: Arc<str>,
}

impl EditedFile {
    /// Creates the file with the line endings of `before`, because an editor may show a file with
    /// other line endings.
    pub fn new(file: FilePath, before: &str, text: &str) -> Self {
        EditedFile {
            file,
            before: before.into(),
            text: with_line_ends_of(before, text),
        }
    }
}

/// Splits an edited file among the proposals that change it. Each edit goes to the proposal that
/// changes the symbol around the edit, otherwise to the first proposal of the file.
///
/// # Errors
/// Returns a message that says what is wrong with the text and what to do.
pub fn edited_parts(parts: &[FileChange], edited: &EditedFile) -> Result<Vec<EditedPart>, String> {
    let EditedFile { file, before, text } = edited;
    let own: Vec<&FileChange> = parts.iter().filter(|part| part.file == *file).collect();
    let Some(first) = own.first() else {
        return Err(format!(
            "the proposal does not change {file}: edit only the files that it changes"
        ));
    };
    encode(Path::new(file.as_str()), text).map_err(|error| format!("{file}: {error}"))?;
    let parse = |text: &Arc<str>| SymbolTree::parse(file.clone(), Arc::clone(text));
    let (old, new) = (parse(before), parse(text));
    if new.is_unparsed() {
        return Err(format!(
            "{file} takes too long to parse, probably because of thousands of line continuations or \
             comment lines in a row: write it without them, and save again"
        ));
    }
    if let (Some(error), true) = (new.errors().first(), old.errors().is_empty()) {
        let line = line_at(text, error.start);
        return Err(format!(
            "{file} has a syntax error in line {line}: fix it, and save again"
        ));
    }
    let edits = ChangeSet::between_lines(before, text);
    let mut shift = 0;
    let mut edits_of: Vec<Vec<Edit>> = vec![Vec::new(); own.len()];
    for edit in edits.edits() {
        let start = edit.range.start.saturating_add_signed(shift);
        let made = ByteRange::new(start, start + edit.insert.len());
        shift += edit.insert.len() as isize - edit.range.len() as isize;
        let touches =
            |part: &&FileChange| lies_in(&old, edit.range, part) || lies_in(&new, made, part);
        let place = own.iter().position(touches).unwrap_or(0);
        edits_of[place].push(edit.clone());
    }
    let mut all = Vec::new();
    for (part, edits) in own.iter().zip(edits_of) {
        let changes = ChangeSet::new(before.len(), edits);
        let text = changes.and_then(|changes| changes.apply(before).ok());
        let Some(text) = text else {
            return Err(format!(
                "internal error: the edits of {} cannot be split among its proposals",
                first.file
            ));
        };
        all.push(EditedPart {
            proposal: part.proposal.0,
            before: Arc::clone(before),
            text: text.into(),
        });
    }
    Ok(all)
}

/// Returns the event that records edited parts of a set when they arrive. `lead` is the proposal
/// through which the set is reviewed, `parts` are the changes that the person saw.
pub fn edit_received(lead: ProposalId, parts: &[FileChange], edited: &[EditedPart]) -> Event {
    let change = |one: &EditedPart| {
        let shown = parts.iter().find(|part| part.proposal.0 == one.proposal)?;
        Some(FileChange {
            base: Arc::clone(&one.before),
            changes: ChangeSet::between(&one.before, &one.text),
            deleted: shown.deleted && one.text.is_empty(),
            ..shown.clone()
        })
    };
    Event::EditReceived {
        proposal: lead,
        parts: edited.iter().filter_map(change).collect(),
    }
}

fn with_line_ends_of(before: &str, text: &str) -> Arc<str> {
    let is_windows = |text: &str| text.contains("\r\n");
    let has_both = before.replace("\r\n", "").contains('\n');
    match is_windows(before) && !is_windows(text) && !has_both {
        true => text.replace('\n', "\r\n").into(),
        false => text.into(),
    }
}

/// Returns whether a range lies in a symbol that a proposal changes.
fn lies_in(tree: &SymbolTree, range: ByteRange, part: &FileChange) -> bool {
    let is_of_part = |symbol: &&Symbol| {
        !symbol.path.is_module() && part.symbols.iter().any(|one| one.name == symbol.path.name)
    };
    // A change may include a blank line between two symbols.
    let touches = |symbol: &Symbol| {
        symbol.span.start < range.end && range.start < symbol.span.end
            || range.is_empty() && symbol.span.contains(range.start)
    };
    let symbols = tree.symbols().iter();
    symbols.filter(is_of_part).any(touches)
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Creates the draft of the version that the person edited, rebased onto the current text of the
/// file. If the edited version and the current text differ from the base in the same line, the
/// draft is not rebased, and is refused when it is applied.
async fn draft(run: &Arc<RunContext>, earlier: &Draft, edited: &EditedPart) -> Draft {
    let file = &earlier.file;
    let current = refresh::text(run, file).await;
    let current = current.unwrap_or_else(|_| Arc::clone(&edited.before));
    let changes = ChangeSet::between(&edited.before, &edited.text);
    let carried = carry(file, &edited.before, &changes, &current);
    let carried = carried
        .ok()
        .and_then(|changes| changes.apply(&current).ok());
    let (base, text): (Arc<str>, Arc<str>) = match carried {
        Some(text) => (current, text.into()),
        None => (Arc::clone(&edited.before), Arc::clone(&edited.text)),
    };
    let deletes_file = earlier.deletes_file && text.is_empty();
    let parse = |text: &Arc<str>| SymbolTree::parse(file.clone(), Arc::clone(text));
    let (old, new) = (parse(&base), parse(&text));
    let names = touched(&old, &new).into_iter();
    let symbols: Vec<SymbolPath> = names
        .map(|name| SymbolPath::new(file.clone(), name))
        .collect();
    let (contract, breaking) = contract_changes(&old, &new, &symbols);
    let epoch = run.world().epoch;
    let mut needs_person = earlier.needs_person.clone();
    let permission = Permission {
        policy: run.policy(),
        known: needs_person.clone(),
    };
    // A version that nobody may bring is refused when it is applied.
    let texts = (!deletes_file).then_some((&*base, &*text));
    let reasons = permission.unknown_reasons(file, texts);
    let reasons = reasons.unwrap_or_default().into_iter();
    needs_person.extend(reasons.map(str::to_owned));
    Draft {
        file: file.clone(),
        base,
        text,
        symbols,
        losses: Vec::new(),
        contract,
        breaking,
        epoch,
        imports: Default::default(),
        needs_person,
        edited: true,
        deletes_file,
    }
}

/// Replaces the drafts of these proposals by the person's versions. Returns the proposals that the
/// person dropped; they are recorded as rejected and removed from the members.
pub(crate) async fn replace(
    run: &Arc<RunContext>,
    members: &mut Vec<Proposal>,
    parts: Vec<EditedPart>,
) -> BTreeSet<ProposalId> {
    let mut taken_out = BTreeSet::new();
    for part in parts {
        let id = ProposalId(part.proposal);
        let Some(one) = members.iter_mut().find(|member| member.id == id) else {
            continue;
        };
        if part.before == part.text {
            taken_out.insert(id);
            run.event(Event::ProposalEdited {
                proposal: id,
                symbols: Vec::new(),
                diff: String::new(),
            });
            continue;
        }
        one.draft = draft(run, &one.draft, &part).await;
        one.diff = made::own_diff(&one.draft, &made::before_text(run, &one.draft));
        one.evidence = made::unchecked(&one.draft);
        run.event(Event::ProposalEdited {
            proposal: id,
            symbols: one.draft.symbols.clone(),
            diff: one.diff.clone(),
        });
        let mut book = run.proposals();
        // Another proposal of the set may no longer be in the book, because its asynchronous task
        // has ended.
        if book.stage_of(id).is_some() {
            book.revise(one).ok();
        }
    }
    members.retain(|one| !taken_out.contains(&one.id));
    for id in &taken_out {
        run.proposals().take_out(*id);
        run.event(Event::ProposalReviewed {
            proposal: *id,
            by: ActorId::User,
            verdict: Verdict::Reject {
                reason: TAKEN_OUT.to_owned(),
            },
        });
    }
    run.waited.raise();
    taken_out
}

/// Checks a set again, after the person edited it or the run changed the text. The proposals of the
/// earlier check that are still open are checked with it. Returns `None` if only one proposal
/// remains; its standalone evidence is updated instead.
pub(crate) async fn checked_again(
    run: &Arc<RunContext>,
    lead: ProposalId,
    members: &mut [Proposal],
    earlier: Option<JointEvidence>,
) -> Option<JointEvidence> {
    let (mut needs, others) =
        earlier.map_or_else(Default::default, |one| (one.needs, one.proposals));
    let set: BTreeSet<ProposalId> = members.iter().map(|one| one.id).collect();
    let beside = needs.iter().chain(&others).filter(|id| !set.contains(id));
    let beside: BTreeSet<ProposalId> = beside.copied().collect();
    let mut all: Vec<Proposal> = {
        let book = run.proposals();
        let open = book.open().filter(|one| beside.contains(&one.id));
        open.cloned().collect()
    };
    needs.retain(|id| all.iter().any(|one| one.id == *id));
    if let ([one], true) = (&mut *members, all.is_empty()) {
        (one.evidence, _) = made::check(run, &one.draft, one.id).await;
        return None;
    }
    all.extend(members.iter().cloned());
    let found = joint_check::checked_together(run, lead, &all).await;
    let with = all
        .iter()
        .filter(|one| one.id != lead && !needs.contains(&one.id));
    let (proposals, with) = with.map(|one| (one.id, one.owner())).unzip();
    Some(JointEvidence {
        with,
        proposals,
        tests: found.tests,
        diagnostics: found.diagnostics,
        examples: found.examples,
        needs,
        checked_in: found.checked_in,
    })
}
