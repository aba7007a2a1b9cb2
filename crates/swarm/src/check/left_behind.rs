//! Finds outdated code that a change leaves behind when it removes a definition or a parameter: the
//! declaration in the stub file, examples in docstrings, lines of scripts, and strings by which code
//! may look up the removed name. The removed definitions are determined from the change itself.
//! Strings that do not name the module are reported only if the task states the removal or the
//! rename.

use std::collections::BTreeSet;

use crate::check::left_paths;
use crate::lookup::Lookup;
use crate::task::examples::Examples;
use crate::task::in_strings::of_gone;
use crate::task::stated::{ExplicitEdit, ExplicitEdits, plain, stub_of};
use crate::task::whole_word::is_word_at;
use starling_index::{Member, binds, given_names, newly_undefined};
use starling_syntax::{
    Contract, FilePath, ParameterKind, Symbol, SymbolKind, SymbolPath, SymbolTree,
};

/// A location that still refers to a definition or a parameter that a change removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftBehind {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    pub message: String,
}

/// Returns the outdated locations that the changes of `files` leave behind.
pub(crate) fn left_behind(
    statements: &ExplicitEdits,
    (before, after): (&Lookup, &Lookup),
    files: &[FilePath],
) -> Vec<LeftBehind> {
    let modules = files.iter().filter(|file| file.as_str().ends_with(".py"));
    let mut found: Vec<LeftBehind> = modules
        .flat_map(|module| in_stub(before, after, module))
        .collect();
    found.extend(in_examples(statements, (before, after), files));
    found.extend(in_strings(statements, before, after));
    let outside = outside_code(statements, (before, after), files).into_iter();
    for one in outside.chain(left_paths::of_removed_files(after, files)) {
        let is_known = |known: &LeftBehind| known.file == one.file && known.line == one.line;
        if !found.iter().any(is_known) {
            found.push(one);
        }
    }
    found
}

/// Returns the locations (file and line, counted from 1) that still refer to what the changes of
/// `files` remove, judging by these changes alone.
pub fn outdated_locations(
    (before, after): (&Lookup, &Lookup),
    files: &[FilePath],
) -> BTreeSet<(FilePath, u32)> {
    let found = left_behind(&ExplicitEdits::default(), (before, after), files);
    found.into_iter().map(|one| (one.file, one.line)).collect()
}

/// A module and its stub file (`.pyi`), before and after a change.
struct ModuleAndStub<'l> {
    after: &'l Lookup,
    module: &'l FilePath,
    old: &'l SymbolTree,
    new: &'l SymbolTree,
    old_stub: &'l SymbolTree,
    stub: &'l SymbolTree,
}

fn in_stub(before: &Lookup, after: &Lookup, module: &FilePath) -> Vec<LeftBehind> {
    let Some(stub) = stub_of(after, module) else {
        return Vec::new();
    };
    let (Ok(old), Ok(old_stub), Ok(now)) =
        (before.tree(module), before.tree(&stub), after.tree(&stub))
    else {
        return Vec::new();
    };
    let Ok(new) = after.tree(module) else {
        return of_removed_module(after, module, stub).into_iter().collect();
    };
    // A module with `__getattr__` or a star import may define any name.
    if new.find("__getattr__").is_some() || new.text().contains("import *") {
        return Vec::new();
    }
    let stubbed = ModuleAndStub {
        after,
        module,
        old: &old,
        new: &new,
        old_stub: &old_stub,
        stub: &now,
    };
    let mut found = stubbed.variables();
    let mut gone: Vec<&SymbolPath> = Vec::new();
    for symbol in now.symbols().iter().filter(|one| !one.path.is_module()) {
        if gone.iter().any(|outer| outer.encloses(&symbol.path)) {
            continue;
        }
        if stubbed.is_left(symbol) {
            gone.push(&symbol.path);
            let name = plain(&symbol.path.name);
            found.push(stubbed.declared(now.line_of(symbol), &name));
        } else {
            found.extend(stubbed.parameters(symbol));
        }
    }
    found
}

