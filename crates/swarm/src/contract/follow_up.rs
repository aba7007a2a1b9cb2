//! Follow-ups: if an accepted change alters a contract, the owners of the code that it breaks are
//! notified, once for each contract. Their changes can break further contracts, which starts the
//! next round of follow-ups (a wave). The number of waves is limited.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::checks::contract_changes;
use crate::contract::broken::{
    BrokenLocation, Scope, broken, broken_in, indirect_calls, mentions_of_the_gone, sure_usages,
};
use crate::event::actor::ActorId;
use crate::event::dependencies::Dependencies;
use crate::event::events::{Cause, Event};
use crate::evidence::ids::ProposalId;
use crate::evidence::indirect::IndirectCaller;
use crate::evidence::proposal::Evidence;
use crate::lookup::Lookup;
use crate::state::contracts::Mentions;
use crate::state::draft::Draft;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use crate::state::waiting;
use crate::task::asked;
use starling_core::Driver;
use starling_index::{Usage, is_test_file};
use starling_syntax::{Contract, SymbolPath, SymbolTree, signature};

/// Maximum number of owners that are notified of one contract change.
pub(crate) const OWNERS_MOST: usize = 24;
/// Maximum number of waves (rounds of follow-ups). A follow-up that changes a contract starts
/// another wave.
pub(crate) const WAVES_MOST: u32 = 3;

/// Text that is added to the notification if the change is applied only together with the changes
/// of its callers.
const WAITS: &str = "That change waits for yours: both are tested together, and applied together.";

/// The code of one owner that a contract change breaks.
#[derive(Debug, Default)]
struct BrokenCode {
    /// The broken lines, counted from 1.
    lines: Vec<u32>,
    /// Whether the code overrides the changed method.
    overrides: bool,
    /// The methods that the broken calls name, if all of them can reach the changed method only
    /// through these methods on some objects.
    through: Option<BTreeSet<SymbolPath>>,
}

impl BrokenCode {
    fn add(&mut self, site: BrokenLocation) {
        let is_first = self.lines.is_empty();
        self.lines.push(site.line);
        self.overrides |= site.is_override;
        let known = match is_first {
            true => Some(BTreeSet::new()),
            false => self.through.take(),
        };
        self.through = known.zip(site.through).map(|(mut known, through)| {
            known.insert(through);
            known
        });
    }
}

/// Returns the locations that a changed contract breaks and that must be updated: in code, and in
/// the tests that may follow the change.
fn to_follow(
    run: &RunContext,
    lookup: &Lookup,
    draft: &Draft,
    changed: &SymbolPath,
    gone: &Mentions,
) -> Vec<BrokenLocation> {
    let mut sites = broken(lookup, draft, changed, gone);
    let tests = broken_in(Scope::Tests, lookup, draft, changed, gone);
    let all_follow = tests_follow(run, draft, changed, gone);
    sites.extend(
        tests
            .into_iter()
            .filter(|site| all_follow || is_open(run, site)),
    );
    sites
}

/// Returns whether a task asks to change all tests, also the one at a broken location.
fn is_open(run: &RunContext, site: &BrokenLocation) -> bool {
    asked::to_change_all_tests(&run.task.text, &site.symbol.file)
}

/// Returns whether tests may be changed because they use what the task asks to rename, to remove or
/// to give another signature.
fn tests_follow(run: &RunContext, draft: &Draft, changed: &SymbolPath, gone: &Mentions) -> bool {
    let name = changed.base_name();
    if gone.contains_key(changed) {
        return asked::to_take_away(&run.task.text, name);
    }
    let tree = |text: &Arc<str>| SymbolTree::parse(draft.file.clone(), Arc::clone(text));
    let (before, after) = (tree(&draft.base), tree(&draft.text));
    let contract = |tree: &SymbolTree| tree.find(&changed.name).map(|one| one.contract.clone());
    let (Some(old), Some(new)) = (contract(&before), contract(&after)) else {
        return false;
    };
    let parameters = |contract: &Contract| -> BTreeSet<String> {
        let all = contract.parameters.iter().flatten();
        all.map(|one| one.name.clone()).collect()
    };
    let (own, newer) = (parameters(&old), parameters(&new));
    let other: Vec<String> = own.symmetric_difference(&newer).cloned().collect();
    asked::to_change_signature(&run.task.text, name, &other)
        || old.becomes_plain_function(&new) && asked::to_make_a_method(&run.task.text, name)
}

