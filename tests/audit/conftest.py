"""A finished audit that all tests here share; who changes it, changes a copy."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import tiny
from audits import document

from simulator import cli


class Finished(NamedTuple):
    """An audit of two stacks, one of which fails its rule, as the command has left it."""

    folder: Path
    card: Path
    data: Path

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle.zip"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    found = Finished(folder / "out", tiny.card(folder / "model"), tiny.data(folder / "data"))
    asked = document(folder, found.card, found.data)
    assert cli.main(["audit", str(asked), "--out", str(found.folder)]) == cli.GATE_FAILED
    return found


@pytest.fixture
def audited(finished: Finished, cache: object, tmp_path: Path) -> Path:
    """The folder of a copy."""
    return shutil.copytree(finished.folder, tmp_path / "audited")
