//! A cluster with TLS, users and roles, set up by the commands of docs/guide/many-hosts.md: a host writes its own keys
//! and no others.

use super::cluster::{Cluster, until_ready};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use steadfast::world::{EtcdSettings, EtcdWorld, World, WorldError, keys};

/// Runs a shell script that must succeed.
#[track_caller]
fn shell(folder: &Path, script: &str) {
    let mut command = Command::new("bash");
    command.args(["-euc", script]).current_dir(folder).env("ETCDCTL_API", "3");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes an authority, a certificate of the servers, and one for each name.
fn make_certificates(folder: &Path, names: &[&str]) {
    shell(
        folder,
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca 2>/dev/null
         openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=server 2>/dev/null
         printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' > server.ext
         openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile server.ext 2>/dev/null",
    );
    for name in names {
        let script = format!(
            "openssl req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name} 2>/dev/null
             printf 'extendedKeyUsage=clientAuth\\n' > {name}.ext
             openssl x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 2 -extfile {name}.ext 2>/dev/null"
        );
        shell(folder, &script);
    }
}

/// Returns the commands of the setup page, up to `etcdctl auth enable`.
fn setup_commands() -> String {
    let page = std::fs::read_to_string("docs/guide/many-hosts.md").unwrap();
    let (_, rest) = page.split_once("```sh\nP=").expect("the commands of the page");
    let (commands, _) = rest.split_once("```").expect("the end of the commands");
    format!("P={commands}")
}

/// Checks the ranges that a host and a deployer may write.
async fn check_ranges(host: &Arc<dyn World>, deployer: &Arc<dyn World>) {
    let put = async |world: &Arc<dyn World>, key: &str| {
        world.put(key, b"{}".to_vec(), None).await.map(drop)
    };
    for own in [
        keys::host_status("web1"),
        keys::export("web1", "noop[x]"),
        keys::host_value("web1", "k"),
        keys::shared_value("k"),
        keys::semaphore_ticket("s", "web1", "noop[x]"),
        keys::roll_slot("r", "web1"),
    ] {
        assert_eq!(put(host, &own).await, Ok(()), "{own}");
    }
    for foreign in [
        keys::want("web1"),
        keys::want("web2"),
        keys::tombstone("web2"),
        keys::DEPLOY_LEASE.to_owned(),
        keys::host_status("web2"),
        keys::host_meta("web10"),
        keys::export("web2", "noop[x]"),
        keys::host_value("web2", "k"),
        "other".to_owned(),
    ] {
        let refused = put(host, &foreign).await;
        assert!(matches!(refused, Err(WorldError::Denied(_))), "{foreign}: {refused:?}");
    }
    for key in [keys::want("web1"), keys::tombstone("web2"), keys::DEPLOY_LEASE.to_owned()] {
        assert_eq!(put(deployer, &key).await, Ok(()), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_writes_its_own_keys_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    make_certificates(folder.path(), &["root", "web1", "deployer", "stranger"]);
    let file = |name: &str| folder.path().join(name).display().to_string();
    let tls = [
        "--client-cert-auth".to_owned(),
        format!("--trusted-ca-file={}", file("ca.pem")),
        format!("--cert-file={}", file("server.pem")),
        format!("--key-file={}", file("server.key")),
    ];
    let cluster = Cluster::start("https", &tls);
    let world_of = |name: &str| -> Arc<dyn World> {
        Arc::new(EtcdWorld::new(EtcdSettings {
            endpoints: cluster.members.iter().map(|member| member.client.clone()).collect(),
            ca: Some(folder.path().join("ca.pem")),
            cert: Some(folder.path().join(format!("{name}.pem"))),
            key: Some(folder.path().join(format!("{name}.key"))),
            cluster: "prod".to_owned(),
        }))
    };
    until_ready(world_of("root").as_ref()).await;
    let flags = format!(
        "export ETCDCTL_ENDPOINTS={} ETCDCTL_CACERT={} ETCDCTL_CERT={} ETCDCTL_KEY={}",
        cluster.members[0].client,
        file("ca.pem"),
        file("root.pem"),
        file("root.key")
    );
    shell(folder.path(), &format!("{flags}\n{}", setup_commands()));

    let (host, deployer) = (world_of("web1"), world_of("deployer"));
    check_ranges(&host, &deployer).await;
    assert!(
        host.get(&keys::want("web1")).await.unwrap().is_some(),
        "a host reads what it should run"
    );
    let lease = host.grant_lease(Duration::from_secs(30)).await.unwrap();
    host.put(&keys::host_status("web1"), vec![], Some(lease)).await.unwrap();
    host.keep_alive(lease).await.unwrap();
    // A certificate of the authority without a user, and a client without a certificate, read nothing.
    let stranger = world_of("stranger").list("").await;
    assert!(stranger.is_err(), "{stranger:?}");
    let nobody = EtcdWorld::new(EtcdSettings {
        endpoints: cluster.members.iter().map(|member| member.client.clone()).collect(),
        ca: Some(folder.path().join("ca.pem")),
        cluster: "prod".to_owned(),
        ..EtcdSettings::default()
    });
    let nobody = nobody.list("").await;
    assert!(nobody.is_err(), "{nobody:?}");
}
