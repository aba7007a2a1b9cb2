use super::*;

#[test]
fn test_may_be_removed_only_if_the_task_asks_to_remove_it() {
    let id = "tests/test_a.py::T::test_old[1-2]";
    for task in [
        "Remove test_old.",
        "rename `T.test_old` to test_new",
        "Remove #test_old.",
    ] {
        assert!(to_remove(task, id), "{task}");
    }
    for task in [
        "fix test_old",
        "Remove test_older",
        "Delete the cache",
        "Remove the + 1 of total, see test_old and test_both",
        "Rename nothing. Update total to match tests test_old and test_both",
        "Remove f so that test_old passes",
        "",
    ] {
        assert!(!to_remove(task, id), "{task}");
    }
}

#[test]
fn test_may_be_changed_only_if_the_task_asks_to_change_it() {
    let id = "tests/test_a.py::T::test_f[1]";
    for task in [
        "Update test_f to the new rate.",
        "Rewrite `T.test_f`",
        "f returns 2 now; change the expectation of test_f",
        "test_f must be updated",
        "tests/test_a.py::test_f is outdated: rates went up",
    ] {
        assert!(to_change_test(task, id), "{task}");
    }
    for task in [
        "Fix test_f",
        "Repair test_f",
        "Return the correct values in test_f",
        "Make test_f pass",
        "Change f so that test_f passes",
        "Change f to make test_f pass",
        "Update f. test_f fails.",
        "Update f, test_f fails",
        "test_f fails since we changed f",
        "Do not change test_f",
        "Do not change #test_f",
        "Fix f without changing test_f",
        "test_f must not be changed",
        "Update test_g",
        "",
    ] {
        assert!(!to_change_test(task, id), "{task}");
    }
}

#[test]
fn test_file_may_be_changed_if_the_task_names_it_or_all_tests() {
    let file = FilePath::new("tests/test_a.py");
    for task in [
        "Update the tests.",
        "Rename f to g and update its tests",
        "Move the helpers in tests/test_a.py into a class",
        "The tests should be adapted",
        "simplify test_a.py",
        "simplify @tests/test_a.py",
        "f must return 3 instead of 2. Change the test, too.",
        "f must return 3 instead of 2 and adapt the test",
        "Return 3 and update its test accordingly.",
        "Return 3. The test must be updated as well.",
        "Return 3; adjust the corresponding test case",
        "Return 3 and update the expected value in the test.",
        "Use `days` instead of `weeks` everywhere, also in the tests",
        "Rename f to g, in the tests too",
        "Rename f to g, also in the tests.",
        "Make Member.label a property, also in the tests.",
        "Make `label` a property, in the tests too",
        "Please make label a property, in the tests as well.",
        "Turn label() into a property in the code and in the tests",
        "Make `fetch` async, including the tests.",
        "label must become a property, also in the tests",
        "Make night a keyword-only argument of fetch, also in all tests",
        "Add a parameter `night` to fetch, in code and tests.",
        "Give fetch a required argument `night`, also in the tests.",
        "Make Member.label a property; the tests have to follow.",
        "Make Member.label a property. The tests must follow, of course.",
        "Make Member.label a property, the tests follow.",
        "Turn label into a property; the tests need to change accordingly.",
        "Make label a property; all callers and the tests should follow suit",
        "label becomes a property; the tests that call it have to follow.",
        "Make label a property. The test has to follow, too.",
    ] {
        assert!(to_change_file(task, &file, true, &|_| false), "{task}");
    }
    for task in [
        "Make the tests pass",
        "Fix the tests",
        "Change f and run the tests",
        "Change whatever makes the tests fail",
        "Add tests for f",
        "fix tests/test_a.py",
        "Don't change the tests",
        "tests/test_a.py fails",
        "Update f until the tests pass",
        "Simplify f and ensure tests pass",
        "Simplify f and the tests should pass",
        "Refactor f without changing the tests",
        "Refactor f, keeping the tests green",
        "Change the test command",
        "Change the test runner, too",
        "Change f and add a test",
        "Change f and add tests for it",
        "Change f to satisfy the test.",
        "Change f, following the test.",
        "Change the value that the test expects",
        "Return 3. Do not change the test.",
        "Rename f to g, but not in the tests",
        "Rename f to g, never also in the tests",
        "f must return 3, also in the tests",
        "Make f return 3, also in the tests",
        "The property label must be 3, also in the tests",
        "Make label a property, but not in the tests",
        "Make label a property; nothing in the tests must change.",
        "Make label a property; no tests have to follow.",
        "Make label a property. The tests must not follow.",
        "f must follow the spec; the tests follow the old one.",
        "The tests have to follow PEP 8, label is a property",
        "The tests change the working directory, make it a parameter",
        "Make label a property that the tests in test_b.py follow up",
        "Make label a property. The tests must pass.",
        "Return 3 and change the test test_b, too",
        "Add a test",
        "Update test_b.py",
    ] {
        assert!(!to_change_file(task, &file, true, &|_| false), "{task}");
    }
    let conftest = FilePath::new("tests/conftest.py");
    let task = "Fix the fixture in tests/conftest.py";
    assert!(to_change_file(task, &conftest, false, &|_| false));
    assert!(!to_change_file(
        task,
        &FilePath::new("tests/helpers.py"),
        false,
        &|_| false
    ));
    // If a file of the code has the same name, the name refers to that file.
    let models = FilePath::new("tests/models.py");
    let is_code = |token: &str| token == "models.py";
    assert!(!to_change_file(
        "Fix add in models.py",
        &models,
        false,
        &is_code
    ));
    assert!(to_change_file(
        "Fix add in tests/models.py",
        &models,
        false,
        &is_code
    ));
    for task in [
        "Fix f in conftest.py. Don't change any file under tests/.",
        "Fix the fixture in conftest.py, but never touch anything in tests/",
        "Update conftest.py without changing the tests",
    ] {
        assert!(
            !to_change_file(task, &conftest, false, &|_| false),
            "{task}"
        );
    }
    assert!(!to_change_file(
        "Fix f, see conftest.py",
        &conftest,
        false,
        &|_| false
    ));
}