/// Returns the owners of the code that a draft would break.
pub(crate) fn owners_of_broken(run: &RunContext, draft: &Draft) -> Vec<SymbolPath> {
    if draft.breaking.is_empty() {
        return Vec::new();
    }
    let lookup = run.lookup();
    let gone = mentions_of_the_gone(&lookup, draft);
    let mut owners: Vec<SymbolPath> = Vec::new();
    for changed in &draft.breaking {
        let sites = to_follow(run, &lookup, draft, changed, &gone);
        owners.extend(by_owner(run, draft, sites).into_keys());
    }
    owners.sort();
    owners.dedup();
    owners
}

/// Returns the owners of uses that stay valid under the changed contracts. No use of a removed
/// symbol does. Tests are returned only if no other code uses the symbols.
pub(crate) fn owners_that_keep(
    run: &RunContext,
    draft: &Draft,
    broken: &[SymbolPath],
) -> Vec<SymbolPath> {
    let lookup = run.lookup();
    let changed = with_changed_contract(draft);
    let uses = changed.iter().flat_map(|changed| {
        let uses = sure_usages(&lookup, changed).into_iter();
        let elsewhere = |one: &Usage| !changed.encloses(&one.symbol) && !one.is_import;
        let is_value = |one: &Usage| lookup.is_value(changed, one);
        uses.filter(|one| elsewhere(one) && !is_value(one))
            .collect::<Vec<_>>()
    });
    let mut owners: Vec<SymbolPath> = uses
        .map(|one| one.symbol)
        .filter(|symbol| !draft.symbols.contains(symbol))
        .map(|symbol| run.owner_of(&symbol).unwrap_or(symbol))
        .filter(|owner| !broken.contains(owner))
        .collect();
    owners.sort();
    owners.dedup();
    let is_code = |owner: &SymbolPath| !is_test_file(&owner.file);
    if !broken.is_empty() || broken_tests(run, draft) > 0 || owners.iter().any(is_code) {
        owners.retain(is_code);
    }
    owners
}

/// Returns the symbols that a draft keeps and whose contract it changes, also in ways that break no
/// other code.
fn with_changed_contract(draft: &Draft) -> Vec<SymbolPath> {
    if draft.contract.is_empty() {
        return Vec::new();
    }
    let tree = |text: &Arc<str>| SymbolTree::parse(draft.file.clone(), Arc::clone(text));
    let (before, after) = (tree(&draft.base), tree(&draft.text));
    let changes = |symbol: &SymbolPath| {
        let (words, _) = contract_changes(&before, &after, std::slice::from_ref(symbol));
        let is_kept = after.find(&symbol.name).is_some();
        !words.is_empty() && is_kept && !symbol.is_module()
    };
    let symbols = draft.symbols.iter().filter(|symbol| changes(symbol));
    symbols.cloned().collect()
}

