"""Each command of the case book prints what its page shows: the cause that the report names."""

import shutil
import sys
from pathlib import Path

import pytest
import warm
from shared_data import shared

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import cases

pytestmark = pytest.mark.prove

COMMANDS = [
    (folder, command) for folder in cases.cases() for command in cases.read(folder).commands
]


@pytest.mark.parametrize(
    ("folder", "command"),
    [pytest.param(*one, id=f"{one[0].name}-{at}") for at, one in enumerate(COMMANDS)],
)
def test_a_case_is_answered(folder, command, tmp_path, monkeypatch):
    shared("models")
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    cases.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in cases.NAMES.items():
        monkeypatch.setenv(name, value)
    done = warm.command(*cases.arguments(command))
    assert done.returncode in (0, 1, 2), done.stderr  # 2: what is refused may be the answer
    said = cases.answer(done.stdout or done.stderr)
    for name in cases.read(folder).names:
        assert any(word in said for word in name.split("|")), said
    assert said == cases.printed(folder)[command]


def test_the_page_is_that_of_the_files():
    assert cases.PAGE.read_text("utf-8") == cases.page()