#[test]
fn test_that_fails_because_of_a_renamed_name_may_be_changed() {
    let missing = "t.py:1: in <module>\nE   ImportError: cannot import name 'f' from 'a' (/w/a.py)";
    assert!(for_other_names("Rename f to g.", missing));
    assert!(for_other_names("Move `f` into b.py", missing));
    assert!(!for_other_names("Fix f.", missing));
    assert!(!for_other_names("Rename h to g.", missing));
    let attribute = "AttributeError: 'Cart' object has no attribute 'total'";
    assert!(for_other_names("Remove Cart.total", attribute));
    for member in ["E   AttributeError: TEN_K", "E   KeyError: 'TEN_K'"] {
        assert!(for_other_names("Rename D.TEN_K to TENK", member));
        assert!(!for_other_names("Rename D.TEN to TENK", member));
    }
    let argument = "E   TypeError: Cart.f() missing 1 required positional argument: 'x'";
    assert!(for_other_names("f takes a parameter x", argument));
    assert!(!for_other_names("f is slow", argument));
    assert!(!for_other_names("Rename f to g", "E   assert 1 == 2"));
    assert!(!for_other_names("Rename f to g", ""));
}

#[test]
fn tests_may_be_removed_with_their_code_only_if_the_task_asks_for_it() {
    for task in [
        "Remove the class Fixed and the test that uses it.",
        "Remove the class Fixed and its test.",
        "Remove the class Fixed together with the test that uses it",
        "Remove the class Fixed together with the test that uses it; it was only for tests.",
        "Delete `Fixed` along with its tests.",
        "Delete Fixed, its tests and its docs",
        "Drop Fixed, including all tests.",
        "Please delete weather.Fixed and the unit tests for it",
        "Remove Fixed from weather.py and its tests.",
        "Remove Fixed from weather.py and the tests using it.",
        "Delete the tests of Fixed and Fixed itself",
        "Remove the class Fixed. Its test goes, too.",
        "Remove the class Fixed; the test that uses it must be removed as well.",
        "Remove Fixed. The tests for it can go.",
        "Fixed is unused, delete it and its test",
    ] {
        assert!(to_remove_with_tests(task), "{task}");
    }
    for task in [
        "Remove the class Fixed.",
        "Remove the class Fixed and the test test_fixed.",
        "Remove the class Fixed, but keep the test that uses it.",
        "Remove the class Fixed, but not its test",
        "Remove the class Fixed without removing its test",
        "Do not remove Fixed and its test",
        "Remove Fixed and update its test.",
        "Remove Fixed and fix the test that uses it",
        "Remove Fixed from the code and the tests",
        "Remove the use of Fixed in the test",
        "Remove Fixed so that the test passes",
        "Remove Fixed, which only the test uses",
        "Remove Fixed and run the tests.",
        "Remove Fixed. The tests must pass.",
        "Remove Fixed. Its tests must not go.",
        "Remove Fixed and the test command",
        "Rename Fixed and its test",
        "Replace Fixed and move its tests",
        "The test that uses Fixed fails.",
        "Add a test for Fixed",
        "",
    ] {
        assert!(!to_remove_with_tests(task), "{task}");
    }
}
