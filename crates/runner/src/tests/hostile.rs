//! Hostile tests. After each one, the user's files are unchanged, the report names the problem, and
//! the next test run works. The tests run as the current user and, if that is root, also as an
//! unprivileged user.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::*;
use starling_sandbox::{Bounds, Confinement, Kind, Policy};

/// A project whose test commands attack the host, with the state of the files before.
struct HostileFixture {
    project: Project,
    /// A directory next to the project. It represents the other files of the user.
    neighbour: PathBuf,
    before: TreeState,
}

/// Paths with their times, modes and contents.
type TreeState = BTreeMap<PathBuf, (i64, i64, u32, Vec<u8>)>;

fn state(of: &[&Path]) -> TreeState {
    let mut found = TreeState::new();
    for root in of {
        let walk = ignore::WalkBuilder::new(root)
            .standard_filters(false)
            .build();
        for entry in walk {
            let path = entry.unwrap().into_path();
            let of = path.symlink_metadata().unwrap();
            let bytes = fs::read(&path).unwrap_or_default();
            found.insert(path, (of.mtime(), of.mtime_nsec(), of.mode(), bytes));
        }
    }
    found
}

impl HostileFixture {
    fn new() -> Self {
        let project = Project::new(&[("app.py", "x = 1\n"), (".git/HEAD", "ref: x\n")]);
        let neighbour = project.dir.path().join("neighbour");
        fs::create_dir(&neighbour).unwrap();
        fs::write(neighbour.join("letter.txt"), "dear").unwrap();
        let before = state(&[project.workspace.root(), &neighbour]);
        HostileFixture {
            project,
            neighbour,
            before,
        }
    }

    fn root(&self) -> &Path {
        self.project.workspace.root()
    }

