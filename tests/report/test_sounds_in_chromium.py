"""Sounds in a real browser: the page's own policy lets them play, and they have their length."""

import pytest

from simulator.experiments.compare import compare
from simulator.report import page
from simulator.testing.audio_specimen import sine, wav, write

LENGTHS = """() => Promise.all([...document.querySelectorAll("audio")].map(async (one) => {
    await new Promise((done) => {
        one.addEventListener("loadedmetadata", done);
        one.addEventListener("error", done);
        one.load();
    });
    return one.error ? one.error.message : one.duration;
}))"""


@pytest.fixture
def report(tmp_path, cache):
    """A page with a sound of two seconds, which the stacks resample differently."""
    given = write(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "<b>.wav").write_bytes(wav(sine(900, 16000, 32000), 16000))
    run = compare(
        given.profile, given.profile, overrides=["deploy.resample.quality=qq"],
        model=given.card, data=tmp_path / "data", out=tmp_path / "run",
    )  # fmt: skip
    return page.write(run.folder)


def test_both_sounds_can_be_played(report, opened):
    tab, wrong = opened(report)

    assert tab.evaluate(LENGTHS) == [pytest.approx(2, abs=0.01)] * 2
    assert wrong == []
