//! Prints the files and symbols that a patch changes. Symbols are those of the file before the
//! patch.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use starling_syntax::{FilePath, SymbolTree};

use crate::string;

pub fn print(instances: &[Value], checkouts: &Path) {
    for instance in instances {
        let id = string(instance, "instance_id");
        let (mut files, mut symbols, mut modules) = (Vec::new(), Vec::new(), Vec::new());
        for (file, hunks) in files_of(string(instance, "patch")) {
            let text = std::fs::read_to_string(checkouts.join(id).join(&file))
                .expect("the patched file exists in the checkout");
            for name in touched(&file, &text, &hunks) {
                let path = format!("{file}::{name}");
                if name.is_empty() {
                    modules.push(path)
                } else {
                    symbols.push(path)
                }
            }
            files.push(file);
        }
        println!(
            "{}",
            json!({"instance_id": id, "files": files, "symbols": symbols, "modules": modules})
        );
    }
}

/// A hunk of a patch, whose lines keep their sign (`+`, `-` or a space).
struct Hunk<'p> {
    /// First line, counted from 0.
    start: usize,
    lines: Vec<&'p str>,
}

fn files_of(patch: &str) -> Vec<(String, Vec<Hunk<'_>>)> {
    let mut files: Vec<(String, Vec<Hunk<'_>>)> = Vec::new();
    for line in patch.trim_end().split('\n') {
        let last = files.last_mut();
        if let Some(path) = line.strip_prefix("--- a/") {
            files.push((path.trim_end().to_owned(), Vec::new()));
        } else if let (Some(rest), Some((_, hunks))) = (line.strip_prefix("@@ -"), last) {
            let digits = rest.split([',', ' ']).next().unwrap_or_default();
            let start = digits
                .parse::<usize>()
                .expect("a line number")
                .saturating_sub(1);
            hunks.push(Hunk {
                start,
                lines: Vec::new(),
            });
        } else if let Some((_, hunks)) = files.last_mut()
            && let Some(hunk) = hunks.last_mut()
            && (line.is_empty() || line.starts_with([' ', '+', '-']))
        {
            // Some tools strip the space of an empty line.
            hunk.lines.push(if line.is_empty() { " " } else { line });
        }
        if line.starts_with("diff ") && files.last().is_some_and(|(_, hunks)| hunks.is_empty()) {
            files.pop();
        }
    }
    files
}

/// Returns the line where a hunk fits, counted from 0: the match nearest to the hunk's own line
/// number.
fn place(lines: &[&str], hunk: &Hunk<'_>) -> usize {
    let old = hunk
        .lines
        .iter()
        .filter(|line| !line.starts_with('+'))
        .map(|line| line[1..].trim_end());
    let old: Vec<&str> = old.collect();
    let fits = |start: &usize| {
        let rest = lines.get(*start..).unwrap_or_default();
        let shared = rest
            .iter()
            .zip(&old)
            .take_while(|(a, b)| a.trim_end() == **b)
            .count();
        shared == old.len().min(rest.len())
    };
    (0..lines.len())
        .filter(fits)
        .min_by_key(|start| start.abs_diff(hunk.start))
        .expect("the patch applies to the file")
}

/// Returns the names of the innermost symbols that contain a removed line or would contain an added
/// one.
fn touched(file: &str, old: &str, hunks: &[Hunk<'_>]) -> BTreeSet<String> {
    let before = tree(file, old);
    let old_lines: Vec<&str> = old.split('\n').collect();
    let (mut new_lines, mut added, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut at = 0;
    for hunk in hunks {
        let start = place(&old_lines, hunk);
        new_lines.extend_from_slice(&old_lines[at..start]);
        at = start;
        for line in &hunk.lines {
            let (sign, content) = line.split_at(1);
            let blank = content.trim().is_empty();
            if sign == "+" {
                new_lines.push(content);
                if !blank {
                    added.push(new_lines.len() as u32);
                }
                continue;
            }
            if at == old_lines.len() && blank {
                break;
            }
            at += 1;
            if sign == "-" {
                if !blank {
                    names.insert(before.at_line(at as u32).path.name.clone());
                }
            } else {
                new_lines.push(content);
            }
        }
    }
    new_lines.extend_from_slice(&old_lines[at..]);
    let after = tree(file, &new_lines.join("\n"));
    for line in added {
        let mut name = after.at_line(line).path.name.as_str();
        while before.find(name).is_none() {
            name = name.rsplit_once('.').map_or("", |(around, _)| around);
        }
        names.insert(name.to_owned());
    }
    names
}

fn tree(file: &str, text: &str) -> SymbolTree {
    SymbolTree::parse(FilePath::new(file), Arc::from(text))
}
