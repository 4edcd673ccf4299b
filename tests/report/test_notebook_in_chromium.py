"""The charts of a result in a notebook's page, in a real browser."""

import pytest

from simulator import explain

pytestmark = pytest.mark.prove


def test_a_notebook_draws_charts_and_tables(browser, cache, card, data, tmp_path):
    result = explain(
        "pillow_fp32", {"extends": "pillow_fp32", "color": {"order": "bgr"}}, model=card,
        data=data, out=tmp_path / "run",
    )  # fmt: skip
    place = tmp_path / "cell.html"
    place.write_text(f"<!doctype html><body>{result.plot()._repr_html_()}</body>")
    page = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(place.as_uri())

    inside = page.frame_locator("iframe")
    inside.locator("html[data-drawn]").wait_for()

    assert inside.locator("h1").inner_text().startswith("colors")
    assert inside.locator(".bar").count() >= 1
    assert said == []
