use super::*;

/// Writes a run with one instance for each answer.
fn run(root: &Path, name: &str, answers: &[(&str, &str)]) -> PathBuf {
    let out = root.join(name);
    for (id, answer) in answers {
        let folder = out.join("instances").join(id);
        fs::create_dir_all(&folder).unwrap();
        let record = json!({"instance_id": id, "outcome": "failed", "why": "w", "seconds": 1.0});
        fs::write(folder.join("result.json"), record.to_string()).unwrap();
        let reply = json!({
            "model": "m", "text": answer, "tool_calls": [{"id": name, "name": "wake", "arguments": "{}"}],
            "finish": "stop", "usage": {"prompt": 1, "cached": 0, "output": 1}, "cost": 0.0, "calls": 1,
        });
        let exchange = json!({
            "conversation": "scout", "role": "scout", "ordinal": 0, "tools": ["wake"], "reply": {"Ok": reply},
            "prompt": [{"role": "system", "text": "S"}, {"role": "user", "text": format!("mend {id}")}],
            "millis": 1,
        });
        let lines = [
            json!({"seq": 0, "at_ms": 0, "event": {"event": "unknown"}}),
            json!({"seq": 1, "at_ms": 1, "exchange": exchange}),
        ];
        let story: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.join("trajectory.jsonl"), story).unwrap();
    }
    let settings = json!({"dataset": "set.jsonl", "driver": "swarm", "model": name});
    fs::write(out.join("run.json"), settings.to_string()).unwrap();
    out
}

fn graded(resolved: &[&str], unresolved: &[&str]) -> Option<Graded> {
    let named = |id: &&str| json!({"instance_id": id, "why": "w"});
    let unresolved: Vec<Value> = unresolved.iter().map(named).collect();
    let text = json!({"resolved": resolved, "unresolved": unresolved, "errors": []});
    Some(serde_json::from_value(text).unwrap())
}

fn export(format: Format, sources: Vec<RunSource>) -> Export {
    Export {
        format,
        sources,
        split: "train".into(),
        held_out: BTreeSet::new(),
        measuring: HeldOutPolicy::Refused,
    }
}

#[test]
fn each_resolved_conversation_is_exported_once() {
    let dir = tempfile::tempdir().unwrap();
    let one = run(
        dir.path(),
        "one",
        &[("a__b-1", "yes"), ("a__b-2", "no"), ("a__b-3", "?")],
    );
    let two = run(
        dir.path(),
        "two",
        &[("a__b-1", "yes"), ("a__b-2", "better")],
    );
    let sources = vec![
        RunSource {
            root: one,
            graded: graded(&["a__b-1"], &["a__b-2"]),
        },
        RunSource {
            root: two,
            graded: graded(&["a__b-1", "a__b-2"], &[]),
        },
    ];
    let sft = export(Format::Sft, sources.clone()).lines().unwrap();
    // Examples that differ only in the ids of tool calls are equal.
    assert_eq!(
        (sft.lines.len(), sft.duplicates, sft.other_outcomes),
        (2, 1, 2)
    );
    let line = &sft.lines[0];
    assert_eq!(line["split"], "train");
    assert_eq!(line["role"], "scout");
    assert_eq!(line["messages"][1]["content"], "mend a__b-1");
    assert_eq!(
        line["messages"][2]["tool_calls"][0]["function"]["name"],
        "wake"
    );
    assert_eq!(line["tools"][0]["function"]["name"], "wake");
    assert_eq!(sft.lines[1]["model"], "two");

    let pairs = export(Format::Preferences, sources.clone())
        .lines()
        .unwrap();
    assert_eq!(pairs.lines.len(), 1);
    let pair = &pairs.lines[0];
    assert_eq!(pair["instance_id"], "a__b-2");
    assert_eq!(pair["prompt"].as_array().unwrap().len(), 2);
    assert_eq!(pair["chosen"][0]["content"], "better");
    assert_eq!(pair["rejected"][0]["content"], "no");

    let raw = export(Format::Raw, sources).lines().unwrap();
    assert_eq!(raw.lines.len(), 5);
    assert_eq!(raw.lines[2]["outcome"], "ungraded");
    assert_eq!(raw.lines[0]["exchanges"][0]["conversation"], "scout");
}

#[test]
fn held_out_instances_are_exported_only_if_explicitly_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let root = run(dir.path(), "one", &[("a__b-1", "yes")]);
    let ungraded = vec![RunSource {
        root: root.clone(),
        graded: None,
    }];
    let error = export(Format::Sft, ungraded).lines().unwrap_err();
    assert!(matches!(error, ExportError::Ungraded(_)), "{error}");
    let source = vec![RunSource {
        root,
        graded: graded(&["a__b-1"], &[]),
    }];
    let mut wanted = export(Format::Sft, source);
    wanted.held_out = ["a__b-1".to_owned()].into();
    let error = wanted.lines().unwrap_err().to_string();
    assert!(
        error.contains("1 instances are held out for evaluation, for example a__b-1"),
        "{error}"
    );
    wanted.held_out.clear();
    wanted.split = "Test".into();
    let error = wanted.lines().unwrap_err().to_string();
    assert!(
        error.contains("the split Test is reserved for evaluation"),
        "{error}"
    );
    wanted.measuring = HeldOutPolicy::Allowed;
    assert_eq!(wanted.lines().unwrap().lines[0]["split"], "Test");
}

#[test]
fn invalid_grades_file_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.json");
    fs::write(&path, "[]").unwrap();
    let error = Graded::read(&path).unwrap_err().to_string();
    assert!(error.contains("grade --json"), "{error}");
}
