"""What every job takes besides its own arguments, and that a run can be asked for again."""

import gc
import inspect
import json
import pydoc
import re
import sys
from dataclasses import fields

import pytest
import tiny_tasks
import yaml
from made_suite import written
from timed_runs import MEASURED, shape

import simulator
from simulator import cli, explain, latency, repair, sweep, tail, worst
from simulator.command.experiment import EXPERIMENTS
from simulator.command.options import Options, Progress, Samples, Under
from simulator.errors import UserError

RGB = {"set": {"color.order": "model"}, "cost": {}}
REPAIRS = {"schema": 1, "name": "mine", "summary": "one axis", "axes": {"order": {"rgb": RGB}}}


@pytest.fixture
def jobs(card, cache, tmp_path):
    """Every job that can be resumed, as a function of the options alone; it returns one result."""
    suite = written(tmp_path)
    repairs = tmp_path / "repairs.yaml"
    repairs.write_text(yaml.safe_dump(REPAIRS))
    pair = {
        "train": "pillow_fp32",
        "deploy": "pillow_fp32",
        "overrides": ["deploy.color.order=bgr"],
    }
    calls = {
        "run": lambda **options: simulator.compare(**pair, model=card, **options),
        "explain": lambda **options: explain(**pair, model=card, **options),
        "diagnose": lambda **options: simulator.diagnose(**pair, model=card, **options),
        "sweep": lambda **options: sweep(suite, models=[card], **options)[0],
        "worst": lambda **options: worst(suite, model=card, **options),
        "repair": lambda **options: repair(
            **pair, gate=["flip_rate < 90%"], repairs=str(repairs), model=card, **options
        ),
        "latency": lambda **options: latency(**pair, model=card, queries=12, **options),
        "tail": lambda **options: tail(**pair, model=card, rounds=3, **options),
    }
    assert set(calls) == {*JOBS_NAMED}
    gc.freeze()
    return calls


DOCUMENTED = {"audit", "replay", "robustness", "faults", "identify"}
"""Jobs whose images, limit or conditions a document says; they have tests of their own."""
JOBS_NAMED = [one.name for one in EXPERIMENTS if one.summary and one.name not in DOCUMENTED]
JOBS = pytest.mark.parametrize("command", JOBS_NAMED)


class Told(Progress):
    """Counts the samples, and is interrupted after *stop* of them."""

    def __init__(self, stop=None):
        self.samples, self.stop = 0, stop

    def advance(self, done, total):
        self.samples += 1
        if self.samples == self.stop:
            raise KeyboardInterrupt


@JOBS
def test_an_unknown_option_is_a_type_error_before_anything_is_done(jobs, command, tmp_path):
    with pytest.raises(TypeError, match="unknown option 'limt'; did you mean 'limit'"):
        jobs[command](limt=3, out=tmp_path / "out")

    assert not (tmp_path / "out").exists()


@JOBS
def test_every_option_arrives(jobs, command, data, tmp_path):
    told, reported = Told(), []

    def report(folder):
        found = json.loads((folder / "manifest.json").read_text())
        reported.append((folder, found["status"], (folder / "summary.json").is_file()))

    options = {
        "data": data, "limit": 4, "seed": 3, "out": tmp_path / "out", "overwrite": False,
        "resume": False, "report": report, "workers": 1, "memory": 64, "progress": told,
        "under": "flip:22", "trial": 2, "executor": "local", "isolate": "always",
        "python": sys.executable, "allow_code": True,
    }  # fmt: skip
    assert set(options) == {
        one.name for group in (Samples, Under, Options) for one in fields(group)
    }

    result = jobs[command](**options)

    manifest = json.loads((result.folder / "manifest.json").read_text())
    asked = manifest["request"]["arguments"]
    assert result.folder.is_relative_to(tmp_path / "out")
    assert samples(result) == 4
    assert (asked["limit"], asked["seed"], asked["data"]) == (4, 3, str(data.resolve()))
    assert (asked["under"], asked["trial"]) == ("flip:22", 2)
    assert (asked["isolate"], manifest["isolate"]) == ("always", "always")
    assert (asked["python"], asked["allow_code"]) == (sys.executable, True)
    assert (manifest["under"]["text"], manifest["under"]["trial"]) == ("flip:22", 2)
    assert told.samples >= 4
    assert reported == [(result.folder, "reporting", True)]
    assert manifest["status"] == "complete"
    with pytest.raises(UserError, match="overwrite"):
        jobs[command](**options)
    assert samples(jobs[command](**options | {"overwrite": True})) == 4


def samples(result):
    """A repair looks for its answer on one half and confirms it on the other."""
    return result.summary["samples"] + result.summary.get("searched", 0)


@pytest.mark.parametrize(("option", "value"), [("workers", 0), ("memory", 0), ("limit", 0)])
@JOBS
def test_options_that_make_no_sense_are_refused(jobs, command, option, value, data, tmp_path):
    with pytest.raises(UserError, match=option):
        jobs[command](data=data, out=tmp_path / "out", **{option: value})


@JOBS
def test_an_interrupted_job_is_asked_again(jobs, command, data, tmp_path, capsys):
    """Of six images three are through when it stops; what it then says is the same."""
    options = {"data": data, "limit": 6, "seed": 3, "under": "flip:22", "trial": 1}
    whole = jobs[command](**options, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        jobs[command](**options, out=tmp_path / "out", progress=Told(stop=3))
    folder = tmp_path / "out" / whole.folder.relative_to(tmp_path / "whole")

    assert cli.main(["resume", str(folder), "--json"]) == (1 if whole.passed is False else 0)

    assert json.loads((folder / "manifest.json").read_text())["status"] == "complete"
    again = json.loads((folder / "summary.json").read_text())
    expected = json.loads((whole.folder / "summary.json").read_text())
    passing = MEASURED if command in ("latency", "tail") else {"seconds", "workers", "latency_ms"}
    calm = [
        [notice for notice in one["warnings"] if notice["kind"] != "busy_machine"]
        for one in (again, expected)
    ]
    assert calm[0] == calm[1]
    passing = {*passing, "warnings"} | ({"verdict"} if passing is MEASURED else set())
    assert {k: v for k, v in again.items() if k not in passing} == {
        k: v for k, v in expected.items() if k not in passing
    }
    assert shape(again) == shape(expected)
    printed = json.loads(capsys.readouterr().out)
    assert printed == ([again] if command == "sweep" else again)


def test_help_says_what_the_options_are():
    page = pydoc.plain(pydoc.render_doc(simulator.compare))

    names = list(inspect.signature(simulator.compare).parameters)
    assert [name for name in names if not re.search(rf"\b{name}: \w+ \w+", page)] == []


@pytest.mark.parametrize("job", [sweep, worst])
def test_annotated_images_without_a_single_object_have_no_headline(job, cache, tmp_path):
    """Nothing is to be found, so mAP is no number, though every image has its annotations."""
    model = tiny_tasks.card(tmp_path / "model")
    data = tiny_tasks.data(tmp_path / "data")
    boxes = data.with_name("boxes.json")
    boxes.write_text(json.dumps(json.loads(boxes.read_text()) | {"annotations": []}))
    which = {"models": [model]} if job is sweep else {"model": model}

    with pytest.raises(UserError, match="mAP; give data with labels"):
        job(written(tmp_path), data=data, out=tmp_path / "out", **which)
