//! Checks whether a run changed the code that its task names. If it changed only other code, that
//! does not show that the task is done, even if a failing test passes now.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::documentation::is_documentation;
use crate::check::other_language::is_other_language;
use crate::check::required::{self, imports};
use crate::event::actor::{ActorId, actor_name};
use crate::evidence::test_evidence::failing_ids;
use crate::evidence::wording::some_of;
use crate::lookup::Lookup;
use crate::state::checker::Checker;
use crate::task::asked;
use crate::task::goal::{self, Goal};
use crate::task::names::Names;
use crate::task::runnable;
use crate::task::stated::left;
use crate::task::whole_word::{has_word, is_word_at};
use starling_core::TestCase;
use starling_index::Certainty;
use starling_syntax::{FilePath, Language, SymbolPath};

/// Maximum number of steps when users of a symbol, the users of these users, and so on are
/// searched.
const STEPS: usize = 8;
/// Maximum number of users that are searched. If there are more, every symbol counts as a user.
const USERS: usize = 100;
/// Maximum number of uses of one symbol that are considered.
const USES: usize = 200;

/// How the changes of a run relate to the code that its task names.
#[derive(Debug, Default)]
pub(crate) struct ChangeRelevance {
    /// Why the changes do not affect the code that the task names; `None` if they do.
    pub missed: Option<String>,
    /// The named code, described in words, if other code was changed as well.
    pub named: String,
    /// Tests that failed before the run and that reach only changed code which the task does not
    /// name.
    pub aside: BTreeSet<String>,
}

/// Compares the changes of a run with the names in its task. `changed` contains all changed
/// symbols, `changing` only those whose behaviour changed.
pub(crate) fn of(
    checker: &Checker,
    changed: &[SymbolPath],
    changing: &[&SymbolPath],
) -> ChangeRelevance {
    let Some(names) = checker.tests().required.names.clone() else {
        return ChangeRelevance::default();
    };
    let missed_words =
        missed_document(checker, changed).or_else(|| undocumented(checker, changed, &names));
    if let Some(missed) = missed_words.or_else(|| missed_strings(checker)) {
        return ChangeRelevance {
            missed: Some(missed),
            ..ChangeRelevance::default()
        };
    }
    let judged: Vec<&SymbolPath> = match changing.is_empty() {
        true => changed.iter().collect(),
        false => changing.to_vec(),
    };
    let no_document = |symbol: &&SymbolPath| !is_documentation(&symbol.file);
    let judged: Vec<&SymbolPath> = judged.into_iter().filter(no_document).collect();
    if judged.is_empty() || !names.lead() {
        return ChangeRelevance::default();
    }
    let task = &checker.task.text;
    let around = NamedCode::of(checker, &names);
    let in_prose = Names::of(&around.before, &runnable::prose(task));
    let told = match (in_prose.lead(), checker.goal) {
        (true, _) => &in_prose,
        // The example of a feature may use other code, which needs no change.
        (false, Goal::Feature) => return ChangeRelevance::default(),
        (false, _) => &names,
    };
    let near: Vec<SymbolPath> = judged
        .iter()
        .filter(|symbol| around.holds(checker.goal, task, symbol))
        .map(|symbol| (*symbol).clone())
        .collect();
    if near.is_empty() {
        return ChangeRelevance {
            missed: Some(missed(told)),
            ..ChangeRelevance::default()
        };
    }
    if near.len() == judged.len() {
        return ChangeRelevance::default();
    }
    let failed = failed_before(checker);
    let reached = required::reached(&around.after, &near, &failed);
    let ids = failed.into_iter().map(|case| case.id);
    ChangeRelevance {
        missed: None,
        named: in_words(told.code()),
        aside: ids.filter(|id| !reached.contains(id)).collect(),
    }
}

/// Describes the named code that was not changed because the proposal for it was refused, if none
/// of the code that the task names was changed; `None` otherwise. Changes of other code, such as an
/// adapted caller, make no sense alone then. If there are required tests, they alone decide whether
/// the task is done.
pub(crate) fn refused(
    checker: &Checker,
    changed: &[SymbolPath],
    refused: &[(&ActorId, &str)],
) -> Option<String> {
    let names = {
        let tests = checker.tests();
        let names = tests.required.names.clone();
        names.filter(|_| tests.required.ids.is_empty())?
    };
    let named: Vec<&SymbolPath> = names.code().filter(|one| !one.is_module()).collect();
    let touches = |one: &SymbolPath, other: &SymbolPath| one.encloses(other) || other.encloses(one);
    let is_named = |symbol: &SymbolPath| named.iter().any(|named| touches(named, symbol));
    let mut changed = changed.iter().filter(|one| !one.is_module()).peekable();
    changed.peek()?;
    if changed.any(is_named) {
        return None;
    }
    let of_named = refused
        .iter()
        .find(|(agent, _)| agent.symbol().is_some_and(is_named));
    let (agent, why) = of_named?;
    Some(format!(
        "{}, which the task names, was not changed: {why}",
        actor_name(agent)
    ))
}