/// Returns the calls outside tests and the uses in templates that may reach a changed method, but do not
/// certainly refer to it, and the code that stores or passes on a changed function. Calls in the code of owners that
/// `evidence` already lists as callers are left out.
pub(crate) fn indirect_callers(
    run: &RunContext,
    draft: &Draft,
    evidence: &Evidence,
) -> Vec<IndirectCaller> {
    let lookup = run.lookup();
    let mut found = Vec::new();
    for changed in &draft.breaking {
        let is_other = |usage: &Usage| {
            let owner = run.owner_of(&usage.symbol);
            let owner = owner.unwrap_or_else(|| usage.symbol.clone());
            let is_known =
                evidence.callers.contains(&owner) || evidence.callers_kept.contains(&owner);
            let is_own = changed.encloses(&usage.symbol) || draft.symbols.contains(&usage.symbol);
            usage.is_call && !is_known && !is_own && !is_test_file(&usage.file)
        };
        let calls = indirect_calls(&lookup, changed).into_iter();
        let calls = calls.filter(|(usage, _)| is_other(usage));
        found.extend(calls.map(|(usage, through)| IndirectCaller {
            through,
            is_value: false,
            file: usage.file,
            line: usage.line,
        }));
        let values = lookup.uses_as_value(changed).into_iter();
        let values = values.filter(|usage| {
            let owner = run.owner_of(&usage.symbol);
            let owner = owner.unwrap_or_else(|| usage.symbol.clone());
            let is_own = changed.encloses(&usage.symbol) || draft.symbols.contains(&usage.symbol);
            !is_own && !evidence.callers.contains(&owner) && !is_test_file(&usage.file)
        });
        found.extend(values.map(|usage| IndirectCaller {
            through: None,
            is_value: true,
            file: usage.file,
            line: usage.line,
        }));
        let in_templates = lookup.index().in_templates(changed.base_name()).into_iter();
        found.extend(in_templates.map(|one| IndirectCaller {
            through: None,
            is_value: false,
            file: one.file,
            line: one.line,
        }));
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the number of tests whose calls a draft breaks and which no owner is asked to update.
pub(crate) fn broken_tests(run: &RunContext, draft: &Draft) -> usize {
    if draft.breaking.is_empty() {
        return 0;
    }
    let lookup = run.lookup();
    let gone = mentions_of_the_gone(&lookup, draft);
    let breaking = draft.breaking.iter();
    let breaking = breaking.filter(|changed| !tests_follow(run, draft, changed, &gone));
    let sites = breaking.flat_map(|changed| {
        let sites = broken_in(Scope::Tests, &lookup, draft, changed, &gone).into_iter();
        let sites = sites.filter(|site| !is_open(run, site));
        sites.map(|site| site.symbol).collect::<Vec<_>>()
    });
    let mut tests: Vec<SymbolPath> = sites.filter(|symbol| !symbol.is_module()).collect();
    tests.sort();
    tests.dedup();
    tests.len()
}

/// Returns the locations that mention the symbols which a draft removes. Must be called before the
/// draft is applied.
pub(crate) fn before(run: &RunContext, draft: &Draft) -> Mentions {
    match draft.breaking.is_empty() {
        true => Mentions::new(),
        false => mentions_of_the_gone(&run.lookup(), draft),
    }
}

/// Groups broken locations by owner. A method belongs to the owner of its class if that owner is at
/// work. Locations in symbols that the draft itself changes are left out.
fn by_owner(
    run: &RunContext,
    draft: &Draft,
    sites: Vec<BrokenLocation>,
) -> BTreeMap<SymbolPath, BrokenCode> {
    let mut owners: BTreeMap<SymbolPath, BrokenCode> = BTreeMap::new();
    for site in sites {
        let by_draft = match site.symbol.is_module() {
            true => draft.deletes_file && site.symbol.file == draft.file,
            false => draft.symbols.contains(&site.symbol),
        };
        if by_draft {
            continue;
        }
        let owner = run.owner_of(&site.symbol);
        let owner = owner.unwrap_or_else(|| site.symbol.clone());
        owners.entry(owner).or_default().add(site);
    }
    for concern in owners.values_mut() {
        concern.lines.sort_unstable();
        concern.lines.dedup();
    }
    owners
}

/// Whether the callers are notified before or after a change is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// Before: the change is applied only together with the changes of its callers.
    Waits,
    /// After: the change is already applied.
    Applied,
}

/// Notifies the owners of the code that a draft will break, before the draft is applied. Does
/// nothing if a person reviews changes; otherwise the draft is applied only together with the
/// owners' changes.
pub(crate) fn before_it_is_applied(run: &Arc<RunContext>, by: &ActorId, wave: u32, draft: &Draft) {
    if !run.task.approval.is_by_person() {
        let gone = before(run, draft);
        wake_broken(run, by, wave, (draft, Timing::Waits), &gone);
    }
}

/// Notifies the owners of the code that an applied draft has broken.
pub(crate) fn follow_up(
    run: &Arc<RunContext>,
    by: &ActorId,
    wave: u32,
    draft: &Draft,
    gone: &Mentions,
) {
    wake_broken(run, by, wave, (draft, Timing::Applied), gone);
}

fn wake_broken(
    run: &Arc<RunContext>,
    by: &ActorId,
    wave: u32,
    (draft, timing): (&Draft, Timing),
    gone: &Mentions,
) {
    if run.task.driver == Driver::Single {
        return;
    }
    let contract = draft.contract.join("; ");
    let soon = waiting::with_all_that_wait(run);
    for changed in &draft.breaking {
        let mut owners = by_owner(
            run,
            draft,
            to_follow(run, &run.lookup(), draft, changed, gone),
        );
        // An owner whose waiting proposal already adapts the code has nothing to do.
        let still = by_owner(run, draft, to_follow(run, &soon, draft, changed, gone));
        owners.retain(|owner, _| ActorId::Agent(owner.clone()) != *by);
        // If the owner was already notified of the method that its calls name, a second
        // notification would contain nothing new.
        owners.retain(|owner, concern| {
            let mut through = concern.through.iter().flatten().peekable();
            let is_direct = through.peek().is_none();
            is_direct || !through.all(|named| was_told(run, owner, named))
        });
        let follow_already = !owners.is_empty();
        owners.retain(|owner, _| still.contains_key(owner));
        let follow_already = follow_already && owners.is_empty();
        let change = Arc::new((draft.clone(), gone.clone()));
        run.contracts().changes.insert(changed.clone(), change);
        let visit = (changed.clone(), contract.clone());
        let again = !run.contracts().followed.insert(visit);
        let why = match (again, wave >= WAVES_MOST) {
            (true, _) => "they were already notified of the same change".to_owned(),
            (false, true) => format!("follow-ups end after {WAVES_MOST} rounds"),
            (false, false) if follow_already => continue,
            (false, false) => {
                tell(run, changed, wave + 1, (draft, timing), owners);
                continue;
            }
        };
        if again && timing == Timing::Waits {
            continue;
        }
        let (told, untold): (Vec<SymbolPath>, Vec<SymbolPath>) = owners
            .into_keys()
            .partition(|owner| was_told(run, owner, changed));
        let told = told.into_iter().map(|owner| (changed.clone(), owner));
        run.contracts().unfollowed.extend(told);
        missed(run, changed, untold, why);
    }
}

fn was_told(run: &RunContext, owner: &SymbolPath, changed: &SymbolPath) -> bool {
    let state = run.contracts();
    let told_of = state.told_of.get(owner);
    told_of.is_some_and(|symbols| symbols.contains(changed))
}

/// Returns whether the code of an owner is still broken by a contract change that the owner was
/// notified of.
pub(crate) fn is_still_broken(run: &RunContext, owner: &SymbolPath, changed: &SymbolPath) -> bool {
    let change = run.contracts().changes.get(changed).cloned();
    let Some(change) = change else { return true };
    let (draft, gone) = change.as_ref();
    let sites = to_follow(run, &run.lookup(), draft, changed, gone);
    by_owner(run, draft, sites).contains_key(owner)
}

/// Notifies the owners of the code that one changed contract breaks, as far as the budget allows.
fn tell(
    run: &Arc<RunContext>,
    changed: &SymbolPath,
    wave: u32,
    (draft, timing): (&Draft, Timing),
    owners: BTreeMap<SymbolPath, BrokenCode>,
) {
    let after = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.text));
    let signature = after
        .find(&changed.name)
        .map(|symbol| signature(&after, symbol));
    let now = match (timing, signature) {
        (Timing::Applied, Some(signature)) => format!("It is now: {signature}"),
        (Timing::Applied, None) => "It is gone.".to_owned(),
        (Timing::Waits, Some(signature)) => format!("It will be: {signature}\n{WAITS}"),
        (Timing::Waits, None) => format!("It will be gone.\n{WAITS}"),
    };
    let mut told = Vec::new();
    let mut untold: BTreeMap<String, Vec<SymbolPath>> = BTreeMap::new();
    for (at, (owner, concern)) in owners.into_iter().enumerate() {
        let text = match concern.overrides {
            true => format!("{now}\nYours overrides it, so it must take the same calls."),
            false => now.clone(),
        };
        let cause = Cause::FollowUp {
            changed: changed.clone(),
            changes: draft.contract.clone(),
            lines: concern.lines,
            text,
            wave,
        };
        match wake(run, at, &owner, cause) {
            Ok(()) => {
                let mut state = run.contracts();
                let told_of = state.told_of.entry(owner.clone()).or_default();
                told_of.insert(changed.clone());
                told.push(owner);
            }
            Err(why) => untold.entry(why).or_default().push(owner),
        }
    }
    run.event(Event::FollowedUp {
        changed: changed.clone(),
        changes: draft.contract.clone(),
        to: told,
    });
    for (why, owners) in untold {
        missed(run, changed, owners, why);
    }
}

