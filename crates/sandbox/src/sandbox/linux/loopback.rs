//! Brings up the loopback device of a new network namespace, which test suites use for local
//! connections.

use std::io;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Index of the loopback device in every network namespace.
const INDEX: i32 = 1;
const RTM_NEWLINK: u16 = 16;
/// Flags of a netlink request that the kernel must acknowledge.
const FLAGS: u16 = 1 | 4;
const IFF_UP: u32 = 1;
const HEADER: usize = 16;

/// Brings the loopback device up.
pub(super) fn up() -> io::Result<()> {
    // Protocol 0 of netlink is `NETLINK_ROUTE`, for routes and devices.
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
        None => Err(io::Error::other("the reply of the kernel was truncated")),
    }
}

/// Returns a netlink header followed by the device and the flag to set.
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
