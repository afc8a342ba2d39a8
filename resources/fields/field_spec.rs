//! The declaration of one field of a kind: its type, the expressions and the values from elsewhere that it allows.

/// One field of a kind.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct FieldSpec {
    /// The name of the field in the graph file.
    pub name: &'static str,
    /// The type of the field.
    pub takes: FieldType,
    /// One sentence for `explain`: meaning, unit, default.
    pub doc: &'static str,
    /// A warning for a field without a meaning in this version: the field is accepted and ignored.
    pub ignored: Option<&'static str>,
    /// The field is known, and its effect comes in a later build: rejected with "not in this build".
    pub later: bool,
    /// The values from elsewhere that the field accepts.
    pub receives: Receives,
    /// The least and the largest number of an integer field; none for any number.
    pub range: Option<(i64, i64)>,
    /// A list of texts must be written as a list: a single text is a mistake.
    pub list_only: bool,
    /// A list or a map is accepted too, and passed on as JSON.
    pub nested: bool,
    /// A path of the field may be relative to the graph file.
    pub relative: bool,
    /// The condition under which the value may come from another host.
    pub foreign: ForeignValue,
    /// The part of the field in its kind, besides its value.
    pub role: Option<FieldRole>,
    /// A duration without a unit causes no warning: graphs of mgmt write a bare number.
    pub bare_duration: bool,
    /// The field must be given.
    pub required: bool,
    /// The value of an absent field, as the graph would write it; none if an absent field means "not managed".
    pub default: Option<&'static str>,
    /// A typical value, as the graph would write it.
    pub example: Option<&'static str>,
    /// Fields that exclude this one.
    pub conflicts_with: &'static [&'static str],
    /// The keys of the field in its map form, each with the field that it gives; empty for a field without such a form.
    pub parts: &'static [(&'static str, &'static str)],
    /// The expressions that the field allows; none for a field without a decision.
    pub mode: Option<FieldMode>,
}

/// The values from elsewhere that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Receives {
    /// None.
    Nothing,
    /// Values that may be shown.
    Shown,
    /// Secrets too.
    Secrets,
    /// Secrets too, and also secrets that are only known by their keyed hash: the field can compare by hash.
    Seals,
}

/// The condition under which the value of a field may come from another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignValue {
    /// The value may come from another host: it decides about no object, no right and no command of this host.
    Allowed,
    /// The value never comes from another host.
    Refused,
    /// The value is the place of the object: only its last part comes from another host, into a folder of the
    /// collector. Without a folder, the collector must set the value.
    BelowFolder,
    /// The value may come from another host if the collector sets the place of the object.
    AtOwnPlace,
}

/// The part of a field in its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRole {
    /// The path of the object.
    Path,
    /// The text that a template makes.
    Template,
    /// A command. Without it and without its arguments, the name of the resource is the command.
    Command {
        /// The field of the exact arguments.
        arguments: &'static str,
    },
}

/// The expressions (`${ }`) that a field allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldMode {
    /// Expressions are evaluated.
    Value,
    /// Expressions of variables, parameters, facts and loop items are evaluated; their values must be known at load,
    /// because claims are made of the field.
    Static,
    /// A text that a program interprets, or that is copied as it is: `${ }` in it means nothing here.
    Literal(Interpreter),
    /// The arguments of a command: each word is a value. The field named here, if it is given, holds the shell that
    /// interprets the text instead; an empty name means that there is none.
    Argv(&'static str),
}

/// The program that interprets a literal text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// A shell.
    Shell,
    /// The cron daemon.
    Cron,
    /// nftables.
    Nft,
    /// The SSH daemon.
    Sshd,
    /// systemd.
    Systemd,
    /// No program: the text is copied.
    None,
}

impl FieldSpec {
    /// Makes a field in full use.
    #[must_use]
    pub const fn new(name: &'static str, takes: FieldType, doc: &'static str) -> Self {
        let receives = Receives::Nothing;
        Self {
            name,
            takes,
            doc,
            ignored: None,
            later: false,
            receives,
            range: None,
            list_only: false,
            nested: false,
            relative: false,
            foreign: ForeignValue::Refused,
            role: None,
            bare_duration: false,
            required: false,
            default: None,
            example: None,
            conflicts_with: &[],
            parts: &[],
            mode: None,
        }
    }

