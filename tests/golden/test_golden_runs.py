"""Runs of all jobs and tasks come out as they were recorded, on any processor.

The files in ``recorded/`` hold records without times, digests and figures; ``record.py`` writes
them and says when it may.
"""

from __future__ import annotations

import golden_inputs
import pytest
from golden_runs import RECORDED, RUNS, differences, plain, recorded, run

for library in ("PIL", "cv2", "onnxruntime", "pycocotools"):
    pytest.importorskip(library)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The folder of models, images, stacks and logs."""
    folder = tmp_path_factory.mktemp("golden") / "inputs"
    golden_inputs.write(folder)
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_golden_run(name, inputs, cache, monkeypatch):
    """Exit codes, every answer and every figure are as they were."""
    monkeypatch.chdir(inputs)
    assert list(differences(recorded(name), run(name))) == []


def test_every_file_belongs_to_a_run():
    """No file is left behind by a run that is no longer there."""
    assert {path.stem for path in RECORDED.iterdir()} == set(RUNS)


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, 0),
        ({"a": 1, "b": 2}, {"a": 1}, 1),
        ([1.0, 2], [1.0 + 1e-8, 2], 0),
        ([1.0, 2], [1.0 + 1e-5, 3], 2),
        ([1], [1, 2], 1),
        (True, 1, 1),
        (None, 0.0, 1),
        ("text", "texts", 1),
    ],
)
def test_differences(old, new, count):
    """What is new is no difference; what is gone, or another value, is one."""
    assert len(list(differences(old, new))) == count


def test_a_notice_is_compared_as_people_read_it():
    """What it is about stands in front of its text, as in the runs that were recorded."""
    notice = {"kind": "few_samples", "text": "12 samples", "about": ["train", "deploy"]}

    assert plain({"warnings": [notice]}) == {"warnings": ["train and deploy: 12 samples"]}
