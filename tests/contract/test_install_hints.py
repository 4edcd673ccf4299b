"""Hints that install an extra: from where the package is from, never by its name alone.

On the public index the name is nobody's, so that anybody could put a program there.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest

from simulator.contract.installing import install

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Puts metadata of the distribution before those of the real one, as pip writes them."""
    folder = tmp_path / "site" / "pipeline_simulator-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pipeline-simulator\nVersion: 1\n"
    )
    monkeypatch.syspath_prepend(str(folder.parent))

    def note(text):
        (folder / "direct_url.json").write_text(text)

    return note


def test_what_pip_has_noted_of_an_origin(installed, tmp_path):
    """The forms of PEP 610."""
    clone = tmp_path / "a clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    git = {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}
    noted = [
        ({"url": clone.as_uri(), "dir_info": {"editable": True}}, f"pip install -e '{clone}[ray]'"),
        ({"url": clone.as_uri(), "dir_info": {}}, f"pip install '{clone}[ray]'"),
        (
            {"url": "https://host/our/repository.git", "vcs_info": git},
            f"pip install 'pipeline-simulator[ray] @ git+https://host/our/repository.git@{COMMIT}'",
        ),
        (
            {"url": "https://host/a-1.whl", "archive_info": {}},
            "pip install 'pipeline-simulator[ray] @ https://host/a-1.whl'",
        ),
    ]
    for origin, hint in noted:
        installed(json.dumps(origin))
        assert install("ray") == hint


@pytest.mark.parametrize(
    "noted",
    ["{}", "no JSON", "[]", '{"url": 1}', '{"url": "file:///gone", "dir_info": {}}',
     '{"url": "https://host/a-1.whl?key=5ec2e7", "archive_info": {}}'],
)  # fmt: skip
def test_an_origin_that_is_not_known_or_gone(installed, noted):
    installed(noted)

    assert install("ray") == (
        "install the extra 'ray' of pipeline-simulator from where you have pipeline-simulator from"
    )


def test_nothing_that_we_write_installs_our_name_from_an_index():
    files = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.yml", "*.yaml", "Makefile"], cwd=ROOT,
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    bare = re.compile(r"pip install [^\n`]*pipeline-simulator(?!\[[^]]*\] @)")
    warned = ("docs/install.md", "CHANGELOG.md", "tests/contract/test_install_hints.py")

    found = [file for file in files if bare.search((ROOT / file).read_text(errors="replace"))]

    assert [file for file in found if file not in warned] == []
