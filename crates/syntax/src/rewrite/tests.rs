use super::super::FilePath;
use super::*;

fn tree(text: &str) -> SymbolTree {
    SymbolTree::parse(FilePath::new("m.py"), Arc::from(text))
}

fn made(text: &str, change: Rewrite) -> Rewritten {
    rewrite(&tree(text), &[change]).expect("the rewrite is accepted")
}

fn refused(text: &str, change: Rewrite) -> String {
    let error = rewrite(&tree(text), &[change]).expect_err("a rewrite that cannot be made");
    error.to_string()
}

fn whole(symbol: &str, source: &str) -> Rewrite {
    Rewrite::Whole {
        symbol: symbol.to_owned(),
        source: source.to_owned(),
    }
}

fn patch(symbol: &str, old: &str, new: &str) -> Rewrite {
    Rewrite::Patch {
        symbol: symbol.to_owned(),
        hunks: vec![(old.to_owned(), new.to_owned())],
    }
}

fn add(beside: &str, place: Place, source: &str) -> Rewrite {
    Rewrite::Add {
        beside: beside.to_owned(),
        place,
        source: source.to_owned(),
    }
}

fn delete(symbol: &str) -> Rewrite {
    Rewrite::Delete {
        symbol: symbol.to_owned(),
    }
}

fn import(statements: &[&str]) -> Rewrite {
    Rewrite::Import {
        statements: statements.iter().map(|s| (*s).to_owned()).collect(),
    }
}

mod errors;
mod laws;
mod manners;
mod merging;
mod module_body;
mod written;

mod whole_symbols {
    use super::*;

    #[test]
    fn renaming_one_of_several_definitions_leaves_the_other_definitions_untouched() {
        const TEXT: &str =
            "def f(a):\n    return 1\n\n\ndef f(b):\n    return 2\n\n\ndef f(c):\n    return 3\n";
        for (symbol, old, touched) in [
            ("f", "def f(a)", ["g", "f"]),
            ("f#2", "def f(b)", ["g", "f#2"]),
            ("f#3", "def f(c)", ["g", "f#3"]),
        ] {
            let patch = Rewrite::Patch {
                symbol: symbol.to_owned(),
                hunks: vec![(old.to_owned(), old.replace("f(", "g("))],
            };
            let done = made(TEXT, patch);
            assert_eq!(done.touched, touched, "{symbol}");
            assert_eq!(done.added, ["g"], "{symbol}");
            assert_eq!(done.losses, [], "{symbol}");
        }
    }

    const CLASS: &str = "\
class A:
    x = 1

    # about f
    @cache
    def f(self):
        '''Doc.'''
        return 1  # one

    def g(self):
        return 2
";

    #[test]
    fn source_is_indented_to_the_symbols_position() {
        for source in [
            "def g(self):\n    return '''\na'''\n",
            "\n\n    def g(self):\n        return '''\na'''",
            "def g(self):\n        return '''\na'''\n\n",
            "\t\t\tdef g(self):\r\n\t\t\t\treturn '''\r\na'''\r\n",
            "class A:\n    def g(self):\n        return '''\na'''\n",
        ] {
            let done = made(CLASS, whole("A.g", source));
            let expected = CLASS.replace("return 2", "return '''\na'''");
            assert_eq!(done.text, expected, "{source:?}");
            assert_eq!(done.touched, ["A.g"]);
            assert_eq!(done.losses, []);
        }
    }

    #[test]
    fn replaced_symbol_gets_the_indentation_and_line_breaks_of_the_file() {
        let text =
            "class A:\r\n\tdef f(self):\r\n\t\tif x:\r\n\t\t\treturn 1\r\n\r\n\tdef g(self): pass";
        let source = "def f(self):\n    if y:\n        return (1,\n                2)\n";
        let done = made(text, whole("A.f", source));
        let expected = text
            .replace("if x", "if y")
            .replace("return 1", "return (1,\r\n\t\t\t\t\t2)");
        assert_eq!(done.text, expected);
        let done = made(text, whole("A.g", "def g(self):\n    return 1\n"));
        assert_eq!(
            done.text,
            text.replace("def g(self): pass", "def g(self):\r\n\t\treturn 1")
        );
        let spaces = "def f():\n  return 1\n";
        let done = made(spaces, whole("f", "def f():\n\tif x:\n\t\treturn 1\n"));
        assert_eq!(done.text, "def f():\n  if x:\n    return 1\n");
    }

