"""Whatever a pair's summary says is on the screen or on the page: another value is seen there."""

import io
import json
from dataclasses import replace

import pytest
import tiny
import tiny_tasks
from rich.console import Console

import simulator
from simulator.analysis.figures import of_run
from simulator.report import page, terminal
from simulator.report.reading import read
from simulator.typed import Unit


def told(summary, values):
    """The summary with other values, by their paths."""
    content = json.loads(summary.model_dump_json(by_alias=True))
    for path, value in values.items():
        assert put(content, path.split("."), value), path
    return type(summary).model_validate_json(json.dumps(content))


def put(node, parts, value):
    """Change a value in place; keys may contain dots."""
    for length in range(1, len(parts) + 1):
        key, rest = ".".join(parts[:length]), parts[length:]
        if isinstance(node, list) and length == 1:
            key = int(key)
        elif isinstance(node, list) or key not in node:
            continue
        if not rest:
            node[key] = value
            return True
        if isinstance(node[key], dict | list) and put(node[key], rest, value):
            return True
    return False


def screen(run):
    out = io.StringIO()
    terminal.render(run.summary, "run", Console(file=out, width=200))
    return out.getvalue()


@pytest.fixture
def run(request, tmp_path, cache):
    """A finished pair with a value for each figure, and samples that one stack cannot answer."""
    make = tiny if request.param == "classification" else tiny_tasks
    task = () if make is tiny else (request.param,)
    simulator.compare(
        "pillow_fp32", "opencv_fp32", model=make.card(tmp_path / "model", *task),
        data=make.data(tmp_path / "data", *task), out=tmp_path / "run", report=False,
    )  # fmt: skip
    found = read(tmp_path / "run")
    known = {
        one.path: 3 if one.about.unit is Unit.COUNT else 0.25
        for one in of_run(found.summary)
        if one.held and (one.value is None or one.path.startswith("failed."))
    }
    return replace(found, summary=told(found.summary, known))


@pytest.mark.parametrize("run", ["classification", "detection", "segmentation"], indirect=True)
def test_another_value_of_a_figure_is_seen(run):
    before = screen(run), page.html(run)
    unseen = []
    for one in of_run(run.summary):
        if one.held and not one.about.hidden:
            step = 7 if isinstance(one.value, int) else 0.37
            other = replace(run, summary=told(run.summary, {one.path: one.value + step}))
            if screen(other) == before[0] and page.html(other) == before[1]:
                unseen.append(one.path)

    assert unseen == []
    assert len(of_run(run.summary)) > 100
