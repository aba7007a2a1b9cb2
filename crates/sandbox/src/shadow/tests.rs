use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use super::*;
use starling_workspace::Workspace;

const LONG: Duration = Duration::from_secs(60);

/// A temporary project tree for commands.
struct Fixture {
    dir: tempfile::TempDir,
    root: PathBuf,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("the root, with: odd name");
    fs::create_dir_all(root.join("pkg")).unwrap();
    for (path, text) in [
        ("pkg/a.py", "disk"),
        ("gone.py", "g"),
        ("run.sh", "#!/bin/sh\n"),
    ] {
        fs::write(root.join(path), text).unwrap();
    }
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join(".git/index"), "index").unwrap();
    let root = Workspace::open(root).unwrap().root().to_owned();
    Fixture { dir, root }
}

/// Returns shadows that are overlays, if this system supports them, and shadows that are copies.
async fn kinds(fixture: &Fixture) -> Vec<Shadows> {
    let shadows = Shadows::open(&fixture.dir.path().join("cache"), Policy::default())
        .await
        .unwrap();
    let copies = shadows.clone().copies("asked for");
    match shadows.kind() {
        Kind::Overlay => vec![shadows, copies],
        Kind::Copy => vec![copies],
    }
}

fn command(line: &str) -> ShadowCommand {
    ShadowCommand {
        line: line.into(),
        environment: std::env::vars_os().collect(),
        keep: Vec::new(),
        deadline: LONG,
        output_cap: 10_000,
    }
}

fn overlay() -> FileContents {
    FileContents::from([
        (FilePath::new("pkg/a.py"), Some("buffer".as_bytes().into())),
        (FilePath::new("new/b.py"), Some("new".as_bytes().into())),
        (FilePath::new("gone.py"), None),
    ])
}

/// Returns every path below `root` with its times, mode and content.
fn state(root: &Path) -> BTreeMap<PathBuf, (i64, i64, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .build()
    {
        let path = entry.unwrap().into_path();
        let of = path.metadata().unwrap();
        let bytes = fs::read(&path).unwrap_or_default();
        found.insert(path, (of.mtime(), of.mtime_nsec(), of.mode(), bytes));
    }
    found
}

#[tokio::test]
async fn command_sees_the_overlay_texts_in_place_of_the_files_on_disk() {
    let fixture = fixture();
    for shadows in kinds(&fixture).await {
        let line = "cat pkg/a.py new/b.py run.sh; test -e gone.py || echo no gone.py; pwd";
        let done = shadows
            .run(&fixture.root, &overlay(), &command(line))
            .await
            .unwrap();
        let expected = format!(
            "buffernew#!/bin/sh\nno gone.py\n{}\n",
            fixture.root.display()
        );
        assert_eq!((done.end, done.output), (End::Exited(0), expected));
    }
}

#[tokio::test]
async fn command_cannot_modify_the_project() {
    let fixture = fixture();
    let before = state(&fixture.root);
    for shadows in kinds(&fixture).await {
        let root = fixture.root.display();
        let line = format!(
            "echo x > made; rm -rf pkg; touch run.sh; chmod 777 run.sh; echo y > '{root}/gone.py'; \
             mkdir -p .git && echo z > .git/index; umount '{root}' 2>/dev/null; echo x > '{root}/made2'; cat made made2"
        );
        let done = shadows
            .run(&fixture.root, &overlay(), &command(&line))
            .await
            .unwrap();
        assert_eq!((done.end, &*done.output), (End::Exited(0), "x\nx\n"));
        assert_eq!(state(&fixture.root), before, "{:?}", shadows.kind());
    }
    let shadows = fixture.dir.path().join("cache/shadows");
    assert_eq!(fs::read_dir(shadows).unwrap().count(), 0);
}

#[tokio::test]
async fn command_keeps_the_user_id_and_default_signal_handling() {
    let fixture = fixture();
    for shadows in kinds(&fixture).await {
        let run = async |line| {
            let (overlay, command) = (FileContents::new(), command(line));
            let run = shadows.run(&fixture.root, &overlay, &command);
            run.await.unwrap()
        };
        let user = rustix::process::getuid().as_raw().to_string();
        assert_eq!(run("id -u").await.output.trim(), user);
        assert_eq!(run("exit 7").await.end, End::Exited(7));
        assert_eq!(run("kill -TERM $$").await.end, End::Exited(143));
    }
}

#[tokio::test]
async fn changed_files_outside_the_project_are_rejected() {
    let fixture = fixture();
    for shadows in kinds(&fixture).await {
        let outside = FileContents::from([(FilePath::new("../x.py"), Some("x".as_bytes().into()))]);
        let refused = shadows.run(&fixture.root, &outside, &command("true")).await;
        assert!(matches!(refused, Err(ShadowError::Path(_))));
    }
}

