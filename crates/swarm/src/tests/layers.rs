//! Checks the layers of this crate: a folder uses only the folders of lower layers, and no more
//! than three files of one folder form a dependency cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The folders of the crate, lowest layer first. Each folder may use only the folders before it.
const LAYERS: [&str; 14] = [
    "evidence", "budget", "event", "protocol", "excerpt", "lookup", "task", "state", "check",
    "context", "contract", "proposal", "agent", "run",
];
/// Maximum number of files in a dependency cycle within one folder.
const CIRCLE_MOST: usize = 3;

/// A module of the crate, as the names on its path.
type Module = Vec<String>;

/// Returns the code of each file of the crate without its tests, by its path in `src`.
fn sources() -> BTreeMap<String, String> {
    fn read(root: &Path, directory: &Path, into: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "tests" {
                read(root, &path, into);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let inside = path.strip_prefix(root).unwrap().to_string_lossy();
                into.insert(inside.replace('\\', "/"), code(&path));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    read(&root, &root, &mut found);
    found
}

/// Returns the text of a file without comments and without its unit tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().collect::<Vec<_>>();
    let is_tests = |at: usize| {
        let next = lines.get(at + 1).unwrap_or(&"");
        lines[at] == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{')
    };
    let end = (0..lines.len()).find(|at| is_tests(*at));
    let lines = &lines[..end.unwrap_or(lines.len())];
    let without_comment = |line: &&str| line.split("//").next().unwrap_or_default().to_owned();
    let lines: Vec<String> = lines.iter().map(without_comment).collect();
    lines.join("\n")
}

fn module_of(file: &str) -> Module {
    let path = file.trim_end_matches(".rs");
    let names = path.split('/').map(str::to_owned);
    let mut names: Module = names.collect();
    if names
        .last()
        .is_some_and(|last| last == "mod" || last == "lib")
    {
        names.pop();
    }
    names
}

/// Returns the `use` statements of a file, each with whether it is public, and the code without
/// them.
fn uses(code: &str) -> (Vec<(bool, String)>, String) {
    let (mut found, mut rest, mut open) = (Vec::new(), String::new(), None::<(bool, String)>);
    for line in code.lines() {
        let trimmed = line.trim_start();
        let after_pub = match trimmed.strip_prefix("pub") {
            Some(after) if after.starts_with('(') => after.split_once(") ").map(|(_, rest)| rest),
            Some(after) => after.strip_prefix(' '),
            None => None,
        };
        let statement = after_pub.unwrap_or(trimmed).strip_prefix("use ");
        match (&mut open, statement) {
            (Some((_, text)), _) => text.push_str(trimmed),
            (None, Some(text)) => open = Some((after_pub.is_some(), text.to_owned())),
            (None, None) => rest.push_str(&format!("{line}\n")),
        }
        if open.as_ref().is_some_and(|(_, text)| text.ends_with(';')) {
            let (is_public, text) = open.take().unwrap();
            found.push((is_public, text.trim_end_matches(';').to_owned()));
        }
    }
    (found, rest)
}

/// Returns the paths of a `use` tree, without its aliases.
fn leaves(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.split(" as ").next().unwrap_or(tree).trim();
    let Some((head, inner)) = tree.split_once('{') else {
        return vec![tree.split("::").map(|one| one.trim().to_owned()).collect()];
    };
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let head: Vec<String> = head
        .split("::")
        .filter(|one| !one.trim().is_empty())
        .map(|one| one.trim().to_owned())
        .collect();
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match (c, depth) {
            (',', 0) => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(c),
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    let of_part = |part: &String| {
        let leaves = leaves(part).into_iter();
        leaves.map(|leaf| head.iter().cloned().chain(leaf).collect())
    };
    parts
        .flat_map(|part| of_part(part).collect::<Vec<Vec<String>>>())
        .map(|mut leaf| {
            if leaf.last().is_some_and(|last| last == "self") {
                leaf.pop();
            }
            leaf
        })
        .collect()
}

/// Returns the paths of at least two names in the code, such as `crate::run::start`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let name: String = rest.chars().take_while(|c| is_part(*c)).collect();
        if name.is_empty() {
            open.clear();
            rest = &rest[c.len_utf8()..];
            continue;
        }
        open.push(name.clone());
        rest = &rest[name.len()..];
        match rest.strip_prefix("::") {
            Some(after) => rest = after,
            None => {
                if open.len() > 1 {
                    found.push(std::mem::take(&mut open));
                }
                open.clear();
            }
        }
    }
    found
}

/// The modules of the crate, with the items that each re-exports from other modules.
struct Modules {
    all: BTreeSet<Module>,
    exports: BTreeMap<(Module, String), Vec<String>>,
}

impl Modules {
    /// Returns the absolute form of a path that is written in module `of`, or `None` if it refers
    /// to another crate.
    fn absolute(
        &self,
        of: &Module,
        path: &[String],
        named: &BTreeMap<String, Module>,
    ) -> Option<Vec<String>> {
        let supers = path.iter().take_while(|one| *one == "super").count();
        let child: Module = of.iter().cloned().chain(path.first().cloned()).collect();
        match path.first().map(String::as_str) {
            Some("crate") => Some(path[1..].to_vec()),
            Some("self") => Some(
                of.iter()
                    .cloned()
                    .chain(path[1..].iter().cloned())
                    .collect(),
            ),
            Some("super") => {
                let base = of.get(..of.len().checked_sub(supers)?)?.iter().cloned();
                Some(base.chain(path[supers..].iter().cloned()).collect())
            }
            Some(name) if named.contains_key(name) => Some(
                named[name]
                    .iter()
                    .cloned()
                    .chain(path[1..].iter().cloned())
                    .collect(),
            ),
            Some(_) if self.all.contains(&child) => Some(of.iter().chain(path).cloned().collect()),
            Some(_) | None => None,
        }
    }

    /// Returns the module that defines the item at an absolute module path, following re-exports.
    fn target(&self, path: &[String]) -> Module {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let is_module = |count: &usize| self.all.contains(&path[..*count]);
            let count = (0..=path.len()).rev().find(is_module).unwrap_or(0);
            let Some(item) = path.get(count) else {
                break;
            };
            match self.exports.get(&(path[..count].to_vec(), item.clone())) {
                Some(export) => path = export.clone(),
                None => return path[..count].to_vec(),
            }
        }
        path
    }
}

