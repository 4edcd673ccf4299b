"""Every profile of a language model's precision, from a question to its answer."""

from __future__ import annotations

import json

import made_gguf
import pytest

import simulator
from backends.language_models.checkpoints import GgufCheckpoint

pytest.importorskip("gguf")
QUESTIONS = (("the cat is", ("in", "a 20 20 that on")), ("here in the", ("water", "then 2020")))


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    (folder / "model").mkdir()
    file = made_gguf.write(folder / "made.gguf", "Q4_1")
    GgufCheckpoint({}).write(file, folder / "model")
    return folder / "model" / "model.yaml"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("questions")
    for number, (context, choices) in enumerate(QUESTIONS):
        requests = [
            {"context": context, "continuation": f" {c}", "length": len(c)} for c in choices
        ]
        (folder / f"{number}.json").write_text(json.dumps({"requests": requests}))
    return folder


@pytest.mark.parametrize(
    ("profile", "library", "compute", "products"),
    [
        ("text_ort_fp16", "onnxconverter_common", "fp32", None),
        ("text_ort_int8_dynamic", "onnxruntime", "int8", "MatMulInteger"),
        ("text_ort_int8_dynamic_batch1", "onnxruntime", "int8", "MatMulInteger"),
        ("text_ort_int8_static", "onnxruntime", "int8", "QLinearMatMul"),
        ("text_ort_int4", "onnx_ir", "fp32", "MatMulNBits"),
        ("text_openvino_bf16", "openvino", None, None),
        ("text_openvino_f16", "openvino", None, None),
        ("text_openvino_int8_weights", "nncf", "fp32", None),
        pytest.param("text_llama_cpp", "llama_cpp", "int8", None, marks=pytest.mark.extras),
    ],
)
def test_it_answers(card, data, tmp_path, profile, library, compute, products):
    pytest.importorskip(library)
    result = simulator.compare(
        "text_fp32", profile, model=card, data=data, out=tmp_path / "run", workers=1, quick=True
    )
    manifest = json.loads((result.folder / "manifest.json").read_text())
    effective = manifest["stacks"]["deploy"]["effective"]
    assert result.summary["samples"] == len(QUESTIONS)
    assert result.summary["controls"]["self"]["bit_equal"]
    assert compute in (None, effective["compute"])
    assert products is None or any(products in one for one in effective["details"]["kernels"])
