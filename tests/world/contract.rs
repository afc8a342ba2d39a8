//! Reads, writes and transactions: the same on each back end; the folder obeys the reading part.

use crate::backends::on_each_world;
use std::sync::Arc;
use std::time::Duration;
use steadfast::world::{
    Compare, FolderWorld, LeaseId, MAX_OPERATIONS, MAX_VALUE_BYTES, Operation, Transaction,
    World as _, WorldError,
};

#[test]
fn a_value_is_read_as_written_with_its_revisions() {
    on_each_world(async |world| {
        assert_eq!(world.get("a").await.unwrap(), None);
        let first = world.put("a", b"1".to_vec(), None).await.unwrap();
        let second = world.put("a", b"2".to_vec(), None).await.unwrap();
        assert!(second > first);
        let entry = world.get("a").await.unwrap().unwrap();
        assert_eq!((entry.key.as_str(), entry.value.as_slice()), ("a", b"2".as_slice()));
        assert_eq!((entry.create_revision, entry.mod_revision), (first, second));
        world.delete("a").await.unwrap();
        world.delete("a").await.unwrap();
        assert_eq!(world.get("a").await.unwrap(), None);
        let third = world.put("a", Vec::new(), None).await.unwrap();
        assert_eq!(world.get("a").await.unwrap().unwrap().create_revision, third);
    });
}

#[test]
fn a_range_holds_the_prefix_sorted_and_at_one_revision() {
    on_each_world(async |world| {
        for key in ["x/b", "x/a", "x", "y/a", "x/%2F", "x0"] {
            world.put(key, key.as_bytes().to_vec(), None).await.unwrap();
        }
        let range = world.list("x/").await.unwrap();
        let keys: Vec<_> = range.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["x/%2F", "x/a", "x/b"]);
        assert!(range.entries.iter().all(|entry| entry.mod_revision <= range.revision));
        let empty = world.list("none/").await.unwrap();
        assert!(empty.entries.is_empty() && empty.revision >= range.revision);
    });
}

#[test]
fn a_transaction_happens_as_a_whole_or_not_at_all() {
    on_each_world(async |world| {
        let put = |key: &str, value: &str| Operation::Put(key.to_owned(), value.into(), None);
        let created = Transaction {
            conditions: vec![Compare::CreateRevision("t/a".to_owned(), 0)],
            operations: vec![put("t/a", "1"), put("t/b", "1")],
        };
        let done = world.transact(created.clone()).await.unwrap();
        assert!(done.succeeded);
        let again = world.transact(created).await.unwrap();
        assert!(!again.succeeded, "the key exists");
        let entry = world.get("t/b").await.unwrap().unwrap();
        assert_eq!(entry.mod_revision, done.revision);
        let swap = |revision| Transaction {
            conditions: vec![
                Compare::ModRevision("t/a".to_owned(), revision),
                Compare::ModRevision("t/absent".to_owned(), 0),
            ],
            operations: vec![put("t/a", "2"), Operation::Delete("t/b".to_owned())],
        };
        assert!(!world.transact(swap(done.revision + 1)).await.unwrap().succeeded);
        assert_eq!(world.get("t/a").await.unwrap().unwrap().value, b"1");
        assert!(world.transact(swap(done.revision)).await.unwrap().succeeded);
        assert_eq!(world.get("t/a").await.unwrap().unwrap().value, b"2");
        assert_eq!(world.get("t/b").await.unwrap(), None);
    });
}

#[test]
fn limits_are_the_same_everywhere() {
    on_each_world(async |world| {
        let put = |number: usize| Operation::Put(format!("l/{number}"), Vec::new(), None);
        let transaction = |operations| Transaction { conditions: Vec::new(), operations };
        let many = transaction((0..MAX_OPERATIONS).map(put).collect());
        assert!(matches!(world.transact(many).await, Err(WorldError::Invalid(_))));
        let fits = transaction((0..MAX_OPERATIONS - 1).map(put).collect());
        assert!(world.transact(fits).await.unwrap().succeeded);
        let twice = transaction(vec![put(1), put(1)]);
        assert!(matches!(world.transact(twice).await, Err(WorldError::Invalid(_))));
        let large = world.put("l/large", vec![0; MAX_VALUE_BYTES], None).await;
        assert!(matches!(large, Err(WorldError::Invalid(_))));
        world.put("l/large", vec![0; MAX_VALUE_BYTES - 1], None).await.unwrap();
        assert!(matches!(world.put("", vec![], None).await, Err(WorldError::Invalid(_))));
        let absent = world.put("l/a", vec![], Some(LeaseId(987_654))).await;
        assert_eq!(absent, Err(WorldError::LeaseEnded));
    });
}

/// Two hosts create one key at once: exactly one succeeds.
#[test]
fn only_one_of_many_writers_creates_a_key() {
    on_each_world(async |world| {
        let tries = (0..16_u8).map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let created = Transaction {
                    conditions: vec![Compare::CreateRevision("race".to_owned(), 0)],
                    operations: vec![Operation::Put("race".to_owned(), vec![number], None)],
                };
                world.transact(created).await.unwrap().succeeded
            })
        });
        let mut winners = 0;
        for attempt in tries.collect::<Vec<_>>() {
            winners += u32::from(attempt.await.unwrap());
        }
        assert_eq!(winners, 1);
    });
}

/// The reading part of the contract on a folder; all writes answer *read only*.
#[tokio::test]
async fn a_folder_is_read_and_watched_and_never_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("strings")).unwrap();
    std::fs::write(folder.path().join("strings/a"), "1").unwrap();
    std::fs::write(folder.path().join(".hidden"), "x").unwrap();
    let world = FolderWorld::new(folder.path().to_owned());
    let range = world.list("").await.unwrap();
    let keys: Vec<_> = range.entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["strings/a"]);
    assert_eq!(world.get("strings/a").await.unwrap().unwrap().value, b"1");
    let mut watch = world.watch("strings/", range.revision + 1).await.unwrap();
    std::fs::write(folder.path().join("strings/b"), "2").unwrap();
    std::fs::remove_file(folder.path().join("strings/a")).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let batch = watch.next_batch().await.unwrap();
        seen.extend(batch.changes.into_iter().map(|change| (change.key, change.entry.is_some())));
    }
    seen.sort();
    assert_eq!(seen, [("strings/a".to_owned(), false), ("strings/b".to_owned(), true)]);
    assert_eq!(world.put("a", vec![], None).await, Err(WorldError::ReadOnly));
    assert_eq!(world.delete("a").await, Err(WorldError::ReadOnly));
    assert_eq!(world.grant_lease(Duration::from_secs(1)).await, Err(WorldError::ReadOnly));
    assert_eq!(world.keep_alive(LeaseId(1)).await, Err(WorldError::ReadOnly));
    let lost = FolderWorld::new(folder.path().join("absent"));
    assert!(matches!(lost.list("").await, Err(WorldError::Unavailable(_))));
}
