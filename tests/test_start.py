"""The core starts bare: nothing is imported before it is needed."""

import subprocess
import sys

import pytest
from pydantic import PydanticUserError

from simulator.profile.lookup import builtin_names
from simulator.typed import LateModel

HEAVY = ["PIL", "cv2", "av", "torch", "onnxruntime", "openvino", "nvidia.dali", "onnx", "numpy",
         "pydantic", "yaml", "rich"]  # fmt: skip
BLOCKED = ["PIL", "cv2", "av", "torch", "onnxruntime", "openvino", "nvidia"]


def python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=600
    )


def test_the_command_line_imports_nothing_heavy():
    probe = f"import sys, simulator.cli; print(sorted(set({HEAVY}) & set(sys.modules)))"

    done = python(probe)

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_package_imports_nothing_heavy():
    done = python(f"import sys, simulator; print(sorted(set({HEAVY}) & set(sys.modules)))")

    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["profiles", "--help"], ["profiles", "check", "--help"],
                  ["backends", "--help"]],
)  # fmt: skip
def test_help(arguments):
    """Help is there without a single library, and says what the command is called."""
    before = f"import sys; sys.modules.update(dict.fromkeys({HEAVY}))"

    done = python(f"{before}; from simulator.cli import main; main()", *arguments)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: simulate")


def test_every_built_in_profile_is_checked_without_its_libraries():
    """The versions come from the packages' metadata; nothing of theirs is imported."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({BLOCKED}))\n"
        "from simulator.cli import main\n"
        "codes = [main(['profiles', 'check', name]) for name in sys.argv[1:]]\n"
        "print(codes)"
    )
    names = builtin_names()

    done = python(code, *names)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == str([0] * len(names))
    assert all(f"{name}: valid" in done.stdout for name in names)


@pytest.mark.parametrize("arguments", [["profiles", "list"], ["backends"], ["backends", "--json"]])
def test_listing_needs_no_library(arguments):
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({BLOCKED}))\n"
        "from simulator.cli import main\nsys.exit(main())"
    )

    done = python(code, *arguments)

    assert (done.returncode, done.stderr) == (0, "")
    assert "pillow" in done.stdout


OTHERS = [
    "simulator.results.audits", "simulator.results.faults", "simulator.results.identify",
    "simulator.results.repair", "simulator.results.robustness", "simulator.results.suites",
    "simulator.results.timed", "simulator.experiments.sweep.report", "simulator.cluster",
    "scipy", "plotly", "pandas", "onnx.reference", "rich._emoji_codes",
]  # fmt: skip
"""Each would add 1 to 10 % to the processor time of a pair over one image."""
USED = [
    "efficientnet_lite", "foolbox_images", "opencv", "opsets", "ort", "pillow", "sound", "storages"
]  # fmt: skip
"""The stacks, the example, and what these import; ``onnx_nodes`` where its file is made."""


def test_a_pair_and_its_report_load_nothing_of_others(tmp_path):
    """Of one image without a flip: no other command's results, no other backend, no scipy."""
    code = (
        "import sys\nfrom simulator.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        f"print([name for name in {OTHERS} if name in sys.modules], sorted("
        "{name.split('.')[1] for name in sys.modules if name.startswith('backends.')}"
        " - {'onnx_nodes'}))"
    )
    pair = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--limit", "1"]

    done = python(code, *pair, "--quick", "--out", str(tmp_path / "run"))

    assert (tmp_path / "run" / "report.html").is_file(), done.stderr
    assert done.stdout.splitlines()[-1] == f"[] {USED}"


def test_garbage_is_collected_as_ever_from_the_first_sample_on():
    code = (
        "import gc\nusual = gc.get_threshold()\n"
        "from simulator.cli import collector\nfrom simulator.cli.progress import Bar\n"
        "collector.wait()\nwaiting = gc.get_threshold()\n"
        "with Bar():\n    print(waiting > usual, gc.get_threshold() == usual, gc.isenabled())\n"
        "print(gc.get_freeze_count() > 0)"
    )

    done = python(code)

    assert (done.stdout, done.stderr) == ("True True True\nTrue\n", "")


@pytest.mark.parametrize("given", ["", "['profiles', 'list']"])
def test_only_a_process_of_its_own_is_left_without_collecting(given):
    """Who calls ``main`` with arguments goes on in the same process."""
    code = (
        "import gc\nfrom simulator.cli import main\nusual = gc.get_threshold()\n"
        f"assert main({given}) == 0\n"
        "print(gc.get_freeze_count() > 0, gc.get_threshold() == usual)"
    )

    done = python(code, "profiles", "list")

    assert done.stdout.splitlines()[-1] == ("False True" if given else "True False")


class Late(LateModel):
    number: "Number"  # noqa: F821  it is known where it is used, and nowhere else


def test_a_model_that_is_built_late_leaves_variables_of_who_uses_it_first_alone():
    """CPython 3.13.0 crashes where they are read inside a comprehension."""
    Number = int  # noqa: F841, N806

    with pytest.raises(PydanticUserError, match="not fully defined"):
        Late(number=1)
