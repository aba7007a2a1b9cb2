//! A small generated project whose test results and diagnostics can be computed from its texts.
//!
//! Each symbol has a line `v = N  # ver:NAME`. The tests are rules about these versions and about
//! the number of arguments that callers pass, so some changes pass only together.

use std::collections::{BTreeMap, BTreeSet};

use starling_core::{Problem, ProblemKind, Severity};
use starling_syntax::FilePath;

use super::choices::Choices;

/// The texts of Python files, by path.
pub type Texts = BTreeMap<String, String>;

/// A version that is always wrong.
pub const WRONG: i64 = 13;
/// A file that contains this text cannot be parsed.
pub const BROKEN_SYNTAX: &str = "%%";
/// A name that is not defined.
pub const UNDEFINED: &str = "undefined_name";

/// A function or method of the generated project. It contains a line with its version.
#[derive(Debug, Clone)]
pub struct ProjectFunction {
    pub file: String,
    pub name: String,
    /// The function that this one calls.
    pub calls: Option<String>,
    /// The version number that the function must have when the task is done.
    pub goal: i64,
}

impl ProjectFunction {
    pub fn path(&self) -> String {
        format!("{}::{}", self.file, self.name)
    }

    /// Returns the name without its class.
    pub fn short(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    pub fn is_method(&self) -> bool {
        self.name.contains('.')
    }
}

/// A test of the generated project: a condition on versions or on argument counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectRule {
    /// Both symbols have the same version.
    Same(String, String),
    /// The symbol has at least this version.
    AtLeast(String, i64),
    /// The version of the function can be read and is not `WRONG`.
    Sound(String),
    /// The caller passes the number of arguments that the callee takes.
    Fits(String, String),
}

impl ProjectRule {
    fn id(&self) -> String {
        match self {
            ProjectRule::Same(one, other) => format!("tests/test_all.py::test_same_{one}_{other}"),
            ProjectRule::AtLeast(name, least) => {
                format!("tests/test_all.py::test_{name}_at_least_{least}")
            }
            ProjectRule::Sound(name) => format!("tests/test_all.py::test_{name}_sound"),
            ProjectRule::Fits(caller, callee) => {
                format!("tests/test_all.py::test_{caller}_calls_{callee}")
            }
        }
    }

    fn about(&self) -> &str {
        match self {
            ProjectRule::Same(name, _)
            | ProjectRule::AtLeast(name, _)
            | ProjectRule::Sound(name)
            | ProjectRule::Fits(name, _) => name,
        }
    }
}

/// A generated project: its functions and methods, and its tests.
#[derive(Debug, Clone)]
pub struct Project {
    pub units: Vec<ProjectFunction>,
    pub laws: Vec<ProjectRule>,
}

/// A failing test: its id, and its message with a traceback.
pub type Failure = (String, String);

impl Project {
    pub fn generate(choices: &Choices) -> Self {
        let count = 3 + choices.number("project units", 6);
        let files = ["a.py", "b.py", "pkg/c.py"];
        let mut units: Vec<ProjectFunction> = Vec::new();
        for at in 0..count {
            let key = |what: &str| format!("project unit {at} {what}");
            let file = *choices.pick(&key("file"), &files);
            let is_method = choices.number(&key("method"), 4) == 0;
            let name = match is_method {
                true => format!("K{at}.run{at}"),
                false => format!("f{at}"),
            };
            let callable: Vec<String> = units
                .iter()
                .filter(|unit| !unit.is_method())
                .map(|unit| unit.name.clone())
                .collect();
            let calls = (!callable.is_empty() && choices.number(&key("calls"), 2) == 0)
                .then(|| choices.pick(&key("callee"), &callable).clone());
            units.push(ProjectFunction {
                file: file.to_owned(),
                name,
                calls,
                goal: 2,
            });
        }
        let laws = laws(choices, &units);
        Project { units, laws }
    }

    pub fn unit(&self, path: &str) -> Option<&ProjectFunction> {
        self.units.iter().find(|unit| unit.path() == path)
    }

    /// Returns the text of each file before the run changes anything.
    pub fn texts(&self) -> Texts {
        let mut texts = Texts::new();
        for unit in &self.units {
            let text = texts.entry(unit.file.clone()).or_insert_with(|| {
                let mut imports = String::new();
                for callee in self.imported_by(&unit.file) {
                    let module = callee.file.trim_end_matches(".py").replace('/', ".");
                    imports.push_str(&format!("from {module} import {}\n", callee.name));
                }
                imports
            });
            text.push_str("\n\n");
            text.push_str(&source(unit, 1, 1, 1));
        }
        for text in texts.values_mut() {
            *text = text.trim_start_matches('\n').to_owned();
        }
        texts
    }

    fn imported_by(&self, file: &str) -> Vec<&ProjectFunction> {
        let users = self.units.iter().filter(|unit| unit.file == file);
        let called: BTreeSet<&String> = users.filter_map(|unit| unit.calls.as_ref()).collect();
        let is_used = |unit: &&ProjectFunction| called.contains(&unit.name) && unit.file != file;
        self.units.iter().filter(is_used).collect()
    }

    /// Returns the tests that fail on these texts.
    pub fn failures(&self, texts: &Texts) -> Vec<Failure> {
        let fails = |law: &&ProjectRule| !self.holds(law, texts);
        let failure = |law: &ProjectRule| {
            let name = law.about();
            let unit = self.units.iter().find(|unit| unit.name == name);
            let place = unit.map(|unit| {
                let text = texts.get(&unit.file).map_or("", String::as_str);
                let line = text.lines().position(|line| is_marked(line, name));
                format!(
                    "{}:{}: in {}\n",
                    unit.file,
                    line.unwrap_or(0) + 1,
                    unit.short()
                )
            });
            let message = format!(
                "{}AssertionError: {law:?} does not hold",
                place.unwrap_or_default()
            );
            (law.id(), message)
        };
        self.laws.iter().filter(fails).map(failure).collect()
    }

