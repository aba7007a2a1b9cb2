//! Turns an agent's proposal into a draft: the change of one file, based on the text that the agent
//! saw, checked, and rebased onto later changes.

use std::sync::Arc;

use crate::check::checks::contract_changes;
use crate::context::prompt_parts::is_small;
use crate::context::write_test;
use crate::contract::rebinding;
use crate::event::actor::ActorId;
use crate::evidence::check_results::ImportMends;
use crate::evidence::ids::ProposalId;
use crate::evidence::return_reason::ReturnReason;
use crate::proposal::auto_imports;
use crate::proposal::deletion;
use crate::proposal::permission::{may_be_brought, may_be_changed};
use crate::proposal::refusal::{Refusal, unusable, unusable_as};
use crate::proposal::small_replies;
use crate::proposal::small_replies::own_part;
use crate::protocol::{AddSymbol, Propose};
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::run_context::RunContext;
use crate::state::{draft, refresh};
use crate::task::asked;
use starling_core::{Approval, EditorError};
use starling_syntax::{
    FilePath, HiddenCharacter, Loss, Place, Rewrite, Rewritten, Symbol, SymbolId, SymbolPath,
    SymbolTree, carry, divided, omission_marks, rewrite,
};
use starling_text::ChangeSet;
use starling_workspace::ReadError;

/// Creates the draft of a proposal.
///
/// # Errors
/// Returns a [`Refusal`] for the agent. Nothing is changed.
pub(crate) async fn make(
    run: &Arc<RunContext>,
    agent: &AgentState,
    change: &Propose,
) -> Result<Draft, Refusal> {
    let draft = written(run, agent, change).await?;
    if let Some(why) = rebinding::refusal(run, agent, &draft) {
        return Err(Refusal::Unusable { why });
    }
    let mended = auto_imports::mended(run, draft.clone()).await;
    // If an added import is not allowed, the draft is used without it instead of being refused.
    match rebinding::refusal(run, agent, &mended) {
        Some(_) => Ok(draft),
        None => Ok(mended),
    }
}

/// Creates the draft exactly as the agent wrote it.
async fn written(
    run: &Arc<RunContext>,
    agent: &AgentState,
    change: &Propose,
) -> Result<Draft, Refusal> {
    let target = target(run, agent, change)?;
    let trimmed = is_small(run.services.models.agent.profile())
        .then(|| {
            own_part(&target, change)
                .or_else(|| small_replies::without_stray_fence(&target, change))
        })
        .flatten();
    let change = trimmed.as_ref().unwrap_or(change);
    let file = target.file.clone();
    let mut needs_person = may_be_changed(run, &file)?;
    can_be_parsed(&file, change)?;
    let current = match current_text(run, &file).await? {
        Some(text) => text,
        None => {
            let fitted = (is_small(run.services.models.agent.profile())
                && write_test::is_asked_of(run, &target))
            .then(|| write_test::as_file(run, &file, change))
            .flatten();
            return new_file(run, file, fitted.as_ref().unwrap_or(change), needs_person);
        }
    };
    let tree = parse(&file, &current);
    if tree.is_unparsed() {
        return unusable_as(ReadError::Unparsed(file).to_string());
    }
    let is_test_asked = is_small(run.services.models.agent.profile()) && target.is_module();
    if deletion::is_asked(&target, change) {
        return deletion::draft(run, agent, (&target, &tree), change, needs_person);
    }
    let added = match is_test_asked && write_test::is_asked_of(run, &target) {
        true => {
            Some(
                write_test::as_added(run, &tree, change).ok_or_else(|| Refusal::Unusable {
                    why: ReturnReason::for_both(format!(
                        "The answer holds no new test for {file}."
                    )),
                })?,
            )
        }
        false => None,
    };
    let change = added.as_ref().unwrap_or(change);
    let base = base_text(agent, &target, change, &tree);
    let base_tree = if Arc::ptr_eq(&base, &current) {
        tree.clone()
    } else {
        parse(&file, &base)
    };
    nothing_left_out(&base, change)?;
    let (wanted, unused) = imports(&base_tree, &target, change);
    let change = &Propose {
        imports: wanted,
        ..change.clone()
    };
    let rewrites = rewrites(&base_tree, &target, change)?;
    let done = rewrite(&base_tree, &rewrites).map_err(|error| match base == current {
        true => Refusal::Unusable {
            why: ReturnReason::new(error.to_string(), error.in_short()),
        },
        false => moved(run, &target, &tree, &error.to_string()),
    })?;
    guard(run, agent, change, &base_tree, &rewrites, &done)?;
    let text = rebased(run, &target, &base, &tree, &done)?;
    can_be_written(run, &file, &text)?;
    if text.trim().is_empty() && run.stated().delete_file(&file) {
        let emptied = Propose {
            reason: change.reason.clone(),
            ..Propose::default()
        };
        return deletion::draft(run, agent, (&target, &tree), &emptied, needs_person);
    }
    let after = parse(&file, &text);
    needs_person.extend(may_be_brought(run, &file, &current, &text)?);
    needs_person.extend(hidden(run, change, &current, &after)?);
    let symbols = paths(&file, &done.touched);
    let is_by_rule = run.proposals().sets.by_rule > 0;
    let (contract, breaking) = match is_by_rule {
        // In a change without a model, the callers are changed as well, so their owners are not
        // notified.
        true => (run.stated().in_words(&symbols), Vec::new()),
        false => contract_changes(&tree, &after, &symbols),
    };
    let epoch = run.world().epoch;
    Ok(Draft {
        file,
        base: current,
        text,
        symbols,
        losses: done.losses,
        contract,
        breaking,
        epoch,
        imports: ImportMends {
            left_out: unused,
            ..ImportMends::default()
        },
        needs_person,
        edited: false,
        deletes_file: false,
    })
}

