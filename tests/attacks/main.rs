//! Attacks on each kind of sandbox, as the current user and as an unprivileged user; see
//! `attacks.py`. The result of an attack is "held", "escaped", or "unclear" if the attack itself is
//! broken. No attack may escape or stay unclear.

#![allow(clippy::unwrap_used)]

mod bed;
mod list;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bed::AttackFixture;
use list::{Attack, AttackProof};
use starling_core::{TestOutcome, TestRequest, TestRunner, TryCode, TryRequest};
use starling_runner::{ProjectTests, TestSettings};
use starling_sandbox::{Bounds, Confinement, Kind, Policy, Shadows, take_part};
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Workspace};

/// Environment variable of the attacking child process: the directory of the attacked host.
const BED: &str = "STARLING_ATTACKS_BED";
/// Maximum number of attacks that share a sandbox. Their results must fit into one report.
const TOGETHER: usize = 40;
/// Number of attacks that are also made by code that a model tries. Their results must fit into the
/// output that is kept.
const TRIED: usize = 30;
/// Time limit for a run that hangs. It must not be what stops an attack, and the machine may be
/// busy.
const DEADLINE: Duration = Duration::from_secs(300);
/// User id of an unprivileged user.
const NOBODY: u32 = 65534;
const KINDS: [&str; 3] = ["overlay", "copy", "bubblewrap"];
const BOUNDS: Bounds = Bounds {
    memory: 400 << 20,
    processes: 100,
    output: 4 << 20,
    file: 200 << 20,
    disk: 300 << 20,
    free: 0,
};

// This program must also act as a sandbox process, before the test harness starts its threads.
#[used]
#[unsafe(link_section = ".init_array")]
static TAKE_PART: extern "C" fn() = {
    extern "C" fn part() {
        take_part();
    }
    part
};

#[test]
fn no_attack_escapes_the_sandbox() {
    match std::env::var_os(BED) {
        Some(bed) => attack_all(&AttackFixture::at(bed.into())),
        None => start_attackers(),
    }
}

/// Attacks as the current user and, if that is root, also as an unprivileged user.
fn start_attackers() {
    let mut users = vec![("this user", None)];
    if rustix::process::getuid().is_root() {
        users = vec![("root", None), ("plain user", Some(NOBODY))];
    }
    // The program is copied before any thread starts a process. A child process that is started
    // during the copy would hold the copy open for writing, so that it could not be executed.
    let beds = users.into_iter().map(|(name, user)| {
        let bed = AttackFixture::new(user);
        std::fs::copy(std::env::current_exe().unwrap(), bed.path("attacks")).unwrap();
        (name, user, bed)
    });
    let beds: Vec<_> = beds.collect();
    let done: Vec<(String, bool)> = std::thread::scope(|scope| {
        let attackers: Vec<_> = beds
            .iter()
            .map(|(name, user, bed)| scope.spawn(move || start_attacker(name, *user, bed)))
            .collect();
        attackers
            .into_iter()
            .map(|attacker| attacker.join().unwrap())
            .collect()
    });
    let table: String = done.iter().map(|(rows, _)| rows.as_str()).collect();
    let all_held = done.iter().all(|(_, held)| *held);
    println!(
        "{:<12}{:<14}{:>9}{:>9}{:>9}{:>9}\n{table}",
        "user", "kind", "attempts", "held", "escaped", "unclear"
    );
    assert!(all_held, "not everything held:\n{table}");
}

/// Attacks as one user. Returns the rows of the table, and whether all attacks were held.
fn start_attacker(name: &str, user: Option<u32>, bed: &AttackFixture) -> (String, bool) {
    let program = bed.path("attacks");
    let mut attacker = match user {
        None => Command::new(&program),
        Some(user) => {
            let mut attacker = Command::new("setpriv");
            attacker.arg(format!("--reuid={user}"));
            attacker.arg(format!("--regid={user}"));
            attacker.arg("--clear-groups").arg(&program);
            attacker
        }
    };
    let home = bed.path("home");
    let path = match user {
        None => std::env::var("PATH").unwrap(),
        Some(_) => "/usr/local/bin:/usr/bin:/bin".to_owned(),
    };
    let own = format!("{0}/.cargo/bin:{0}/.local/bin", home.display());
    let output = attacker
        .args(["--exact", "no_attack_escapes_the_sandbox", "--nocapture"])
        .current_dir(&home)
        .env_clear()
        .env("PATH", format!("{own}:{path}"))
        .env("HOME", &home)
        .env("PYTHONUSERBASE", home.join(".local"))
        .env("STARLING_TEST_API_KEY", bed.canary())
        .env("RUST_BACKTRACE", "0")
        .env(BED, bed.path(""))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let mut rows = String::new();
    for line in said.lines() {
        match line.strip_prefix("row ") {
            Some(row) => rows += &format!("{name:<12}{row}\n"),
            None => println!("{name}: {line}"),
        }
    }
    (rows, output.status.success())
}