    /// Returns the shadows (sandboxed copies of the project) for every sandbox that this system
    /// supports.
    async fn shadows(&self) -> Vec<Shadows> {
        let bounds = Bounds {
            memory: 400 << 20,
            processes: 60,
            output: 1 << 20,
            file: 100 << 20,
            disk: 150 << 20,
            free: 0,
        };
        let policy = Policy {
            bounds,
            ..Policy::default()
        };
        let cache = self.project.dir.path().join("cache");
        let best = Shadows::open(&cache, policy).await.unwrap();
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

    /// Runs a command in each sandbox. Then checks that the user's files are unchanged, that the
    /// report passes `check`, and that the next command works.
    async fn run(&self, line: &str, seconds: u64, check: impl Fn(&TestReport)) {
        for shadows in self.shadows().await {
            let what = format!("{:?} by {:?}", shadows.kind(), shadows.confinement());
            println!("{what}: {line}");
            let report = self.run_in(&shadows, line, seconds).await;
            println!("{:?} after {} ms", report.outcome, report.millis);
            assert_eq!(
                state(&[self.root(), &self.neighbour]),
                self.before,
                "{what}: {line}"
            );
            check(&report);
            let next = self.run_in(&shadows, "cat app.py", 60).await;
            assert_eq!(
                (next.outcome, &*next.output),
                (TestOutcome::Passed, "x = 1\n")
            );
        }
    }

    async fn run_in(&self, shadows: &Shadows, line: &str, seconds: u64) -> TestReport {
        let settings = TestSettings {
            command: Some(line.to_owned()),
            ..TestSettings::default()
        };
        let snapshot = self.project.workspace.snapshot(Overlay::new());
        let tests = ProjectTests::detect(&snapshot, shadows.clone(), settings).await;
        let request = TestRequest {
            deadline: Duration::from_secs(seconds),
            ..request(&[], &[])
        };
        tests.run(request).await
    }
}

fn ends(outcome: TestOutcome) -> impl Fn(&TestReport) {
    move |report| {
        assert_eq!(
            report.outcome,
            outcome,
            "{}",
            message::last(&report.output, 300)
        )
    }
}

#[tokio::test]
async fn fork_bomb_is_stopped_at_the_process_limit() {
    // This bomb continues when it may start no more processes.
    let line =
        "python3 -c 'exec(\"import os\\nwhile True:\\n try: os.fork()\\n except OSError: pass\")'";
    let bed = HostileFixture::new();
    bed.run(line, 60, ends(TestOutcome::TooManyProcesses)).await;
}

#[tokio::test]
async fn endless_output_is_stopped_at_the_output_limit() {
    let bed = HostileFixture::new();
    bed.run("yes", 60, ends(TestOutcome::OutputTooLong)).await;
}

#[tokio::test]
async fn command_is_stopped_at_the_memory_limit() {
    let bed = HostileFixture::new();
    let line = "python3 -c \"x = b'x' * (10 << 30)\"";
    bed.run(line, 60, ends(TestOutcome::OutOfMemory)).await;
    // Each file is smaller than the file size limit. The files and the process exceed the memory
    // limit together.
    let line = "for at in 1 2; do head -c 90000000 /dev/zero > /tmp/$at; done; python3 -c \"x = b'x' * (300 << 20); import time; time.sleep(60)\"";
    bed.run(line, 60, ends(TestOutcome::OutOfMemory)).await;
}

#[tokio::test]
async fn command_is_stopped_at_the_disk_limit() {
    let bed = HostileFixture::new();
    // Each file is smaller than the file size limit, and the directory is not readable for others.
    let line = "mkdir -p a/b && for at in 1 2 3 4; do head -c 60000000 /dev/zero > a/b/$at; done; \
                chmod 700 a; read x < /dev/tty; sleep 60";
    bed.run(line, 60, ends(TestOutcome::WroteTooMuch)).await;
    // Files that the command deletes again do not count.
    let line =
        "for at in 1 2 3 4; do head -c 60000000 /dev/zero > big; rm big; done; sleep 1; echo fine";
    bed.run(line, 60, ends(TestOutcome::Passed)).await;
}

#[tokio::test]
async fn command_that_ignores_signals_is_killed_at_the_deadline() {
    let line = "trap '' TERM INT HUP QUIT; echo here; while :; do sleep 1; done";
    let bed = HostileFixture::new();
    bed.run(line, 1, |report| {
        assert_eq!(report.outcome, TestOutcome::TimedOut);
        assert_eq!(report.output, "here\n");
        assert!(report.millis < 30_000);
    })
    .await;
}

#[tokio::test]
async fn writes_to_the_home_and_the_repository_do_not_reach_the_host() {
    let bed = HostileFixture::new();
    let home = std::env::home_dir().unwrap();
    let made = home.join(".starling-hostile-test");
    let etc = Path::new("/etc/starling-hostile-test");
    let line = format!(
        "for path in '{}' {} '{}/new'; do echo x > \"$path\"; done; \
         cd '{root}' && echo evil > app.py && echo evil > .git/HEAD && chmod 777 app.py && touch -d 2001-01-01 app.py; \
         touch '{letter}'; echo x > /proc/sys/kernel/hostname; echo own > ~/file && cat ~/file app.py; exit 1",
        made.display(),
        etc.display(),
        bed.neighbour.display(),
        root = bed.root().display(),
        letter = bed.neighbour.join("letter.txt").display(),
    );
    bed.run(&line, 60, |report| {
        assert_eq!(report.outcome, TestOutcome::Failed);
        assert!(report.output.contains("own\nevil\n"), "{}", report.output);
        let note = "note: tests can write only in the shadow";
        assert!(report.output.contains(note), "{}", report.output);
        assert!(!made.exists() && !etc.exists());
    })
    .await;
}

/// A command that finds the file of an earlier run fails, so only the first run would succeed.
#[tokio::test]
async fn files_of_an_earlier_run_are_not_visible_to_the_next() {
    let bed = HostileFixture::new();
    let places = [
        "./counter-1",
        "~/counter-2",
        "/tmp/counter-3",
        "/var/tmp/counter-4",
        "/dev/shm/counter-5",
        "\"${TMPDIR:-/tmp}\"/counter-6",
        "__pycache__/counter-7",
    ];
    // Failed writes are ignored, because code cannot keep a counter in a location that is not
    // writable.
    let count = |place: &str| {
        format!("mkdir -p $(dirname {place}); test ! -e {place} || exit 7; echo x > {place}; ")
    };
    let line: String = places.map(count).concat();
    for shadows in bed.shadows().await {
        for run in 0..3 {
            let report = bed.run_in(&shadows, &format!("{line} exit 0"), 60).await;
            let what = format!("{:?}, run {run}: {}", shadows.kind(), report.output);
            assert_eq!(report.exit, Some(0), "{what}");
        }
    }
}

#[tokio::test]
async fn deleting_all_files_does_not_affect_the_project() {
    let bed = HostileFixture::new();
    let line = format!(
        "rm -rf '{}' '{}' ~ /tmp/* /tmp/.[a-z]* /dev/shm/* 2>/dev/null; cd /; ls '{0}'; echo gone",
        bed.root().display(),
        bed.project.dir.path().display(),
    );
    bed.run(&line, 60, |report| {
        assert_eq!(report.outcome, TestOutcome::Passed, "{report:?}");
        assert!(report.output.ends_with("gone\n"), "{}", report.output);
        assert!(!report.output.contains("app.py"), "{}", report.output);
    })
    .await;
}

#[tokio::test]
async fn network_connections_out_of_the_sandbox_fail() {
    let bed = HostileFixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let path = bed.neighbour.parent().unwrap().join("socket");
    let _local = UnixListener::bind(&path).unwrap();
    let call = |to: &str, port: u16| {
        format!("python3 -c \"import socket; socket.create_connection(('{to}', {port}), 5)\"")
    };
    bed.run(&call("192.0.2.1", 80), 60, |report| {
        assert_eq!(report.outcome, TestOutcome::Failed);
        let note = "note: tests have no network";
        assert!(report.output.contains(note), "{}", report.output);
    })
    .await;
    bed.run(&call("127.0.0.1", port), 60, |report| {
        assert_eq!(report.outcome, TestOutcome::Failed);
        assert!(report.output.contains("refused"), "{}", report.output);
    })
    .await;
    let local =
        "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('PATH')\"";
    let local = local.replace("PATH", path.to_str().unwrap());
    bed.run(&local, 60, ends(TestOutcome::Failed)).await;
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

/// A command can connect only to its own Unix sockets, even if it can see others.
#[tokio::test]
async fn command_can_connect_only_to_its_own_unix_sockets() {
    let bed = HostileFixture::new();
    // The directory must not be one that the sandbox replaces.
    let seen = tempfile::tempdir_in("/var/lib")
        .or_else(|_| tempfile::tempdir_in(std::env::home_dir().unwrap()));
    let seen = seen.unwrap();
    fs::set_permissions(seen.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = seen.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let code = "import os, socket, sys\n\
        def reach(path):\n    \
            s = socket.socket(socket.AF_UNIX); s.settimeout(5)\n    \
            try: s.connect(path); return 'met'\n    \
            except OSError as error: return 'refused'\n\
        own = [socket.socket(socket.AF_UNIX) for _ in range(3)]\n\
        os.chdir(os.environ['TMPDIR']); own[0].bind('own'); own[1].bind('\\0abstract')\n\
        os.makedirs('/dev/shm/x'); own[2].bind('/dev/shm/x/own')\n\
        for s in own: s.listen(5)\n\
        print(reach('own'), reach(os.path.abspath('own')), reach('/proc/self/cwd/own'), reach('\\0abstract'), reach('/dev/shm/x/own'))\n\
        outside = sys.argv[1]; os.symlink(outside, 'link')\n\
        print(reach(outside), reach('link'), reach(os.path.relpath(outside)))\n\
        os.chdir(os.path.dirname(outside)); print(reach('socket'), reach('/proc/self/cwd/socket'))\n\
        try: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); print('datagrams')\n\
        except OSError: print('none')\n";
    let line = format!(
        "python3 -c {} {}",
        quote(code),
        quote(path.to_str().unwrap())
    );
    let settings = TestSettings {
        command: Some(line),
        readable: vec![seen.path().to_owned()],
        ..TestSettings::default()
    };
    for shadows in bed.shadows().await {
        let snapshot = bed.project.workspace.snapshot(Overlay::new());
        let tests = ProjectTests::detect(&snapshot, shadows, settings.clone()).await;
        let report = tests.run(request(&[], &[])).await;
        let expected = "met met met met met\nrefused refused refused\nrefused refused\nnone\n";
        assert_eq!(report.output, expected);
        assert!(listener.accept().is_err());
    }
}

#[tokio::test]
async fn loopback_connections_inside_the_sandbox_work() {
    let bed = HostileFixture::new();
    let line = "python3 -c \"import socket; s = socket.create_server(('127.0.0.1', 0)); \
                c = socket.create_connection(s.getsockname()); print('met')\"";
    bed.run(line, 60, |report| {
        assert_eq!(
            (report.outcome, &*report.output),
            (TestOutcome::Passed, "met\n")
        );
    })
    .await;
}

#[tokio::test]
async fn daemons_are_killed_and_starling_cannot_be_killed_by_the_command() {
    let bed = HostileFixture::new();
    let mark = format!(": {};", bed.neighbour.display());
    let line = format!(
        "setsid sh -c 'trap \"\" HUP TERM; {mark} while :; do sleep 1; done' > /dev/null 2>&1 < /dev/null & \
         kill -9 {} 2>/dev/null; echo done",
        std::process::id(),
    );
    bed.run(&line, 60, |report| {
        assert_eq!(
            (report.outcome, &*report.output),
            (TestOutcome::Passed, "done\n")
        );
        let alive = fs::read_dir("/proc").unwrap().flatten().any(|process| {
            let arguments = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(&mark)
        });
        assert!(!alive);
    })
    .await;
    // The command kills all processes that it can reach, except itself.
    bed.run("sleep 1000 & kill -9 -1; echo alive", 60, |report| {
        assert!(report.output.ends_with("alive\n"), "{}", report.output);
    })
    .await;
}

#[tokio::test]
async fn secrets_of_the_host_are_not_visible_to_the_command() {
    let bed = HostileFixture::new();
    let home = std::env::home_dir().unwrap();
    let line = format!(
        "env; cat '{0}'/.ssh/* '{0}/.netrc' '{0}/.git-credentials' /proc/1/environ 2>/dev/null; \
         ls /run/docker.sock 2>/dev/null; exit 0",
        home.display()
    );
    let allowed = environment::inherited(&[]);
    bed.run(&line, 60, |report| {
        let own = [
            "HOME",
            "PYTHONPATH",
            "PYTEST_PLUGINS",
            "TMPDIR",
            "PWD",
            "OLDPWD",
            "SHLVL",
            "_",
            "STARLING_SHADOW",
            "GIT_CEILING_DIRECTORIES",
        ];
        for line in report.output.lines() {
            let name = line.split('=').next().unwrap();
            let known = allowed.contains_key(&OsString::from(name));
            assert!(known || own.contains(&name), "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn command_cannot_gain_capabilities_or_namespaces() {
    let bed = HostileFixture::new();
    let line = "mount -o remount,rw / 2>/dev/null; mount -t tmpfs none /mnt 2>/dev/null; \
                unshare -Ur true 2>/dev/null && echo namespaces; \
                grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp):' /proc/self/status";
    bed.run(line, 60, |report| {
        let none = "0000000000000000";
        let expected = format!(
            "CapInh:\t{none}\nCapPrm:\t{none}\nCapEff:\t{none}\nCapAmb:\t{none}\nNoNewPrivs:\t1\nSeccomp:\t2\n"
        );
        assert_eq!(report.output, expected);
    })
    .await;
}

/// The project contains a virtual environment whose interpreter claims to be in a directory of the
/// host.
#[tokio::test]
async fn interpreter_path_of_the_project_cannot_make_host_directories_visible() {
    let bed = HostileFixture::new();
    let bin = bed.root().join(".venv/bin");
    fs::create_dir_all(&bin).unwrap();
    for named in ["/run/../usr/bin/python3", "/tmp/../bin/python3"] {
        let text = format!("#!/bin/sh\necho starling False {named}\n");
        fs::write(bin.join("python"), text).unwrap();
        fs::set_permissions(bin.join("python"), fs::Permissions::from_mode(0o755)).unwrap();
        for shadows in bed.shadows().await {
            let allowed = environment::inherited(&[]);
            let found = interpreter::find(bed.root(), None, &allowed, &shadows).await;
            assert_eq!(found, Ok(None), "{named}");
            let line = "for place in /run/../usr /tmp/../usr /usr; do \
                        touch $place/starling-hostile-test 2>/dev/null && echo wrote $place; done; true";
            let snapshot = bed.project.workspace.snapshot(Overlay::new());
            let settings = TestSettings {
                command: Some(line.to_owned()),
                readable: vec!["/run/../usr".into(), "/tmp/../usr".into()],
                ..TestSettings::default()
            };
            let tests = ProjectTests::detect(&snapshot, shadows, settings).await;
            let report = tests.run(request(&[], &[])).await;
            assert_eq!(report.output, "", "{report:?}");
        }
    }
    assert!(!Path::new("/usr/starling-hostile-test").exists());
}

/// Runs all tests of this module as an unprivileged user.
#[test]
fn all_tests_of_this_module_pass_as_an_unprivileged_user() {
    if !rustix::process::getuid().is_root() {
        // The process is not root, so the other tests already run as an unprivileged user.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("hostile");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args([
            "tests::hostile",
            "--test-threads=1",
            "--skip",
            "as_an_unprivileged_user",
        ])
        .current_dir(&home)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &home)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("15 passed"), "{said}");
}
