//! The sources of received values and secrets: their names are known at load.

use crate::config::document::tree::{Node, Tree};
use crate::config::expand::outcome::Outcome;
use crate::config::expand::{Context, Expander, copy_nodes};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};

impl Expander<'_> {
    /// Expands `{from: params.NAME}` and `{secret: NAME}`; `None` for other maps.
    pub(in crate::config::expand) fn secret_value(
        &mut self,
        context: &Context,
        node: usize,
        into: &mut Tree<'static>,
    ) -> Option<Outcome<usize>> {
        let [(key, value)] = context.tree().entries(node) else { return None };
        let text = context.text_of(*value)?;
        match context.text_of(*key)? {
            "secret" if context.is_module() => {
                let what = "a module gets a secret as a parameter";
                let hint = "declare params: {key: {type: secret}}, and write {from: params.key}";
                self.report(context, node, Problem::new(Code::Secret, what).hint(hint));
                Some(Outcome::Failed)
            }
            "secret" => {
                let (key, value) = (*key, *value);
                let copied = self.expand_static(context, value, into, "secret");
                Some(copied.map_or(Outcome::Failed, |value| {
                    let key = copy_nodes(context.tree(), key, into);
                    Outcome::Known(
                        into.push(Node::Map(vec![(key, value)]), context.tree().span(node)),
                    )
                }))
            }
            "from" => {
                let param = text.strip_prefix("params.")?.to_owned();
                match context.scope.secrets.get(&param) {
                    Some(Some(secret)) => {
                        let span = context.tree().span(node);
                        let key = into.push_text("secret".to_owned(), true, span);
                        let value = into.push_text(secret.clone(), false, span);
                        Some(Outcome::Known(into.push(Node::Map(vec![(key, value)]), span)))
                    }
                    found => {
                        let (what, hint) = if found.is_some() {
                            (
                                format!("the secret `{}` is not given", quoted(&param)),
                                format!("give it by `with:`, or add when: params.{param} …"),
                            )
                        } else {
                            (
                                format!("no secret parameter `{}`", quoted(&param)),
                                format!("declare params: {{{param}: {{type: secret}}}}"),
                            )
                        };
                        self.report(context, node, Problem::new(Code::Secret, what).hint(hint));
                        Some(Outcome::Failed)
                    }
                }
            }
            _ => None,
        }
    }

    /// Expands `recv`, a map from fields to the sources of their values.
    pub(in crate::config::expand) fn expand_receives(
        &mut self,
        context: &Context,
        node: usize,
        into: &mut Tree<'static>,
    ) -> Option<usize> {
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            return Some(copy_nodes(context.tree(), node, into));
        };
        let mut copied = Vec::with_capacity(pairs.len());
        for (key, value) in pairs.clone() {
            let source = self.expand_source(context, value, into)?;
            copied.push((copy_nodes(context.tree(), key, into), source));
        }
        Some(into.push(Node::Map(copied), context.tree().span(node)))
    }

    /// Expands the source of a received value: the names of resources, keys and secrets are known at load. A template
    /// in it stays: its `${ }` are names of values.
    pub(in crate::config::expand) fn expand_source(
        &mut self,
        context: &Context,
        node: usize,
        into: &mut Tree<'static>,
    ) -> Option<usize> {
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            return self.expand_static(context, node, into, "recv");
        };
        let pairs = pairs.clone();
        match self.secret_value(context, node, into) {
            Some(Outcome::Known(secret)) => return Some(secret),
            Some(_) => return None,
            None => {}
        }
        let mut copied = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let source = if context.text_of(key) == Some("template") {
                copy_nodes(context.tree(), value, into)
            } else {
                self.expand_source(context, value, into)?
            };
            copied.push((copy_nodes(context.tree(), key, into), source));
        }
        Some(into.push(Node::Map(copied), context.tree().span(node)))
    }
}