/// Splits the imports of a proposal into those that its code uses and the others. If the proposal
/// contains only imports, all of them are kept for other code.
fn imports(tree: &SymbolTree, target: &SymbolPath, change: &Propose) -> (Vec<String>, Vec<String>) {
    let code = Propose {
        imports: Vec::new(),
        ..change.clone()
    };
    let done = match change.imports.is_empty() {
        true => None,
        false => rewrites(tree, target, &code).ok(),
    };
    match done.and_then(|rewrites| rewrite(tree, &rewrites).ok()) {
        Some(done) => auto_imports::used_imports(&change.imports, &done.text),
        None => (change.imports.clone(), Vec::new()),
    }
}

/// Refuses code that takes too long to parse, before anything is done with it.
fn can_be_parsed(file: &FilePath, change: &Propose) -> Result<(), Refusal> {
    let added = change.add.iter().map(|symbol| &symbol.source);
    let patched = change.hunks.iter().map(|hunk| &hunk.new);
    let mut sources = change.source.iter().chain(added).chain(patched);
    match sources.any(|source| parse(file, &source.as_str().into()).is_unparsed()) {
        true => unusable_as(format!(
            "The new code for {file} takes too long to parse (thousands of line continuations or comment lines \
             in a row?). Write it without them."
        )),
        false => Ok(()),
    }
}

pub(crate) fn parse(file: &FilePath, text: &Arc<str>) -> SymbolTree {
    SymbolTree::parse(file.clone(), Arc::clone(text))
}

fn paths(file: &FilePath, names: &[String]) -> Vec<SymbolPath> {
    names
        .iter()
        .map(|name| SymbolPath::new(file.clone(), name.clone()))
        .collect()
}

/// Returns the symbol that a proposal changes.
pub(crate) fn target(
    run: &RunContext,
    agent: &AgentState,
    change: &Propose,
) -> Result<SymbolPath, Refusal> {
    let named = match change
        .symbol
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        None => None,
        Some(name) => match run.lookup().address(name) {
            Ok(path) => Some(path),
            Err(error) => {
                let to_user = format!("the address `{name}` cannot be read");
                return unusable(error, to_user);
            }
        },
    };
    match (named, &agent.actor) {
        (Some(path), _) => Ok(path),
        (None, ActorId::Agent(own)) => Ok(own.clone()),
        (
            None,
            ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo,
        ) => unusable(
            "Say in `symbol` what you change: path/to/file.py::Class.method",
            "the proposal does not say what it changes",
        ),
    }
}

