use super::*;

/// Short tasks in the words of users, grouped by the goal that they must be classified as.
const TASKS: &[(Goal, &[&str])] = &[
    (
        Goal::Bug,
        &[
            "mean() is wrong for empty lists",
            "fix mean for empty lists",
            "mean should return 0 for an empty list but raises ZeroDivisionError",
            "mean should return 0 for []",
            "`total` forgets the discount",
            "parse('1') gives 2",
            "Bug: negative numbers crash the parser.",
            "the login does not work anymore",
            "cant divide by zero w/o a crash, pls fix",
            "Fix the bug in mean and add a test for it.",
            "Fix `median` for even lengths, add tests",
            "Simplify mean and fix the empty case.",
            "off by one in paginate",
            "Sorting is broken when two names are equal.",
            "I get `ZeroDivisionError: division by zero` from mean([])",
            "divide must raise ValueError on zero",
            "Why does mean([]) crash?",
            "it returns None instead of []",
            "parse() fails when it reads data.json",
            "Tested in version 1.4: the total is wrong.",
            "the latest contest is listed twice",
            "seen while testing: cart loses items",
            "config.toml is not read",
            "Make it right.",
            "",
            "free_seats takes the parameter limit and gives one seat too many",
            "total gets the wrong argument",
            "total gets the argument twice",
            "Pantry.expiring leaves out what is best before today or earlier; its docstring promises \
             both. Fix it.",
            "`expiring` leaves out what is best before today. The docstring says it should be listed. \
             Fix it.",
            "Pantry.expiring leaves out today. Its docstring says otherwise.",
            "According to the README, `expiring` lists what is best before today. It does not.",
            "The list command needs a limit option, as the README says",
            "mean([]) raises. The docstring of `stats.mean` guarantees 0. Change it.",
            "The docstring is right, the code is wrong. Fix it.",
            "Change `mean` so that it does what is documented in README.md",
            "Make `mean` follow its docstring",
            "Fix mean for empty lists and correct its docstring",
            "Fix mean for empty lists. Update the docstring.",
            "`report` should print the total",
            "`report` should also print the total, but prints nothing",
            "Add the option to the call of `report`, which is wrong",
            "Add a --verbose flag and fix the crash",
        ],
    ),
    (
        Goal::RedTests,
        &[
            "Make the tests pass.",
            "make all failing tests green again",
            "please fix the failing tests",
            "The tests fail.",
            "Some tests fail.",
            "The test t1 fails.",
            "test_mean_empty fails",
            "test_cart is red",
            "`tests/test_cart.py::test_total` is failing since the last commit",
            "TestCase.setUp fails",
            "run pytest",
            "after the last change the suite is red",
            "get the test suite to work",
            "CI is red",
            "FAILED tests/test_cart.py::test_total - assert 105 == 360",
            "why is test_cart broken?",
            "all tests should pass",
            "Write minutes, so that the tests pass.",
            "change clock.py until all tests pass",
            "Mend load: (`test_7` fails)",
            "The tests of this project fail. Find the cause of each failure in the code, not in the \
             tests, and fix it.",
            "`quote` must know the day, so that nobody forgets it: give it an argument `on`. The tests in \
             `tests/` say what must hold.",
        ],
    ),
    (
        Goal::NewTest,
        &[
            "add a test for parse('1')",
            "Write unit tests for cart.py",
            "add a failing test for the empty list",
            "test that parse rejects empty strings",
            "Tests for `total` are missing",
            "increase the coverage of cart.py",
            "cover mean with tests",
            "can you write some more tests for the parser?",
            "there is no test for mean, we need one",
            "Groups of six get 10 % off as well, the docstring of total says so. Make a test of it.",
        ],
    ),
    (
        Goal::Feature,
        &[
            "do the TODO in LedgerWriter.entry",
            "Add a --verbose flag",
            "Support negative numbers in parse",
            "implement median(values)",
            "Add a function mode(values) with tests",
            "Could you add an option to skip empty lines?",
            "I'd like a flag that prints the version",
            "Add support for reading config.yaml",
            "Allow `total` to take a currency. All tests must still pass.",
            "Add an error message for files that are missing",
            "new command: list users",
            "Add a --verbose flag, as described in the README",
            "Add the option that the docs promise: --errors-only",
            "Add a --verbose flag and mention it in the README",
            "Sort `ShoppingList.lines` by amount",
            "Add a function mode and document it in README.md",
            "give `Cart` a method due_text() and use it in render",
            "Add an option --json: the list should print JSON instead of the table",
            "Add a --quiet flag so that nothing is printed if the file is not there",
            "`report` should also print the total",
            "Add a --verbose flag. test_net fails here, ignore it.",
            "Packet needs a method `is_empty`.",
            "LoanReport needs a method `borrowers` that lists the names, sorted.",
            "Packet lacks a property for its age",
            "Packet should have another method, `is_empty`",
            "free_seats gets an optional parameter limit.",
            "free_seats takes a parameter limit: how many seats at most.",
            "The command takes an option that hides the totals",
        ],
    ),
    (
        Goal::Bug,
        &[
            "`plan --phones` prints no phone numbers:\n\n$ plan --phones\n\nshould print 0170 444. Document --phones in \
             README.md, in German.",
            "`f` returns nothing for an empty list. Mention it in the README.",
            "`load` crashes on an empty file. Document what it accepts.",
        ],
    ),
    (
        Goal::Refactoring,
        &[
            "Rename `total` to `sum_total`",
            "extract the parsing into its own function",
            "Refactor cart.py without breaking the tests",
            "move mean to stats.py",
            "Make it the fastest.",
            "add type hints to cart.py",
            "please split `run` in two, tests must stay green",
            "Remove the unused imports",
            "Make Cart.total a method",
            "turn the Row class into a dataclass",
            "Sort the imports of cart.py",
            "make the tests faster",
            "Fix the flake8 warnings",
            "Port the tests to pytest",
            "Rename `total` to `sum_total`; test_net is red, leave it.",
        ],
    ),
    (
        Goal::Documentation,
        &[
            "Mention in README.md how to run it",
            "add a docstring to mean",
            "fix the typo in the README",
            "Document the --verbose flag",
            "bump the version in pyproject.toml",
            "Update the changelog",
            "README.md should say how to run the tests",
            "the docstring of mean is wrong",
            "add a target for the tests to the Makefile",
            "Improve the comments in cart.py",
            "please write docs for the parser",
            "The docstring of mean is wrong. Fix it.",
            "The README still says 1.0.",
            "The docstring of mean does not say what an empty list gives",
            "The README lacks a word about Windows. Add a section about it.",
            "Fix the docstring of mean, it says float",
            "Update the README to match the docstrings",
            "README says nosetests, we use pytest",
            "Update the docs and add an example",
            "Document that `f` returns nothing for an empty list",
            "Explain in README.md what `plan` prints. It should be short.",
        ],
    ),
    (
        Goal::Question,
        &[
            "How does the cache work?",
            "where is the price computed?",
            "Explain how `total` works",
            "What calls parse()?",
            "does anything use `Cart.add`?",
        ],
    ),
];

