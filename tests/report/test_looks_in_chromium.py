"""What networks saw, in a real browser: the difference is what it says, and keys reach it all."""

import base64
import hashlib
import io
import struct
import zlib
from importlib import resources

import numpy as np
import pytest
from PIL import Image
from test_looks_section import effect, entry, feature, noise, png, run_of

from simulator.report.colors import css
from simulator.report.sections.gallery import looks, more_looks

pytestmark = pytest.mark.prove

CANVAS = """(number) => {
    const shown = document.querySelectorAll("canvas")[number];
    const copy = new OffscreenCanvas(shown.width, shown.height).getContext("2d");
    copy.drawImage(shown, 0, 0);
    const { data } = copy.getImageData(0, 0, shown.width, shown.height);
    return [shown.width, shown.height, [...data]];
}"""


@pytest.fixture
def pictures(tmp_path):
    """Three tensors and a picture in a run folder, and the tensors' pixels."""
    (tmp_path / "looks").mkdir()
    found = {}
    for seed, name in enumerate("ptdr"):
        found[name] = noise(seed, (24, 31))
        (tmp_path / "looks" / f"{name}.png").write_bytes(png(found[name]))
    return found


@pytest.fixture
def opened(browser, request, tmp_path):
    """A function that shows entries under the page's own policy, with a list of what went wrong."""

    def show(*entries, width=1600, scheme="light", script=True):
        path = tmp_path / "page.html"
        path.write_text(page(tmp_path, entries), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        context.set_default_timeout(600_000)
        request.addfinalizer(context.close)
        tab, wrong = context.new_page(), []
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        tab.goto(path.as_uri())
        if script:
            tab.wait_for_selector("html[data-looks=drawn]", state="attached")
        return tab, wrong

    return show


def page(folder, entries):
    run = run_of(folder, entries)
    shown = "".join(part.html for part in (looks(run), more_looks(run)) if part)
    style, more, script = (
        resources.files("simulator.report").joinpath("templates", name).read_text()
        for name in ("page.css", "gallery.css", "gallery.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>looks</title>'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src '
        f"'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{css()}{style}{more}</style></head><body><main><section>{shown}</section></main>"
        f"<script>{script}</script></body></html>"
    )


def canvas(tab, number=0):
    width, height, data = tab.evaluate(CANVAS, number)
    return np.array(data, np.uint8).reshape(height, width, 4)


def amplified(a, b, times):
    """In R, G and B |a - b| * times, at most 255; opaque."""
    levels = np.minimum(np.abs(a.astype(int) - b) * times, 255).astype(np.uint8)
    return np.insert(levels, 3, 255, axis=2)


def shows(tab, label, times):
    tab.wait_for_selector(f'[data-shown="{label}, {times}"]')
    return canvas(tab)


def test_the_slider_amplifies_the_difference_by_keys_alone(opened, pictures):
    tab, wrong = opened(entry(difference=effect(mean=200.0)))
    a, b = pictures["t"], pictures["d"]
    slider = tab.get_by_role("slider", name="Amplified")

    assert (shows(tab, "deploy", 1) == amplified(a, b, 1)).all()
    slider.focus()
    for times in (2, 4, 8, 16, 32, 64, 128, 256):
        tab.keyboard.press("ArrowRight")
        assert (shows(tab, "deploy", times) == amplified(a, b, times)).all()
        assert slider.get_attribute("aria-valuetext") == f"{times} times"
        assert tab.locator("output").inner_text() == f"{times}×"
    tab.keyboard.press("ArrowRight")
    assert slider.input_value() == "8"
    tab.keyboard.press("Home")
    assert (shows(tab, "deploy", 1) == amplified(a, b, 1)).all()
    assert wrong == []


def test_an_axis_is_chosen_by_keys_alone(opened, pictures):
    tab, wrong = opened(entry(difference=effect(mean=3.0)))
    label = "train with deploy's resize"

    tab.get_by_role("radio").first.focus()
    tab.keyboard.press("ArrowDown")

    assert (shows(tab, label, 8) == amplified(pictures["t"], pictures["r"], 8)).all()
    assert tab.get_by_role("radio", name="resize alone").is_checked()
    assert (
        tab.locator("canvas").get_attribute("aria-label") == f"difference of train and {label}, 8×"
    )
    assert tab.locator("figcaption").all_inner_texts()[1:] == [
        "train", label, f"difference of train and {label}, 8×",
    ]  # fmt: skip
    assert wrong == []


def seen(tab, number):
    """The pixels of a shown image's file."""
    source = tab.locator("[data-tensors] img").nth(number).get_attribute("src")
    return np.array(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))


def test_one_tensor_takes_the_others_place_and_gives_it_back(opened, pictures):
    tab, wrong = opened(entry())
    button = tab.get_by_role("button", name="Show it in train’s place")

    button.focus()
    for pressed, expected in (("true", "d"), ("false", "t")):
        tab.keyboard.press("Space")
        tab.wait_for_selector(f"button[aria-pressed={pressed}]")
        assert (seen(tab, 0) == pictures[expected]).all()
        assert (seen(tab, 1) == pictures["d"]).all()
        words = "deploy, in train’s place" if pressed == "true" else "train"
        assert tab.locator("[data-tensors] figcaption").first.inner_text() == words
        assert (canvas(tab)[..., :3] == amplified(pictures["t"], pictures["d"], 16)[..., :3]).all()
    assert wrong == []


def test_images_do_not_mind_each_other(opened, pictures):
    tab, wrong = opened(entry(), entry(sample="other.jpg", deploy="looks/r.png", axes={}))

    tab.get_by_role("slider").nth(1).focus()
    tab.keyboard.press("End")
    tab.wait_for_selector('[data-shown="deploy, 256"]')

    assert (canvas(tab, 0) == amplified(pictures["t"], pictures["d"], 16)).all()
    assert (canvas(tab, 1) == amplified(pictures["t"], pictures["r"], 256)).all()
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_it_fits_the_window(opened, pictures, width, scheme):
    long = "a" * 300 + ".jpg"
    tab, wrong = opened(entry(sample=long, maps=[feature()]), width=width, scheme=scheme)

    assert tab.evaluate("() => document.documentElement.scrollWidth") == width
    for one in tab.locator("img, canvas, input, button, fieldset").all():
        box = one.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
    tensors = tab.locator("[data-tensors] img, [data-tensors] canvas").all()
    assert len({round(one.bounding_box()["width"]) for one in tensors}) == 1
    assert wrong == []


def test_in_print_the_canvas_stays_and_the_controls_go(opened, pictures):
    tab, wrong = opened(entry())
    tab.emulate_media(media="print")

    assert tab.locator("canvas").is_visible()
    assert not tab.get_by_role("slider").is_visible()
    assert tab.locator("figcaption").last.inner_text() == "difference of train and deploy, 16×"
    assert wrong == []


def test_damaged_and_unequal_pictures_are_said_to_be(opened, pictures, tmp_path):
    whole = (tmp_path / "looks" / "d.png").read_bytes()
    (tmp_path / "looks" / "cut.png").write_bytes(whole[:40] + bytes(len(whole) - 52) + whole[-12:])
    (tmp_path / "looks" / "small.png").write_bytes(png(noise(7, (5, 5))))
    (tmp_path / "looks" / "broken.png").write_bytes(broken(whole))
    tab, wrong = opened(
        entry(deploy="looks/cut.png", axes={}),
        entry(deploy="looks/small.png", axes={}),
        entry(deploy="looks/broken.png", axes={}),
    )

    words = tab.locator("figcaption").all_inner_texts()
    assert sum("cannot be shown: a picture is damaged" in one for one in words) == 2
    assert "deploy" not in words[:2]
    assert wrong == []


def broken(whole):
    """A PNG of sound chunks whose compressed pixels are none."""
    data = b"IDAT" + b"no zlib stream"
    length, checksum = (struct.pack(">I", value) for value in (len(data) - 4, zlib.crc32(data)))
    return whole[:33] + length + data + checksum + whole[-12:]


def test_names_do_nothing(opened, pictures):
    name = "<img src=x onerror=alert(1)>\"'`${alert(2)}.jpg"
    axes = {name: {"picture": "looks/r.png", **effect()}}
    tab, wrong = opened(entry(sample=name, axes=axes, notes=[name]))

    tab.get_by_role("radio").nth(1).check()
    tab.wait_for_function("() => document.querySelector('canvas').ariaLabel.includes('onerror')")

    assert tab.locator("h3 bdi").inner_text() == name
    assert wrong == []


def test_without_script_the_tensors_and_numbers_are_there(opened, pictures):
    tab, _ = opened(entry(), script=False)

    assert tab.locator("[data-tensors] img").count() == 2
    assert "resize alone: 25.0% of values differ" in tab.locator("noscript").inner_text()
    assert not tab.get_by_role("slider").is_visible()


def test_each_axis_has_its_difference_scaled_to_255(opened, pictures):
    """As SysNoise's Figure 5 has it; the third axis changes nothing."""
    axes = {
        name: {"picture": f"looks/{file}.png", **effect()}
        for name, file in (("resize", "r"), ("color", "d"), ("decoder", "t"))
    }
    tab, wrong = opened(entry(axes=axes))

    words = tab.locator("[data-differences] figcaption").all_inner_texts()
    for number, (file, said) in enumerate(zip("drdt", words, strict=True), 1):
        levels = np.abs(pictures["t"].astype(int) - pictures[file])
        peak = levels.max()
        expected = np.round(levels * (255 / peak if peak else 0))
        assert np.abs(canvas(tab, number)[..., :3].astype(int) - expected).max() <= 1
        assert said.endswith(f"255 is {peak} levels" if peak else "no level differs")
    assert wrong == []
