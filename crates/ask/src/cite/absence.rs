//! Checks sentences that say that code is nowhere used, such as "No template uses `holder`." and
//! "Nothing calls `pay`.", against the index. No line can be cited for them.

use super::CitationMark;
use super::denied::{Denied, denied};
use starling_index::{Certainty, Index, Usage, is_test_file};
use starling_syntax::{FilePath, SymbolKind, SymbolPath};

/// Maximum number of uses that are considered.
const USES_MOST: usize = 200;
/// Maximum distance, in lines, between a use and a citation of it.
const NEAR: u32 = 2;

/// What a sentence says does not use a name.
pub(super) enum AbsentUser {
    Templates,
    Tests,
    Anything,
}

/// The code to which a sentence is restricted: "no function of rota.py", "no method of `Rota`".
pub(super) enum Scope {
    File(FilePath),
    Symbol(SymbolPath),
}

impl Scope {
    fn holds(&self, one: &Usage) -> bool {
        match self {
            Scope::File(file) => one.file == *file,
            Scope::Symbol(symbol) => *symbol == one.symbol || symbol.encloses(&one.symbol),
        }
    }
}

/// Returns a place that uses a name although `sentence` says that nothing does, or that no test or no
/// template does. `None` if there is no such place, or if the sentence may say something else. `around`
/// is the text around the sentence, which "nothing else" leaves out.
pub fn refuting_use(sentence: &str, around: &Around<'_>, index: &Index) -> Option<String> {
    use_of(
        &denied(sentence, around.it.as_deref(), index)?,
        around,
        index,
    )
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
    /// The name of code that "it" means in the sentence, if that is certain.
    pub it: Option<String>,
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
pub(super) struct Only {
    pub calls: bool,
    /// Whether assignments do not count.
    pub reads: bool,
    /// Whether uses that the answer tells of do not count.
    pub others: bool,
    /// The kind of symbol that must contain the use: "no function uses it".
    pub within: Option<SymbolKind>,
}

/// Returns the first place, as `path:line`, where a name is used in a way that counts.
fn use_of(denied: &Denied<'_>, around: &Around<'_>, index: &Index) -> Option<String> {
    let Denied {
        name,
        user,
        scope,
        only,
    } = denied;
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
            |one: &Usage| one.certainty == Certainty::Certain && (one.is_call || !only.calls);
        let is_within = |one: &Usage| {
            let scope = scope.as_ref();
            scope.is_none_or(|scope| scope.holds(one))
                && only.within.is_none_or(|kind| is_in(one, kind, index))
        };
        let mut sure = found.filter(|one| is_sure(one) && !is_left_out(one) && is_within(one));
        let found = sure.find(|one| fits(one))?;
        Some(format!("{}:{}", found.file, found.line))
    };
    let is_restricted = only.others || only.within.is_some() || scope.is_some();
    match user {
        // Templates and strings are part of no symbol, and "other" ones cannot be told apart from those
        // that the text names.
        AbsentUser::Templates if is_restricted => None,
        AbsentUser::Templates => in_templates(),
        AbsentUser::Tests => in_code(&|one| is_test_file(&one.file)),
        AbsentUser::Anything if only.calls || is_restricted => in_code(&|_| true),
        AbsentUser::Anything => in_code(&|_| true).or_else(in_templates).or_else(in_strings),
    }
}

/// Returns whether a use stands in a symbol of a kind. A use in a method is in a class, too.
fn is_in(one: &Usage, kind: SymbolKind, index: &Index) -> bool {
    let Ok(tree) = index.snapshot().tree(&one.file) else {
        return false;
    };
    let found = tree.find(&one.symbol.name).map(|symbol| symbol.kind);
    match kind {
        SymbolKind::Class => matches!(found, Some(SymbolKind::Class | SymbolKind::Method)),
        SymbolKind::Module | SymbolKind::Function | SymbolKind::Method => found == Some(kind),
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
                it: None,
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
                it: None,
            };
            let found = refuting_use(sentence, &around, &index);
            assert_eq!(found.as_deref(), place, "{text}");
        }
    }
}
