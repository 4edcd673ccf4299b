"""What the tests of reports share: a browser, and a small real run of every command."""

import contextlib
import io
import os
import shutil

import pytest
import tiny
import tiny_tasks
import yaml
from command_lines import COMMANDS, REPAIRS, SUITE

from simulator import cli
from simulator.cache import VARIABLE

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 600_000
"""In milliseconds; a busy machine is no reason to fail."""


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium of the system's."""
    if BROWSER is None and os.environ.get("CI") != "true":
        pytest.skip("no Chromium here: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=ARGUMENTS, timeout=PATIENCE)
        yield opened
        opened.close()


@pytest.fixture
def opened(browser, request):
    """A function that opens a page and returns it with a list of all that went wrong."""

    def look(path, width=1600, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        request.addfinalizer(context.close)
        tab, wrong = context.new_page(), []
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        tab.on(
            "request", lambda sent: wrong.append(sent.url) if sent.url != path.as_uri() else None
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector(f"html[data-drawn={scheme}]", state="attached")
        return tab, wrong

    return look


@pytest.fixture(scope="session")
def given(tmp_path_factory):
    """Models, images and a suite: the end of a command line, by the name of the command."""
    folder = tmp_path_factory.mktemp("given")
    card, images = tiny.card(folder / "colors"), tiny.data(folder / "images", 4)
    plain = folder / "plain"
    plain.mkdir()
    for number in range(4):
        pixels = tiny.picture(tiny.COLORS["red"], seed=number)
        (plain / f"{number}.jpg").write_bytes(tiny.encoded(pixels))
    (folder / "SUITE").write_text(yaml.safe_dump(SUITE))
    (folder / "REPAIRS").write_text(yaml.safe_dump(REPAIRS))
    inputs = dict.fromkeys(COMMANDS, (card, images)) | {"run without labels": (card, plain)}
    for task in ("detection", "segmentation"):
        own = folder / task
        inputs[f"run, {task}"] = tiny_tasks.card(own, task), tiny_tasks.data(own / "data", task)
    return folder, inputs


@pytest.fixture(scope="session")
def runs(given, tmp_path_factory):
    """A function from the name of a command to its run folder, and to what it printed."""
    documents, inputs = given
    known = {}

    def run(name):
        if name not in known:
            folder = tmp_path_factory.mktemp("run") / "run"
            card, images = inputs[name]
            named = {word: str(documents / word) for word in ("SUITE", "REPAIRS")}
            words = [named.get(word, word) for word in COMMANDS[name]]
            words += ["--model", str(card), "--data", str(images), "--out", str(folder), "--json"]
            with pytest.MonkeyPatch.context() as patch, io.StringIO() as printed:
                patch.setenv(VARIABLE, str(tmp_path_factory.getbasetemp() / "cache"))
                with contextlib.redirect_stdout(printed):
                    code = cli.main(words)
                assert code == (1 if name == "run" else 0)
                known[name] = folder / "colors" if name == "sweep" else folder, printed.getvalue()
        return known[name]

    return run
