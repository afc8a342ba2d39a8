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
    Unreadable = "C001", "A given path does not exist or cannot be read.";
    EmptyFolder = "C002", "A directory without .yaml files, or no path at all.";
    TooLarge = "C003", "A graph file exceeds the size limit.";
    Encoding = "C004", "A file is not UTF-8.";
    Character = "C005", "A control character, or a character treated as a line break by some YAML parsers.";
    Syntax = "C006", "The text is not valid YAML.";
    Tab = "C007", "A tab is used for indentation.";
    Documents = "C008", "A file contains several YAML documents.";
    Tag = "C009", "A YAML tag is used.";
    MergeKey = "C010", "A YAML merge key names no map.";
    Aliases = "C011", "YAML aliases are recursive or expand beyond the limit.";
    Depth = "C012", "The text is nested too deeply.";
    Untrusted = "C014", "Another user could change a file read by root.";
    UnknownKey = "C101", "An unknown key.";
    DuplicateKey = "C102", "A duplicate key.";
    Type = "C103", "A value has the wrong type.";
    MissingKey = "C104", "A required key is missing.";
    GraphName = "C105", "A graph has no name, or several.";
    Empty = "C106", "A graph has no resources, and --allow-empty was not given.";
    UnknownKind = "C201", "An unknown kind.";
    KindLater = "C202", "A kind is not part of this build.";
    KeyLater = "C203", "A key is not supported by this build.";
    World = "C204", "An exported resource or a collection of other hosts' resources is wrong.";
    Name = "C205", "An invalid resource name.";
    Duplicate = "C206", "Two resources have the same kind and name.";
    Claim = "C207", "Two resources manage the same object, or one lies below a file.";
    Field = "C208", "A field is invalid for its kind.";
    Alias = "C209", "An alias is the name of an existing resource, or of two resources.";
    Meta = "C301", "A metaparameter is out of range.";
    Limit = "C302", "A limit prevents every run.";
    Semaphore = "C303", "An invalid semaphore.";
    Removal = "C305", "An object with `on_remove: delete` cannot be deleted.";
    Target = "C401", "An edge refers to an unknown resource.";
    Reference = "C402", "A reference is not of the form `kind[name]`.";
    SelfEdge = "C403", "A resource depends on itself.";
    Cycle = "C404", "Resources form a dependency cycle.";
    Receive = "C405", "A value cannot be received.";
    Secret = "C406", "A secret is invalid or not declared.";
    Export = "C407", "A resource of a module is named from outside, and the module does not export it.";
    Selection = "C501", "A selection (--only, --skip, --sema) selects nothing.";
    Setting = "C601", "A setting of the host is out of range.";
    Expression = "C701", "An expression is invalid, or does not fit where it is written.";
    Condition = "C702", "A condition (`when:`) is invalid.";
    Variable = "C703", "A variable is invalid or not defined.";
    Loop = "C704", "A loop (`for_each:`) is invalid.";
    Include = "C705", "An included file or a module cannot be used.";
    Param = "C706", "A parameter of a module is invalid.";
    Assert = "C707", "An assertion of the graph or of a module does not hold.";
    Budget = "C708", "An expansion exceeds its limit.";
    Literal = "C709", "An expression in a text that another program interprets.";
    Ignored = "C901", "A field has no effect.";
    Doubt = "C902", "A valid but probably unintended declaration.";
    Automatic = "C903", "An automatic edge was omitted because it would close a cycle.";
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
