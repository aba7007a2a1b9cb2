use super::*;

fn excerpt() -> Excerpt {
    Excerpt {
        symbol: "a.py::f".into(),
        line: 3,
        why: "named".into(),
        source: "def f(): pass\n".into(),
        uses: vec!["b.py:4 (g): f()".into()],
    }
}

#[test]
fn every_prompt_template_renders_with_its_struct() {
    let fixed = [
        AgentSystem {}.render(),
        AgentSystemText {}.render(),
        AgentSystemSmall {}.render(),
        AgentSystemSmallExplain {}.render(),
        AnswerSystem {}.render(),
        AnswerSystemText {}.render(),
        AskOwnerSystem {}.render(),
        AskSystem {}.render(),
        AskSystemSmall {}.render(),
        AskSystemText {}.render(),
        DocumentSystemSmall {}.render(),
        EditorSystem {}.render(),
        ProxySystem {}.render(),
        ScoutSystem {}.render(),
        ScoutSystemText {}.render(),
        SoloSystem {}.render(),
        SoloSystemText {}.render(),
        TestSystemSmall {}.render(),
        VerifySystem {}.render(),
    ];
    assert!(fixed.iter().all(|text| text.len() > 80), "{fixed:?}");
    let task = TaskPrompt {
        task: "T <b>&".into(),
        python: "3.9".into(),
        rules: "R".into(),
        failures: "F".into(),
        values: "a.py:1 in f: x = 1".into(),
        test_is_needed: true,
        other_failures: "t8, t9".into(),
        examples: "total([1])\n-> TypeError: no".into(),
        not_there: "there is no N".into(),
        method_families: "`m` is defined as a.py::A.m".into(),
    }
    .render();
    assert!(
        task.contains("T <b>&"),
        "prompts are plain text, nothing is escaped: {task}"
    );
    assert!(task.contains("with Python 3.9.\n"), "{task}");
    assert!(
        task.contains("fails without it and passes with it"),
        "{task}"
    );
    assert!(task.contains("leave them as they are: t8, t9\n"), "{task}");
    assert!(
        task.contains("<values>\na.py:1 in f: x = 1\n</values>\n"),
        "{task}"
    );
    assert!(task.contains("\n`m` is defined as a.py::A.m\n"), "{task}");
    let symbol = SymbolPrompt {
        symbol: "a.py::f".into(),
        kind: "function".into(),
        language: "python".into(),
        line: 3,
        source: "def f(): pass\n".into(),
        shortened: true,
        outline: "3 def f()".into(),
        callers: vec!["b.py:4 (g): f()".into()],
        callees: vec![excerpt()],
        tests: vec![excerpt()],
        others: vec!["b.py::g: do it".into()],
        cause: "C".into(),
    };
    assert!(symbol.render().contains("def f(): pass"));
    let text = SymbolSmallPrompt {
        task: "T".into(),
        failures: vec!["`f()` must be `1`, but it is `2`.".into()],
        to_keep: vec!["def test_g(): assert g()".into()],
        cause: String::new(),
        explain: false,
        kind: "function".into(),
        language: "python".into(),
        source: "def f(): return 2".into(),
    };
    assert!(text.render().contains("def f(): return 2"));
    assert!(text.render().contains("def test_g(): assert g()"));
    let test = TestSmallPrompt {
        task: "T".into(),
        kind: "function".into(),
        name: "f".into(),
        source: "def f(): return 2".into(),
        tests: "def test_g(): assert g()".into(),
        example: String::new(),
        base: String::new(),
    };
    let in_class = TestSmallPrompt {
        tests: String::new(),
        example: "class TestG(TestCase):".into(),
        base: "TestCase".into(),
        ..test.clone()
    };
    let in_class = in_class.render();
    assert!(
        in_class.contains("A test of this project:\n```python\nclass TestG(TestCase):")
            && in_class.contains("a method of a class that extends `TestCase`"),
        "{in_class}"
    );
    let test = test.render();
    assert!(!test.contains("extends"), "{test}");
    assert!(
        test.contains("The function `f`:") && test.contains("def test_g()"),
        "{test}"
    );
    let document = DocumentSmallPrompt {
        task: "T".into(),
        file: "README.md".into(),
        source: "# f".into(),
    };
    assert!(document.render().contains("````\n# f\n````"));
    for kind in [
        "picked",
        "change_request",
        "follow_up",
        "failed_tests",
        "problems",
        "steered",
        "declined",
    ] {
        let cause = CausePrompt {
            kind,
            from: "b.py::g".into(),
            text: "because".into(),
            ..CausePrompt::default()
        };
        assert!(cause.render().len() > 8, "{kind}");
    }
    assert!(
        ScoutPrompt {
            candidates: vec![excerpt()],
            imports: "a.py has:\nimport os".into(),
        }
        .render()
        .contains("a.py::f")
    );
    assert!(
        SoloPrompt {
            candidates: vec![excerpt()],
            imports: "a.py has:\nimport os".into(),
            cause: "C".into()
        }
        .render()
        .contains("a.py::f")
    );
    let proxy = ProxyPrompt {
        task: "T".into(),
        symbol: "a.py::f".into(),
        symbols: vec!["a.py::f".into(), "b.py::g".into()],
        reason: "R".into(),
        diff: "D".into(),
        evidence: "E".into(),
        accepted: String::new(),
        others: vec!["b.py::g".into()],
    };
    let head = "Proposal for `a.py::f`, `b.py::g`\n";
    assert!(proxy.render().contains(head), "{}", proxy.render());
    let editor = EditorPrompt {
        symbol: "a.py::f".into(),
        language: "python".into(),
        source: "S".into(),
        change: "C".into(),
        task: "T".into(),
    };
    assert!(editor.render().contains('S'));
}

