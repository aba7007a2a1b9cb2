//! Reads sentences that say that code is nowhere used: which name, by whom, and in which code.

use super::absence::{AbsentUser, Only, Scope};
use starling_index::Index;
use starling_syntax::{FilePath, SymbolKind};

/// Words for "no code at all", which use or call a name.
const NOBODY: [&str; 5] = ["no", "nobody", "none", "nothing", "nowhere"];
/// Words that deny what is said of a name: "`f` is never used".
const NOT: [&str; 2] = ["never", "not"];
const CALLS: [&str; 4] = ["call", "caller", "callers", "calls"];
const CALLED: &str = "called";
const USES: [&str; 10] = [
    "accesses",
    "mention",
    "mentions",
    "reads",
    "reference",
    "references",
    "touch",
    "touches",
    "use",
    "uses",
];
const USED: [&str; 6] = [
    "accessed",
    "mentioned",
    "read",
    "referenced",
    "touched",
    "used",
];
/// Words for code that is only read: an assignment does not refute a sentence with one of them.
const READS: [&str; 2] = ["read", "reads"];
/// Words that leave out what the text around a sentence names: "Nothing else uses `f`".
const ELSE: [&str; 2] = ["else", "other"];
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
const OTHERS: [&str; 32] = [
    "actually",
    "all",
    "any",
    "anywhere",
    "are",
    "at",
    "by",
    "class",
    "classes",
    "currently",
    "directly",
    "do",
    "ever",
    "explicitly",
    "file",
    "files",
    "function",
    "functions",
    "has",
    "in",
    "inside",
    "is",
    "itself",
    "method",
    "methods",
    "module",
    "modules",
    "of",
    "place",
    "that",
    "there",
    "within",
];
/// Words before the code to which a sentence is restricted.
const BEFORE_SCOPE: [&str; 10] = [
    "by", "class", "file", "function", "in", "inside", "method", "module", "of", "within",
];
/// Words that, before a name, make the name say where something stands.
const INSIDE: [&str; 4] = ["by", "in", "inside", "within"];

/// What a sentence says is not used, and by whom.
pub(super) struct Denied<'s> {
    pub name: &'s str,
    pub user: AbsentUser,
    pub scope: Option<Scope>,
    pub only: Only,
}

#[derive(Debug, PartialEq)]
enum Token<'s> {
    /// A word of prose, in lower case.
    Word(String),
    /// A name in back-quotes.
    Code(&'s str),
    File(FilePath),
}

impl Token<'_> {
    fn is_in(&self, known: &[&str]) -> bool {
        matches!(self, Token::Word(word) if known.contains(&word.as_str()))
    }

    fn is_code(&self) -> bool {
        matches!(self, Token::Code(_))
    }
}

/// Reads a sentence. `None` if it does not deny a use, or may say something else. `it` is the name of
/// code that "it" means.
pub(super) fn denied<'s>(
    sentence: &'s str,
    it: Option<&'s str>,
    index: &Index,
) -> Option<Denied<'s>> {
    let mut tokens = tokens(sentence, index)?;
    if let (Some(Token::Word(first)), Some(it)) = (tokens.first(), it)
        && first == "it"
    {
        tokens[0] = Token::Code(it);
    }
    let has = |known: &[&str]| tokens.iter().any(|token| token.is_in(known));
    let is_plain = tokens.iter().enumerate().all(|(at, token)| match token {
        Token::Word(word) if word == "the" => {
            tokens.get(at + 1).is_some_and(|next| next.is_in(&WHOLE))
        }
        Token::Word(_) => is_known(token),
        Token::Code(_) | Token::File(_) => true,
    });
    let (is_active, is_passive) = (has(&CALLS) || has(&USES), has(&[CALLED]) || has(&USED));
    let is_of_tests = || {
        let mut words = tokens.iter().filter(|token| !token.is_in(&["the"]));
        words.next().is_some_and(|first| first.is_in(&["tests"]))
    };
    // "It does not use `f`" says nothing about other code.
    let is_denied = match has(&NOBODY) {
        true => is_active || is_passive,
        false => has(&NOT) && (is_passive && !is_active || is_active && is_of_tests()),
    };
    if !is_plain || !is_denied {
        return None;
    }
    let (target, scope) = target_and_scope(&tokens, is_active, is_passive)?;
    let Token::Code(name) = tokens[target] else {
        return None;
    };
    let scope = match scope {
        Some(at) => Some(resolved(&tokens[at], index)?),
        None => None,
    };
    let user = match (has(&TEMPLATES), has(&TESTS)) {
        (true, true) => return None,
        (true, false) => AbsentUser::Templates,
        (false, true) => AbsentUser::Tests,
        (false, false) => AbsentUser::Anything,
    };
    let only = Only {
        calls: has(&CALLS) || has(&[CALLED]),
        reads: has(&READS),
        others: has(&ELSE),
        within: kind_of_user(&tokens),
    };
    Some(Denied {
        name,
        user,
        scope,
        only,
    })
}

