//! The loopback device of a new network namespace is down. Test suites talk to themselves over it.

use std::io;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Its number in every network namespace.
const INDEX: i32 = 1;
const RTM_NEWLINK: u16 = 16;
/// A request that is to be acknowledged.
const FLAGS: u16 = 1 | 4;
const IFF_UP: u32 = 1;
const HEADER: usize = 16;

/// Brings it up.
pub(super) fn up() -> io::Result<()> {
    // Without a protocol it is routes and devices that are spoken of.
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::RAW, flags, None)?;
    send(&socket, &request(), SendFlags::empty())?;
    let mut answer = [0; 256];
    let (_, length) = recv(&socket, answer.as_mut_slice(), RecvFlags::empty())?;
    let code = answer[..length]
        .get(HEADER..HEADER + 4)
        .and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::Error::other("the kernel's answer was cut short")),
    }
}

/// A header, and the device with the flag that is to be set.
fn request() -> Vec<u8> {
    let (sequence, port, family_and_type, change) = (1u32, 0u32, 0u32, IFF_UP);
    let mut message = Vec::new();
    message.extend(32u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(port.to_ne_bytes());
    message.extend(family_and_type.to_ne_bytes());
    message.extend(INDEX.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(change.to_ne_bytes());
    message
}
