//! The files of a module: each module is read once, at its first use.

use crate::config::document::tree::Node;
use crate::config::document::{Export, Exports, Origin};
use crate::config::expand::modules::{Loaded, Module};
use crate::config::expand::{Context, Expander, MODULE_KEYS};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::ValueType;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use steadfast_resources::ResourceId;

impl Expander<'_> {
    /// Reads a module at its first use.
    pub(in crate::config::expand) fn load_module(
        &mut self,
        context: &Context,
        node: usize,
    ) -> Option<Arc<Loaded>> {
        let text = self.static_path(context, node)?;
        let folder =
            crate::config::expand::sources::inputs::normal(&context.parsed.file.base.join(&text));
        if let Some(problem) =
            crate::config::expand::sources::include::check_chain(&context.open, &folder)
        {
            self.report(context, node, problem);
            return None;
        }
        if let Some(known) = self.modules.get(&folder) {
            return known.clone();
        }
        let module = self.read_module(context, (node, &text), &folder);
        let loaded = module.map(|module| Arc::new(Loaded { folder: folder.clone(), module }));
        self.modules.insert(folder, loaded.clone());
        loaded
    }

    fn read_module(
        &mut self,
        context: &Context,
        (node, text): (usize, &str),
        folder: &Path,
    ) -> Option<Module> {
        let mut paths: Vec<_> = self.inputs.matching(&folder.join("*.yaml")).0.to_vec();
        paths.extend_from_slice(&self.inputs.matching(&folder.join("*.yml")).0);
        let mut files = Vec::new();
        // All problems are reported in one run.
        let mut is_wrong = false;
        for path in paths {
            let written = Path::new(text).join(path.file_name().unwrap_or_default());
            let written = written.display().to_string();
            let display = crate::config::expand::sources::include::display_beside(
                &context.parsed.file.display,
                &written,
                &path,
            );
            match self.inputs.read(&path, &display) {
                Ok(Some(number)) => {
                    let parsed = self.parse_source(number);
                    is_wrong |= parsed.is_none();
                    files.extend(parsed);
                }
                Ok(None) => {}
                Err(problem) => {
                    self.report(context, node, problem);
                    is_wrong = true;
                }
            }
        }
        if files.is_empty() && is_wrong {
            return None;
        }
        if files.is_empty() {
            let what = format!("`{}` is no module: the folder has no .yaml file", quoted(text));
            let near = self.inputs.nearest_folder(&context.parsed.file.base, text);
            let of_file = text.strip_suffix(".yaml").and_then(|it| it.rsplit_once('/'));
            let near = of_file.map(|(folder, _)| folder.to_owned()).or(near);
            let hint = near.map_or_else(
                || "a module is a folder with a file that begins with `module: NAME`".to_owned(),
                |near| format!("did you mean `{}`?", quoted(&near)),
            );
            self.report(context, node, Problem::new(Code::Include, what).hint(hint));
            return None;
        }
        let mut module = Module {
            name: String::new(),
            files: files.clone(),
            params: BTreeMap::new(),
            param_types: Arc::new(ValueType::Unknown),
            exports: Arc::default(),
        };
        let mut exports = Vec::new();
        for parsed in files {
            let mut inner = self.context_of(parsed);
            inner.origin = Arc::new(Origin { instance: "module".into(), ..Origin::default() });
            self.check_keys(&inner, &MODULE_KEYS);
            is_wrong |= self.read_module_keys(&inner, (&mut module, &mut exports)).is_none();
        }
        if is_wrong {
            return None;
        }
        if module.name.is_empty() {
            let what = format!("`{}` is no module: no file has `module: NAME`", quoted(text));
            let hint = "begin the file with `module: NAME`; a file of the same graph is included";
            self.report(context, node, Problem::new(Code::Include, what).hint(hint));
            return None;
        }
        module.forget_computed_exports(&mut exports);
        module.exports = Arc::new(Exports::new(exports));
        module.param_types =
            Arc::new(crate::config::expand::modules::params::type_of(&module.params));
        Some(module)
    }

    fn read_module_keys(
        &mut self,
        context: &Context,
        (module, all_exports): (&mut Module, &mut Vec<Export>),
    ) -> Option<()> {
        let root = context.tree().root()?;
        if let Some((_, node)) = context.tree().entry(root, "module") {
            context.text_of(node).unwrap_or_default().clone_into(&mut module.name);
        }
        if let Some((_, node)) = context.tree().entry(root, "params") {
            module.params.extend(self.read_declarations(context, node)?);
        }
        if let Some((_, node)) = context.tree().entry(root, "exports") {
            let exports: Vec<(usize, usize)> = match context.tree().node(node) {
                Some(Node::List(items)) => items.iter().map(|item| (*item, *item)).collect(),
                Some(Node::Map(pairs)) => pairs.clone(),
                _ if context.is_null(node) => Vec::new(),
                _ => vec![(node, node)],
            };
            for (name, value) in exports {
                let texts = (context.text_of(name), context.text_of(value));
                let (Some(name), Some(text)) = texts else { continue };
                let at = Some((Arc::clone(&context.parsed.file), context.tree().span(value)));
                all_exports.push(Export { name: name.to_owned(), target: text.into(), at });
            }
        }
        Some(())
    }
}

impl Module {
    /// Omits the places of exports whose kind has names that a loop or an expression makes, and those of modules
    /// within: an empty list makes none.
    fn forget_computed_exports(&self, exports: &mut [Export]) {
        let mut computed = BTreeSet::new();
        for tree in self.files.iter().map(|parsed| &parsed.tree) {
            let resources = tree.root().and_then(|root| tree.entry(root, "resources"));
            for (kind, entries) in resources.map_or(&[][..], |(_, node)| tree.entries(node)) {
                let Some(Node::List(items)) = tree.node(*entries) else { continue };
                let is_computed = |item: &usize| {
                    let name = tree.entry(*item, "name").map_or(*item, |(_, name)| name);
                    tree.entry(*item, "for_each").is_some()
                        || tree.scalar(name).is_some_and(|name| name.text.contains("${"))
                };
                if items.iter().any(is_computed) {
                    computed.extend(tree.scalar(*kind).map(|kind| kind.text.as_ref()));
                }
            }
        }
        for export in exports {
            let is_computed =
                |id: ResourceId<'_>| !id.instance.is_empty() || computed.contains(id.kind);
            if ResourceId::parse(&export.target).is_some_and(is_computed) {
                export.at = None;
            }
        }
    }
}
