//! The view of a range: it follows changes, and believes no read that is older than an earlier one.

use crate::backends::on_each_world;
use std::sync::Arc;
use std::time::Duration;
use steadfast::world::Range;
use steadfast::world::follower::{RangeView, follow_range};
use tokio::sync::watch;

#[test]
fn a_view_follows_its_range_over_a_compaction() {
    on_each_world(async |world| {
        world.put("v/a", b"1".to_vec(), None).await.unwrap();
        let (sender, mut views) = watch::channel(RangeView::default());
        let task = tokio::spawn(follow_range(Arc::clone(&world), ("v/".to_owned(), 1), sender));
        let limit = Duration::from_secs(10);
        let until = async |views: &mut watch::Receiver<RangeView>, number: usize| {
            let reached =
                views.wait_for(|view| view.entries.len() == number && view.stale.is_none());
            tokio::time::timeout(limit, reached).await.expect("in time").unwrap().clone()
        };
        until(&mut views, 1).await;
        let last = world.put("v/b", b"2".to_vec(), None).await.unwrap();
        until(&mut views, 2).await;
        world.compact_history(last).await.unwrap();
        world.delete("v/a").await.unwrap();
        let view = until(&mut views, 1).await;
        assert!(view.entries.contains_key("v/b"));
        drop(views);
        tokio::time::timeout(limit, task).await.expect("the follower ends").unwrap();
    });
}

/// A restored backup or a stale member may answer with an empty range of an old revision.
#[test]
fn an_old_empty_range_empties_nothing() {
    let entry = steadfast::world::Entry {
        key: "exports/web1/x".to_owned(),
        value: vec![],
        create_revision: 7,
        mod_revision: 7,
        lease: None,
    };
    let mut view = RangeView::default();
    assert!(view.replace_entries(Range { revision: 9, entries: vec![entry] }));
    assert!(!view.replace_entries(Range { revision: 8, entries: vec![] }));
    assert_eq!(view.entries.len(), 1);
    assert!(view.replace_entries(Range { revision: 9, entries: vec![] }));
    assert!(view.entries.is_empty());
}
