//! The budgets of an expansion: resources, instances, included files, and the texts that expressions make. Together
//! they bound the memory and the time for any graph.

use crate::config::expand::evaluate::Scope;
use crate::config::expand::names::value_ref;
use crate::config::expand::{Context, Expander};
use crate::config::problem::Problem;
use crate::config::problem::code::Code;
use crate::config::source_file::Span;
use crate::expressions::Value;

/// The maximum number of resources after the expansion.
const MOST_RESOURCES: usize = 100_000;
/// The maximum number of instances of modules.
const MOST_INSTANCES: usize = 10_000;
/// The maximum number of uses of included files.
const MOST_INCLUDED: usize = 10_000;
/// The maximum number of bytes in the values that expressions give and in the copies that loops and modules make.
/// Besides these, the bytes of the files are allowed once more, and some for each resource.
const MOST_BYTES: usize = 32 << 20;
/// The bytes that each resource adds to this maximum.
const BYTES_OF_RESOURCE: usize = 2 << 10;
/// The maximum number of bytes that all expressions read.
const MOST_READ: usize = 256 << 20;
/// The maximum number of bytes that one expression reads, with each mention of a name.
const MOST_READ_AT_ONCE: usize = 32 << 20;
/// The share of a list or map that counts as read if no function copies it.
const SHARE_OF_READ: usize = 16;
/// The number of times that a list or map counts as read if a function copies it.
const COPIES_OF_READ: usize = 2;
/// The bytes that a map of a file, or one that an expression makes, takes besides its texts: its value and its type. A
/// name of a variable stands for a map that exists, and makes none.
const BYTES_OF_MAP: usize = 1536;
/// The bytes that an entry of a map takes besides its texts.
const BYTES_OF_ENTRY: usize = 128;
/// The work that all expressions and templates of a graph may do together. One unit is an instruction, an item or 64
/// bytes of data: about 45 ns.
const MOST_WORK: u64 = 10_000_000;
/// The work that each resource adds to this maximum.
const WORK_OF_RESOURCE: u64 = 200;
/// The maximum length of one text that expressions are embedded in.
pub(in crate::config::expand) const LONGEST_TEXT: usize = 8 << 20;

/// The amounts that an expansion has used so far.
#[derive(Clone, Debug, Default)]
pub(in crate::config::expand) struct Used {
    resources: usize,
    instances: usize,
    included: usize,
    bytes: usize,
    read: usize,
    /// The work besides that of the evaluations: reading and checking templates.
    work: u64,
    /// True after the first budget was exceeded: it is reported once, and the expansion ends.
    pub(in crate::config::expand) is_over: bool,
}

