//! Leases: keys end with their lease, a renewed lease lives on, and a suspended clock counts.

use crate::backends::on_each_world;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steadfast::world::{EmbeddedWorld, World as _, WorldError};

#[test]
fn a_key_ends_with_its_lease() {
    on_each_world(async |world| {
        let lease = world.grant_lease(Duration::from_secs(30)).await.unwrap();
        let kept = world.grant_lease(Duration::from_secs(30)).await.unwrap();
        assert_ne!(lease, kept);
        world.put("e/a", b"1".to_vec(), Some(lease)).await.unwrap();
        world.put("e/b", b"1".to_vec(), Some(kept)).await.unwrap();
        world.put("e/c", b"1".to_vec(), Some(lease)).await.unwrap();
        // A write without the lease takes the key out of it.
        world.put("e/c", b"2".to_vec(), None).await.unwrap();
        assert_eq!(world.get("e/a").await.unwrap().unwrap().lease, Some(lease));
        world.keep_alive(lease).await.unwrap();
        let left = world.lease_time_left(lease).await.unwrap();
        assert!((Duration::from_secs(1)..=Duration::from_secs(30)).contains(&left), "{left:?}");
        world.revoke_lease(lease).await.unwrap();
        assert_eq!(world.lease_time_left(lease).await, Err(WorldError::LeaseEnded));
        world.revoke_lease(lease).await.unwrap();
        let keys: Vec<_> = world.list("e/").await.unwrap().entries;
        let keys: Vec<_> = keys.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["e/b", "e/c"]);
        assert_eq!(world.keep_alive(lease).await, Err(WorldError::LeaseEnded));
        assert_eq!(world.put("e/a", vec![], Some(lease)).await, Err(WorldError::LeaseEnded));
    });
}

#[test]
fn a_lease_that_nobody_renews_ends() {
    on_each_world(async |world| {
        let lease = world.grant_lease(Duration::from_secs(2)).await.unwrap();
        world.put("f/a", b"1".to_vec(), Some(lease)).await.unwrap();
        let from = world.list("f/").await.unwrap().revision + 1;
        let mut watch = world.watch("f/", from).await.unwrap();
        let ended = async {
            loop {
                let batch = watch.next_batch().await.unwrap();
                if batch.changes.iter().any(|it| it.key == "f/a" && it.entry.is_none()) {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), ended)
            .await
            .expect("the watch reports the end");
        assert_eq!(world.get("f/a").await.unwrap(), None);
        assert_eq!(world.keep_alive(lease).await, Err(WorldError::LeaseEnded));
    });
}

/// The clock of the embedded world counts suspends, and renewals count from the present time.
#[tokio::test]
async fn an_embedded_lease_ends_by_the_given_clock() {
    let now = Arc::new(Mutex::new(Duration::from_secs(100)));
    let clock = Arc::clone(&now);
    let world = EmbeddedWorld::in_memory(Arc::new(move || *clock.lock().unwrap())).unwrap();
    let lease = world.grant_lease(Duration::from_secs(30)).await.unwrap();
    world.put("a", vec![], Some(lease)).await.unwrap();
    *now.lock().unwrap() += Duration::from_secs(29);
    world.keep_alive(lease).await.unwrap();
    *now.lock().unwrap() += Duration::from_secs(29);
    assert!(world.get("a").await.unwrap().is_some());
    *now.lock().unwrap() += Duration::from_secs(2);
    assert_eq!(world.get("a").await.unwrap(), None);
    assert_eq!(world.keep_alive(lease).await, Err(WorldError::LeaseEnded));
}

/// An embedded world keeps its values over a restart, and two processes may open it.
#[tokio::test]
async fn two_processes_share_an_embedded_world() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.sqlite");
    let one = EmbeddedWorld::open_shared(&path).unwrap();
    let two = EmbeddedWorld::open_shared(&path).unwrap();
    let revision = one.put("a", b"1".to_vec(), None).await.unwrap();
    let mut watch = two.watch("", revision).await.unwrap();
    assert_eq!(watch.next_batch().await.unwrap().changes.len(), 1);
    one.put("a", b"2".to_vec(), None).await.unwrap();
    let batch = watch.next_batch().await.unwrap();
    assert_eq!(batch.changes.first().unwrap().entry.as_ref().unwrap().value, b"2");
    drop((one, two, watch));
    let again = EmbeddedWorld::open(&path).unwrap();
    assert_eq!(again.get("a").await.unwrap().unwrap().value, b"2");
}
