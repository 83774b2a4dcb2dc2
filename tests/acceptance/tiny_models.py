"""Makes Hugging Face folders of a few megabytes, with random weights from a fixed seed.

Every width divides by 128, so the groups of every scheme fit.

    python tiny_models.py FOLDER [NAME ...]
"""

import pathlib
import sys

import torch
from transformers import (
    AutoModelForCausalLM,
    GptOssConfig,
    LlamaConfig,
    MixtralConfig,
    Qwen3Config,
    Qwen3MoeConfig,
)

SIZES = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "vocab_size": 1024,
    "max_position_embeddings": 256,
}

CONFIGS = {
    "llama": lambda: LlamaConfig(**SIZES, tie_word_embeddings=False),
    "qwen3_tied": lambda: Qwen3Config(**SIZES, tie_word_embeddings=True),
    "qwen3_moe": lambda: Qwen3MoeConfig(
        **SIZES, moe_intermediate_size=128, num_experts=8, num_experts_per_tok=2, tie_word_embeddings=False
    ),
    "gpt_oss": lambda: GptOssConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=False),
    "mixtral": lambda: MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, tie_word_embeddings=False),
}


def make(name, folder):
    """Writes a model; gives its folder."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIGS[name]()).to(torch.bfloat16)
    path = pathlib.Path(folder) / name
    model.save_pretrained(path)
    return path


if __name__ == "__main__":
    for wanted in sys.argv[2:] or CONFIGS:
        print(make(wanted, sys.argv[1]))
