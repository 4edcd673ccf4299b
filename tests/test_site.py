"""The documents as a site: every page has a place in it, and the reference is in its search."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import simulator

ROOT = Path(__file__).parent.parent


def pages(entry):
    if isinstance(entry, str):
        return [entry]
    return [page for one in (entry.values() if isinstance(entry, dict) else entry)
            for page in pages(one)]  # fmt: skip


def test_every_extra_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"dev"}
    page = (ROOT / "docs" / "install.md").read_text()

    assert [extra for extra in sorted(extras) if f"`{extra}`" not in page] == []


def test_every_document_has_one_place_in_the_navigation():
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    here = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "profiles" / "README.md"]

    assert sorted(pages(nav)) == sorted(str(page.relative_to(ROOT)) for page in here)


@pytest.fixture(scope="module")
def site():
    """The site as CI builds it, in the folder that git ignores."""
    done = subprocess.run(
        ["make", "--old-file=install", f"BIN={Path(sys.executable).parent}", "docs"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build" / "html"


def test_the_reference_has_every_public_name(site):
    page = (site / "docs" / "api" / "index.html").read_text()

    assert [name for name in simulator.__all__ if f'id="simulator.{name}"' not in page] == []


def test_the_search_knows_the_words_of_the_pages(site):
    found = json.loads((site / "search.json").read_text())["items"]

    assert any("Shapley" in item["text"] for item in found)


def test_pages_ask_nothing_of_other_machines(site):
    page = (site / "index.html").read_text()

    assert "//fonts." not in page