/// Returns the stub of a module that a change removes, unless the module still exists in another
/// form: as a package or as an extension module.
fn of_removed_module(after: &Lookup, module: &FilePath, stub: FilePath) -> Option<LeftBehind> {
    let stem = module.as_str().strip_suffix("py")?;
    let package = format!("{}/", stem.trim_end_matches('.'));
    let is_form = |file: &&FilePath| {
        let path = file.as_str();
        **file != stub && path.starts_with(stem) || path.starts_with(&package)
    };
    let is_removed = !after.files().iter().any(|file| is_form(&file));
    is_removed.then(|| LeftBehind {
        message: format!("this stub still declares {module}, which the change removes"),
        file: stub,
        line: 1,
    })
}

impl ModuleAndStub<'_> {
    fn declared(&self, line: u32, name: &str) -> LeftBehind {
        let module = self.module;
        LeftBehind {
            file: self.stub.file().clone(),
            line,
            message: format!(
                "`{name}` is still declared here, and {module} no longer has it: the stub must follow"
            ),
        }
    }

    /// Returns the variables that the change removes from the module and that the stub still
    /// declares.
    fn variables(&self) -> Vec<LeftBehind> {
        let mut found = Vec::new();
        for (number, line) in (1..).zip(self.stub.text().lines()) {
            let Some((name, _)) = line.split_once(':') else {
                continue;
            };
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let is_name = !name.is_empty() && name.chars().all(is_part);
            if is_name
                && binds(self.old, name)
                && binds(self.old_stub, name)
                && !binds(self.new, name)
            {
                found.push(self.declared(number, name));
            }
        }
        found
    }

    /// Returns whether the change removes a symbol from the module although the stub still declares
    /// the symbol.
    fn is_left(&self, symbol: &Symbol) -> bool {
        let name = plain(&symbol.path.name);
        let has = |tree: &SymbolTree| tree.find(&name).is_some() || binds(tree, &name);
        has(self.old) && self.old_stub.find(&name).is_some() && !has(self.new) && {
            let owner = name.rsplit_once('.');
            owner.is_none_or(|(class, member)| !self.has_member(class, member))
        }
    }

    /// Returns whether objects of a class may still have an attribute after the change, because the
    /// class or one of its base classes defines it.
    fn has_member(&self, class: &str, member: &str) -> bool {
        let path = SymbolPath::new(self.module.clone(), class);
        let index = self.after.index();
        let has_bases = self.new.find(class);
        let has_bases = has_bases.is_some_and(|class| !class.contract.bases.is_empty());
        let is_elsewhere = || {
            let definitions = index.definitions(member);
            let mut definitions = definitions.iter();
            definitions.any(|one| !one.symbol.file.as_str().ends_with(".pyi"))
        };
        index.has_attribute(&path, member) || has_bases && is_elsewhere()
    }

    /// Returns the parameters that the change removes from a function and that the declaration of
    /// the function in the stub still has.
    fn parameters(&self, symbol: &Symbol) -> Vec<LeftBehind> {
        let name = plain(&symbol.path.name);
        let is_function = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method);
        let is_overloaded = |tree: &SymbolTree| tree.find(&format!("{name}#2")).is_some();
        let (Some(old), Some(new), Some(old_stub)) = (
            self.old.find(&name),
            self.new.find(&name),
            self.old_stub.find(&name),
        ) else {
            return Vec::new();
        };
        if !is_function || is_overloaded(self.old) || is_overloaded(self.stub) {
            return Vec::new();
        }
        let lost = lost_parameters(&old.contract, &new.contract).into_iter();
        let has = |contract: &Contract, name: &str| {
            let mut all = contract.parameters.iter().flatten();
            all.any(|one| one.name == name)
        };
        let lost = lost.filter(|one| has(&old_stub.contract, one) && has(&symbol.contract, one));
        lost.map(|parameter| LeftBehind {
            file: self.stub.file().clone(),
            line: line_of_word(self.stub, symbol, &parameter),
            message: format!(
                "`{parameter}` is still a parameter of {name} here, and no longer in {}: the stub must follow",
                self.module
            ),
        })
        .collect()
    }
}

