"""Models made of checkpoints without PyTorch, held against transformers on the same weights."""

from __future__ import annotations

import json

import made_gguf
import numpy as np
import onnx
import onnxruntime
import pytest

from backends.language_models import bert, llama
from backends.language_models.checkpoints import BertCheckpoint, GgufCheckpoint
from backends.language_models.gguf_file import GgufFile, tokenizer
from backends.onnx_nodes import Nodes
from simulator import cli
from simulator.errors import ModelError
from simulator.model.card import load
from simulator.model.onnxfile import check
from simulator.testing import vocabularies

pytest.importorskip("gguf")
IDS = np.random.default_rng(1).integers(0, made_gguf.IDS, (3, 9))
MASK = np.ones_like(IDS)
MASK[1, 6:] = 0
MASK[2, :3] = 0
FEEDS = {"input_ids": IDS, "attention_mask": MASK}


def ran(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


@pytest.fixture
def file(tmp_path):
    return GgufFile(made_gguf.write(tmp_path / "made.gguf"))


@pytest.mark.parametrize("tied", [True, False])
def test_a_llama_gives_the_logits_of_transformers(tmp_path, tied):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    file = GgufFile(made_gguf.write(tmp_path / "made.gguf", tied=tied))
    m = made_gguf
    config = transformers.LlamaConfig(
        vocab_size=m.IDS, hidden_size=m.WIDTH, intermediate_size=m.INNER,
        num_hidden_layers=m.LAYERS, num_attention_heads=m.HEADS, num_key_value_heads=m.SHARED,
        max_position_embeddings=m.CONTEXT, rms_norm_eps=1e-5, tie_word_embeddings=tied,
        rope_theta=10000.0, attn_implementation="eager",
    )  # fmt: skip
    theirs = transformers.LlamaForCausalLM(config).eval()
    theirs.load_state_dict(_named(m.weights(tied=tied), tied), strict=False)
    places = torch.from_numpy((MASK.cumsum(1) - 1).clip(0))
    with torch.inference_mode():
        found = theirs(
            torch.from_numpy(IDS), attention_mask=torch.from_numpy(MASK), position_ids=places
        ).logits.numpy()
    made = ran(llama.model(file.sizes(), file.weight), FEEDS)["logits"]
    assert np.abs(made - found)[MASK > 0].max() < 2e-5


def _named(weights, tied):
    """The names of transformers, and rows of q and k by halves: llama.cpp's permute undone."""
    import torch

    m, found = made_gguf, {}
    names = {
        "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
    }  # fmt: skip
    for name, value in weights.items():
        at = name.split(".")
        if at[0] != "blk":
            continue
        rows = value
        if at[2] in ("attn_q", "attn_k"):
            heads = m.HEADS if at[2] == "attn_q" else m.SHARED
            pairs = value.reshape(heads, -1, 2, m.WIDTH)
            rows = np.concatenate([pairs[:, :, 0], pairs[:, :, 1]], 1).reshape(value.shape)
        found[f"model.layers.{at[1]}.{names[at[2]]}.weight"] = rows
    found["model.embed_tokens.weight"] = weights["token_embd.weight"]
    found["model.norm.weight"] = weights["output_norm.weight"]
    found["lm_head.weight"] = weights["token_embd.weight" if tied else "output.weight"]
    return {name: torch.tensor(value) for name, value in found.items()}


def test_the_tied_embedding_is_stored_once(file):
    model = llama.model(file.sizes(), file.weight)
    sizes = [t for t in model.graph.initializer if made_gguf.IDS in t.dims]
    assert len(sizes) == 1
    onnx.checker.check_model(model, full_check=True)


def test_earlier_keys_and_values_give_the_same_logits(file):
    whole = ran(llama.model(file.sizes(), file.weight), FEEDS)["logits"]
    model = llama.model(file.sizes(cache=True), file.weight)
    shape = (3, made_gguf.SHARED, 0, made_gguf.WIDTH // made_gguf.HEADS)
    kept = {v.name: np.zeros(shape, np.float32) for v in model.graph.input if "past" in v.name}
    assert len(kept) == 2 * made_gguf.LAYERS
    parts = []
    for start, end in ((0, 4), (4, 5), (5, 9)):
        given = {"input_ids": IDS[:, start:end], "attention_mask": MASK[:, :end]}
        found = ran(model, {**given, **kept})
        parts.append(found.pop("logits"))
        kept = {name.replace("present", "past_key_values"): v for name, v in found.items()}
    assert np.abs(np.concatenate(parts, 1) - whole)[MASK > 0].max() < 1e-5


@pytest.mark.parametrize("dtype", ["fp16"])
def test_its_weights_can_be_cast(file, tmp_path, dtype):
    from backends.onnxconverter import HalfCast

    onnx.save(llama.model(file.sizes(), file.weight), tmp_path / "m.onnx")
    keep = {"op_types": [], "nodes": [], "reason": ""}
    HalfCast({"storage": dtype, "keep": keep}).cast(tmp_path / "m.onnx", tmp_path / "h.onnx")
    half, whole = (ran(onnx.load(tmp_path / f"{n}.onnx"), FEEDS)["logits"] for n in "hm")
    assert 0 < np.abs(half - whole)[MASK > 0].max() < 0.02


def test_a_program_gives_the_same_logits(file, tmp_path):
    pytest.importorskip("torch")
    from backends.language_models import program
    from backends.pytorch import TorchRuntime

    program.save(file.sizes(), file.weight, tmp_path / "m.pt2")
    whole = ran(llama.model(file.sizes(), file.weight), FEEDS)["logits"]
    run = {
        "device": "cpu", "threads": 1, "mode": "eager", "memory_format": "contiguous",
        "storage": "fp32",
    }  # fmt: skip
    for kind, near in (("fp32", 1e-5), ("bf16", 0.2), ("fp16", 0.02)):
        how = {"compute": kind} | ({} if kind == "fp32" else {"casting": "whole"})
        runtime = TorchRuntime(tmp_path / "m.pt2", {**run, **how})
        (logits,) = runtime.run(FEEDS).values()
        (one,) = runtime.run({name: value[:1, :1] for name, value in FEEDS.items()}).values()
        assert runtime.effective(FEEDS).compute == kind
        runtime.close()
        assert np.abs(logits - whole)[MASK > 0].max() < near
        assert one.shape == (1, 1, made_gguf.IDS)


def test_the_tokenizer_splits_digits_and_knows_control_tokens(file, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    (tmp_path / "t.json").write_bytes(vocabularies.tokenizer_json())
    theirs, made = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json")), tokenizer(file)
    for text in ("the cat is 2020 in 20", " the 1 é", "<s>the", ""):
        encoded = (one.encode(text, add_special_tokens=False).ids for one in (theirs, made))
        assert len(set(map(tuple, encoded))) == 1


def test_new_writes_a_model_a_card_and_a_tokenizer(tmp_path, capsys):
    path = made_gguf.write(tmp_path / "made.gguf", kind="Q8_0")
    assert cli.main(["model", "new", str(path)]) == cli.PASS
    card = load(tmp_path / "made" / "model.yaml")
    assert check(card).outputs == {"logits": (None, None, made_gguf.IDS)}
    assert card.file("gguf").read_bytes() == path.read_bytes()
    assert "15 Q8_0" in card.spec.summary and card.spec.input.prefix == 1
    assert cli.main(["model", "new", str(path)]) == cli.USER_ERROR
    assert "is not an empty folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"general__architecture": "gpt2"}, "gpt2 is not supported; llama is"),
        ({"llama__block_count": None}, "has no field llama.block_count"),
        ({"llama__block_count": 3}, "has no tensor blk.2"),
        ({"llama__block_count": 1}, "tensors that our Llama has not, the first is blk.1"),
        ({"llama__rope__scaling__type": "linear"}, "rotary positions in part, or scaled"),
        ({"tokenizer__ggml__pre": "qwen2"}, "pre-tokenizer qwen2 is not supported"),
        ({"tokenizer__ggml__model": "llama"}, "a tokenizer llama with"),
    ],
)
def test_what_it_does_not_know_is_refused_in_one_line(tmp_path, capsys, changed, why):
    path = made_gguf.write(tmp_path / "made.gguf", **changed)
    assert cli.main(["model", "new", str(path)]) == cli.USER_ERROR
    error = capsys.readouterr().err
    assert why in error and len(error.splitlines()) == 1


COUNTS = (
    "block_count", "context_length", "embedding_length", "feed_forward_length",
    "attention.head_count", "attention.head_count_kv",
)  # fmt: skip


@pytest.mark.parametrize("value", [0, 3, 1000, "many", 2.5, float("nan"), None])
@pytest.mark.parametrize(
    "key",
    [*(f"llama.{key}" for key in COUNTS), "llama.attention.key_length",
     "llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base",
     "llama.rope.dimension_count", "tokenizer.ggml.bos_token_id",
     "tokenizer.ggml.padding_token_id", "general.name"],
)  # fmt: skip
def test_no_field_of_a_file_is_a_bug_of_ours(tmp_path, capsys, key, value):
    """Each is answered, or refused in one line."""
    changed = {key.replace(".", "__"): value}
    path = made_gguf.write(tmp_path / "made.gguf", **changed)

    code = cli.main(["model", "new", str(path), "-o", str(tmp_path / "out")])

    error = capsys.readouterr().err
    assert code in (cli.PASS, cli.USER_ERROR), error
    if code:
        assert error.startswith("error: ") and error.count("\n") == 1
        words = (key, "tensor", "shape", "heads", "llama.attention.key_length", "rotary")
        assert any(word in error for word in words)
    else:
        load(tmp_path / "out" / "model.yaml")


@pytest.mark.parametrize("name", sorted(made_gguf.weights()))
def test_a_missing_tensor_is_named(tmp_path, capsys, name):
    path = made_gguf.write(tmp_path / "made.gguf", without=name)

    assert cli.main(["model", "new", str(path), "-o", str(tmp_path / "out")]) == cli.USER_ERROR
    assert capsys.readouterr().err == f"error: {path}: has no tensor {name}\n"


@pytest.mark.parametrize("data", [b"", b"GGUF", b"noise" * 100])
def test_noise_is_no_gguf_file(tmp_path, data):
    (tmp_path / "bad.gguf").write_bytes(data)
    with pytest.raises(ModelError, match="not a GGUF file"):
        GgufFile(tmp_path / "bad.gguf")


def test_half_a_gguf_file_is_refused(tmp_path):
    whole = made_gguf.write(tmp_path / "made.gguf").read_bytes()
    (tmp_path / "half.gguf").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="not a GGUF file"):
        GgufFile(tmp_path / "half.gguf")


