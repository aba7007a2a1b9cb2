//! Tests of parsing the renames and deletions that a task asks for, and of the check that they were
//! made.

use std::sync::Arc;

use super::*;
use starling_index::Index;
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Workspace};

fn lookup() -> Lookup {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path().to_owned()).unwrap();
    let shop = "RATE = 2\n\n\ndef total(x):\n    return x\n\n\ndef relic():\n    pass\n\n\ndef old():\n    \
                pass\n\n\nclass Cart:\n    def size(self):\n        self.best_before = 1\n        return 1\n\n\n\
                def twice():\n    pass\n\n\nLIMIT = 1\nOPTIONS = '--gap'\n";
    let files = [
        ("shop.py", shop),
        ("other.py", "LIMIT = 2\n\n\ndef twice():\n    pass\n"),
        ("test_shop.py", "def total():\n    pass\n"),
    ];
    let overlay: Overlay = files
        .into_iter()
        .map(|(name, text)| (FilePath::new(name), Some(text.into())))
        .collect();
    let world = workspace.snapshot(overlay);
    Lookup::new(world.clone(), Arc::new(Index::new(world)))
}

/// Returns the renames and deletions that a task asks for, as `from>to` and `-symbol`, followed by
/// `!` if the task also asks for something else. Prefixes: `$` for a variable, `@` for a file, `?`
/// for a plain name, which is followed by the symbol that contains it.
fn stated(task: &str) -> String {
    let found = of(&lookup(), task);
    let name = |named: &Named| match named {
        Named::Symbol(path) => path.name.clone(),
        Named::Variable(variable) => format!("${}:{}", variable.file, variable.name),
        Named::File(file) => format!("@{file}"),
        Named::Word(word) => {
            let within = word.within.iter().map(|one| format!("({one})"));
            format!("?{}{}", word.name, within.collect::<String>())
        }
    };
    let one = |stated: &ExplicitEdit| match stated {
        ExplicitEdit::Renamed { from, to } => format!("{}>{to}", name(from)),
        ExplicitEdit::Deleted { what } => format!("-{}", name(what)),
    };
    let all: Vec<String> = found.all.iter().map(one).collect();
    let rest = if found.are_whole_task || all.is_empty() {
        ""
    } else {
        "!"
    };
    all.join(" ") + rest
}

#[test]
fn renames_and_deletions_are_parsed_from_plain_english() {
    for (task, expected) in [
        ("rename total to sum_up", "total>sum_up"),
        ("Rename `total` to `sum_up`.", "total>sum_up"),
        ("Rename the function total() to sum_up()", "total>sum_up"),
        ("rename total -> sum_up", "total>sum_up"),
        ("rename total into sum_up everywhere", "total>sum_up"),
        (
            "Please rename total to sum_up in all files.",
            "total>sum_up",
        ),
        (
            "Rename total to sum_up and update its callers and tests",
            "total>sum_up",
        ),
        ("rename shop.total to sum_up", "total>sum_up"),
        ("rename shop.py::total to sum_up", "total>sum_up"),
        ("rename #total to sum_up", "total>sum_up"),
        (
            "Rename the method Cart.size to Cart.count",
            "Cart.size>count",
        ),
        ("rename the class Cart to Basket", "Cart>Basket"),
        ("rename Cart class to Basket", "Cart>Basket"),
        ("total should be called sum_up", "total>sum_up"),
        ("`total` must be renamed to `sum_up`.", "total>sum_up"),
        ("the function total should be named sum_up", "total>sum_up"),
        ("the total function must be called sum_up", "total>sum_up"),
        (
            "In Cart, `best_before` should be called `use_by`",
            "?best_before(shop.py::Cart)>use_by",
        ),
        (
            "The field best_before of the class Cart should be called sellby everywhere",
            "?best_before(shop.py::Cart)>sellby",
        ),
        (
            "The attribute best_before of the Cart class in shop.py should be named `use_by`",
            "?best_before(shop.py::Cart)(shop.py::)>use_by",
        ),
        (
            "Rename total to sum_up. It must round to cents.",
            "total>sum_up!",
        ),
        (
            "Rename total to sum_up and add a parameter",
            "total>sum_up!",
        ),
        ("delete relic", "-relic"),
        ("Delete the function relic.", "-relic"),
        ("remove the unused function relic", "-relic"),
        ("Remove the dead function relic from shop.py", "-relic"),
        ("drop relic()", "-relic"),
        ("delete the unused function old", "-old"),
        ("remove relic, nobody calls it", "-relic"),
        ("remove `relic` because it is unused", "-relic"),
        ("remove relic, nobody calls the cart", "-relic!"),
        ("Delete `relic` and `old`", "-relic -old"),
        ("Delete relic, old and RATE.", "-relic -old -$shop.py:RATE"),
        (
            "Delete `relic` and `old`, they are dead code.",
            "-relic -old",
        ),
        (
            "In shop.py, delete relic and its tests, and old",
            "-relic -old",
        ),
        (
            "Rename total to sum_up and relic to rest",
            "total>sum_up relic>rest",
        ),
        (
            "Rename `total` to `sum_up`, `Cart` to `Basket`, and the constant RATE to FACTOR everywhere",
            "total>sum_up Cart>Basket $shop.py:RATE>FACTOR",
        ),
        (
            "Delete relic and rename total to sum_up.",
            "-relic total>sum_up",
        ),
        (
            "Rename total to sum_up, relic to rest and round to cents",
            "total>sum_up!",
        ),
        ("delete relic and its tests", "-relic"),
        ("delete Cart.size", "-Cart.size"),
        (
            "Delete relic. Rename total to sum_up.",
            "-relic total>sum_up",
        ),
    ] {
        assert_eq!(stated(task), expected, "{task}");
    }
}

