"""Qualcomm's HTP emulator on models small enough to work out by hand."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sums
from onnx import helper

from simulator import registry
from simulator.contract import Stage
from simulator.errors import MissingLibrary, Unsupported

INT8, FP16, *_ = registry.backend("qnn").of(Stage.RUNTIME)
CHIP = {"soc_model": 57, "htp_arch": 75}  # SM8650, in the QNN SDK's table of devices
PLAIN = {"device": "htp_emulator", "threads": 1}
HALF = {**PLAIN, **CHIP, "storage": "fp32", "compute": "fp16"}
QDQ = {**PLAIN, "soc_model": 0, "htp_arch": 0, "storage": "int8", "compute": "int8"}


@pytest.fixture(scope="module")
def quantized(tmp_path_factory):
    return sums.save_quantized(tmp_path_factory.mktemp("qnn") / "q.onnx")


@pytest.mark.parametrize("offload", [True, False])
def test_int8_runs_on_the_emulator(quantized, offload):
    runtime = INT8.make(quantized, {**QDQ, "offload_graph_io_quantization": offload})
    samples = sums.samples()

    out = np.stack([runtime.run({"x": x})["y"] for x in samples])

    effective = runtime.effective({"x": samples[0]})
    ours = {name for name in effective.details["nodes"] if "CPUExecutionProvider" in name}
    edges = {"QuantizeLinear(CPUExecutionProvider)", "DequantizeLinear(CPUExecutionProvider)"}
    assert 0 < np.abs(out - sums.answers(samples)).max() < sums.INT8_BOUND
    assert effective.details["nodes"]["Conv(QNNExecutionProvider)"] == 1
    assert ours == (edges if offload else set())
    assert effective.options == {
        "device": "htp_emulator",
        "threads": 1,
        "soc_model": 0,
        "htp_arch": 0,
        "offload_graph_io_quantization": offload,
    }


def test_fp16_rounds_to_halves(tmp_path):
    """Between 2048 and 4096 halves are 2 apart (IEEE 754): 2048.5 is stored as 2048."""
    runtime = FP16.make(sums.save(tmp_path / "m.onnx"), HALF)
    x = np.zeros((1, 2, 8, 8), np.float32)
    x[0, 0] = 2048.5

    out = runtime.run({"x": x})["y"]

    assert out.dtype == np.float32
    assert out == pytest.approx(2048, abs=0.01)
    assert runtime.effective({"x": x}).options == {**PLAIN, **CHIP}


def test_manners(tmp_path, monkeypatch, capfd):
    """Threads do not mix, nothing is printed, nothing is left in the current folder."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    runtime = FP16.make(sums.save(tmp_path / "m.onnx"), HALF)

    def first(value):
        return runtime.run({"x": np.full((1, 2, 8, 8), value, np.float32)})["y"][0, 1, 0, 0]

    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(first, range(16)))
    runtime.close()

    assert got == pytest.approx([2 * value for value in range(16)], abs=0.01)
    assert capfd.readouterr() == ("", "")
    assert not list(work.iterdir())


def test_what_the_cpu_would_do_is_refused(tmp_path):
    """The HTP has no Erf, and ONNX Runtime would run it on the CPU with no more than a log line."""
    path = sums.save(tmp_path / "m.onnx", helper.make_node("Erf", ["c"], ["y"], name="odd"))

    with pytest.raises(Unsupported, match="leaves 1 Erf to the CPU"):
        FP16.make(path, HALF)


@pytest.mark.parametrize(
    ("batch", "chip"), [(1, 999), ("n", 57)], ids=["no such chip", "free shape"]
)
def test_a_graph_that_became_the_cpus_is_refused(tmp_path, batch, chip):
    path = sums.save(tmp_path / "m.onnx", batch=batch)

    with pytest.raises(Unsupported, match="leaves 1 Conv to the CPU"):
        FP16.make(path, {**HALF, "soc_model": chip})


def test_the_device_is_not_the_emulator(tmp_path):
    backend = registry.backend("qnn")

    assert backend.device().startswith("htp_emulator")
    with pytest.raises(MissingLibrary, match="use device: htp_emulator"):
        INT8.make(sums.save(tmp_path / "m.onnx"), {**HALF, "device": "htp"})


def test_evidence():
    kinds = {
        offer.options["device"]: str(offer.evidence)
        for offer in registry.backend("qnn").of(Stage.RUNTIME)
    }

    assert kinds == {("htp_emulator",): "vendor_simulator", ("htp",): "native"}


def test_sounds_are_read_in_a_process_that_has_opened_it(quantized):
    """Its library shows its own libffi to all others. A second of silence at 8 kHz."""
    pytest.importorskip("soundfile")
    code = (
        "import io, sys, wave\n"
        "from test_qnn import INT8, QDQ\n"
        "runtime = INT8.make(sys.argv[1], {**QDQ, 'offload_graph_io_quantization': True})\n"
        "import soundfile\n"
        "file = io.BytesIO()\n"
        "with wave.open(file, 'wb') as sound:\n"
        "    sound.setparams((1, 2, 8000, 0, 'NONE', ''))\n"
        "    sound.writeframes(bytes(16000))\n"
        "file.seek(0)\n"
        "samples, rate = soundfile.read(file)\n"
        "print(samples.shape, rate)\n"
    )
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(quantized)]

    done = subprocess.run(command, env=paths, capture_output=True, text=True)

    assert done.stdout == "(8000,) 8000\n", done.stderr