/// Returns the modules that each module uses.
fn dependencies(sources: &BTreeMap<String, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut modules = Modules {
        all: sources.keys().map(|file| module_of(file)).collect(),
        exports: BTreeMap::new(),
    };
    let none = BTreeMap::new();
    for (file, code) in sources {
        let module = module_of(file);
        for (_, tree) in uses(code).0.into_iter().filter(|(is_public, _)| *is_public) {
            for leaf in leaves(&tree) {
                if let (Some(path), Some(name)) =
                    (modules.absolute(&module, &leaf, &none), leaf.last())
                {
                    modules.exports.insert((module.clone(), name.clone()), path);
                }
            }
        }
    }
    let mut used: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (file, code) in sources {
        let module = module_of(file);
        let (statements, rest) = uses(code);
        let imported: Vec<Vec<String>> = statements
            .iter()
            .flat_map(|(_, tree)| leaves(tree))
            .collect();
        let mut all = Vec::new();
        let mut named = BTreeMap::new();
        for path in imported {
            let Some(path) = modules.absolute(&module, &path, &none) else {
                continue;
            };
            if modules.all.contains(&path)
                && let Some(name) = path.last()
            {
                named.insert(name.clone(), path.clone());
            }
            all.push(path);
        }
        let inline = paths(&rest).into_iter();
        all.extend(inline.filter_map(|path| modules.absolute(&module, &path, &named)));
        let targets = all.iter().map(|path| modules.target(path));
        let targets = targets.filter(|target| *target != module && !target.is_empty());
        used.insert(module.clone(), targets.collect());
    }
    // The crate root may use all layers, because it only declares modules and re-exports items.
    used.remove(&Module::new());
    used
}

/// Returns the layer of a module, counted from the lowest.
fn rank(module: &Module) -> Option<usize> {
    LAYERS
        .iter()
        .position(|layer| module.first().is_some_and(|first| first == layer))
}