fn is_known(token: &Token<'_>) -> bool {
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
    ];
    all.iter().any(|known| token.is_in(known))
}

/// Splits a sentence into words, names and files. `None` if a file name is ambiguous.
fn tokens<'s>(sentence: &'s str, index: &Index) -> Option<Vec<Token<'s>>> {
    let mut tokens = Vec::new();
    for (nth, part) in sentence.split('`').enumerate() {
        if nth % 2 == 1 {
            let name = part.trim().trim_end_matches("()");
            tokens.push(match files_named(name, index).as_slice() {
                [] => Token::Code(name),
                [file] => Token::File(file.clone()),
                _ => return None,
            });
            continue;
        }
        for word in part.split_whitespace() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            match files_named(word, index).as_slice() {
                [] => {
                    let word = word.to_lowercase().replace("n't", " not");
                    let words = word.split(|c: char| !c.is_alphanumeric());
                    let words = words.filter(|word| !word.is_empty());
                    tokens.extend(words.map(|word| Token::Word(word.to_owned())));
                }
                [file] => tokens.push(Token::File(file.clone())),
                _ => return None,
            }
        }
    }
    Some(tokens)
}

/// Returns the files whose paths are or end with a written path.
fn files_named(path: &str, index: &Index) -> Vec<FilePath> {
    if !path.contains(['.', '/']) {
        return Vec::new();
    }
    let ending = format!("/{path}");
    let files = index.snapshot().files().iter();
    let is_named = |file: &&FilePath| file.as_str() == path || file.as_str().ends_with(&ending);
    files.filter(is_named).take(2).cloned().collect()
}

/// Returns the positions of the name that is said to be unused and of the code to which the sentence is
/// restricted.
fn target_and_scope(
    tokens: &[Token<'_>],
    is_active: bool,
    is_passive: bool,
) -> Option<(usize, Option<usize>)> {
    let before = |at: usize, known: &[&str]| at > 0 && tokens[at - 1].is_in(known);
    let is_use = |at: usize| before(at, &CALLS) || before(at, &USES);
    let is_target = |at: &usize| {
        let at = *at;
        let has_none = tokens.get(1).is_some_and(|next| next.is_in(&["has"]));
        let is_of_use = || at > 1 && before(at, &["of"]) && is_use(at - 1);
        tokens[at].is_code()
            && match at {
                0 => is_passive && !is_active || has_none,
                _ => is_use(at) || is_of_use() || is_passive && before(at, &["are", "is"]),
            }
    };
    let named: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at], Token::Word(_)))
        .collect();
    let mut targets = named.iter().copied().filter(is_target);
    let target = targets.next().filter(|_| targets.next().is_none())?;
    let mut rest = named.iter().copied().filter(|at| *at != target);
    let has_other = tokens.iter().skip(1).any(|token| token.is_in(&["has"])) && target != 0;
    match (rest.next(), rest.next()) {
        (None, _) => (!has_other && !before(target, &INSIDE)).then_some((target, None)),
        (Some(scope), None) => {
            // "`swap` of `Rota`" may name one method.
            let is_apart = scope < target || scope > target + 2;
            (!has_other && is_apart && before(scope, &BEFORE_SCOPE))
                .then_some((target, Some(scope)))
        }
        (Some(_), Some(_)) => None,
    }
}

/// Returns the code to which a sentence is restricted, if its name is unambiguous.
fn resolved(token: &Token<'_>, index: &Index) -> Option<Scope> {
    let name = match token {
        Token::File(file) => return Some(Scope::File(file.clone())),
        Token::Code(name) => name,
        Token::Word(_) => return None,
    };
    let mut defined = index.definitions_of(name).into_iter();
    let found = defined.next().filter(|_| defined.next().is_none())?;
    Some(Scope::Symbol(found.symbol))
}

/// Returns the kind of symbol that is denied: "no function uses it", "not used by any function".
fn kind_of_user(tokens: &[Token<'_>]) -> Option<SymbolKind> {
    const NO: [&str; 2] = ["any", "no"];
    let no = tokens.iter().position(|token| token.is_in(&NO))?;
    let mut after = tokens[no + 1..].iter().filter(|token| !token.is_in(&ELSE));
    let noun = after.next()?;
    match noun {
        _ if noun.is_in(&["function", "functions"]) => Some(SymbolKind::Function),
        _ if noun.is_in(&["method", "methods"]) => Some(SymbolKind::Method),
        _ if noun.is_in(&["class", "classes"]) => Some(SymbolKind::Class),
        _ => None,
    }
}
