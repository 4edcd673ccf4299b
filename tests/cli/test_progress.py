"""The bar over real runs, as it is drawn: it only goes forward, over all passes of a command."""

import io
import re

import pytest
import tiny
import yaml
from rich.console import Console

from simulator import audit, compare, sweep, tail, worst
from simulator.cli import progress

SUITE = {
    "schema": 1, "name": "trial", "summary": "two axes", "train": "pillow_fp32",
    "columns": {
        "resize": {"nearest": {"resize": "opencv-nearest"}},
        "color": {"bgr": {"color.order": "bgr"}},
    },
}  # fmt: skip


@pytest.fixture
def bar(monkeypatch):
    """A bar on a terminal that keeps every frame; and what was drawn on it."""
    monkeypatch.setattr(progress, "REFRESH", -1.0)
    file = io.StringIO()
    console = Console(file=file, width=160, force_terminal=True, color_system=None)
    with progress.Bar(console=console) as shown:
        yield shown, file


@pytest.fixture
def place(card, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(SUITE))
    return card, tiny.data(tmp_path / "data", each=2)


def frames(file):
    """The stage, its description and the percentage of every frame."""
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "\r", file.getvalue())
    found = re.findall(r"[\r\n]*((?:\d+/\d+ )?)([^\r\n━╸╺]*?) *[━╸╺ ]+ +(\d+)%", text)
    return [(stage.strip(), what.strip(), int(percent)) for stage, what, percent in found]


def check(file, stages):
    drawn = frames(file)
    percents = [percent for _, _, percent in drawn]

    assert percents and percents == sorted(percents), "it went backward"
    assert percents[-1] == 100
    named = list(dict.fromkeys(stage for stage, _, percent in drawn if percent))
    assert named == stages, drawn
    return drawn


def test_a_pair_with_axes_alone_gallery_and_report(bar, place, tmp_path):
    card, data = place
    shown, file = bar

    def report(folder):
        shown.say("report")

    compare(
        "pillow_fp32", "pillow_fp32", overrides=["deploy.color.order=bgr"], model=card, data=data,
        out=tmp_path / "run", progress=shown, report=report,
    )  # fmt: skip

    drawn = check(file, [""])
    assert ("", "running", 50) in drawn and drawn[-1] == ("", "running", 100)
    assert "report" in file.getvalue(), "what follows the samples has no percentage"


def sweeping(place, **asked):
    card, data = place
    other = tiny.card(data.parent / "other")
    other.write_text(other.read_text().replace("name: colors", "name: others"))
    sweep("suite.yaml", models=[card, other], data=data, **asked)


def combining(place, **asked):
    """Two columns are two steps, and then all combinations are tried."""
    worst("suite.yaml", model=place[0], data=place[1], **asked)


def auditing(place, **asked):
    """Pairs and rounds."""
    document = {
        "schema": 1, "name": "one", "summary": "May it go?", "train": "pillow_fp32",
        "deploy": {"same": "pillow_fp32"}, "models": {"tiny": {"card": str(place[0])}},
        "data": str(place[1]), "tail": {"deploy": ["same"], "rounds": 3, "deadlines_ms": [20]},
        "rules": [{"fail_on": "flip_rate > 50%", "because": "half must stay"}],
    }  # fmt: skip
    (place[1].parent / "audit.yaml").write_text(yaml.safe_dump(document))
    audit("audit.yaml", **asked)


def timing(place, **asked):
    tail(["pillow_fp32"], rounds=4, model=place[0], data=place[1], **asked)


@pytest.mark.parametrize(
    ("job", "stages"),
    [
        (sweeping, ["1/2", "2/2"]),
        (combining, ["1/3", "2/3", "3/3"]),
        (auditing, ["1/2", "2/2"]),
        (timing, [""]),
    ],
)
def test_all_passes_of_a_job_share_one_bar(bar, place, tmp_path, job, stages):
    shown, file = bar

    job(place, out=tmp_path / "run", progress=shown)

    drawn = check(file, stages)
    if job is sweeping:
        assert max(percent for stage, _, percent in drawn if stage == "1/2") == 50