/// Returns the names of the parameters that a call could pass by keyword in the old contract and
/// cannot pass in the new one.
fn lost_parameters(old: &Contract, new: &Contract) -> Vec<String> {
    let (Some(old), Some(new)) = (&old.parameters, &new.parameters) else {
        return Vec::new();
    };
    let takes_all = new.iter().any(|one| one.kind == ParameterKind::VarKeyword);
    let is_keyword = |kind: ParameterKind| match kind {
        ParameterKind::Positional | ParameterKind::KeywordOnly => true,
        ParameterKind::PositionalOnly
        | ParameterKind::VarPositional
        | ParameterKind::VarKeyword => false,
    };
    let lost = old.iter().filter(|one| {
        let stays = new.iter().any(|other| other.name == one.name);
        is_keyword(one.kind) && !stays && !takes_all
    });
    lost.map(|one| one.name.clone()).collect()
}

fn line_of_word(tree: &SymbolTree, symbol: &Symbol, word: &str) -> u32 {
    let text = tree.text();
    let mut places = symbol.span.of(text).match_indices(word);
    let at = places.find_map(|(at, _)| {
        let at = symbol.span.start + at;
        (at >= symbol.name.end && is_word_at(text, at, word)).then_some(at)
    });
    match at {
        Some(at) => 1 + text[..at].matches('\n').count() as u32,
        None => tree.line_of(symbol),
    }
}

/// Returns the examples in docstrings that use a name or a parameter that the change removes.
fn in_examples(
    statements: &ExplicitEdits,
    (before, after): (&Lookup, &Lookup),
    files: &[FilePath],
) -> Vec<LeftBehind> {
    let names = taken(statements, before, after, files);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let old = Examples::of_docstrings(before, &names);
    let new = Examples::of_docstrings(after, &names);
    let (Some(earlier), Some(later)) = (&old.index, &new.index) else {
        return Vec::new();
    };
    let mut places: Vec<(FilePath, u32, String)> = Vec::new();
    for call in later.newly_bad_calls(earlier, files) {
        let why = format!("{} is called {} in this example", call.callee, call.why);
        places.push((call.file, call.line, why));
    }
    let gone = |name: &str| format!("this example still uses `{name}`");
    for one in later.newly_dangling(earlier, files) {
        places.push((one.file, one.line, gone(&one.name)));
    }
    for tree in new.code() {
        let is_it = |one: &SymbolTree| one.file() == tree.file();
        if let Some(was) = old.code().find(is_it) {
            let undefined = newly_undefined(&was, &tree).into_iter();
            let undefined = undefined.filter(|one| names.contains(&one.name.as_str()));
            let undefined = undefined.map(|one| (tree.file().clone(), one.line, gone(&one.name)));
            places.extend(undefined);
        }
    }
    let mut found: Vec<LeftBehind> = Vec::new();
    for (file, line, why) in places {
        let Some((file, line)) = new.place(&file, line) else {
            continue;
        };
        let is_known = |one: &LeftBehind| one.file == file && one.line == line;
        if !found.iter().any(is_known) {
            found.push(LeftBehind {
                message: format!("{why}: it must follow the change"),
                file,
                line,
            });
        }
    }
    found
}

/// Returns the names that the changes of `files` remove, and the names of functions that lose a
/// parameter.
fn taken(
    statements: &ExplicitEdits,
    before: &Lookup,
    after: &Lookup,
    files: &[FilePath],
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let stated = statements.all.iter().filter_map(defined);
    names.extend(
        stated
            .filter(|name| !after.index().is_defined(name))
            .map(str::to_owned),
    );
    for file in files.iter().filter(|file| file.as_str().ends_with(".py")) {
        let Ok(old) = before.tree(file) else {
            continue;
        };
        let new = after.tree(file).ok();
        for symbol in old.symbols().iter().filter(|one| !one.path.is_module()) {
            let now = new.as_ref().and_then(|tree| tree.find(&symbol.path.name));
            let is_taken = match now {
                Some(now) => !lost_parameters(&symbol.contract, &now.contract).is_empty(),
                None => true,
            };
            if is_taken {
                let name = plain(&symbol.path.name);
                let name = name.strip_suffix(".__init__").unwrap_or(&name);
                names.insert(name.rsplit('.').next().unwrap_or(name).to_owned());
            }
        }
    }
    names
}

