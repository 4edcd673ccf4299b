"""Backends of devices that nobody here owns are checked against the vendors' own signatures."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator import registry

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
    pinned = re.search(
        r"^nvidia-nvimgcodec-cu13==(.*)$", (ROOT / "constraints.txt").read_text(), re.M
    )

    first = (TYPINGS / "nvidia/nvimgcodec/__init__.pyi").read_text().partition("\n")[0]
    assert f"=={pinned[1]};" in first
