//! The tree of a parsed expression.

use crate::expressions::functions::table::Function;

/// A part of an expression, with its byte range.
#[derive(Clone, Debug)]
pub(in crate::expressions) struct Node {
    pub(in crate::expressions) kind: NodeKind,
    pub(in crate::expressions) start: usize,
    pub(in crate::expressions) end: usize,
    /// The number of levels below, with this one.
    pub(in crate::expressions) depth: usize,
}

/// The sort of a part.
#[derive(Clone, Debug)]
pub(in crate::expressions) enum NodeKind {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// A dotted name, such as `vars.sites`; the first part is the root.
    Path(Vec<String>),
    /// A key of a map that is no name.
    Key(Box<Node>, String),
    /// An item of a list.
    Index(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    /// The value, the condition and the other value.
    If(Box<Node>, Box<Node>, Box<Node>),
    /// A value that may be absent, and its replacement.
    Default(Box<Node>, Box<Node>),
    Call(&'static Function, Vec<Node>),
}

/// An operator between two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::expressions) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
    Add,
    Subtract,
    Concat,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
}

impl Operator {
    /// Returns the written form.
    pub(in crate::expressions) const fn sign(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Concat => "~",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Remainder => "%",
        }
    }
}

impl Node {
    /// Creates a node from `start` to `end`.
    pub(in crate::expressions) fn new(kind: NodeKind, start: usize, end: usize) -> Self {
        let mut depth = 0;
        for_each_child(&kind, &mut |child| depth = depth.max(child.depth));
        Self { kind, start, end, depth: depth + 1 }
    }

    /// Returns the byte range.
    pub(in crate::expressions) const fn range(&self) -> (usize, usize) {
        (self.start, self.end)
    }

    /// Calls `visit` for each direct part.
    pub(in crate::expressions) fn visit_children<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        for_each_child(&self.kind, visit);
    }
}

/// Calls `visit` for each direct part of a node of this sort.
fn for_each_child<'a>(kind: &'a NodeKind, visit: &mut dyn FnMut(&'a Node)) {
    match kind {
        NodeKind::Bool(_)
        | NodeKind::Int(_)
        | NodeKind::Float(_)
        | NodeKind::Text(_)
        | NodeKind::Path(_) => {}
        NodeKind::List(nodes) | NodeKind::Call(_, nodes) => nodes.iter().for_each(visit),
        NodeKind::Key(node, _) | NodeKind::Not(node) | NodeKind::Negate(node) => visit(node),
        NodeKind::Index(one, two) | NodeKind::Binary(_, one, two) | NodeKind::Default(one, two) => {
            visit(one);
            visit(two);
        }
        NodeKind::If(one, two, three) => {
            visit(one);
            visit(two);
            visit(three);
        }
    }
}