    pub fn test_ids(&self) -> Vec<String> {
        self.laws.iter().map(ProjectRule::id).collect()
    }

    fn holds(&self, law: &ProjectRule, texts: &Texts) -> bool {
        let version = |name: &str| self.version(name, texts);
        match law {
            ProjectRule::Same(one, other) => {
                version(one).is_some() && version(one) == version(other)
            }
            ProjectRule::AtLeast(name, least) => {
                version(name).is_some_and(|version| version >= *least)
            }
            ProjectRule::Sound(name) => version(name).is_some_and(|version| version != WRONG),
            ProjectRule::Fits(caller, callee) => {
                let taken = self.taken(callee, texts);
                taken.is_some() && taken == self.passed(caller, callee, texts)
            }
        }
    }

    fn text_of<'t>(&self, name: &str, texts: &'t Texts) -> Option<&'t str> {
        let unit = self.units.iter().find(|unit| unit.name == name)?;
        let text = texts.get(&unit.file)?;
        (!text.contains(BROKEN_SYNTAX)).then_some(text)
    }

    /// Returns the version of a symbol in these texts.
    pub fn version(&self, name: &str, texts: &Texts) -> Option<i64> {
        let text = self.text_of(name, texts)?;
        let line = text.lines().find(|line| is_marked(line, name))?;
        version_in(line)
    }

    /// Returns the number of arguments that a function takes.
    pub fn taken(&self, name: &str, texts: &Texts) -> Option<usize> {
        let text = self.text_of(name, texts)?;
        let head = format!("def {name}(");
        let line = text.lines().find(|line| line.trim().starts_with(&head))?;
        Some(line.matches(',').count() + 1)
    }

    fn passed(&self, caller: &str, callee: &str, texts: &Texts) -> Option<usize> {
        let text = self.text_of(caller, texts)?;
        let call = format!("{callee}(");
        let after = text.lines().skip_while(|line| !is_marked(line, caller));
        let line = after.take(7).find(|line| line.contains(&call))?;
        let inside = line.split(&call).nth(1)?.split(')').next()?;
        Some(inside.matches(',').count() + 1)
    }

    /// Returns the problems that a language server reports for a text.
    pub fn problems(file: &str, text: &str) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.contains(UNDEFINED) {
                problems.push(Problem {
                    file: FilePath::new(file),
                    line: u32::try_from(at + 1).expect("few lines"),
                    severity: Severity::Error,
                    message: format!("{UNDEFINED} is not defined"),
                    source: "simulated".to_owned(),
                    kind: ProblemKind::Name,
                    stops: true,
                    range: None,
                });
            }
        }
        problems
    }
}

fn laws(choices: &Choices, units: &[ProjectFunction]) -> Vec<ProjectRule> {
    let mut laws: Vec<ProjectRule> = Vec::new();
    for (at, unit) in units.iter().enumerate() {
        let key = |what: &str| format!("project law {at} {what}");
        laws.push(ProjectRule::Sound(unit.name.clone()));
        if let Some(callee) = &unit.calls {
            laws.push(ProjectRule::Fits(unit.name.clone(), callee.clone()));
        }
        if choices.number(&key("goal"), 2) == 0 {
            laws.push(ProjectRule::AtLeast(unit.name.clone(), unit.goal));
        }
        if at > 0 && choices.number(&key("same"), 3) == 0 {
            let other = choices.number(&key("other"), at as u64);
            let other = &units[usize::try_from(other).expect("an index fits")];
            laws.push(ProjectRule::Same(unit.name.clone(), other.name.clone()));
        }
    }
    laws
}

/// Returns whether a line contains the version of a symbol.
pub fn is_marked(line: &str, name: &str) -> bool {
    line.split("# ver:")
        .nth(1)
        .is_some_and(|rest| rest.split(' ').next() == Some(name))
}

pub fn version_in(line: &str) -> Option<i64> {
    let rest = line.split("v = ").nth(1)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the complete text of a symbol with a version. It takes `taken` arguments and passes
/// `passed` arguments.
pub fn source(unit: &ProjectFunction, version: i64, taken: usize, passed: usize) -> String {
    let arguments = |count: usize, each: &str| {
        let names = (0..count).map(|at| format!("{each}{at}"));
        names.collect::<Vec<_>>().join(", ")
    };
    let call = match &unit.calls {
        Some(callee) => {
            let passed: Vec<String> = (0..passed).map(|at| format!("x0 + {at}")).collect();
            format!("{callee}({}) + v", passed.join(", "))
        }
        None => "x0 + v".to_owned(),
    };
    let taken = arguments(taken, "x");
    let name = unit.short();
    match unit.name.split_once('.') {
        Some((class, _)) => format!(
            "class {class}:\n    def {name}(self, {taken}):\n        v = {version}  # ver:{}\n        return {call}\n",
            unit.name
        ),
        None => format!(
            "def {name}({taken}):\n    v = {version}  # ver:{}\n    return {call}\n",
            unit.name
        ),
    }
}

/// Returns the text of a method without its class.
pub fn own_source(unit: &ProjectFunction, version: i64, taken: usize, passed: usize) -> String {
    let whole = source(unit, version, taken, passed);
    match unit.is_method() {
        true => {
            let lines = whole.lines().skip(1);
            let lines: Vec<&str> = lines
                .map(|line| line.strip_prefix("    ").unwrap_or(line))
                .collect();
            format!("{}\n", lines.join("\n"))
        }
        false => whole,
    }
}
