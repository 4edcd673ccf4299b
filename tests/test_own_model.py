"""docs/your-own-model.md: its commands run one after the other, on a model that is not ours."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from simulator.data import example

PAGE = Path(__file__).parent.parent / "docs" / "your-own-model.md"


@pytest.mark.prove
def test_every_command_of_the_page_runs(tmp_path):
    commands = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    shutil.copyfile(example.model_card().parent / "model.onnx", tmp_path / "net.onnx")
    (tmp_path / "val").mkdir()
    items = example.images().items[:6]
    for item in items:
        shutil.copyfile(item.path, tmp_path / "val" / item.name)
    rows = [f"{item.name},{item.truth}" for item in items]
    (tmp_path / "val" / "labels.csv").write_text("\n".join(["file,index", *rows]) + "\n")
    own = json.dumps(yaml.safe_load(example.model_card().read_text())["input"])
    filled_in = f"""sed -i 's/ *# TODO.*//; s/TODO: //; /^ /d; s/^input:/input: {own}/; \
        s/^geometry:/geometry: {{kind: short_side_crop, short_side: 256}}/; \
        s/^output:/output: {{kind: logits}}/' net.yaml"""
    commands.insert(2, filled_in)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(PAGE.parents[1])}

    done = subprocess.run(
        ["bash", "-ec", "\n".join(commands)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert len(commands) == 7
    assert done.returncode == 0, done.stdout + done.stderr
    assert "net.yaml: 2 fields are marked TODO" in done.stdout
    assert "of 6 images" in done.stdout and "guessing gives 0.10%" in done.stdout
    assert (tmp_path / "runs" / "index.html").is_file()
