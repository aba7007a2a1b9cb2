//! Finds calls whose arguments no longer fit the called function after a change: too many
//! arguments, unknown keywords, missing arguments. A call is checked only if its arguments are
//! certain and if its callee is certain, or is one of several known methods of which the change
//! touches one.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use tree_sitter::Node;

use super::code::{Code, FileId};
use super::dangling::new_lines;
use super::facts::is_test;
use super::names::{Names, Occurrence, Role};
use super::resolve::{Callee, Resolver, Source, SureCall};
use super::unheld::WorkspaceState;
use starling_syntax::{
    Arguments, Contract, FilePath, Misfit, Parameter, ParameterKind, Receiver, Symbol, SymbolKind,
    SymbolPath, SymbolTree, arguments,
};

/// Maximum number of files that are searched for calls of a function whose parameters a change has
/// changed.
const FILES_MOST: usize = 400;

/// A call that raises a `TypeError`, because its arguments do not fit the parameters of the callee.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadCall {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    /// Byte offset of the called name in the file.
    pub offset: u32,
    pub name: String,
    /// The symbol that contains the call.
    pub symbol: SymbolPath,
    /// The called function or class.
    pub callee: SymbolPath,
    pub why: Misfit,
}

/// Returns the calls that do not fit their callee in `after` but fit in `before`, in the order of
/// files and text. The two states differ only in the `changed` files. Searches these files, and all
/// files that call something whose parameters changed.
pub(super) fn newly_bad(
    before: WorkspaceState<'_>,
    after: WorkspaceState<'_>,
    changed: &[FilePath],
) -> Vec<BadCall> {
    let (mut earlier, mut later) = (CallChecker::of(before), CallChecker::of(after));
    let changes = SignatureChanges::between(&mut earlier, &mut later, changed);
    let wanted = &changes.names;
    let mut files: Vec<FilePath> = changed.to_vec();
    for name in wanted {
        let mentioning = after.code.mentioning(name).into_iter().take(FILES_MOST);
        files.extend(mentioning.map(|file| after.code.path(file).clone()));
    }
    files.sort();
    files.dedup();
    let mut found = Vec::new();
    for file in files {
        let is_changed = changed.contains(&file);
        let of = (!is_changed).then_some(wanted);
        let rewritten =
            is_changed.then(|| RewrittenSymbols::in_file(&mut earlier, &mut later, &file));
        let rewritten = rewritten.flatten().unwrap_or_default();
        let mut bad = later.bad(&file, of, CheckedState::After(&changes, &rewritten));
        if !bad.is_empty() {
            let known = earlier.bad(&file, None, CheckedState::Before(&changes));
            remove_known(known, &mut bad);
        }
        found.extend(bad);
    }
    found.sort();
    found
}

/// The functions, methods and classes that take other arguments after the change than before.
struct SignatureChanges {
    /// The names that code uses to call these symbols, including the names of subclasses.
    names: FxHashSet<String>,
    symbols: FxHashSet<SymbolPath>,
    /// The last part of each symbol's name: `f` for `Class.f`.
    base_names: FxHashSet<String>,
}

/// The state of the workspace whose calls are checked: before or after the change.
#[derive(Clone, Copy)]
enum CheckedState<'c> {
    Before(&'c SignatureChanges),
    After(&'c SignatureChanges, &'c RewrittenSymbols),
}

/// The symbols of one file in which a change rewrote lines.
#[derive(Default)]
struct RewrittenSymbols {
    symbols: FxHashSet<SymbolPath>,
    /// The method calls before the change: each calling symbol of the file with the name of the
    /// method.
    called: FxHashSet<(SymbolPath, String)>,
}

impl RewrittenSymbols {
    fn in_file(
        earlier: &mut CallChecker<'_>,
        later: &mut CallChecker<'_>,
        file: &FilePath,
    ) -> Option<RewrittenSymbols> {
        let id = earlier.world.code.find(file)?;
        let tree = later.tree(file)?;
        let lines = new_lines(earlier.world.texts, later.world.texts, file);
        Some(RewrittenSymbols {
            symbols: lines
                .iter()
                .map(|line| tree.at_line(*line).path.clone())
                .collect(),
            called: earlier.resolver.method_calls(id),
        })
    }
}

