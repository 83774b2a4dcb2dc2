//! What the rules have chosen for a Torch plan so far.

use crate::{
    catalogue::{
        devices::Device, engines::Engine, families::Family, globs::Glob, schemes::Scheme,
        torch_algorithms::TorchAlgorithm,
    },
    facts::{
        named_files::{NamedFile, TemplateFile},
        torch::LinearModule,
    },
    rules::{Context, common::goal, torch::lookup},
    vocab::ReleaseId,
};

/// What is chosen, in the order in which rules settle it.
#[derive(Debug, Default)]
pub struct TorchChoice {
    /// Quark's template for the model.
    pub family: Option<&'static Family>,
    /// A template of the user's own, which takes its place.
    pub template: Option<NamedFile<TemplateFile>>,
    /// Devices that will run the result.
    pub devices: Vec<Target>,
    /// Whether a CPU will run it.
    pub on_cpu: bool,
    /// The engine that will serve it.
    pub engine: Option<&'static Engine>,
    /// Whether only file-to-file quantization reads the source.
    pub file_to_file_only: bool,
    /// Whether file-to-file quantization of the source needs exactly one GPU.
    pub source_needs_one_gpu: bool,
    /// Patterns of modules left in float.
    pub excludes: Vec<String>,
    /// For each linear module whether one of them matches; empty when no modules are known.
    pub excluded: Vec<bool>,
    /// Scheme of everything else.
    pub scheme: Option<&'static Scheme>,
    /// Schemes of single layers.
    pub overrides: Vec<(String, &'static Scheme)>,
    /// How the model is held.
    pub strategy: String,
    /// Algorithms in the order in which they run.
    pub algorithms: Vec<&'static TorchAlgorithm>,
    /// What excluded layers come out as nevertheless.
    pub excluded_become: Option<&'static Scheme>,
    /// Whether the KV cache is quantized.
    pub kv_cache: bool,
    /// What is written.
    pub export: String,
    /// Why quark-cli cannot carry the plan out.
    pub needs_script: Vec<String>,
}

/// A device that will run the result.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its generation.
    pub device: &'static Device,
    /// As it was named.
    pub name: String,
    /// Bytes of its memory.
    pub memory: Option<u64>,
    /// How many there are, where that is known.
    pub count: Option<u64>,
}

impl Target {
    /// How many of them share the model: the tensor-parallel ranks, else all that there are.
    pub fn sharing(&self, ctx: &Context<'_>) -> u64 {
        goal::tensor_parallel(ctx).or(self.count).unwrap_or(1).max(1)
    }
}

impl TorchChoice {
    /// The template's name in a sentence; `None` without one that could be read.
    pub fn template_name(&self) -> Option<String> {
        match (self.own_template(), self.family) {
            (Some(_), _) => {
                self.template.as_ref().map(|file| format!("your template `{}`", file.path))
            }
            (None, Some(family)) => Some(format!("the template of `{}`", family.id)),
            (None, None) => None,
        }
    }

    /// What the user's own template says, when it could be read.
    pub fn own_template(&self) -> Option<&TemplateFile> {
        self.template.as_ref().and_then(NamedFile::read)
    }

    /// Layers that the template leaves alone in `release`; none without a template.
    pub fn template_excludes(&self, release: &ReleaseId) -> &[String] {
        match (self.own_template(), self.family) {
            (Some(own), _) => &own.exclude_layers,
            (None, Some(family)) => family.excludes_in(release),
            (None, None) => &[],
        }
    }

    /// Layers whose outputs are the KV cache; `None` when no template could be read.
    pub fn kv_layers(&self) -> Option<&[String]> {
        let own = self.own_template().map(|own| own.kv_layers.as_deref().unwrap_or_default());
        own.or_else(|| self.family.map(|family| family.kv_layers.as_slice()))
    }

    /// Layers whose outputs are the queries; `None` when no template could be read.
    pub fn q_layers(&self) -> Option<&[String]> {
        let own = self.own_template().map(|own| own.q_layers.as_deref().unwrap_or_default());
        own.or_else(|| self.family.map(|family| family.q_layers.as_slice()))
    }

    /// Whether an algorithm will run.
    pub fn runs(&self, algorithm: &str) -> bool {
        self.algorithms.iter().any(|known| known.id == *algorithm)
    }

    /// Whether a linear module stays in float.
    pub fn is_excluded(&self, at: usize) -> bool {
        self.excluded.get(at).copied().unwrap_or(false)
    }

    /// Which scheme each module gets when `global` is the one of everything else.
    pub fn schemes<'c>(
        &'c self,
        global: &'c Scheme,
    ) -> impl Fn(usize, &LinearModule) -> Option<&'c Scheme> + 'c {
        let globs: Vec<(Glob, &Scheme)> =
            self.overrides.iter().map(|(pattern, scheme)| (Glob::new(pattern), *scheme)).collect();
        let whole = self.takes_experts_apart();
        move |at, module| {
            if self.is_excluded(at) || (module.stacked > 1 && !whole) {
                return None;
            }
            let own = globs.iter().find(|(glob, _)| lookup::takes(glob, module));
            Some(own.map_or(global, |(_, scheme)| *scheme))
        }
    }

    /// The same as it is written: also what excluded modules come out as.
    pub fn written<'c>(
        &'c self,
        global: &'c Scheme,
    ) -> impl Fn(usize, &LinearModule) -> Option<&'c Scheme> + 'c {
        let schemes = self.schemes(global);
        move |at, module| {
            let anyway = || self.excluded_become.filter(|_| self.is_excluded(at));
            schemes(at, module).or_else(anyway)
        }
    }

    /// Whether Quark makes linear layers of stacked experts, so that they can be quantized.
    pub fn takes_experts_apart(&self) -> bool {
        self.family.is_some_and(|family| {
            !family.replaced_modules.is_empty()
                || (self.strategy == "file_to_file" && family.splits_fused_experts)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalogue::Catalogue,
        facts::torch::{LinearKind, Role},
    };

    #[test]
    fn an_excluded_module_is_written_as_what_it_becomes() {
        let scheme = |id: &str| Catalogue.schemes().get(id).unwrap();
        let head = LinearModule {
            name: "lm_head".to_owned(),
            out_features: 1024,
            in_features: 256,
            stacked: 1,
            dtype: "bfloat16",
            bytes: 1024 * 256 * 2,
            role: Role::Head,
            kind: LinearKind::Plain,
        };
        let mut choice = TorchChoice { excluded: vec![true, false], ..TorchChoice::default() };
        assert_eq!(choice.written(scheme("fp8"))(0, &head), None);
        choice.excluded_become = Some(scheme("mxfp4_weight_only"));
        assert_eq!(choice.schemes(scheme("fp8"))(0, &head), None);
        assert_eq!(choice.written(scheme("fp8"))(0, &head), Some(scheme("mxfp4_weight_only")));
        assert_eq!(choice.written(scheme("fp8"))(1, &head), Some(scheme("fp8")));
    }
}
