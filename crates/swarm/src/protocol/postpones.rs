//! Detects sentences that forbid or postpone the application of a proposal, such as "Do not apply it
//! before g is fixed", by their grammar: an order, a person or the proposal as the subject, and a
//! verb of application that is negated or bound to a condition. What a sentence says about code
//! ("the discount is not applied twice", "it does not accept None") has another subject.

/// Verbs of application: the base form, the participle and the gerund.
const VERBS: [[&str; 3]; 13] = [
    ["apply", "applied", "applying"],
    ["accept", "accepted", "accepting"],
    ["approve", "approved", "approving"],
    ["merge", "merged", "merging"],
    ["land", "landed", "landing"],
    ["commit", "committed", "committing"],
    ["ship", "shipped", "shipping"],
    ["deploy", "deployed", "deploying"],
    ["release", "released", "releasing"],
    ["push", "pushed", "pushing"],
    ["integrate", "integrated", "integrating"],
    ["proceed", "proceeded", "proceeding"],
    ["go", "gone", "going"],
];
/// Verbs of which the proposal itself is the subject, as in "it can land".
const OWN_VERBS: [&str; 5] = ["land", "merge", "ship", "proceed", "go"];
/// Nouns for the decision, and words that make it depend on something.
const DECISIONS: [&str; 4] = ["acceptance", "accept", "approval", "verdict"];
const DEPENDS: [&str; 10] = [
    "depends",
    "subject",
    "contingent",
    "conditional",
    "conditioned",
    "pending",
    "requires",
    "assumes",
    "hinges",
    "provisional",
];
const MODALS: [&str; 12] = [
    "must", "should", "shall", "may", "can", "could", "would", "will", "do", "to", "might", "is",
];
/// Words that negate or restrict, and modal verbs that are negated in themselves.
const NEGATES: [&str; 13] = [
    "not",
    "never",
    "only",
    "cannot",
    "can't",
    "don't",
    "won't",
    "wouldn't",
    "shouldn't",
    "mustn't",
    "couldn't",
    "shan't",
    "isn't",
];
/// Words that begin a condition.
const CONDITIONS: [&str; 13] = [
    "until", "till", "unless", "before", "once", "after", "only", "when", "if", "pending",
    "provided", "assuming", "first",
];
/// Words for the proposal itself.
const PROPOSAL: [&str; 16] = [
    "it",
    "this",
    "that",
    "these",
    "both",
    "change",
    "changes",
    "proposal",
    "proposals",
    "patch",
    "fix",
    "edit",
    "edits",
    "diff",
    "pr",
    "rest",
];
/// Words that join a clause to the one before it.
const JOINS: [&str; 16] = [
    "but",
    "so",
    "however",
    "though",
    "although",
    "yet",
    "please",
    "then",
    "and",
    "just",
    "still",
    "also",
    "therefore",
    "ok",
    "because",
    "since",
];
/// Words after which "to apply it" is an opinion about the proposal.
const OPINIONS: [&str; 12] = [
    "ready", "safe", "fine", "ok", "okay", "good", "happy", "free", "best", "better", "willing",
    "want",
];
/// Verbs that order another change.
const ORDERS: [&str; 14] = [
    "add", "fix", "mend", "repair", "write", "rename", "update", "remove", "change", "run",
    "check", "make", "get", "wait",
];
const DEMANDS: [&str; 7] = ["must", "should", "needs", "need", "has", "have", "requires"];

/// Returns whether a sentence of a text forbids or postpones the application of the proposal.
pub(crate) fn postpones(text: &str) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    // A name of code is no verb.
    let text = text.replace("()", "_");
    let mut sentences = text.split(['.', ';', '!', '?', '\n']);
    sentences.any(|sentence| {
        let clauses = clauses(sentence);
        let is_demand = clauses.iter().any(|clause| demands(clause));
        // "Once g is fixed, apply it"
        let is_bound = clauses.iter().any(|clause| {
            let first = clause.first().is_some_and(|word| CONDITIONS.contains(word));
            first || clause.last() == Some(&"first")
        });
        clauses.iter().any(|clause| {
            let bound_at =
                |at: usize| is_bound || clause[at..].iter().any(|word| CONDITIONS.contains(word));
            is_order_to_wait(clause)
                || is_forbidden(clause)
                || is_order(clause, &bound_at)
                || has_passive(clause, &bound_at)
                || is_decision_with_condition(clause)
                || is_demand && comes_before(clause)
        })
    })
}