/// Returns the current text of the user, after updating the run's workspace; `None` if there is no
/// such file.
async fn current_text(run: &Arc<RunContext>, file: &FilePath) -> Result<Option<Arc<str>>, Refusal> {
    match refresh::text(run, file).await {
        Ok(text) => Ok(Some(text)),
        Err(EditorError::Missing { .. }) => Ok(None),
        Err(error @ (EditorError::Unreadable { .. } | EditorError::Forbidden { .. })) => {
            unusable_as(error.to_string())
        }
        Err(error @ EditorError::Gone) => Err(Refusal::EditorGone {
            why: error.to_string(),
        }),
    }
}

fn new_file(
    run: &RunContext,
    file: FilePath,
    change: &Propose,
    mut needs_person: Vec<String>,
) -> Result<Draft, Refusal> {
    let Some(source) = &change.source else {
        return unusable(
            format!("There is no file {file}. To make it, give its whole text as `source`."),
            format!("there is no file {file}"),
        );
    };
    let text: Arc<str> = if source.ends_with('\n') {
        source.as_str().into()
    } else {
        format!("{source}\n").into()
    };
    can_be_written(run, &file, &text)?;
    let tree = parse(&file, &text);
    if let Some(error) = tree.errors().first() {
        let line = text[..error.start].lines().count().max(1);
        return unusable_as(format!(
            "The new file {file} has a syntax error at line {line}."
        ));
    }
    needs_person.extend(may_be_brought(run, &file, "", &text)?);
    needs_person.extend(hidden(run, change, "", &tree)?);
    let symbols = vec![SymbolPath::module(file.clone())];
    let epoch = run.world().epoch;
    let (losses, contract, breaking) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Draft {
        file,
        base: "".into(),
        text,
        symbols,
        losses,
        contract,
        breaking,
        epoch,
        imports: ImportMends::default(),
        needs_person,
        edited: false,
        deletes_file: false,
    })
}

/// Refuses a text that cannot be stored in the encoding of its file.
fn can_be_written(run: &RunContext, file: &FilePath, text: &str) -> Result<(), Refusal> {
    let world = run.world().snapshot.clone();
    let stored = world.may_store(file, text);
    stored.or_else(|error| unusable_as(format!("Not changed: {error}.")))
}

/// Returns the text to which the proposal's edits refer: the current text, or the text that the
/// agent saw if a symbol that the proposal changes has a different text by now.
fn base_text(
    agent: &AgentState,
    target: &SymbolPath,
    change: &Propose,
    current: &SymbolTree,
) -> Arc<str> {
    // A file that the agent has not seen has an empty base, except for hunks: they show what they replace.
    let unseen = || change.is_patch().then(|| Arc::clone(current.text()));
    let seen = agent.seen(target).or_else(unseen).unwrap_or_default();
    if &seen == current.text() {
        return seen;
    }
    let is_as_seen = |symbol: &SymbolPath| {
        let seen = agent.seen(symbol).unwrap_or_default();
        let old = parse(&symbol.file, &seen);
        // If a name has two definitions, the first may be a copy that the user inserted above the
        // definition that the agent saw.
        source_of(&old, &symbol.name) == source_of(current, &symbol.name)
            && definitions(&old, &symbol.name) >= definitions(current, &symbol.name)
    };
    match changed_symbols(target, change, current)
        .iter()
        .all(is_as_seen)
    {
        true => Arc::clone(current.text()),
        false => seen,
    }
}

