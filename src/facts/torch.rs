//! The facts of a Hugging Face model: what its config states and what the headers of its weights say.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Facts of a Hugging Face model. A number that the config does not state is left out, never guessed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TorchFacts {
    /// Where in the config the language model stands when it is nested, for example `text_config` or
    /// `thinker_config.text_config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_config_key: Option<String>,
    /// `model_type` of the nested language model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_model_type: Option<String>,
    /// Class names that the config lists; text from the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// Classes that the model's own Python code defines (`auto_map`); text from the file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub auto_map: BTreeMap<String, String>,
    /// Element type that the config states, for example `bfloat16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Whether there is an encoder beside the decoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_encoder_decoder: Option<bool>,
    /// Width inside a dense feed-forward block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intermediate_size: Option<u64>,
    /// Attention heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_attention_heads: Option<u64>,
    /// Heads of keys and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_key_value_heads: Option<u64>,
    /// Width of one attention head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<u64>,
    /// Tokens in the vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocab_size: Option<u64>,
    /// Longest context, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_position_embeddings: Option<u64>,
    /// Whether the config says that input embeddings and output head share one weight; not stated is not
    /// known, because the default depends on the model class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie_word_embeddings: Option<bool>,
    /// Whether the output head has a weight of its own in the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_head_weight: Option<bool>,
    /// Experts, of a mixture-of-experts model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<ExpertFacts>,
    /// Multi-token-prediction layers (`num_nextn_predict_layers`, `mtp_num_hidden_layers`, …).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtp_layers: Option<u64>,
    /// Ranks of multi-head latent attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent_attention: Option<LatentAttention>,
    /// Layers of each kind, where the config says it: `full_attention`, `linear_attention`, `mamba`, `moe`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layer_kinds: BTreeMap<String, u64>,
    /// Encoders of other modalities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub towers: Vec<Tower>,
    /// Every place that says the model is quantized already; empty when none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantization: Vec<ExistingQuantization>,
    /// Number of parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    /// The weights, when there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<TorchWeights>,
    /// Whether tokenizer files lie in the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_tokenizer: Option<bool>,
    /// SHA-256 over the config, the quantization files and the headers of the weights, as `sha256:<hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structural_digest: Option<String>,
    /// Fields of other writers.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl TorchFacts {
    /// Whether its class is a decoder that generates text; `None` when the config names none.
    pub fn is_causal(&self) -> Option<bool> {
        const ENDINGS: [&str; 3] = ["ForCausalLM", "ForConditionalGeneration", "LMHeadModel"];
        if self.is_encoder_decoder == Some(true) {
            return Some(false);
        }
        let class = self.architectures.first()?;
        Some(ENDINGS.iter().any(|ending| class.ends_with(ending)))
    }
}

/// The experts of a mixture-of-experts model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExpertFacts {
    /// Experts that the router chooses from, in one layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed: Option<u64>,
    /// Experts that every token goes through, in one layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<u64>,
    /// Experts that the router chooses for a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_token: Option<u64>,
    /// Width inside one routed expert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intermediate_size: Option<u64>,
    /// Width inside the shared expert, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_intermediate_size: Option<u64>,
    /// Dense layers at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_dense_layers: Option<u64>,
    /// Layers with experts, MTP layers not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u64>,
}

/// The ranks of multi-head latent attention, as DeepSeek names them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatentAttention {
    /// Rank of keys and values; with `qk_rope_head_dim` what the cache holds for a token and layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_lora_rank: Option<u64>,
    /// Rank of queries; none when they are not compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q_lora_rank: Option<u64>,
    /// Width of the part of a head with rotary positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qk_rope_head_dim: Option<u64>,
    /// Width of the part of a head without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qk_nope_head_dim: Option<u64>,
    /// Width of a head of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v_head_dim: Option<u64>,
}

/// An encoder of another modality.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tower {
    /// Where in the config it stands, for example `vision_config`.
    pub key: String,
    /// What it takes in.
    pub modality: Modality,
    /// Its `model_type`; text from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_type: Option<String>,
    /// Its layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u64>,
    /// Its width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_size: Option<u64>,
    /// The width inside its feed-forward blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intermediate_size: Option<u64>,
}

/// What an encoder takes in.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    /// Images or video.
    Vision,
    /// Sound or speech.
    Audio,
}