/// The outcomes of all attacks: how many were blocked, and which escaped or were inconclusive.
#[derive(Debug, Default)]
struct AttackCounts {
    held: u32,
    escaped: Vec<String>,
    unclear: Vec<String>,
}

fn attack_all(bed: &AttackFixture) {
    let attacks = list::read();
    bed.control(&attacks);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut fine = true;
    for kind in KINDS {
        let Some(shadows) = runtime.block_on(shadows(bed, kind)) else {
            println!("row {kind:<14} is missing on this machine");
            fine = false;
            continue;
        };
        let tally = runtime.block_on(attack(bed, &shadows, &attacks));
        let (escaped, unclear) = (tally.escaped.len() as u32, tally.unclear.len() as u32);
        println!(
            "row {kind:<14}{:>9}{:>9}{escaped:>9}{unclear:>9}",
            tally.held + escaped + unclear,
            tally.held
        );
        for (what, names) in [("escaped", tally.escaped), ("unclear", tally.unclear)] {
            for name in names {
                println!("{kind}: {what}: {name}");
            }
        }
        let works = runtime.block_on(ordinary_programs_work(bed, &shadows));
        for failure in &works {
            println!("{kind}: does not work any more: {failure}");
        }
        fine &= escaped == 0 && unclear == 0 && works.is_empty();
    }
    assert!(fine, "see above");
}

/// Returns a kind of sandbox, or `None` if this machine does not support it.
async fn shadows(bed: &AttackFixture, kind: &str) -> Option<Shadows> {
    let policy = Policy {
        bounds: BOUNDS,
        ..Policy::default()
    };
    let best = Shadows::open(&bed.path("cache"), policy).await.unwrap();
    let by_namespaces = best.confinement() == Some(Confinement::Namespaces);
    match kind {
        "overlay" => (best.kind() == Kind::Overlay).then_some(best),
        "copy" => by_namespaces.then(|| best.copies("asked for")),
        _ => {
            let there = Command::new("bwrap").arg("--version").output().is_ok();
            there.then(|| best.confined_by(Confinement::Bubblewrap))
        }
    }
}

/// How the attacking code is started.
#[derive(Debug, Clone, Copy)]
enum Door {
    /// As the test command.
    Tests,
    /// As code that a model tries.
    Try,
}

async fn attack(bed: &AttackFixture, shadows: &Shadows, attacks: &[Attack]) -> AttackCounts {
    let mut tally = AttackCounts::default();
    let (alone, together): (Vec<&Attack>, Vec<&Attack>) = attacks.iter().partition(|a| a.alone);
    for some in together.chunks(TOGETHER) {
        try_some(bed, shadows, Door::Tests, some, &mut tally).await;
    }
    let step = together.len().div_ceil(TRIED);
    let some: Vec<&Attack> = together.iter().copied().step_by(step).collect();
    try_some(bed, shadows, Door::Try, &some, &mut tally).await;
    for one in alone {
        try_some(bed, shadows, Door::Tests, &[one], &mut tally).await;
    }
    for (name, keep) in bed.readable() {
        let got = bed::readable_line(bed);
        let report = run(bed, shadows, &got, keep, Overlay::new()).await;
        let attack = format!("readable {name}: {}", report.1.trim());
        match report.1.contains("got") || report.1.contains(bed.canary()) {
            true => tally.escaped.push(attack),
            false if report.1.contains("tried") => tally.held += 1,
            false => tally.unclear.push(attack),
        }
    }
    tally
}