/// Returns the symbols that a proposal changes: its target and what its source defines beside it, or
/// the symbols of a module that contain its hunks.
fn changed_symbols(target: &SymbolPath, change: &Propose, tree: &SymbolTree) -> Vec<SymbolPath> {
    let path = |name| SymbolPath::new(target.file.clone(), name);
    if let Some(source) = &change.source {
        let parts = divided(tree, &target.name, source).unwrap_or_default();
        let replaced = parts.into_iter().filter_map(|part| match part {
            Rewrite::Whole { symbol, .. } if symbol != target.name => Some(path(symbol)),
            Rewrite::Whole { .. }
            | Rewrite::Patch { .. }
            | Rewrite::Add { .. }
            | Rewrite::Delete { .. }
            | Rewrite::Import { .. } => None,
        });
        return replaced.chain([target.clone()]).collect();
    }
    if change.hunks.is_empty() || !target.is_module() {
        return vec![target.clone()];
    }
    let holders = change.hunks.iter().map(|hunk| holder(tree, &hunk.old));
    holders.map(path).collect()
}

/// Returns the number of symbols with this name, including repeated definitions of the symbol
/// itself and of its enclosing symbols.
fn definitions(tree: &SymbolTree, name: &str) -> usize {
    let plain = |name: &str| -> Vec<String> {
        let parts = name.split('.').map(|part| part.split('#').next());
        parts
            .map(|part| part.unwrap_or_default().to_owned())
            .collect()
    };
    let wanted = plain(name);
    let all = tree.symbols().iter();
    all.filter(|symbol| plain(&symbol.path.name) == wanted)
        .count()
}

fn source_of<'t>(tree: &'t SymbolTree, name: &str) -> Option<&'t str> {
    let symbol = tree.find(name)?;
    Some(symbol.span.of(tree.text()))
}

/// Refuses a draft because the user or another proposal changed the same lines since the agent saw
/// them. The refusal shows the current text.
fn moved(run: &RunContext, target: &SymbolPath, now: &SymbolTree, place: &str) -> Refusal {
    let source = source_of(now, &target.name).unwrap_or("(gone)");
    let by = run.proposals().last_writer(&target.file, now.text());
    let who = in_same_place(by, place);
    let to_user = match by {
        Some(id) => format!("{id} changed the same place meanwhile ({place}), and stands"),
        None => format!("you changed the same place meanwhile ({place}); your text stands"),
    };
    Refusal::Moved {
        why: ReturnReason::new(
            format!("{who} {target} is now:\n{source}\nPropose your change on top of it."),
            to_user,
        ),
        symbol: target.clone(),
        text: Arc::clone(now.text()),
    }
}

/// Describes for an agent who changed the lines of its proposal in the meantime: the user or
/// another proposal.
pub(crate) fn in_same_place(by: Option<ProposalId>, place: &str) -> String {
    match by {
        Some(id) => {
            format!("Proposal {id} changed the same place meanwhile ({place}), and stands.")
        }
        None => {
            format!("The user changed the same place meanwhile ({place}); the user's text stands.")
        }
    }
}

/// Converts the proposal to rewrites of symbols.
fn rewrites(
    tree: &SymbolTree,
    target: &SymbolPath,
    change: &Propose,
) -> Result<Vec<Rewrite>, Refusal> {
    let mut rewrites = Vec::new();
    if change.source.is_some() && !change.hunks.is_empty() {
        return unusable(
            "Give either `source` or `hunks`, not both.",
            "the proposal has two forms of the same change",
        );
    }
    if let Some(source) = &change.source {
        // Models also write the definitions beside the symbol. [`guard`] checks their ownership.
        let parts = divided(tree, &target.name, source);
        rewrites.extend(parts.unwrap_or_else(|| {
            let symbol = target.name.clone();
            let source = source.clone();
            vec![Rewrite::Whole { symbol, source }]
        }));
    }
    if !change.hunks.is_empty() {
        rewrites.extend(patches(tree, target, change));
    }
    for add in &change.add {
        rewrites.push(addition(target, add)?);
    }
    for name in &change.delete {
        let name = in_file(target, name)?;
        rewrites.push(Rewrite::Delete { symbol: name });
    }
    if !change.imports.is_empty() {
        rewrites.push(Rewrite::Import {
            statements: change.imports.clone(),
        });
    }
    if rewrites.is_empty() {
        return unusable(
            "The proposal is empty: give `source`, `hunks`, `add`, `delete` or `imports`.",
            "the proposal is empty",
        );
    }
    Ok(rewrites)
}

