//! Saved values that were sent: stored encrypted, or not at all.

use crate::harness::{CANARY, play};
use std::sync::Arc;
use steadfast_engine::Meta;
use steadfast_resources::host::simulated::Machine;

/// B-26: a run that sends a secret fails if the secret cannot be encrypted, with or without a change, and nothing is
/// stored. The secret is stored as soon as encryption works.
#[test]
fn unencryptable_values_are_not_stored() {
    play(|mut ground| async move {
        let machine = Machine::default();
        let entered = machine.enter();
        machine.set_randomness(false);
        ground.load(&[("secret", &[])], Meta::default());
        ground.hears("failed thing[secret]").await;
        assert!(ground.world().there.contains("secret"), "it was done");
        ground.look("secret");
        ground.hears("failed thing[secret]").await;
        let kept = ground.kept().await;
        let record = kept.resources.get("thing[secret]");
        let sent = record.and_then(|record| record.sent.clone());
        assert_eq!(sent, None);
        assert_eq!(record.and_then(|record| record.done), None);
        machine.set_randomness(true);
        ground.look("secret");
        ground.hears("converged").await;
        let sent = ground.kept().await.resources["thing[secret]"].sent.clone();
        let text = sent.map(|sent| Arc::clone(&sent.0)).unwrap_or_default();
        assert!(text.contains("encrypted") && !text.contains(CANARY), "{text}");
        drop(entered);
    });
}
