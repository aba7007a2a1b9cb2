//! Restrictions on a command that are independent of the file system that it sees. The command has
//! no capabilities and can make only the system calls that it needs. If the kernel supports
//! Landlock, it can write only to its own directories.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use super::plan::{Confinement, Plan};
use super::room::{SHARED_MEMORY, own_directories};
use super::sockets::{self, OwnMounts};
use super::{filter, tried};

/// The newest Landlock ABI whose rights are requested. Older kernels grant and restrict fewer
/// rights.
const RIGHTS: ABI = ABI::V9;

/// Starts the command of a plan with minimal rights. The rights are dropped in a separate thread,
/// so that the init (the first process of the sandbox, which is this process) keeps its own.
pub(super) fn start(plan: &Plan, mut command: Command) -> Result<Child, String> {
    let mut spawn = move || command.spawn().map_err(tried("starting a shell"));
    let sockets = sockets::possible();
    match plan.confinement {
        Confinement::SandboxExec | Confinement::Nothing => spawn(),
        Confinement::Namespaces | Confinement::Bubblewrap => thread::scope(|scope| {
            let confined = scope.spawn(move || {
                restrict_writing(plan).map_err(|error| format!("Landlock: {error}"))?;
                drop_capabilities().map_err(tried("giving up capabilities"))?;
                let listener =
                    filter::install(sockets).map_err(tried("installing the system call filter"))?;
                Ok((spawn()?, listener))
            });
            let started = confined
                .join()
                .unwrap_or_else(|_| Err("the command's thread panicked".to_owned()));
            let (child, listener) = started?;
            if let Some(listener) = listener {
                let own = OwnMounts::of(plan);
                thread::spawn(move || sockets::supervise(listener, own));
            }
            Ok(child)
        }),
    }
}

/// Restricts writing with Landlock, in addition to the read-only mounts. The caller must have set
/// `no_new_privs`.
fn restrict_writing(plan: &Plan) -> Result<(), RulesetError> {
    let rights = AccessFs::from_write(RIGHTS);
    let mut rules = Ruleset::default()
        // Without the right `Refer`, no file could be moved to another directory. If the kernel
        // does not support this right, writing is not restricted.
        .set_compatibility(CompatLevel::SoftRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(rights)?
        .scope(Scope::from_all(RIGHTS))?
        .create()?;
    let tree = plan.tree.root().to_owned();
    // `/proc` is left out, because root could lower the priority of the init through it. For a file
    // that is opened through a link in `/proc/self/fd`, the location of the link's target decides.
    let places = own_directories().chain([SHARED_MEMORY]);
    let places = places.map(PathBuf::from).chain([tree]);
    // Devices can be written, but no files can be created beside them.
    let devices = ("/dev".into(), AccessFs::from_file(RIGHTS) & rights);
    for (place, allowed) in places.map(|place| (place, rights)).chain([devices]) {
        // A path that cannot be opened cannot be written to either.
        if let Ok(opened) = PathFd::new(&place) {
            rules = rules.add_rule(PathBeneath::new(opened, allowed))?;
        }
    }
    rules.restrict_self()?;
    Ok(())
}

/// Drops all capabilities, and prevents started programs from gaining any.
fn drop_capabilities() -> std::io::Result<()> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // If a process may not drop capabilities, it has no capability that a program could gain.
        if remove_capability_from_bounding_set(one).is_err() {
            break;
        }
    }
    // Old kernels have no ambient capabilities and fail here.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, none)?)
}