#[test]
fn task_that_requests_no_rename_or_deletion_is_parsed_as_having_none() {
    for task in [
        "rename missing to found",
        "Do not rename total to sum_up",
        "rename total",
        "rename total to sum_up and keep total as an alias",
        "rename total to sum_up, deprecated for a year",
        "remove the total line from the report",
        "remove the size parameter of total",
        "remove total from the exports",
        "remove the call of total",
        "remove total and size from the report",
        "remove the total column",
        "Don't delete relic",
        "delete the cache",
        "drop duplicates in total",
        "fix total",
        "total must be positive",
        "LIMIT should be called twice",
        "RATE should be called once",
        "best_before should be called once",
        "the function total should be called once",
        "total of the class Cart should be called twice",
        "add a function total_of to shop.py",
        "a test for total",
        "",
    ] {
        assert_eq!(stated(task), "", "{task}");
    }
}

#[test]
fn constants_and_files_are_resolved_in_the_file_that_the_task_names() {
    for (task, expected) in [
        ("Rename `RATE` to `FACTOR`", "$shop.py:RATE>FACTOR"),
        ("rename RATE to FACTOR", "$shop.py:RATE>FACTOR"),
        (
            "rename the constant RATE in @shop.py to FACTOR",
            "$shop.py:RATE>FACTOR",
        ),
        (
            "Rename the variable `RATE` to `FACTOR` in shop.py.",
            "$shop.py:RATE>FACTOR",
        ),
        ("In shop.py, rename RATE to FACTOR", "$shop.py:RATE>FACTOR"),
        ("rename shop.RATE to FACTOR", "$shop.py:RATE>FACTOR"),
        (
            "The constant RATE should be named FACTOR",
            "$shop.py:RATE>FACTOR",
        ),
        (
            "`RATE` in shop.py should be renamed to `FACTOR`",
            "$shop.py:RATE>FACTOR",
        ),
        ("rename LIMIT in other.py to MOST", "$other.py:LIMIT>MOST"),
        (
            "Rename the constant `LIMIT` of the module shop.py to `MOST`",
            "$shop.py:LIMIT>MOST",
        ),
        ("delete the constant RATE", "-$shop.py:RATE"),
        ("Delete `RATE`.", "-$shop.py:RATE"),
        ("remove LIMIT from other.py", "-$other.py:LIMIT"),
        ("rename twice in other.py to thrice", "twice>thrice"),
        (
            "Rename the method `size` of `Cart` to `count`",
            "Cart.size>count",
        ),
        (
            "Rename `Cart`'s method `size` to `count`",
            "Cart.size>count",
        ),
        ("rename the file shop.py to store.py", "@shop.py>store.py"),
        ("Rename `shop.py` to `store.py`", "@shop.py>store.py"),
        ("delete other.py", "-@other.py"),
    ] {
        assert_eq!(stated(task), expected, "{task}");
    }
}