    #[test]
    fn comments_above_a_symbol_are_kept_unless_replaced() {
        let source = "@cache\ndef f(self):\n    '''Doc.'''\n    return 1  # one\n";
        assert!(made(CLASS, whole("A.f", source)).changes.is_empty());
        let commented = format!("# better\n\n{source}");
        let done = made(CLASS, whole("A.f", &commented));
        assert_eq!(done.text, CLASS.replace("# about f", "# better"));
        let lost = Loss::Comment {
            text: "# about f".to_owned(),
        };
        assert_eq!(done.losses, [lost]);
    }

    #[test]
    fn lost_decorators_docstrings_comments_and_children_are_reported() {
        let done = made(CLASS, whole("A.f", "def f(self):\n    return 1\n"));
        let expected = [
            Loss::Decorator {
                text: "@cache".to_owned(),
            },
            Loss::Docstring,
            Loss::Comment {
                text: "# one".to_owned(),
            },
        ];
        assert_eq!(done.losses, expected);
        let done = made(
            CLASS,
            whole("A", "class A:\n    def g(self):\n        return 2\n"),
        );
        let child = Loss::Child {
            name: "A.f".to_owned(),
        };
        assert_eq!(done.losses[0], child);
        assert_eq!(done.losses.len(), 3);
        assert_eq!(done.touched, ["A", "A.f"]);
    }

    #[test]
    fn reworded_comment_is_not_a_loss() {
        let text = "def f():\n    a()  # the first of two\n    b()  # see #12\n    # ----\n";
        let check = |source: &str, lost: &[&str]| {
            let done = made(text, whole("f", source));
            let expected = lost.iter().map(|text| Loss::Comment {
                text: (*text).to_owned(),
            });
            assert_eq!(done.losses, expected.collect::<Vec<_>>(), "{source:?}");
        };
        check(
            "def f():\n    a()  # The first of all three, not two.\n    b()  # see #12 and #13\n    # ----\n",
            &[],
        );
        // A comment that keeps only half of its words counts as lost, and so does a comment without
        // words.
        check(
            "def f():\n    a()  # the first\n    b()  # see #14\n    # ====\n",
            &["# the first of two", "# see #12", "# ----"],
        );
        // A new comment replaces only one old comment, and a comment that already existed replaces
        // no other comment.
        let twice = "def f():\n    # keep the order\n    a()\n    # keep the order\n    b()\n";
        let done = made(
            twice,
            whole(
                "f",
                "def f():\n    # keep the order here\n    a()\n    b()\n",
            ),
        );
        assert_eq!(done.losses.len(), 1);
        let done = made(
            twice,
            whole("f", "def f():\n    # keep the order\n    a()\n    b()\n"),
        );
        assert_eq!(done.losses.len(), 1);
    }

    #[test]
    fn renamed_symbol_is_not_a_loss() {
        let text = "def f():\n    def inner(): pass\n\ndef g(): pass\n";
        let done = made(text, whole("f", "def h():\n    def inner(): pass\n"));
        assert_eq!(done.text, text.replace("f()", "h()").replace("deh", "def"));
        assert_eq!(done.touched, ["h", "h.inner", "f", "f.inner"]);
        assert_eq!(done.losses, []);
    }