impl Expander<'_> {
    /// Counts a resource; returns false when the limit is exceeded. `of` names the list or loop that grew.
    pub(in crate::config::expand) fn count_resource(
        &mut self,
        context: &Context,
        node: usize,
        of: &str,
    ) -> bool {
        self.used.resources += 1;
        if self.used.resources <= MOST_RESOURCES {
            return !self.used.is_over;
        }
        let what = format!("the graph grows above {MOST_RESOURCES} resources here");
        self.exceed(context, context.tree().span(node), (&what, of))
    }

    /// Counts an instance of a module; returns false when the limit is exceeded.
    pub(in crate::config::expand) fn count_instance(
        &mut self,
        context: &Context,
        node: usize,
    ) -> bool {
        self.used.instances += 1;
        if self.used.instances <= MOST_INSTANCES {
            return !self.used.is_over;
        }
        let of = match &context.scope.item {
            Some(item) => format!("the loop over `{}`", crate::config::problem::quoted(&item.of)),
            None => "the list".to_owned(),
        };
        let what = format!("the graph grows above {MOST_INSTANCES} instances of modules here");
        self.exceed(context, context.tree().span(node), (&what, &of))
    }

    /// Counts the use of an included file; returns false when the limit is exceeded.
    pub(in crate::config::expand) fn count_included(
        &mut self,
        context: &Context,
        node: usize,
    ) -> bool {
        self.used.included += 1;
        if self.used.included <= MOST_INCLUDED {
            return !self.used.is_over;
        }
        let what = format!("files are included more than {MOST_INCLUDED} times");
        self.exceed(context, context.tree().span(node), (&what, "the number of includes"))
    }

    /// Counts bytes of a value or of copied text; returns false when the limit is exceeded.
    pub(in crate::config::expand) fn has_bytes(&mut self, bytes: usize) -> bool {
        self.used.bytes = self.used.bytes.saturating_add(bytes);
        let of_resources = self.used.resources.saturating_mul(BYTES_OF_RESOURCE);
        let most = MOST_BYTES.saturating_add(of_resources);
        self.used.bytes <= most.saturating_add(self.inputs.text_bytes()) && !self.used.is_over
    }

    /// Counts a map that is read from a file; returns false when the limit is exceeded.
    pub(in crate::config::expand) fn count_map(&mut self, context: &Context, node: usize) -> bool {
        if self.has_bytes(BYTES_OF_MAP) {
            return true;
        }
        let what = format!("the values of the graph grow above {} MiB here", MOST_BYTES >> 20);
        self.exceed(context, context.tree().span(node), (&what, "a value"))
    }

    /// Counts a default that an item of a loop or an instance gets; returns false when the limit is exceeded.
    pub(in crate::config::expand) fn count_default(
        &mut self,
        context: &Context,
        node: usize,
        (name, default): (&str, &Value),
    ) -> bool {
        let bytes = BYTES_OF_ENTRY
            .saturating_add(name.len())
            .saturating_add(bytes_of_result(default, true));
        if self.has_bytes(bytes) {
            return true;
        }
        let what = format!("the values of the graph grow above {} MiB here", MOST_BYTES >> 20);
        let of =
            format!("the defaults, of which one is `{}`,", crate::config::problem::quoted(name));
        self.exceed(context, context.tree().span(node), (&what, &of))
    }

    /// Counts the items of a loop; returns false if there are more than a graph may have resources.
    pub(in crate::config::expand) fn may_loop(
        &mut self,
        context: &Context,
        node: usize,
        (items, of): (usize, &str),
    ) -> bool {
        if items <= MOST_RESOURCES {
            return true;
        }
        let what = format!("the loop has {items} items, more than {MOST_RESOURCES}");
        self.exceed(context, context.tree().span(node), (&what, of))
    }

    /// Counts the bytes of an expanded resource.
    pub(in crate::config::expand) fn count_copies(
        &mut self,
        context: &Context,
        node: usize,
        bytes: usize,
    ) -> bool {
        if self.has_bytes(bytes) {
            return true;
        }
        let what = format!("the copies of this text grow above {} MiB", MOST_BYTES >> 20);
        let of = match &context.scope.item {
            Some(item) => format!("the loop over `{}`", crate::config::problem::quoted(&item.of)),
            None => "the text".to_owned(),
        };
        self.exceed(context, context.tree().span(node), (&what, &of))
    }

    /// Returns true if one evaluation reads more than its maximum, with each mention of a name.
    pub(in crate::config::expand) fn reads_too_much(
        context: &Context,
        mentions: &[String],
    ) -> bool {
        // The work of a function bounds the copies of lists and maps.
        let read = mentions.iter().map(|name| read_size(&context.scope, (name, false)));
        read.fold(0, usize::saturating_add) > MOST_READ_AT_ONCE
    }

    /// Counts the bytes that an expression reads; returns false when the limit is exceeded.
    pub(in crate::config::expand) fn count_read<'names>(
        &mut self,
        context: &Context,
        names: impl IntoIterator<Item = &'names String>,
        is_copied: bool,
    ) -> bool {
        let read = names.into_iter().map(|name| read_size(&context.scope, (name, is_copied)));
        self.used.read = read.fold(self.used.read, usize::saturating_add);
        self.used.read <= MOST_READ && !self.used.is_over
    }

    /// Counts work besides that of the evaluations; returns false when the limit is exceeded.
    pub(in crate::config::expand) fn count_work(
        &mut self,
        context: &Context,
        span: Span,
        units: u64,
    ) -> bool {
        self.used.work = self.used.work.saturating_add(units);
        let of_resources = (self.used.resources as u64).saturating_mul(WORK_OF_RESOURCE);
        let work = self.used.work.saturating_add(self.cache.work.get());
        if work <= MOST_WORK.saturating_add(of_resources) {
            return !self.used.is_over;
        }
        let what = "the expressions and templates of the graph compute too much";
        let of = "the work for templates and expressions";
        self.exceed(context, span, (what, of))
    }

    /// Reports an exceeded budget once; returns false.
    pub(in crate::config::expand) fn exceed(
        &mut self,
        context: &Context,
        span: Span,
        (what, of): (&str, &str),
    ) -> bool {
        if !self.used.is_over {
            self.used.is_over = true;
            let hint = format!("{of} grew; make it shorter, or split the graph");
            self.report_at(context, span, Problem::new(Code::Budget, what).hint(hint));
        }
        false
    }
}

/// Returns the size of the value that a name stands for. Facts are small, and are not collected for this.
fn read_size(scope: &Scope, (name, is_copied): (&str, bool)) -> usize {
    if name.starts_with("facts") && !name.starts_with("facts.local") {
        return 0;
    }
    let value = value_ref(scope, name);
    let bytes = value.map_or(0, Value::size);
    match value {
        Some(Value::List(_) | Value::Map(_)) if is_copied => bytes.saturating_mul(COPIES_OF_READ),
        Some(Value::List(_) | Value::Map(_)) => bytes / SHARE_OF_READ,
        _ => bytes,
    }
}

/// Returns the bytes that the value of an expression takes. A name gives a value that exists.
pub(in crate::config::expand) fn bytes_of_result(value: &Value, is_name: bool) -> usize {
    if let Value::Text(text) = value {
        // A text is stored with its variable and with all variables.
        return text.len().saturating_add(text.len() / 2);
    }
    let maps = if is_name { 0 } else { count_maps(value) };
    value.size().saturating_add(maps.saturating_mul(BYTES_OF_MAP))
}

/// Returns the number of maps in a value.
fn count_maps(value: &Value) -> usize {
    match value {
        Value::List(items) => items.iter().map(count_maps).sum(),
        Value::Map(entries) => 1 + entries.values().map(count_maps).sum::<usize>(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => 0,
    }
}
