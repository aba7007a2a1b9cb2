//! The attacked host: a home with secrets, a project, sockets, and files of other users.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::list::{Attack, AttackProof, PRELUDE};

const SECRETS: [&str; 16] = [
    "home/.ssh/id_ed25519",
    "home/.netrc",
    "home/.aws/credentials",
    "home/.password-store/bank.gpg",
    "home/.config/rclone/rclone.conf",
    "home/.terraform.d/credentials.tfrc.json",
    "home/.m2/settings.xml",
    "home/.config/pip/pip.conf",
    "home/.bash_history",
    "home/.local/share/keyrings/login.keyring",
    "home/.cargo/credentials.toml",
    "home/.config/starling/config.toml",
    "home/documents/letter.txt",
    "home/.git-credentials",
    "cache/trajectories/run.jsonl",
    "home/project-of-another/.env",
];
/// Directories in which every user may create files.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Paths with their times, modes and contents.
type TreeState = BTreeMap<PathBuf, (i64, i64, u32, Vec<u8>)>;

/// A directory with a canary value and host listeners that attacks try to reach.
pub struct AttackFixture {
    root: PathBuf,
    canary: String,
    /// Removes the directory when dropped, if this process created it.
    _made: Option<tempfile::TempDir>,
    ends: Option<HostListeners>,
}

/// Listeners on the host that must not receive anything.
struct HostListeners {
    port: u16,
    tcp: TcpListener,
    udp: UdpSocket,
    streams: Vec<UnixListener>,
    datagrams: UnixDatagram,
    name: String,
}

impl AttackFixture {
    /// Creates a host directory that is visible to commands, owned by `user` if given.
    pub fn new(user: Option<u32>) -> AttackFixture {
        let made = tempfile::Builder::new()
            .prefix("starling-attacks-")
            .tempdir_in("/var/lib")
            .or_else(|_| tempfile::tempdir_in(std::env::home_dir().unwrap()))
            .unwrap();
        let bed = AttackFixture {
            root: made.path().canonicalize().unwrap(),
            canary: canary_of(made.path()),
            _made: Some(made),
            ends: None,
        };
        let settings = format!("[user]\n\temail = {}\n", bed.canary);
        for secret in SECRETS {
            bed.write(secret, &bed.canary);
        }
        bed.write("home/.gitconfig", &settings);
        bed.write("home/.cargo/bin/tool", "");
        bed.write("home/.local/bin/tool", "");
        bed.write("home/.docker/run/keep", "");
        bed.write("outside/target.txt", "as it was");
        bed.write("project/app.py", "x = 1\n");
        bed.write("project/.git/HEAD", "ref: x\n");
        bed.write("project/.git/config", "[core]\n");
        bed.write("project/.venv/pyvenv.cfg", "home = /usr/bin\n");
        bed.write("project/.venv/bin/tool", "");
        bed.write("project/.venv/lib/python3/site-packages/a.py", "");
        symlink("../home/.ssh/id_ed25519", bed.path("project/notes.txt")).unwrap();
        symlink("../outside", bed.path("project/out")).unwrap();
        if let Some(user) = user {
            for path in all_below(&bed.root) {
                std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
            }
            chown(&bed.root, Some(user), Some(user)).unwrap();
        }
        fs::set_permissions(&bed.root, fs::Permissions::from_mode(0o755)).unwrap();
        bed
    }

