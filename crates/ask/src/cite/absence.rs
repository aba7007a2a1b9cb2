//! Checks sentences that say that code is nowhere used, such as "No template uses `holder`." and
//! "Nothing calls `pay`.", against the index. No line can be cited for them.

use starling_index::{Certainty, Index, Usage, is_test_file};

/// Maximum number of uses that are considered.
const USES_MOST: usize = 200;
/// Words for "no code at all", which use or call a name.
const NOBODY: [&str; 5] = ["no", "nobody", "none", "nothing", "nowhere"];
/// Words that deny what is said of a name: "`f` is never used".
const NOT: [&str; 2] = ["never", "not"];
const CALLS: [&str; 4] = ["call", "caller", "callers", "calls"];
const CALLED: &str = "called";
const USES: [&str; 6] = [
    "mention",
    "mentions",
    "reference",
    "references",
    "use",
    "uses",
];
const USED: [&str; 3] = ["mentioned", "referenced", "used"];
const TEMPLATES: [&str; 2] = ["template", "templates"];
const TESTS: [&str; 2] = ["test", "tests"];
/// Words for all code, templates or tests of the project. "The" before them does not restrict a sentence.
const WHOLE: [&str; 6] = [
    "code",
    "codebase",
    "project",
    "repository",
    "templates",
    "tests",
];
/// Words that do not restrict what a sentence says. A sentence with any other word, such as "No other
/// view uses `f`" or "Nothing in the class uses `f`", is not checked.
const OTHERS: [&str; 20] = [
    "any",
    "anywhere",
    "are",
    "at",
    "by",
    "class",
    "classes",
    "file",
    "files",
    "function",
    "functions",
    "in",
    "is",
    "method",
    "methods",
    "module",
    "modules",
    "place",
    "that",
    "there",
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
    let all = [
        &NOBODY[..],
        &NOT,
        &CALLS,
        &[CALLED],
        &USES,
        &USED,
        &TEMPLATES,
        &TESTS,
        &WHOLE,
        &OTHERS,
    ]
    .concat();
    let is_plain = words.iter().enumerate().all(|(at, word)| {
        let is_whole = || words.get(at + 1).is_some_and(|next| WHOLE.contains(next));
        all.contains(word) || *word == "the" && is_whole()
    });
    let (is_active, is_passive) = (has(&CALLS) || has(&USES), has(&[CALLED]) || has(&USED));
    // "It does not use `f`" says nothing about other code.
    let is_denied = match has(&NOBODY) {
        true => is_active || is_passive,
        false => has(&NOT) && is_passive && !is_active,
    };
    if !is_plain || !is_denied {
        return None;
    }
    let only_calls = has(&CALLS) || has(&[CALLED]);
    let user = match (has(&TEMPLATES), has(&TESTS)) {
        (true, true) => return None,
        (true, false) => AbsentUser::Templates,
        (false, true) => AbsentUser::Tests,
        (false, false) => AbsentUser::Anything,
    };
    use_of(name, &user, only_calls, index)
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
            ("Nothing in the class uses `holder`.", None),
            ("It does not use `holder`.", None),
            ("The method does not call `holder`.", None),
            ("Nothing in the project uses `free`.", Some("a.py:14")),
            ("`Tool` never calls `holder`.", None),
        ] {
            let found = refuting_use(sentence, &index);
            assert_eq!(found.as_deref(), place, "{sentence}");
        }
    }
}
