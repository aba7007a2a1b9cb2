//! Renames and deletions that are made by rule, without a model: they change every use of a name, or
//! nothing.

use std::collections::BTreeSet;

use super::*;

/// Creates a small model whose replies would break the code. The tests check that it is never
/// called.
fn never_asked() -> Scripted {
    Scripted::small().always("", say("```python\ndef rate():\n    return False\n```"))
}

#[tokio::test(start_paused = true)]
async fn rename_task_of_a_small_model_is_done_without_the_model() {
    for approval in [Approval::Auto, Approval::Ask] {
        let mut bed = bed(never_asked()).with(|task| task.approval = approval);
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        let texts = ["stats.py", "report.py", "test_stats.py"].map(|file| bed.read(file));
        let renamed = [STATS, REPORT, TESTS].map(|text| {
            let text = text
                .replace("rate(", "error_rate(")
                .replace("import rate", "import error_rate");
            text.replace("test_error_rate(", "test_rate(")
        });
        assert_eq!(texts, renamed);
        assert_eq!(bed.model.calls(), 0);
        let asked = usize::from(approval == Approval::Ask);
        assert_eq!(bed.approver.seen.lock().unwrap().len(), asked, "one set");
    }
}

#[tokio::test(start_paused = true)]
async fn rule_based_rename_or_deletion_changes_nothing_if_a_use_of_the_name_is_uncertain() {
    let files = [
        (
            "stats.py",
            "class Stats:\n    def rate(self):\n        return 1\n",
        ),
        ("report.py", "def line(thing):\n    return thing.rate()\n"),
        ("other.py", "def f(x):\n    x.rate = 1\n"),
    ];
    for (task, why) in [
        (
            "rename Stats.rate to error_rate",
            "2 places may mean another `rate`: other.py:2, report.py:2",
        ),
        (
            "delete Stats.rate",
            "2 places may mean another `rate`: other.py:2, report.py:2",
        ),
        ("rename line to Stats.rate", "there is no"),
    ] {
        let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
        let events = bed.run().await;
        if why == "there is no" {
            assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
            continue;
        }
        let StopReason::NothingChanged { why: said } = stop(&events) else {
            panic!("{events:#?}");
        };
        assert!(said.starts_with(why), "{said}");
        assert!(said.ends_with("(`--model`)"), "{said}");
        assert_eq!(bed.model.calls(), 0);
        assert_eq!(files.map(|file| bed.read(file.0)), files.map(|file| file.1));
    }
}

#[tokio::test(start_paused = true)]
async fn deletion_task_of_a_small_model_is_done_without_the_model() {
    let text =
        "X = 1\n\n\ndef dead():\n    return X\n\n\ndef used():\n    return X\n\n\nprint(used())\n";
    let run = async |task: &str| {
        let files = [("a.py", text)];
        let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
        let events = bed.run().await;
        assert_eq!(bed.model.calls(), 0);
        (stop(&events), bed.read("a.py"))
    };
    let (stop, after) = run("Delete the unused function dead.").await;
    assert_eq!(stop, StopReason::Settled);
    assert_eq!(after, text.replace("def dead():\n    return X\n\n\n", ""));
    let (stop, after) = run("delete used").await;
    assert!(
        matches!(stop, StopReason::NothingChanged { why } if why.contains("still used: a.py:12"))
    );
    assert_eq!(after, text);
}

