"""Templates of the report: jinja2 compiles them once, and the user's cache keeps what it made."""

from pathlib import Path

import jinja2
import pytest

from simulator.report import rendering

ROOT = Path(__file__).parent.parent.parent
NAMES = sorted(place.name for place in (ROOT / "simulator/report/templates").glob("*.j2"))
NAME = "sounds.html.j2"


@pytest.fixture
def compiled(monkeypatch, cache):
    """The names of the templates that jinja2 compiles; call it to begin anew, with that cache."""
    names = []
    real = jinja2.Environment.compile
    monkeypatch.setattr(
        jinja2.Environment, "compile",
        lambda self, source, *given: names.append(given[0]) or real(self, source, *given),
    )  # fmt: skip

    def again(name=NAME):
        """Fill in a template as a new process does; return what was compiled for it."""
        rendering._template.cache_clear()
        rendering.environment.cache_clear()
        names.clear()
        assert rendering._template(name).name == name
        return list(names)

    yield again
    rendering._template.cache_clear()
    rendering.environment.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_compiled_once(compiled, name):
    assert [compiled(name), compiled(name)] == [[name], []]


def test_what_was_kept_says_the_same(compiled):
    compiled()
    first = rendering.render(NAME, views=[])
    compiled()

    assert rendering.render(NAME, views=[]) == first


@pytest.mark.parametrize("by", ["jinja2", "python"])
def test_another_version_compiles_anew(compiled, monkeypatch, by):
    compiled()
    if by == "jinja2":
        monkeypatch.setattr(rendering, "installed_version", lambda name: "0.0")
    else:
        monkeypatch.setattr(rendering.sys, "version", "3.0")

    assert compiled() == [NAME]


def test_a_changed_template_is_compiled_anew(compiled, monkeypatch):
    compiled()
    monkeypatch.setattr(rendering, "content", lambda name: "changed")

    assert compiled() == [NAME]
    assert rendering._template(NAME).render() == "changed"


def test_damaged_code_is_never_run(compiled, cache):
    compiled()
    (code,) = cache.glob("templates/*/code")
    code.write_bytes(code.read_bytes()[:-9] + bytes(9))

    assert [compiled(), compiled()] == [[NAME], []]


def test_a_cache_that_cannot_be_written_costs_time_only(compiled, cache):
    cache.write_text("a file, no folder")

    assert [compiled(), compiled()] == [[NAME], [NAME]]


def test_no_home_folder_costs_time_only(compiled, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(rendering.user_cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)

    assert [compiled(), compiled()] == [[NAME], [NAME]]
