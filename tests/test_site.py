"""The documents as a site: every page has a place in it, and the reference is in its search."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import simulator

ROOT = Path(__file__).parent.parent
REFERENCE = {
    "commands": "--until-decided", "documents": "coordinate_transformation_mode",
    "figures": "flips.top5_flip_rate", "backends": "graph_optimization_level",
    "checks": "a_flat_plane_stays_flat",
}  # fmt: skip
"""The generated pages, and a word that is declared in the code alone."""


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
    generated = [f"docs/reference/{name}.md" for name in REFERENCE]
    here = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "profiles" / "README.md"]

    assert sorted(pages(nav)) == sorted([*generated, *(str(one.relative_to(ROOT)) for one in here)])


@pytest.mark.prove
def test_the_site_has_every_name_is_searched_by_its_words_and_asks_nobody():
    """As CI builds it, in the folder that git ignores: one test, as two would build it at once."""
    done = subprocess.run(
        ["make", "--old-file=install", f"BIN={Path(sys.executable).parent}", "docs"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    site = ROOT / "build" / "html"
    page = (site / "docs" / "api" / "index.html").read_text()
    found = json.loads((site / "search.json").read_text())["items"]

    assert [name for name in simulator.__all__ if f'id="simulator.{name}"' not in page] == []
    for page_of, word in REFERENCE.items():
        assert word in (site / "docs" / "reference" / page_of / "index.html").read_text()
    assert any("Shapley" in item["text"] for item in found)
    assert "//fonts." not in (site / "index.html").read_text()
