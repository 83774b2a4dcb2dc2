//! What Quark offers, per release: presets, calibration methods, algorithms, options and targets of
//! Quark-ONNX; schemes, algorithms, model families and entry points of Quark-Torch; devices and engines;
//! and the skills and known errors around them.
//!
//! The facts are JSON under `catalogue/data/`, one file a kind and one object an entry, embedded in the
//! binary and parsed once, when first asked for. Every entry names its source. An entry states facts and
//! properties; what follows from them is a rule's to say.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod algorithms;
pub mod devices;
pub mod engines;
pub mod entry_points;
pub mod families;
pub mod globs;
pub mod methods;
pub mod npu_ops;
pub mod options;
pub mod prequantized;
pub mod presets;
pub mod raised;
pub mod recoveries;
pub mod releases;
pub mod schemes;
pub mod skills;
pub mod storage;
pub mod targets;
pub mod topics;
pub mod torch_algorithms;

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    catalogue::{
        algorithms::Algorithm, devices::Device, engines::Engine, entry_points::EntryPoint,
        families::Family, methods::Method, npu_ops::NpuOp, options::ExtraOption,
        prequantized::Prequantized, presets::Preset, raised::Raised, recoveries::Recovery,
        releases::Release, schemes::Scheme, skills::Skill, targets::Target, topics::Topic,
        torch_algorithms::TorchAlgorithm,
    },
    vocab::{FamilyId, ReleaseId, fold},
};

/// Version of the facts; part of every digest, so that a yes does not outlive the facts it was given on.
pub const VERSION: &str = "2026.11.2";

/// Where a fact was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Release of amd-quark, or name and commit of a document.
    pub release: String,
    /// Path inside it, with a line where one is known.
    pub path: String,
    /// Whether it was also seen to behave so in a run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub measured: bool,
}

/// What every kind of entry has.
pub trait Entry: 'static {
    /// The id, as upstream spells it.
    fn id(&self) -> &str;
    /// Other names that people use.
    fn aliases(&self) -> &[String];
    /// One line about it.
    fn summary(&self) -> &str;
    /// Where the facts come from; never empty.
    fn sources(&self) -> &[Source];
    /// First release that has it; `None` for entries that are not part of a release.
    fn since(&self) -> Option<&ReleaseId>;
    /// Last release that has it.
    fn until(&self) -> Option<&ReleaseId>;
}

/// Implements [`Entry`] for a struct with the usual fields.
macro_rules! entry {
    ($type:ty) => {
        impl $crate::catalogue::Entry for $type {
            fn id(&self) -> &str {
                self.id.as_str()
            }
            fn aliases(&self) -> &[String] {
                &self.aliases
            }
            fn summary(&self) -> &str {
                &self.summary
            }
            fn sources(&self) -> &[$crate::catalogue::Source] {
                &self.source
            }
            fn since(&self) -> Option<&$crate::vocab::ReleaseId> {
                self.since.as_ref()
            }
            fn until(&self) -> Option<&$crate::vocab::ReleaseId> {
                self.until.as_ref()
            }
        }
    };
}
pub(crate) use entry;

/// All entries of one kind, in the order of the file.
#[derive(Debug)]
pub struct Kind<T: 'static> {
    entries: Vec<T>,
}

impl<T: Entry> Kind<T> {
    /// Every entry.
    pub fn all(&self) -> &[T] {
        &self.entries
    }

    /// The entry with this id, spelled as upstream spells it.
    pub fn get(&self, id: &str) -> Option<&T> {
        self.entries.iter().find(|entry| entry.id() == id)
    }

    /// The entry with this id or alias; case, spaces, `-`, `_` and `.` do not count.
    pub fn find(&self, name: &str) -> Option<&T> {
        let folded = fold(name);
        self.get(name).or_else(|| {
            self.entries.iter().find(|entry| {
                fold(entry.id()) == folded
                    || entry.aliases().iter().any(|alias| fold(alias) == folded)
            })
        })
    }

    /// Every id.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(Entry::id)
    }
}

/// The catalogue; a handle, parsed kind by kind when first asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Catalogue;

