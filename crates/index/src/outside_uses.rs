//! Finds the uses of a module's members outside of Python code: lines of scripts, build files and
//! notebooks that use the member as code, and strings that name the module as well
//! (`"module:name"`). Strings that say the name alone may mean something else, and do not count.

use super::in_strings::{self, FILES, InString};
use super::read::on_all_cores;
use super::search::text_of;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Maximum number of bytes in which the arguments of a call are looked for.
const ARGUMENTS: usize = 4000;

/// A definition at the top level of a module, or a parameter of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub module: FilePath,
    pub name: String,
    /// The parameter that a call passes by keyword; `None` if each use of the member counts.
    pub parameter: Option<String>,
}

/// A member with the dotted names of its module and of the other modules that have it.
struct Sought<'m> {
    member: &'m Member,
    module: Vec<String>,
    others: Vec<Vec<String>>,
}

/// A use of a member outside of Python code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutsideUse {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    pub of: Member,
}

/// Returns the uses of the members, in the order of files and lines. `others` are the files that
/// define a member's name as well: what may mean the definition of another file does not count.
pub(super) fn outside_uses(
    snapshot: &Snapshot,
    members: &[Member],
    others: &dyn Fn(&Member) -> Vec<FilePath>,
) -> Vec<OutsideUse> {
    let members: Vec<Sought<'_>> = members
        .iter()
        .map(|member| Sought {
            member,
            module: parts_of(&member.module),
            others: others(member).iter().map(parts_of).collect(),
        })
        .filter(|sought| !sought.module.is_empty())
        .collect();
    if members.is_empty() {
        return Vec::new();
    }
    let files = snapshot.files_with_hidden();
    let of_file = |file: &&FilePath| -> Vec<OutsideUse> {
        let text = text_of(snapshot, file).filter(|_| in_strings::is_searched(file));
        let Some(text) = text else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for sought in &members {
            let member = sought.member;
            if !text.contains(&member.name) {
                continue;
            }
            let uses = FileUses::new(file, &text, &sought.module, &sought.others);
            let places = in_strings::in_file(snapshot, file, &member.name).into_iter();
            let places = places.filter(|one| !one.is_address && !one.is_template);
            let lines = places.filter_map(|one| uses.line(&one, member));
            found.extend(lines.map(|line| OutsideUse {
                file: (*file).clone(),
                line,
                of: member.clone(),
            }));
        }
        found
    };
    let found = on_all_cores(&files, || (), of_file);
    let mut found: Vec<OutsideUse> = found.into_iter().flatten().collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the parts of a module's dotted name: `pkg`, `fees` for `pkg/fees.py`, `pkg` for
/// `pkg/__init__.py`.
fn parts_of(file: &FilePath) -> Vec<String> {
    let path = file.as_str().strip_suffix(".py").unwrap_or_default();
    let parts = path.split('/').filter(|part| !part.is_empty());
    let mut parts: Vec<String> = parts.map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "__init__") {
        parts.pop();
    }
    parts
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text of one file in which a module's members are looked for.
struct FileUses<'t> {
    text: String,
    is_notebook: bool,
    module: &'t [String],
    others: &'t [Vec<String>],
    /// Other names of the module: `f` after `import fees as f`.
    aliases: Vec<String>,
    /// Whether a line imports the module.
    is_imported: bool,
    /// The names that the file imports from the module; `*` for all.
    imported: Vec<String>,
}