    /// Opens a host directory that another process created, and starts its listeners.
    pub fn at(root: PathBuf) -> AttackFixture {
        let root = root.canonicalize().unwrap();
        let stream = |path: &str| {
            let path = root.join(path);
            let listener = UnixListener::bind(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
            listener
        };
        let name = canary_of(&root).replace("canary", "abstract");
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let streams = vec![
            stream("home/.docker/run/docker.sock"),
            stream("outside/unix.socket"),
            stream("project/.git/fsmonitor--daemon.ipc"),
            UnixListener::bind_addr(&address).unwrap(),
        ];
        let datagrams = UnixDatagram::bind(root.join("outside/datagram.socket")).unwrap();
        let (tcp, udp) = loop {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
                break (tcp, udp);
            }
        };
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        for listener in &streams {
            listener.set_nonblocking(true).unwrap();
        }
        AttackFixture {
            canary: canary_of(&root),
            _made: None,
            ends: Some(HostListeners {
                port: tcp.local_addr().unwrap().port(),
                tcp,
                udp,
                streams,
                datagrams,
                name,
            }),
            root,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the text that every secret contains.
    pub fn canary(&self) -> &str {
        &self.canary
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the input of the attack script.
    pub fn plan(&self, attacks: &[&Attack]) -> String {
        let ends = self.ends.as_ref().unwrap();
        let hash = Sha256::digest(self.canary.as_bytes());
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let attacks: Vec<_> = attacks.iter().map(|one| (&one.name, &one.code)).collect();
        json!({
            "bed": self.root, "port": ends.port, "abstract": ends.name, "hash": hash,
            "starling": std::process::id(), "mark": self.mark(), "attacks": attacks,
        })
        .to_string()
    }

    fn mark(&self) -> String {
        self.canary.replace("canary", "daemon")
    }

    /// Checks that attacks succeed without a sandbox.
    pub fn control(&self, attacks: &[Attack]) {
        let attacks: Vec<&Attack> = attacks.iter().filter(|one| one.control).collect();
        let directory = self.path("control");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("prelude.py"), PRELUDE).unwrap();
        fs::write(directory.join("plan.json"), self.plan(&attacks)).unwrap();
        let output = Command::new("python3")
            .args(["prelude.py", "plan.json"])
            .current_dir(&directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        for attack in &attacks {
            let verdict = match attack.proof {
                AttackProof::Secret => "secret",
                AttackProof::Done | AttackProof::Harm | AttackProof::Limit => "done",
            };
            let expected = format!("@ {} {verdict}", attack.name);
            let got_through = said.lines().any(|line| line.trim_end() == expected);
            assert!(got_through, "no attack: {}\n{said}", attack.name);
        }
        assert!(!self.calls().is_empty());
        fs::remove_dir_all(directory).unwrap();
    }

    /// Returns the connections and datagrams since the last call.
    fn calls(&self) -> Vec<String> {
        let Some(ends) = &self.ends else {
            return Vec::new();
        };
        let mut calls = Vec::new();
        let mut bytes = [0; 100];
        while ends.tcp.accept().is_ok() {
            calls.push("a call over TCP".to_owned());
        }
        while ends.udp.recv(&mut bytes).is_ok() {
            calls.push("a datagram over UDP".to_owned());
        }
        while ends.datagrams.recv(&mut bytes).is_ok() {
            calls.push("a datagram to a Unix socket".to_owned());
        }
        for (number, stream) in ends.streams.iter().enumerate() {
            while stream.accept().is_ok() {
                calls.push(format!("a call of Unix socket {number}"));
            }
        }
        calls
    }

    pub fn state(&self) -> TreeState {
        let mut found = TreeState::new();
        for path in all_below(&self.root) {
            let own = ["cache/shadows", "attacks"].map(|name| self.root.join(name));
            if own.iter().any(|own| path.starts_with(own)) || path.ends_with("cache") {
                continue;
            }
            let Ok(of) = path.symlink_metadata() else {
                continue;
            };
            let bytes = of.is_file().then(|| fs::read(&path).unwrap_or_default());
            let what = (
                of.mtime(),
                of.mtime_nsec(),
                of.mode(),
                bytes.unwrap_or_default(),
            );
            found.insert(path, what);
        }
        found
    }

    /// Returns changed paths, received connections, and processes that are still running.
    pub fn harm_since(&self, before: &TreeState) -> Vec<String> {
        let mut harm = self.calls();
        let now = self.state();
        let names = before.keys().chain(now.keys());
        let changed = names.filter(|path| before.get(*path) != now.get(*path));
        harm.extend(changed.map(|path| path.display().to_string()));
        let user = rustix::process::getuid().as_raw();
        for shared in SHARED {
            let path = Path::new(shared).join(format!("starling-attack-{user}"));
            match fs::remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Ok(()) | Err(_) => harm.push(path.display().to_string()),
            }
        }
        let mark = self.mark();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let arguments = fs::read(process.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&arguments)
                .split('\0')
                .any(|word| word == mark)
            {
                harm.push(format!("{} runs", process.path().display()));
            }
        }
        harm.sort();
        harm.dedup();
        harm
    }

    /// Restores files, so that later attacks find them.
    pub fn repair(&self, before: &TreeState) {
        if self.state() == *before {
            return;
        }
        for (path, (_, _, mode, bytes)) in before {
            let is_file = mode & 0o170_000 == 0o100_000;
            if is_file && fs::read(path).ok().as_ref() != Some(bytes) {
                // A file that cannot be restored is reported as harm again.
                let _ = fs::write(path, bytes);
            }
        }
    }

    /// Returns directories that a user could configure as readable and that lead to hidden files.
    pub fn readable(&self) -> Vec<(&'static str, Vec<PathBuf>)> {
        let home = self.path("home");
        vec![
            ("the home", vec![home.clone()]),
            ("what is above the home", vec![self.root.clone()]),
            ("the root", vec!["/".into()]),
            ("a way round to the home", vec![home.join("documents/..")]),
            (
                "a way round to /usr",
                vec!["/run/../usr".into(), "/tmp/../usr".into()],
            ),
            (
                "the cache",
                vec![self.path("cache"), self.path("cache/shadows")],
            ),
            (
                "the system",
                vec!["/usr".into(), "/etc".into(), "/proc".into(), "/dev".into()],
            ),
            ("relative", vec!["home".into(), "..".into()]),
        ]
    }
}

/// Returns a command that searches for secrets and writes wherever it can.
pub fn readable_line(bed: &AttackFixture) -> String {
    let root = bed.root.display();
    format!(
        "cat {root}/home/.ssh/id_ed25519 {root}/home/.netrc {root}/cache/trajectories/run.jsonl 2>/dev/null; \
         for place in /run/../usr /tmp/../usr /usr /etc {root}/home {root}/outside; do \
         touch $place/starling-attack 2>/dev/null && echo got $place; done; echo tried"
    )
}

fn canary_of(root: &Path) -> String {
    let hash = Sha256::digest(root.as_os_str().as_encoded_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("canary-{}", &hash[..16])
}

fn all_below(root: &Path) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .build();
    walk.flatten().map(|entry| entry.into_path()).collect()
}
