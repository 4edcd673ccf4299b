"""`simulate runs`: the list and the index page."""

import json

import pytest
import tiny

from simulator import cli, compare

SHA = "fedcba9876543210fedcba9876543210fedcba98"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that passed, one that failed, one without rules, one interrupted, one damaged."""
    home = tmp_path_factory.mktemp("runs")
    inputs = {"model": tiny.card(home / "card"), "data": tiny.data(home / "images"), "workers": 1}
    folder = home / "runs"
    pair = ("pillow_fp32", "opencv_fp32")
    compare(*pair, **inputs, out=folder / "a pass", fail_on=["flip_rate > 50%"])
    compare(*pair, **inputs, out=folder / "fail", fail_on=["flip_rate >= 0%"])
    compare(*pair, **inputs, out=folder / "below" / "bare")
    stopped = folder / "stopped"
    compare("pillow_fp32", "pillow_fp32", **inputs, out=stopped)
    manifest = json.loads((stopped / "manifest.json").read_text())
    told = {"sha": SHA, "dirty": True, "source": "checkout"}
    edited = manifest | {"status": "interrupted", "commit": told}
    (stopped / "manifest.json").write_text(json.dumps(edited))
    odd = json.loads((folder / "fail" / "manifest.json").read_text())
    (folder / "fail" / "manifest.json").write_text(json.dumps(odd | {"commit": None}))
    (folder / "<odd>").mkdir()
    (folder / "<odd>" / "manifest.json").write_text("{}")
    return folder


def told(capsys, *arguments):
    code = cli.main(["runs", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_every_run_is_listed_with_its_gate(runs, capsys):
    code, out, err = told(capsys, runs)

    assert (code, err) == (0, "")
    rows = {line.split("  ")[0].strip(): line for line in out.splitlines()[3:] if line.strip()}
    gates = {"a pass": "passed", "fail": "FAILED", "below/bare": "no rules",
             "stopped": "interrupted", "<odd>": "damaged"}  # fmt: skip
    assert {name: gate in rows[name] for name, gate in gates.items()} == dict.fromkeys(gates, True)
    assert "compare pillow_fp32 → opencv_fp32 model card data images" in rows["fail"]
    assert "fedcba9876+" in rows["stopped"] and SHA not in out
    assert list(rows)[-1] == "<odd>"


def test_the_page_has_the_history_of_each_gate(runs, capsys):
    (runs / "fail" / "report.html").write_text("")

    code, out, _ = told(capsys, runs, "--html")

    assert (code, out) == (0, f"index: {runs / 'index.html'}\n")
    assert told(capsys, runs, "--html")[0] == 0, "our own page is written again"
    assert told(capsys, runs / "absent")[::2] == (
        2, f"error: {runs / 'absent'}: there is no such folder; runs are in runs/ by default\n"
    )  # fmt: skip
    page = (runs / "index.html").read_text()
    question = "<h2>compare pillow_fp32 → opencv_fp32 model card data images</h2>"
    history = page.partition(question)[2].partition("</table>")[0]
    assert [history.count(word) for word in (">passed<", ">FAILED<", ">no rules<")] == [1, 1, 1]
    assert '<a href="fail/report.html">fail</a>' in history
    assert "<code>fedcba9876+</code>" in page
    assert "&lt;odd&gt;" in page
    assert "<odd>" not in page


@pytest.mark.parametrize("foreign", ["<!doctype html><title>Our team</title>", ""])
def test_a_page_of_somebody_else_stays(tmp_path, capsys, foreign):
    place = tmp_path / "index.html"
    place.write_text(foreign)

    code, out, err = told(capsys, tmp_path, "--html")

    assert (code, out, place.read_text()) == (2, "", foreign)
    assert err == (
        f"error: {place}: is no page of `simulate runs --html`, so it stays as it is; rename or "
        "remove it\n"
    )


@pytest.mark.parametrize("name", ["index.html", ".index.html.part"])
def test_no_link_is_followed_out_of_the_folder(tmp_path, capsys, name):
    outside = tmp_path / "outside.html"
    folder = tmp_path / "runs"
    folder.mkdir()
    assert told(capsys, folder, "--html")[0] == 0
    ours = (folder / "index.html").read_text()
    outside.write_text(ours)
    (folder / "index.html").unlink()
    (folder / name).symlink_to(outside)

    code, _, err = told(capsys, folder, "--html")

    assert (code, err.count("\n")) == ((2, 1) if name == "index.html" else (0, 0))
    assert outside.read_text() == ours
    assert (folder / "index.html").is_symlink() == (name == "index.html")
