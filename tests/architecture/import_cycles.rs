//! Import cycles inside each crate: no cycle leads through several directories, and none through more
//! than three files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The path of a module inside its crate, for example `["cli", "args"]`.
type Module = Vec<String>;
/// For each module, the modules whose names it uses.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn import_cycles_stay_in_one_directory_and_have_at_most_three_files() {
    let mut crates: BTreeMap<PathBuf, Vec<(Module, String)>> = BTreeMap::new();
    for (file, code) in super::product_sources() {
        let is_source = |part: &Path| part.file_name().is_some_and(|name| name == "src");
        let root = file.ancestors().find(|part| is_source(part)).unwrap();
        let module = module_of(file.strip_prefix(root).unwrap());
        let of_crate = crates.entry(root.to_owned()).or_default();
        of_crate.push((module, code));
    }
    let mut wrong = Vec::new();
    for (root, files) in crates {
        let found = forbidden_cycles(&imports(&files));
        wrong.extend(
            found
                .iter()
                .map(|cycle| format!("{}: {cycle}", root.display())),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn forbidden_cycle_is_detected() {
    let files = |files: &[(&str, &str)]| -> Vec<(Module, String)> {
        let of = |(file, code): &(&str, &str)| (module_of(Path::new(file)), (*code).to_owned());
        files.iter().map(of).collect()
    };
    let across = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod c;"),
        ("a/c.rs", "use crate::{b::d::{self, E}, f};"),
        ("b/mod.rs", "mod d;"),
        ("b/d.rs", "fn g() -> super::super::a::c::H {}"),
    ];
    let found = forbidden_cycles(&imports(&files(&across)));
    assert_eq!(found, ["a -> b", "a::c -> b::d"]);
    let long = [
        ("a.rs", "use super::b::B;"),
        ("b.rs", "use super::c::C;"),
        ("c.rs", "use crate::d::D;"),
        ("d.rs", "use crate::a::A;"),
    ];
    let found = forbidden_cycles(&imports(&files(&long)));
    assert_eq!(found, ["a -> b -> c -> d"]);
    let allowed = [
        ("a.rs", "use super::b::B;"),
        ("b.rs", "use super::c::C;"),
        ("c.rs", "use crate::a::A;"),
    ];
    assert!(forbidden_cycles(&imports(&files(&allowed))).is_empty());
}

/// Returns the module of a file, given by its path inside `src`.
fn module_of(file: &Path) -> Module {
    let mut parts: Module = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if matches!(parts.last().unwrap().as_str(), "lib" | "main" | "mod") {
        parts.pop();
    }
    parts
}

/// Returns the imports between the modules of a crate. Those between a module and the modules inside it
/// are left out: a parent declares its children.
fn imports(files: &[(Module, String)]) -> Imports {
    let known: BTreeSet<&Module> = files.iter().map(|(module, _)| module).collect();
    let mut imports = Imports::new();
    for (module, code) in files {
        let used = imports.entry(module.clone()).or_default();
        for path in paths_in(code) {
            let path = absolute(module, &path);
            let prefix = (0..=path.len()).rev().map(|length| path[..length].to_vec());
            let Some(target) = prefix.into_iter().find(|prefix| known.contains(prefix)) else {
                continue;
            };
            if !target.starts_with(module) && !module.starts_with(&target) {
                used.insert(target);
            }
        }
    }
    imports
}

/// Returns a path that begins with `crate`, `super` or `self` as a path from the root of the crate.
fn absolute(module: &Module, path: &[String]) -> Module {
    let mut base = module.clone();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest = after;
    }
    base.extend_from_slice(rest);
    base
}

/// Returns all paths in the code that begin with `crate`, `super` or `self`, those of groups one by one.
fn paths_in(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                add_paths(&[], &code[at..], &mut paths);
            }
        }
    }
    paths
}

/// Adds the path at the start of the text, or each path of the group there, behind a prefix.
fn add_paths(prefix: &[String], text: &str, paths: &mut Vec<Vec<String>>) {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices() {
            match c {
                ',' | '}' if depth == 0 => {
                    add_paths(prefix, &group[start..at], paths);
                    start = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (name, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
    if name.is_empty() {
        return;
    }
    let path = [prefix, &[name.to_owned()]].concat();
    match rest.trim_start().strip_prefix("::") {
        Some(rest) if rest.trim_start().starts_with(|c| is_part(c) || c == '{') => {
            add_paths(&path, rest, paths);
        }
        _ => paths.push(path),
    }
}

/// Returns the cycles between top-level directories, then those between files that are in several
/// directories or of more than three files.
fn forbidden_cycles(imports: &Imports) -> Vec<String> {
    let directories: BTreeSet<&str> = imports
        .keys()
        .filter(|module| module.len() > 1)
        .map(|module| module[0].as_str())
        .collect();
    let mut between = Imports::new();
    for (module, used) in imports {
        let of = |module: &Module| {
            let top = module.first()?;
            directories
                .contains(top.as_str())
                .then(|| vec![top.clone()])
        };
        let Some(from) = of(module) else { continue };
        let targets = used.iter().filter_map(of).filter(|to| *to != from);
        between
            .entry(from.clone())
            .or_default()
            .extend(targets.collect::<Vec<_>>());
    }
    let is_forbidden = |cycle: &Vec<Module>| {
        let parents: BTreeSet<_> = cycle
            .iter()
            .map(|module| &module[..module.len() - 1])
            .collect();
        cycle.len() > 3 || parents.len() > 1
    };
    let files = cycles(imports).into_iter().filter(is_forbidden);
    let named = |cycle: Vec<Module>| {
        let names: Vec<_> = cycle.iter().map(|module| module.join("::")).collect();
        names.join(" -> ")
    };
    cycles(&between)
        .into_iter()
        .chain(files)
        .map(named)
        .collect()
}

/// Returns the groups of modules of which each uses each other one, directly or through others.
fn cycles(imports: &Imports) -> Vec<Vec<Module>> {
    let reachable = |from: &Module| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            for used in imports.get(module).into_iter().flatten() {
                if seen.insert(used.clone()) {
                    next.push(used);
                }
            }
        }
        seen
    };
    let reachable: BTreeMap<&Module, BTreeSet<Module>> = imports
        .keys()
        .map(|module| (module, reachable(module)))
        .collect();
    let mut groups = BTreeSet::new();
    for (module, used) in &reachable {
        let back = |other: &&Module| reachable.get(other).is_some_and(|of| of.contains(*module));
        let group: Vec<Module> = used.iter().filter(back).cloned().collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}