impl<'c> CheckedState<'c> {
    fn changes(self) -> &'c SignatureChanges {
        match self {
            CheckedState::Before(changes) | CheckedState::After(changes, _) => changes,
        }
    }

    /// Returns whether to check a call on an object that may be of an unknown class: if the change
    /// touches a method of that name, or rewrites the call.
    fn guesses(self, name: &str, symbol: &SymbolPath) -> bool {
        let is_rewritten = match self {
            CheckedState::Before(_) => false,
            CheckedState::After(_, rewritten) => {
                let call = || (symbol.clone(), name.to_owned());
                rewritten.symbols.contains(symbol) && rewritten.called.contains(&call())
            }
        };
        is_rewritten || self.changes().base_names.contains(name)
    }

    /// Returns whether to report a call that fits some of these methods but not all.
    fn counts(self, methods: &[&SymbolPath]) -> bool {
        match self {
            CheckedState::Before(_) => true,
            CheckedState::After(changes, _) => {
                methods.iter().any(|one| changes.symbols.contains(*one))
            }
        }
    }
}

impl SignatureChanges {
    fn between(
        earlier: &mut CallChecker<'_>,
        later: &mut CallChecker<'_>,
        changed: &[FilePath],
    ) -> Self {
        let mut symbols = FxHashSet::default();
        let mut names = FxHashSet::default();
        let mut classes = Vec::new();
        for file in changed {
            let (old, new) = (earlier.forms(file), later.forms(file));
            let paths = old.keys().chain(new.keys());
            let differ = paths.filter(|path| old.get(*path) != new.get(*path));
            for path in differ {
                symbols.insert(path.clone());
                match path.base_name() {
                    "__init__" | "__new__" => {
                        let class = path.name.rsplit_once('.').map(|(class, _)| class);
                        let class = class.map(|class| SymbolPath::new(path.file.clone(), class));
                        classes.extend(class);
                    }
                    _ => {
                        let form = old.get(path).or_else(|| new.get(path));
                        let is_class =
                            form.is_some_and(|(contract, _)| contract.parameters.is_none());
                        classes.extend(is_class.then(|| path.clone()));
                    }
                }
            }
        }
        let base_names = symbols.iter().map(|path| path.base_name().to_owned());
        let base_names: FxHashSet<String> = base_names.collect();
        names.extend(base_names.iter().cloned());
        names.remove("__new__");
        names.extend(earlier.resolver.names_of_heirs(&classes));
        names.extend(later.resolver.names_of_heirs(&classes));
        SignatureChanges {
            names,
            symbols,
            base_names,
        }
    }
}

/// Removes the calls that did not fit before the change either, which are the calls of the same
/// callee in the same symbol.
fn remove_known(known: Vec<BadCall>, bad: &mut Vec<BadCall>) {
    let mut count: BTreeMap<(SymbolPath, String), usize> = BTreeMap::new();
    for one in known {
        *count.entry((one.symbol, one.name)).or_default() += 1;
    }
    bad.retain(
        |one| match count.get_mut(&(one.symbol.clone(), one.name.clone())) {
            Some(count @ 1..) => {
                *count -= 1;
                false
            }
            Some(_) | None => true,
        },
    );
}

/// The parts of a definition that decide whether a call of it fits: its contract, and for a data
/// class its fields.
type SignatureForm = (Contract, Option<Vec<Parameter>>);

/// Checks the calls in one state of the workspace.
struct CallChecker<'w> {
    world: WorkspaceState<'w>,
    resolver: Resolver<'w, Code>,
    trees: FxHashMap<FilePath, Option<Rc<SymbolTree>>>,
}

impl<'w> CallChecker<'w> {
    fn of(world: WorkspaceState<'w>) -> Self {
        CallChecker {
            world,
            resolver: Resolver::new(world.code),
            trees: FxHashMap::default(),
        }
    }

    /// Parses a Python file. Returns `None` if it has syntax errors or is a stub, because stubs do
    /// not show which code runs.
    fn tree(&mut self, file: &FilePath) -> Option<Rc<SymbolTree>> {
        let texts = self.world.texts;
        let read = || {
            let text = texts.read(file).ok()?;
            let tree = SymbolTree::parse(file.clone(), text);
            let is_sound = tree.errors().is_empty() && file.as_str().ends_with(".py");
            is_sound.then(|| Rc::new(tree))
        };
        let tree = self.trees.entry(file.clone());
        tree.or_insert_with(read).clone()
    }

    fn forms(&mut self, file: &FilePath) -> BTreeMap<SymbolPath, SignatureForm> {
        let Some(tree) = self.tree(file) else {
            return BTreeMap::new();
        };
        let symbols = tree.symbols().iter().skip(1);
        let form = |symbol: &Symbol| {
            let contract = Contract {
                returns: None,
                raises: Vec::new(),
                ..symbol.contract.clone()
            };
            let fields = match symbol.kind {
                SymbolKind::Class => fields(&tree, symbol),
                SymbolKind::Module | SymbolKind::Function | SymbolKind::Method => None,
            };
            (symbol.path.clone(), (contract, fields))
        };
        symbols.map(form).collect()
    }

