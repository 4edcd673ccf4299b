"""docs/your-own-model.md: its commands run one after the other, on a model that is not ours."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.data import example

PAGE = Path(__file__).parent.parent / "docs" / "your-own-model.md"


@pytest.mark.prove
def test_every_command_of_the_page_runs(tmp_path):
    commands = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    shutil.copyfile(example.model_card().parent / "model.onnx", tmp_path / "net.onnx")
    (tmp_path / "val").mkdir()
    for item in example.images().items[:6]:
        shutil.copyfile(item.path, tmp_path / "val" / item.name)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(PAGE.parents[1])}

    done = subprocess.run(
        ["bash", "-ec", "\n".join(commands)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert len(commands) == 5
    assert done.returncode == 0, done.stdout + done.stderr
    assert "net.yaml: 8 fields are marked TODO" in done.stdout
    assert (tmp_path / "runs" / "index.html").is_file()
