//! Tests do not see what models were asked and what they said.

use std::fs;
use std::process::Command;

use super::*;
use crate::workspace::{Confinement, Kind, Policy, private_directory};

/// All sandboxes that this system has.
async fn sandboxes(cache: &Path) -> Vec<Shadows> {
    let best = Shadows::open(cache, Policy::default()).await.unwrap();
    let mut all = vec![best.clone()];
    if best.kind() == Kind::Overlay {
        all.push(best.clone().copies("asked for"));
    }
    let has_bwrap = Command::new("bwrap").arg("--version").output().is_ok();
    if has_bwrap && best.confinement() != Some(Confinement::Bubblewrap) {
        all.push(best.confined_by(Confinement::Bubblewrap));
    }
    all
}

#[tokio::test]
async fn trajectories_and_the_index_are_hidden_from_tests() {
    // Not below `/tmp` or a home, which are hidden anyway.
    let program = std::env::current_exe().unwrap();
    let outside = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    fs::write(outside.path().join("letter.txt"), "dear\n").unwrap();
    let cache = outside.path().join("cache");
    for folder in ["runs", "index"] {
        private_directory(&cache.join(folder)).unwrap();
        fs::write(cache.join(folder).join("1.jsonl"), "exchange\n").unwrap();
    }
    let project = Project::new(&[("app.py", "x = 1\n")]);
    let line = format!(
        "cat '{0}/letter.txt'; cat '{0}/cache/runs/1.jsonl' '{0}/cache/index/1.jsonl' 2>/dev/null; \
         ls '{0}/cache/runs' '{0}/cache/index' 2>/dev/null; exit 0",
        outside.path().display()
    );
    for shadows in sandboxes(&cache).await {
        let what = format!("{:?} by {:?}", shadows.kind(), shadows.confinement());
        let settings = TestSettings {
            command: Some(line.clone()),
            ..TestSettings::default()
        };
        let snapshot = project.workspace.snapshot(Overlay::new());
        let tests = ProjectTests::detect(&snapshot, shadows, settings).await;
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(report.output, "dear\n", "{what}");
    }
}

#[tokio::test]
async fn values_of_secrets_are_not_in_a_report() {
    let project = Project::new(&[(".env", "API_TOKEN=q9w8e7r6t5\nMODE=production\n")]);
    let tests = project.tests(Some("cat .env; exit 1")).await;
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(report.output, "API_TOKEN=[secret]\nMODE=production\n");
}
