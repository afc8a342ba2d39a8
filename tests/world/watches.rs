//! Watches: complete, in order, from a revision on, and an error after a compaction.

use crate::backends::on_each_world;
use steadfast::world::WorldError;

#[test]
fn a_watch_delivers_every_change_of_its_prefix_in_order() {
    on_each_world(async |world| {
        let first = world.put("w/a", b"0".to_vec(), None).await.unwrap();
        let mut watch = world.watch("w/", first).await.unwrap();
        for number in 1..20_u8 {
            world.put("other", vec![number], None).await.unwrap();
            world.put("w/a", vec![number], None).await.unwrap();
        }
        world.delete("w/a").await.unwrap();
        let mut seen = Vec::new();
        while seen.last().is_none_or(|(value, _): &(Option<Vec<u8>>, u64)| value.is_some()) {
            for change in watch.next_batch().await.unwrap().changes {
                assert_eq!(change.key, "w/a");
                seen.push((change.entry.map(|entry| entry.value), change.revision));
            }
        }
        assert_eq!(seen.len(), 21);
        assert_eq!(seen.first().unwrap(), &(Some(b"0".to_vec()), first));
        assert!(seen.is_sorted_by(|a, b| a.1 < b.1));
    });
}

#[test]
fn a_watch_from_a_compacted_revision_is_refused() {
    on_each_world(async |world| {
        let first = world.put("k/a", b"0".to_vec(), None).await.unwrap();
        let mut last = first;
        for number in 0..5_u8 {
            last = world.put("k/a", vec![number], None).await.unwrap();
        }
        world.compact_history(last).await.unwrap();
        let mut outcome = world.watch("k/", first).await;
        if let Ok(watch) = &mut outcome {
            // A back end may report the compaction by the watch.
            let ended = watch.next_batch().await.map(drop);
            assert!(matches!(ended, Err(WorldError::Compacted(_))), "{ended:?}");
        } else {
            assert!(matches!(outcome, Err(WorldError::Compacted(_))), "{outcome:?}");
        }
        let mut watch = world.watch("k/", last).await.unwrap();
        assert_eq!(watch.next_batch().await.unwrap().changes.len(), 1);
    });
}