#[test]
fn prompts_for_answering_questions_render() {
    let ask = AskPrompt {
        question: "Where is it?".into(),
        excerpts: vec!["a.py `a.py::f` lines 3-4\n    3 def f(): pass\n".into()],
        others: vec!["b.py::g".into()],
        uses: vec![("f".into(), "b.py:9 (g) f()".into())],
        map: "M".into(),
        files: "2 files".into(),
        turns: vec![AskTurn {
            question: "Before?".into(),
            answer: "Yes.".into(),
        }],
        findings: vec!["a.py::f, asked \"x\": y".into()],
        small: true,
    };
    insta::assert_snapshot!(ask.render());
    let owner = AskOwnerPrompt {
        symbol: "a.py::f".into(),
        source: "    3 def f(): pass\n".into(),
        uses: "b.py:9 (g) f()".into(),
        question: "What does it do?".into(),
        why: "it is called".into(),
    };
    insta::assert_snapshot!(owner.render());
    let mend = AskMendPrompt {
        claims: vec![RejectedClaim {
            claim: "`f` is fast [a.py:99].".into(),
            what: "a.py has 4 lines, no line 99".into(),
        }],
    };
    insta::assert_snapshot!(mend.render());
}

#[test]
fn rendering_fails_if_a_template_field_is_missing() {
    let template = TEMPLATES.get_template("task.md").expect("template");
    assert!(
        template
            .render(minijinja::context! { task => "T" })
            .is_err()
    );
}

#[test]
fn every_file_in_the_prompts_directory_is_a_known_template() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../prompts");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("prompts/")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    files.sort();
    let mut known: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(files, known);
}

#[test]
fn cause_prompt_contains_the_sender_reason_and_changed_lines() {
    let said = |kind, text: &str| {
        let cause = CausePrompt {
            kind,
            from: "b.py::g".into(),
            text: text.into(),
            changes: vec!["parameter \"y\" added".into(), "returns a list".into()],
            lines: vec![3, 7],
        };
        cause.render()
    };
    let follow_up = said("follow_up", "It is now: def g(x, y)");
    assert!(follow_up.contains("parameter \"y\" added; returns a list"));
    assert!(follow_up.contains("at line 3, 7"), "{follow_up}");
    assert_eq!(said("steered", "faster"), "The user says: faster\n");
    let declined = said("declined", "1 is right");
    assert!(declined.starts_with("b.py::g declines the change that you asked for: 1 is right\n"));
    let silent = said("declined", "");
    assert!(
        silent.starts_with("b.py::g declines the change that you asked for\n"),
        "{silent}"
    );
}

#[test]
fn continuation_prompt_quotes_the_end_of_the_cut_answer() {
    let ask = |whole_line| {
        let prompt = ContinueTextPrompt {
            quote: "def f({{ x }}):\n    return <".into(),
            whole_line,
        };
        prompt.render()
    };
    let middle = ask(false);
    assert!(
        middle.contains("\n<end>\ndef f({{ x }}):\n    return <\n</end>\n"),
        "{middle}"
    );
    assert!(middle.contains("exactly the next character"), "{middle}");
    assert!(
        ask(true).contains("Go on with the next line. Repeat nothing"),
        "{}",
        ask(true)
    );
    let call = ContinueCallPrompt {
        name: "propose".into(),
        quote: "{\"source\": \"def".into(),
    };
    let call = call.render();
    assert!(
        call.starts_with("Your call of the tool propose was cut off"),
        "{call}"
    );
    assert!(call.contains("{\"source\": \"def\n</end>"), "{call}");
}

#[test]
fn verifier_prompt_contains_the_problem_and_the_patch() {
    let prompt = VerifyPrompt {
        problem: "It breaks.".into(),
        patch: "+mended".into(),
    };
    let text = prompt.render();
    assert!(
        text.contains("It breaks.") && text.contains("+mended"),
        "{text}"
    );
}
