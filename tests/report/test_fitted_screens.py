"""The widest screens at 80 and 120 columns: no line wider, no word broken, every figure there."""

import functools
import importlib.util
import re
from collections import Counter
from functools import partial

import pytest
import tiny
import yaml
from rich.console import Console

from simulator import cli
from simulator.cache import VARIABLE
from simulator.cli.experiment import show
from simulator.command.experiment import EXPERIMENTS
from simulator.experiments.job import Result
from simulator.report.fitted import Fitted
from simulator.results.read import read_summary

WIDTHS = pytest.mark.parametrize("width", [80, 120])
PATHS = ("run: ", "report: ", "next: ", "in it: ", "model card: ")
"""How lines begin that hold a path; they are one line, for whoever copies them."""
WHOLE = 1000
"""Columns in which nothing has to be folded."""
STACKS = ["pillow_fp32", "pillow_bilinear_fp32", "opencv_fp32", "nv12_fp32",
    "gstreamer_i420_fp32", "deepstream_letterbox_fp32"]  # fmt: skip
PAIR = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--set", "deploy.color.order=bgr"]
DOCUMENTS = {
    "SWEEP": {
        "schema": 1, "name": "trial", "summary": "many columns", "train": "pillow_fp32",
        "columns": {
            f"{kind}_resizers": {
                one: {"resize": one} for one in ("opencv-nearest", "pil-box", "opencv-area")
            }
            for kind in ("optical", "photographic", "thermographic", "tomographic", "aerial")
        },
    },
    "REPAIR": {
        "schema": 1, "name": "trial", "summary": "two axes",
        "axes": {
            "color": {"the_order_of_the_model": {
                "set": {"color.order": "model"}, "cost": {"hours": 12, "memory_mib": 640},
            }},
            "resizing": {
                f"{one}-{kind}": {"set": {"resize": f"{one}-{kind}"}, "cost": {"ms": 1.5}}
                for one in ("opencv", "pil") for kind in ("nearest", "bicubic", "lanczos")
            },
        },
    },
    "CONDITIONS": {
        "schema": 1, "name": "mine", "summary": "two",
        "conditions": {"digital": {"jpeg": ["jpeg:60", "jpeg:1"]}, "weather": {"fog": ["fog:3"]}},
    },
    "CAMPAIGN": {
        "schema": 1, "name": "mine", "summary": "", "targets": ["weights"], "faults": 60,
        "bits": [30],
    },
}  # fmt: skip
JOBS = {
    "sweep": ["sweep", "--suite", "SWEEP"],
    "repair": ["repair", *PAIR, "--options", "REPAIR", "--gate", "flip_rate < 1%"],
    "robustness": ["robustness", "--suite", "CONDITIONS"],
    "faults": ["faults", "--campaign", "CAMPAIGN"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tiny model of convolutions, images, documents, and a cache of their own."""
    folder = tmp_path_factory.mktemp("fitted")
    tiny.card(folder / "colors")
    tiny.data(folder / "images", 3)
    for name, spec in DOCUMENTS.items():
        (folder / name).write_text(yaml.safe_dump(spec, sort_keys=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder / "cache"))
        yield folder


@pytest.fixture(scope="module")
def inputs(place):
    return ["--model", str(place / "colors" / "card.yaml"), "--data", str(place / "images")]


@pytest.fixture(scope="module")
def runs(place, inputs):
    """A function from a job to its run folder."""

    def run(job):
        folder = place / "runs" / job
        if not folder.exists():
            words = [str(place / word) if word in DOCUMENTS else word for word in JOBS[job]]
            if job in ("faults", "robustness"):
                words += [word for stack in STACKS for word in ("--profile", stack)]
            assert cli.main([*words, *inputs, "--out", str(folder), "--json"]) in (0, 1)
        return folder / "colors" if job in ("sweep", "robustness") else folder

    return run


def words(text):
    """The words of a screen and how often each is there; a name may be folded at / and +."""
    return Counter(re.split(r"\s+|(?<=\w[/+])(?=[^\W\d])|─+", text))


def check(narrow, whole, width):
    long = [one for one in narrow.splitlines() if len(one) > width and not one.startswith(PATHS)]
    assert not long
    assert not words(whole) - words(narrow)
    assert "…" not in narrow


@pytest.fixture
def printed(monkeypatch, capsys):
    """A function from what prints, and a width, to what it printed."""

    def show(print_it, width):
        monkeypatch.setenv("COLUMNS", str(width))
        capsys.readouterr()
        print_it()
        return "".join(capsys.readouterr())

    return show


@WIDTHS
@pytest.mark.parametrize("job", JOBS)
def test_tables_of_a_job_fit(runs, printed, job, width):
    folder = runs(job)
    result = Result(read_summary(folder)[1], folder)
    shown = partial(show, EXPERIMENTS.of(job), [result], as_json=False)
    narrow, whole = (printed(shown, each) for each in (width, WHOLE))

    check(narrow, whole, width)
    if job in ("faults", "robustness"):
        assert set(STACKS) <= set(words(narrow))


@WIDTHS
def test_what_changed_between_two_runs_fits(place, inputs, runs, printed, width):
    old, new = place / "old", place / "new"
    if not new.exists():
        assert cli.main(["--quick", *PAIR, *inputs, "--out", str(old), "--json"]) == 0
        pair = ["--train", "pillow_fp32", "--deploy", "pillow_fp32", "--under", "fog:3"]
        other = tiny.card(place / "pooled", tiny.pooled())
        assert cli.main(["--quick", *pair, *inputs, "--model", str(other), "--out", str(new)]) == 0
    narrow, whole = (
        printed(lambda: cli.main(["compare-runs", str(old), str(new)]), each)
        for each in (width, WHOLE)
    )

    check(narrow, whole, width)
    assert all(re.match(r" {2,4}\S|[A-Z0-9]|$", one) for one in narrow.splitlines())


@pytest.mark.skipif(
    importlib.util.find_spec("onnx2torch") is None, reason="onnx2torch is not installed"
)
@WIDTHS
def test_what_was_learned_fits(place, printed, width):
    card = tiny.card(place / "learned", tiny.classifier())
    line = ["finetune", "--model", str(card), "--data", str(place / "images"), "--epochs", "1",
        "--batch", "4", "--threads", "1", "--profile", "pillow_fp32"]  # fmt: skip
    screens = []
    for each in (width, WHOLE):
        out = ["--out", str(place / f"tuned-{width}-{each}")]
        screens.append(printed(functools.partial(cli.main, [*line, *out]), each))

    check(*(text.replace(f"-{width}-{WHOLE}", f"-{width}-{width}") for text in screens), width)
    assert "of the images held out are right" in " ".join(screens[0].split())


def drawn(width, *columns, rows, **options):
    table = Fitted(*columns, **options)
    for row in rows:
        table.add_row(*row)
    console = Console(width=width, color_system=None)
    with console.capture() as found:
        console.print(table)
    return [line.rstrip() for line in found.get().splitlines() if line.strip(" ─")]


ROWS = [["decoder/ffmpeg-bicubic", "-1.00 to 22.03 points", "12 %"], ["deploy", "–", "3 %"]]


def test_a_table_is_no_wider_than_it_must_be_and_folds_at_spaces_first():
    assert drawn(80, "stack", "interval", "flips", rows=ROWS, right=1) == [
        " stack                                 interval   flips",
        " decoder/ffmpeg-bicubic   -1.00 to 22.03 points    12 %",
        " deploy                                       –     3 %",
    ]
    assert drawn(49, "stack", "interval", "flips", rows=ROWS, right=1) == [
        " stack                          interval   flips",
        " decoder/ffmpeg-bicubic         -1.00 to    12 %",
        "                            22.03 points",
        " deploy                                –     3 %",
    ]


def test_names_fold_behind_a_slash_and_then_columns_go_below_each_other():
    narrow = drawn(40, "stack", "interval", "flips", rows=ROWS, right=1)
    below = drawn(30, "stack", "interval", "flips", rows=ROWS, right=1)

    assert [line.split()[0] for line in narrow] == ["stack", "decoder/", "ffmpeg-bicubic", "deploy"]
    assert [line.split()[0] for line in below].count("deploy") == 2
    heads = [line.split() for line in below if line.split()[0] == "stack"]
    assert heads == [["stack", "interval"], ["stack", "flips"]]


def test_a_word_wider_than_the_terminal_is_folded_and_nothing_is_lost():
    found = drawn(20, "name", "n", rows=[["x" * 50, "7"]])

    assert max(map(len, found)) <= 20
    assert sum(line.count("x") for line in found) == 50 and any("7" in line for line in found)


def test_room_is_what_rich_takes_for_edges_and_gaps():
    """A table exactly as wide as the terminal has the widths that its columns ask for."""
    for number in (1, 2, 5):
        (line, *_) = drawn(11 * number - 1 + 2, *["x" * 8] * number, rows=[])
        assert len(line.strip()) == 8 * number + 3 * (number - 1)


@WIDTHS
@pytest.mark.parametrize("command", ["", *cli.names()])
def test_help_fits_and_its_examples_are_still_commands(printed, command, width):
    def ask():
        with pytest.raises(SystemExit):
            cli.main([*filter(None, [command]), "--help"])

    narrow, whole = (re.sub(r" \\\n +", " ", printed(ask, each)) for each in (width, WHOLE))
    examples = [" ".join(one.split()) for one in whole.splitlines() if one.startswith("  simulate")]

    assert max(map(len, printed(ask, width).splitlines())) <= width
    assert all(one in " ".join(narrow.split()) for one in examples)