def test_more_than_two_gigabytes_are_refused_in_one_line():
    nodes = Nodes()
    wide = np.broadcast_to(np.float32(0), (2**15, 2**14))  # as large as 2 GB, without the memory
    with pytest.raises(ModelError, match="2 GB at most"):
        nodes.constant("wide", wide)


CONFIG = {
    "model_type": "bert", "hidden_act": "gelu", "num_hidden_layers": 2, "hidden_size": 32,
    "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": made_gguf.IDS,
    "max_position_embeddings": 40, "layer_norm_eps": 1e-12, "type_vocab_size": 2,
}  # fmt: skip


def _bert():
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    own = {key: value for key, value in CONFIG.items() if key != "model_type"}
    config = transformers.BertConfig(**own, attn_implementation="eager")
    return transformers.BertModel(config, add_pooling_layer=False).eval()


def test_a_bert_gives_the_mean_of_transformers_tokens():
    theirs = _bert()
    import torch

    weights = {name: value.detach().numpy() for name, value in theirs.state_dict().items()}
    found = ran(bert.model(bert.Sizes.of(CONFIG), weights), FEEDS)["embedding"]
    with torch.inference_mode():
        last = theirs(
            torch.from_numpy(IDS), attention_mask=torch.from_numpy(MASK)
        ).last_hidden_state.numpy()
    mean = (last * MASK[..., None]).sum(1) / MASK.sum(1, keepdims=True)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    assert np.abs(found - mean).max() < 1e-6


