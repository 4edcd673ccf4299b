"""``simulate backends prove``: a line per check, and an exit code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from broken import OWN
from correct import backend

from simulator import registry
from simulator.cli import main, prove
from simulator.contract import Stage
from simulator.contract.stage import named
from simulator.testing import checks_of, proved_stages
from simulator.testing import prove as findings
from simulator.testing.models import FAMILIES

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_a_line_per_check(capsys):
    code = main(["backends", "prove", "turbojpeg"])

    *lines, total = capsys.readouterr().out.splitlines()
    assert code == 0
    assert [line.split()[:3] for line in lines] == [
        ["passed", "decode", check.__name__] for check in checks_of(Stage.DECODE)
    ]
    assert total == f"turbojpeg: {len(lines)} passed, 0 failed, 0 cannot"


def test_a_failed_check_is_exit_1_and_says_what_came(monkeypatch, capsys):
    broken = backend(Stage.RESIZE, OWN[Stage.RESIZE]["a_flat_plane_stays_flat"])
    monkeypatch.setattr(registry, "backend", lambda name: broken)

    assert prove.backend("numpy") == 1

    (line,) = (x for x in capsys.readouterr().out.splitlines() if x.startswith("failed"))
    assert line == (
        "failed  resize    a_flat_plane_stays_flat  "
        "interpolation=bilinear antialias=false: a flat plane is 1 levels off"
    )


def test_what_cannot_run_here_is_exit_2_in_one_line(capsys):
    code = main(["backends", "prove", "ascend"])

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: .+\n", err)


def test_what_only_the_user_can_say_is_not_proved(capsys):
    assert main(["backends", "prove", "recorded"]) == 2
    assert capsys.readouterr().out.splitlines()[-1].startswith("recorded: 0 passed, 0 failed")


def test_a_backend_of_example_images_has_nothing_to_prove(capsys):
    assert main(["backends", "prove", "foolbox"]) == 0
    assert capsys.readouterr().out == "foolbox offers nothing that the suite can check\n"


def test_offers_are_told_apart_by_what_differs():
    told = {f.options for f in findings(registry.backend("pillow")) if f.stage == Stage.RESIZE}

    assert told == {
        "interpolation=bilinear|bicubic|box|hamming|lanczos antialias=True",
        "interpolation=nearest antialias=False",
    }


def test_every_check_says_what_it_demands():
    """The site's page of checks is made of it."""
    checks = [one for stage in proved_stages() for one in checks_of(stage)]
    for module in prove.SUITES.values():
        checks += named(f"simulator.testing.{module}:SUITE").checks

    assert [x.__name__ for x in checks if not (x.__doc__ or "").splitlines()[0].endswith(".")] == []


def test_every_family_is_documented():
    text = DOCUMENT.read_text()

    assert [name for name in FAMILIES if f"`{name}`" not in text] == []


def test_the_suite_needs_neither_pytest_nor_a_backends_library():
    blocked = ["pytest", "PIL", "cv2", "av", "torch", "onnxruntime", "openvino", "nvidia", "scipy"]
    probe = f"import sys; sys.modules.update(dict.fromkeys({blocked})); import simulator.testing"

    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
