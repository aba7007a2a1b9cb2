//! Checks sentences that say that code is nowhere used, such as "No template uses `holder`." and
//! "Nothing calls `pay`.", against the index. No line can be cited for them.

use starling_index::{Certainty, Index, Usage, is_test_file};

/// Maximum number of uses that are considered.
const USES_MOST: usize = 200;
/// Words of which at least one is in a sentence that denies a use.
const DENIALS: [&str; 7] = ["no", "none", "never", "nobody", "nothing", "nowhere", "not"];
const CALLS: [&str; 5] = ["call", "called", "caller", "callers", "calls"];
const USES: [&str; 9] = [
    "mention",
    "mentioned",
    "mentions",
    "reference",
    "referenced",
    "references",
    "use",
    "used",
    "uses",
];
const TEMPLATES: [&str; 2] = ["template", "templates"];
const TESTS: [&str; 2] = ["test", "tests"];
/// Words that do not restrict what a sentence says. A sentence with any other word, such as "No other
/// view uses `f`", is not checked.
const OTHERS: [&str; 37] = [
    "a",
    "all",
    "any",
    "anywhere",
    "are",
    "at",
    "by",
    "class",
    "classes",
    "code",
    "codebase",
    "does",
    "do",
    "file",
    "files",
    "from",
    "function",
    "functions",
    "in",
    "is",
    "it",
    "line",
    "method",
    "methods",
    "module",
    "modules",
    "of",
    "one",
    "place",
    "project",
    "repository",
    "string",
    "strings",
    "that",
    "the",
    "there",
    "use",
];

/// What a sentence says does not use a name.
enum AbsentUser {
    Templates,
    Tests,
    Anything,
}

/// Returns a place that uses a name although `sentence` says that nothing does, or that no test or no
/// template does. `None` if there is no such place, or if the sentence may say something else.
pub fn refuting_use(sentence: &str, index: &Index) -> Option<String> {
    let mut quoted = sentence.split('`').skip(1).step_by(2);
    let name = quoted.next().filter(|_| quoted.next().is_none())?;
    let name = name.trim().trim_end_matches("()");
    let prose: String = sentence.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let prose = prose.to_lowercase().replace("n't", " not");
    let words = prose.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let all = [&DENIALS[..], &CALLS, &USES, &TEMPLATES, &TESTS, &OTHERS].concat();
    let is_plain = words.iter().all(|word| all.contains(word));
    if !is_plain || !has(&DENIALS) || !(has(&CALLS) || has(&USES)) {
        return None;
    }
    let user = match (has(&TEMPLATES), has(&TESTS)) {
        (true, true) => return None,
        (true, false) => AbsentUser::Templates,
        (false, true) => AbsentUser::Tests,
        (false, false) => AbsentUser::Anything,
    };
    use_of(name, &user, has(&CALLS), index)
}

/// Returns the first place, as `path:line`, where a name is used or, if `only_calls` is true, called.
fn use_of(name: &str, user: &AbsentUser, only_calls: bool, index: &Index) -> Option<String> {
    let base = name.rsplit(['.', ':']).next().unwrap_or(name);
    let in_templates = || {
        let found = index.in_templates(base).into_iter().next()?;
        Some(format!("{}:{}", found.file, found.line))
    };
    let in_strings = || {
        let mut found = index.in_strings(base).into_iter();
        let found = found.find(|one| !one.is_address)?;
        Some(format!("{}:{}", found.file, found.line))
    };
    let in_code = |fits: &dyn Fn(&Usage) -> bool| {
        let found = index.references(name, USES_MOST).found.into_iter();
        let mut sure = found.filter(|one| {
            one.certainty != Certainty::Possible && !one.is_import && (one.is_call || !only_calls)
        });
        let found = sure.find(|one| fits(one))?;
        Some(format!("{}:{}", found.file, found.line))
    };
    match user {
        AbsentUser::Templates => in_templates(),
        AbsentUser::Tests => in_code(&|one| is_test_file(&one.file)),
        AbsentUser::Anything if only_calls => in_code(&|_| true),
        AbsentUser::Anything => in_code(&|_| true).or_else(in_templates).or_else(in_strings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_workspace::Workspace;

    #[test]
    fn use_refutes_a_sentence_that_says_that_nothing_uses_the_name() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            (
                "a.py",
                "class Tool:\n    def holder(self):\n        return None\n\n\ndef free():\n    return 1\n\n\ndef lost():\n    return 2\n\n\nKNOWN = free\n",
            ),
            (
                "test_a.py",
                "from a import Tool\n\n\ndef test_holder():\n    assert Tool().holder()\n",
            ),
            ("templates/tool.html", "{{ tool.holder }}\n"),
        ] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = dir.path().canonicalize().unwrap();
        let files = Workspace::open(root).unwrap().snapshot(Default::default());
        let index = Index::new(files);
        for (sentence, place) in [
            ("No template uses `holder`.", Some("templates/tool.html:1")),
            (
                "There is no template that uses `holder`.",
                Some("templates/tool.html:1"),
            ),
            (
                "`Tool.holder` is not used in any template.",
                Some("templates/tool.html:1"),
            ),
            (
                "`Tool.holder()` isn't called by the tests.",
                Some("test_a.py:5"),
            ),
            ("Nothing uses `free`.", Some("a.py:14")),
            ("Nothing calls `free`.", None),
            ("No test uses `free`.", None),
            ("`lost` is never used.", None),
            ("No template uses `lost`.", None),
            // Other words may restrict the sentence.
            ("No other template uses `holder`.", None),
            ("No template of the admin uses `holder`.", None),
            ("`Tool` never calls `holder`.", None),
        ] {
            let found = refuting_use(sentence, &index);
            assert_eq!(found.as_deref(), place, "{sentence}");
        }
    }
}
