//! The addresses of the interfaces, and a stream of their changes, from the kernel over netlink.

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The number of the interface.
    pub interface: u32,
    /// The address.
    pub address: IpAddr,
    /// True for a temporary, deprecated or tentative address, which a graph cannot rely on.
    pub is_transient: bool,
}

const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// Request and dump (`NLM_F_REQUEST | NLM_F_DUMP`).
const DUMP: u16 = 0x301;
/// Attributes of an address: the address, the local one of a point-to-point link, and flags of 32 bits.
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const FLAGS: u16 = 8;
/// The flags temporary, tentative, deprecated and failed duplicate detection.
const TRANSIENT: u32 = 0x01 | 0x40 | 0x20 | 0x08;
/// The length of the header of a message.
const HEADER: usize = 16;
/// The size of the buffer: the kernel fills at most 32 KiB.
const BUFFER: usize = 64 << 10;
/// The largest number of messages of one answer: the dump of a host with a million addresses ends.
const MOST_MESSAGES: usize = 100_000;

/// Asks the kernel for all addresses.
///
/// # Errors
/// The error of the system.
pub(super) fn read_addresses() -> Result<Vec<InterfaceAddress>, Errno> {
    let socket = open_socket(SocketFlags::CLOEXEC)?;
    let mut request = Vec::with_capacity(24);
    request.extend(24_u32.to_ne_bytes());
    request.extend(GET_ADDRESS.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend(1_u32.to_ne_bytes());
    request.extend([0; 12]);
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut addresses = Vec::new();
    let mut buffer = vec![0_u8; BUFFER];
    for _ in 0..MOST_MESSAGES {
        let (length, _) = rustix::net::recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let bytes = buffer.get(..length).unwrap_or_default();
        if read_messages(bytes, &mut addresses)? {
            return Ok(addresses);
        }
    }
    Err(Errno::TOOBIG)
}

fn open_socket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    // The protocol of addresses, NETLINK_ROUTE, has the number 0.
    rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)
}

/// Reads the messages of one datagram; returns true after the last one of the answer.
fn read_messages(mut bytes: &[u8], addresses: &mut Vec<InterfaceAddress>) -> Result<bool, Errno> {
    while let Some((length, kind)) = u32_at(bytes, 0).zip(u16_at(bytes, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(message) = bytes.get(HEADER..length) else { return Ok(true) };
        match kind {
            DONE => return Ok(true),
            ERROR => {
                let number = u32_at(message, 0).map_or(0, u32::cast_signed);
                return Err(Errno::from_raw_os_error(number.wrapping_neg()));
            }
            NEW_ADDRESS => addresses.extend(read_address(message)),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Reads one address: a header of 8 bytes, then attributes.
fn read_address(message: &[u8]) -> Option<InterfaceAddress> {
    let mut flags = u32::from(*message.get(2)?);
    let interface = u32_at(message, 4)?;
    let (mut address, mut local) = (None, None);
    let mut rest = message.get(8..)?;
    while let Some((length, kind)) = u16_at(rest, 0).zip(u16_at(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else { break };
        match kind {
            ADDRESS => address = ip_address(value),
            LOCAL => local = ip_address(value),
            FLAGS => flags = u32_at(value, 0).unwrap_or(flags),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    let address = local.or(address)?;
    Some(InterfaceAddress { interface, address, is_transient: flags & TRANSIENT != 0 })
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A socket that becomes readable when an interface, an address or a route changes.
#[derive(Debug)]
pub struct AddressChanges(OwnedFd);

/// Interfaces, IPv4 addresses and routes, IPv6 addresses and routes.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

impl AddressChanges {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open() -> Result<Self, Errno> {
        let socket = open_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(Self(socket))
    }

    /// Takes all reports; returns true if there was any. A lost report counts too.
    #[must_use]
    pub fn take_reports(&self) -> bool {
        let mut buffer = [0_u8; 8192];
        let mut any = false;
        for _ in 0..MOST_MESSAGES {
            match rustix::net::recv(&self.0, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok(_) | Err(Errno::NOBUFS) => any = true,
                Err(Errno::INTR) => {}
                Err(_) => return any,
            }
        }
        any
    }
}

impl AsFd for AddressChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl std::os::fd::AsRawFd for AddressChanges {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_lists_the_loopback_address() {
        let addresses = read_addresses().expect("addresses");
        assert!(addresses.iter().any(|it| it.address.is_loopback()), "{addresses:?}");
    }

    #[test]
    fn broken_messages_end_the_answer() {
        let mut addresses = Vec::new();
        for bytes in [&[0_u8; 64][..], &[255_u8; 64], &[16, 0, 0, 0, 20, 0], &[]] {
            let _result = read_messages(bytes, &mut addresses);
        }
        assert_eq!(addresses, []);
        assert_eq!(read_address(&[2, 24, 0, 0, 1, 0, 0, 0, 200, 0, 1, 0]), None);
    }
}
