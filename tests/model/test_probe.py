"""The probe model tells arithmetics apart; expected outputs are worked out by hand or by torch."""

import numpy as np
import pytest
import torch

from simulator import machine
from simulator.contract import Stage
from simulator.model.probe import Probe, model, probe, read, rounds
from simulator.profile.implementations import choose
from simulator.profile.load import load

pytestmark = pytest.mark.usefixtures("cache")
TORCH = "runtime={backend: pytorch, graph_optimization_level: null, memory_format: contiguous, "


def computed(round_x, round_w, add=np.float64):
    """The convolution on rounded operands, summed in *add* one after the other."""
    weights, x = model()
    w, v = round_w(weights[:, :, 0, 0]), round_x(x[0, :, 0, 0])
    sums = np.zeros(16, add)
    for channel in range(len(v)):
        sums = (sums + (w[:, channel] * v[channel]).astype(add)).astype(add)
    return np.broadcast_to(sums.astype(np.float32)[:, None, None], (16, 8, 8))


def to(kind):
    return lambda a: torch.from_numpy(np.ascontiguousarray(a)).to(kind).double().numpy()


def tf32(a):
    """Round the mantissa to 10 bits, ties away; the exponent keeps FP32's range."""
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    return ((bits + 0x1000) & 0xFFFFE000).view(np.float32).astype(np.float64)


FP32, FP16, BF16 = to(torch.float32), to(torch.float16), to(torch.bfloat16)


@pytest.mark.parametrize(
    ("x", "w", "add", "wanted"),
    [
        (FP32, FP32, np.float32, Probe("fp32", "fp32", "fp32")),
        (BF16, BF16, np.float32, Probe("bf16", "bf16", "fp32")),
        (FP16, FP16, np.float32, Probe("fp16", "fp16", "fp32")),
        (FP16, FP16, np.float16, Probe("fp16", "fp16", "less")),
        (tf32, tf32, np.float32, Probe("tf32", "tf32", "fp32")),
        (FP32, FP16, np.float32, Probe("fp32", "fp16", "fp32")),
    ],
    ids=["fp32", "bf16", "fp16", "fp16 sums", "tf32", "fp16 weights"],
)
def test_every_arithmetic_is_told_apart(x, w, add, wanted):
    assert read(computed(x, w, add)) == wanted


@pytest.mark.parametrize(
    ("overrides", "compute"),
    [
        ([], "fp32"),
        (["runtime={backend: openvino, graph_optimization_level: null}"], "fp32"),
        ([TORCH + "mode: eager}"], "fp32"),
        ([TORCH + "mode: eager, casting: whole}", "precision.compute=bf16"], "bf16"),
        ([TORCH + "mode: eager, casting: autocast}", "precision.compute=fp16"], "fp16"),
    ],
    ids=str,
)
def test_real_runtimes(overrides, compute):
    choice = choose(load("pillow_fp32", overrides))[Stage.RUNTIME]

    found = probe(choice)

    assert (found.compute, found.accumulation) == (compute, "fp32")


LITERT = "runtime={backend: litert, kernels: xnnpack, graph_optimization_level: null}"
NCNN = "runtime={backend: ncnn, graph_optimization_level: null}"


@pytest.mark.parametrize(
    ("overrides", "wanted"),
    [
        ([LITERT], Probe("fp32", "fp32", "fp32")),
        ([LITERT, "precision.compute=fp16"], Probe("fp16", "fp16", "fp32")),
        ([NCNN], Probe("fp32", "fp32", "fp32")),
        ([NCNN, "precision.compute=bf16"], Probe("bf16", "bf16", "fp32")),
        (["runtime={backend: iree, graph_optimization_level: null}"],
         Probe("fp32", "fp32", "fp32")),
    ],
    ids=str,
)  # fmt: skip
def test_runtimes_that_do_not_tell(overrides, wanted):
    """Without FP16 instructions XNNPACK rounds the operands to FP16 and sums in FP32."""
    found = probe(choose(load("pillow_fp32", overrides))[Stage.RUNTIME])

    assert (found.compute, found.weights) == (wanted.compute, wanted.weights)
    if "avx512_fp16" not in machine.processor()["flags"]:
        assert found.accumulation == wanted.accumulation


def test_openvinos_bf16_hint_is_found_where_the_processor_has_bf16():
    overrides = [
        "runtime={backend: openvino, graph_optimization_level: null}", "precision.compute=bf16",
    ]  # fmt: skip
    choice = choose(load("pillow_fp32", overrides))[Stage.RUNTIME]

    import openvino

    able = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    assert probe(choice).compute == ("bf16" if able else "fp32")


@pytest.mark.parametrize(
    ("overrides", "dtype", "obeyed"),
    [
        ([], "fp16", True),
        ([], "bf16", True),
        (["runtime={backend: openvino, graph_optimization_level: null}"], "fp16", False),
    ],
    ids=str,
)
def test_casts_that_a_runtime_drops(overrides, dtype, obeyed):
    """OpenVINO's CPU plugin takes FLOAT to FLOAT16 and back for nothing (seen in 2026.4)."""
    choice = choose(load("pillow_fp32", overrides))[Stage.RUNTIME]

    assert rounds(choice, dtype) is obeyed