/// Returns whether the task names the code or the file of one of the refused proposals, or asks for
/// a change everywhere.
pub(crate) fn names_refused(checker: &Checker, refused: &[(&ActorId, &str)]) -> bool {
    let names = checker.tests().required.names.clone();
    let named = names.iter().flat_map(Names::code);
    let named: Vec<&SymbolPath> = named.filter(|one| !one.is_module()).collect();
    let task = &checker.task.text;
    let files = checker.lookup().files_named_in(task);
    let is_named_file = |symbol: &SymbolPath| {
        Language::of(&symbol.file) == Language::Plain && files.contains(&symbol.file)
    };
    let is_named = |symbol: &SymbolPath| {
        named.iter().any(|named| named.encloses(symbol))
            || is_named_file(symbol)
            || asked::to_change(task, symbol.base_name())
    };
    let mut agents = refused.iter().filter_map(|(agent, _)| agent.symbol());
    agents.any(|symbol| asked::is_everywhere(task) || is_named(symbol))
}

/// Describes strings that may still contain a name which the task renames.
fn missed_strings(checker: &Checker) -> Option<String> {
    let index = &checker.services.index;
    let before = Lookup::new(index.snapshot().clone(), Arc::clone(index));
    let after = checker.lookup();
    left::unsure(checker.stated(), &before, &after)
        .or_else(|| left::words_left(checker.stated(), &before, &after))
}

/// Describes the documents that the task asks to change and that were not changed. If the task
/// joins documents by "or", a change of one of them is enough.
fn missed_document(checker: &Checker, changed: &[SymbolPath]) -> Option<String> {
    let words = goal::documents_to_change(&checker.task.text);
    let is_meant = |file: &FilePath| {
        let path = file.as_str().to_lowercase();
        let name = file.name().to_lowercase();
        let stem = name.split('.').next().unwrap_or_default();
        let mut words = words.iter();
        words.any(|word| *word == path || path.ends_with(&format!("/{word}")) || word == stem)
    };
    let text = checker.task.text.replace('@', " ");
    let mut named = checker.lookup().files_named_in(&text);
    named.retain(is_meant);
    let is_changed = |file: &FilePath| changed.iter().any(|symbol| symbol.file == *file);
    let is_choice = words.windows(2).any(|pair| {
        let plain = text.to_lowercase().replace('`', "");
        plain.contains(&format!("{} or {}", pair[0], pair[1]))
    });
    let is_enough = is_choice && named.iter().any(is_changed);
    named.retain(|file| !is_changed(file));
    if changed.is_empty() || named.is_empty() || is_enough {
        return None;
    }
    let names: Vec<String> = named.iter().map(ToString::to_string).collect();
    Some(not_changed(&names))
}

fn not_changed(names: &[String]) -> String {
    let verb = if names.len() == 1 { "was" } else { "were" };
    format!(
        "{}, which the task names, {verb} not changed",
        some_of(names)
    )
}

/// Describes the symbols that the task asks to document together with others (`add docstrings to
/// f and g`) and that were not changed. A symbol that has the docstring which the task asks to add
/// needs no change.
fn undocumented(checker: &Checker, changed: &[SymbolPath], names: &Names) -> Option<String> {
    const ADDS: [&str; 4] = ["add", "write", "missing", "give"];
    let task = &checker.task.text;
    if checker.goal != Goal::Documentation || changed.is_empty() {
        return None;
    }
    let index = &checker.services.index;
    let before = Lookup::new(index.snapshot().clone(), Arc::clone(index));
    let after = checker.lookup();
    let words = task.to_lowercase();
    let adds = ADDS.iter().any(|word| has_word(&words, word));
    let source = |lookup: &Lookup, symbol: &SymbolPath| {
        let found = lookup.symbol(symbol).ok();
        found.map(|found| found.source().to_owned())
    };
    let has_docstring = |symbol: &SymbolPath| {
        let found = after.index().describe(symbol);
        found.is_some_and(|found| !found.doc.is_empty())
    };
    let is_same = |symbol: &SymbolPath| {
        let then = source(&before, symbol);
        then.is_some() && then == source(&after, symbol) && !(adds && has_docstring(symbol))
    };
    let listed = listed(task, names);
    let left: Vec<String> = listed
        .iter()
        .filter(|symbol| is_same(symbol))
        .map(|symbol| format!("`{}`", symbol.name))
        .collect();
    (!left.is_empty()).then(|| not_changed(&left))
}