/// Groups the hunks by the symbol that contains them, because models name the file when they change
/// several of its symbols. [`guard`] checks the ownership of these symbols.
fn patches(tree: &SymbolTree, target: &SymbolPath, change: &Propose) -> Vec<Rewrite> {
    let mut by_symbol: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for hunk in &change.hunks {
        let name = match target.is_module() {
            true => holder(tree, &hunk.old),
            false => twin_with(tree, target, &hunk.old),
        };
        let pair = (hunk.old.clone(), hunk.new.clone());
        match by_symbol.iter_mut().find(|(symbol, _)| *symbol == name) {
            Some((_, hunks)) => hunks.push(pair),
            None => by_symbol.push((name, vec![pair])),
        }
    }
    by_symbol
        .into_iter()
        .map(|(symbol, hunks)| Rewrite::Patch { symbol, hunks })
        .collect()
}

/// Returns the name of the definition that contains the text: the target, or another definition of
/// the target's name (an overload, or the setter of a property) if only that one contains the text.
fn twin_with(tree: &SymbolTree, target: &SymbolPath, old: &str) -> String {
    let has = |symbol: &&Symbol| symbol.span.of(tree.text()).contains(old);
    let is_own = tree.find(&target.name).is_some_and(|own| has(&own));
    let twins = tree.symbols().iter();
    let mut twins = twins
        .filter(|symbol| symbol.path.is_twin_of(target))
        .filter(has);
    match (is_own, twins.next(), twins.next()) {
        (false, Some(only), None) => only.path.name.clone(),
        (true, ..) | (false, Some(_), Some(_)) | (false, None, _) => target.name.clone(),
    }
}

/// Returns the outermost symbol below the module that contains the text, if the text occurs once in
/// the file. Otherwise returns an empty name.
fn holder(tree: &SymbolTree, old: &str) -> String {
    let mut places = tree.text().match_indices(old);
    let (Some((start, _)), None) = (places.next(), places.next()) else {
        return String::new();
    };
    let holds =
        |symbol: &&Symbol| symbol.span.start <= start && start + old.len() <= symbol.span.end;
    let outermost = |symbol: &&Symbol| symbol.parent == Some(SymbolId(0));
    tree.symbols()
        .iter()
        .filter(outermost)
        .find(holds)
        .map(|symbol| symbol.path.name.clone())
        .unwrap_or_default()
}

fn addition(target: &SymbolPath, add: &AddSymbol) -> Result<Rewrite, Refusal> {
    let beside = match &add.beside {
        Some(name) => in_file(target, name)?,
        None => target.name.clone(),
    };
    let place = if add.inside {
        Place::Inside
    } else {
        Place::After
    };
    Ok(Rewrite::Add {
        beside,
        place,
        source: add.source.clone(),
    })
}

/// Returns the name of a symbol in the target's file, from a path or a bare name.
fn in_file(target: &SymbolPath, name: &str) -> Result<String, Refusal> {
    match name.split_once("::") {
        None if name == target.file.as_str() => Ok(String::new()),
        None => Ok(name.to_owned()),
        Some((file, name)) if FilePath::new(file) == target.file => Ok(name.to_owned()),
        Some(_) => unusable_as(format!(
            "One proposal changes one file, here {}; `{name}` is in another.",
            target.file
        )),
    }
}