impl<'t> FileUses<'t> {
    fn new(
        file: &FilePath,
        text: &str,
        module: &'t [String],
        others: &'t [Vec<String>],
    ) -> FileUses<'t> {
        let is_notebook = file.name().ends_with(".ipynb");
        let text = match is_notebook {
            // The ends of lines and the quotes in strings of JSON are two bytes each.
            true => text.replace("\\n", "  ").replace("\\\"", " \""),
            false => text.to_owned(),
        };
        let mut uses = FileUses {
            text: String::new(),
            is_notebook,
            module,
            others,
            aliases: Vec::new(),
            is_imported: false,
            imported: Vec::new(),
        };
        uses.read_imports(&text);
        uses.text = text;
        uses
    }

    fn read_imports(&mut self, text: &str) {
        let ends = |c: char| !is_part(c) && c != '.' && c != '*';
        let words = text.split(ends).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        for (at, word) in words.iter().enumerate() {
            if !self.is_module(word, false) {
                continue;
            }
            let before = |back: usize| at.checked_sub(back).map(|at| words[at]);
            let after = |on: usize| words.get(at + on).copied();
            // `import a, fees`: the statement may name other modules first.
            let is_import = (1..=8).any(|back| before(back) == Some("import"));
            if before(1) == Some("from") && after(1) == Some("import") {
                let names = words[at + 2..].iter().take(40);
                self.imported.extend(names.map(|name| (*name).to_owned()));
            } else if is_import {
                self.is_imported = true;
                if let (Some("as"), Some(alias)) = (after(1), after(2)) {
                    self.aliases.push(alias.to_owned());
                }
            }
        }
    }

    /// Returns whether a dotted name means the module, and no other one that has the member too.
    /// `is_whole` tells that the name begins at the root, with parts that the workspace may lack.
    fn is_module(&self, written: &str, is_whole: bool) -> bool {
        let parts: Vec<&str> = written.split('.').filter(|part| !part.is_empty()).collect();
        let means = |module: &[String]| {
            let both = parts.iter().rev().zip(module.iter().rev());
            let count = both.take_while(|(own, other)| *own == other).count();
            !parts.is_empty()
                && (count == parts.len() || is_whole && count == module.len() && count > 0)
        };
        means(self.module) && !self.others.iter().any(|other| means(other))
    }

    /// Returns the line of the first use of the member at a place; `None` if there is none.
    fn line(&self, place: &InString, member: &Member) -> Option<u32> {
        let number = place.line as usize;
        let mut lines = self.text.split_inclusive('\n');
        let start: usize = lines.by_ref().take(number - 1).map(str::len).sum();
        let line = lines.next()?;
        let mut names = line.match_indices(member.name.as_str());
        names.find_map(|(at, _)| {
            if !self.is_use(line, at, place.is_script, &member.name) {
                return None;
            }
            let Some(parameter) = &member.parameter else {
                return Some(place.line);
            };
            let end = start + at + member.name.len();
            let keyword = keyword_in(&self.text[end..], parameter)?;
            let more = self.text[end..end + keyword].matches('\n').count();
            place.is_script.then_some(place.line + more as u32)
        })
    }

    /// Returns whether the name at an offset of a line is the member of the module.
    fn is_use(&self, line: &str, at: usize, is_script: bool, name: &str) -> bool {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        if before.ends_with(is_part) || after.starts_with(is_part) {
            return false;
        }
        let looks_like_code = name.contains('_') || name.chars().any(char::is_uppercase);
        let is_call = after.starts_with('(');
        let Some(separator) = before.chars().next_back().filter(|c| ".:#/".contains(*c)) else {
            let is_from = self.imported.iter().any(|one| one == name || one == "*");
            let is_import = before.contains("import ") && before.contains("from ");
            let is_function = after.starts_with("() {") || after.starts_with("(){");
            let is_own = is_function || before.trim_end().ends_with("def");
            return is_script && is_from && !is_own && (is_import || is_call || self.is_notebook);
        };
        let qualifier = &before[..before.len() - 1];
        let begin = qualifier
            .char_indices()
            .rev()
            .take_while(|(_, c)| is_part(*c) || matches!(c, '.' | '/'))
            .last()
            .map_or(qualifier.len(), |(at, _)| at);
        let written = qualifier[begin..].replace('/', ".");
        let is_alias = self.aliases.contains(&written);
        if !is_alias && !self.is_module(&written, separator != '.') {
            return false;
        }
        // `fees.log` is a file, unless it is called.
        let is_file = FILES.contains(&name) && !is_call;
        let is_python = is_script && (is_alias || self.is_imported);
        match separator {
            '.' => is_call || is_python || looks_like_code && !is_file,
            ':' => true,
            _ => !is_script && !is_file,
        }
    }
}