    #[test]
    fn source_for_a_symbol_must_contain_exactly_one_definition() {
        let check = |source: &str, part: &str| {
            let message = refused(CLASS, whole("A.g", source));
            assert!(message.contains(part), "{message}");
        };
        check("", "contains no definition");
        check("return 2\n", "line 1");
        check("x = 1\n", "contains no definition");
        check("def g(self): pass\ndef h(self): pass\n", "defines `g`, `h`");
        check(
            "import os\ndef g(self): pass\n",
            "line 1 of the source for `A.g` lies outside of the definition: `import os`",
        );
        check("def g(self): pass\n\n# end\n", "`# end`");
        check(
            "class g: pass\n",
            "is a function, but the source defines a class",
        );
        check("def g(self):\n    return (1\n", "is invalid Python");
        check("def g(self):\nreturn 1\n", "empty");
        check(
            "```python\ndef g(self): pass\n```\n",
            "line 1 of the source",
        );
    }

    #[test]
    fn whole_module_with_symbols_cannot_be_replaced() {
        assert!(refused(CLASS, whole("", "x = 1\n")).contains("patch the lines"));
        let done = made("x = 1\r\n", whole("", "y = 2\nz = 3"));
        assert_eq!(done.text, "y = 2\r\nz = 3\r\n");
        let notes = SymbolTree::parse(FilePath::new("notes.md"), Arc::from("one\n"));
        let done =
            rewrite(&notes, &[whole("", "two")]).expect("a rewrite of plain text is accepted");
        assert_eq!(
            (done.text.as_str(), done.touched),
            ("two\n", vec![String::new()])
        );
    }

    #[test]
    fn error_for_an_unknown_symbol_lists_the_existing_symbols() {
        let message = refused(CLASS, whole("B.g", "def g(): pass\n"));
        assert_eq!(message, "no symbol `B.g` in m.py; it has: A.g, A, A.f");
    }

    #[test]
    fn existing_syntax_error_elsewhere_does_not_block_a_rewrite() {
        let text = "def broken(:\n    pass\n\ndef f():\n    return 1\n\ndef broken_too(\n";
        let done = made(text, whole("f", "def f():\n    return 2\n"));
        assert_eq!(done.text, text.replace("return 1", "return 2"));
        assert!(
            refused(text, whole("f", "def f():\n    return 2 +\n")).contains("is invalid Python")
        );
        let message = refused(text, patch("f", "def f():", "def f(): 1"));
        assert!(
            message.contains("line 5 would be invalid Python"),
            "{message}"
        );
    }
}

mod patches {
    use super::*;

    const TEXT: &str = "\
x = 1

class A:
    def f(self):
        x = 1
        if x:  
            return x
        return None

    def g(self):
        return None
";

    #[test]
    fn patch_replaces_text_only_inside_its_symbol() {
        let done = made(TEXT, patch("A.f", "return None", "return 0"));
        assert_eq!(done.text, TEXT.replacen("return None", "return 0", 1));
        assert_eq!(done.touched, ["A.f"]);
        let done = made(TEXT, patch("", "x = 1", "x = 2"));
        assert_eq!(done.text, TEXT.replacen("x = 1", "x = 2", 1));
        let done = made(
            TEXT,
            patch("A.f", "        return None\n", "        return 0"),
        );
        assert_eq!(done.text, TEXT.replacen("return None", "return 0", 1));
        let done = made(TEXT, patch("A.f", "return None", "return 0\n"));
        assert_eq!(done.text, TEXT.replacen("return None", "return 0", 1));
    }

    #[test]
    fn patch_ignores_differences_in_indentation_and_line_ends() {
        let expected = TEXT.replace(
            "if x:  \n            return x",
            "if y:\n            return y",
        );
        for (old, new) in [
            ("if x:\n    return x", "if y:\n    return y"),
            (
                "    if x: \n        return x\n",
                "    if y:\n        return y\n",
            ),
            (
                "                if x:\n                    return x\n",
                "                if y:\n                    return y\n",
            ),
            ("if x:\r\n    return x\r\n", "if y:\r\n    return y\r\n"),
        ] {
            assert_eq!(made(TEXT, patch("A.f", old, new)).text, expected, "{old:?}");
        }
        let tabs = "def f():\n\tif x:\n\t\treturn 1\n";
        let done = made(
            tabs,
            patch(
                "f",
                "    if x:\n        return 1\n",
                "    if x:\n        a()\n        return 2\n",
            ),
        );
        assert_eq!(done.text, "def f():\n\tif x:\n\t\ta()\n\t\treturn 2\n");
    }

