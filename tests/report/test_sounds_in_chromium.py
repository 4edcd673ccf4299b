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


def test_a_spectrogram_says_what_its_axes_are(report, opened):
    """The words end where the picture does."""
    tab, _ = opened(report, 1600)
    axes = tab.locator("figure.sound .axes").first
    picture, words = (axes.locator(one).last.bounding_box() for one in ("img", "p"))

    assert words["x"] + words["width"] == pytest.approx(picture["x"] + picture["width"], abs=1)
    assert axes.locator("p").all_text_contents()[0].startswith("band ")
    assert "frame 1" in axes.locator("p").last.text_content()