#[test]
fn name_without_exactly_one_definition_is_treated_as_a_plain_word() {
    for (task, expected) in [
        ("Rename `best_before` to `use_by`", "?best_before>use_by"),
        ("rename best_before to use_by", "?best_before>use_by"),
        (
            "Rename the attribute `best_before` of `Cart` to `use_by`",
            "?best_before(shop.py::Cart)>use_by",
        ),
        (
            "Rename the option `--gap` of shop to `--pause`",
            "?--gap>--pause",
        ),
        ("rename total's parameter x to y", "?x(shop.py::total)>y"),
        (
            "rename the parameter x of total to y",
            "?x(shop.py::total)>y",
        ),
        ("rename twice to thrice", "?twice>thrice"),
        ("rename LIMIT to MOST", "?LIMIT>MOST"),
        ("Rename `rate` to `factor`", "?rate>factor"),
        ("Rename `Basket.size` to `count`", "?size>count"),
        ("Rename the column `who` to `guest`", "?who>guest"),
        (
            "Rename the enum member `Cart.best_before` to `Cart.use_by`",
            "?best_before>use_by",
        ),
        (
            "Rename the class attribute best_before to use_by",
            "?best_before>use_by",
        ),
        ("Delete the attribute best_before", "-?best_before"),
        ("remove the parameter x of total", "-?x(shop.py::total)"),
        ("remove the x parameter of total", "-?x(shop.py::total)"),
    ] {
        assert_eq!(stated(task), expected, "{task}");
    }
}

#[test]
fn name_missing_in_the_project_leaves_the_other_requests_of_a_sentence() {
    for (task, expected, missing) in [
        (
            "Delete `nothing_here` and `relic`.",
            "-relic",
            "nothing_here",
        ),
        (
            "Delete `relic` and `nothing_here`.",
            "-relic",
            "nothing_here",
        ),
        (
            "Rename `total` to `sum_up` and `nothing_here` to `other`",
            "total>sum_up",
            "nothing_here",
        ),
        ("Remove nothing_here and total from the list", "", ""),
        ("Delete `nothing_here`", "", ""),
    ] {
        assert_eq!(stated(task), expected, "{task}");
        let absent = of(&lookup(), task).absent;
        let absent: Vec<&str> = absent.iter().map(|one| one.written.as_str()).collect();
        assert_eq!(absent.join(" "), missing, "{task}");
    }
}

#[test]
fn name_missing_in_the_project_is_reported_with_the_most_similar_name() {
    let told = |all: Vec<absent::AbsentName>| {
        let all: Vec<String> = all.iter().map(absent::AbsentName::in_words).collect();
        all.join(" | ")
    };
    for (task, expected) in [
        (
            "Rename `totl` to `sum_up`",
            "there is no `totl`; nearest: `total`",
        ),
        ("Delete `relik()`.", "there is no `relik`; nearest: `relic`"),
        (
            "Rename Cart.sizes to count",
            "there is no `Cart.sizes`; nearest: `Cart.size`",
        ),
        (
            "Rename Kart.size to count",
            "there is no `Kart.size`; nearest: `Cart.size`",
        ),
        (
            "Rename far_away_name to near",
            "there is no `far_away_name`",
        ),
        ("Rename total to sum_up", ""),
        ("Rename shop.total to sum_up", ""),
        ("Rename the option `--gap` to `--pause`", ""),
        ("Rename `--gapp` to `--pause`", ""),
        ("Rename totl to sum", ""),
        ("Rename `totl` to `sum_up` and fix the failing tests", ""),
    ] {
        assert_eq!(told(absent::only(&lookup(), task)), expected, "{task}");
    }
    for (task, expected) in [
        (
            "Cart.sizes should never be negative",
            "there is no `Cart.sizes`; nearest: `Cart.size`",
        ),
        (
            "`totl` is wrong for empty carts",
            "there is no `totl`; nearest: `total`",
        ),
        (
            "Change the function twic_e so that it works",
            "there is no `twic_e`; nearest: `twice`",
        ),
        ("Add Cart.sizes, which returns all", ""),
        ("Extract a helper `totals` from total", ""),
        ("`pytest -q` fails, and `None` is returned", ""),
        ("Cart.size should never be negative", ""),
    ] {
        assert_eq!(
            told(absent::near_others(&lookup(), task)),
            expected,
            "{task}"
        );
    }
}