    /// Sets the least and the largest number.
    #[must_use]
    pub const fn range(mut self, least: i64, most: i64) -> Self {
        self.range = Some((least, most));
        self
    }

    /// Sets the expressions that the field allows.
    #[must_use]
    pub const fn mode(mut self, mode: FieldMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Requires that the expressions of the field are known at load: claims are made of it.
    #[must_use]
    pub const fn known_at_load(self) -> Self {
        self.mode(FieldMode::Static)
    }

    /// Requires that the field is given.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the value of an absent field.
    #[must_use]
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    /// Sets a typical value.
    #[must_use]
    pub const fn example(mut self, value: &'static str) -> Self {
        self.example = Some(value);
        self
    }

    /// Sets the fields that exclude this one.
    #[must_use]
    pub const fn conflicts_with(mut self, fields: &'static [&'static str]) -> Self {
        self.conflicts_with = fields;
        self
    }

    /// Sets the keys of the map form, each with the field that it gives.
    #[must_use]
    pub const fn parts(mut self, parts: &'static [(&'static str, &'static str)]) -> Self {
        self.parts = parts;
        self
    }

    /// Accepts a list or a map too, as JSON.
    #[must_use]
    pub const fn nested(mut self) -> Self {
        self.nested = true;
        self
    }

    /// Accepts paths relative to the graph file.
    #[must_use]
    pub const fn relative(mut self) -> Self {
        self.relative = true;
        self
    }

    /// Accepts values from another host.
    #[must_use]
    pub const fn listable(self) -> Self {
        self.foreign(ForeignValue::Allowed)
    }

    /// Accepts values from another host if the collector sets the place of the object.
    #[must_use]
    pub const fn listable_at_own_place(self) -> Self {
        self.foreign(ForeignValue::AtOwnPlace)
    }

    /// Sets the condition under which the value may come from another host.
    #[must_use]
    pub const fn foreign(mut self, foreign: ForeignValue) -> Self {
        self.foreign = foreign;
        self
    }

    /// Sets the part of the field in its kind.
    #[must_use]
    pub const fn role(mut self, role: FieldRole) -> Self {
        self.role = Some(role);
        self
    }

    /// Accepts a duration without a unit, as graphs of mgmt write it.
    #[must_use]
    pub const fn bare_duration(mut self) -> Self {
        self.bare_duration = true;
        self
    }

    /// Requires that the field's list is written as a list.
    #[must_use]
    pub const fn list_only(mut self) -> Self {
        self.list_only = true;
        self
    }

    /// Sets the values from elsewhere that the field accepts.
    #[must_use]
    pub const fn receives(mut self, receives: Receives) -> Self {
        self.receives = receives;
        self
    }

    /// Makes a field of a later build.
    #[must_use]
    pub const fn later(name: &'static str, doc: &'static str) -> Self {
        Self { later: true, ..Self::new(name, FieldType::Anything, doc) }
    }

    /// Makes a field that is accepted with a warning.
    #[must_use]
    pub const fn ignored(name: &'static str, why: &'static str) -> Self {
        Self { ignored: Some(why), ..Self::new(name, FieldType::Anything, why) }
    }
}

/// The type of a field. Scalars stay as they were written: `mode: 0644` is the text `0644`, `1.10` stays
/// `1.10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Any scalar, as text.
    Text,
    /// `true` or `false`, and nothing else: `yes` and `on` are rejected with a hint.
    Bool,
    /// A whole number.
    Int,
    /// A number of seconds or the like, with a fraction.
    Float,
    /// A list of scalars, as texts; a single scalar is a list of one.
    Texts,
    /// A map of scalars, as texts.
    TextMap,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A span of time with a unit: `500ms`, `90s`, `5m`, `2h`, `1d`. The value is a number of seconds; a bare number
    /// counts seconds.
    Duration,
    /// A span of time with a unit, in whole seconds ([`crate::Value::Int`]); a bare number counts seconds.
    Seconds,
    /// A span of time with a unit, in whole milliseconds ([`crate::Value::Int`]); a bare number counts milliseconds.
    Milliseconds,
    /// Any value; the content is not examined.
    Anything,
}
