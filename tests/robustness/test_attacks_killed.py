"""A robustness run with every kind of attack is killed, and goes on with equal records."""

import pytest
import tiny
import yaml
from races import killed_and_resumed

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
    killed_and_resumed(
        tmp_path, "robustness", "--suite", path, "--train", "pillow_bilinear_fp32", "--deploy",
        "nv12_fp32", "--model", card, "--data", many, below="colors",
    )  # fmt: skip