    #[test]
    fn patch_with_empty_new_text_removes_lines() {
        let done = made(TEXT, patch("A.f", "if x:\n    return x\n", ""));
        assert_eq!(
            done.text,
            TEXT.replace("        if x:  \n            return x\n", "")
        );
    }

    #[test]
    fn patch_whose_old_text_does_not_occur_once_is_rejected() {
        let check = |symbol: &str, old: &str, part: &str| {
            let message = refused(TEXT, patch(symbol, old, "y"));
            assert!(message.contains(part), "{message}");
        };
        check("A", "return None", "occurs 2 times in `A`, at lines 8, 11");
        check("A.g", "return x", "it is in `A.f`, at line 7");
        check("A.f", "if x: return x", "line 6: `if x:`");
        check("A.f", "completely different", "looks like");
        check("A.f", " \n", "has no old text");
        check("", "return x", "it is in `A.f`");
    }

    #[test]
    fn patch_that_causes_a_syntax_error_is_rejected() {
        let check = |old: &str, new: &str, part: &str| {
            let message = refused(TEXT, patch("A.f", old, new));
            assert!(message.contains(part), "{message}");
        };
        check("return x", "return (x", "invalid Python");
        check(
            "            return x\n",
            "",
            "line 6 would be invalid Python (the block before this is empty",
        );
        check("        x = 1", "       x = 1", "line 6");
        check(
            "        return None",
            "    return None",
            "`return` outside of a function",
        );
    }

    #[test]
    fn all_hunks_apply_to_the_original_text() {
        let hunks = vec![
            ("return None".to_owned(), "return x".to_owned()),
            ("return x".to_owned(), "return None".to_owned()),
        ];
        let change = Rewrite::Patch {
            symbol: "A.f".to_owned(),
            hunks,
        };
        let done = made(TEXT, change);
        assert!(
            done.text
                .contains("            return None\n        return x\n")
        );
    }
}

mod additions_and_deletions {
    use super::*;

    const TEXT: &str = "\
import os


class A:
    def f(self):
        pass


class B: pass


class C(A):
    '''Doc.'''


def h(): pass
";

    #[test]
    fn new_symbol_is_added_after_its_sibling() {
        let done = made(
            TEXT,
            add("A.f", Place::After, "def g(self):\n    return 1\n"),
        );
        let expected = TEXT.replacen(
            "        pass\n",
            "        pass\n\n    def g(self):\n        return 1\n",
            1,
        );
        assert_eq!(done.text, expected);
        assert_eq!(done.touched, ["A", "A.g"]);
        let done = made(TEXT, add("B", Place::After, "# new\n@d\ndef g(): pass\n"));
        assert_eq!(
            done.text,
            TEXT.replace(
                "class B: pass\n",
                "class B: pass\n\n\n# new\n@d\ndef g(): pass\n"
            )
        );
    }

    #[test]
    fn new_method_is_added_at_the_end_of_a_class() {
        let method = "class A:\n    def g(self): pass\n";
        let done = made(TEXT, add("A", Place::Inside, method));
        assert_eq!(
            done.text,
            TEXT.replacen(
                "        pass\n",
                "        pass\n\n    def g(self): pass\n",
                1
            )
        );
        let done = made(TEXT, add("B", Place::Inside, "def g(self): pass\n"));
        assert_eq!(
            done.text,
            TEXT.replace("class B: pass\n", "class B:\n    def g(self): pass\n")
        );
        let done = made(TEXT, add("C", Place::Inside, "def g(self): pass\n"));
        assert_eq!(
            done.text,
            TEXT.replace("'''Doc.'''\n", "'''Doc.'''\n\n    def g(self): pass\n")
        );
        let done = made(
            "class D:\n  ...",
            add("D", Place::Inside, "def g(self):\n    pass\n"),
        );
        assert_eq!(done.text, "class D:\n  def g(self):\n      pass");
    }

