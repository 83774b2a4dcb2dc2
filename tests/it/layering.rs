//! The architecture, as a test: who may import whom, who may print, who is pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::visit::{self, Visit};

/// For each module what it may import from the crate.
const ALLOWED: &[(&str, &str)] = &[
    ("vocab", ""),
    ("facts", "vocab"),
    ("intent", "vocab"),
    ("catalogue", "vocab"),
    ("plan", "vocab"),
    ("estimate", "vocab facts catalogue"),
    ("rules", "vocab facts intent catalogue plan estimate"),
    ("session", "vocab plan"),
    ("render", "vocab plan"),
    ("intake", "vocab facts"),
    ("probe", "vocab facts"),
    ("store", "vocab plan session"),
    ("emit", "vocab plan session"),
    (
        "planner",
        "vocab facts intent catalogue plan estimate rules session render intake probe store emit \
         schema",
    ),
    ("schema", "vocab facts intent catalogue plan"),
    // Answers and states are the session's words; everything else goes through the planner.
    ("mcp", "vocab facts intent catalogue plan session render planner schema"),
    ("cli", "vocab facts intent catalogue plan session render planner"),
    ("main", "vocab mcp cli planner"),
];

/// Modules that do no I/O and read no clock.
const PURE: &[&str] =
    &["vocab", "facts", "intent", "catalogue", "plan", "estimate", "rules", "session", "render"];

/// Crates that one module alone knows.
const OWNED: &[(&str, &str)] = &[
    ("rmcp", "mcp"),
    ("rusqlite", "store"),
    ("rten_onnx", "intake"),
    ("clap", "cli"),
    ("comfy_table", "render"),
    ("jsonschema", "schema"),
    ("pep440_rs", "vocab"),
];

struct Imports {
    crate_modules: BTreeSet<String>,
    crates: BTreeSet<String>,
}

impl Imports {
    fn note(&mut self, segments: &[String]) {
        match segments {
            [first, second, ..] if first == "crate" => {
                self.crate_modules.insert(second.clone());
            }
            [first, ..] => {
                self.crates.insert(first.clone());
            }
            [] => {}
        }
    }

    fn tree(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let mut path = prefix.to_vec();
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(&path, &part.tree);
            }
            syn::UseTree::Group(group) => {
                for item in &group.items {
                    self.tree(&path, item);
                }
            }
            syn::UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.note(&path);
            }
            syn::UseTree::Rename(rename) => {
                path.push(rename.ident.to_string());
                self.note(&path);
            }
            syn::UseTree::Glob(_) => self.note(&path),
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if segments.len() > 1 {
            self.note(&segments);
        }
        visit::visit_path(self, path);
    }
}

fn sources() -> Vec<(String, PathBuf)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| {
            let inside = path.strip_prefix(&root).unwrap();
            let first = inside.components().next().unwrap().as_os_str().to_string_lossy();
            (first.trim_end_matches(".rs").to_owned(), path)
        })
        .collect()
}

fn imports_of(path: &Path) -> Imports {
    let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
    let mut imports = Imports { crate_modules: BTreeSet::new(), crates: BTreeSet::new() };
    imports.visit_file(&file);
    imports
}

#[test]
fn a_module_imports_only_what_the_table_names() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> = ALLOWED
        .iter()
        .map(|(module, names)| (*module, names.split_whitespace().collect()))
        .collect();
    let mut wrong = Vec::new();
    for (module, path) in sources() {
        if module == "lib" {
            continue;
        }
        let Some(allowed) = allowed.get(module.as_str()) else {
            wrong.push(format!("`{module}` has no row in the table"));
            continue;
        };
        for import in imports_of(&path).crate_modules {
            if import != module && !allowed.contains(import.as_str()) {
                wrong.push(format!("{} imports `{import}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_crate_behind_one_module_stays_there() {
    let mut wrong = Vec::new();
    for (module, path) in sources() {
        let imports = imports_of(&path);
        for (name, owner) in OWNED {
            if module != *owner && module != "main" && imports.crates.contains(*name) {
                wrong.push(format!("{} uses `{name}`, which belongs to `{owner}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_modules_deny_what_is_not_pure() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for module in PURE {
        let path = root.join(format!("{module}.rs"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("#![deny(clippy::disallowed_methods, clippy::disallowed_types)]"),
            "{} does not deny impure calls",
            path.display()
        );
    }
}

#[test]
fn only_one_function_writes_a_plan_and_it_takes_a_confirmed_session() {
    // Every free function takes the proof, and what `prepare` makes of it nobody else can make.
    let emit =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/emit.rs")).unwrap();
    let file = syn::parse_file(&emit).unwrap();
    for item in &file.items {
        if let syn::Item::Struct(prepared) = item {
            let mut fields = prepared.fields.iter();
            assert!(fields.all(|field| matches!(field.vis, syn::Visibility::Inherited)));
        }
        if let syn::Item::Impl(methods) = item {
            for method in &methods.items {
                let syn::ImplItem::Fn(method) = method else { continue };
                let name = &method.sig.ident;
                assert!(method.sig.receiver().is_some(), "`{name}` makes one out of nothing");
            }
        }
        if let syn::Item::Fn(function) = item {
            let Some(syn::FnArg::Typed(first)) = function.sig.inputs.first() else {
                panic!("`{}` takes no proof", function.sig.ident)
            };
            let syn::Type::Reference(reference) = &*first.ty else {
                panic!("`{}` takes no reference", function.sig.ident)
            };
            let syn::Type::Path(path) = &*reference.elem else { panic!("not a type path") };
            assert_eq!(path.path.segments.last().unwrap().ident, "Confirmed");
        }
    }
    let assemblers: Vec<String> = sources()
        .into_iter()
        .filter(|(module, path)| {
            module != "plan" && fs::read_to_string(path).unwrap().contains("assemble(")
        })
        .map(|(module, _)| module)
        .collect();
    assert_eq!(assemblers, ["emit"], "only `emit` turns a draft into a plan");
}
