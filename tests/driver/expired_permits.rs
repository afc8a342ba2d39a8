//! Permits of the world whose lease has expired while the host was suspended: no change begins.

use crate::harness::{Ground, play_on};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use steadfast::config::{Gate, Window};
use steadfast::driver::DriverEvent;
use steadfast_engine::{Meta, WindowId};
use steadfast_resources::host::world::{
    NumberedPermit, PermitRequest, SharedWorld, WorldKey, WorldValue,
};
use steadfast_resources::{Answer, Failure, Host};

/// A world that grants each permit, and of which a test says whether the lease of this host has expired.
#[derive(Debug, Default)]
struct GrantingWorld {
    wanted: Mutex<Vec<NumberedPermit>>,
    has_expired: AtomicBool,
}

impl SharedWorld for GrantingWorld {
    fn read_value<'a>(&'a self, _key: &'a WorldKey) -> Answer<'a, Result<WorldValue, Failure>> {
        Box::pin(async { Ok(WorldValue::default()) })
    }

    fn write_value<'a>(
        &'a self,
        _key: &'a WorldKey,
        _value: Option<&'a str>,
    ) -> Answer<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn want_permits(&self, wanted: Vec<NumberedPermit>) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = wanted;
    }

    fn has_safe_lease(&self) -> bool {
        !self.has_expired.load(Ordering::SeqCst)
    }
}

/// Grants what is wanted, once something is.
async fn grant(ground: &Ground, world: &GrantingWorld) {
    loop {
        let wanted = world.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !wanted.is_empty() {
            ground.inbox.put(DriverEvent::WorldPermits(wanted));
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A host that was suspended for longer than its lease holds a permit that another host may have by now: a change fails
/// without a begin, and is made when the lease holds again.
#[test]
fn no_change_begins_after_the_lease_of_its_permit() {
    let world = Arc::new(GrantingWorld::default());
    let host = Host::default().with_world(Arc::clone(&world) as Arc<dyn SharedWorld>);
    play_on(host, |mut ground| async move {
        let resource = Some("thing[one]".to_owned());
        let permits = vec![PermitRequest { id: "disk".to_owned(), size: 1, resource }];
        let gate = Gate { permits, settle: None, healthy: None, stops_on_failure: false };
        ground.windows = vec![("disk".to_owned(), Window::with_gate(None, gate))];
        let meta = Meta { window: Some(WindowId(0)), ..Meta::default() };
        world.has_expired.store(true, Ordering::SeqCst);
        ground.load(&[("one", &[])], meta);
        grant(&ground, &world).await;
        ground.hears("failed thing[one]").await;
        assert!(ground.world().there.is_empty(), "nothing was changed");
        world.has_expired.store(false, Ordering::SeqCst);
        ground.look("one");
        grant(&ground, &world).await;
        ground.hears("changed thing[one]: Intentional").await;
        ground.hears("converged").await;
    });
}