    #[test]
    fn new_symbol_is_added_at_the_end_of_the_file() {
        for (text, expected) in [
            ("", "def g(): pass\n"),
            ("x = 1", "x = 1\n\n\ndef g(): pass"),
            ("x = 1\r\n\r\n", "x = 1\r\n\r\n\r\ndef g(): pass\r\n"),
        ] {
            for place in [Place::After, Place::Inside] {
                assert_eq!(made(text, add("", place, "def g(): pass")).text, expected);
            }
        }
        let notes = SymbolTree::parse(FilePath::new("notes.md"), Arc::from("one\n"));
        let done = rewrite(&notes, &[add("", Place::After, "two\n")])
            .expect("a rewrite of plain text is accepted");
        assert_eq!(done.text, "one\ntwo\n");
    }

    #[test]
    fn adding_existing_symbols_or_other_code_is_rejected() {
        let check = |beside: &str, place: Place, source: &str, part: &str| {
            let message = refused(TEXT, add(beside, place, source));
            assert!(message.contains(part), "{message}");
        };
        check(
            "h",
            Place::After,
            "def h(): return 1\n",
            "`h` already exists",
        );
        check("h", Place::Inside, "def g(): pass\n", "not a class");
        check("h", Place::After, "x = 1\n", "no definition");
        check("h", Place::After, "x = 1\ndef g(): pass\n", "`x = 1`");
        check("h", Place::After, "def g(:\n", "invalid Python");
    }

    #[test]
    fn deleted_symbol_is_removed_with_its_blank_lines() {
        let done = made(TEXT, delete("B"));
        assert_eq!(done.text, TEXT.replace("class B: pass\n\n\n", ""));
        assert_eq!(done.losses, []);
        assert_eq!(done.touched, ["", "B"]);
        let done = made(TEXT, delete("h"));
        assert_eq!(done.text, TEXT.replace("\n\n\ndef h(): pass\n", "\n"));
        let done = made(TEXT, delete("A.f"));
        assert_eq!(
            done.text,
            TEXT.replace("    def f(self):\n        pass\n", "    pass\n")
        );
        assert!(refused(TEXT, delete("")).contains("deletes the file"));
    }

    #[test]
    fn deletion_renumbers_redefinitions_of_the_same_name() {
        let text = "@a\ndef f(): 1\n@b\ndef f(): 2\n@c\ndef f(): 3\n";
        let done = made(text, delete("f"));
        assert_eq!((done.touched, done.losses), (vec!["f".to_owned()], vec![]));
        let done = made(text, delete("f#2"));
        assert_eq!(
            (done.touched, done.losses),
            (vec!["f#2".to_owned()], vec![])
        );
    }

    #[test]
    fn several_rewrites_are_applied_together_unless_they_overlap() {
        let text = "class A:\n    def f(self): pass\n\n    def g(self): pass\n\nx = 1\n";
        let done = rewrite(&tree(text), &[delete("A.g"), delete("A.f")])
            .expect("both rewrites are accepted");
        assert_eq!(done.text, "class A:\n    pass\n\nx = 1\n");
        let last = "x = 1\n\n\ndef f(): pass\n\n\ndef g(): pass\n";
        let done =
            rewrite(&tree(last), &[delete("g"), delete("f")]).expect("both rewrites are accepted");
        assert_eq!(done.text, "x = 1\n");
        let both = [
            whole("A.f", "def f(self): return 1\n"),
            whole("A.g", "def g(self): return 2\n"),
        ];
        let done = rewrite(&tree(text), &both).expect("both rewrites are accepted");
        assert_eq!(done.touched, ["A.f", "A.g"]);
        let clash = [
            whole("A.f", "def f(self): return 1\n"),
            patch("A", "def f(self): pass", "x"),
        ];
        let message = rewrite(&tree(text), &clash)
            .expect_err("a clash")
            .to_string();
        assert!(message.contains("lines 2 and 2"), "{message}");
    }
}

