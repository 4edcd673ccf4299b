"""Profiles of other packages: found by name, without importing the package that brings them."""

import sys

import pytest

from simulator.cli import main
from simulator.errors import UserError
from simulator.profile.load import load
from simulator.profile.lookup import find, name_of, names

BOARD = "schema: 1\nname: board\nsummary: a board\nextends: opencv_fp32\n"


@pytest.fixture
def bring(tmp_path, monkeypatch):
    """Install a package with an entry point for profiles, for the time of a test."""

    def install(module="acme_npu", entry="acme = acme_npu.profiles", documents=("board",)):
        site = tmp_path / "site"
        folder = site / module / "profiles"
        folder.mkdir(parents=True)
        (site / module / "__init__.py").write_text("raise RuntimeError('it was imported')\n")
        for name in documents:
            (folder / f"{name}.yaml").parent.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.yaml").write_text(BOARD)
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[simulator.profiles]\n{entry}\n")
        monkeypatch.syspath_prepend(str(site))
        return folder

    return install


def test_a_package_brings_profiles(bring):
    folder = bring(documents=("board", "family/small"))

    assert {"acme/board", "acme/family/small"} < set(names())
    assert find("acme/board") == folder / "board.yaml"
    assert load("acme/family/small").name == "board"
    assert name_of(folder / "family" / "small.yaml") == "acme/family/small"
    assert "acme_npu" not in sys.modules


def test_they_are_listed(bring, capsys):
    bring()

    assert main(["profiles", "list"]) == 0
    assert "acme/board" in capsys.readouterr().out


def test_others_extend_them(bring, tmp_path):
    bring()
    path = tmp_path / "mine.yaml"
    path.write_text("schema: 1\nname: mine\nsummary: s\nextends: acme/board\n")

    assert load(str(path)).spec.resize.backend == "opencv"


def test_a_path_comes_first(bring, tmp_path, monkeypatch):
    bring()
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "board.yaml").write_text(BOARD.replace("name: board", "name: here"))
    monkeypatch.chdir(tmp_path)

    assert load("acme/board").name == "here"


def test_a_name_that_is_nearly_one(bring):
    bring()

    with pytest.raises(UserError, match="did you mean 'acme/board'"):
        find("acme/bord")


@pytest.mark.parametrize("entry", ["acme = acme_npu.elsewhere", "acme = nowhere.profiles"])
def test_a_folder_that_is_not_there_costs_nobody_else_anything(bring, entry):
    bring(entry=entry)

    assert not [name for name in names() if name.startswith("acme/")]
    assert load("opencv_fp32").name == "opencv_fp32"
    with pytest.raises(UserError, match="unknown profile 'acme/board'"):
        find("acme/board")


def test_two_packages_of_one_name(bring):
    bring()
    bring("other_npu", "acme = other_npu.profiles")

    with pytest.raises(UserError, match="two packages have profiles called 'acme'"):
        names()


def test_what_has_no_name_has_none(tmp_path):
    assert name_of(tmp_path / "board.yaml") is None
    assert name_of(find("opencv_fp32")) == "opencv_fp32"
