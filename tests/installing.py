"""Packages that are really installed, by their metadata, for the time of a test."""

import sys
from contextlib import contextmanager
from pathlib import Path

from simulator import registry
from simulator.profile import modality

HERE = Path(__file__).parent
DENOISE = {
    "simulator.stages": {"denoise": "acme_dsp:STAGE"},
    "simulator.backends": {"acme_dsp": "acme_dsp:BACKEND"},
}


def forget():
    """Look again which packages there are."""
    for known in (registry.entry_points, registry.backend, registry.package, registry._worker):
        known.cache_clear()
    modality.forget()


@contextmanager
def installed(monkeypatch, folder, points, *paths, name="acme-dsp"):
    """Install a package of some entry points; its modules lie in *paths*."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in named.items())
        for group, named in points.items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))
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
    with installed(monkeypatch, folder, DENOISE, HERE / "vendor_stage"):
        yield
