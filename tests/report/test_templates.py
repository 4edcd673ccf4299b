"""The templates of the report are there as jinja2 compiles them."""

import subprocess
import sys
from pathlib import Path

import jinja2
import pytest

from simulator.report import rendering

ROOT = Path(__file__).parent.parent.parent
NAMES = sorted(place.name for place in (ROOT / "simulator/report/templates").glob("*.j2"))


@pytest.fixture
def anew():
    yield rendering._template.cache_clear()
    rendering._template.cache_clear()


def test_the_version_of_jinja2_is_that_of_its_package(monkeypatch, anew):
    """Its ``__version__`` may go, as those of its makers' other packages do."""
    monkeypatch.delattr(jinja2, "__version__")

    assert rendering._template(NAMES[0]).name == NAMES[0]


def test_compiled_templates_are_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "templates.py"), "--check"],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_compiled_for_another_version_of_jinja2_alone(monkeypatch, anew, name):
    compiled = []
    real = jinja2.Environment.compile
    monkeypatch.setattr(
        jinja2.Environment, "compile",
        lambda self, source, *names: compiled.append(names[0]) or real(self, source, *names),
    )  # fmt: skip

    kept = rendering._template(name)
    assert compiled == []
    rendering._template.cache_clear()
    monkeypatch.setattr(rendering, "installed_version", lambda name: "0.0")
    made = rendering._template(name)

    assert compiled == [name]
    assert (kept.name, made.name) == (name, name)
