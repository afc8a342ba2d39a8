//! Inspection of systemd units.

use super::{Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::host::Host;
use crate::host::systemd::{Activity, Bus};

pub(super) const INSPECTOR: Inspector = Inspector { kind: "svc", one, all: Some(all) };

fn one<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let unit = crate::kinds::svc::unit_name(name)?;
        let state = host.systemd().file_state(Bus::System, &unit).await?;
        let loaded = host.systemd().unit(Bus::System, &unit).await?;
        if state.is_none() && loaded.is_none() {
            return Ok(None);
        }
        let is_running = loaded
            .is_some_and(|unit| matches!(unit.activity, Activity::Active | Activity::Reloading));
        let mut fields = vec![text("state", if is_running { "running" } else { "stopped" })];
        match state.as_deref() {
            Some("enabled") => fields.push(text("startup", "enabled")),
            Some("disabled") => fields.push(text("startup", "disabled")),
            Some("masked") => fields.push(text("startup", "masked")),
            _ => {}
        }
        Ok(Some(Inspected::new(unit, fields)))
    })
}

fn all(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let never = tokio_util::sync::CancellationToken::new();
        let listed = crate::parts::commands::query_text(
            host,
            &never,
            &[
                "systemctl",
                "list-unit-files",
                "--type=service,timer,socket",
                "--no-legend",
                "--plain",
            ],
        );
        let names = listed.await?;
        let units = names.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let (unit, state) = (words.next()?, words.next()?);
            let is_own = matches!(state, "enabled" | "disabled" | "masked");
            (is_own && !unit.contains("@.")).then(|| unit.to_owned())
        });
        Ok(units.collect())
    })
}
