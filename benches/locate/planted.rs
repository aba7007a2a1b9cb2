use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use starling_core::{TestRequest, TestRunner};
use starling_index::Index;
use starling_runner::{ProjectTests, TestSettings};
use starling_sandbox::{Policy, Shadows};
use starling_swarm::TestEvidence;
use starling_syntax::{FilePath, SymbolTree};
use starling_workspace::{Overlay, Workspace};

use crate::string;

const DEADLINE: Duration = Duration::from_secs(60);

pub fn print(planted: &[Value], projects: &Path, cache: &Path, python: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for bug in planted {
        let row = runtime.block_on(row_of(bug, projects, cache, python));
        println!("{row}");
    }
}

async fn row_of(bug: &Value, projects: &Path, cache: &Path, python: &Path) -> Value {
    let root = projects
        .join(string(bug, "project"))
        .canonicalize()
        .expect("exists");
    let file = FilePath::new(string(bug, "file"));
    let text = string(bug, "text");
    let overlay = Overlay::from([(file.clone(), Some(text.into()))]);
    let snapshot = Workspace::open(root).expect("opens").snapshot(overlay);
    let index = Index::open(snapshot.clone(), cache.join("index"));
    let shadows = Shadows::open(cache, Policy::default())
        .await
        .expect("shadows");
    let settings = TestSettings {
        python: Some(python.to_owned()),
        ..TestSettings::default()
    };
    let tests = ProjectTests::detect(&snapshot, shadows, settings).await;
    let test = string(bug, "test");
    let request = |select: &str| TestRequest {
        overlay: vec![(file.clone(), Some(text.as_bytes().into()))],
        select: vec![select.to_owned()],
        deadline: DEADLINE,
    };
    let report = tests.run(request(test)).await;
    let details = match TestEvidence::compare(&BTreeSet::new(), &report) {
        TestEvidence::Known {
            command, details, ..
        } => format!("{command}\n{details}"),
        TestEvidence::Unknown { reason } => panic!("{reason}"),
    };
    let task = format!("{test} fails\n{details}\n");
    let failing = BTreeSet::from([test.to_owned()]);
    let test_file = test.split("::").next().unwrap();
    let executions = tests.record(request(test_file), &failing).await;
    let mut trees: BTreeMap<FilePath, SymbolTree> = BTreeMap::new();
    let mut symbol = |file: &FilePath, line: u32| {
        let tree = trees.entry(file.clone()).or_insert_with(|| {
            let text = snapshot.read(file).expect("readable");
            SymbolTree::parse(file.clone(), text)
        });
        tree.at_line(line).path.to_string()
    };
    let line = u32::try_from(bug["line"].as_u64().unwrap()).unwrap();
    let gold = symbol(&file, line);
    let failed = executions.failing.first();
    let mut ran: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (file, line) in failed.iter().flat_map(|one| &one.lines) {
        let count = executions.passing.get(&(file.clone(), *line));
        let path = symbol(file, *line);
        ran.entry(path)
            .or_default()
            .push(count.copied().unwrap_or_default());
    }
    let frames: Vec<String> = failed
        .iter()
        .flat_map(|one| &one.frames)
        .map(|one| symbol(&one.file, one.line))
        .collect();
    let count = executions.passed;
    let located: Vec<Value> = index
        .locate(&task, 500)
        .into_iter()
        .map(|one| {
            serde_json::json!([
                one.symbol.to_string(),
                one.score,
                starling_index::is_test_file(&one.symbol.file)
            ])
        })
        .collect();
    let files: Vec<String> = index
        .locate_files(&task, 20)
        .into_iter()
        .map(|one| one.file.to_string())
        .collect();
    serde_json::json!({"project": bug["project"], "gold": gold, "test": test, "ran": ran, "frames": frames, "count": count, "located": located, "files": files, "task": task, "operator": bug["operator"]})
}