async fn try_some(
    bed: &AttackFixture,
    shadows: &Shadows,
    door: Door,
    attacks: &[&Attack],
    tally: &mut AttackCounts,
) {
    let before = bed.state();
    let overlay = Overlay::from([
        (
            FilePath::new("attack/prelude.py"),
            Some(list::PRELUDE.into()),
        ),
        (
            FilePath::new("attack/plan.json"),
            Some(bed.plan(attacks).into()),
        ),
    ]);
    let line = "python3 attack/prelude.py attack/plan.json 2>&1";
    let (outcome, said) = match door {
        Door::Tests => run(bed, shadows, line, Vec::new(), overlay).await,
        Door::Try => try_code(bed, shadows, line, overlay).await,
    };
    let verdicts: BTreeMap<&str, (&str, &str)> = said
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("@ ")?.splitn(3, ' ');
            let (name, verdict) = (words.next()?, words.next()?);
            Some((name, (verdict, words.next().unwrap_or_default())))
        })
        .collect();
    let harm = bed.harm_since(&before);
    for attack in attacks {
        let (verdict, why) = verdicts.get(&*attack.name).copied().unwrap_or(("", ""));
        let stopped = matches!(
            outcome,
            TestOutcome::OutOfMemory
                | TestOutcome::TooManyProcesses
                | TestOutcome::OutputTooLong
                | TestOutcome::WroteTooMuch
        );
        let name = || format!("{} ({door:?}: {verdict} {why} {outcome:?})", attack.name);
        match (attack.proof, verdict) {
            (_, "secret") => tally.escaped.push(name()),
            (AttackProof::Harm, _) if !harm.is_empty() => {
                tally.escaped.push(format!("{}: {harm:?}", name()))
            }
            (AttackProof::Done | AttackProof::Limit, "done") => tally.escaped.push(name()),
            (AttackProof::Limit, "") if stopped => tally.held += 1,
            // The attack may have killed its own sandbox.
            (AttackProof::Harm, "") if attack.alone => tally.held += 1,
            (_, "refused") | (AttackProof::Secret | AttackProof::Harm, "done") => tally.held += 1,
            (_, _) => tally.unclear.push(name()),
        }
    }
    if !harm.is_empty() {
        println!("harm: {harm:?}");
    }
    bed.repair(&before);
}

async fn run(
    bed: &AttackFixture,
    shadows: &Shadows,
    line: &str,
    readable: Vec<std::path::PathBuf>,
    overlay: Overlay,
) -> (TestOutcome, String) {
    let tests = tests(bed, shadows, line, readable).await;
    let request = TestRequest {
        overlay: contents(overlay),
        select: Vec::new(),
        deadline: DEADLINE,
    };
    let report = tests.run(request).await;
    if report.millis > 3000 {
        println!("{} ms: {line}", report.millis);
    }
    (report.outcome, report.output)
}

/// Runs a command line as code that a model tries.
async fn try_code(
    bed: &AttackFixture,
    shadows: &Shadows,
    line: &str,
    overlay: Overlay,
) -> (TestOutcome, String) {
    let tests = tests(bed, shadows, "true", Vec::new()).await;
    let request = TryRequest {
        code: TryCode::Command(line.to_owned()),
        overlay: contents(overlay),
        deadline: DEADLINE,
    };
    let report = tests.try_code(request).await;
    (report.outcome, report.output)
}

async fn tests(
    bed: &AttackFixture,
    shadows: &Shadows,
    line: &str,
    readable: Vec<std::path::PathBuf>,
) -> ProjectTests {
    let workspace = Workspace::open(bed.path("project")).unwrap();
    let snapshot = workspace.snapshot(Overlay::new());
    let settings = TestSettings {
        command: Some(line.to_owned()),
        environment: vec!["STARLING_TEST_API_KEY".to_owned()],
        readable,
        ..TestSettings::default()
    };
    ProjectTests::detect(&snapshot, shadows.clone(), settings).await
}

fn contents(overlay: Overlay) -> Vec<(FilePath, Option<Arc<[u8]>>)> {
    let bytes = |text: Arc<str>| Arc::from(text);
    let files = overlay.into_iter();
    files.map(|(file, text)| (file, text.map(bytes))).collect()
}

/// Runs the ordinary programs that are installed, and returns the failures.
async fn ordinary_programs_work(bed: &AttackFixture, shadows: &Shadows) -> Vec<String> {
    let mut failures = Vec::new();
    for (name, needs, line) in list::ORDINARY {
        let is_here = Command::new("sh")
            .args(["-c", &format!("command -v {needs}")])
            .output();
        if !is_here.is_ok_and(|found| found.status.success()) {
            continue;
        }
        let (outcome, said) = run(bed, shadows, line, Vec::new(), Overlay::new()).await;
        if outcome != TestOutcome::Passed {
            failures.push(format!("{name}: {outcome:?}: {said}"));
        }
    }
    failures
}
