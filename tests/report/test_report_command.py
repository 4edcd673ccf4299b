"""``simulate report``, and the report that every command writes at its end."""

import json
import os
import re
import resource
import signal
import subprocess
import sys

import pytest
from command_lines import BGR, COMMANDS, PAIR
from made_pairs import pair

from simulator import cli, compare
from simulator.command.options import Progress
from simulator.errors import RunError
from simulator.report import page


@pytest.fixture
def folder(tmp_path):
    """A run of two images, one of which flips."""
    return pair(tmp_path / "run", [0, 1], [0, 0], [0, 1])


@pytest.fixture
def said(capsys):
    """A function from a command line to its exit code, and what it printed on either stream."""

    def run(*words):
        code = cli.main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run


def one_line(found):
    """The one line of an error that is the user's to fix."""
    code, out, err = found
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", err), err
    return err


def test_the_report_is_written_into_the_run(folder, said):
    assert said("report", folder) == (0, f"report: {folder / 'report.html'}\n", "")
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_report_goes_where_it_is_asked_for(folder, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert said("report", folder, "--out", "mine.html") == (0, "report: mine.html\n", "")
    assert (tmp_path / "mine.html").is_file() and not (folder / "report.html").exists()


def test_the_same_run_gives_the_same_bytes(folder, said):
    first = page.write(folder).read_bytes()

    assert said("report", folder)[0] == 0
    assert (folder / "report.html").read_bytes() == first
    assert sorted(os.listdir(folder)) == [
        "manifest.json", "records.parquet", "report.html", "summary.json",
    ]  # fmt: skip


def test_a_reader_never_sees_half_a_page(folder, monkeypatch):
    """Until the new page is whole, its name is that of the old one."""
    place = folder / "report.html"
    place.write_text("the old page")
    seen = []

    def replaced(draft, target):
        seen.append((place.read_text(), os.path.getsize(draft) > 600_000, target))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replaced)
    with pytest.raises(RunError, match="No space left on device"):
        page.write(folder)

    assert seen == [("the old page", True, place)]
    assert place.read_text() == "the old page" and len(os.listdir(folder)) == 4


def missing(folder):
    (folder / "summary.json").unlink()


def interrupted(folder):
    (folder / "manifest.json").write_text('{"status": "interrupted"}')


def truncated(folder):
    records = folder / "records.parquet"
    records.write_bytes(records.read_bytes()[:-9])


def written(name, change):
    """A change of a JSON file of the run."""

    def damage(folder):
        place = folder / f"{name}.json"
        content = json.loads(place.read_text(encoding="utf-8"))
        found = change(content)
        place.write_text(json.dumps(content if found is None else found), encoding="utf-8")

    return damage


def without(key):
    return lambda content: content.pop(key) and None


def with_value(key, value):
    return lambda content: content.update({key: value})


