"""Every backend, by entry point, through the conformance suite."""

from __future__ import annotations

from functools import cache

import pytest

from simulator import registry
from simulator.errors import MissingLibrary
from simulator.testing import Mark, Workshop, prove, registered
from simulator.testing.models import FAMILIES

PROVED = {
    "pillow", "pillow_heif", "pillow_jxl", "imagecodecs", "libvips",
    "opencv", "ffmpeg", "turbojpeg", "dali", "nvimagecodec", "tensorflow",
    "learned_codec",
    "itu", "aipp", "sysnoise", "unprocessing", "float64_isp", "bayer", "libraw",
    "numpy", "wave", "scipy", "soundfile", "soxr", "samplerate", "kaldi_native_fbank",
    "onnx_reference", "onnxruntime", "openvino", "pytorch", "litert", "ncnn", "mnn", "iree", "qnn",
    "int8_arithmetic", "float_quant",
    "onnxconverter", "weight_only", "nncf", "litert_torch", "ai_edge_quantizer",
    "fake_quant", "fake_quant_torch", "torch_finetuner", "loadgen", "onnx2torch",
    "tokenizers", "sentencepiece", "trackers",
}  # fmt: skip
"""What CI proves; without its library the test fails."""
ELSEWHERE = {
    "tflite_runtime", "onnx2tf", "rknn", "executorch", "tvm", "tensorrt", "ascend", "llama_cpp",
    "ctranslate2", "librosa",
}  # fmt: skip
"""What needs a device, a Python of its own, or an extra that CI does not install."""
NOTHING_TO_PROVE = {
    "recorded", "python", "program", "efficientnet_lite", "foolbox", "autoattack", "gguf",
    "safetensors", "smollm2", "spoken_sentences",
}  # fmt: skip

FEW = ("conv", "depthwise", "gemm", "max_pool", "softmax", "add")
DEAR = {"iree": ("conv", "softmax"), "litert": FEW, "litert_torch": FEW, "ai_edge_quantizer": FEW}
"""Fewer operator families for those whose model files take a second each to make."""

CANNOT = {
    "dali": "CUDA GPU",
    "nvimagecodec": "CUDA GPU",
    "onnxruntime": "Provider",
    "pytorch": "CUDA",
    "qnn": "device htp",
}
"""The backends with offers for other devices, and what their refusals say."""


@pytest.fixture(scope="session")
def workshops(tmp_path_factory):
    @cache
    def workshop(families):
        return Workshop(tmp_path_factory.mktemp("models"), registered(), families)

    return lambda name: workshop(DEAR.get(name, tuple(FAMILIES)))


@pytest.mark.prove
@pytest.mark.parametrize("name", sorted(PROVED))
def test_a_backend_passes(workshops, name):
    findings = list(prove(registry.backend(name), workshops(name)))

    failed = {(f.options, f.check): f.remark for f in findings if f.mark is Mark.FAILED}
    cannot = {f.remark for f in findings if f.mark is Mark.CANNOT}
    assert failed == {}
    assert all(CANNOT.get(name, "nothing") in remark for remark in cannot), cannot
    assert any(finding.mark is Mark.PASSED for finding in findings)


@pytest.mark.prove
@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_what_is_not_here_says_so_in_a_line(name):
    backend = registry.backend(name)
    versions = registry.versions(backend).values()

    if None in versions:  # else it is proved by: simulate backends prove NAME
        with pytest.raises(MissingLibrary, match=r"^[^\n]+$"):
            next(prove(backend))


def test_every_backend_is_accounted_for():
    assert {*PROVED, *ELSEWHERE, *NOTHING_TO_PROVE} == set(registry.BACKENDS.points)
