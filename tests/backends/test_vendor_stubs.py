"""Backends of devices that nobody here owns are checked against the vendors' own signatures."""

import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.nvidia.dali_operators import DaliDecoder, DaliResizer
from backends.ort.runtime import asked
from backends.qualcomm.qnn import QnnRuntime
from simulator import registry
from simulator.contract import Stage

ROOT = Path(__file__).parents[2]
TYPINGS = ROOT / "typings"
WRONG = {
    "nvidia/tensorrt_engine.py": ("ignore_mismatch=False", "ignore_mismatches=False"),
    "nvidia/tensorrt_runtime.py": (".create_engine_inspector()", ".make_engine_inspector()"),
    "nvidia/buffers.py": ("cuda.cudaMalloc(", "cuda.cudaMallocs("),
    "nvidia/imagecodec.py": ("apply_exif_orientation=", "exif_orientation="),
    "rockchip/toolkit.py": ("quantized_method=", "quantization_method="),
    "rockchip/runtime.py": ("core_mask=_cores()", "cores=_cores()"),
    "ascend/dvpp.py": ("channel, jpeg, source.nbytes, picture, stream", "channel, jpeg, picture"),
    "ascend/device.py": (
        "acl.rt.memcpy(to, size, source, size, kind)",
        "acl.rt.memcpy(to, source)",
    ),
    "ascend/model.py": ("acl.mdl.load_from_file(", "acl.mdl.load("),
}


@pytest.mark.prove
def test_a_renamed_argument_is_found_without_the_device(tmp_path):
    """One run of mypy on all of the backends, each with one call that its library does not take."""
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache")]
    command += ["--follow-imports", "silent"]
    for place, (right, wrong) in WRONG.items():
        source = ROOT / "backends" / place
        text = source.read_text()
        assert text.count(right) == 1, f"{place}: {right}"
        copy = tmp_path / place.replace("/", "_")
        copy.write_text(text.replace(right, wrong))
        command += ["--shadow-file", str(source), str(copy)]
    for package in ("nvidia", "rockchip", "ascend"):
        command += ["-p", f"backends.{package}"]

    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900).stdout

    found = {
        re.sub(r".*backends/", "", line.partition(":")[0])
        for line in said.splitlines()
        if ": error: " in line
    }
    assert found == set(WRONG), said


def pinned(package):
    text = (ROOT / "constraints.txt").read_text()
    return re.search(rf"^{re.escape(package)}==(.*)$", text, re.MULTILINE)[1]


def test_the_options_of_cuda_and_tensorrt_are_those_that_their_libraries_know():
    """ONNX Runtime's providers take any text and refuse it on the device only."""
    first, *lines = (TYPINGS / "provider_options.txt").read_text().splitlines()
    known = {tuple(line.split()) for line in lines}
    given = set()
    for offer in registry.backend("onnxruntime").of(Stage.RUNTIME):
        (provider,) = offer.options["provider"]
        if provider in ("cuda", "tensorrt"):
            fixed = {
                name: found[0] for name, found in offer.options.items() if type(found) is tuple
            }
            for compute in offer.options["compute"]:
                given |= {(provider, one) for one in asked({**fixed, "compute": compute})}

    assert given == known
    assert f"=={pinned('onnxruntime')};" in first


def test_the_options_of_qnn_are_those_that_its_library_knows():
    """The emulator on x86 is built from the same source as the provider on a device."""
    module = pytest.importorskip("onnxruntime_qnn")
    library = Path(module.get_library_path()).read_bytes()
    for offer in registry.backend("qnn").of(Stage.RUNTIME):
        fixed = {name: found[0] for name, found in offer.options.items() if type(found) is tuple}
        given = QnnRuntime._provider(SimpleNamespace(options=fixed))
        assert [name for name in given if b"\0%s\0" % name.encode() not in library] == []


RESIZED = ["plane", "size", "start", "end"]
"""What a resize of DALI takes."""


@pytest.mark.parametrize("device", ["mixed", "gpu"])
def test_dali_takes_the_arguments_of_its_operators_on_a_gpu(device):
    """A graph is defined without the device; only building it needs one."""
    dali = pytest.importorskip("nvidia.dali")
    make, feeds = (DaliDecoder, ["file"]) if device == "mixed" else (DaliResizer, RESIZED)
    for offer in registry.backend("dali").of(Stage.DECODE if device == "mixed" else Stage.RESIZE):
        if offer.options["device"] == (device,) and offer.options["api"] == ("pipeline",):
            for values in product(*offer.options.values()):
                graph(dali, make, dict(zip(offer.options, values, strict=True)), feeds)


def graph(dali, make, options, feeds):
    """Define the graph that the backend would build."""
    made = make.__new__(make)
    made.options = options
    with dali.Pipeline(batch_size=1, num_threads=1, device_id=0) as pipeline:
        given = {name: dali.fn.external_source(name=name) for name in feeds}
        apply = made._decode if make is DaliDecoder else made._resample
        pipeline.set_outputs(apply(dali.fn, **given))


def test_dali_refuses_an_argument_that_it_does_not_have():
    dali = pytest.importorskip("nvidia.dali")

    class Renamed(DaliResizer):
        def _resample(self, ops, plane, size, start, end):
            return ops.resize(plane.gpu(), size=size, antialiasing=True)

    with pytest.raises(KeyError, match="antialiasing"):
        graph(dali, Renamed, {}, RESIZED)


@pytest.mark.parametrize(
    ("stub", "backend", "requirement"),
    [
        ("tensorrt/__init__.pyi", "tensorrt", "tensorrt"),
        ("cuda/bindings/runtime.pyi", "tensorrt", "cuda-bindings"),
        ("rknn/api.pyi", "rknn", "rknn-toolkit2"),
    ],
)
def test_stubs_are_of_the_version_that_is_installed(stub, backend, requirement):
    """The backend's own environment pins it; a new pin asks for tools/vendor_stubs.py."""
    own = registry.backend(backend).environment
    (pinned,) = {
        one.partition("==")[2]
        for one in (*own.requirements, *own.no_deps)
        if one.startswith(f"{requirement}==")
    }

    assert f"=={pinned};" in (TYPINGS / stub).read_text().partition("\n")[0]


def test_the_stub_of_nvimagecodec_is_of_the_version_in_the_constraints():
    first = (TYPINGS / "nvidia/nvimgcodec/__init__.pyi").read_text().partition("\n")[0]
    assert f"=={pinned('nvidia-nvimgcodec-cu13')};" in first