DAMAGES = {
    "no summary": missing,
    "interrupted": interrupted,
    "records cut off": truncated,
    "records of something else": lambda folder: (folder / "records.parquet").write_bytes(b"PAR1"),
    "half a summary": lambda folder: (folder / "summary.json").write_text('{"samples": 1'),
    "a summary that is a list": written("summary", lambda content: [content]),
    "a manifest that is a list": written("manifest", lambda content: [content]),
    "an unknown command": written("manifest", lambda content: content["request"].update(command=1)),
    "an unknown task": written("summary", with_value("task", "guessing")),
    "a delta that is a list": written("summary", with_value("delta", [])),
    "flips without counts": written("summary", with_value("flips", {})),
    "flips that are numbers": written("summary", with_value("worst_flips", [1])),
    "a gate of words": written("summary", with_value("gate", {"passed": True, "rules": ["a"]})),
    "an interval of three": written(
        "summary",
        lambda content: content["delta"]["top1"].update(ci95=[0, 1, 2]),
    ),
    "latencies without stages": written("summary", with_value("latency_ms", {"train": {}})),
    **{f"no {key} in the summary": written("summary", without(key))
       for key in ("samples", "metric", "delta", "flips", "train", "gate", "worst_flips")},
    **{f"no {key} in the manifest": written("manifest", without(key))
       for key in ("request", "machine", "model", "data", "stacks", "created")},
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_run_is_refused_in_one_line(folder, said, kind):
    DAMAGES[kind](folder)

    assert str(folder) in one_line(said("report", folder))
    assert not list(folder.glob("*.html")) and not list(folder.glob(".*"))


def test_what_is_no_run_is_refused_in_one_line(said, tmp_path):
    (tmp_path / "file").write_text("a")

    for name in (".", "nowhere", "file"):
        assert "not a run" in one_line(said("report", tmp_path / name))


@pytest.mark.parametrize("out", [".", "..", "/", "missing/report.html", "a/b", "x" * 300])
def test_a_place_that_takes_no_file_is_refused_in_one_line(
    folder, said, tmp_path, monkeypatch, out
):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a").write_text("a file")
    monkeypatch.chdir(tmp_path / "here")

    assert "cannot be written" in one_line(said("report", folder, "--out", out))
    assert sorted(os.listdir()) == ["a"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")
def test_a_folder_that_cannot_be_written_is_told_in_one_line(folder, said):
    assert "cannot be written" in one_line(said("report", folder, "--out", "/proc/self/a.html"))


def test_a_full_disk_is_told_in_one_line_and_leaves_nothing(folder):
    """No file may be larger than half a megabyte: what a full disk does to a page, in a process."""

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))

    code = "import sys; from simulator.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "report", str(folder)],
        capture_output=True, text=True, preexec_fn=limited, timeout=600,
    )  # fmt: skip

    assert "cannot be written" in one_line((done.returncode, done.stdout, done.stderr))
    assert sorted(os.listdir(folder)) == ["manifest.json", "records.parquet", "summary.json"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_leaves_a_report_and_prints_json_alone(runs, name):
    folder, printed = runs(name)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))

    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(printed) == ([summary] if name == "sweep" else summary)


def test_people_are_told_where_the_report_is(card, data, cache, tmp_path, said):
    code, out, _ = said(*PAIR, "--model", card, "--data", data, "--out", tmp_path / "run")

    assert code == 0
    assert out.splitlines()[-2:] == [
        f"run: {tmp_path / 'run'}",
        f"report: {tmp_path / 'run' / 'report.html'}",
    ]


class Stops(Progress):
    """Is interrupted by its user at the first sample."""

    def advance(self, done, total):
        raise KeyboardInterrupt


def test_a_run_that_replaces_another_takes_its_report_away(card, data, cache, tmp_path):
    out = tmp_path / "run"
    inputs = {"model": card, "data": data, "out": out}
    compare("pillow_fp32", "pillow_fp32", **inputs)
    page.write(out)
    assert (out / "report.html").is_file()

    with pytest.raises(KeyboardInterrupt):
        compare("pillow_fp32", "pillow_fp32", **inputs, overwrite=True, progress=Stops())

    assert not (out / "report.html").exists()
    with pytest.raises(RunError, match="the run is interrupted, not complete"):
        page.write(out)


def test_a_run_that_was_resumed_has_a_report(card, data, cache, tmp_path, said):
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        compare(
            "pillow_fp32", "pillow_fp32", model=card, data=data, out=out, progress=Stops(),
            overrides=[BGR[1]],
        )  # fmt: skip

    code, out_text, _ = said("resume", out)

    assert code == 0 and f"report: {out / 'report.html'}" in out_text
    assert "4 of 6 answers change" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words", [["--help"], ["report", "--help"], ["profiles", "check", "pillow_fp32"]]
)
def test_what_draws_no_page_starts_without_what_draws_it(words):
    code = (
        "import sys\nfrom simulator.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "found = {'plotly', 'jinja2', 'markupsafe'} & set(sys.modules)\nprint(sorted(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=600
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"