/// Returns the offset of a keyword among the arguments of the call that a text begins with; `None`
/// if there is no such call.
fn keyword_in(text: &str, parameter: &str) -> Option<usize> {
    if !text.starts_with('(') {
        return None;
    }
    let mut depth = 0;
    for (at, c) in text.char_indices().take_while(|(at, _)| *at < ARGUMENTS) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return None;
        }
        let rest = text[at..].strip_prefix(parameter);
        if let Some(rest) = rest.filter(|_| depth == 1 && !text[..at].ends_with(is_part)) {
            let value = rest.trim_start().strip_prefix('=');
            if value.is_some_and(|value| !value.starts_with('=')) {
                return Some(at);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use super::*;

    fn found(member: (&str, &str, Option<&str>), files: &[(&str, &str)]) -> Vec<String> {
        let (module, name, parameter) = member;
        let member = Member {
            module: FilePath::new(module),
            name: name.to_owned(),
            parameter: parameter.map(str::to_owned),
        };
        let others = |_: &Member| -> Vec<FilePath> {
            let is_other = |text: &str| text.contains(&format!("def {name}"));
            let files = files.iter().filter(|(_, text)| is_other(text));
            files.map(|(file, _)| FilePath::new(*file)).collect()
        };
        let found = outside_uses(&snapshot_of(files), &[member], &others);
        let places = found.iter().map(|one| format!("{}:{}", one.file, one.line));
        places.collect()
    }

    #[test]
    fn member_is_found_in_scripts_that_name_its_module() {
        for (file, line) in [
            ("a.sh", "python3 -c \"import fees; fees.late_fee(1)\""),
            ("a.sh", "python3 -c 'import till, fees as f; f.late_fee(1)'"),
            ("a.sh", "python3 -c 'from fees import x, late_fee'"),
            ("a.sh", "python3 -c 'from shop.fees import late_fee'"),
            ("Makefile", "\tpython3 -m shop.fees.late_fee"),
            ("Makefile", "\tgunicorn fees:late_fee --port 1"),
            ("Makefile.local", "\tgunicorn shop.fees:late_fee"),
            ("a.toml", "fee = \"tools.shop.fees:late_fee\""),
            ("a.yaml", "  - shop.fees.late_fee"),
            ("a.json", "{\"fee\": \"shop/fees#late_fee\"}"),
            ("a.csv", "standard,shop.fees:late_fee,0.5"),
            ("a.tsv", "standard rate\tshop.fees.late_fee"),
            ("a.py", "FEE = 'shop.fees.late_fee'"),
            (
                "a.ipynb",
                "{\"cells\": [{\"cell_type\": \"code\", \"source\": \"import fees\\nfees.late_fee(1)\"}]}",
            ),
        ] {
            let files = [(file, &*format!("\n{line}\n"))];
            let found = found(("shop/fees.py", "late_fee", None), &files);
            assert_eq!(found, [format!("{file}:2")], "{line}");
        }
        for (file, line) in [
            ("Makefile", "late_fee:\n\tpython3 fees.py"),
            ("Makefile", "all: late_fee fees"),
            ("a.sh", "late_fee() {\n  python3 -c 'import fees'"),
            ("a.sh", "python3 fees.py > late_fee"),
            ("a.sh", "python3 -c 'import till; till.late_fee(1)'"),
            ("a.sh", "# fees.late_fee(1)"),
            ("a.json", "{\"late_fee\": \"fees\"}"),
            ("a.csv", "fees,late_fee"),
            ("a.py", "KEY = 'late_fee'"),
            ("a.py", "KEY = '/fees/late_fee'"),
            ("a.md", "`fees.late_fee(1)`"),
            (
                "a.ipynb",
                "{\"cells\": [{\"cell_type\": \"code\", \"source\": \"import fees\\ndef late_fee(x):\\n  pass\\nlate_fee(1)\"}]}",
            ),
        ] {
            let files = [(file, &*format!("\n{line}\n"))];
            let found = found(("shop/fees.py", "late_fee", None), &files);
            assert_eq!(found, [""; 0], "{line}");
        }
    }

    #[test]
    fn name_that_is_an_ordinary_word_counts_only_in_code() {
        let is_found =
            |file: &str, line: &str| !found(("fees.py", "log", None), &[(file, line)]).is_empty();
        assert!(is_found(
            "a.sh",
            "python3 -c 'import fees; print(fees.log)'"
        ));
        assert!(is_found(
            "a.sh",
            "python3 -c 'from fees import log; log(1)'"
        ));
        assert!(is_found("Procfile", "web: gunicorn fees:log"));
        for line in [
            "python3 fees.py > fees.log",
            "rm out/log",
            "python3 -c 'import till; till.log(1)'",
        ] {
            assert!(!is_found("a.sh", line), "{line}");
        }
        assert!(!is_found("a.json", "{\"message\": \"fees.log\"}"));
    }

    #[test]
    fn member_that_another_module_of_the_name_has_is_not_found() {
        let script = "python3 -c 'import fees; fees.late_fee(1)'\npython3 -c 'import a.fees; a.fees.late_fee(1)'\n";
        let other = ("b/fees.py", "def late_fee(): pass\n");
        let both = found(("a/fees.py", "late_fee", None), &[("x.sh", script), other]);
        assert_eq!(both, ["x.sh:2"]);
        let package = "python3 -c 'import shop; shop.late_fee(1)'";
        let found = found(("shop/__init__.py", "late_fee", None), &[("x.sh", package)]);
        assert_eq!(found, ["x.sh:1"]);
    }

    #[test]
    fn keyword_is_found_in_the_calls_of_scripts() {
        let member = ("fees.py", "late_fee", Some("rate"));
        let script = "python3 - <<EOF\nimport fees\nfees.late_fee(\n  len(x),\n  rate = 2)\nEOF\n";
        assert_eq!(found(member, &[("x.sh", script)]), ["x.sh:5"]);
        for call in [
            "fees.late_fee(2)",
            "fees.late_fee(2, f(rate=3))",
            "fees.late_fee(2, day_rate=3)",
            "fees.late_fee(rate == 3)",
            "fees.late_fee(2), other(rate=2)",
        ] {
            let script = format!("python3 -c 'import fees; {call}'");
            assert_eq!(found(member, &[("x.sh", &script)]), [""; 0], "{call}");
        }
    }
}
