"""A library under the names of several packages: found under each, refused under two at once."""

import os

import pytest
from installing import metadata

from backends.ort.library import ort
from simulator.contract import Library, MissingLibrary
from simulator.contract.library import _read


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Install a package by its metadata, in a folder that is on the path.

    The folder is an old one: the times of files may be too coarse to tell it from a moment ago.
    """
    os.utime(tmp_path, (0, 0))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda name: metadata(tmp_path, name, {})
    _read.cache_clear()


def drawing():
    return Library("colorsys", distribution="drawing", extra="drawing", others=("drawing-gpu",))


@pytest.mark.parametrize("name", ["drawing", "drawing-gpu"])
def test_it_is_found_under_either_name(install, name):
    install(name)

    assert (drawing().distribution, drawing().version) == (name, "1.0")
    assert drawing().rgb_to_hls(0, 0, 0) == (0, 0, 0)


def test_without_either_the_usual_one_is_missing():
    assert (drawing().distribution, drawing().version) == ("drawing", None)


def test_what_is_installed_later_is_found(install):
    assert drawing().version is None

    install("drawing")

    assert drawing().version == "1.0"


def test_both_are_refused_in_one_line(install):
    install("drawing")
    install("drawing-gpu")

    with pytest.raises(MissingLibrary) as refused:
        drawing().load()

    assert str(refused.value) == (
        "drawing and drawing-gpu are both installed and overwrite each other's colorsys; try: "
        "pip uninstall -y drawing drawing-gpu, then pip install the one that you want"
    )


def test_onnx_runtime_for_gpus_beside_the_one_for_cpus_is_refused(install, monkeypatch):
    install("onnxruntime-gpu")
    monkeypatch.setattr(ort, "_loaded", None)

    with pytest.raises(MissingLibrary, match="onnxruntime and onnxruntime-gpu are both installed"):
        ort.load()