impl Modality {
    /// The spelling of the artefacts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Audio => "audio",
        }
    }
}

/// One place that says the model is quantized already, and what it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExistingQuantization {
    /// The place: a key of the config (`text_config.quantization_config`), a file (`hf_quant_config.json`), or
    /// `weights`.
    pub found_in: String,
    /// `quant_method` or the tool that made it, for example `fp8`, `gptq`, `quark`, `modelopt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The number format, in the words of that place, for example `NVFP4`, `e4m3`, `pack-quantized`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Bits of a weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_bits: Option<u64>,
    /// Weights that share a scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<u64>,
    /// Sides of a block that shares a scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block_size: Vec<u64>,
    /// The number format of the KV cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_cache: Option<String>,
    /// How many modules or patterns it leaves in float.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_count: Option<u64>,
    /// The first of them; text from the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// For `weights`: tensors of each packed or narrow element type, and of each telling name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, u64>,
}

/// The weights, by the headers of their files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TorchWeights {
    /// `safetensors`, `gguf` or `pytorch` (pickled `.bin` and `.pt`).
    pub format: String,
    /// Number of files.
    pub files: u64,
    /// Bytes of the files that are there.
    pub file_bytes: u64,
    /// Number of tensors; only safetensors headers tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensors: Option<u64>,
    /// Bytes of all tensors, or what the index says when a file is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_bytes: Option<u64>,
    /// How many tensors each element type has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dtypes: BTreeMap<String, u64>,
    /// Bytes of each element type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bytes: BTreeMap<String, u64>,
    /// Files that are missing, broken or cut off; the risks say why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unusable_files: Vec<String>,
}

/// How something about modules is known.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Exactness {
    /// From the headers of the weights: names, shapes and bytes are real.
    Weights,
    /// From the numbers of the config and the naming of a known architecture.
    Config,
    /// Not known: neither weights nor a known naming.
    Unknown,
}

/// The linear modules of a Hugging Face model, one by one: what exclusions, group sizes and size estimates
/// look at.
///
/// It is read with the analysis, but it is not part of `model_analysis.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modules {
    /// How they are known; [`Exactness::Weights`] or [`Exactness::Config`].
    pub exactness: Exactness,
    /// Linear modules, in the order of the files or of the layers.
    pub linears: Vec<LinearModule>,
    /// Bytes of everything else: `embeddings`, `norms`, `biases`, `scales`, `convolutions`, `packed`, `other`.
    pub other_bytes: BTreeMap<&'static str, u64>,
    /// Bytes of everything.
    pub total_bytes: u64,
    /// Pattern of the draft layers for multi-token prediction that the config tells of, where it is known what
    /// they are called. From weights there is none: there they are among the linear modules.
    pub draft: Option<String>,
}

/// One linear module, or the stacked linear modules of all experts of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearModule {
    /// Name as the checkpoint has it, without `.weight`.
    pub name: String,
    /// Rows of the weight: what one expert puts out.
    pub out_features: u64,
    /// Columns of the weight, unpacked: what groups divide.
    pub in_features: u64,
    /// Experts in the stack; 1 for a linear module.
    pub stacked: u64,
    /// Element type of the stored weight, for example `bfloat16` or `uint8`.
    pub dtype: &'static str,
    /// Bytes of the stored weight; 0 for a head that shares the weight of the embeddings.
    pub bytes: u64,
    /// What it does.
    pub role: Role,
    /// What the weight is stored as.
    pub kind: LinearKind,
}

/// What a weight is stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinearKind {
    /// A matrix of numbers.
    Plain,
    /// The matrices of all experts of a layer in one tensor of three dimensions.
    StackedExperts,
    /// Several quantized numbers in one element.
    Packed,
    /// No weight of its own: the embeddings' one.
    Tied,
}

/// What a linear module does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Queries, keys, values, outputs of attention, of any kind.
    Attention,
    /// A dense feed-forward block.
    Mlp,
    /// A routed expert.
    Expert,
    /// An expert that every token goes through.
    SharedExpert,
    /// What chooses the experts: as many rows as there are experts.
    Router,
    /// The output head.
    Head,
    /// Anything in a multi-token-prediction layer.
    Draft,
    /// Anything in a vision encoder.
    Vision,
    /// Anything in an audio encoder.
    Audio,
    /// What brings another modality into the language model.
    Projector,
    /// None of these.
    Other,
}