/// Returns the name that a stated rename or deletion removes, if the index knows its definitions.
fn defined(stated: &ExplicitEdit) -> Option<&str> {
    let named = stated.named();
    named.is_defined().then(|| named.base_name())
}

/// Returns the locations at which code may look up a removed name by a string: string literals,
/// lines of scripts, and expressions that build names at run time. Only names count that the task
/// renames or deletes and whose last definition the change removes.
fn in_strings(statements: &ExplicitEdits, before: &Lookup, after: &Lookup) -> Vec<LeftBehind> {
    let mut found = Vec::new();
    for stated in &statements.all {
        let Some(name) = defined(stated) else {
            continue;
        };
        if !before.index().is_defined(name) {
            continue;
        }
        let what = match stated {
            ExplicitEdit::Renamed { to, .. } => format!("it must become `{to}` together with this"),
            ExplicitEdit::Deleted { .. } => "it must go together with this".to_owned(),
        };
        let strings = of_gone(after, name, &statements.kept).into_iter();
        found.extend(strings.map(|one| LeftBehind {
            file: one.file,
            line: one.line,
            message: format!("`{name}` still stands here, and nothing defines it any more: {what}"),
        }));
        let dynamic = match after.index().is_defined(name) || statements.kept.all {
            true => Vec::new(),
            false => after.index().dynamic_uses(name),
        };
        found.extend(dynamic.into_iter().map(|one| LeftBehind {
            file: one.file,
            line: one.line,
            message: format!(
                "`{name}` may be looked up here by a name that is built at run time, and nothing \
                 defines it any more: {what}"
            ),
        }));
    }
    found
}

/// Returns the lines of scripts, build files and notebooks, and the strings of the form
/// `"module:name"`, that use what the changes of `files` take away from a module, whatever the task
/// says.
fn outside_code(
    statements: &ExplicitEdits,
    (before, after): (&Lookup, &Lookup),
    files: &[FilePath],
) -> Vec<LeftBehind> {
    let modules = files.iter().filter(|file| file.as_str().ends_with(".py"));
    let members: Vec<Member> = modules
        .flat_map(|module| lost_members(before, after, module))
        .collect();
    let mut found = after.index().outside_uses(&members);
    found.retain(|one| {
        let place = (&one.file, one.line);
        !statements.kept.hold(after, place, &one.of.name)
    });
    let left = found.into_iter().map(|one| LeftBehind {
        message: lost_in_words(after, &one.of),
        file: one.file,
        line: one.line,
    });
    left.collect()
}

fn lost_in_words(after: &Lookup, lost: &Member) -> String {
    let Member { module, name, .. } = lost;
    if let Some(parameter) = &lost.parameter {
        return format!(
            "`{parameter}` is still passed to {name} here, which no longer takes it: this must \
             follow the change"
        );
    }
    if !after.index().is_defined(name) {
        return format!(
            "`{name}` still stands here, and nothing defines it any more: this must follow the change"
        );
    }
    let definitions = after.index().definitions(name).into_iter();
    let mut definitions = definitions.filter(|one| one.symbol.name == *name);
    let now = definitions.find(|one| !one.symbol.file.as_str().ends_with(".pyi"));
    let now = now.map_or(String::new(), |now| format!(" ({} has)", now.symbol.file));
    format!(
        "`{name}` of {module} still stands here, and {module} no longer has it{now}: this must \
         follow the change"
    )
}

