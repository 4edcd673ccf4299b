"""The README shows what its commands really print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.modalities.card import card_schema
from simulator.modalities.modality import MODALITIES
from simulator.profile.document import read
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.suite import load_suite
from simulator.tasks.task import TASKS

ROOT = Path(__file__).parent.parent


@pytest.mark.prove
def test_every_command_prints_what_is_shown():
    done = subprocess.run(
        [sys.executable, "tools/readme.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr


HEAD = "schema: 1\nname: part\nsummary: a part of a profile\n"
"""What a profile has besides the part that a document shows."""


@pytest.mark.parametrize("page", ["profiles", "precision", "suites"])
def test_the_documents_that_the_docs_show_are_valid(page, tmp_path):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    path = tmp_path / "example.yaml"
    for example in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
        path.write_text(example if "schema: 1" in example else HEAD + example)
        if page in ("profiles", "precision"):
            choose(load(str(path)))
        else:
            suite = load_suite(str(path))
            for _, _, changes in suite.options():
                choose(load(suite.spec.train, changes))


CARDS = [
    *re.findall(
        r"```yaml\n(schema.*?)```", (ROOT / "docs" / "model-cards.md").read_text(), re.DOTALL
    ),
    *(card.read_text() for card in sorted((ROOT / "docs" / "cards").glob("*.yaml"))),
]


@pytest.mark.parametrize("text", CARDS, ids=lambda text: re.search("name: (.*)", text)[1])
def test_every_model_card_in_the_docs_is_valid(text, tmp_path):
    path = tmp_path / "card.yaml"
    path.write_text(text)
    values = read(path).values
    kind = values["input"].get("kind", "image")
    spec = card_schema(MODALITIES[kind].Card).model_validate(values)
    TASKS[spec.task].Output.model_validate(spec.output)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_every_whole_profile_in_the_docs_can_be_chosen(page, tmp_path):
    """Those that extend another one; snippets of a section are not whole."""
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    for number, text in enumerate(b for b in blocks if "schema: 1" in b and "extends:" in b):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        for file in re.findall(r"codec: (\S+)", text):  # one of the reader's own
            (tmp_path / file).touch()
        choose(load(str(path)))


def test_every_link_inside_the_repository_leads_somewhere():
    broken = [
        f"{page.name}: {target}"
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text())
        if not (page.parent / target).exists()
    ]

    assert broken == []


def test_what_proves_what_is_there():
    """Every file and folder of tests that the table in CONTRIBUTING.md names."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("| proved in `tests/` by |")[2]
    named = re.findall(r"`([\w/*]+(?:\.py|/))`", text)

    assert len(named) > 40
    assert [name for name in named if not [*(ROOT / "tests").glob(name)]] == []