mod imports {
    use super::*;

    fn check(text: &str, statements: &[&str], expected: &str) {
        assert_eq!(made(text, import(statements)).text, expected);
    }

    #[test]
    fn new_import_follows_the_last_import() {
        let text = "'''Doc.'''\nfrom __future__ import annotations\nimport os\n\nif TYPE_CHECKING:\n    import re\n\ndef f(): import sys\n";
        check(
            text,
            &["import re"],
            &text.replace("import os\n", "import os\nimport re\n"),
        );
        check(text, &["import os"], text);
        check(
            text,
            &["from __future__ import division"],
            &text.replace("annotations", "annotations, division"),
        );
        assert_eq!(made(text, import(&["import re"])).touched, [""]);
    }

    #[test]
    fn imported_names_are_merged_into_a_one_line_statement() {
        check(
            "from a import b  # c\n",
            &["from a import d as e", "from a import b"],
            "from a import b, d as e  # c\n",
        );
        check(
            "from a import (b)\n",
            &["from a import (\n    c,\n    d)"],
            "from a import (b, c, d)\n",
        );
        check(
            "from a import (\n    b,\n)\n",
            &["from a import c"],
            "from a import (\n    b,\n)\nfrom a import c\n",
        );
        check(
            "from a import *\n",
            &["from a import c"],
            "from a import *\nfrom a import c\n",
        );
        check(
            "from . import a\n",
            &["from .. import b", "import c"],
            "import c\n\nfrom . import a\nfrom .. import b\n",
        );
        check(
            "",
            &["from a import b", "from a import c"],
            "from a import b, c\n",
        );
    }

    #[test]
    fn absolute_imports_are_inserted_before_relative_imports() {
        check(
            "import os\n\nfrom .a import b\n\nx = 1\n",
            &["import datetime", "from .c import d"],
            "import datetime\nimport os\n\nfrom .a import b\nfrom .c import d\n\nx = 1\n",
        );
        check(
            "'''Doc.'''\n\nfrom .a import b\n",
            &["import datetime"],
            "'''Doc.'''\n\nimport datetime\n\nfrom .a import b\n",
        );
        check(
            "from __future__ import annotations\nfrom .a import b\n",
            &["import datetime"],
            "from __future__ import annotations\nimport datetime\nfrom .a import b\n",
        );
        check(
            "from .a import b\nimport os\n",
            &["import datetime", "from .c import d"],
            "from .a import b\nfrom .c import d\nimport datetime\nimport os\n",
        );
    }

    #[test]
    fn standard_library_import_is_inserted_into_the_first_block() {
        let text = "\"Doc.\"\nimport argparse\nimport sys\nfrom pathlib import Path\n\nfrom jotter import store\n\nx = 1\n";
        let check = |statements: &[&str], old: &str, new: &str| {
            check(text, statements, &text.replace(old, new));
        };
        check(
            &["import json"],
            "import sys\n",
            "import json\nimport sys\n",
        );
        check(
            &["import tomllib", "import abc"],
            "import argparse\nimport sys\n",
            "import abc\nimport argparse\nimport sys\nimport tomllib\n",
        );
        check(
            &["from typing import Any", "from collections import abc"],
            "from pathlib import Path\n",
            "from collections import abc\nfrom pathlib import Path\nfrom typing import Any\n",
        );
        // Other imports follow the last import.
        check(
            &["import numpy", "import json"],
            "import sys\nfrom pathlib import Path\n\nfrom jotter import store\n",
            "import json\nimport sys\nfrom pathlib import Path\n\nfrom jotter import store\nimport numpy\n",
        );
    }

