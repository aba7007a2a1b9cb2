//! Canary tests, which must fail. A change that manipulates the reporting of tests, or ends the
//! process early, makes them pass or disappear. Their names are not known in advance.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use starling_core::{TestReport, TestStatus};

/// The words with which runners count tests that did not pass.
const FAILING: [&str; 4] = ["failed", "error", "errors", "exceptions"];

/// Failing tests with a unique random word in their names, which are added to a test file.
#[derive(Debug)]
pub(super) struct Canary {
    word: String,
}

impl Canary {
    pub(super) fn new(instance_id: &str) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = format!("{instance_id} {} {now:?}", std::process::id());
        Canary {
            word: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(seed.as_bytes())),
        }
    }

    /// Adds the tests to a file: methods for unittest, and functions for runners that collect only
    /// functions. Each fails in a different way.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(super) fn settle_in(&self, file: &Path) -> std::io::Result<()> {
        let word = &self.word;
        let mut text = std::fs::read_to_string(file)?;
        text.push_str(&format!(
            "\n\nimport unittest as u{word}\n\n\nclass T{word}(u{word}.TestCase):\n    \
             def test_{word}_a(self):\n        self.assertEqual(1, 2)\n\n    \
             def test_{word}_b(self):\n        self.assertTrue(False)\n\n    \
             def test_{word}_c(self):\n        raise AssertionError('c')\n\n\n\
             def test_{word}_d():\n    assert 1 == 2\n\n\n\
             def test_{word}_e():\n    raise AssertionError('e')\n"
        ));
        std::fs::write(file, text)
    }

    /// Removes the canary tests from a report.
    ///
    /// # Errors
    /// Fails if they passed or are missing.
    pub(super) fn taken_from(&self, mut report: TestReport) -> Result<TestReport, Doubt> {
        let (own, others) = report
            .cases
            .into_iter()
            .partition::<Vec<_>, _>(|case| case.id.contains(&self.word));
        report.cases = others;
        let passes = |status| match status {
            TestStatus::Passed | TestStatus::Skipped => true,
            TestStatus::Failed | TestStatus::Error | TestStatus::Unsteady => false,
        };
        if own.iter().any(|case| passes(case.status)) {
            return Err(Doubt::Passes);
        }
        if own.is_empty() {
            return Err(Doubt::Missing(report));
        }
        Ok(report)
    }
}

/// The reason why a report is not trusted.
#[derive(Debug)]
pub(super) enum Doubt {
    /// A canary test passed.
    Passes,
    /// The canary tests are missing in this report.
    Missing(TestReport),
}

impl Doubt {
    pub(super) fn words(&self) -> &'static str {
        match self {
            Doubt::Passes => {
                "a control test that must fail passes: the change manipulates the test framework"
            }
            Doubt::Missing(_) => "the test run was cut off before its end",
        }
    }
}

/// Returns the number of tests that passed, by name or by the runner's final count. The count is
/// used only if no test failed.
pub(super) fn seen(report: &TestReport) -> usize {
    passed(report).len().max(counted(&report.output))
}

/// Parses the runner's final count: `Ran 3 tests` with `OK (skipped=1)`, or `3 passed, 1 skipped`.
fn counted(output: &str) -> usize {
    let mut skipped = 0;
    for line in output.lines().rev() {
        let words: Vec<&str> = line.split([' ', ',', '=', '(', ')']).collect();
        let beside = |word: &str, step: isize| -> Option<usize> {
            let at = words.iter().position(|one| *one == word)?;
            words.get(at.checked_add_signed(step)?)?.parse().ok()
        };
        if words[0] == "FAILED" {
            return 0;
        }
        if words[0] == "OK" {
            skipped = beside("skipped", 1).unwrap_or(0);
        }
        if words[0] == "Ran" {
            return beside("Ran", 1).unwrap_or(0).saturating_sub(skipped);
        }
        if let Some(passed) = beside("passed", -1) {
            let fails = |word: &&str| beside(word, -1).is_some_and(|count| count > 0);
            return match FAILING.iter().any(fails) {
                true => 0,
                false => passed,
            };
        }
    }
    0
}

/// Returns the ids of the tests that passed.
pub(super) fn passed(report: &TestReport) -> BTreeSet<String> {
    let passes = |status| match status {
        TestStatus::Passed => true,
        TestStatus::Failed | TestStatus::Error | TestStatus::Skipped | TestStatus::Unsteady => {
            false
        }
    };
    let cases = report.cases.iter().filter(|case| passes(case.status));
    cases.map(|case| case.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::TestOutcome;

    #[test]
    fn passed_tests_are_counted_from_the_summary_if_the_runner_names_no_tests() {
        for (output, count) in [
            ("..\n-----\nRan 2 tests in 0.001s\n\nOK\n", 2),
            ("===== 3 passed, 1 skipped in 0.12s =====\n", 3),
            ("4 passed in 0.1s\n", 4),
            ("tests finished: 5 passed, 2 skipped, in 0.41 seconds\n", 5),
            ("Ran 3 tests in 0.001s\n\nOK (skipped=1)\n", 2),
            (
                "Ran 2 tests in 0.1s\n\nFAILED (failures=1)\nDestroying it\n",
                0,
            ),
            (
                "FAILED t.py::a\n===== 1 failed, 3 passed in 0.12s =====\n",
                0,
            ),
            (
                "tests finished: 5 passed, 2 exceptions, in 0.4 seconds\n",
                0,
            ),
            ("passed\nall is well\n", 0),
            ("", 0),
        ] {
            let report = TestReport {
                outcome: TestOutcome::Passed,
                exit: Some(0),
                command: String::new(),
                cases: Vec::new(),
                source: Default::default(),
                output: output.into(),
                millis: 1,
            };
            assert_eq!(seen(&report), count, "{output}");
        }
    }
}