    /// Returns the calls in a file that do not fit their callee: only calls of the names in `of`,
    /// or all calls if `of` is `None`.
    fn bad(
        &mut self,
        file: &FilePath,
        of: Option<&FxHashSet<String>>,
        judged: CheckedState<'_>,
    ) -> Vec<BadCall> {
        let Some(id) = self.world.code.find(file) else {
            return Vec::new();
        };
        let aliases = of.map(|of| self.resolver.aliases(id, of));
        let wanted = |name: &str| {
            let mut sets = of.into_iter().chain(aliases.as_ref());
            of.is_none() || sets.any(|set| set.contains(name))
        };
        // In tests, and in files that import only installed packages, an object may be of any
        // class.
        let may_guess = !is_test(file) && !self.resolver.is_all_foreign(id);
        let guessed = |name: &str, symbol: &SymbolPath| may_guess && judged.guesses(name, symbol);
        let calls = self.resolver.sure_calls(id, &wanted, &guessed);
        let Some(tree) = self.tree(file).filter(|_| !calls.is_empty()) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for call in calls {
            let Some(given) = arguments(&tree, call.at as usize) else {
                continue;
            };
            let Some((callee, why)) = self.wrong(&call, &given, judged) else {
                continue;
            };
            if is_expected(&tree, call.at as usize) || self.is_replaced(id, &tree, &call.name) {
                continue;
            }
            found.push(BadCall {
                file: file.clone(),
                line: call.line,
                offset: call.at,
                callee,
                name: call.name,
                symbol: call.symbol,
                why,
            });
        }
        found
    }

    /// Returns the function that a call does not fit, and the reason. If the call can reach several
    /// methods, they must all accept it.
    fn wrong(
        &mut self,
        call: &SureCall,
        given: &Arguments,
        judged: CheckedState<'_>,
    ) -> Option<(SymbolPath, Misfit)> {
        let named = call.callee.named();
        let own = self.misfit(call, given).map(|why| (named.clone(), why));
        let Callee::Function { receiver, .. } = call.callee else {
            return own;
        };
        if own.is_none() && !judged.changes().base_names.contains(&call.name) {
            return None;
        }
        let others = self.resolver.alternatives(call)?;
        let mut fits_one = own.is_none();
        let mut misfit = own;
        for other in &others {
            match self.misfit_of_method(other, given, receiver) {
                Some(why) => misfit = misfit.or(Some((other.clone(), why))),
                None => fits_one = true,
            }
        }
        let methods: Vec<&SymbolPath> = others.iter().chain([named]).collect();
        misfit.filter(|_| !fits_one || judged.counts(&methods))
    }

    /// Returns why a call does not fit a method. Returns `None` if it fits, or if a decorator may
    /// change the parameters of the method.
    fn misfit_of_method(
        &mut self,
        method: &SymbolPath,
        given: &Arguments,
        receiver: Receiver,
    ) -> Option<Misfit> {
        let contract = self.contract(method)?;
        let is_plain = |one: &String| one.ends_with("abstractmethod") || one.ends_with("override");
        let is_written = contract.decorators.iter().all(is_plain);
        is_written.then(|| contract.misfit(given, receiver))?
    }

    fn misfit(&mut self, call: &SureCall, given: &Arguments) -> Option<Misfit> {
        match &call.callee {
            Callee::Function { path, receiver } => self.contract(path)?.misfit(given, *receiver),
            Callee::Class { init, line, .. } => {
                self.are_plain(line).then_some(())?;
                self.contract(init)?.misfit(given, Receiver::Bound)
            }
            Callee::DataClass { line, .. } => {
                self.are_plain(line).then_some(())?;
                let parameters = self.all_fields(line)?;
                let contract = Contract {
                    parameters: Some(parameters),
                    ..Contract::default()
                };
                contract.misfit(given, Receiver::Given)
            }
        }
    }

    /// Returns the contract (the parameters and decorators) of a symbol. Returns `None` if several
    /// definitions share its name.
    fn contract(&mut self, path: &SymbolPath) -> Option<Contract> {
        let tree = self.tree(&path.file)?;
        let symbol = tree.find(&path.name).filter(|_| !path.name.contains('#'));
        symbol.map(|symbol| symbol.contract.clone())
    }

    /// Returns whether no class has a metaclass, which could change how the class creates its
    /// objects.
    fn are_plain(&mut self, classes: &[SymbolPath]) -> bool {
        classes.iter().all(|class| {
            let contract = self.contract(class);
            contract.is_some_and(|one| {
                let mut bases = one.bases.iter();
                !bases.any(|base| base.contains('=') || base.starts_with('*'))
            })
        })
    }