/// Splits a sentence into clauses of words, at punctuation and before "but", "so" and the like.
fn clauses(sentence: &str) -> Vec<Vec<&str>> {
    let mut clauses = Vec::new();
    for part in sentence.split([',', ':', '(', ')', '—', '–']) {
        let mut clause: Vec<&str> = Vec::new();
        for word in part.split_whitespace() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !"#_`".contains(c));
            let splits = JOINS.contains(&word) && word != "and";
            if splits && !clause.is_empty() {
                clauses.push(std::mem::take(&mut clause));
            }
            let is_leading_join = clause.is_empty() && JOINS.contains(&word);
            if !word.is_empty() && !is_leading_join {
                clause.push(word);
            }
        }
        clauses.push(clause);
    }
    clauses
}

fn form(word: &str, form: usize) -> bool {
    VERBS.iter().any(|verb| verb[form] == word)
}

fn is_base(word: &str) -> bool {
    form(word, 0)
}

/// Whether the words before a place of a clause are no other subject: none, a person, or the
/// proposal.
fn is_of_proposal(before: &[&str]) -> bool {
    match before.last() {
        None | Some(&("i" | "we" | "you" | "i'd" | "we'd")) => true,
        Some(last) => PROPOSAL.contains(last) || last.starts_with('#'),
    }
}

/// Matches "not before g is fixed", "wait until ...", "hold this", "hold off".
fn is_order_to_wait(clause: &[&str]) -> bool {
    matches!(
        clause,
        ["not", "yet" | "before" | "until" | "without", ..]
            | ["wait", "until" | "for" | "with" | "before", ..]
            | ["hold", "off" | "this" | "it" | "back", ..]
            | ["postpone" | "delay", ..]
    ) || clause.windows(2).any(|pair| {
        matches!(
            pair[0],
            "avoid" | "off" | "from" | "postpone" | "delay" | "with"
        ) && form(pair[1], 2)
            && matches!(
                clause.first(),
                Some(&("avoid" | "hold" | "refrain" | "postpone" | "delay" | "wait"))
            )
    })
}

/// Matches "do not apply", "never merge", "I would not accept", "this must not land".
fn is_forbidden(clause: &[&str]) -> bool {
    (0..clause.len())
        .filter(|at| is_base(clause[*at]))
        .any(|at| {
            let (subject, auxiliaries) = subject_and_auxiliaries(&clause[..at]);
            auxiliaries.iter().any(|word| NEGATES.contains(word)) && is_of_proposal(subject)
        })
}

/// Splits the words before a verb into its subject and its auxiliaries, such as "must not be".
fn subject_and_auxiliaries<'w, 's>(words: &'w [&'s str]) -> (&'w [&'s str], &'w [&'s str]) {
    let last = words.iter().rposition(|word| !is_auxiliary(word));
    words.split_at(last.map_or(0, |last| last + 1))
}

fn is_auxiliary(word: &&str) -> bool {
    MODALS.contains(word) || NEGATES.contains(word) || matches!(*word, "yet" | "be" | "really")
}

/// Matches, with a condition, "apply it", "you can merge this", "safe to apply", "this can land".
fn is_order(clause: &[&str], is_bound: &dyn Fn(usize) -> bool) -> bool {
    let is_restricted = |words: &[&str]| words.contains(&"only");
    let is_gerund = |at: usize| {
        let next = clause.get(at + 1);
        let is_object = |word: &&str| PROPOSAL.contains(word) || CONDITIONS.contains(word);
        at == 0 && form(clause[at], 2) && next.is_some_and(is_object)
    };
    let mut places = (0..clause.len()).filter(|at| is_base(clause[*at]) || is_gerund(*at));
    places.any(|at| {
        let words = &clause[..at];
        let last = words.iter().rev().find(|word| !is_auxiliary(word));
        let is_opinion = last.is_some_and(|last| OPINIONS.contains(last));
        let is_person = matches!(last, Some(&("i" | "we" | "you" | "i'd" | "we'd")));
        let is_own = last.is_some_and(|last| PROPOSAL.contains(last) || last.starts_with('#'))
            && OWN_VERBS.contains(&clause[at])
            && words.last().is_some_and(is_auxiliary);
        let is_meant =
            last.is_none() || is_person || is_own || is_opinion && words.last() == Some(&"to");
        is_meant && (is_bound(at) || is_restricted(words))
    })
}

/// Matches "my acceptance depends on g".
fn is_decision_with_condition(clause: &[&str]) -> bool {
    let has = |words: &[&str]| clause.iter().any(|word| words.contains(word));
    has(&DECISIONS) && has(&DEPENDS)
}

