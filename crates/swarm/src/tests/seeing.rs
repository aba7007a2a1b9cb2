//! What the prompts of the scout and of the owners show: the code that the task is about and the
//! code related to it, and never an outdated text.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

fn shown(bed: &Bed) -> Vec<String> {
    let prompt = bed.model.prompts("scout").remove(0);
    let names = prompt.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix('`')?.split_once("` line ")?;
        Some(name.to_owned())
    });
    names.collect()
}

fn scouting(files: &[(&str, &str)], task: &str, first: &str) -> Bed {
    let model = Scripted::native()
        .on("scout", [wake(&[first])])
        .always("agent", finish("nothing"));
    let text = task.to_owned();
    Bed::new(files, model).with(|task| task.text = text)
}

/// A module that matches many words of the task. The error is raised in the other module,
/// [`QUIET`].
const LOUD: &str = "def total_of_cart(cart, rate):\n    return rate_of_cart(cart) * rate\n\n\n\
    def rate_of_cart(cart):\n    return cart.rate\n";
const QUIET: &str = "import json\n\n\nclass Reader:\n    def parse(self, raw):\n        return json.loads(raw)\n\n\n\
    def helper():\n    return 1\n";

#[tokio::test(start_paused = true)]
async fn innermost_project_function_of_a_traceback_is_the_first_candidate() {
    let task = "The total of a cart and the rate of a cart are wrong.\n\n\
        Traceback (most recent call last):\n  \
        File \"/home/me/app/loud.py\", line 2, in total_of_cart\n    return rate_of_cart(cart) * rate\n  \
        File \"/home/me/app/quiet.py\", line 99, in parse\n    return json.loads(raw)\n  \
        File \"/usr/lib/python3.12/json/__init__.py\", line 346, in loads\nJSONDecodeError: no\n";
    let mut bed = scouting(
        &[("loud.py", LOUD), ("quiet.py", QUIET)],
        task,
        "quiet.py::Reader.parse",
    );
    bed.run().await;
    assert_eq!(shown(&bed)[0], "quiet.py::Reader.parse");
    assert!(bed.model.prompts("scout")[0].contains("where a traceback ends in the project"));
}

#[tokio::test(start_paused = true)]
async fn innermost_project_function_of_a_failing_tests_traceback_is_the_first_candidate() {
    let message = "test_a.py:3: in test_x\n    total_of_cart(1, 2)\nloud.py:2: in total_of_cart\n    \
        return rate_of_cart(cart) * rate\nquiet.py:6: in parse\n    return json.loads(raw)\nE   ValueError";
    let files = [("loud.py", LOUD), ("quiet.py", QUIET)];
    let task = "The total of a cart and the rate of a cart are wrong.";
    let bed = scouting(&files, task, "quiet.py::Reader.parse");
    let mut bed = bed.tests(move |_| vec![("test_a.py::test_x".into(), message.to_owned())]);
    bed.run().await;
    assert_eq!(shown(&bed)[0], "quiet.py::Reader.parse");
}