/// Replaces `old` by `new` in `shop.py` and returns the description of what remains to be done for
/// the task.
fn unmet_after(task: &str, old: &str, new: &str) -> Option<String> {
    let before = lookup();
    let file = FilePath::new("shop.py");
    let text = before.index().snapshot().read(&file).unwrap();
    assert!(text.contains(old), "{old}");
    let text = text.replace(old, new);
    let world = before.index().snapshot().with(file, Some(text.into()));
    let after = Lookup::new(world.clone(), Arc::new(Index::new(world)));
    let stated = of(&before, task);
    assert_eq!(stated.all.len(), 1, "{task}");
    unmet(&stated, &before, &after).pop()
}

#[test]
fn incomplete_rename_or_deletion_is_reported() {
    for (task, old, new, why) in [
        ("rename total to sum_up", "def total", "def sum_up", ""),
        (
            "rename total to sum_up",
            "x",
            "x",
            "`total` is still in shop.py",
        ),
        (
            "rename total to sum_up",
            "def total",
            "def all_of",
            "there is no `sum_up`",
        ),
        ("delete relic", "def relic", "def other", ""),
        ("delete relic", "x", "y", "`relic` is still in shop.py"),
        ("rename RATE to FACTOR", "RATE", "FACTOR", ""),
        (
            "rename RATE to FACTOR",
            "RATE",
            "rate",
            "there is no `FACTOR`",
        ),
        (
            "rename RATE to FACTOR",
            "total",
            "FACTOR",
            "`RATE` is still in shop.py",
        ),
        ("delete RATE", "RATE = 2", "", ""),
        ("delete RATE", "x", "y", "`RATE` is still in shop.py"),
        ("rename best_before to use_by", "best_before", "use_by", ""),
        (
            "rename best_before to use_by",
            "LIMIT = 1",
            "use_by = 1",
            "`best_before` is still at shop.py:18",
        ),
        (
            "rename best_before to use_by",
            "x",
            "y",
            "`best_before` is still there",
        ),
        (
            "rename `missing` to `found`",
            "x",
            "y",
            "there is no `found`",
        ),
        (
            "Rename the option `--gap` to `--pause`",
            "--gap",
            "--pause",
            "",
        ),
        (
            "Rename the option `--gap` to `--pause`",
            "x",
            "pause",
            "`--gap` is still there",
        ),
        ("remove the parameter x of total", "x", "y", ""),
        (
            "remove the parameter x of total",
            "relic",
            "x",
            "`x` is still a parameter of shop.py::total",
        ),
        (
            "rename shop.py to store.py",
            "x",
            "y",
            "`shop.py` is still there",
        ),
    ] {
        let why = (!why.is_empty()).then(|| why.to_owned());
        assert_eq!(unmet_after(task, old, new), why, "{task}: {old} -> {new}");
    }
}

/// Changes the files and returns the description of what remains to be done for the task.
fn unmet_between(task: &str, files: &[(&str, &str)], changes: &[(&str, &str)]) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path().to_owned()).unwrap();
    let world = |changes: &[(&str, &str)]| {
        let overlay: Overlay = files
            .iter()
            .chain(changes)
            .map(|(name, text)| (FilePath::new(*name), Some((*text).into())))
            .collect();
        let world = workspace.snapshot(overlay);
        Lookup::new(world.clone(), Arc::new(Index::new(world)))
    };
    let (before, after) = (world(&[]), world(changes));
    let stated = of(&before, task);
    assert_eq!(stated.all.len(), 1, "{task}");
    unmet(&stated, &before, &after).pop()
}

const NOTIFY: &str = "from abc import ABC, abstractmethod\n\n\nclass Notifier(ABC):\n    @abstractmethod\n    def \
                      can_reach(self):\n        ...\n\n\nclass Sms(Notifier):\n    def can_reach(self):\n        return True\n";