/// Refuses placeholders for omitted code, because they would be written to the file literally.
fn nothing_left_out(base: &str, change: &Propose) -> Result<(), Refusal> {
    let hunks = change.hunks.iter().map(|hunk| &hunk.new);
    let added = change.add.iter().map(|add| &add.source);
    for text in change.source.iter().chain(hunks).chain(added) {
        if let Some((line, mark)) = omission_marks(base, text).first() {
            let mark = mark.trim();
            return unusable(
                format!(
                    "Line {line} of your code stands for code left out (`{mark}`). It would be taken literally: write all of the code, or use `hunks`."
                ),
                format!("the code is not complete: `{mark}` stands for the rest of it"),
            );
        }
    }
    Ok(())
}

/// Refuses new invisible characters outside string literals. If the agent insists, a person can
/// accept them; in that case, returns the reason to ask a person.
fn hidden(
    run: &RunContext,
    change: &Propose,
    before: &str,
    after: &SymbolTree,
) -> Result<Option<String>, Refusal> {
    const MOST: usize = 5;
    let found = after.newly_hidden(before);
    if found.is_empty() {
        return Ok(None);
    }
    let place =
        |one: &HiddenCharacter| format!("{} in line {}", one.char.escape_unicode(), one.line);
    let places: Vec<String> = found.iter().take(MOST).map(place).collect();
    let more = match found.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let places = format!("{}{more}", places.join(", "));
    let to_user = format!("the change brings invisible characters: {places}");
    match (run.task.approval, change.insist) {
        (Approval::Ask, true) => Ok(Some(format!("it brings invisible characters ({places})"))),
        (Approval::Ask, false) => unusable(
            format!(
                "The proposal brings invisible characters: {places}. Leave them out, or write them as \
                 escapes in a string. Repeat it with `insist` to show it to the person all the same."
            ),
            to_user,
        ),
        (Approval::Proxy | Approval::Auto, _) => unusable(
            format!(
                "The proposal brings invisible characters: {places}. Leave them out, or write them as \
                 escapes in a string."
            ),
            to_user,
        ),
    }
}

/// Refuses changes to symbols of other owners, unintended losses, and empty changes.
fn guard(
    run: &RunContext,
    agent: &AgentState,
    change: &Propose,
    base: &SymbolTree,
    rewrites: &[Rewrite],
    done: &Rewritten,
) -> Result<(), Refusal> {
    if done.changes.is_empty() {
        return unusable_as("The proposal changes nothing: the text is the same as before.");
    }
    if let ActorId::Agent(own) = &agent.actor {
        for touched in paths(base.file(), &done.touched) {
            if done.added.contains(&touched.name) {
                continue;
            }
            if let Some(why) = foreign(run, own, rewrites, &touched, base) {
                return Err(Refusal::Unusable { why });
            }
        }
    }
    let by_accident = change.source.is_some() && !change.intended_losses;
    // The comment of a TODO goes with its task.
    let is_done = |loss: &&Loss| match loss {
        Loss::Comment { text } => asked::to_do(&run.task.text, text),
        Loss::Child { .. } | Loss::Decorator { .. } | Loss::Docstring => false,
    };
    let lost = done.losses.iter().filter(|loss| !is_done(loss));
    let lost: Vec<String> = lost.map(ToString::to_string).collect();
    if by_accident && !lost.is_empty() {
        let lost = lost.join(", ");
        return unusable(
            format!(
                "The proposal loses {lost}. Keep it, or set `intended_losses` when it is meant to go."
            ),
            format!("the change would lose {lost}"),
        );
    }
    Ok(())
}

/// Returns whether a symbol changes only as a side effect: by imports, or by blank lines around a
/// symbol that is added or deleted.
fn touches_in_passing(rewrites: &[Rewrite], container: &SymbolPath) -> bool {
    let meant = |rewrite: &Rewrite| match rewrite {
        Rewrite::Whole { symbol, .. }
        | Rewrite::Patch { symbol, .. }
        | Rewrite::Delete { symbol } => *symbol == container.name,
        Rewrite::Add { .. } | Rewrite::Import { .. } => false,
    };
    let passing = |rewrite: &Rewrite| match rewrite {
        Rewrite::Whole { .. } | Rewrite::Patch { .. } => false,
        Rewrite::Add { .. } | Rewrite::Delete { .. } | Rewrite::Import { .. } => true,
    };
    rewrites.iter().any(passing) && !rewrites.iter().any(meant)
}

