//! Tests of whole texts for the body of a module.

use super::*;

const TEXT: &str = "import os\n\nLIMIT = 3\n\n\ndef f(x):\n    y = x\n    return y\n\n\n\
                    class A:\n    def g(self):\n        return 1\n";

fn whole(text: &str, source: &str) -> Result<String, RewriteError> {
    let rewrite = Rewrite::Whole {
        symbol: String::new(),
        source: source.to_owned(),
    };
    let done = rewrite_of(text, rewrite)?;
    assert_eq!(done.touched, [""], "{}", done.text);
    Ok(done.text)
}

fn rewrite_of(text: &str, rewrite: Rewrite) -> Result<Rewritten, RewriteError> {
    super::super::rewrite(&tree(text), &[rewrite])
}

#[test]
fn statements_alone_are_replaced_around_the_definitions() {
    let expected = TEXT.replace("LIMIT = 3", "LIMIT = 4\nMOST = 9");
    let source = "import os\n\nLIMIT = 4\nMOST = 9\n";
    assert_eq!(whole(TEXT, source).as_ref(), Ok(&expected));
    let crlf = |text: &str| text.replace('\n', "\r\n");
    assert_eq!(whole(&crlf(TEXT), source), Ok(crlf(&expected)));
    // Statements below the definitions stay there.
    let with_main = format!("{TEXT}\n\nif __name__ == \"__main__\":\n    f(1)\n");
    let source = "import os\n\nLIMIT = 3\n\nif __name__ == \"__main__\":\n    f(2)\n";
    assert_eq!(
        whole(&with_main, source),
        Ok(with_main.replace("f(1)", "f(2)"))
    );
}

#[test]
fn whole_text_of_a_file_keeps_abbreviated_definitions() {
    let expected = TEXT.replace("LIMIT = 3", "LIMIT = 4");
    for (old, new) in [
        ("", ""),
        ("    y = x\n    return y\n", "    ...\n"),
        ("    y = x\n    return y\n", "    # ...\n    ...\n"),
        ("    return y\n", "    ...\n"),
        ("    def g(self):\n        return 1\n", "    ...\n"),
    ] {
        let source = expected.replacen(old, new, 1);
        assert_eq!(whole(TEXT, &source).as_ref(), Ok(&expected), "{source}");
    }
}

#[test]
fn text_is_refused_if_it_is_unclear_where_the_definitions_stand() {
    let with_main = format!("{TEXT}\n\nmain = f\n");
    for (text, source) in [
        // It is unclear on which side of the definitions the statement stands.
        (
            &*with_main,
            "import os\n\nLIMIT = 3\nMOST = 9\n\nmain = f\n",
        ),
        (TEXT, "LIMIT = 4\n\n\ndef f(x):\n    return x\n"),
        (TEXT, "  \n"),
    ] {
        let rewrite = Rewrite::Whole {
            symbol: String::new(),
            source: source.to_owned(),
        };
        let error = rewrite_of(text, rewrite).unwrap_err();
        assert!(matches!(error, RewriteError::WholeModule { .. }), "{error}");
    }
}
