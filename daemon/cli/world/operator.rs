//! `steadfast world`: interventions of an operator.

use super::{in_time, operator_name, with_world};
use crate::cli::args::{World as WorldArgs, WorldCommand, WorldForget, WorldList, WorldRelease};
use crate::cli::exit::Exit;
use crate::cli::output::{error, plain, print};
use crate::world::records::{SCHEMA, Tombstone, unix_seconds, write_record};
use crate::world::{World, WorldError, keys};

/// Runs `steadfast world`.
pub(in crate::cli) fn world(args: &WorldArgs) -> Exit {
    match &args.command {
        WorldCommand::Forget(forget) => forget_host(forget),
        WorldCommand::Release(release) => release_permit(release),
        WorldCommand::List(list) => list_keys(list),
    }
}

/// Deletes all keys with a prefix, or those that `is_asked` selects; returns their number.
async fn delete_keys(
    world: &dyn World,
    prefix: &str,
    is_asked: impl Fn(&str) -> bool,
) -> Result<usize, WorldError> {
    let found = in_time(world.list(prefix)).await?.entries;
    let asked: Vec<_> = found.into_iter().filter(|entry| is_asked(&entry.key)).collect();
    for entry in &asked {
        in_time(world.delete(&entry.key)).await?;
    }
    Ok(asked.len())
}

fn forget_host(args: &WorldForget) -> Exit {
    with_world(&args.world, async |world, _| {
        let world = world.as_ref();
        let part = keys::encode_name(&args.host);
        let of_host = in_time(world.list(&format!("{}{part}/", keys::HOSTS))).await?.entries;
        if of_host.iter().any(|entry| keys::running_host(&entry.key).is_some()) {
            let what =
                format!("the host `{}` is running: stop its daemon first", plain(&args.host));
            error(what, Some("`steadfast fleet` shows the hosts"));
            return Ok(Exit::Busy);
        }
        let stone = Tombstone { schema: SCHEMA, by: operator_name(), since: unix_seconds() };
        in_time(world.put(&keys::tombstone(&args.host), write_record(&stone), None)).await?;
        let mut number = 0;
        for prefix in [keys::EXPORTS, keys::VALUES, keys::HOSTS] {
            number += delete_keys(world, &format!("{prefix}{part}/"), |_| true).await?;
        }
        number += delete_keys(world, &keys::want(&args.host), |key| key == keys::want(&args.host))
            .await?;
        let is_of_host = |key: &str| key.split('/').nth(2) == Some(part.as_str());
        for prefix in [keys::SEMA, keys::ROLL] {
            number += delete_keys(world, prefix, is_of_host).await?;
        }
        print(format!("{}: forgotten, {number} keys deleted", plain(&args.host)));
        Ok(Exit::Well)
    })
}

fn release_permit(args: &WorldRelease) -> Exit {
    with_world(&args.world, async |world, _| {
        let (sort, id) = args.permit.split_once('/').unwrap_or((&args.permit, ""));
        let prefix = match sort {
            "sema" if !id.is_empty() => keys::semaphore(id),
            "roll" if !id.is_empty() => keys::roll(id),
            _ => {
                let what =
                    format!("expected sema/ID or roll/NAME, found `{}`", plain(&args.permit));
                error(what, Some("`steadfast fleet` lists the permits"));
                return Ok(Exit::Usage);
            }
        };
        let part = keys::encode_name(&args.host);
        let is_of_host = |key: &str| key.split('/').nth(2) == Some(part.as_str());
        let number = delete_keys(world.as_ref(), &prefix, is_of_host).await?;
        if number == 0 {
            let what = format!("{} has no ticket of {}", plain(&args.host), plain(&args.permit));
            error(what, Some("`steadfast fleet` lists the holders"));
            return Ok(Exit::Failed);
        }
        print(format!(
            "{}: {number} ticket of {} released",
            plain(&args.permit),
            plain(&args.host)
        ));
        Ok(Exit::Well)
    })
}

fn list_keys(args: &WorldList) -> Exit {
    with_world(&args.world, async |world, _| {
        let range = in_time(world.list(&args.prefix)).await?;
        for entry in range.entries {
            let value = String::from_utf8_lossy(&entry.value).into_owned();
            let lease = if entry.lease.is_some() { " (lease)" } else { "" };
            print(format!("{}{lease} {}", plain(&entry.key), plain(&value)));
        }
        Ok(Exit::Well)
    })
}
