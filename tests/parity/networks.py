"""Writes small random networks of each architecture as GGUF files, with the results of `transformers`.

Usage: networks.py DIRECTORY. Beside each NAME.gguf (16-bit weights) stands NAME.json: `tokens`, the `scores`
of the next token after them, and the 200 tokens that follow if always the best one is taken (`greedy`).
"""

import json
import sys
from pathlib import Path

import gguf
import torch
import transformers
from transformers import (
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

TOKENS = 96
GREEDY = 200

COMMON = {
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "tie_word_embeddings": False,
}
LLAMA3_ROTARY = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}
EXPERTS = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
GEMMA = {
    "num_hidden_layers": 7,
    "head_dim": 16,
    "query_pre_attn_scalar": 16,
    "sliding_window": 24,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    "tie_word_embeddings": True,
}

# The name, the architecture in GGUF, and the configuration.
MODELS = [
    ("qwen2", "qwen2", Qwen2Config(**COMMON)),
    ("qwen3", "qwen3", Qwen3Config(**COMMON, head_dim=16, rope_theta=1e6)),
    ("qwen3-experts", "qwen3moe", Qwen3MoeConfig(**COMMON, head_dim=16, **EXPERTS)),
    ("llama-3", "llama", LlamaConfig(**COMMON, rope_theta=5e5, rope_scaling=LLAMA3_ROTARY)),
    ("mistral", "llama", MistralConfig(**COMMON, head_dim=16, sliding_window=None)),
    (
        "deepseek-coder",
        "llama",
        LlamaConfig(**COMMON, rope_theta=1e5, rope_scaling={"rope_type": "linear", "factor": 4.0}),
    ),
    ("gemma-3", "gemma3", Gemma3TextConfig(**{**COMMON, **GEMMA})),
]


def rotary_kind(config):
    return (getattr(config, "rope_scaling", None) or {}).get("rope_type")


def llama3_factors(config):
    """The factors of the frequencies as llama.cpp stores them in `rope_freqs.weight`."""
    scaling = config.rope_scaling
    size = config.hidden_size // config.num_attention_heads
    trained = scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    frequencies = 1.0 / config.rope_theta ** (torch.arange(0, size, 2).float() / size)
    factors = []
    for frequency in frequencies.tolist():
        length = 2 * torch.pi / frequency
        if length < trained / high:
            factors.append(1.0)
        elif length > trained / low:
            factors.append(scaling["factor"])
        else:
            smooth = (trained / length - low) / (high - low)
            factors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return torch.tensor(factors)


def in_pairs(weight, heads):
    """Reorders the rows of a projection so that neighbouring elements of a head are rotated together."""
    rows, columns = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def converted(model, architecture):
    """The tensors of a model with their names and layouts in GGUF."""
    config = model.config
    names = gguf.get_tensor_name_map(
        gguf.MODEL_ARCH[architecture.upper()], config.num_hidden_layers
    )
    experts = {}
    for name, tensor in model.state_dict().items():
        if architecture == "llama" and name.endswith("q_proj.weight"):
            tensor = in_pairs(tensor, config.num_attention_heads)
        if architecture == "llama" and name.endswith("k_proj.weight"):
            tensor = in_pairs(tensor, config.num_key_value_heads)
        if architecture == "gemma3" and name.endswith("norm.weight"):
            tensor = tensor + 1
        if ".experts." in name:
            before, after = name.split(".experts.")
            number, part = after.split(".", 1)
            experts.setdefault(f"{before}.experts.{part}", {})[int(number)] = tensor
            continue
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        yield names.get_name(name, try_suffixes=(".weight", ".bias")), tensor
    for name, parts in experts.items():
        stacked = torch.stack([parts[number] for number in sorted(parts)])
        yield names.get_name(name, try_suffixes=(".weight",)), stacked
    if rotary_kind(config) == "llama3":
        yield "rope_freqs.weight", llama3_factors(config)


def write(path, model, architecture):
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    if getattr(config, "head_dim", None):
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if architecture == "gemma3":
        writer.add_sliding_window(config.sliding_window)
    if architecture == "qwen3moe":
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if rotary_kind(config) == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(config.rope_scaling["factor"])
    for name, tensor in converted(model, architecture):
        # Vectors and the router of experts stay precise, as in published files.
        is_matrix = tensor.dim() > 1 and "ffn_gate_inp" not in name
        tensor = tensor.half() if is_matrix else tensor.float()
        writer.add_tensor(name, tensor.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@torch.no_grad()
def main(directory):
    torch.set_num_threads(1)
    for seed, (name, architecture, config) in enumerate(MODELS):
        torch.manual_seed(seed)
        config._attn_implementation = "eager"
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        for parameter in model.parameters():
            if parameter.dim() == 1:
                # Norms and biases that do nothing would hide that they are left out.
                parameter.add_(torch.randn_like(parameter) * 0.2)
            parameter.copy_(parameter.half().float())
        if config.tie_word_embeddings:
            # Otherwise each token is followed by itself.
            model.get_input_embeddings().weight.mul_(1 / 16)
        write(directory / f"{name}.gguf", model, architecture)
        tokens = torch.randint(3, config.vocab_size, (1, TOKENS))
        reply = model(tokens, use_cache=True)
        scores = reply.logits[0, -1]
        greedy = []
        for _ in range(GREEDY):
            best = reply.logits[0, -1].argmax()
            greedy.append(best.item())
            reply = model(best.reshape(1, 1), past_key_values=reply.past_key_values)
        results = {
            "tokens": tokens[0].tolist(),
            "scores": scores.tolist(),
            "greedy": greedy,
            "transformers": transformers.__version__,
        }
        (directory / f"{name}.json").write_text(json.dumps(results))
        print(name, len(set(greedy)), "different tokens of", GREEDY)


main(Path(sys.argv[1]))