/// Returns the symbols that a text joins by a word such as "and", or by a comma: those for which it
/// wishes the same.
fn listed<'n>(text: &str, names: &'n Names) -> Vec<&'n SymbolPath> {
    const JOINTS: [&str; 7] = ["", "and", "&", "und", "et", "y", "e"];
    let is_part = |c: char| c.is_alphanumeric() || "_.:/@#()`".contains(c);
    let mut places: Vec<(usize, usize, &SymbolPath)> = Vec::new();
    for symbol in names.sure.iter().filter(|symbol| !symbol.is_module()) {
        let name = symbol.base_name();
        let mut at = text.match_indices(name).map(|(at, _)| at);
        let Some(at) = at.find(|at| is_word_at(text, *at, name)) else {
            continue;
        };
        // `noten.bestanden()` is one word.
        let before = text[..at].trim_end_matches(is_part).len();
        let rest = text[at..].trim_start_matches(is_part).len();
        places.push((before, text.len() - rest, symbol));
    }
    places.sort_by_key(|(start, _, _)| *start);
    let mut found = Vec::new();
    for pair in places.windows(2) {
        let ((_, end, first), (start, _, second)) = (pair[0], pair[1]);
        let between = text.get(end..start).unwrap_or("?").to_lowercase();
        let joint = between.trim_matches(|c: char| c.is_whitespace() || c == ',');
        if JOINTS.contains(&joint) {
            found.extend([first, second]);
        }
    }
    found.dedup();
    found
}

/// Returns the tests that failed before the run, with their messages.
fn failed_before(checker: &Checker) -> Vec<TestCase> {
    let state = checker.tests();
    let Some(before) = &state.before else {
        return Vec::new();
    };
    let failing = failing_ids(before);
    let cases = before.cases.iter();
    let failed = cases.filter(|case| failing.contains(&case.id));
    failed.cloned().collect()
}

/// Describes the named code that was not changed, for example as ``nothing in `f`, which the task
/// names, was changed``.
fn missed(names: &Names) -> String {
    let there = in_words(names.code());
    match names.not_there.first() {
        Some(gone) if there.is_empty() => {
            format!("the task names {}, and {}", gone.written, gone.in_words())
        }
        Some(_) | None => format!("nothing in {there}, which the task names, was changed"),
    }
}

fn in_words<'s>(symbols: impl Iterator<Item = &'s SymbolPath>) -> String {
    let name = |symbol: &SymbolPath| match symbol.is_module() {
        true => symbol.file.to_string(),
        false => format!("`{}`", symbol.name),
    };
    let names: BTreeSet<String> = symbols.map(name).collect();
    let names: Vec<String> = names.into_iter().collect();
    some_of(&names)
}

/// The code that the task names, and the code that uses it directly or indirectly.
struct NamedCode {
    before: Lookup,
    after: Lookup,
    named: Vec<SymbolPath>,
    /// Files that the task asks to create, or that it may mean although it misspells their names.
    files: Vec<FilePath>,
    users: CodeUsers,
}

impl NamedCode {
    fn of(checker: &Checker, names: &Names) -> NamedCode {
        let index = &checker.services.index;
        let before = Lookup::new(index.snapshot().clone(), Arc::clone(index));
        let after = checker.lookup();
        let gone = names.not_there.iter();
        let files = gone.flat_map(|one| one.nearest.iter().chain([&one.file]));
        let declarations = names.command_line.declarations.iter();
        // A word that is the name of a file, such as Makefile, names it.
        let files_by_word = names.by_word.iter().filter(|one| one.is_module());
        let named = names.sure.iter().chain(declarations).chain(files_by_word);
        let named: Vec<SymbolPath> = named.cloned().collect();
        let symbols: Vec<SymbolPath> = (named.iter())
            .filter(|one| !one.is_module())
            .cloned()
            .collect();
        NamedCode {
            users: CodeUsers::of(&after, &symbols),
            files: files.cloned().collect(),
            before,
            after,
            named,
        }
    }

