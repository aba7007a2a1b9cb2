use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::Policy;
use starling_syntax::FilePath;

/// A fake docker client. It logs its arguments, then runs the container's script in a directory,
/// with the path of the mounted tree replaced.
const CLIENT: &str = r#"#!/bin/bash
here=$(dirname "$0")
echo "$*" >> "$here/asked"
[ "$1" = run ] || exit 0
for word; do case $word in
    --mount=*) tree=${word#*source=}; tree=${tree%%,*};;
    --env=*) export "${word#--env=}";;
    none) echo "No such image" >&2; exit 125;;
esac; done
while [ "$1" != -c ]; do shift; done
script=${2//\/starling/$tree}
line=${6//\/testbed/$here/home}
# Whatever is left ends with the first process, as in a container.
setsid bash -c '/bin/sh -c "$@"; echo $? > "$0/status"; kill -KILL 0' \
    "$here" "$script" "$3" "$here/home" "$5" "$line" <&0 &
wait $!
exit "$(cat "$here/status")"
"#;

/// A project directory, and shadows that run commands with a fake container client.
struct ContainerFixture {
    dir: tempfile::TempDir,
    shadows: Shadows,
    root: PathBuf,
}

async fn bed(image: &str) -> ContainerFixture {
    let dir = tempfile::tempdir().unwrap();
    let client = dir.path().join("client");
    fs::write(&client, CLIENT).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.py"), "on disk").unwrap();
    let shadows = Shadows::open(&dir.path().join("cache"), Policy::default()).await;
    let image = image.to_owned();
    ContainerFixture {
        shadows: shadows.unwrap().in_containers(Container { client, image }),
        root,
        dir,
    }
}

impl ContainerFixture {
    async fn run(&self, line: &str, deadline: Duration) -> Result<Captured, ShadowError> {
        let overlay =
            FileContents::from([(FilePath::new("b.py"), Some("laid over".as_bytes().into()))]);
        let name = |name: &str| OsString::from(name);
        let command = ShadowCommand {
            line: line.to_owned(),
            environment: BTreeMap::from([
                (name("PATH"), name("/nowhere")),
                (name("LC_ALL"), name("xx")),
                (name("MINE"), self.root.clone().into_os_string()),
            ]),
            keep: Vec::new(),
            deadline,
            output_cap: 1000,
        };
        self.shadows.run(&self.root, &overlay, &command).await
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.dir.path().join("asked")).unwrap()
    }
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn command_sees_the_shadow_in_a_separate_container() {
    let bed = bed("image").await;
    let done = bed
        .run("cat a.py b.py; echo \" $MINE\" >&2; exit 3", LONG)
        .await
        .unwrap();
    assert_eq!(done.end, End::Exited(3));
    // Container paths in the output are translated back to workspace paths.
    let expected = format!("on disklaid over {}\n", bed.root.display());
    assert_eq!(done.output, expected);
    let asked = bed.asked();
    for word in [
        "run --rm --interactive --pull=never --network=none",
        "--security-opt=no-new-privileges",
        "--memory=4294967296 --memory-swap=4294967296 --pids-limit=1024",
        ",target=/starling,readonly",
        "--env=MINE=/testbed",
        "--entrypoint=/bin/sh image -c",
    ] {
        assert!(asked.contains(word), "{word}: {asked}");
    }
    assert!(
        !asked.contains("/nowhere") && !asked.contains("LC_ALL"),
        "{asked}"
    );
    assert!(!bed.root.join("b.py").exists());
}

#[tokio::test]
async fn container_command_stops_at_the_deadline_and_missing_image_is_an_error() {
    let slow = bed("image").await;
    let done = slow
        .run("echo begun; sleep 600", Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!((done.end, done.output.as_str()), (End::TimedOut, "begun\n"));
    let none = bed("none").await;
    let error = none.run("true", LONG).await.unwrap_err().to_string();
    assert!(
        error.contains("could not start a container from the image none: No such image"),
        "{error}"
    );
}

#[tokio::test]
async fn container_ends_when_the_starting_process_ends() {
    let bed = bed("image").await;
    let begun = bed.dir.path().join("begun");
    // Only the open standard input of the client keeps the container alive. It closes when the
    // starting process ends for any reason.
    let line = format!("echo > {}; sleep 600", begun.display());
    let started = async {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        ended = bed.run(&line, LONG) => panic!("{ended:?}"),
        () = started => {}
    }
    let left = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let marked = |process: &fs::DirEntry| {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(&*begun.to_string_lossy())
        };
        processes.filter(marked).count()
    };
    let began = Instant::now();
    while left() > 0 {
        assert!(began.elapsed() < LONG, "it is still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