/// Gives access to one embedded file.
macro_rules! kind {
    ($(#[$doc:meta])* $name:ident, $type:ty, $file:literal) => {
        $(#[$doc])*
        pub fn $name(self) -> &'static Kind<$type> {
            static KIND: OnceLock<Kind<$type>> = OnceLock::new();
            KIND.get_or_init(|| parse(include_str!(concat!("catalogue/data/", $file))))
        }
    };
}

impl Catalogue {
    kind!(
        /// Releases of amd-quark, oldest first.
        releases, Release, "releases.json"
    );
    kind!(
        /// Named configs of Quark-ONNX.
        presets, Preset, "presets.json"
    );
    kind!(
        /// Calibration methods of Quark-ONNX.
        methods, Method, "calibration_methods.json"
    );
    kind!(
        /// Algorithms of Quark-ONNX.
        algorithms, Algorithm, "onnx_algorithms.json"
    );
    kind!(
        /// Keys of Quark-ONNX's `extra_options`, nested ones too.
        options, ExtraOption, "extra_options.json"
    );
    kind!(
        /// Deployment targets.
        targets, Target, "targets.json"
    );
    kind!(
        /// Device generations: NPUs and GPUs.
        devices, Device, "devices.json"
    );
    kind!(
        /// Which ONNX ops the Ryzen AI NPU runs at which precision.
        npu_ops, NpuOp, "npu_ops.json"
    );
    kind!(
        /// Skills that work is handed to.
        skills, Skill, "skills.json"
    );
    kind!(
        /// Known errors.
        recoveries, Recovery, "recoveries.json"
    );
    kind!(
        /// Questions that people ask before they know a name.
        topics, Topic, "topics.json"
    );
    kind!(
        /// Schemes of Quark-Torch.
        schemes, Scheme, "schemes.json"
    );
    kind!(
        /// Algorithms of Quark-Torch.
        torch_algorithms, TorchAlgorithm, "torch_algorithms.json"
    );
    kind!(
        /// Model families that Quark-Torch has a template for.
        families, Family, "families.json"
    );
    kind!(
        /// Programs that carry a Torch plan out.
        entry_points, EntryPoint, "entry_points.json"
    );
    kind!(
        /// Programs that run an exported Torch model.
        engines, Engine, "engines.json"
    );
    kind!(
        /// Checkpoints that are quantized already, by their `quant_method`.
        prequantized, Prequantized, "prequantized.json"
    );

    /// Messages of the libraries, by the file that raises them.
    pub fn raised(self) -> &'static [Raised] {
        static RAISED: OnceLock<Vec<Raised>> = OnceLock::new();
        RAISED.get_or_init(|| embedded(include_str!("catalogue/data/raised.json")))
    }

    /// The Torch algorithms that have a built-in config for a model family in `release`.
    pub fn algorithms_for(
        self,
        family: &FamilyId,
        release: &ReleaseId,
    ) -> Vec<&'static TorchAlgorithm> {
        let all = self.torch_algorithms().all().iter();
        all.filter(|algorithm| algorithm.has_config_for(family, release)).collect()
    }

    /// The newest release.
    #[expect(
        clippy::expect_used,
        reason = "the file is embedded and `catalogue_is_sound` reads it"
    )]
    pub fn newest_release(self) -> &'static Release {
        self.releases().all().last().expect("there is a release")
    }

    /// Whether `release` has an entry that exists from `since` to `until`.
    pub fn in_release(self, entry: &impl Entry, release: &ReleaseId) -> bool {
        entry.since().is_none_or(|since| self.not_before(since, release))
            && entry.until().is_none_or(|until| self.not_before(release, until))
    }

    /// Whether `release` is `since` or later; `true` where one of them is not known.
    pub fn not_before(self, since: &ReleaseId, release: &ReleaseId) -> bool {
        let order = |id: &ReleaseId| self.releases().ids().position(|known| *id == *known);
        order(since).zip(order(release)).is_none_or(|(since, release)| since <= release)
    }

    /// The releases that have an entry, oldest first.
    pub fn releases_with(self, entry: &impl Entry) -> Vec<&'static ReleaseId> {
        self.releases().all().iter().map(|r| &r.id).filter(|r| self.in_release(entry, r)).collect()
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Kind<T> {
    Kind { entries: embedded(text) }
}

#[expect(
    clippy::expect_used,
    reason = "the text is embedded and `catalogue_is_sound` parses every file"
)]
fn embedded<T: DeserializeOwned>(text: &str) -> Vec<T> {
    serde_json::from_str(text).expect("an embedded catalogue file is valid")
}