    /// Returns whether a changed symbol has to do with the named code: the task names the symbol,
    /// or the symbol uses named code, or named code uses the symbol, or it is close to named code.
    fn holds(&self, goal: Goal, task: &str, changed: &SymbolPath) -> bool {
        let is_made = || {
            let is_new = self.before.tree(&changed.file).is_err();
            is_new && self.after.files_named_in(task).contains(&changed.file)
        };
        if self.files.contains(&changed.file) || is_made() || is_other_language(&changed.file) {
            return true;
        }
        let is_gone = |named: &SymbolPath| self.after.symbol(named).is_err();
        let is_it = |named: &SymbolPath| {
            named.encloses(changed) || changed.encloses(named) || is_gone(named)
        };
        if self.named.iter().any(is_it) {
            return true;
        }
        // A task that asks for documentation of a symbol does not ask for documentation of its
        // users.
        if goal == Goal::Documentation {
            return false;
        }
        if self.users.hold(changed) {
            return true;
        }
        let lookup = match self.after.symbol(changed) {
            Ok(_) => &self.after,
            Err(_) => &self.before,
        };
        let used_by = CodeUsers::of(lookup, std::slice::from_ref(changed));
        let is_used = |named: &SymbolPath| used_by.hold(named);
        self.named.iter().any(is_used) || self.is_beside(goal, lookup, changed)
    }

    /// Returns whether a changed symbol is close to named code. It is if it mentions named code. It
    /// also is if it is in the same file and either is new or the task asks to add code.
    fn is_beside(&self, goal: Goal, lookup: &Lookup, changed: &SymbolPath) -> bool {
        let is_new = self.before.symbol(changed).is_err();
        let may_be_beside = match goal {
            Goal::Feature | Goal::NewTest => true,
            Goal::Bug
            | Goal::RedTests
            | Goal::Refactoring
            | Goal::Documentation
            | Goal::Question => is_new,
        };
        let found = lookup.symbol(changed).ok();
        let source = found.as_ref().map_or("", |found| found.source());
        let is_plain = Language::of(&changed.file) == Language::Plain;
        let stem = |file: &FilePath| {
            let name = file.name();
            name.split('.').next().unwrap_or(name).to_owned()
        };
        self.named.iter().any(|named| {
            let is_in_file = may_be_beside && named.file == changed.file;
            let is_said = match named.is_module() {
                true => {
                    has_word(source, &stem(&named.file)) || imports(lookup, &changed.file, named)
                }
                false => has_word(source, named.base_name()),
            };
            // A data file is close to the code that mentions its name.
            let reads = || {
                let text = self.after.tree(&named.file).ok();
                text.is_some_and(|tree| has_word(tree.text(), &stem(&changed.file)))
            };
            is_in_file || is_said || is_plain && reads()
        })
    }
}

/// Symbols with their direct and indirect users.
struct CodeUsers {
    found: Vec<SymbolPath>,
    /// Modules whose body uses the symbols, for example in a table. Any symbol of such a module may
    /// use them indirectly.
    modules: Vec<FilePath>,
    are_all: bool,
}

impl CodeUsers {
    fn of(lookup: &Lookup, symbols: &[SymbolPath]) -> CodeUsers {
        let mut users = CodeUsers {
            found: Vec::new(),
            modules: Vec::new(),
            are_all: true,
        };
        for symbol in symbols.iter().filter(|symbol| !symbol.is_module()) {
            users.found.push(symbol.clone());
            let Ok(tree) = lookup.tree(&symbol.file) else {
                continue;
            };
            let inner = tree.symbols().iter().map(|inner| &inner.path);
            let inner = inner.filter(|inner| *inner != symbol && symbol.encloses(inner));
            users.found.extend(inner.cloned());
        }
        let mut from = 0;
        for step in 0..STEPS {
            let until = users.found.len();
            for at in from..until {
                users.follow(lookup, at, step);
            }
            from = until;
        }
        users.are_all &= users.found.len() < USERS;
        users
    }

    fn follow(&mut self, lookup: &Lookup, at: usize, step: usize) {
        if self.found.len() >= USERS {
            return;
        }
        let uses = lookup.usages(&self.found[at].to_string(), USES);
        for one in uses.found {
            // Uncertain uses are followed only in the first step; otherwise too much code would
            // count.
            let is_sure = one.certainty != Certainty::Possible || step == 0;
            if !is_sure || one.is_import {
                continue;
            }
            if one.symbol.is_module() {
                self.modules.push(one.symbol.file);
            } else if !self.found.contains(&one.symbol) {
                self.found.push(one.symbol);
            }
        }
    }

    /// Returns whether a symbol, or a part of the symbol, is among the users.
    fn hold(&self, symbol: &SymbolPath) -> bool {
        let mut found = self.found.iter();
        !self.are_all
            || self.modules.contains(&symbol.file)
            || found.any(|user| symbol.encloses(user))
    }
}