/// Returns the names that a change takes away from a module, and the parameters that it takes away
/// from the module's functions.
fn lost_members(before: &Lookup, after: &Lookup, module: &FilePath) -> Vec<Member> {
    let Ok(old) = before.tree(module) else {
        return Vec::new();
    };
    let new = after.tree(module).ok();
    let given = new.as_ref().map(|new| given_names(new)).unwrap_or_default();
    // A module with `__getattr__` or a star import may define any name.
    let is_open = |tree: &SymbolTree| tree.text().contains("import *");
    if given.contains_key("__getattr__") || new.as_ref().is_some_and(|new| is_open(new)) {
        return Vec::new();
    }
    let member = |name: &str, parameter: Option<String>| Member {
        module: module.clone(),
        name: name.to_owned(),
        parameter,
    };
    let lost = given_names(&old).into_iter().filter(|(name, is_own)| {
        let may_be_used = *is_own || before.index().is_defined(name);
        may_be_used && !given.contains_key(name) && !name.starts_with("__")
    });
    let mut found: Vec<Member> = lost.map(|(name, _)| member(&name, None)).collect();
    let Some(new) = new else {
        return found;
    };
    for symbol in old.symbols() {
        // A class is called with the parameters of its `__init__`.
        let name = symbol.path.name.as_str();
        let called = name.strip_suffix(".__init__").unwrap_or(name);
        let now = new.find(name).filter(|_| !called.contains(['.', '#']));
        if let Some(now) = now {
            let lost = lost_parameters(&symbol.contract, &now.contract).into_iter();
            found.extend(lost.map(|parameter| member(called, Some(parameter))));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::task::stated;
    use starling_index::Index;
    use starling_workspace::{Overlay, Workspace};

    const FEES: &str = "\"\"\"Fees.\n\n>>> late_fee(2, rate=50)\n100\n\"\"\"\n\nRATE = 50\n\n\n\
                        def late_fee(days, *, rate=RATE):\n    return days * rate\n\n\n\
                        class Till:\n    def put(self, cents):\n        return cents\n";
    const STUB: &str = "RATE: int\n\ndef late_fee(days: int, *,\n             rate: int = ...) -> int: ...\n\
                        class Till:\n    def put(self, cents: int) -> int: ...\n";

    /// Returns the outdated locations that the changes leave behind, as `file:line name`.
    fn left(task: &str, files: &[(&str, &str)], changes: &[(&str, Option<&str>)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        let world = |changes: &[(&str, Option<&str>)]| {
            let files = files.iter().map(|(name, text)| (*name, Some(*text)));
            let all = files.chain(changes.iter().copied());
            let overlay: Overlay = all
                .map(|(name, text)| (FilePath::new(name), text.map(Into::into)))
                .collect();
            let world = workspace.snapshot(overlay);
            Lookup::new(world.clone(), Arc::new(Index::new(world)))
        };
        let (before, after) = (world(&[]), world(changes));
        let statements = stated::of(&before, task);
        let changed: Vec<FilePath> = changes
            .iter()
            .map(|(name, _)| FilePath::new(*name))
            .collect();
        let found = left_behind(&statements, (&before, &after), &changed).into_iter();
        let place = |one: LeftBehind| {
            let what = one.message.split('`').nth(1).unwrap_or("-");
            format!("{}:{} {what}", one.file, one.line)
        };
        found.map(place).collect()
    }

    #[test]
    fn stub_that_still_declares_a_removed_definition_is_reported() {
        let files = [("fees.py", FEES), ("fees.pyi", STUB)];
        let left = |new: &str| left("tidy up", &files, &[("fees.py", Some(new))]);
        let without = |from: &str, to: &str| {
            let (start, end) = (FEES.find(from).unwrap(), FEES.find(to).unwrap());
            format!("X = 1\n{}{}", &FEES[..start], &FEES[end..]).replace(">>>", "")
        };
        let no_fee = without("def late_fee", "class Till");
        assert_eq!(left(&no_fee), ["fees.pyi:3 late_fee"]);
        let no_class = &FEES[..FEES.find("class Till").unwrap()];
        assert_eq!(left(no_class), ["fees.pyi:5 Till"]);
        let no_method = FEES.replace("def put(self, cents):\n        return cents", "pass");
        assert_eq!(left(&no_method), ["fees.pyi:6 Till.put"]);
        let no_rate = FEES.replace("RATE = 50\n", "").replace("=RATE", "=50");
        assert_eq!(left(&no_rate), ["fees.pyi:1 RATE"]);
        // The module still provides the name in these variants.
        for way in [
            "from money import late_fee\n",
            "from money import *\n",
            "late_fee = 1\n",
            "def __getattr__(name):\n    return 1\n",
        ] {
            assert_eq!(left(&format!("{way}{no_fee}")), [""; 0], "{way}");
        }
        let base = no_method.replace("class Till:", "class Drawer:\n    def put(self, cents):\n        return cents\n\n\nclass Till(Drawer):");
        assert_eq!(left(&base), [""; 0]);
        let field = no_method.replace("pass", "put = 1");
        assert_eq!(left(&field), [""; 0]);
    }

    #[test]
    fn stub_that_never_matched_or_changes_with_its_module_is_not_reported() {
        let other = [("fees.py", FEES), ("fees.pyi", "def other(): ...\n")];
        assert_eq!(left("x", &other, &[("fees.py", Some("X = 1\n"))]), [""; 0]);
        let files = [("fees.py", FEES), ("fees.pyi", STUB)];
        let both = [("fees.py", Some("X = 1\n")), ("fees.pyi", Some("X: int\n"))];
        assert_eq!(left("x", &files, &both), [""; 0]);
        let removed = [("fees.py", None), ("money.py", Some(FEES))];
        assert_eq!(left("x", &files, &removed), ["fees.pyi:1 -"]);
        for form in ["fees/__init__.py", "fees.pyx"] {
            let moved = [("fees.py", None), (form, Some("X = 1\n"))];
            assert_eq!(left("x", &files, &moved), [""; 0], "{form}");
        }
    }

    #[test]
    fn stub_and_examples_that_still_use_a_removed_parameter_are_reported() {
        let files = [("fees.py", FEES), ("fees.pyi", STUB)];
        let new = FEES
            .replace("rate=RATE", "day_rate=RATE")
            .replace("* rate", "* day_rate");
        let half = left("Use day_rate", &files, &[("fees.py", Some(&new))]);
        assert_eq!(half, ["fees.pyi:4 rate", "fees.py:3 rate="]);
        let example = new.replace("rate=50", "day_rate=50");
        let stub = STUB.replace("rate: int = ", "day_rate: int = ");
        let all = [("fees.py", Some(&*example)), ("fees.pyi", Some(&*stub))];
        assert_eq!(left("Use day_rate", &files, &all), [""; 0]);
        // A call can still pass `rate` by keyword, because the function accepts any keyword.
        let open = FEES
            .replace("*, rate=RATE", "**more")
            .replace("* rate", "* more['rate']");
        assert_eq!(left("x", &files, &[("fees.py", Some(&open))]), [""; 0]);
        let overloads = format!("{STUB}@overload\ndef late_fee(days: str, *, rate: int): ...\n");
        let files = [("fees.py", FEES), ("fees.pyi", &*overloads)];
        let found = left("x", &files, &[("fees.py", Some(&example))]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn docstring_example_that_uses_the_old_name_of_a_renamed_function_is_reported() {
        let user = "def f():\n    '''\n    >>> from fees import late_fee\n    >>> late_fee(1)\n    >>> late_fees = 1\n    '''\n";
        let own = "def late_fee():\n    '''>>> late_fee()'''\n";
        let files = [("fees.py", FEES), ("user.py", user), ("own.py", own)];
        let new = FEES.replace("def late_fee", "def overdue_fee");
        let found = left("x", &files, &[("fees.py", Some(&new))]);
        assert_eq!(found, ["user.py:3 late_fee", "fees.py:3 late_fee"]);
    }

    #[test]
    fn strings_that_keep_a_name_are_reported_if_the_task_states_its_rename_or_deletion() {
        let config = "fee: toolshed.fees:late_fee\npage: /late_fee\n";
        let notebook = r#"{"cells": [{"cell_type": "code", "source": ["late_fee(1)\n"]}]}"#;
        let files = [("fees.py", FEES), ("c.yaml", config), ("n.ipynb", notebook)];
        let new = FEES.replace("late_fee", "overdue_fee");
        let change = [("fees.py", Some(&*new))];
        let both = ["c.yaml:1 late_fee", "n.ipynb:1 late_fee"];
        assert_eq!(
            left("Rename late_fee to overdue_fee", &files, &change),
            both
        );
        assert_eq!(left("Delete late_fee", &files, &change), both);
        // The declaration in the stub does not count as a definition of the function, and is
        // reported too.
        let with_stub = [&files[..], &[("fees.pyi", STUB)]].concat();
        let stub_too = [&["fees.pyi:3 late_fee"], &both[..]].concat();
        assert_eq!(left("Delete late_fee", &with_stub, &change), stub_too);
        // Only strings that name the module are reported if the task does not state the rename, or
        // (at the end of this test) if another module still defines the name.
        let task = "Tidy fees.py up";
        assert_eq!(left(task, &files, &change), ["c.yaml:1 late_fee"]);
        let dynamic = "import fees\n\n\ndef f(kind):\n    return getattr(fees, kind + \"_fee\")\n";
        let files = [&files[..], &[("d.py", dynamic)]].concat();
        let all = [&both[..], &["d.py:5 late_fee"]].concat();
        assert_eq!(left("Delete late_fee", &files, &change), all);
        let files = [&files[..], &[("test_a.py", "def late_fee():\n    pass\n")]].concat();
        let task = "Rename fees.py::late_fee to overdue_fee";
        assert_eq!(left(task, &files, &change), ["c.yaml:1 late_fee"]);
    }

    #[test]
    fn uses_outside_of_code_are_reported_whatever_the_task_says() {
        let shell = "python3 -c \"import fees; fees.late_fee(2, rate=3)\"\n";
        let files = [
            ("fees.py", FEES),
            ("a.sh", shell),
            ("Makefile", "fee:\n\tpython3 -c 'from fees import RATE'\n"),
            (
                "c.json",
                "{\"fee\": \"fees:Till\", \"late_fee\": \"late_fee\"}\n",
            ),
        ];
        let left = |changes: &[(&str, Option<&str>)]| left("Lösche etwas", &files, changes);
        let without = FEES.replace("late_fee", "overdue_fee");
        assert_eq!(left(&[("fees.py", Some(&without))]), ["a.sh:1 late_fee"]);
        let all = left(&[("fees.py", Some("X = 1\n"))]);
        assert_eq!(all, ["Makefile:2 RATE", "a.sh:1 late_fee", "c.json:1 Till"]);
        // The module still provides the name in these variants.
        for way in [
            "from money import late_fee\n",
            "from money import *\n",
            "def __getattr__(name):\n    return 1\n",
        ] {
            let text = format!("{way}{without}");
            assert_eq!(left(&[("fees.py", Some(&text))]), [""; 0], "{way}");
        }
        // A script that follows is not reported, and one that does not follow a move is.
        let moved = shell.replace("fees", "money");
        let both = [
            ("fees.py", Some("RATE = Till = 1\n")),
            ("money.py", Some(FEES)),
        ];
        assert_eq!(left(&both), ["a.sh:1 late_fee"]);
        let all = [&both[..], &[("a.sh", Some(&*moved))]].concat();
        assert_eq!(left(&all), [""; 0]);
        let renamed = FEES.replace("rate=RATE", "day_rate=RATE");
        let renamed = renamed.replace("* rate", "* day_rate").replace(">>>", "");
        assert_eq!(left(&[("fees.py", Some(&renamed))]), ["a.sh:1 rate"]);
    }

    #[test]
    fn notebook_that_keeps_a_method_name_is_reported_if_all_classes_rename_the_method() {
        let text = "class A:\n    def can_reach(self):\n        return 1\n\n\nclass B:\n    def can_reach(self):\n        return 2\n";
        let notebook = r#"{"cells": [{"cell_type": "code", "source": "x.can_reach()"}]}"#;
        let files = [("a.py", text), ("n.ipynb", notebook)];
        let task = "Rename the method can_reach to reaches";
        let new = text.replace("can_reach", "reaches");
        let found = left(task, &files, &[("a.py", Some(&new))]);
        assert_eq!(found, ["n.ipynb:1 can_reach"]);
        let half = text.replacen("can_reach", "reaches", 1);
        assert_eq!(left(task, &files, &[("a.py", Some(&half))]), [""; 0]);
    }
}
