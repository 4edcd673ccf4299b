"""The ratchet of the project's size, on a small tree whose numbers were counted by hand."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "size.py"
FILES = {
    "simulator/__init__.py": '"""The engine."""\n',
    "simulator/first.py": "from simulator.second import a\n\n\ndef b(c: dict[str, Any]): ...\n",
    "simulator/second.py": "a = 1\n",
    "simulator/page.html": "not\na\nmodule\n",
    "backends/__init__.py": "",
    "backends/pillow.py": "from simulator import first\n",
    "tests/deep/test_all.py": "def test():\n    assert True\n",
    "docs/one.md": "# One\n\ntwo  three\n",
    "docs/deep/four.md": "four\n",
    "docs/schemas/figure.json": "{}\n",
    "README.md": "Read me.\n",
}
LIMITS = """\
# Held by tools/size.py.
simulator_lines = 6
backends_lines = 1
tests_lines = 2
document_words = 7
untyped_lines = 1  # a reason
circles = 0
"""


@pytest.fixture
def tree(tmp_path):
    for name, text in {**FILES, "size.toml": LIMITS}.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOL, tmp_path / "tools")
    return tmp_path


def size(tree, *arguments):
    return subprocess.run(
        [sys.executable, tree / "tools/size.py", *arguments],
        cwd=tree, capture_output=True, text=True, timeout=600,
    )  # fmt: skip


def rows(done):
    """Return number, limit and mark of each row, by the words before them."""
    return {line[:60].rstrip(): line[60:].split() for line in done.stdout.splitlines()}


def test_numbers_at_their_limits_pass_and_stand_beside_them(tree):
    done = size(tree)

    assert (done.returncode, done.stderr) == (0, "")
    assert rows(done) == {
        "lines in simulator/": ["6", "6"],
        "lines in backends/": ["1", "1"],
        "lines in tests/": ["2", "2"],
        "words of docs/ and README.md that a reader sees": ["7", "7"],
        "lines in simulator/ with dict[str, Any] or Mapping[str, Any]": ["1", "1"],
        "circles of modules": ["0", "0"],
    }


def test_each_number_above_its_limit_fails(tree):
    more = ("simulator/second.py", "backends/pillow.py", "tests/conftest.py", "docs/two.md")
    for name in more:
        with open(tree / name, "a") as file:
            file.write("a: Mapping[str, Any] | dict[str, Any] = {}\n")
    done = size(tree)

    assert done.returncode == 1 and "say why" in done.stderr
    assert rows(done) == {
        "lines in simulator/": ["7", "6", "above"],
        "lines in backends/": ["2", "1", "above"],
        "lines in tests/": ["3", "2", "above"],
        "words of docs/ and README.md that a reader sees": ["15", "7", "above"],
        "lines in simulator/ with dict[str, Any] or Mapping[str, Any]": ["2", "1", "above"],
        "circles of modules": ["0", "0"],
    }


def test_circles_are_named_wherever_they_close(tree):
    """At the top of a module or inside a function, in a room or between two."""
    (tree / "simulator/second.py").write_text("def f():\n    from simulator import first\n")
    (tree / "simulator/third.py").write_text("import backends.two\n")
    (tree / "backends/one.py").write_text("import simulator.third\n")
    (tree / "backends/two.py").write_text("from backends import one\n")
    done = size(tree)

    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if "circle:" in line] == [
        "circle: backends.one, backends.two, simulator.third",
        "circle: simulator.first, simulator.second",
    ]


def test_an_import_for_type_checkers_closes_no_circle(tree):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from simulator import first\n"
    (tree / "simulator/second.py").write_text(text)

    assert rows(size(tree))["circles of modules"] == ["0", "0"]


def test_lower_lowers_what_is_below_and_keeps_comments(tree):
    loose = LIMITS.replace("simulator_lines = 6", "simulator_lines = 1_000")
    loose = loose.replace("untyped_lines = 1 ", "untyped_lines = 9 ").replace(
        "circles = 0", "circles = 3"
    )
    (tree / "size.toml").write_text(loose)
    done = size(tree, "--lower")

    assert done.returncode == 0
    assert rows(done)["lines in simulator/"] == ["6", "100"]
    lowered = LIMITS.replace("simulator_lines = 6", "simulator_lines = 100")
    assert (tree / "size.toml").read_text() == lowered


def test_lower_raises_nothing(tree):
    (tree / "simulator/third.py").write_text("a: dict[str, Any]\n")
    done = size(tree, "--lower")

    assert done.returncode == 1
    assert (tree / "size.toml").read_text() == LIMITS


@pytest.mark.parametrize("text", [LIMITS + "width = 3\n", LIMITS.replace("circles = 0\n", "")])
def test_a_limit_too_many_or_too_few_is_an_error(tree, text):
    (tree / "size.toml").write_text(text)
    done = size(tree)

    assert done.returncode == 2 and "size.toml must have these keys" in done.stderr