    #[test]
    fn sorted_imports_stay_sorted() {
        let text = "import os\n\nimport requests\nfrom fastapi import APIRouter, FastAPI, status\n\n\
                    from app.db import connect\nfrom app.views import index\n\n\
                    from ..core import LIMIT, Item, load\nfrom .forms import Form\n\nx = 1\n";
        let with = |new: &[&str], old: &str, expected: &str| {
            check(text, new, &text.replacen(old, expected, 1));
        };
        with(
            &["from app.models import Member"],
            "from app.views",
            "from app.models import Member\nfrom app.views",
        );
        with(
            &["from app.auth import login"],
            "from app.db",
            "from app.auth import login\nfrom app.db",
        );
        with(
            &["from app.web import run"],
            "import index\n",
            "import index\nfrom app.web import run\n",
        );
        with(
            &["from .base import View", "from .urls import path"],
            "from .forms import Form\n",
            "from .base import View\nfrom .forms import Form\nfrom .urls import path\n",
        );
        with(
            &["from fastapi import Depends, responses, websockets"],
            "APIRouter, FastAPI, status",
            "APIRouter, Depends, FastAPI, responses, status, websockets",
        );
        with(
            &["from ..core import MOST, Basket, dump, save"],
            "LIMIT, Item, load",
            "LIMIT, MOST, Basket, Item, dump, load, save",
        );
        // Names and statements that are not sorted stay as they are.
        let unsorted = "from app.views import show, index\nfrom app.db import connect\n\nx = 1\n";
        check(
            unsorted,
            &[
                "from app.views import edit",
                "from app.models import Member",
            ],
            "from app.views import show, index, edit\nfrom app.db import connect\n\
             from app.models import Member\n\nx = 1\n",
        );
    }

    #[test]
    fn new_import_follows_the_sort_order_of_its_block() {
        // The block is sorted by module only, whether a statement is `import x` or
        // `from x import y`.
        check(
            "import csv\nfrom enum import Enum\nimport sys\n",
            &["from json import loads"],
            "import csv\nfrom enum import Enum\nfrom json import loads\nimport sys\n",
        );
        // The block is not sorted, so the import follows the last import of the same form.
        check(
            "import sys\nimport csv\nfrom os import path\nfrom a import b\n",
            &["import json"],
            "import sys\nimport csv\nimport json\nfrom os import path\nfrom a import b\n",
        );
        // There is no standard library block yet, so the import starts its own block.
        check(
            "from __future__ import annotations\n\nfrom jotter import store\n",
            &["import json"],
            "from __future__ import annotations\n\nimport json\n\nfrom jotter import store\n",
        );
        check("import sys", &["import json"], "import json\nimport sys");
        check("import json", &["import sys"], "import json\nimport sys");
        check(
            "\u{feff}import a\r\n",
            &["import json"],
            "\u{feff}import json\r\n\r\nimport a\r\n",
        );
    }

    #[test]
    fn first_import_is_inserted_after_docstring_and_header() {
        check(
            "'''Doc.'''\nx = 1\n",
            &["import a"],
            "'''Doc.'''\n\nimport a\n\nx = 1\n",
        );
        check(
            "#!/bin/python\n\n# f\ndef f(): pass\n",
            &["import a"],
            "#!/bin/python\n\nimport a\n\n# f\ndef f(): pass\n",
        );
        check(
            "\u{feff}x = 1\r\n",
            &["import a", "from __future__ import b"],
            "\u{feff}from __future__ import b\r\nimport a\r\n\r\nx = 1\r\n",
        );
        check(
            "try:\n    import a\nexcept ImportError:\n    a = None\n",
            &["import a"],
            "try:\n    import a\nexcept ImportError:\n    a = None\n",
        );
        check("import a", &["import b"], "import a\nimport b");
    }

    #[test]
    fn statement_that_is_not_an_import_is_rejected() {
        assert!(refused("", import(&["x = 1"])).contains("`x = 1` is not an import statement"));
        assert!(refused("", import(&["import"])).contains("not an import statement"));
        let notes = SymbolTree::parse(FilePath::new("notes.md"), Arc::from(""));
        assert!(rewrite(&notes, &[import(&["import a"])]).is_err());
    }
}
