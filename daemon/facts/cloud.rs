//! Facts of the cloud, from the file of cloud-init and from the firmware. No request leaves the host.

use super::collect::FactTree;
use super::host_root::HostRoot;

/// The file that cloud-init writes for everybody.
const INSTANCE_DATA: &str = "/run/cloud-init/instance-data.json";

/// Text of the firmware, with the cloud that it means.
const FIRMWARE: &[(&str, &str)] = &[
    ("Amazon EC2", "aws"),
    ("Google", "gce"),
    ("7783-7084-3265-9085-8269-3286-77", "azure"),
    ("DigitalOcean", "digitalocean"),
    ("Hetzner", "hetzner"),
    ("Alibaba Cloud", "aliyun"),
    ("OVHcloud", "ovh"),
    ("Scaleway", "scaleway"),
    ("Vultr", "vultr"),
    ("OracleCloud", "oracle"),
];

/// Collects the facts of the cloud.
pub(super) fn collect_cloud(root: &HostRoot, facts: &mut FactTree) {
    let text = root.text(INSTANCE_DATA);
    let data: Option<serde_json::Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    let get = |key: &str| {
        let text = data.as_ref()?.get("v1")?.get(key)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    let provider = get("cloud_name").filter(|name| name != "unknown" && name != "none");
    facts.put_some("cloud.provider", provider.or_else(|| firmware_cloud(root)));
    facts.put_some("cloud.instance_id", get("instance_id"));
    facts.put_some("cloud.region", get("region"));
}

fn firmware_cloud(root: &HostRoot) -> Option<String> {
    let files = ["sys_vendor", "product_name", "chassis_asset_tag", "bios_vendor"];
    let texts: Vec<String> =
        files.iter().filter_map(|file| root.word(&format!("/sys/class/dmi/id/{file}"))).collect();
    let found = FIRMWARE.iter().find(|(part, _)| texts.iter().any(|text| text.contains(part)));
    found.map(|(_, name)| (*name).to_owned())
}
