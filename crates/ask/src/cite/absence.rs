//! Checks sentences that say that code is nowhere used, such as "No template uses `holder`." and
//! "Nothing calls `pay`.", against the index. No line can be cited for them.

use super::CitationMark;
use starling_index::{Certainty, Index, Usage, is_test_file};

/// Maximum number of uses that are considered.
const USES_MOST: usize = 200;
/// Words for "no code at all", which use or call a name.
const NOBODY: [&str; 5] = ["no", "nobody", "none", "nothing", "nowhere"];
/// Words that deny what is said of a name: "`f` is never used".
const NOT: [&str; 2] = ["never", "not"];
const CALLS: [&str; 4] = ["call", "caller", "callers", "calls"];
const CALLED: &str = "called";
const USES: [&str; 8] = [
    "accesses",
    "mention",
    "mentions",
    "reads",
    "reference",
    "references",
    "use",
    "uses",
];
const USED: [&str; 5] = ["accessed", "mentioned", "read", "referenced", "used"];
/// Words for code that is only read: an assignment does not refute a sentence with one of them.
const READS: [&str; 2] = ["read", "reads"];
/// Words that leave out what the text around a sentence names: "Nothing else uses `f`".
const ELSE: [&str; 2] = ["else", "other"];
/// Maximum distance, in lines, between a use and a citation of it.
const NEAR: u32 = 2;
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
/// Words that do not restrict what a sentence says. A sentence with any other word, such as "No admin
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
/// template does. `None` if there is no such place, or if the sentence may say something else. `around`
/// is the text around the sentence, which "nothing else" leaves out.
pub fn refuting_use(sentence: &str, around: &Around<'_>, index: &Index) -> Option<String> {
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
        &ELSE,
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
    let only = Only {
        calls: only_calls,
        reads: has(&READS),
        others: has(&ELSE),
    };
    use_of(name, &user, &only, around, index)
}

/// Returns the names by which the uses of a name are searched: itself, and those of its definitions if
/// there is only one, or if the text names their classes. Uses of a bare name of a method are no more
/// than possible.
fn meant(name: &str, around: &Around<'_>, index: &Index) -> Vec<String> {
    let mut defined = index.definitions(name);
    if defined.len() > 1 {
        defined.retain(|one| {
            let class = one.symbol.name.rsplit_once('.').map(|(class, _)| class);
            class.is_some_and(|class| around.has_word(class))
        });
    }
    let paths = defined.into_iter().map(|one| one.symbol.to_string());
    std::iter::once(name.to_owned()).chain(paths).collect()
}

/// The answer up to the end of a sentence's block, which "nothing else" leaves out.
pub struct Around<'t> {
    pub text: &'t str,
    pub cited: Vec<CitationMark>,
}

impl Around<'_> {
    fn has_word(&self, wanted: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut words = self.text.split(|c: char| !is_part(c));
        words.any(|word| word == wanted)
    }

    /// Returns whether the text names the code that a use stands in, or cites the use.
    fn tells_of(&self, one: &Usage) -> bool {
        let is_cited = |mark: &CitationMark| {
            let (path, file) = (mark.path.trim_end_matches('`'), one.file.as_str());
            let is_near = |(first, last): &(u32, u32)| {
                (first.saturating_sub(NEAR)..=last.saturating_add(NEAR)).contains(&one.line)
            };
            file.ends_with(path) && mark.lines.iter().any(is_near)
        };
        self.has_word(one.symbol.base_name()) || self.cited.iter().any(is_cited)
    }
}

/// Which uses refute a sentence.
struct Only {
    calls: bool,
    /// Whether assignments do not count.
    reads: bool,
    /// Whether uses that the answer tells of do not count.
    others: bool,
}

/// Returns the first place, as `path:line`, where a name is used in a way that counts.
fn use_of(
    name: &str,
    user: &AbsentUser,
    only: &Only,
    around: &Around<'_>,
    index: &Index,
) -> Option<String> {
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
        let meant = meant(name, around, index);
        let found = meant
            .iter()
            .flat_map(|name| index.references(name, USES_MOST).found);
        let is_left_out = |one: &Usage| {
            let is_write = only.reads && is_assigned(&one.text, base);
            one.is_import || is_write || only.others && around.tells_of(one)
        };
        let is_sure =
            |one: &Usage| one.certainty != Certainty::Possible && (one.is_call || !only.calls);
        let mut sure = found.filter(|one| is_sure(one) && !is_left_out(one));
        let found = sure.find(|one| fits(one))?;
        Some(format!("{}:{}", found.file, found.line))
    };
    match user {
        // "Other" templates and strings cannot be told apart from those that the text names.
        AbsentUser::Templates if only.others => None,
        AbsentUser::Anything if only.others => in_code(&|_| true),
        AbsentUser::Templates => in_templates(),
        AbsentUser::Tests => in_code(&|one| is_test_file(&one.file)),
        AbsentUser::Anything if only.calls => in_code(&|_| true),
        AbsentUser::Anything => in_code(&|_| true).or_else(in_templates).or_else(in_strings),
    }
}

/// Returns whether a line assigns the name.
fn is_assigned(line: &str, name: &str) -> bool {
    let mut after = line
        .match_indices(name)
        .map(|(at, _)| &line[at + name.len()..]);
    after.any(|rest| {
        let rest = rest.trim_start();
        rest.starts_with('=') && !rest.starts_with("==") || rest.starts_with(':')
    })
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
            let around = Around {
                text: sentence,
                cited: Vec::new(),
            };
            let found = refuting_use(sentence, &around, &index);
            assert_eq!(found.as_deref(), place, "{sentence}");
        }
    }

    #[test]
    fn use_that_the_text_does_not_name_refutes_that_nothing_else_uses_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let text = "class Packet:\n    @property\n    def label(self):\n        return ''\n\n    \
            def describe(self):\n        return self.label\n\n\n\
            def to_json(p: Packet):\n    return p.label\n\n\n\
            class Box:\n    def __init__(self):\n        self.lid = 1\n";
        std::fs::write(dir.path().join("a.py"), text).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let files = Workspace::open(root).unwrap().snapshot(Default::default());
        let index = Index::new(files);
        let cited = |lines: (u32, u32)| CitationMark {
            span: 0..1,
            path: "a.py".to_owned(),
            symbol: None,
            lines: vec![lines],
        };
        let both = [cited((7, 7)), cited((11, 11))];
        for (before, cited, sentence, place) in [
            (
                "`to_json` reads it.",
                &[][..],
                "Nothing else in the project reads `label`.",
                Some("a.py:7"),
            ),
            (
                "`describe` reads it.",
                &[],
                "No other function uses `label`.",
                Some("a.py:11"),
            ),
            (
                "`to_json` and `describe` read it.",
                &[],
                "Nothing else reads `label`.",
                None,
            ),
            (
                "Two lines read it.",
                &both,
                "Nothing else reads `label`.",
                None,
            ),
            ("", &[], "Nothing reads `label`.", Some("a.py:7")),
            ("", &[], "`label` is never read.", Some("a.py:7")),
            ("", &[], "Nothing reads `lid`.", None),
        ] {
            let text = format!("{before} {sentence}");
            let around = Around {
                text: &text,
                cited: cited.to_vec(),
            };
            let found = refuting_use(sentence, &around, &index);
            assert_eq!(found.as_deref(), place, "{text}");
        }
    }
}
