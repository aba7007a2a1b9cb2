//! The stored index is correct, whatever happens to it and to the files: each test compares it with
//! a newly built index.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const FILES: usize = 150;
const KILLS: u64 = 20;

/// A temporary project with its own index cache.
struct IndexedProject {
    dir: tempfile::TempDir,
}

impl IndexedProject {
    fn new() -> Self {
        let bed = IndexedProject {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(bed.root()).unwrap();
        bed
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes files with many functions each, so that reading and storing the index takes a while.
    fn fill(&self, round: usize) {
        for at in 0..FILES {
            let functions: String = (0..30)
                .map(|n| format!("def work_{round}_{at}_{n}(first):\n    return first + {n}\n\n"))
                .collect();
            self.write(&format!("package{}/module{at}.py", at % 7), &functions);
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
        command
            .args(arguments)
            .arg("--repo")
            .arg(self.root())
            .env("STARLING_CACHE_DIR", self.dir.path().join("cache"))
            .env("XDG_CONFIG_HOME", self.dir.path().join("config"))
            .stdin(Stdio::null());
        command
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        json(&self.command(arguments).output().unwrap())
    }

    /// Checks that the stored index and a newly built index return the same figures.
    fn assert_right(&self) {
        let figures = |answer: &Value| {
            ["files", "symbols", "references", "bytes"].map(|key| answer[key].clone())
        };
        let stored = self.ask(&["index", "--json"]);
        let anew = self.ask(&["index", "--no-cache", "--json"]);
        assert_eq!(figures(&stored), figures(&anew));
    }

    fn defined(&self, name: &str) -> Vec<String> {
        let answer = self.ask(&["symbols", name, "--json"]);
        let symbols = answer["symbols"].as_array().unwrap();
        let named = symbols
            .iter()
            .map(|found| found["symbol"].as_str().unwrap());
        named
            .filter(|found| *found == name)
            .map(str::to_owned)
            .collect()
    }
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn kill_while_writing_leaves_the_old_or_the_new_index() {
    let bed = IndexedProject::new();
    bed.fill(0);
    // The duration of a complete build, so that the kills are spread over it.
    let begin = std::time::Instant::now();
    bed.ask(&["index", "--json"]);
    let whole = begin.elapsed();
    for kill in 1..=KILLS {
        bed.fill(kill as usize);
        let mut child = bed
            .command(&["index", "--json"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole * kill as u32 / KILLS as u32);
        child.kill().unwrap();
        child.wait().unwrap();
        let old = format!("work_{}_3_3", kill - 1);
        assert_eq!(bed.defined(&old), [""; 0], "kill {kill}");
        let new = format!("work_{kill}_3_3");
        assert_eq!(bed.defined(&new), [new.as_str()], "kill {kill}");
    }
    bed.assert_right();
    let left = leftovers(&bed.dir.path().join("cache"));
    assert_eq!(left, [""; 0], "what dead writers left is removed");
}

/// Returns partly written files of the store.
fn leftovers(cache: &Path) -> Vec<String> {
    let stores = std::fs::read_dir(cache.join("index")).unwrap();
    let files = stores.flat_map(|store| std::fs::read_dir(store.unwrap().path()).unwrap());
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".new")).collect()
}

#[test]
fn index_works_without_a_cache_on_a_full_disk() {
    let bed = IndexedProject::new();
    bed.fill(0);
    // Writes beyond a few KiB fail as on a full disk: with an error, not with a signal.
    let limited = bed.command(&["index", "--json"]);
    let program = limited.get_program().to_owned();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"])
        .arg(program)
        .args(limited.get_args())
        .envs(
            limited
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .output()
        .unwrap();
    let answer = json(&output);
    assert_eq!(answer["files"], FILES);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not stored"), "{said}");
    assert_eq!(leftovers(&bed.dir.path().join("cache")), [""; 0]);
    bed.assert_right();
}

#[test]
fn unusual_files_are_skipped_by_the_index() {
    let bed = IndexedProject::new();
    bed.write("good.py", "def good():\n    pass\n");
    bed.write(
        "broken.py",
        "def broken(:\n    pass\n\n\ndef whole():\n    pass\n",
    );
    let root = bed.root();
    std::os::unix::fs::symlink(".", root.join("loop")).unwrap();
    std::os::unix::fs::symlink("loop.py", root.join("loop.py")).unwrap();
    std::os::unix::fs::symlink("nowhere.py", root.join("dangling.py")).unwrap();
    std::fs::write(root.join("latin.py"), b"def caf\xe9():\n    pass\n").unwrap();
    std::fs::write(root.join("long.py"), vec![b'#'; 2 << 20]).unwrap();
    std::fs::write(root.join("zeros.py"), [0; 100]).unwrap();
    std::fs::create_dir(root.join("folder.py")).unwrap();
    let pipe = Command::new("mkfifo").arg(root.join("pipe.py")).status();
    assert!(pipe.unwrap().success());
    let closed = root.join("closed.py");
    std::fs::write(&closed, "def closed():\n    pass\n").unwrap();
    let nobody = std::os::unix::fs::PermissionsExt::from_mode(0o0);
    std::fs::set_permissions(&closed, nobody).unwrap();
    assert_eq!(bed.defined("good"), ["good"]);
    assert_eq!(bed.defined("whole"), ["whole"]);
    bed.assert_right();
}

#[test]
fn file_replaced_during_indexing_is_indexed_consistently() {
    let bed = IndexedProject::new();
    bed.fill(0);
    let one = "def one():\n    pass\n".repeat(400);
    let two = "def two():\n    pass\n".repeat(400);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                for text in [&one, &two] {
                    bed.write("package0/new.py", text);
                    let from = bed.root().join("package0/new.py");
                    std::fs::rename(from, bed.root().join("package0/changing.py")).unwrap();
                }
            }
        });
        for _ in 0..5 {
            let files = bed.ask(&["index", "--json"])["files"].as_u64().unwrap();
            assert!(files >= FILES as u64);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    bed.write("package0/changing.py", &two);
    assert_eq!(bed.defined("one"), [""; 0]);
    assert_ne!(bed.defined("two"), [""; 0]);
    bed.assert_right();
}

#[test]
fn concurrent_processes_can_share_the_index_cache() {
    let bed = IndexedProject::new();
    for round in 0..5 {
        bed.fill(round);
        let name = format!("work_{round}_3_3");
        let asked: Vec<_> = (0..4)
            .map(|_| {
                let mut command = bed.command(&["symbols", &name, "--json"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        for child in asked {
            let answer = json(&child.wait_with_output().unwrap());
            assert_eq!(answer["symbols"][0]["symbol"], name.as_str());
        }
    }
    bed.assert_right();
}

#[test]
fn directory_with_100000_files_is_indexed() {
    let bed = IndexedProject::new();
    for at in 0..100_000 {
        std::fs::write(
            bed.root().join(format!("f{at}.py")),
            format!("x{at} = {at}\n"),
        )
        .unwrap();
    }
    let begin = std::time::Instant::now();
    let answer = bed.ask(&["index", "--json"]);
    assert_eq!(answer["files"], 100_000);
    let cold = begin.elapsed();
    let answer = bed.ask(&["index", "--json"]);
    assert_eq!(answer["from_cache"], true);
    assert!(begin.elapsed() - cold < cold + Duration::from_secs(5));
}