/// Matches "it must not be applied", and with a condition "it can be merged".
fn has_passive(clause: &[&str], is_bound: &dyn Fn(usize) -> bool) -> bool {
    (0..clause.len())
        .filter(|at| form(clause[*at], 1))
        .any(|at| {
            let (subject, auxiliaries) = subject_and_auxiliaries(&clause[..at]);
            let is_modal = auxiliaries.contains(&"be")
                && auxiliaries
                    .iter()
                    .any(|word| *word != "be" && *word != "is");
            let is_negated = auxiliaries.iter().any(|word| NEGATES.contains(word));
            is_modal && (is_negated || is_bound(at)) && is_of_proposal(subject)
        })
}

/// Whether a clause demands something: "g must be fixed", "Fix g".
fn demands(clause: &[&str]) -> bool {
    let first = clause.first().copied().unwrap_or_default();
    let is_nothing = matches!(first, "nothing" | "no" | "none" | "nobody");
    ORDERS.contains(&first) || !is_nothing && clause.iter().any(|word| DEMANDS.contains(word))
}

/// Matches "before applying", "before this lands", "until it is merged".
fn comes_before(clause: &[&str]) -> bool {
    (0..clause.len())
        .filter(|at| matches!(clause[*at], "before" | "until" | "till"))
        .any(|at| {
            let rest = &clause[at + 1..];
            if rest.is_empty() {
                return true;
            }
            let is_gerund = rest.first().is_some_and(|word| form(word, 2));
            let verb = rest.iter().position(|word| {
                let base = word.strip_suffix('s').unwrap_or(word);
                is_base(base) || form(word, 1) || matches!(*word, "applies" | "pushes")
            });
            let subject = verb.map(|verb| &rest[..verb]);
            let subject = subject.map(|words| {
                let is_verb =
                    |word: &&&str| !is_auxiliary(word) && !matches!(**word, "are" | "gets" | "get");
                words.iter().rev().find(is_verb)
            });
            let is_subject = subject.flatten().is_some_and(|word| {
                matches!(*word, "i" | "we" | "you")
                    || PROPOSAL.contains(word)
                    || word.starts_with('#')
            });
            is_gerund || is_subject
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_forbids_or_postpones_the_proposal_is_recognized() {
        for text in [
            "But do not apply it before g is mended",
            "Looks right, but don't merge it until g is mended.",
            "Correct but please do not land this yet",
            "I would not apply it before g is mended",
            "We can't accept this without a test",
            "Never merge before the tests are there",
            "It should only be applied once g is fixed",
            "This can be merged after #2",
            "The change must not be committed before the release",
            "#3 must be applied only together with #4",
            "Apply it once g is mended",
            "Good to merge after g is fixed",
            "Fine; you may land it when CI is green",
            "g must be mended before this lands",
            "Mend g before applying",
            "Fix g before it is merged.",
            "Not before g is mended",
            "Wait until #2 is in",
            "Hold off on merging",
            "Right.\nOnly apply this if the caller is changed too",
            "Only merge it with #2",
            "Once g is fixed, apply it",
            "g first, then apply",
            "This can land after g",
            "My acceptance depends on g",
            "Accepting this only because g is fixed next",
            "g has to be fixed before",
            "It requires #2 to be applied first",
            "Not to be applied until g is done",
            "Do not go ahead before g is done",
        ] {
            assert!(postpones(text), "{text}");
        }
    }

    #[test]
    fn text_about_code_does_not_postpone_the_proposal() {
        for text in [
            "",
            "Apply it.",
            "It does not accept None any more",
            "The discount is not applied twice",
            "The tax is now applied after the discount",
            "Discounts apply only once per order",
            "It checks the coupon before applying it",
            "The function no longer accepts negative values",
            "Once merged, callers get the right sum",
            "After this change all tests pass",
            "If the list is empty it returns 0",
            "The coupon can be applied only once",
            "It commits only when the form is valid",
            "Callers do not commit before they close the file",
            "It should be fine to merge",
            "Merge it",
            "Wait, the caller handles None, so it is right",
            "It mends what was wrong: before this, tests fail",
            "Does what was asked and can be merged",
            "No condition; nothing has to be done before",
            "merge() is not called before the lists are sorted",
            "`commit` is called only once",
            "This can be merged, it only touches f",
            "Apply it, since it was wrong when the list is empty",
            "It can apply discounts only once",
            "Applying the discount after the tax is what the document says",
            "Callers must sort before they merge the lists",
            "The change is small and I accept it",
            "Ready to merge",
            "I accept it because f was called before g was set",
        ] {
            assert!(!postpones(text), "{text}");
        }
    }
}