#[tokio::test(start_paused = true)]
async fn symbol_that_a_snippet_of_the_task_imports_becomes_a_candidate() {
    let loud: String = (0..12)
        .map(|at| format!("def cart_total_{at}(cart, total):\n    return total\n\n\n"))
        .collect();
    let files = [("loud.py", loud.as_str()), ("pkg.py", QUIET)];
    let task =
        "The cart total is wrong: cart, total.\n\n```python\nfrom pkg import Reader, json\n```\n";
    let mut bed = scouting(&files, task, "pkg.py::Reader");
    bed.run().await;
    let names = shown(&bed);
    assert!(
        names.iter().any(|name| name == "pkg.py::Reader"),
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn callees_that_the_task_mentions_are_shown_and_others_are_not() {
    let text = "def total_of_cart(cart):\n    log_it(cart)\n    return apply_discount(cart) + Other()\n\n\n\
        def log_it(cart):\n    pass\n\n\nclass Other:\n    pass\n\n\ndef apply_discount(c):\n    return c.percent\n";
    let mut bed = scouting(
        &[("shop.py", text)],
        "`total_of_cart` forgets the discount",
        "shop.py::total_of_cart",
    );
    bed.run().await;
    let of_scout = &bed.model.prompts("scout")[0];
    assert!(
        of_scout.contains("`shop.py::apply_discount` line"),
        "{of_scout}"
    );
    let of_agent = &bed.model.prompts("agent")[0];
    assert!(
        of_agent
            .contains("What it calls:\nshop.py::apply_discount line 14:\ndef apply_discount(c):"),
        "{of_agent}"
    );
    assert!(!of_agent.contains("class Other:\n    pass"), "{of_agent}");
}

#[tokio::test(start_paused = true)]
async fn prompt_of_an_owner_lists_the_uses_of_its_symbol_with_lines() {
    let users: String = (0..20)
        .map(|at| format!("def user_{at}():\n    return fee({at})\n\n\n"))
        .collect();
    let files = [
        ("fees.py", "def fee(x):\n    return x\n"),
        ("users.py", &format!("from fees import fee\n\n\n{users}")),
    ];
    let model = Scripted::native().always("agent", finish("nothing"));
    let mut bed = Bed::new(&files, model).begin(&["fees.py::fee"]);
    bed.run().await;
    let prompt = &bed.model.prompts("agent")[0];
    assert!(
        prompt.contains("Where it is used:\nusers.py:5 (user_0): return fee(0)\n"),
        "{prompt}"
    );
    assert!(prompt.contains("\nand 8 more: `references`\n"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn callers_of_the_best_candidate_are_shown_if_the_task_is_about_parameters() {
    let files = [
        ("fees.py", "def late_fee(x):\n    return x\n"),
        (
            "users.py",
            "from fees import late_fee\n\n\ndef user():\n    return late_fee(1)\n",
        ),
    ];
    for (task, are_shown) in [
        ("late_fee needs a parameter `rate`", true),
        ("late_fee is wrong", false),
    ] {
        let mut bed = scouting(&files, task, "fees.py::late_fee");
        bed.run().await;
        let prompt = &bed.model.prompts("scout")[0];
        let line = "Where it is used:\nusers.py:5 (user): return late_fee(1)\n";
        assert_eq!(prompt.contains(line), are_shown, "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn nested_function_is_not_shown_again_if_its_outer_function_is_shown() {
    let text = "def cart_total(cart):\n    def cart_total_of_one(one):\n        return one\n    return cart_total_of_one(cart)\n";
    let mut bed = scouting(
        &[("shop.py", text)],
        "the cart total of one",
        "shop.py::cart_total",
    );
    bed.run().await;
    assert_eq!(shown(&bed), ["shop.py::cart_total"]);
}

#[tokio::test(start_paused = true)]
async fn candidates_beyond_the_prompt_size_limit_are_left_out() {
    let long = "    x = compute_total(x)\n".repeat(200);
    let text: String = (0..14)
        .map(|at| format!("def cart_total_{at}(x):\n{long}    return x\n\n\n"))
        .collect();
    let mut bed = scouting(
        &[("shop.py", &text)],
        "the cart total is wrong",
        "shop.py::cart_total_0",
    );
    bed.run().await;
    let prompt = &bed.model.prompts("scout")[0];
    assert!(!prompt.contains("shop.py::cart_total_13"), "{prompt}");
    assert!(prompt.len() < 4_800 * 7 / 2, "{}", prompt.len());
}

#[tokio::test(start_paused = true)]
async fn best_candidate_is_shown_with_its_properties_its_base_class_and_the_imports_of_its_file() {
    let text = "import codecs\nfrom bases import (\n    Body,  # the base\n)\n\n\n\
        class Response(Body):\n    def iter_content(self, unicode):\n        return self.raw(self.apparent_encoding)\n\n    \
        @property\n    def apparent_encoding(self):\n        return 'guess'\n\n    \
        @property\n    def unrelated(self):\n        return 1\n";
    let files = [
        ("models.py", text),
        (
            "bases.py",
            "class Body:\n    def raw(self, how):\n        return how\n",
        ),
    ];
    let task = "`iter_content` of Response ignores the encoding";
    let mut bed = scouting(&files, task, "models.py::Response.iter_content");
    bed.run().await;
    let prompt = &bed.model.prompts("scout")[0];
    let names = shown(&bed);
    assert_eq!(names[0], "models.py::Response.iter_content");
    assert!(
        prompt.contains("called by Response.iter_content"),
        "{prompt}"
    );
    assert!(
        names.contains(&"models.py::Response.apparent_encoding".to_owned()),
        "{names:?}"
    );
    assert!(prompt.contains("base of the class above"), "{prompt}");
    assert!(
        prompt.contains("models.py has:\nimport codecs\nfrom bases import (Body,)\n"),
        "{prompt}"
    );
}

#[tokio::test(start_paused = true)]
async fn prompt_shows_the_constructor_that_sets_an_attribute_used_by_the_best_candidate() {
    let task = "`order_rows` ignores the line break";
    for (set, is_shown) in [("pattern", true), ("other", false)] {
        let text = format!(
            "class Desk:\n    def __init__(self, kind):\n        self.{set} = kind('x')\n\n    \
             def order_rows(self, text):\n        return self.pattern.match(text)\n"
        );
        let others: String = (0..60)
            .map(|at| format!("def order_rows_{at}(rows):\n    # order_rows\n    return order_rows(rows)\n\n\n"))
            .collect();
        let files = [("desk.py", &*text), ("orders.py", &*others)];
        let mut bed = scouting(&files, task, "desk.py::Desk.order_rows");
        bed.run().await;
        let prompt = &bed.model.prompts("scout")[0];
        let is_told = prompt.contains("sets what the first uses");
        assert_eq!(is_told, is_shown, "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn scout_prompt_shows_the_imports_of_the_two_best_files() {
    let files = [
        (
            "a.py",
            "import json\n\n\ndef cart_total(cart):\n    return 1\n",
        ),
        (
            "b.py",
            "import codecs\n\n\ndef cart_total_late(cart):\n    return 2\n",
        ),
        ("c.py", "import zlib\n\n\ndef cart(total):\n    return 3\n"),
    ];
    let mut bed = scouting(
        &files,
        "cart_total and cart_total_late of a cart",
        "a.py::cart_total",
    );
    bed.run().await;
    let prompt = &bed.model.prompts("scout")[0];
    assert!(prompt.contains("a.py has:\nimport json\n"), "{prompt}");
    assert!(prompt.contains("b.py has:\nimport codecs\n"), "{prompt}");
    assert!(!prompt.contains("import zlib"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn candidates_in_example_files_come_last() {
    let own = "def cart_total(cart):\n    return 1\n";
    let dir = [("cart.py", own)];
    let mut bed = scouting(
        &dir,
        "cart_total of a cart, the cart total",
        "cart.py::cart_total",
    );
    std::fs::create_dir_all(bed.path("examples")).unwrap();
    let example = "def cart_total_of_cart(cart):\n    cart_total(cart)\n    return cart\n";
    std::fs::write(bed.path("examples/cart_total.py"), example).unwrap();
    bed.run().await;
    let names = shown(&bed);
    assert_eq!(names[0], "cart.py::cart_total");
    assert!(
        names[1..].iter().any(|name| name.starts_with("examples/")),
        "{names:?}"
    );
}

const TWO: &str = "def fee(x):\n    return x\n\n\ndef g(x):\n    return fee(x) + 1\n";

/// The scout drafts a change of `g` and of `fee`, and both are accepted. Because the signature of
/// `fee` changed, the owner of `g` is then started.
#[tokio::test(start_paused = true)]
async fn owner_of_a_caller_of_a_changed_function_is_shown_its_current_source() {
    let draft = call(
        "wake",
        json!({"symbols": [
            {"symbol": "a.py::g", "why": "counts twice", "source": "def g(x):\n    return fee(x) + 2\n"},
            {"symbol": "a.py::fee", "why": "needs y", "source": "def fee(x, y):\n    return x\n"},
        ]}),
    );
    let model = Scripted::native()
        .on("scout", [draft])
        .always("agent a.py::g", finish("nothing"));
    let mut bed = Bed::new(&[("a.py", TWO)], model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let prompts = bed.model.prompts("agent a.py::g");
    assert_eq!(prompts.len(), 1, "{prompts:?}");
    assert!(prompts[0].contains("return fee(x) + 2"), "{}", prompts[0]);
    assert!(!prompts[0].contains("return fee(x) + 1"), "{}", prompts[0]);
    assert!(
        prompts[0].contains("Accepted already, and part of the source above: counts twice\n"),
        "{}",
        prompts[0]
    );
}

#[tokio::test(start_paused = true)]
async fn owner_that_is_started_again_is_shown_its_current_source() {
    let model = Scripted::native()
        .on(
            "agent a.py::g",
            [
                whole("def g(x):\n    return fee(x) + 2\n"),
                finish("it fits"),
            ],
        )
        .on("agent a.py::fee", [whole("def fee(x, y):\n    return x\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::g", "a.py::fee"]);
    bed.run().await;
    let last = bed.model.prompts("agent a.py::g").pop().unwrap();
    let now = last.split("Your symbol as it is now:").nth(1).expect(&last);
    assert!(now.contains("return fee(x) + 2"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn prompt_of_the_model_that_reviews_for_the_user_names_all_accepted_changes() {
    let body = "    x = x + 1\n".repeat(1_200);
    let long = |result: &str| format!("def f(x):\n{body}    return {result}\n");
    let changed: String = long("x * 2").replace("x + 1", "x + 2");
    let text = format!(
        "{}\n\ndef g(x):\n    return x\n\n\ndef h(x):\n    return x\n",
        long("x")
    );
    let wake = call(
        "wake",
        json!({"symbols": [
            {"symbol": "a.py::f", "why": "counts by two", "source": changed},
            {"symbol": "a.py::g", "why": "of g", "source": "def g(x):\n    return 2\n"},
        ]}),
    );
    let change_h = call(
        "request_change",
        json!({"symbol": "a.py::h", "reason": "also h"}),
    );
    let model = Scripted::native()
        .on("scout", [wake])
        .on("proxy a.py::f", [say("ACCEPT")])
        .on(
            "proxy a.py::g",
            [say("STEER: ask h as well"), say("ACCEPT")],
        )
        .on("agent a.py::g", [change_h, finish("done")])
        .on("agent a.py::h", [whole("def h(x):\n    return 3\n")])
        .on("proxy a.py::h", [say("ACCEPT")]);
    let mut bed = Bed::new(&[("a.py", &text)], model).with(|task| task.approval = Approval::Proxy);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let prompt = &bed.model.prompts("proxy a.py::h")[0];
    assert!(prompt.contains("#1 a.py::f: counts by two\n"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn draft_of_the_scout_may_remove_comments_and_break_tests_if_it_declares_that_as_intended() {
    let text = "# Why it is so.\ndef f(x):\n    # and this\n    return x\n";
    let source = "def f(x):\n    return x + 1\n";
    let pick = |losses: bool| {
        json!({"symbols": [{
            "symbol": "a.py::f", "why": "r", "source": source, "intended_losses": losses, "insist": losses,
        }]})
    };
    let fails = |all: &str| match all.contains("x + 1") {
        true => vec![("t1".to_owned(), "AssertionError".to_owned())],
        false => Vec::new(),
    };
    for (losses, applied) in [(true, true), (false, false)] {
        let model = Scripted::native()
            .on("scout", [call("wake", pick(losses))])
            .always("agent", finish("no"));
        let mut bed = Bed::new(&[("a.py", text)], model)
            .tests(fails)
            .with(|task| task.approval = Approval::Ask);
        bed.run().await;
        assert_eq!(bed.read("a.py").contains("x + 1"), applied);
    }
}
