"""``simulate backends``: what is here, what is not and exactly why; nothing broken breaks it."""

import json
import sys
import textwrap

import pytest

from simulator import registry
from simulator.cli import main
from simulator.contract.installing import install

ADAPTER = """
from simulator.contract import *
from simulator.errors import MissingLibrary

def device():
    raise MissingLibrary("the driver is too old: 470 found, 580 needed")

BACKEND = Backend(
    name="vendor", summary="s",
    library=Library("{library}", distribution="{distribution}", extra="vendor"),
    offers=(), device={device}, environment={environment},
)
"""


@pytest.fixture
def vendor(tmp_path, monkeypatch, cache):
    """Installs a package with a backend called vendor, for the time of a test."""

    def install(library="vendorlib", source=None, device="None", environment="None"):
        site = tmp_path / "site"
        site.mkdir()
        for name, points in (("vendor_adapter", True), ("vendorlib", False)):
            if name == "vendorlib" and source is None:
                continue
            info = site / f"{name}-2.5.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.5\n")
            if points:
                entry = "[simulator.backends]\nvendor = vendor_adapter:BACKEND\n"
                (info / "entry_points.txt").write_text(entry)
        text = ADAPTER.format(
            library=library, distribution=library, device=device, environment=environment
        )
        (site / "vendor_adapter.py").write_text(text)
        if source is not None:
            (site / f"{library}.py").write_text(textwrap.dedent(source))
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.setenv("PYTHONPATH", str(site))
        forget()

    def forget():
        sys.modules.pop("vendor_adapter", None)
        registry.BACKENDS.forget()

    yield install
    forget()


def row(capsys, name="vendor"):
    assert main(["backends", "--json"]) == 0
    (found,) = [r for r in json.loads(capsys.readouterr().out) if r["name"] == name]
    return found


def test_every_entry_point_has_a_row(capsys):
    assert main(["backends", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)

    assert [r["name"] for r in rows] == list(registry.BACKENDS.points)
    assert all(r["device"] or r["problem"] for r in rows)
    assert main(["backends"]) == 0
    out = capsys.readouterr().out
    assert "interpolation nearest, nearest_exact, bilinear" in " ".join(out.split())
    assert "where it runs" in out


@pytest.mark.parametrize("verb", ["", "check"])
def test_an_install_hint_wraps_and_is_not_cut(vendor, capsys, monkeypatch, verb):
    """Piped output is as wide as COLUMNS says; a hint that is cut installs nothing."""
    monkeypatch.setenv("COLUMNS", "80")
    vendor(library="a_library_with_a_name_that_is_quite_long")
    code = main(["backends", *([verb, "vendor"] if verb else [])])
    out = capsys.readouterr().out

    assert code == (2 if verb else 0)
    assert install("vendor") in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80 and "…" not in out


@pytest.mark.parametrize(
    ("adapter", "problem"),
    [
        ({}, f"not installed: {install('vendor')}"),
        (
            {"environment": "Environment(requirements=('vendorlib==2.5',), why='old numpy')"},
            "not installed: simulate backends install vendor",
        ),
        ({"source": "", "device": "device"}, "the driver is too old: 470 found, 580 needed"),
    ],
    ids=["library", "environment of its own", "driver"],
)
def test_the_table_says_what_is_missing(vendor, capsys, adapter, problem):
    vendor(**adapter)

    assert row(capsys)["problem"] == problem


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import ctypes\nctypes.CDLL('libvendor.so.7')",
         "does not load: libvendor.so.7: cannot open shared object file"),
        ("import os\nos.abort()", "the vendor worker was killed by SIGABRT"),
        ("raise RuntimeError('no licence\\nfound')", "does not load: no licence found"),
        ("import nowhere", "'nowhere' is not installed"),
    ],
)  # fmt: skip
def test_a_broken_library_is_listed_and_check_says_why(vendor, capsys, source, why):
    vendor(source=source)

    assert row(capsys)["version"] == "2.5"
    assert main(["backends", "check", "vendor"]) == 2
    assert why in " ".join(capsys.readouterr().out.split())


def test_check_of_one_that_is_well(capsys):
    assert main(["backends", "check", "pillow"]) == 0
    assert "13.0.0" in capsys.readouterr().out


def test_install_and_remove(capsys, cache):
    assert main(["backends", "install", "pillow", "--python", sys.executable]) == 0
    assert f"pillow runs in {sys.executable} (pillow" in " ".join(capsys.readouterr().out.split())
    assert row(capsys, "pillow")["device"] == f"its own Python, {sys.executable}"
    assert main(["backends", "remove", "pillow"]) == 0
    assert "runs in the simulator's own Python again" in capsys.readouterr().out
    assert row(capsys, "pillow")["device"] == "cpu"


@pytest.mark.parametrize("verb", ["install", "remove"])
@pytest.mark.parametrize("name", ["../..", "/tmp", "pilow"])
def test_nothing_but_a_backends_name_is_taken(capsys, cache, verb, name):
    (cache / "environments").mkdir(parents=True)
    (cache / "kept").write_text("x")

    assert main(["backends", verb, name]) == 2
    error = capsys.readouterr().err
    assert "unknown backend" in error and ("did you mean 'pillow'" in error) == (name == "pilow")
    assert (cache / "kept").is_file()


def test_an_adapter_that_does_not_import_costs_its_row(vendor, capsys, tmp_path):
    vendor()
    (tmp_path / "site" / "vendor_adapter.py").write_text("import nowhere")

    assert "does not load: No module named 'nowhere'" in row(capsys)["problem"]
    assert row(capsys, "pillow")["device"] == "cpu"


def test_a_library_that_talks_when_it_ends(vendor, capsys):
    vendor(source="import atexit\natexit.register(print, 'goodbye')\n")

    assert main(["backends", "check", "vendor"]) == 0


def test_an_unknown_command_names_the_nearest(capsys):
    assert main(["backend"]) == 2
    assert "unknown command 'backend'; did you mean 'backends'?" in capsys.readouterr().err
