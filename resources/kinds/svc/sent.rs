//! The values that a unit sends: its state, its process, its restarts, the next start of a timer, the addresses of a
//! socket.

use super::Svc;
use crate::failure::Failure;
use crate::fields::field_spec::FieldType;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use tokio_util::sync::CancellationToken;

/// The declarations of the values.
pub(crate) const SENDS: &[SendSpec] = &[
    SendSpec::new(
        "state",
        FieldType::Text,
        "The activity in the words of systemd: active, inactive, failed, activating, ….",
    ),
    SendSpec::new(
        "startup",
        FieldType::Text,
        "The state of the unit file in the words of systemd: enabled, disabled, masked, static, ….",
    ),
    SendSpec::new("pid", FieldType::Int, "The main process of a running service."),
    SendSpec::new(
        "restarts",
        FieldType::Int,
        "The automatic restarts of a service since its last manual start.",
    ),
    SendSpec::new("next", FieldType::Int, "The next start by a timer, in seconds since 1970."),
    SendSpec::new(
        "listening",
        FieldType::Texts,
        "The addresses of a socket, each with its type: Stream [::]:22.",
    ),
];

/// Returns true if a unit of this type can send the value.
pub(super) fn can_send(unit: &str, key: &str) -> bool {
    let kind = unit.rsplit('.').next().unwrap_or_default();
    match key {
        "pid" | "restarts" => kind == "service",
        "next" => kind == "timer",
        "listening" => kind == "socket",
        _ => true,
    }
}

/// Reads the values from systemd.
pub(super) async fn read_values(
    svc: &Svc,
    host: &Host,
    cancel: &CancellationToken,
) -> Result<Sent, Failure> {
    let read = async {
        let systemd = host.systemd();
        let unit = systemd.unit(svc.bus, &svc.unit).await?;
        let startup = systemd.file_state(svc.bus, &svc.unit).await?;
        Ok::<_, Failure>((unit, startup, systemd.unit_facts(svc.bus, &svc.unit).await?))
    };
    let cancelled = || Failure::new("the run was cancelled while querying systemd");
    let (unit, startup, facts) = cancel.run_until_cancelled(read).await.ok_or_else(cancelled)??;
    let state = unit.map_or("inactive", |unit| unit.activity.word());
    let number = |number: u32| Value::Int(i64::from(number));
    let all = [
        ("state", Some(Value::Text(state.to_owned()))),
        ("startup", startup.filter(|word| !word.is_empty()).map(Value::Text)),
        ("pid", facts.pid.map(number)),
        ("restarts", facts.restarts.map(number)),
        ("next", facts.next.and_then(|next| i64::try_from(next).ok()).map(Value::Int)),
        ("listening", facts.listening.map(Value::Texts)),
    ];
    let known = all.into_iter().filter_map(|(key, value)| Some((key, value?)));
    Ok(known.map(|(key, value)| (key, SentValue::Shown(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::can_send;

    #[test]
    fn each_type_of_unit_has_its_values() {
        for (unit, key, can) in [
            ("a.service", "pid", true),
            ("a.timer", "pid", false),
            ("a.timer", "next", true),
            ("a.socket", "listening", true),
            ("a.service", "listening", false),
            ("a.socket", "state", true),
        ] {
            assert_eq!(can_send(unit, key), can, "{unit} {key}");
        }
    }
}