#[test]
fn use_of_the_old_name_of_a_renamed_method_is_reported() {
    let renamed = NOTIFY.replace("can_reach", "reaches");
    let half = NOTIFY.replacen("can_reach", "reaches", 1);
    let remind = "def remind(notifier):\n    return notifier.can_reach()\n";
    let followed = remind.replace("can_reach", "reaches");
    let files = [("notify.py", NOTIFY), ("reminders.py", remind)];
    let left = "`can_reach` is still used at reminders.py:2";
    for task in [
        "Rename the method `can_reach` of the notifiers to `reaches`, in all and where it is called.",
        "Rename `can_reach` to `reaches`",
        "Rename the method can_reach of Notifier and Sms to reaches",
        "Rename Notifier.can_reach to reaches",
    ] {
        let unmet = |changes: &[(&str, &str)]| unmet_between(task, &files, changes);
        let why = unmet(&[("notify.py", &renamed)]);
        assert_eq!(why.as_deref(), Some(left), "{task}");
        let all = [("notify.py", &*renamed), ("reminders.py", &followed)];
        assert_eq!(unmet(&all), None, "{task}");
        let why = unmet(&[("notify.py", &half), ("reminders.py", &followed)]);
        let is_half = "`can_reach` is still in notify.py:11";
        assert_eq!(why.as_deref(), Some(is_half), "{task}");
    }
    let mixin = "class Share:\n    def share(self):\n        return self.short()\n";
    let note =
        "from mixin import Share\n\n\nclass Note(Share):\n    def short(self):\n        return 1\n";
    let brief = note.replace("short", "brief");
    let why = unmet_between(
        "rename Note.short to brief",
        &[("mixin.py", mixin), ("note.py", note)],
        &[("note.py", &brief)],
    );
    assert_eq!(why.as_deref(), Some("`short` is still used at mixin.py:3"));
}

#[test]
fn use_that_may_belong_to_an_external_type_is_not_reported() {
    let store = "class Store:\n    def fetch_all(self):\n        return 1\n\n    def strip(self):\n        return 2\n";
    let user = "def f(text):\n    return text.strip(), text.fetch_all()\n";
    let foreign = format!("import requests\n\n\n{user}");
    let other = "class Other:\n    def fetch_all(self):\n        return 3\n";
    let strip = store.replace("strip", "peel");
    let fetch = store.replace("fetch_all", "load");
    for (task, user, more, changed) in [
        ("rename Store.strip to peel", user, "", &strip),
        ("rename Store.fetch_all to load", &foreign, "", &fetch),
        ("rename Store.fetch_all to load", user, other, &fetch),
        (
            "rename Store.fetch_all to load",
            "f = print(text.fetch_all, **dict(fetch_all=1))\n",
            "",
            &fetch,
        ),
    ] {
        let files = [("store.py", store), ("user.py", user), ("other.py", more)];
        let why = unmet_between(task, &files, &[("store.py", changed)]);
        assert_eq!(why, None, "{task}: {user}");
    }
}

#[test]
fn old_parameter_name_in_a_stub_file_is_reported() {
    let stats = "def variance(xs, ddof=0):\n    return len(xs) - ddof\n";
    let stub = "def variance(xs: list[float], ddof: int = ...) -> float: ...\n";
    let files = [("stats.py", stats), ("stats.pyi", stub)];
    let renamed = stats.replace("ddof", "dof");
    let stub_too = stub.replace("ddof", "dof");
    for task in [
        "Rename the parameter `ddof` of variance to `dof` everywhere",
        "Rename the parameter ddof to dof everywhere",
    ] {
        let why = unmet_between(task, &files, &[("stats.py", &renamed)]);
        assert_eq!(
            why.as_deref(),
            Some("`ddof` is still in stats.pyi"),
            "{task}"
        );
        let both = [("stats.py", &*renamed), ("stats.pyi", &stub_too)];
        assert_eq!(unmet_between(task, &files, &both), None, "{task}");
    }
}

