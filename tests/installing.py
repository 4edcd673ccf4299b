"""Packages that are really installed, by their metadata, for the time of a test."""

import importlib.metadata
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path

from simulator import registry
from simulator.command.experiment import EXPERIMENTS
from simulator.conditions.condition import CONDITIONS
from simulator.contract.image_formats import IMAGE_FORMATS
from simulator.contract.model_format import MODEL_FORMATS
from simulator.data.label_kind import LABELS
from simulator.data.source import SOURCES
from simulator.importers import IMPORTERS
from simulator.modalities.modality import MODALITIES
from simulator.pipeline.executor import EXECUTORS
from simulator.profile import modality
from simulator.report.sections.section import PARTS
from simulator.tasks.task import TASKS

HERE = Path(__file__).parent
DENOISE = {
    "simulator.stages": {"denoise": "acme_dsp:STAGE"},
    "simulator.backends": {"acme_dsp": "acme_dsp:BACKEND"},
}


def uninstall(monkeypatch, library):
    """Take a library away: no metadata of it is found, and its import fails."""
    taken = library.distribution

    def read(name):
        if name == taken:
            raise importlib.metadata.PackageNotFoundError(name)
        return importlib.metadata.version(name)

    monkeypatch.setattr("simulator.contract.library._read", read)
    monkeypatch.setattr("simulator.contract.library._missing", {})
    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setitem(sys.modules, library._module, None)


def forget():
    """Look again which packages there are."""
    registry._worker.cache_clear()
    modality.forget()
    for table in (
        registry.BACKENDS, CONDITIONS, EXECUTORS, EXPERIMENTS, IMAGE_FORMATS, IMPORTERS, LABELS,
        MODALITIES, MODEL_FORMATS, PARTS, SOURCES, TASKS,
    ):  # fmt: skip
        table.forget()


@contextmanager
def installed(monkeypatch, folder, points, *paths, name="acme-dsp"):
    """Install a package of some entry points; its modules lie in *paths*."""
    metadata(folder, name, points)
    for path in (*paths, folder):
        monkeypatch.syspath_prepend(str(path))
    forget()
    before = set(sys.modules)
    try:
        yield
    finally:
        monkeypatch.undo()
        for module in set(sys.modules) - before:
            found = getattr(sys.modules[module], "__file__", None) or ""
            if any(Path(found).is_relative_to(path) for path in paths):
                del sys.modules[module]
        forget()


@contextmanager
def denoising(monkeypatch, folder):
    """Install a package with a stage between decode and color, and a backend that fills it."""
    with installed(monkeypatch, folder, DENOISE, HERE / "vendor_stage", HERE / "vendor_example"):
        yield


def metadata(folder, name, points):
    """Write a package's metadata into a folder that is on the path, as an installer does."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in named.items())
        for group, named in points.items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))


VENDOR = HERE / "vendor_example"


def vendor_points():
    """The entry points of the example vendor's package: group, name, value."""
    project = tomllib.loads((VENDOR / "pyproject.toml").read_text())["project"]
    return project["name"], project["entry-points"]


@contextmanager
def vendor(monkeypatch, folder):
    """Install the example vendor's package in this process, for the time of a test."""
    name, points = vendor_points()
    with installed(monkeypatch, folder, points, VENDOR, name=name):
        yield
