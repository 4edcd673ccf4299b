"""The two guides for vendors are carried out, step by step, in a copy of the checkout.

Nothing is installed into this Python, and nothing is fetched: pip's target is a folder of the test.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "vendor_example"
GUIDES = ("contributing-a-profile", "writing-a-backend")
COPIED = ("simulator", "backends", "profiles", "suites", "tools", "tests/vendor_example")
MARK = "<<<step"


def blocks(guide):
    """(language, text) of every fenced block, those in list items included."""
    text = (ROOT / "docs" / f"{guide}.md").read_text()
    found = re.findall(r"^( *)```(\w+)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [(language, textwrap.dedent(body)) for _, language, body in found]


def commands(body):
    """(command, lines that it is shown to print) of a console block."""
    parts = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
    split = [part.partition("\n") for part in parts]
    return [(command, masked(shown)) for command, _, shown in split]


def masked(text):
    """What is the same from run to run: no numbers, no rules of tables, no widths."""
    lines = (re.sub(r"\d[\d.,]*", "#", line).replace("─", " ") for line in text.splitlines())
    return [" ".join(line.split()) for line in lines if line.strip()]


def named(body):
    """The file that a block is an excerpt of, or the whole of."""
    head = re.match(r"# ([\w./-]+\.\w+)\n", body)
    assert head, f"a block without its file: {body[:60]!r}"
    return head[1], body[head.end() :]


@pytest.fixture
def checkout(tmp_path):
    for part in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, tmp_path / "checkout" / part, ignore=ignored)
    return tmp_path / "checkout"


def carry_out(guide, checkout):
    """Run a guide's commands in one shell; return (command, shown, exit code, printed) of each."""
    site = checkout.parent / "site"
    script, steps = ["set -o pipefail"], []
    for language, body in blocks(guide):
        if language == "console":
            for command, shown in commands(body):
                steps.append((command, shown))
                script += [command, f"echo; echo '{MARK}' $?"]
        elif not (EXAMPLE / named(body)[0]).is_file():
            file, text = named(body)
            script.append(f"cat > {file} <<'END'\n{text}END")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{checkout}:{site}",
        "PIP_TARGET": str(site),
        "PIP_NO_INDEX": "1",
    }
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=checkout, env=environment, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    parts = re.split(rf"^{MARK} (\d+)\n", done.stdout, flags=re.MULTILINE)
    assert len(parts) == 2 * len(steps) + 1, done.stdout + done.stderr
    return [
        (command, shown, int(code), masked(printed), done.stderr)
        for (command, shown), printed, code in zip(steps, parts[::2], parts[1::2], strict=False)
    ]


@pytest.mark.parametrize("guide", GUIDES)
def test_every_step_does_what_the_guide_shows(guide, checkout):
    for command, shown, code, printed, told in carry_out(guide, checkout):
        assert code == 0, f"{command}\n{printed}\n{told}"
        if shown:
            assert printed == shown, command


def test_the_example_is_shown_as_it_is():
    shown = [named(body) for language, body in blocks("writing-a-backend") if language != "console"]
    excerpts = [(file, text) for file, text in shown if (EXAMPLE / file).is_file()]

    assert len(excerpts) == 4
    for file, text in excerpts:
        assert text in (EXAMPLE / file).read_text(), file


def test_every_path_that_the_guides_name_is_there():
    for guide in GUIDES:
        text = (ROOT / "docs" / f"{guide}.md").read_text()
        for path in re.findall(r"`((?:backends|tests|profiles|tools)/[\w./-]*)`", text):
            assert (ROOT / path).exists(), f"{guide}: {path}"


def test_the_adapter_is_small():
    """What a vendor writes for one stage fits on one screen."""
    assert len((EXAMPLE / "acme_npu" / "scaler.py").read_text().splitlines()) < 60
