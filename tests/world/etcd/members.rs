//! Faults of members: the client goes on with another one, and a view finds its way back.

use super::cluster::{Cluster, until_ready};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steadfast::world::follower::{RangeView, follow_range};
use steadfast::world::{EtcdWorld, World};
use tokio::sync::watch;

async fn put_until_done(world: &dyn World, key: &str, value: &str) {
    let began = Instant::now();
    while let Err(error) = world.put(key, value.into(), None).await {
        assert!(began.elapsed() < Duration::from_mins(1), "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn until_value(views: &mut watch::Receiver<RangeView>, value: &str) {
    let has = |view: &RangeView| {
        view.entries.get("v/a").is_some_and(|entry| entry.value == value.as_bytes())
    };
    let reached = views.wait_for(has);
    drop(tokio::time::timeout(Duration::from_secs(90), reached).await.expect("in time").unwrap());
}

/// Each member in turn is killed, then frozen; every write arrives in the view.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_survives_each_member() {
    let mut cluster = Cluster::start("http", &[]);
    let world: Arc<dyn World> = Arc::new(EtcdWorld::new(cluster.settings("test")));
    until_ready(world.as_ref()).await;
    let (sender, mut views) = watch::channel(RangeView::default());
    tokio::spawn(follow_range(Arc::clone(&world), ("v/".to_owned(), 1), sender));
    for number in 0..3 {
        cluster.kill(number);
        let value = format!("killed {number}");
        put_until_done(world.as_ref(), "v/a", &value).await;
        until_value(&mut views, &value).await;
        cluster.restart(number);
        until_ready(world.as_ref()).await;
    }
    for number in 0..3 {
        cluster.signal(number, "-STOP");
        let value = format!("frozen {number}");
        put_until_done(world.as_ref(), "v/a", &value).await;
        until_value(&mut views, &value).await;
        cluster.signal(number, "-CONT");
        until_ready(world.as_ref()).await;
    }
}

/// Without any member the view keeps its entries and says since when; afterwards it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_view_without_members_is_stale_and_keeps_its_entries() {
    let mut cluster = Cluster::start("http", &[]);
    let world: Arc<dyn World> = Arc::new(EtcdWorld::new(cluster.settings("test")));
    until_ready(world.as_ref()).await;
    put_until_done(world.as_ref(), "v/a", "1").await;
    let (sender, mut views) = watch::channel(RangeView::default());
    tokio::spawn(follow_range(Arc::clone(&world), ("v/".to_owned(), 1), sender));
    until_value(&mut views, "1").await;
    (0..3).for_each(|number| cluster.kill(number));
    let stale = views.wait_for(|view| view.stale.is_some());
    let view = tokio::time::timeout(Duration::from_mins(1), stale).await.unwrap().unwrap().clone();
    assert_eq!(view.entries.len(), 1, "nothing vanishes");
    (0..3).for_each(|number| cluster.restart(number));
    put_until_done(world.as_ref(), "v/a", "2").await;
    until_value(&mut views, "2").await;
    assert!(views.borrow().stale.is_none());
}