#[tokio::test(start_paused = true)]
async fn missing_name_is_told_and_the_others_are_deleted_or_checked() {
    let text = "def dead():\n    return 1\n\n\ndef used():\n    return 2\n\n\nprint(used())\n";
    let task = "Delete `nothing_here` and `dead`.";
    let files = [("a.py", text)];
    let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
    let events = bed.run().await;
    assert_eq!(bed.model.calls(), 0);
    assert_eq!(
        bed.read("a.py"),
        text.replace("def dead():\n    return 1\n\n\n", "")
    );
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    assert!(
        headline.starts_with("Done, but there is no `nothing_here`; "),
        "{headline}"
    );
    // A larger model changed something else.
    let model = Scripted::native().on("scout", [wake(&["a.py::dead"])]).on(
        "agent",
        [whole("def dead():\n    return 2"), finish("done")],
    );
    let mut bed = Bed::new(&files, model).with(|one| one.text = task.to_owned());
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    let told = "`dead` is still in a.py, there is no `nothing_here`";
    assert!(headline.contains(told), "{headline}");
    // Nothing is deleted as long as the other name is used.
    let task = "Delete `nothing_here` and `used`.";
    let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
    let events = bed.run().await;
    let StopReason::NothingChanged { why } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert!(why.starts_with("there is no `nothing_here`; "), "{why}");
    assert!(why.contains("still used: a.py:9"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn symbol_that_is_looked_up_by_a_string_is_not_renamed_without_the_model() {
    for (user, why) in [
        (
            "import a\nprint(getattr(a, 'total'))\n",
            "`total` occurs in a string: b.py:2",
        ),
        (
            "from a import total\n\n\n@app.command\ndef other():\n    total()\n",
            "",
        ),
    ] {
        let a = "__all__ = [\n    'total',\n]\n\n\ndef total():\n    return 1\n";
        let files = [("a.py", a), ("b.py", user)];
        let task = "rename total to sum_up";
        let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
        let events = bed.run().await;
        match why {
            "" => {
                assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
                assert!(
                    bed.read("a.py").contains("'sum_up',"),
                    "{}",
                    bed.read("a.py")
                );
                assert!(bed.read("b.py").contains("    sum_up()"));
            }
            why => {
                assert!(
                    matches!(stop(&events), StopReason::NothingChanged { why: said } if said.starts_with(why))
                );
                assert_eq!(bed.read("a.py"), a);
            }
        }
        assert_eq!(bed.model.calls(), 0);
    }
    let a = "@app.route('/')\ndef total():\n    return 1\n";
    let task = "rename total to sum_up";
    let mut bed = Bed::new(&[("a.py", a)], never_asked()).with(|one| one.text = task.to_owned());
    let events = bed.run().await;
    let StopReason::NothingChanged { why } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert!(
        why.starts_with("`total` is decorated with @app.route('/')"),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn symbol_that_a_configuration_string_names_is_not_changed_without_the_model() {
    for (file, registry) in [
        ("settings.py", "X = {\n    'echo': 'handlers:Echo',\n}\n"),
        ("settings.py", "X = {\n    'echo': \"handlers.Echo\",\n}\n"),
        ("settings.py", "X = (\n    'pkg/handlers/Echo',\n)\n"),
        ("settings.json", "{\n\"echo\": \"handlers:Echo\"}\n"),
        ("settings.toml", "\necho = 'handlers:Echo'\n"),
        ("settings.yaml", "all:\n  - handlers.Echo\n"),
        ("settings.ini", "[all]\necho = handlers.Echo\n"),
    ] {
        for task in ["rename Echo to Ping", "delete Echo"] {
            let files = [("handlers.py", HANDLERS), (file, registry)];
            let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
            let events = bed.run().await;
            let StopReason::NothingChanged { why } = stop(&events) else {
                panic!("{task}, {registry}: {events:#?}");
            };
            let expected = format!("`Echo` occurs in a string: {file}:2");
            assert!(why.starts_with(&expected), "{why}");
            assert_eq!(bed.read("handlers.py"), HANDLERS);
        }
    }
    // The name in a comment or in a sentence is not a reference to the class, so it does not
    // prevent the rename.
    let prose = "# 'handlers:Echo'\nX = 'The Echo of it'\n";
    let files = [("handlers.py", HANDLERS), ("settings.py", prose)];
    let mut bed =
        Bed::new(&files, never_asked()).with(|one| one.text = "rename Echo to Ping".to_owned());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("handlers.py").contains("class Ping:"));
}

/// Runs a task for which Starling renames or deletes without calling the model. Returns the new
/// texts of the files, or the reason why the run changed nothing.
async fn by_rule(task: &str, files: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let mut bed = Bed::new(files, never_asked()).with(|one| one.text = task.to_owned());
    let events = bed.run().await;
    assert_eq!(bed.model.calls(), 0, "{task}");
    let texts = files.iter().map(|file| bed.read(file.0)).collect();
    match stop(&events) {
        StopReason::NothingChanged { why } => {
            let same: Vec<&str> = files.iter().map(|file| file.1).collect();
            assert_eq!(texts, same, "{task}");
            Err(why)
        }
        StopReason::Settled => Ok(texts),
        other => panic!("{task}: {other:?} {events:#?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn constant_is_renamed_together_with_all_its_references() {
    let user = "import nutrition\nfrom nutrition import KCAL as TABLE\n\n\ndef f(KCAL):\n    \
                return KCAL, TABLE, nutrition.KCAL\n";
    let other = "from nutrition import KCAL\n\n\ndef g():\n    return KCAL, f\"{KCAL['oat']}\"\n";
    let files = [("nutrition.py", NUTRITION), ("a.py", user), ("b.py", other)];
    for task in [
        "Rename `KCAL` to `KCAL_PER_100_G`",
        "Rename the constant `KCAL` in @nutrition.py to KCAL_PER_100_G",
    ] {
        let texts = by_rule(task, &files).await.unwrap();
        assert_eq!(texts[0], NUTRITION.replace("KCAL", "KCAL_PER_100_G"));
        let new = user
            .replace("import KCAL as", "import KCAL_PER_100_G as")
            .replace("nutrition.KCAL", "nutrition.KCAL_PER_100_G");
        assert_eq!(texts[1], new);
        assert_eq!(texts[2], other.replace("KCAL", "KCAL_PER_100_G"));
    }
    for (new_name, file) in [("kcal", "nutrition.py"), ("g", "b.py")] {
        let why = by_rule(&format!("rename KCAL to {new_name}"), &files).await;
        let expected = format!("{file} already contains the name `{new_name}`");
        assert!(why.clone().unwrap_err().starts_with(&expected), "{why:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn constant_is_deleted_only_if_nothing_uses_it() {
    let used = by_rule("Delete `KCAL`", &[("nutrition.py", NUTRITION)]).await;
    let expected = "`KCAL` is still used: nutrition.py:8";
    assert!(used.clone().unwrap_err().starts_with(expected), "{used:?}");
    let text = "import os\n\nOLD = {\n    'oat': 370,\n}\n\nNEW = os.sep\n";
    let done = by_rule("Delete the constant OLD.", &[("a.py", text)]).await;
    assert_eq!(done.unwrap(), ["import os\n\nNEW = os.sep\n"]);
    for text in [
        "A = OLD = 1\n",
        "if True:\n    OLD = 1\n",
        "OLD = 1\nOLD = 2\n",
    ] {
        let why = by_rule("delete OLD", &[("a.py", text)]).await.unwrap_err();
        assert!(
            why.contains("not assigned in a separate statement"),
            "{why}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn rule_based_rename_or_deletion_also_changes_the_stub_file_of_the_module() {
    let files = [
        ("text.py", WRAP),
        ("text.pyi", STUB),
        ("__init__.pyi", "from .text import wrap as wrap\n"),
        ("user.py", "from text import wrap\n\nprint(wrap(1))\n"),
    ];
    let texts = by_rule("Rename `wrap` to `lines`", &files).await.unwrap();
    for (text, (_, before)) in texts.iter().zip(files) {
        let new = before.replace("wrap", "lines");
        assert_eq!(*text, new);
    }
    let texts = by_rule("Delete `shout`.", &files).await.unwrap();
    assert!(!texts[0].contains("shout") && !texts[1].contains("shout"));
    assert!(texts[1].contains("def wrap") && texts[0].contains("def wrap"));
    let texts = by_rule("Rename WIDTH to MOST", &files).await.unwrap();
    assert!(texts[0].contains("MOST = 1") && texts[1].contains("MOST: int"));
    let texts = by_rule("Delete WIDTH", &files).await.unwrap();
    assert!(!texts[0].contains("WIDTH") && !texts[1].contains("WIDTH"));
    let overloads =
        "@overload\ndef shout(text: str) -> str: ...\n@overload\ndef shout(text: bytes): ...\n";
    let files = [("text.py", WRAP), ("text.pyi", overloads)];
    for task in ["Rename shout to cry", "Delete shout"] {
        let why = by_rule(task, &files).await.unwrap_err();
        assert!(
            why.starts_with("text.pyi has several definitions of `shout`"),
            "{why}"
        );
    }
}

const SLUG: &str = "def slug(text):\n    \"\"\"A slug.\n\n    >>> slug('a b')\n    'a-b'\n    >>> for x in 'ab':\n    \
                    ...     print(slug(x), 'slug')\n    a\n    \"\"\"\n    return text\n\n\nclass A:\n    '''>>> slug(1)'''\n";
const IMPORTS_SLUG: &str = "import text\n\n\ndef f():\n    \"\"\"No slug.\n\n    >>> text.slug(1)\n    \
                            >>> from text import slug\n    >>> slug(1)\n    \"\"\"\n";

#[tokio::test(start_paused = true)]
async fn doctests_are_renamed_together_with_the_function() {
    let own = "def g(x):\n    \"\"\"\n    >>> slug = 1\n    >>> slug\n    1\n    \"\"\"\n";
    let readme = "A slug:\n\n>>> slug(1)\n1\n>>> slug(1)\n1\n";
    let files = [
        ("text.py", SLUG),
        ("other.py", IMPORTS_SLUG),
        ("own.py", own),
        ("README.md", readme),
    ];
    let texts = by_rule("Rename `slug` to `make`", &files).await.unwrap();
    assert_eq!(texts[0], SLUG.replace("slug(", "make("));
    let new = IMPORTS_SLUG.replace("slug(", "make(");
    assert_eq!(texts[1], new.replace("import slug", "import make"));
    assert_eq!(texts[2], own);
    assert_eq!(texts[3], readme.replace(">>> slug", ">>> make"));
}

#[tokio::test(start_paused = true)]
async fn doctests_count_as_uses_of_a_name() {
    // The doctest of `h` does not import `slug`, so `slug` may refer to another function there.
    let unknown = "def h(x):\n    \"\"\"\n    >>> slug(1)\n    \"\"\"\n";
    let files = [("text.py", SLUG), ("h.py", unknown)];
    let why = by_rule("rename slug to make", &files).await.unwrap_err();
    let expected = "1 place may mean another `slug`: h.py:3";
    assert!(why.starts_with(expected), "{why}");
    let files = [("text.py", SLUG), ("other.py", IMPORTS_SLUG)];
    let why = by_rule("delete slug", &files).await.unwrap_err();
    let expected = "`slug` is still used: other.py:7, other.py:8, other.py:9, text.py:14";
    assert!(why.starts_with(expected), "{why}");
    let alone = SLUG.replace("class A:\n    '''>>> slug(1)'''", "X = 1");
    let texts = by_rule("delete slug", &[("text.py", &alone)])
        .await
        .unwrap();
    assert!(!texts[0].contains("slug"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn requested_deletion_is_done_despite_an_unrelated_failing_test() {
    let store = "class Base:\n    def put(self):\n        return 1\n\n\nclass Store(Base):\n    def put(self):\n        \
                 return 2\n\n    def _dump(self):\n        return 3\n";
    let test = "from store import Store\n\n\ndef test_put():\n    assert Store().put() == 5\n";
    let judge = |_: &str| {
        vec![(
            "test_store.py::test_put".to_owned(),
            "assert 2 == 5".to_owned(),
        )]
    };
    for task in ["delete `_dump`", "delete Store._dump", "delete Base"] {
        let files = [("store.py", store), ("test_store.py", test)];
        let mut bed = Bed::new(&files, never_asked())
            .tests(judge)
            .with(|one| one.text = task.to_owned());
        bed.lists = true;
        let events = bed.run().await;
        if task == "delete Base" {
            assert!(!stop(&events).is_settled());
            continue;
        }
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        assert!(!bed.read("store.py").contains("_dump"), "{task}");
    }
}

const RENDER: &str =
    "def line(recipe, best):\n    return f\"{recipe.total_time()}\", best.total_time() < 1\n";

#[tokio::test(start_paused = true)]
async fn attribute_with_a_unique_name_is_renamed_without_the_model() {
    let files = [("models.py", RECIPE), ("render.py", RENDER)];
    let texts = by_rule("rename total_time to minutes_of", &files).await;
    for (text, (_, before)) in texts.unwrap().iter().zip(files) {
        assert_eq!(*text, before.replace("total_time", "minutes_of"));
    }
    let why = by_rule("delete total_time", &files).await.unwrap_err();
    assert!(why.contains("still used: render.py:2"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn name_of_several_symbols_is_not_given_to_the_small_model() {
    let model = "class Kind:\n    def hours(self):\n        return 1\n";
    let report = "def hours(rota):\n    return rota\n\n\ndef table(rota):\n    return rota\n";
    let files = [("model.py", model), ("report.py", report)];
    for task in [
        "Delete `table` and `hours`.",
        "Delete `hours`.",
        "Rename `hours` to `duty_hours`.",
    ] {
        let why = by_rule(task, &files).await.unwrap_err();
        let expected = "several symbols are called `hours`: model.py::Kind.hours, report.py::hours; name one of \
                        them with its file";
        assert!(why.contains(expected), "{task}: {why}");
    }
    let texts = by_rule("Delete `hours` in report.py.", &files)
        .await
        .unwrap();
    assert!(!texts[1].contains("hours"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn field_or_enum_member_is_not_given_to_the_small_model() {
    let of = "class D(Enum):\n    TEN_K = 10\n\n\n@dataclass\nclass Run:\n    day: int = 0\n";
    let user = "def f(run):\n    return D.TEN_K, run.day\n";
    for (task, name) in [
        ("Rename the enum member D.TEN_K to TENK", "TEN_K"),
        ("Rename D.TEN_K to TENK", "TEN_K"),
        ("Rename Run.day to date", "day"),
        ("Rename the field `day` of Run to date", "day"),
    ] {
        let why = by_rule(task, &[("m.py", of), ("a.py", user)]).await;
        let expected = format!(
            "some uses of `{name}` may not have been found; a larger model can decide this"
        );
        let why = why.unwrap_err();
        assert!(why.starts_with(&expected), "{task}: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn attribute_that_may_belong_to_another_class_is_not_renamed_without_the_model() {
    let unsure = " places may mean another";
    for (other, said) in [
        ("class Other:\n    total_time = 1\n", unsure),
        ("def f(x):\n    x.total_time = 1\n", unsure),
        ("def total_time():\n    pass\n", unsure),
        ("X = dict(total_time=1)\n", unsure),
        (
            "from collections import namedtuple\nT = namedtuple('T', 'a total_time')\n",
            unsure,
        ),
        (
            "def f(x):\n    return getattr(x, 'total_time')\n",
            "occurs in a string: other.py:2",
        ),
    ] {
        let files = [
            ("models.py", RECIPE),
            ("render.py", RENDER),
            ("other.py", other),
        ];
        let why = by_rule("rename Recipe.total_time to minutes_of", &files).await;
        assert!(why.clone().unwrap_err().contains(said), "{other}: {why:?}");
    }
    let common = "class Recipe:\n    def strip(self):\n        return 1\n";
    let files = [
        ("models.py", common),
        ("a.py", "def f(x):\n    return x.strip()\n"),
    ];
    let why = by_rule("rename Recipe.strip to peel", &files)
        .await
        .unwrap_err();
    assert!(why.contains("1 place may mean another `strip`"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn method_that_may_override_a_base_method_is_not_changed_without_the_model() {
    let foreign = RECIPE.replace("Recipe(Base)", "Recipe(Base, Thread)");
    let override_ = "may override a method of a base class";
    for (models, task, why) in [
        (&*foreign, "rename total_time to minutes_of", override_),
        (&foreign, "delete total_time", override_),
        (RECIPE, "delete Recipe.key", override_),
        (NOTIFY, "Delete `can_reach`", TOGETHER),
    ] {
        let said = by_rule(task, &[("models.py", models)]).await.unwrap_err();
        assert!(said.contains(why), "{task}: {said}");
    }
    let texts = by_rule("delete total_time", &[("models.py", RECIPE)]).await;
    assert!(!texts.unwrap()[0].contains("total_time"));
}

#[tokio::test(start_paused = true)]
async fn methods_that_override_each_other_are_renamed_together() {
    let uses = "from models import Notifier, Sms\n\n\ndef f(thing, one: Notifier):\n    \
                return thing.can_reach(), one.can_reach(), Sms().can_reach()\n";
    let tests = "from models import Notifier\n\n\nclass Fake(Notifier):\n    def can_reach(self):\n        \
                 return super().can_reach()\n";
    let files = [
        ("models.py", NOTIFY),
        ("uses.py", uses),
        ("test_it.py", tests),
    ];
    for task in [
        "rename Sms.can_reach to reaches",
        "rename Notifier.can_reach to reaches",
        "Rename `can_reach` to `reaches`",
    ] {
        let texts = by_rule(task, &files).await.unwrap();
        for (text, (_, before)) in texts.iter().zip(files) {
            assert_eq!(*text, before.replace("can_reach(", "reaches("), "{task}");
        }
    }
    // Another class has a method of this name, so `thing.can_reach()` may mean that one.
    let other = "class Door:\n    def can_reach(self):\n        return 3\n";
    let files = [("models.py", NOTIFY), ("uses.py", uses), ("door.py", other)];
    let task = "rename Notifier.can_reach to reaches";
    let why = by_rule(task, &files).await.unwrap_err();
    let expected = "1 place may mean another `can_reach`: uses.py:5";
    assert!(why.contains(expected), "{why}");
}

#[tokio::test(start_paused = true)]
async fn rule_based_rename_is_applied_to_all_files_or_to_none() {
    let files = [
        ("stats.py", STATS),
        (
            "stats.pyi",
            "def rate(hits: int, total: int) -> float: ...\n",
        ),
        ("report.py", REPORT),
        ("test_stats.py", TESTS),
        (
            "README.md",
            "# Stats\n\n>>> from stats import rate\n>>> rate(1, 2)\n0.5\n",
        ),
    ];
    let run = async |refused: Option<&str>| {
        let mut bed = Bed::new(&files, never_asked())
            .tests(test_rate)
            .with(|task| task.text = "Rename `rate` to `error_rate`.".to_owned());
        bed.lists = true;
        *bed.editor.refuses.lock().unwrap() = refused.map(str::to_owned);
        let events = bed.run().await;
        (files.map(|file| bed.read(file.0)), events)
    };
    let (texts, events) = run(None).await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    for (text, (file, _)) in texts.iter().zip(files) {
        let text = text.replace("test_rate", "");
        assert!(text.contains("error_rate"), "{file}: {text}");
        assert!(
            !text.replace("error_rate", "").contains("rate"),
            "{file}: {text}"
        );
    }
    let made = |event: &Event| matches!(event, Event::ProposalMade { .. });
    let is_applied = |event: &Event| matches!(event, Event::ProposalApplied { .. });
    let (last, first) = (
        events.iter().rposition(made),
        events.iter().position(is_applied),
    );
    assert!(last < first, "{events:#?}");
    let (texts, events) = run(Some("README.md")).await;
    assert_eq!(texts, files.map(|file| file.1), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn nested_function_is_renamed_without_the_model() {
    let text = "def mean(a):\n    def halve(x):\n        return x / 2\n\n    return halve(a)\n";
    let texts = by_rule("Rename `halve` to `halved`", &[("a.py", text)]).await;
    assert_eq!(texts, Ok(vec![text.replace("halve(", "halved(")]));
}

#[tokio::test(start_paused = true)]
async fn task_that_names_several_symbols_in_one_sentence_changes_all_of_them_without_the_model() {
    let text = "OLD = 1\nOLDER = 2\n\n\ndef first():\n    return second() + OLD\n\n\n\
                def second():\n    return OLDER\n\n\ndef third(x):\n    return x\n";
    let left = "def third(x):\n    return x\n";
    let files = [("a.py", text)];
    let texts = by_rule(
        "Delete `OLD`, `OLDER`, `first` and `second`, they are dead code.",
        &files,
    )
    .await
    .unwrap();
    assert_eq!(texts[0].trim_start(), left);
    let why = by_rule("Delete `second` and `OLDER`", &files).await;
    assert!(why.unwrap_err().contains("`second` is still used: a.py:6"));
    let texts = by_rule("Rename OLD to NEW and third to fourth.", &files).await;
    let renamed = text.replace("OLD ", "NEW ").replace("OLD\n", "NEW\n");
    let renamed = renamed.replace("third", "fourth");
    assert_eq!(texts, Ok(vec![renamed]));
}

/// A rename without the model is one change: it is tested once, and no owner is started because of
/// the changed signature.
#[tokio::test(start_paused = true)]
async fn rule_based_rename_is_tested_once_and_starts_no_agent() {
    let store = "N_MOST = 3\n\n\nclass NoteStore:\n    def __init__(self, most=N_MOST):\n        \
                 self.most = most\n\n    def add(self, note):\n        return note\n";
    let user = "from store import N_MOST, NoteStore\n\n\ndef opened():\n    return NoteStore(N_MOST)\n\n\n\
                def added(note):\n    return NoteStore().add(note)\n";
    let page = "`NoteStore` keeps `N_MOST` notes.\n";
    for (task, old, new) in [
        (
            "Rename the class `NoteStore` to `Notebook`",
            "NoteStore",
            "Notebook",
        ),
        ("Rename the constant `N_MOST` to `MOST`", "N_MOST", "MOST"),
    ] {
        let files = [("store.py", store), ("cli.py", user), ("README.md", page)];
        let mut bed = Bed::new(&files, never_asked())
            .tests(|_| Vec::new())
            .with(|one| one.text = task.to_owned());
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        assert!(bed.read("store.py").contains(new) && !bed.read("cli.py").contains(old));
        let is_noise = |event: &&Event| match event {
            Event::FollowedUp { .. } | Event::FollowUpMissed { .. } | Event::NotWoken { .. } => {
                true
            }
            Event::AgentFinished { outcome, .. } => matches!(outcome, AgentOutcome::GaveUp { .. }),
            _ => false,
        };
        let noise: Vec<&Event> = events.iter().filter(is_noise).collect();
        assert!(noise.is_empty(), "{noise:#?}");
        let checks = events.iter().filter_map(|event| match event {
            Event::ProposalChecked { evidence, .. } => Some(evidence.clone()),
            _ => None,
        });
        let words: BTreeSet<String> = checks.flat_map(|one| one.contract).collect();
        let expected = format!("{old}: renamed to `{new}`");
        let is_class = old == "NoteStore";
        assert_eq!(words.contains(&expected), is_class, "{words:?}");
        assert_eq!(words.len(), usize::from(is_class), "{words:?}");
        let tested = |phase: TestPhase| {
            let is_it = |event: &&Event| matches!(event, Event::TestsRun { phase: one, .. } if *one == phase);
            events.iter().filter(is_it).count()
        };
        assert_eq!(tested(TestPhase::Proposal), 1, "{events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn evidence_of_a_rule_based_rename_stands_with_the_part_that_it_is_about() {
    let user = "from store import first\n\n\ndef shown():\n    return first()\n";
    let files = [
        ("store.py", "def first():\n    return 1\n"),
        ("cli.py", user),
    ];
    let mut bed = Bed::new(&files, never_asked())
        .tests(|_| Vec::new())
        .with(|one| one.text = "Rename the function `first` to `head`".to_owned());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let mut about_it = 0;
    for event in &events {
        let Event::ProposalChecked { proposal, evidence } = event else {
            continue;
        };
        let is_definition = events.iter().any(|event| match event {
            Event::ProposalMade {
                proposal: made,
                agent,
                ..
            } => {
                let symbol = agent.symbol().map(ToString::to_string);
                made == proposal && symbol.as_deref() == Some("store.py::")
            }
            _ => false,
        });
        assert_eq!(evidence.contract.is_empty(), !is_definition, "{evidence}");
        if is_definition {
            about_it += 1;
            let callers = evidence.callers_in_words();
            assert!(
                callers.contains("cli.py::shown (changed in the same set)"),
                "{callers}"
            );
        }
    }
    assert!(about_it > 0, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn rule_based_rename_that_breaks_a_test_changes_nothing() {
    let mut bed = bed(never_asked()).tests(|all| match all.contains("def error_rate(") {
        true => vec![("test_stats.py::test_rate".to_owned(), "assert 0".to_owned())],
        false => Vec::new(),
    });
    let events = bed.run().await;
    let texts = ["stats.py", "report.py", "test_stats.py"].map(|file| bed.read(file));
    assert_eq!(texts, [STATS, REPORT, TESTS], "{events:#?}");
    let refused = malformed(&events);
    assert!(
        !refused.is_empty() && refused.iter().all(|why| why.contains("test_rate")),
        "{refused:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn variable_that_a_framework_may_read_is_not_changed_without_the_model() {
    let settings = ("hood/settings.py", "USE_TZ = True\nLOAN_DAYS = 3\n");
    let manage = (
        "manage.py",
        "import os\n\nos.environ['DJANGO_SETTINGS_MODULE'] = 'hood.settings'\n",
    );
    for (task, others, why) in [
        (
            "Delete `USE_TZ`",
            vec![manage],
            "`hood.settings` is loaded by its name, so `USE_TZ` may be used there: manage.py:3",
        ),
        (
            "Rename `LOAN_DAYS` to `DAYS`",
            vec![(
                "models.py",
                "from django.conf import settings\n\n\ndef due():\n    return settings.LOAN_DAYS\n",
            )],
            "`LOAN_DAYS` may be used elsewhere as well: models.py:5",
        ),
    ] {
        let files = [vec![settings], others].concat();
        let why_not = by_rule(task, &files).await.unwrap_err();
        assert!(why_not.contains(why), "{why_not}");
    }
    let logging = (
        "log.py",
        "import logging\n\nlogging.getLogger('hood.settings')\n",
    );
    let changed = by_rule("Delete `USE_TZ`", &[settings, logging])
        .await
        .unwrap();
    assert_eq!(changed[0], "LOAN_DAYS = 3\n");
}

#[tokio::test(start_paused = true)]
async fn hidden_or_generated_file_that_uses_a_function_stops_a_rule() {
    let tool = ("tool.py", "def build():\n    return 1\n");
    let run = "run: python -c 'import tool; tool.build()'\n";
    let code = "import tool\n\ntool.build()\n";
    let generated = "# Generated by gen. DO NOT EDIT.\nimport tool\n\ntool.build()\n";
    for (file, text, line) in [
        (".github/workflows/ci.yml", run, 1),
        ("build.gradle", run, 1),
        ("deploy/tool.service", run, 1),
        (".ci/check.py", code, 3),
        ("made.py", generated, 4),
    ] {
        let why_not = by_rule("Rename `build` to `make_all`", &[tool, (file, text)])
            .await
            .unwrap_err();
        let why = format!("`build` occurs in a script: {file}:{line}");
        assert!(why_not.contains(&why), "{why_not}");
    }
}

#[tokio::test(start_paused = true)]
async fn method_of_a_protocol_is_renamed_together_with_the_methods_that_may_implement_it() {
    let source = "class Source(Protocol):\n    def fetch_rows(self): ...\n\n\nclass Memory:\n    \
                  def fetch_rows(self):\n        return []\n\n\nclass File:\n    def fetch_rows(self):\n        \
                  return [1]\n";
    let user = "def load(source):\n    return source.fetch_rows()\n";
    let files = [("m.py", source), ("a.py", user)];
    let task = "Rename `fetch_rows` to `load_rows`";
    let texts = by_rule(task, &files).await.unwrap();
    assert_eq!(
        texts,
        [source, user].map(|text| text.replace("fetch_rows", "load_rows"))
    );
    let why = by_rule("Delete `fetch_rows`", &files).await.unwrap_err();
    let expected = "all of these have to change together: `fetch_rows` is defined as \
                    m.py::File.fetch_rows, m.py::Memory.fetch_rows, m.py::Source.fetch_rows";
    assert!(why.starts_with(expected), "{why}");
}

#[tokio::test(start_paused = true)]
async fn imports_because_of_which_uses_may_be_missing_are_named() {
    let views =
        "from django.views import generic\n\n\nclass ToolList(generic.ListView):\n    pass\n";
    let urls = "import lending.views\n\nurls = [lending.views.ToolList]\n";
    let files = [("shed/views.py", views), ("urls.py", urls)];
    let why = by_rule("Rename ToolList to ToolTable", &files).await;
    let expected = "some uses of `ToolList` may not have been found: the module of an import is not \
                    found: shed/views.py:1, urls.py:1; a larger model";
    let why = why.unwrap_err();
    assert!(why.starts_with(expected), "{why}");
}

#[tokio::test(start_paused = true)]
async fn use_in_a_deleted_symbol_is_not_renamed() {
    let code = "def first():\n    return 1\n\n\ndef second():\n    return first()\n\n\n\
                def third():\n    return 2\n";
    let task = "Rename `first` to `compute`. Delete `second`.";
    let texts = by_rule(task, &[("a.py", code)]).await.unwrap();
    let expected = "def compute():\n    return 1\n\n\ndef third():\n    return 2\n";
    assert_eq!(texts, [expected]);
}