/// Returns the symbol that is deleted, if that is this symbol or one around it.
fn deleted_with(rewrites: &[Rewrite], symbol: &SymbolPath) -> Option<SymbolPath> {
    rewrites.iter().find_map(|rewrite| match rewrite {
        Rewrite::Delete { symbol: name } => {
            let deleted = SymbolPath::new(symbol.file.clone(), name.clone());
            (deleted == *symbol || deleted.encloses(symbol)).then_some(deleted)
        }
        Rewrite::Whole { .. }
        | Rewrite::Patch { .. }
        | Rewrite::Add { .. }
        | Rewrite::Import { .. } => None,
    })
}

/// Returns why an owner may not change a symbol; `None` if the change is allowed.
fn foreign(
    run: &RunContext,
    own: &SymbolPath,
    rewrites: &[Rewrite],
    touched: &SymbolPath,
    base: &SymbolTree,
) -> Option<ReturnReason> {
    let is_new = base.find(&touched.name).is_none();
    let in_passing = touches_in_passing(rewrites, touched);
    if touched == own || is_new || (in_passing && touched.is_module()) {
        return None;
    }
    let advice = format!("use `request_change` with symbol {touched}");
    let is_by_rule = run.proposals().sets.by_rule > 0;
    match run.owner_of(touched) {
        Some(owner) if &owner == own => None,
        Some(owner)
            if let Some(deleted) =
                deleted_with(rewrites, touched).filter(|deleted| deleted != touched) =>
        {
            let what = format!("{deleted} cannot be deleted while {owner} has an owner at work");
            Some(ReturnReason::new(format!("{what}: {advice}."), what))
        }
        Some(owner) => {
            let what = format!("{touched} belongs to the owner of {owner}");
            Some(ReturnReason::new(format!("{what}: {advice}."), what))
        }
        None if in_passing && touched.encloses(own) => None,
        None if own.encloses(touched) && !own.is_module() => None,
        // The part of a change by rule in a file is one proposal of the module's owner.
        None if own.encloses(touched) && is_by_rule => None,
        // Several deletions in a file are one proposal of the module's owner. What is nested in a
        // deleted symbol goes with it.
        None if own.encloses(touched) && deleted_with(rewrites, touched).is_some() => None,
        None => Some(ReturnReason::new(
            format!("{touched} is not your symbol: {advice}."),
            format!(
                "{touched} is another symbol than {own}, which the proposal was for; a change of it is \
                 asked by `request_change`"
            ),
        )),
    }
}

/// Rebases the draft onto the current text of the user.
fn rebased(
    run: &RunContext,
    target: &SymbolPath,
    base: &Arc<str>,
    now: &SymbolTree,
    done: &Rewritten,
) -> Result<Arc<str>, Refusal> {
    let current = now.text();
    if Arc::ptr_eq(base, current) || base == current {
        return Ok(done.text.as_str().into());
    }
    let ours = ChangeSet::between(base, &done.text);
    let text = match carry(&target.file, base, &ours, current) {
        Ok(changes) => changes.apply(current).map_err(|error| Refusal::Unusable {
            why: ReturnReason::for_both(error.to_string()),
        })?,
        Err(conflict) => {
            let wanted = done.text.as_str().into();
            let beside = draft::over_other_imports(&target.file, (base, &wanted), current);
            return beside.ok_or_else(|| moved(run, target, now, &conflict.in_lines(base)));
        }
    };
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_message_names_the_user_or_the_proposal_that_changed_the_line_first() {
        let by_user = in_same_place(None, "line 3");
        assert!(by_user.starts_with("The user changed the same place meanwhile (line 3)"));
        let by_run = in_same_place(Some(ProposalId(1)), "line 3");
        assert_eq!(
            by_run,
            "Proposal #1 changed the same place meanwhile (line 3), and stands."
        );
    }
}
