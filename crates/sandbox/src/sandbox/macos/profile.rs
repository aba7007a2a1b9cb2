//! The profile of `sandbox-exec`, in the profile language of macOS. If several rules match an
//! operation, the last rule decides.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::sandbox::plan::Plan;
use crate::sandbox::secrets::SECRETS;

/// Directories that contain home directories, besides the user's own.
const HOMES: [&str; 2] = ["/Users", "/var/root"];
/// Devices that a command may write to.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/tty",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/dtracehelper",
];
/// Rules that are the same for all commands. A command may read the system, write nothing, use only
/// the loopback network, and ask no program outside of the sandbox to act for it.
const FIXED: &str = "\
(version 1)
(allow default)
(deny network*)
(allow network-bind network-inbound (local ip \"localhost:*\"))
(allow network-outbound (remote ip \"localhost:*\"))
(deny appleevent-send)
(deny job-creation)
(deny lsopen)
(deny mach-lookup (global-name \"com.apple.pasteboard.1\"))
(deny signal (target others))
(deny process-info* (target others))
(deny system-socket)
(deny file-write*)
";

/// Returns the profile for a plan. All paths in it are resolved, because the system compares paths
/// in which links are resolved (`/tmp` is `/private/tmp`).
pub(super) fn profile(plan: &Plan) -> String {
    let mut profile = FIXED.to_owned();
    let tree = real(plan.tree.root());
    let temporary = real(&plan.scratch.join("tmp"));
    let hidden = hidden(plan);
    for path in &hidden {
        rule(&mut profile, "deny file-read*", "subpath", path);
    }
    let kept = kept(plan, &hidden);
    let shown = kept.iter().chain([&tree, &temporary]);
    for path in shown {
        rule(&mut profile, "allow file-read*", "subpath", path);
        // A program that resolves a path reads the metadata of each directory above it.
        for above in path.ancestors().skip(1) {
            rule(&mut profile, "allow file-read-metadata", "literal", above);
        }
    }
    for path in [&tree, &temporary] {
        rule(&mut profile, "allow file-write*", "subpath", path);
        rule(&mut profile, "allow network*", "subpath", path);
    }
    for device in DEVICES {
        rule(
            &mut profile,
            "allow file-write*",
            "literal",
            Path::new(device),
        );
    }
    for path in secrets(plan, &tree) {
        rule(
            &mut profile,
            "deny file-read* file-write*",
            "subpath",
            &path,
        );
    }
    profile
}

/// Adds one rule about a path.
fn rule(profile: &mut String, action: &str, matches: &str, path: &Path) {
    let path = path.to_string_lossy();
    let path = path.replace('\\', "\\\\").replace('"', "\\\"");
    // Writing to a string cannot fail.
    let _ = writeln!(profile, "({action} ({matches} \"{path}\"))");
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns Starling's cache directory, which contains all scratch directories.
fn cache(plan: &Plan) -> Option<PathBuf> {
    let all = plan.scratch.parent()?;
    let cache = all.parent().filter(|_| all.ends_with("shadows"))?;
    Some(real(cache))
}

/// Returns the directories that are hidden from the command.
fn hidden(plan: &Plan) -> Vec<PathBuf> {
    let homes = HOMES.iter().map(PathBuf::from).chain(plan.home.clone());
    let records = plan.records.iter().chain(&plan.private).cloned();
    let all = homes.chain(records).map(|path| real(&path));
    let mut hidden: Vec<PathBuf> = all.chain(cache(plan)).collect();
    hidden.retain(|path| path.parent().is_some());
    hidden.sort();
    hidden.dedup_by(|later, earlier| later.starts_with(earlier));
    hidden
}

/// Returns the directories that stay visible although they are inside hidden directories. A
/// directory that contains a home directory or the cache stays hidden.
fn kept(plan: &Plan, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let whole: Vec<PathBuf> = plan.home.iter().map(|home| real(home)).collect();
    let is_too_much = |path: &PathBuf| {
        let mut places = hidden.iter().chain(&whole);
        places.any(|place| place.starts_with(path)) || real(&plan.scratch).starts_with(path)
    };
    let mut kept: Vec<PathBuf> = plan.keep.iter().map(|path| real(path)).collect();
    kept.retain(|path| !is_too_much(path) && hidden.iter().any(|place| path.starts_with(place)));
    kept.sort();
    kept.dedup();
    kept
}

/// Returns the paths of the user's keys and of Starling's records, except directories that contain
/// the tree.
fn secrets(plan: &Plan, tree: &Path) -> Vec<PathBuf> {
    let home = plan.home.iter();
    let keys = home.flat_map(|home| SECRETS.iter().map(move |name| home.join(name)));
    let all = keys.chain(plan.records.iter().cloned());
    let mut all: Vec<PathBuf> = all.map(|path| real(&path)).collect();
    all.retain(|path| !tree.starts_with(path) && path.parent().is_some());
    all
}

#[cfg(test)]
mod tests {
    use crate::sandbox::plan::{Bounds, Confinement, Tree};

    use super::*;

    fn plan() -> Plan {
        Plan {
            confinement: Confinement::SandboxExec,
            tree: Tree::Copy {
                root: "/Users/me/Library/Caches/starling/shadows/1-0/tree".into(),
            },
            line: "pytest".into(),
            bounds: Bounds::default(),
            scratch: "/Users/me/Library/Caches/starling/shadows/1-0".into(),
            home: Some("/Users/me".into()),
            keep: vec![
                "/Users/me/.pyenv".into(),
                "/Users/me".into(),
                "/Users".into(),
                "/usr/local".into(),
            ],
            private: Vec::new(),
            records: vec!["/Users/me/Library/Caches/starling".into(), "/out".into()],
            user: 501,
            group: 20,
        }
    }

    /// Returns whether the profile allows an operation on a path, according to the last matching
    /// rule.
    fn decides(profile: &str, operation: &str, path: &str) -> bool {
        let mut allowed = true;
        for line in profile.lines().skip(1) {
            let words: Vec<&str> = line.trim_matches(['(', ')']).split(['(', ')']).collect();
            let mut action = words[0].split_whitespace();
            let verb = action.next().unwrap();
            let is_named = action.any(|name| match name.strip_suffix('*') {
                Some(start) => operation.starts_with(start),
                None => operation == name || name == "default",
            });
            let place = words.get(1).and_then(|rule| rule.split_once(" \""));
            let is_place = match place {
                None => words.len() == 1,
                Some((matches, named)) => {
                    let named = named.trim_end_matches('"');
                    let is_below = matches == "subpath" && Path::new(path).starts_with(named);
                    is_below || path == named
                }
            };
            if is_named && is_place {
                allowed = verb == "allow";
            }
        }
        allowed
    }

    #[test]
    fn macos_profile_allows_writes_only_in_the_copy_and_the_temporary_directory() {
        let profile = profile(&plan());
        let cache = "/Users/me/Library/Caches/starling";
        let writes = |path: &str| decides(&profile, "file-write-data", path);
        assert!(
            writes(&format!("{cache}/shadows/1-0/tree/a.py")),
            "{profile}"
        );
        assert!(writes(&format!("{cache}/shadows/1-0/tmp/x")));
        assert!(writes("/dev/null"));
        for path in ["/Users/me/a", "/etc/hosts", "/tmp/x", "/dev/disk0", cache] {
            assert!(!writes(path), "{path}");
        }
        assert!(!writes(&format!("{cache}/shadows/1-0/plan")));
    }

    #[test]
    fn macos_profile_hides_home_directories_and_starling_records_but_not_toolchains() {
        let profile = profile(&plan());
        let reads = |path: &str| decides(&profile, "file-read-data", path);
        for path in [
            "/usr/bin/python3",
            "/usr/local/x",
            "/Users/me/.pyenv/bin/python",
        ] {
            assert!(reads(path), "{path}: {profile}");
        }
        for path in [
            "/Users/me/.ssh/id_ed25519",
            "/Users/me/mail",
            "/Users/you/mail",
            "/Users/me/Library/Caches/starling/index",
            "/Users/me/Library/Caches/starling/shadows/2-0/tree/a.py",
            "/out/results.json",
        ] {
            assert!(!reads(path), "{path}: {profile}");
        }
        let resolves = |path: &str| decides(&profile, "file-read-metadata", path);
        assert!(resolves("/Users/me") && !resolves("/Users/me/mail"));
    }

    #[test]
    fn macos_profile_allows_only_localhost_connections() {
        let profile = profile(&plan());
        assert!(!decides(
            &profile,
            "network-outbound",
            "/private/var/run/mDNSResponder"
        ));
        assert!(profile.contains("(allow network-outbound (remote ip \"localhost:*\"))"));
        for line in profile.lines() {
            assert!(!line.contains("remote ip \"*"), "{line}");
        }
    }

    #[test]
    fn quotation_marks_in_paths_are_escaped_in_the_macos_profile() {
        let mut text = String::new();
        rule(
            &mut text,
            "deny file-read*",
            "subpath",
            Path::new("/a\"b\\c"),
        );
        assert_eq!(text, "(deny file-read* (subpath \"/a\\\"b\\\\c\"))\n");
    }
}
