//! Reduces words of prose to the form in which code writes them: `pickling` to `pickle`.

/// Minimum length of a root, in bytes.
const SHORTEST: usize = 4;

/// Returns possible roots of a word of prose, or nothing if the word looks like code.
pub(super) fn roots(word: &str) -> Vec<String> {
    if !word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase()) || !word.is_ascii() {
        return Vec::new();
    }
    let word = word.to_lowercase();
    let ends: [(&str, &[&str]); 6] = [
        ("ations", &["ate", "e", ""]),
        ("ation", &["ate", "e", ""]),
        ("ing", &["", "e"]),
        ("ied", &["y"]),
        ("ies", &["y"]),
        ("ed", &["", "e"]),
    ];
    let found = ends
        .iter()
        .find_map(|(end, new)| Some((word.strip_suffix(end)?, *new)));
    let Some((root, new)) = found.filter(|(root, _)| root.len() >= SHORTEST) else {
        return Vec::new();
    };
    let mut roots: Vec<String> = new.iter().map(|end| format!("{root}{end}")).collect();
    let last = root.as_bytes()[root.len() - 1];
    if root.as_bytes()[root.len() - 2] == last {
        roots.push(root[..root.len() - 1].to_owned());
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflected_word_is_reduced_to_its_possible_roots() {
        let one = |word| roots(word).join(" ");
        assert_eq!(one("pickling"), "pickl pickle");
        assert_eq!(one("Rendered"), "render rendere");
        assert_eq!(one("formatting"), "formatt formatte format");
        assert_eq!(one("validation"), "validate valide valid");
        assert_eq!(one("modified"), "modify");
        for word in ["string", "need", "get_thing", "HTTPing", "naïveté", "", "x"] {
            assert_eq!(one(word), "", "{word}");
        }
    }
}