#[tokio::test]
async fn cache_inside_the_project_is_neither_copied_nor_visible() {
    let fixture = fixture();
    std::fs::create_dir_all(fixture.root.join("cache/runs")).unwrap();
    std::fs::write(fixture.root.join("cache/runs/one.jsonl"), "record").unwrap();
    let shadows = Shadows::open(&fixture.root.join("cache"), Policy::default())
        .await
        .unwrap();
    let copies = shadows.clone().copies("asked for");
    for shadows in [shadows, copies] {
        let done = shadows
            .run(
                &fixture.root,
                &overlay(),
                &command(&format!(
                    "cat pkg/a.py; cat cache/runs/* '{}/cache/runs/one.jsonl' 2>/dev/null",
                    fixture.root.display()
                )),
            )
            .await
            .unwrap();
        assert_eq!(done.output, "buffer");
    }
}

#[tokio::test]
async fn deadline_and_drop_kill_all_processes_of_the_command() {
    let fixture = fixture();
    for shadows in kinds(&fixture).await {
        let mut late = command("echo started; setsid sleep 1000 & sleep 1000");
        late.deadline = Duration::from_millis(500);
        let done = shadows
            .run(&fixture.root, &FileContents::new(), &late)
            .await
            .unwrap();
        assert_eq!((done.end, &*done.output), (End::TimedOut, "started\n"));

        let mark = fixture.dir.path().display();
        let line = format!("setsid sh -c ': {mark}; sleep 1000; :' & sleep 1000; :");
        let long = command(&line);
        let overlay = FileContents::new();
        let run = shadows.run(&fixture.root, &overlay, &long);
        let started = async {
            while running(fixture.dir.path()) < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            done = run => panic!("ended by itself: {done:?}"),
            () = started => {}
        }
        let start = Instant::now();
        while running(fixture.dir.path()) > 0 {
            assert!(
                start.elapsed() < LONG,
                "a process of the command still lives"
            );
        }
    }
}

/// Counts the processes whose arguments name a directory.
fn running(directory: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let name = directory.to_str().unwrap();
    arguments
        .filter(|arguments| String::from_utf8_lossy(arguments).contains(&format!(": {name};")))
        .count()
}

#[tokio::test]
async fn changed_file_below_a_regular_file_is_an_error() {
    let fixture = fixture();
    for shadows in kinds(&fixture).await {
        let broken =
            FileContents::from([(FilePath::new("run.sh/x.py"), Some("x".as_bytes().into()))]);
        let refused = shadows.run(&fixture.root, &broken, &command("true")).await;
        assert!(refused.is_err(), "{refused:?}");
    }
}

#[tokio::test]
async fn full_disk_is_reported_as_an_error_that_tells_how_to_change_the_cache_directory() {
    let fixture = fixture();
    for mut shadows in kinds(&fixture).await {
        shadows.bounds.free = u64::MAX;
        let refused = shadows
            .run(&fixture.root, &overlay(), &command("sleep 60"))
            .await;
        let why = refused.unwrap_err().to_string();
        assert!(
            why.contains("is full") && why.contains("STARLING_CACHE_DIR"),
            "{why}"
        );
    }
}

#[tokio::test]
async fn shadows_give_the_reason_for_their_kind() {
    let fixture = fixture();
    let shadows = Shadows::open(&fixture.dir.path().join("cache"), Policy::default())
        .await
        .unwrap();
    assert!(!shadows.reason().is_empty());
    let copies = shadows.copies("asked for");
    assert_eq!((copies.kind(), copies.reason()), (Kind::Copy, "asked for"));
}

#[tokio::test]
async fn without_a_sandbox_commands_run_only_if_allowed_by_the_policy() {
    let fixture = fixture();
    let mut shadows = kinds(&fixture).await.remove(0).copies("asked for");
    (shadows.confinement, shadows.reason) = (None, "no namespaces".into());
    let line = command("cat pkg/a.py; echo x > made; echo \" $HOME $TMPDIR\"");
    let refused = shadows.run(&fixture.root, &overlay(), &line).await;
    let why = refused.unwrap_err().to_string();
    assert!(
        why.contains("(no namespaces)") && why.contains("sandbox.missing"),
        "{why}"
    );

    shadows.confinement = Some(Confinement::Nothing);
    let before = state(&fixture.root);
    let done = shadows.run(&fixture.root, &overlay(), &line).await.unwrap();
    assert_eq!(done.end, End::Exited(0));
    let own = fixture.dir.path().join("cache/shadows");
    let homes: Vec<&str> = done.output.split_whitespace().skip(1).collect();
    assert!(homes.iter().all(|home| Path::new(home).starts_with(&own)));
    assert_eq!((homes.len(), state(&fixture.root)), (2, before));
}