/// Records that a proposal depends on the applied contract changes that its owner was notified of.
pub(crate) fn note_followed(run: &RunContext, id: ProposalId, by: &ActorId) {
    let mut state = run.state();
    let told_of = by
        .symbol()
        .and_then(|owner| state.contracts.told_of.get(owner));
    let Some(changed) = told_of.filter(|changed| !changed.is_empty()) else {
        return;
    };
    let has_changed = |one: &Proposal| one.draft.symbols.iter().any(|one| changed.contains(one));
    let applied = state.proposals.applied().into_iter();
    let followed = applied.filter(|(one, _)| has_changed(one));
    let followed = Dependencies {
        set: followed.map(|(one, _)| one.id).collect(),
        ..Dependencies::default()
    };
    state.proposals.depend(id, followed);
}

fn wake(run: &Arc<RunContext>, at: usize, owner: &SymbolPath, cause: Cause) -> Result<(), String> {
    if at >= OWNERS_MOST {
        return Err(format!(
            "one change of a contract is reported to at most {OWNERS_MOST} owners"
        ));
    }
    run.budget
        .count_message()
        .map_err(|error| error.to_string())?;
    run.wake(owner, cause).map_err(|error| error.to_string())?;
    Ok(())
}

fn missed(run: &RunContext, changed: &SymbolPath, owners: Vec<SymbolPath>, why: String) {
    if owners.is_empty() {
        return;
    }
    run.contracts().missed.extend(owners.iter().cloned());
    run.event(Event::FollowUpMissed {
        changed: changed.clone(),
        owners,
        why,
        told: false,
    });
}

/// Reports the owners that were notified of a contract change and whose code is still broken at the
/// end of the run.
pub(crate) fn tell_unfollowed(run: &RunContext) {
    let mut open = std::mem::take(&mut run.contracts().unfollowed);
    open.retain(|(changed, owner)| is_still_broken(run, owner, changed));
    let mut owners: BTreeMap<SymbolPath, Vec<SymbolPath>> = BTreeMap::new();
    for (changed, owner) in &open {
        owners
            .entry(changed.clone())
            .or_default()
            .push(owner.clone());
    }
    run.contracts().unfollowed = open;
    for (changed, owners) in owners {
        run.event(Event::FollowUpMissed {
            changed,
            owners,
            why: "they were notified, but did not change their code".to_owned(),
            told: true,
        });
    }
}