const STORE: &str = "SCHEMA = \"\"\"\nCREATE TABLE bookings (id INTEGER, who TEXT);\nCREATE TABLE members (who TEXT);\n\"\"\"\n\n\n\
                     def add(db, who):\n    db.execute(\"INSERT INTO bookings (who) VALUES (?)\", (who,))\n\n\n\
                     def search(db, who):\n    return db.execute(\"SELECT * FROM bookings WHERE who LIKE ?\", who)\n\n\n\
                     def member(db, who):\n    \"\"\"SELECT who FROM bookings\"\"\"\n    return db.execute(\"SELECT who FROM members\"), {\"who\": who}\n";

#[test]
fn string_with_the_old_name_of_a_renamed_column_or_option_is_reported() {
    let half = STORE
        .replace("id INTEGER, who", "id INTEGER, guest")
        .replace("(who) VALUES", "(guest) VALUES");
    let all = half.replace("WHERE who", "WHERE guest");
    let files = [("store.py", STORE)];
    for task in [
        "Rename the column who of the table bookings to guest (the API keeps 'who')",
        "Rename the column `who` to `guest`",
        "Rename `who` to `guest`",
    ] {
        let unmet = |text: &str| unmet_between(task, &files, &[("store.py", text)]);
        let left = "`who` is still at store.py:12";
        assert_eq!(unmet(&half).as_deref(), Some(left), "{task}");
        assert_eq!(unmet(&all), None, "{task}");
    }
    let options = "p.add_argument('--gap', help='see --gap')\nrun(['x', '--gap'])\n";
    let half = options.replacen("'--gap'", "'--pause'", 1);
    let why = unmet_between(
        "Rename the option `--gap` to `--pause`",
        &[("cli.py", options)],
        &[("cli.py", &half)],
    );
    assert_eq!(why.as_deref(), Some("`--gap` is still at cli.py:2"));
}

const CONVERTERS: &str = "class Base:\n    extensions = ()\n\n\nclass Csv(Base):\n    extensions = ('.csv',)\n\n\n\
                          class Yaml(Base):\n    extensions = ('.yaml',)\n\n\nclass Text:\n    pass\n\n\n\
                          def register(name):\n    def wrap(cls):\n        return cls\n\n    return wrap\n";

#[test]
fn name_may_stay_where_the_task_says_to_keep_it() {
    let without = |classes: &[&str]| {
        // Other code may get the name.
        let mut text = CONVERTERS.replace("register(name)", "register(name, *extensions)");
        text = text.replace(
            "        return cls\n",
            "        cls.extensions = extensions\n        return cls\n",
        );
        for class in classes {
            text = text.replace(&format!("    extensions = ('.{class}',)\n"), "    pass\n");
        }
        text
    };
    let files = [("converters.py", CONVERTERS)];
    let unmet = |task: &str, text: &str| unmet_between(task, &files, &[("converters.py", text)]);
    let left = Some("`extensions` is still there".to_owned());
    for task in [
        "Remove the class attributes `extensions` from the two converters; keep the attribute on the base class.",
        "Remove the class attribute extensions from the converters. It stays in Base.",
        "Remove the attribute `extensions`, but keep it in Base",
        "Remove the attribute `extensions` from converters.py; only Base keeps it",
        "Remove the attribute `extensions` everywhere except in Base. `extensions` stays there.",
        "Remove the attribute `extensions` from Csv and Yaml; keep it on the base class.",
        "Remove the attribute `extensions` from the classes Csv, Yaml and Text; Base keeps its own.",
    ] {
        assert_eq!(unmet(task, &without(&["csv", "yaml"])), None, "{task}");
        assert_eq!(unmet(task, CONVERTERS), left, "{task}");
    }
    let task = "Remove the attribute `extensions` from the abstract base class Base, because register sets it.";
    assert_eq!(unmet(task, &without(&["csv", "yaml"])), left);
    let base = CONVERTERS.replace("    extensions = ()\n", "    pass\n");
    assert_eq!(unmet(task, &base), None);
    let task = "Remove the attribute `extensions` from the base class";
    assert_eq!(unmet(task, &base), None);
    for task in [
        "Remove the attribute `extensions` from Csv and Yaml; keep it on the base class.",
        "Remove the attribute `extensions` of Csv and Yaml",
        "Remove the attribute `extensions` everywhere; keep the tests green",
        "Remove the attribute `extensions` everywhere and do not keep it in Base",
    ] {
        assert_eq!(unmet(task, &without(&["csv"])), left, "{task}");
    }
}
