//! Topics of `steadfast explain` besides kinds, fields and problem codes.

/// A topic: its name, one line about it, and its content.
pub(super) type Topic = (&'static str, &'static str, Content);

/// The content of a topic.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// A text.
    Text(&'static str),
    /// The table of metaparams.
    Metaparams,
    /// The tables of settings and recorders.
    Settings,
    /// The table of events.
    Events,
    /// The JSON Schema of the interface.
    Api,
}

/// All topics.
pub(super) const TOPICS: &[Topic] = &[
    ("meta", "The metaparams of every resource.", Content::Metaparams),
    ("settings", "The settings of a host.", Content::Settings),
    ("events", "The names of all events.", Content::Events),
    ("api", "The JSON Schema of requests, replies and events.", Content::Api),
    ("edges", "The order of resources, and notifications.", Content::Text(EDGES)),
    ("recv", "Values that one resource receives from another.", Content::Text(RECV)),
    ("template", "A text with received values.", Content::Text(TEMPLATE)),
    ("secrets", "Secrets, and the fields that take them.", Content::Text(SECRETS)),
    ("selectors", "Texts that select resources on the command line.", Content::Text(SELECTORS)),
    ("exit-codes", "The exit codes of all commands.", Content::Text(EXIT_CODES)),
];

const EDGES: &str = r#"Edges order resources. Automatic edges follow from the declarations; `steadfast graph` lists all with their origin.

In a resource, each with one `kind[name]` or a list:
  after      this resource comes after the named one
  before     this resource comes before the named one
  subscribe  as after; a change of the named one refreshes this resource
  notify     as before; a change of this resource refreshes the named one

Example:
file:
  - name: /etc/nginx/nginx.conf
    source: nginx.conf
    after: "pkg[nginx]"
    notify: "svc[nginx]"

The long form, at the top of the graph:
edges:
  - from: {kind: file, name: /etc/nginx/nginx.conf}
    to: {kind: svc, name: nginx}
    notify: true"#;

const RECV: &str = r#"`recv` sets fields of a resource from values that other resources send. The receiver runs after the sender, and again
when the value changes. `steadfast explain KIND` lists the values that a kind sends and the fields that accept one.

Example:
exec:
  - {name: version, args: [uname, -r]}
  - name: report
    args: [logger, kernel, ""]
    recv:
      args.2: "exec[version].output"

Items of lists are named by position from 0 (`args.2`), entries of maps by key (`env.TOKEN`)."#;

const TEMPLATE: &str = r#"A template is a text with received values; it is written below `recv`. `$${` gives `${`.

Example:
file:
  - name: /etc/app.conf
    mode: 0600
    recv:
      content:
        template: |
          password=${p}
        values: {p: "password[db].password"}"#;

const SECRETS: &str = r"`secrets:` at the top of the graph names secrets; a field takes one as `{secret: NAME}`. `steadfast explain KIND` lists
the fields that do. Secrets appear in no plan, log, event, state or argument of a command.

Example:
secrets:
  token: {file: /etc/steadfast/token}
resources:
  exec:
    - name: login
      args: [app-login]
      stdin: {secret: token}

Sources: {credential: ID} of systemd, {file: PATH} with a mode for its owner only, {command: [PROGRAM, ARGUMENT]}.";

const SELECTORS: &str = r"Commands that take resources take selectors; quotes keep the shell from reading the brackets.
  'file[motd]'      this resource
  motd              the one with this name
  svc, 'svc[*]'     all of the kind
  'file[/etc/*]'    names that match: * is any text, ? one character
  'shop/*'          all of an instance of a module
  -l tier=web       those with the label; tier!=test, tier, several with commas";

const EXIT_CODES: &str = r"  0   success
  1   a resource or the request failed
  2   changes (with --detailed-exitcode), or pending
  64  invalid command line
  65  invalid or rejected graph or settings
  69  no daemon is running
  73  the state directory cannot be used or written
  75  another daemon holds the state directory
  77  a permission is missing

`steadfast status` ends with 0 where the host is converged, 1 where a resource has failed, 2 otherwise, 65 where the
graph file is rejected.";
