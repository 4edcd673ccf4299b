"""`simulate --version` and the shell completion, tried in a real bash."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from simulator.cli import main, names
from simulator.cli.completion import SHELLS

ASK = """
{script}
COMP_WORDS=({words} "{last}")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_LINE="${{COMP_WORDS[*]}}"
COMP_POINT=${{#COMP_LINE}}
_shtab_simulate
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def bash():
    done = subprocess.run(
        [sys.executable, "-m", "simulator.cli", "--print-completion", "bash"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    def complete(words, last=""):
        code = ASK.format(script=done.stdout, words=words, last=last)
        found = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        return found.stdout.split()

    return complete


def told(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_version(capsys):
    assert told(capsys, "--version") == f"simulate {version('pipeline-simulator')}\n"


@pytest.mark.parametrize(
    ("words", "last", "offered"),
    [
        ("simulate", "expl", ["explain"]),
        ("simulate", "--trai", ["--train", "--train-artifact"]),
        ("simulate explain --train", "pillow_f", ["pillow_fp32"]),
        ("simulate sweep --suite", "sysnoise-d", ["sysnoise-detection"]),
        ("simulate profiles", "imp", ["import"]),
        ("simulate backends prove", "onnx_re", ["onnx_reference"]),
        ("simulate --model", "pyproj", ["pyproject.toml"]),
    ],
)
def test_bash_completes(bash, words, last, offered):
    assert bash(words, last) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_knows_every_command_and_profile(shell, capsys):
    script = told(capsys, "--print-completion", shell)

    assert all(command in script for command in [*names(), "ascend_nv12_int8"])
