use std::path::PathBuf;

use serde_json::json;

use super::*;

/// Creates the output of a run with one solved instance that has a recorded trajectory, and one
/// failed instance.
fn out() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_owned();
    let spent = json!({
        "calls": 2, "prompt_tokens": 1000, "cached_tokens": 0, "output_tokens": 50, "dollars": 0.25,
        "seconds": 3.0, "waiting_seconds": 0.0, "messages": 1, "agents": 2,
    });
    let solved = json!({
        "instance_id": "a__b-1", "outcome": "finished", "run": "r", "stop_reason": {"reason": "settled"},
        "applied": ["a.py::f"], "patch": "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x < 1\n+x <= 1\n",
        "spent": spent, "summary": "", "seconds": 4.0,
    });
    let failed = json!({"instance_id": "a__b-2", "outcome": "failed", "why": "<script>alert(1)</script>", "seconds": 1.0});
    let agent = |name: &str| json!({"agent": format!("a.py::{name}")});
    let events = [
        json!({"event": "agent_woken", "agent": agent("f"), "cause": {"cause": "picked", "why": "w"}}),
        json!({"event": "asked", "question": 1, "from": agent("f"), "to": agent("g"), "text": "Is 1 < 2 & \"so\"?"}),
        json!({"event": "proposal_applied", "proposal": 1, "symbols": ["a.py::f"], "diff": ""}),
    ];
    for (record, events) in [(&solved, &events[..]), (&failed, &[])] {
        let folder = out
            .join("instances")
            .join(record["instance_id"].as_str().unwrap());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("result.json"), record.to_string()).unwrap();
        let line = |(seq, event)| format!("{}\n", json!({"seq": seq, "at_ms": 5, "event": event}));
        let story: String = events.iter().enumerate().map(line).collect();
        if !events.is_empty() {
            fs::write(folder.join("trajectory.jsonl"), story).unwrap();
        }
    }
    let settings = json!({"dataset": "set.jsonl", "driver": "swarm", "model": "oracle"});
    fs::write(out.join("run.json"), settings.to_string()).unwrap();
    (dir, out)
}

#[test]
fn report_table_links_to_the_page_of_each_instance() {
    let (_dir, out) = out();
    write(&out).unwrap();
    let table = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(table.contains("<h1>2 instances</h1>"));
    assert!(table.contains("<p>set.jsonl by oracle (swarm)</p>"));
    assert!(table.contains("1 settled"));
    assert!(table.contains("href=\"instances/a__b-1/index.html\""));
    assert_eq!(table.matches("<tr><td>").count(), 2);
    let page = fs::read_to_string(out.join("instances/a__b-1/index.html")).unwrap();
    assert!(
        page.contains("aria-label=\"2 agents, 1 messages\""),
        "{page}"
    );
    assert!(page.contains("class=\"good node\""), "{page}");
    assert!(
        page.contains("<span class=\"good\">+x &lt;= 1</span>"),
        "{page}"
    );
    assert!(page.contains("Is 1 &lt; 2 &amp; &quot;so&quot;?"), "{page}");
}

#[test]
fn text_of_a_run_is_escaped_in_the_html_report() {
    let (_dir, out) = out();
    write(&out).unwrap();
    for page in ["report.html", "instances/a__b-2/index.html"] {
        let text = fs::read_to_string(out.join(page)).unwrap();
        assert!(!text.contains("<script>alert"), "{page}");
        assert!(text.contains("&lt;script&gt;alert"), "{page}");
        // The page loads nothing from the network.
        assert!(
            !text.contains("http://") && !text.contains("https://"),
            "{page}"
        );
    }
}

#[test]
fn large_numbers_have_thousands_separators() {
    for (number, text) in [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (4_353_916, "4,353,916"),
    ] {
        assert_eq!(grouped(number), text);
    }
}

#[test]
fn report_of_a_directory_without_a_run_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let error = write(dir.path()).unwrap_err();
    assert!(error.to_string().contains("instances"), "{error}");
}