    /// Returns the parameters of the `__init__` that `dataclass` generates for these classes.
    fn all_fields(&mut self, classes: &[SymbolPath]) -> Option<Vec<Parameter>> {
        let mut all: Vec<Parameter> = Vec::new();
        for class in classes {
            let tree = self.tree(&class.file)?;
            let symbol = tree.find(&class.name)?;
            for field in fields(&tree, symbol)? {
                match all.iter_mut().find(|one| one.name == field.name) {
                    Some(known) => *known = field,
                    None => all.push(field),
                }
            }
        }
        Some(all)
    }

    /// Returns whether a file may replace the called function at run time, such as by
    /// monkeypatching.
    fn is_replaced(&mut self, file: FileId, tree: &SymbolTree, name: &str) -> bool {
        let names = Source::names(self.world.code, file).unwrap_or_default();
        let is_set = |one: &Occurrence, names: &Names| {
            one.role == Role::Store && one.receiver().is_some() && names.name(one.name) == name
        };
        let mut occurrences = names.occurrences().iter();
        if occurrences.any(|one| is_set(one, &names)) {
            return true;
        }
        // A test may replace it by name: `patch("shop.cart.total")` or
        // `setattr(cart, "total", ...)`.
        let ends = [format!("{name}\""), format!("{name}'")];
        is_test(tree.file()) && ends.iter().any(|end| tree.text().contains(end))
    }
}

/// Returns whether the code around a call expects a `TypeError`, as in `pytest.raises`.
fn is_expected(tree: &SymbolTree, at: usize) -> bool {
    let text = |node: Node<'_>| tree.text().get(node.byte_range()).unwrap_or_default();
    let mut inner = tree
        .root()
        .and_then(|root| root.descendant_for_byte_range(at, at + 1));
    while let Some(node) = inner {
        let Some(outer) = node.parent() else {
            return false;
        };
        let mut cursor = outer.walk();
        let is_provided = match outer.kind() {
            "function_definition" | "class_definition" => return false,
            "with_statement" => outer.named_children(&mut cursor).any(|part| {
                let words = ["raises", "Raises", "suppress"];
                let part = (part.kind() == "with_clause").then(|| text(part));
                part.is_some_and(|part| words.iter().any(|word| part.contains(word)))
            }),
            "try_statement" => outer.named_children(&mut cursor).any(|part| {
                let head = text(part).lines().next().unwrap_or_default();
                part.kind() == "except_clause" && part != node && head.contains("TypeError")
            }),
            _ => false,
        };
        if is_provided {
            return true;
        }
        inner = Some(outer);
    }
    false
}

/// Returns the parameters that the fields of a data class add to its `__init__`, or `None` if they
/// are not certain.
fn fields(tree: &SymbolTree, class: &Symbol) -> Option<Vec<Parameter>> {
    let text = |node: Node<'_>| {
        let text = tree.text().get(node.byte_range()).unwrap_or_default();
        text.split_whitespace().collect::<String>()
    };
    let decorators: String = class.contract.decorators.concat();
    let options: String = decorators.split_whitespace().collect();
    if options.contains("init=") || options.contains("**") {
        return None;
    }
    let name = tree
        .root()?
        .descendant_for_byte_range(class.name.start, class.name.end)?;
    let body = name.parent()?.child_by_field_name("body")?;
    let mut by_keyword = options.contains("kw_only=True");
    let mut found = Vec::new();
    let mut cursor = body.walk();
    for statement in body.named_children(&mut cursor) {
        let statement = match statement.kind() {
            "expression_statement" => statement.named_child(0)?,
            "function_definition"
            | "decorated_definition"
            | "class_definition"
            | "comment"
            | "pass_statement" => continue,
            // A field inside an `if` may or may not exist.
            _ => return None,
        };
        let annotation = statement.child_by_field_name("type").map(text);
        let (Some(annotation), "assignment") = (annotation, statement.kind()) else {
            continue;
        };
        if annotation.contains("KW_ONLY") {
            by_keyword = true;
            continue;
        }
        if annotation.contains("ClassVar") {
            continue;
        }
        let value = statement.child_by_field_name("right").map(text);
        let options = value.as_deref().filter(|value| value.contains("field("));
        let options = options.unwrap_or_default();
        if options.contains("**") {
            return None;
        }
        if options.contains("init=False") {
            continue;
        }
        let is_required = match options.is_empty() {
            true => value.is_none(),
            false => !options.contains("default"),
        };
        let is_keyword =
            options.contains("kw_only=True") || by_keyword && !options.contains("kw_only=False");
        found.push(Parameter {
            name: statement.child_by_field_name("left").map(text)?,
            kind: match is_keyword {
                true => ParameterKind::KeywordOnly,
                false => ParameterKind::Positional,
            },
            annotation: None,
            default: (!is_required).then(String::new),
        });
    }
    Some(found)
}

#[cfg(test)]
mod tests;
