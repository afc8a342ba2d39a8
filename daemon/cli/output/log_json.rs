//! `--log json`: each log event as one JSON object, with the data of the event log as an object.

use serde_json::{Map, Value};
use std::fmt::Debug;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// The field that holds the data of an event as JSON text.
const DATA: &str = "data";

/// The format of a JSON line: `timestamp`, `level`, the fields of the event, and `span` with the fields of the
/// innermost span.
#[derive(Debug)]
pub(in crate::cli) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = JsonObject(Vec::new());
        line.put("timestamp", time.into());
        line.put("level", event.metadata().level().as_str().into());
        event.record(&mut line);
        if let Some(span) = context.lookup_current() {
            let mut fields = Map::new();
            if let Some(text) = span.extensions().get::<FormattedFields<N>>()
                && let Ok(Value::Object(found)) = serde_json::from_str(text)
            {
                fields = found;
            }
            fields.insert("name".to_owned(), span.name().into());
            line.put("span", Value::Object(fields));
        }
        writeln!(writer, "{}", line.text())
    }
}

/// The fields of one line, in their order.
struct JsonObject(Vec<(String, Value)>);

impl JsonObject {
    fn put(&mut self, name: &str, value: Value) {
        self.0.push((name.to_owned(), value));
    }

    fn text(&self) -> String {
        let member = |(name, value): &(String, Value)| format!("{}:{value}", Value::from(&**name));
        let members: Vec<String> = self.0.iter().map(member).collect();
        format!("{{{}}}", members.join(","))
    }
}

impl Visit for JsonObject {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let data = (field.name() == DATA).then(|| serde_json::from_str(value).ok()).flatten();
        self.put(field.name(), data.unwrap_or_else(|| value.into()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }
}
