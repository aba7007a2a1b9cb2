//! Detects, with lists of phrases, whether the reason that a model gives contradicts its decision.
//! The lists are not complete: a contradiction in other words is not detected.

/// Returns whether a text clearly objects to a proposal.
pub(crate) fn is_against(text: &str) -> bool {
    const AGAINST: [&str; 72] = [
        "is wrong",
        "is incorrect",
        "is broken",
        "is bad",
        "is harmful",
        "is dangerous",
        "is unsafe",
        "is insecure",
        "is unacceptable",
        "is not right",
        "is not correct",
        "is not acceptable",
        "is not good",
        "isn't right",
        "isn't correct",
        "not a good",
        "bad idea",
        "bad change",
        "terrible",
        "horrible",
        "awful",
        "hides the symptom",
        "hides the bug",
        "hides the failure",
        "do not apply",
        "don't apply",
        "must not be applied",
        "should not be applied",
        "do not accept",
        "don't accept",
        "cannot accept",
        "can't accept",
        "should be rejected",
        "must be rejected",
        "i reject",
        "i refuse",
        "i object",
        "i decline",
        "disagree",
        "do not want",
        "don't want",
        "does not want",
        "doesn't want",
        "is not wanted",
        "nobody wants",
        "nobody asked",
        "not asked for",
        "tests fail",
        "test fails",
        "breaks",
        "will break",
        "would break",
        "does not fix",
        "doesn't fix",
        "does not solve",
        "doesn't solve",
        "does not work",
        "doesn't work",
        "deletes data",
        "deletes the data",
        "loses data",
        "destroys",
        "corrupts",
        "leaks",
        "would not merge",
        "wouldn't merge",
        "would not accept",
        "wouldn't accept",
        "would not apply",
        "wouldn't apply",
        "must not land",
        "should not land",
    ];
    says(text, &AGAINST)
}

/// Returns whether the reason of a rejection clearly supports the proposal.
pub(crate) fn is_in_favour(reason: &str) -> bool {
    const IN_FAVOUR: [&str; 8] = [
        "looks right, accept",
        "looks good, accept",
        "is right, accept",
        "is correct, accept",
        "i accept",
        "should be accepted",
        "must be accepted",
        "please accept",
    ];
    says(reason, &IN_FAVOUR)
}

/// Returns whether a reason begins with a word of refusal, such as "reject", "wrong" or "steer".
pub(crate) fn is_refusal(reason: &str) -> bool {
    let reason = reason.trim().to_lowercase();
    let mut words = reason
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    matches!(
        (words.next(), words.next()),
        (Some("reject" | "rejected" | "wrong" | "steer" | "nope"), _) | (Some("no"), None)
    )
}

/// Returns whether a reason names a condition that must be met before the proposal may be applied.
pub(crate) fn is_condition(reason: &str) -> bool {
    const CONDITIONS: [&str; 12] = [
        "only if",
        "only when",
        "only once",
        "only after",
        "as long as",
        "so long as",
        "on condition",
        "on the condition",
        "under the condition",
        "conditional on",
        "as soon as",
        "unless",
    ];
    let reason = plain(reason);
    let mut sentences = reason.split(['.', ';', '!', '?']);
    sentences.any(|sentence| {
        let clean = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
        let words: Vec<String> = sentence.split_whitespace().map(clean).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let sentence = format!(" {} ", words.join(" "));
        let has = |phrase: &&str| sentence.contains(&format!(" {phrase} "));
        CONDITIONS.iter().any(has)
            || is_provided(&words)
            || waits_for_another_change(&words)
            || demands_first(&words)
    })
}

/// Returns whether "provided" is a condition, as in "Good, provided mul is fixed", but not in "the
/// value that is provided by the caller".
fn is_provided(words: &[&str]) -> bool {
    const BEFORE: [&str; 12] = [
        "is", "are", "was", "were", "be", "been", "the", "a", "not", "as", "if", "when",
    ];
    const AFTER: [&str; 8] = ["by", "in", "to", "as", "for", "with", "at", "and"];
    (0..words.len()).any(|at| {
        let before = at.checked_sub(1).map(|before| words[before]);
        let is_participle = before.is_some_and(|word| BEFORE.contains(&word));
        let after = words.get(at + 1);
        let is_clause = after.is_some_and(|word| !AFTER.contains(word));
        matches!(words[at], "provided" | "providing") && is_clause && !is_participle
    })
}

/// Returns whether a reason makes approval depend on another change, by an approving word before
/// the condition or by the perfect tense: "Fine once mul is rewritten", "after the tests have been
/// run".
fn waits_for_another_change(words: &[&str]) -> bool {
    const APPROVES: [&str; 10] = [
        "accept",
        "accepted",
        "it",
        "fine",
        "ok",
        "okay",
        "good",
        "right",
        "acceptable",
        "merge",
    ];
    const WHEN: [&str; 5] = ["once", "when", "after", "if", "assuming"];
    (0..words.len()).any(|at| {
        let is_approval = words[..at]
            .last()
            .is_some_and(|word| APPROVES.contains(word));
        let is_accepting = words[..at]
            .iter()
            .rev()
            .take(2)
            .any(|word| *word == "accept");
        let mut pairs = words[at..].windows(2);
        let is_perfect = pairs.any(|pair| matches!(pair, ["has" | "have", "been"]));
        let is_time = matches!(words[at], "once" | "after");
        let is_plain_approval = is_approval && words[at - 1] != "it";
        WHEN.contains(&words[at]) && (is_plain_approval || is_accepting) || is_time && is_perfect
    })
}

/// Returns whether a reason demands a change first: "The test must be added first", "Add a test
/// first".
fn demands_first(words: &[&str]) -> bool {
    const DEMANDS: [&str; 6] = ["must", "should", "needs", "need", "has", "have"];
    const ORDERS: [&str; 8] = [
        "add", "fix", "write", "rename", "update", "remove", "change", "but",
    ];
    let is_demand = words.iter().any(|word| DEMANDS.contains(word));
    let is_order = words.first().is_some_and(|word| ORDERS.contains(word));
    words.last() == Some(&"first") && (is_demand || is_order)
}

/// Returns whether a text contains one of the phrases as whole words, and no word next to the
/// phrase negates it.
fn says(text: &str, phrases: &[&str]) -> bool {
    const TAKES_BACK: [&str; 13] = [
        "not", "no", "never", "nor", "longer", "if", "when", "where", "before", "nothing", "none",
        "nobody", "neither",
    ];
    const TAKES_BACK_AFTER: [&str; 8] = [
        "without", "before", "until", "no", "unless", "nothing", "nobody", "none",
    ];
    let text = format!(" {} ", plain(text));
    let is_letter = |c: char| c.is_alphanumeric();
    phrases.iter().any(|phrase| {
        let mut found = text.match_indices(phrase);
        found.any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + phrase.len()..]);
            let is_whole = !before.ends_with(is_letter) && !after.starts_with(is_letter);
            let in_sentence = before.rsplit(['.', ';', '!', '?']).next().unwrap_or(before);
            let mut last = in_sentence.split_whitespace().rev().take(3);
            let taken_back = last.any(|word| TAKES_BACK.contains(&word.trim_matches(',')));
            let mut next = after.split_whitespace().take(2);
            let in_phrase =
                |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
            let taken_back =
                taken_back || next.any(|word| TAKES_BACK_AFTER.contains(&in_phrase(word).as_str()));
            is_whole && !taken_back
        })
    })
}

/// Returns a text in lower case on one line.
fn plain(text: &str) -> String {
    let text = text.to_lowercase().replace('’', "'");
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}
