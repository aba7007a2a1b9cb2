//! Finds names of tests in a text. A case of a parametrized test is a test of its own: a text that
//! names `test_f[1]` does not name `test_f[2]`, and a text that names `test_f` names both.

use crate::task::whole_word::is_word_at;
use starling_syntax::FilePath;

/// Returns whether a text names a test by its id or by the last part of its id.
pub(crate) fn names_test(text: &str, id: &str) -> bool {
    let (function, case) = parts(id);
    is_named(text, function, |rest| {
        !rest.starts_with('[') || is_case(rest, case)
    })
}

/// Returns whether a text names the test function of a test, even if it names only other cases.
pub(crate) fn names_function(text: &str, id: &str) -> bool {
    is_named(text, parts(id).0, |_| true)
}

/// Returns whether a text names exactly this case of a parametrized test.
pub(crate) fn names_case(text: &str, id: &str) -> bool {
    let (function, case) = parts(id);
    is_named(text, function, |rest| is_case(rest, case))
}

/// Splits the id of a test into its function and, with the brackets, the parameters of its case.
pub(crate) fn parts(id: &str) -> (&str, &str) {
    id.split_at(id.find('[').unwrap_or(id.len()))
}

/// Returns whether a text continues with the parameters of a case.
fn is_case(rest: &str, case: &str) -> bool {
    !case.is_empty() && rest.starts_with(case)
}

/// Returns whether a text contains the id or the name of a test function, followed by a text that
/// fits.
fn is_named(text: &str, function: &str, fits: impl Fn(&str) -> bool) -> bool {
    let last = function.rsplit(['.', ':', '/']).next().unwrap_or(function);
    let is_file = FilePath::new(function).name().ends_with(".py");
    let stands = |name: &str| {
        let mut places = text.match_indices(name).map(|(at, _)| at);
        places.any(|at| {
            let rest = &text[at + name.len()..];
            // `test_f.py` is the name of a file.
            is_word_at(text, at, name) && !rest.starts_with(".py") && fits(rest)
        })
    };
    !function.is_empty() && (stands(function) || !is_file && !last.is_empty() && stands(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_case_names_no_other_case() {
        let ids = ["a.py::test_f[x-1]", "a.py::test_f[y]", "a.py::test_g"];
        let named = |text: &str| {
            let named = ids.iter().filter(|id| names_test(text, id));
            named
                .map(|id| id.trim_start_matches("a.py::"))
                .collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("Make test_f[y] pass", vec!["test_f[y]"]),
            ("Make a.py::test_f[x-1] pass.", vec!["test_f[x-1]"]),
            ("`test_f[x-1]` fails", vec!["test_f[x-1]"]),
            ("Make test_f[other] pass", vec![]),
            ("Make test_f pass", vec!["test_f[x-1]", "test_f[y]"]),
            (
                "test_f fails, test_f[y] too",
                vec!["test_f[x-1]", "test_f[y]"],
            ),
            (
                "Make test_g and test_f[y] pass",
                vec!["test_f[y]", "test_g"],
            ),
            ("Fix test_ff", vec![]),
            ("Run test_f.py", vec![]),
            ("test_f.py::test_f[y] fails", vec!["test_f[y]"]),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
        assert!(names_function("Make test_f[other] pass", ids[0]));
        assert!(names_case("Make test_f[y] pass", ids[1]));
        assert!(!names_case("Make test_f pass", ids[1]));
        assert!(!names_case("Make test_g pass", ids[2]));
    }
}