#[test]
fn short_tasks_are_classified_by_their_goal() {
    let mut wrong = Vec::new();
    for (expected, tasks) in TASKS {
        for task in *tasks {
            let goal = of(task);
            if goal != *expected {
                wrong.push(format!("{task:?}: {goal:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_in_code_blocks_do_not_decide_the_goal_of_a_task() {
    let task = "Rename `f` to `g`:\n```python\n# fix the failing tests\n```\n";
    assert_eq!(of(task), Goal::Refactoring);
}

#[test]
fn documents_to_change_are_distinguished_from_documents_that_are_only_cited() {
    for (task, expected) in [
        ("Fix the typo in @README.md.", "readme.md"),
        ("Fix the wording of the README.", "readme"),
        (
            "Add a --verbose flag and mention it in docs/use.md",
            "docs/use.md",
        ),
        ("Set `limit` in config.toml to 3", "config.toml"),
        (
            "`LIMIT` should be 24; update README.md as well.",
            "readme.md",
        ),
        (
            "`LIMIT` should be 24, and update README.md, too",
            "readme.md",
        ),
        (
            "Change `f` so that it does what is documented in README.md",
            "",
        ),
        ("f must round, as the README says", ""),
        (
            "Fix the typo in the README; test_net is red, leave it",
            "readme",
        ),
    ] {
        assert_eq!(documents_to_change(task).join(" "), expected, "{task}");
    }
}

#[test]
fn request_for_a_test_beside_another_request_is_found() {
    for task in [
        "Fix the bug in mean and add a test for it.",
        "Groups of six get 10 % off. Write a test.",
    ] {
        assert!(asks_for_test(task), "{task}");
    }
    for task in [
        "Fix the failing tests",
        "Fix mean without adding a test",
        "mean is wrong, see test_mean",
    ] {
        assert!(!asks_for_test(task), "{task}");
    }
}
