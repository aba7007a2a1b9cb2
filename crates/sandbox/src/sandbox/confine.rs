//! What a command may not do whatever it sees: it has no capabilities, makes no system calls that it
//! does not need, and writes nowhere but in its own places, by Landlock where the kernel has it.

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
use super::room::own_directories;
use super::sockets::{self, OwnMounts};
use super::{filter, tried};

/// The newest rights of Landlock that are asked for; an older kernel grants and refuses fewer.
const RIGHTS: ABI = ABI::V9;

/// Starts the command of a plan with no more rights than it needs. They are given up by a thread of its
/// own, so that the init keeps its own.
pub(super) fn start(plan: &Plan, mut command: Command) -> Result<Child, String> {
    let mut spawn = move || command.spawn().map_err(tried("starting a shell"));
    let sockets = sockets::possible();
    match plan.confinement {
        Confinement::Nothing => spawn(),
        Confinement::Namespaces | Confinement::Bubblewrap => thread::scope(|scope| {
            let confined = scope.spawn(move || {
                restrict_writing(plan).map_err(|error| format!("Landlock: {error}"))?;
                drop_capabilities().map_err(tried("giving up capabilities"))?;
                let listener =
                    filter::install(sockets).map_err(tried("the filter of system calls"))?;
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

/// Landlock as a second wall behind read-only mounts. To be called without new privileges.
fn restrict_writing(plan: &Plan) -> Result<(), RulesetError> {
    let rights = AccessFs::from_write(RIGHTS);
    let mut rules = Ruleset::default()
        // Without this right, no file could be moved to another directory: then rather nothing.
        .set_compatibility(CompatLevel::SoftRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(rights)?
        .scope(Scope::from_all(RIGHTS))?
        .create()?;
    let tree = plan.tree.root().to_owned();
    let places = own_directories().chain(["/dev", "/proc"]);
    for place in places.map(PathBuf::from).chain([tree]) {
        // A place that cannot be opened is one that cannot be written to.
        if let Ok(opened) = PathFd::new(&place) {
            rules = rules.add_rule(PathBeneath::new(opened, rights))?;
        }
    }
    rules.restrict_self()?;
    Ok(())
}

/// Gives up all capabilities, and that programs which are started get any.
fn drop_capabilities() -> std::io::Result<()> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // Without the power to do so there is nothing that a program could get either.
        if remove_capability_from_bounding_set(one).is_err() {
            break;
        }
    }
    // Unknown to old kernels, which have none.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, none)?)
}
