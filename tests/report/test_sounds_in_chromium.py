"""Sounds in a real browser: the page's own policy lets them play, and they have their length."""

import pytest

from simulator import compare
from simulator.report import page
from simulator.testing.audio_specimen import sine, wav, write

pytestmark = pytest.mark.prove

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
    """Seconds below it, from its left; Hz beside it, between its top and its bottom."""
    tab, _ = opened(report, 1600)
    drawn = tab.locator("figure.sound svg").first
    picture = drawn.locator("image").bounding_box()
    first, last = (drawn.locator(".time").nth(at).bounding_box() for at in (0, -1))
    heights = [one.bounding_box() for one in drawn.locator(".frequency").all()]

    assert drawn.locator(".time").all_text_contents() == ["0 s", "0.5 s", "1 s", "1.5 s", "2 s"]
    assert drawn.locator(".frequency").all_text_contents() == ["1 kHz", "2 kHz"]
    middle = first["x"] + first["width"] / 2
    assert middle == pytest.approx(picture["x"], abs=1)
    assert first["y"] >= picture["y"] + picture["height"]
    assert last["x"] < picture["x"] + picture["width"] < last["x"] + last["width"]
    assert all(one["x"] + one["width"] < picture["x"] for one in heights)
    assert picture["y"] < heights[1]["y"] < heights[0]["y"] < picture["y"] + picture["height"]
