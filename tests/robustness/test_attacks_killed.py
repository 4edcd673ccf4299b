"""A robustness run with every kind of attack is killed, and goes on with equal records."""

import signal

import pytest
import tiny
import warm
import yaml
from ending import ended

from backends.auto_attack import pyautoattack, torch
from backends.pytorch_converters import onnx2torch

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(
        not all(one.present for one in (onnx2torch, torch, pyautoattack)), reason="no attacks extra"
    ),
]
SUITE = {
    "schema": 1, "name": "mine", "summary": "attacks", "conditions": {"attacks": {
        "fgsm": ["fgsm:40/255"],
        "pgd": ["pgd:l2,4,steps=3,restarts=2"],
        "auto": ["autoattack:linf,40/255,parts=apgd-ce+square,steps=3,queries=20"],
        "asked": ["square:linf,85/255,queries=20,on=opencv_fp32"],
    }},
}  # fmt: skip


def test_a_killed_run_under_attack_has_equal_records(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(SUITE))
    card, many = tiny.card(tmp_path / "card"), tiny.data(tmp_path / "many", each=14)
    command = [
        "robustness", "--suite", path, "--train", "pillow_bilinear_fp32", "--deploy", "nv12_fp32",
        "--model", card, "--data", many, "--out",
    ]  # fmt: skip

    def simulate(*words):
        done = warm.command(*words)
        assert done.returncode == 0, done.stderr

    folder = tmp_path / "out" / "colors"
    simulate(*command, tmp_path / "whole")
    done = ended(signal.SIGKILL, folder, "parts/*.parquet", 1, *command, tmp_path / "out")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (folder / "records.parquet").exists()

    simulate("resume", folder)

    again, once = (f / "records.parquet" for f in (folder, tmp_path / "whole" / "colors"))
    assert again.read_bytes() == once.read_bytes()
