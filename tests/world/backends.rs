//! One world of each kind that accepts writes; each test of the contract runs on all of them.

use std::sync::Arc;
use steadfast::world::{EmbeddedWorld, World, boot_time};

/// Runs a test on a new world of each kind.
pub(crate) fn on_each_world<F: Future<Output = ()>>(test: impl Fn(Arc<dyn World>) -> F) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    let memory = EmbeddedWorld::in_memory(Arc::new(boot_time)).unwrap();
    runtime.block_on(test(Arc::new(memory)));
    let folder = tempfile::tempdir().unwrap();
    let file = EmbeddedWorld::open(&folder.path().join("world.sqlite")).unwrap();
    runtime.block_on(test(Arc::new(file)));
    #[cfg(feature = "etcd")]
    crate::etcd::cluster::with_fresh_world(&runtime, |world| runtime.block_on(test(world)));
}
