//! The stable codes of problems in a graph: an assigned code keeps its meaning.

use std::fmt;

macro_rules! codes {
    ($($name:ident = $id:literal, $about:literal;)*) => {
        /// The sort of a problem. Its text form (`C101`) never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $about] $name,)*
        }

        impl Code {
            /// All codes, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the stable text.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            /// Returns one sentence about the code.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)* }
            }
        }
    };
}

// C304 is retired: it reported `on_remove` and `protect` while they had no effect.
codes! {
    Unreadable = "C001", "A path that was given does not exist or cannot be read.";
    EmptyFolder = "C002", "A folder without a single .yaml file, or no path at all.";
    TooLarge = "C003", "A file that is larger than any graph should be.";
    Encoding = "C004", "A file that is not UTF-8.";
    Character = "C005", "A control character, or one that some YAML readers take for a line break.";
    Syntax = "C006", "Text that is not YAML.";
    Tab = "C007", "A tab where YAML wants spaces.";
    Documents = "C008", "Several YAML documents in one file.";
    Tag = "C009", "A YAML tag.";
    MergeKey = "C010", "A YAML merge key.";
    Aliases = "C011", "Aliases that expand to far more than was written, or that contain themselves.";
    Depth = "C012", "Text that is nested too deep.";
    Readers = "C013", "Text that two YAML readers read differently.";
    Untrusted = "C014", "A file that somebody else could change, read by root.";
    UnknownKey = "C101", "A key that means nothing here.";
    DuplicateKey = "C102", "A key that is given twice.";
    Type = "C103", "A value that is of another type than the key takes.";
    MissingKey = "C104", "A key that is required and not given.";
    GraphName = "C105", "A graph without a name, or with two.";
    Empty = "C106", "A graph without a single resource, where that was not asked for.";
    UnknownKind = "C201", "A kind that does not exist.";
    KindLater = "C202", "A kind that this build does not have.";
    KeyLater = "C203", "A key whose effect this build does not have.";
    World = "C204", "Something that is shared between hosts, which this build cannot do.";
    Name = "C205", "A name that no resource can have.";
    Duplicate = "C206", "Two resources of one kind and name.";
    Claim = "C207", "Two resources that would write the same thing, or one below a file.";
    Field = "C208", "A field that the kind refuses.";
    Alias = "C209", "A former name that is a resource's name still, or that two resources claim.";
    Meta = "C301", "A metaparameter out of its range.";
    Limit = "C302", "A limit under which nothing could ever run.";
    Semaphore = "C303", "A semaphore that is named wrongly.";
    Removal = "C305", "Something that is to be deleted when it leaves the graph, and cannot be.";
    Target = "C401", "An edge to or from a resource that does not exist.";
    Reference = "C402", "Something that should name a resource and does not.";
    SelfEdge = "C403", "A resource that would wait for itself.";
    Cycle = "C404", "Resources that would wait for each other.";
    Receive = "C405", "A value that cannot be received.";
    Secret = "C406", "A secret that is declared wrongly, or not at all.";
    Selection = "C501", "A selection (--only, --skip, --sema) that selects nothing.";
    Setting = "C601", "A setting of the host that is out of its range.";
    Ignored = "C901", "A field that is accepted and has no effect.";
    Doubt = "C902", "Something that is valid and most likely not what was meant.";
    Automatic = "C903", "An automatic edge that was left out: it would have closed a cycle.";
}

/// The long descriptions of all codes.
const PROBLEMS: &str = include_str!("../../../docs/problems.md");

impl Code {
    /// Returns the long description of the code from docs/problems.md: the reason, an example, and the correction.
    #[must_use]
    pub fn explained(self) -> &'static str {
        let sections = PROBLEMS.split("\n## ");
        let mut own = sections.filter(|section| section.starts_with(self.id()));
        own.next().unwrap_or_else(|| self.about()).trim_end()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