/// Returns the modules that are reached from `from` within its folder.
fn reached(used: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        let inside = used.get(module).into_iter().flatten();
        for next in inside.filter(|next| next.first() == from.first()) {
            if found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

/// Returns the dependencies that violate the layers, in words.
fn violations(sources: &BTreeMap<String, String>) -> Vec<String> {
    let used = dependencies(sources);
    let mut wrong = Vec::new();
    for (module, targets) in &used {
        let name = module.join("/");
        if rank(module).is_none() {
            wrong.push(format!("{name} is in no layer"));
        }
        for target in targets.iter().filter(|target| rank(target) > rank(module)) {
            wrong.push(format!("{name} uses {}", target.join("/")));
        }
    }
    let reached: BTreeMap<&Module, BTreeSet<Module>> = used
        .keys()
        .map(|module| (module, reached(&used, module)))
        .collect();
    let mut circles = BTreeSet::new();
    for (module, all) in &reached {
        let is_back = |other: &&Module| {
            reached
                .get(*other)
                .is_some_and(|back| back.contains(*module))
        };
        let circle: BTreeSet<&Module> = all.iter().filter(is_back).collect();
        if circle.len() > CIRCLE_MOST {
            let names: Vec<String> = circle.iter().map(|one| one.join("/")).collect();
            circles.insert(format!("a circle: {}", names.join(", ")));
        }
    }
    wrong.extend(circles);
    wrong
}

#[test]
fn each_folder_depends_only_on_folders_of_lower_layers() {
    let sources = sources();
    assert!(sources.len() > 100, "{}", sources.len());
    let used = dependencies(&sources);
    let count: usize = used.values().map(BTreeSet::len).sum();
    assert!(count > 400, "only {count} dependencies were found");
    let wrong = violations(&sources);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn forbidden_dependency_is_detected() {
    let planted = |file: &str, line: &str| {
        let mut sources = sources();
        let text = sources.get_mut(file).unwrap();
        *text = format!("{line}\n{text}");
        violations(&sources)
    };
    assert_eq!(
        planted(
            "state/world.rs",
            "use crate::run::lifecycle::{self, start};"
        ),
        ["state/world uses run/lifecycle"]
    );
    assert_eq!(
        planted("check/checks.rs", "fn f() { crate::agent::turns::work(); }"),
        ["check/checks uses agent/turns"]
    );
    // Dependencies through an imported module or a re-export are also detected.
    assert_eq!(
        planted(
            "evidence/ids.rs",
            "use super::super::lookup;\nfn f() { lookup::Mention::new(); }"
        ),
        [
            "evidence/ids uses lookup",
            "evidence/ids uses lookup/mention"
        ]
    );
    assert_eq!(
        planted("proposal/send.rs", "use crate::proposal::apply;"),
        [""; 0]
    );
    let circle = planted("proposal/send.rs", "use crate::proposal::propose;");
    assert_eq!(circle.len(), 1, "{circle:?}");
    assert!(circle[0].starts_with("a circle: proposal/"), "{circle:?}");
}

/// Structs of shared mutable state, with the file that holds each.
const SHARED: [(&str, &str); 11] = [
    ("state/run_context.rs", "RunContext"),
    ("state/checker.rs", "Checker"),
    ("state/world.rs", "World"),
    ("state/test_state.rs", "TestState"),
    ("state/test_state.rs", "RequiredTests"),
    ("state/test_state.rs", "SelectionState"),
    ("state/test_state.rs", "FlakyTests"),
    ("state/test_state.rs", "FoundAtEnd"),
    ("state/proposals.rs", "ProposalBook"),
    ("state/agents.rs", "Agents"),
    ("state/contracts.rs", "Contracts"),
];
/// Fields of these structs that never change after construction. They do not count.
const FIXED: [&str; 4] = ["task", "goal", "services", "agent_loop"];

#[test]
fn no_struct_of_shared_state_has_more_than_twelve_fields() {
    let sources = sources();
    for (file, name) in SHARED {
        let head = format!("struct {name} {{\n");
        let (_, body) = sources[file].split_once(&head).expect(name);
        let (body, _) = body.split_once("\n}").expect(name);
        let fields = body.lines().filter_map(|line| line.trim().split_once(": "));
        let fields = fields.map(|(field, _)| field.rsplit(' ').next().unwrap_or(field));
        let fields: Vec<&str> = fields.filter(|field| !FIXED.contains(field)).collect();
        assert!((1..=12).contains(&fields.len()), "{name}: {fields:?}");
    }
}
