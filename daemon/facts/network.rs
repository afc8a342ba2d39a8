//! Interfaces, addresses and the default routes.

use super::collect::FactTree;
use super::host_root::{HostRoot, SystemAnswers};
use super::netlink::InterfaceAddress;
use crate::expressions::Value;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The largest number of lines of the routing table that are read: a router may have a million.
const MOST_ROUTES: usize = 10_000;
/// The largest number of bytes of the table of IPv6 that are read: as many lines.
const MOST_ROUTE_BYTES: u64 = 150 * MOST_ROUTES as u64;
/// The flags of a route of IPv6: in use, and refused by the kernel.
const ROUTE_UP: u32 = 0x1;
const ROUTE_REJECTED: u32 = 0x200;

/// Collects the facts of the network.
pub(super) fn collect_network(root: &HostRoot, answers: &SystemAnswers, facts: &mut FactTree) {
    let mut interfaces = BTreeMap::new();
    for name in root.entries("/sys/class/net") {
        let at = |file: &str| format!("/sys/class/net/{name}/{file}");
        // `bonding_masters` is a file beside the interfaces.
        let Some(number) = root.number(&at("ifindex")) else { continue };
        let own = answers.addresses.iter().filter(|it| i64::from(it.interface) == number);
        let mut interface = BTreeMap::from([
            ("addresses".to_owned(), texts(own.filter(|it| !it.is_transient))),
            ("mtu".to_owned(), Value::Int(root.number(&at("mtu")).unwrap_or_default())),
            (
                "state".to_owned(),
                Value::Text(root.word(&at("operstate")).unwrap_or_else(|| "unknown".to_owned())),
            ),
        ]);
        if let Some(mac) = root.word(&at("address")).filter(|mac| !mac.is_empty()) {
            interface.insert("mac".to_owned(), Value::Text(mac));
        }
        interfaces.insert(name, Value::Map(interface.into()));
    }
    facts.put("interfaces", Value::Map(interfaces.into()));
    if let Some(error) = &answers.addresses_error {
        facts.report("addresses", error.clone());
    }
    let stable = || answers.addresses.iter().filter(|it| !it.is_transient && is_reachable(it));
    facts.put("addresses.ipv4", texts(stable().filter(|it| it.address.is_ipv4())));
    facts.put("addresses.ipv6", texts(stable().filter(|it| it.address.is_ipv6())));
    if let Some((interface, gateway)) = default_route(root) {
        facts.put("default_route.interface", interface);
        facts.put_some("default_route.gateway", gateway.map(|gateway| gateway.to_string()));
    }
    if let Some((interface, gateway)) = default_route_ipv6(root) {
        facts.put("default_route_ipv6.interface", interface);
        facts.put_some("default_route_ipv6.gateway", gateway.map(|gateway| gateway.to_string()));
    }
}

/// Returns true for an address that other hosts can use.
fn is_reachable(address: &InterfaceAddress) -> bool {
    match address.address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    }
}

/// Returns a list of addresses as text, sorted by number: the order of the kernel changes.
fn texts<'all>(addresses: impl Iterator<Item = &'all InterfaceAddress>) -> Value {
    let mut addresses: Vec<IpAddr> = addresses.map(|it| it.address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    Value::List(addresses.into_iter().map(|address| Value::Text(address.to_string())).collect())
}

/// Returns interface and gateway of the default route with the lowest metric.
fn default_route(root: &HostRoot) -> Option<(String, Option<Ipv4Addr>)> {
    let table = root.text("/proc/net/route")?;
    let routes = table.lines().skip(1).take(MOST_ROUTES).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(columns.get(at)?, 16).ok();
        let (destination, gateway, mask) = (hex(1)?, hex(2)?, hex(7)?);
        let metric: u32 = columns.get(6)?.parse().ok()?;
        // The kernel prints the bytes of an address as one number of this machine.
        let gateway = (gateway != 0).then(|| Ipv4Addr::from(gateway.to_ne_bytes()));
        let interface = (*columns.first()?).to_owned();
        (destination == 0 && mask == 0).then_some((metric, interface, gateway))
    });
    let best = routes.min_by_key(|(metric, ..)| *metric);
    best.map(|(_, interface, gateway)| (interface, gateway))
}

/// Returns interface and gateway of the IPv6 default route with the lowest metric.
fn default_route_ipv6(root: &HostRoot) -> Option<(String, Option<Ipv6Addr>)> {
    let table = root.beginning("/proc/net/ipv6_route", MOST_ROUTE_BYTES)?;
    let routes = table.lines().filter_map(|line| {
        // The columns: destination, source, each with the length of its prefix, next hop, metric, two counters, flags,
        // interface.
        let columns: Vec<&str> = line.split_whitespace().collect();
        let hex = |at: usize| u128::from_str_radix(columns.get(at)?, 16).ok();
        let (prefix, source_prefix, gateway) = (hex(1)?, hex(3)?, hex(4)?);
        let (metric, flags) = (hex(5)?, u32::try_from(hex(8)?).ok()?);
        let interface = (*columns.get(9)?).to_owned();
        let is_used = flags & ROUTE_UP != 0 && flags & ROUTE_REJECTED == 0;
        let gateway = (gateway != 0).then(|| Ipv6Addr::from(gateway));
        (prefix == 0 && source_prefix == 0 && is_used).then_some((metric, interface, gateway))
    });
    let best = routes.min_by_key(|(metric, ..)| *metric);
    best.map(|(_, interface, gateway)| (interface, gateway))
}