def test_a_folder_of_a_bert_becomes_a_model(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    weights = {n: v.detach().numpy().copy() for n, v in _bert().state_dict().items()}
    home, out = tmp_path / "bert", tmp_path / "out"
    (home / "1_Pooling").mkdir(parents=True)
    out.mkdir()
    safetensors.save_file(weights, home / "model.safetensors")
    (home / "config.json").write_text(json.dumps(CONFIG))
    (home / "tokenizer.json").write_bytes(vocabularies.tokenizer_json())
    pooling = home / "1_Pooling" / "config.json"
    pooling.write_text('{"pooling_mode_mean_tokens": true}')
    BertCheckpoint({}).write(home, out)
    assert check(load(out / "model.yaml")).outputs == {"embedding": (None, 32)}
    with pytest.raises(ModelError, match="made of Llamas only"):
        BertCheckpoint({}).write(home, out, program=True)
    pooling.write_text('{"pooling_mode_cls_token": true}')
    with pytest.raises(ModelError, match="not the mean of their tokens"):
        BertCheckpoint({}).write(home, out)
    (home / "config.json").write_text(json.dumps({**CONFIG, "hidden_act": "relu"}))
    with pytest.raises(ModelError, match="bert with gelu expected"):
        BertCheckpoint({}).write(home, out)


def test_a_program_needs_no_second_card(tmp_path):
    pytest.importorskip("torch")
    out = tmp_path / "out"
    out.mkdir()
    GgufCheckpoint({}).write(made_gguf.write(tmp_path / "made.gguf"), out, program=True)
    assert load(out / "model.yaml").named["torch_export"] == {"": out / "model.pt2"}
