"""What ``simulate latency`` and ``simulate tail`` print: whole words, every figure."""

import io
import re

import pytest
import tiny
from rich.console import Console

from simulator import cli, latency, tail
from simulator.latency import screen as timed
from simulator.notices import Kind
from simulator.report.verdict import line
from simulator.results.read import read_summary

STAGES = ("decode", "resize", "geometry", "normalize", "infer", "postprocess")
SCREENS = {"latency": timed.latency, "tail": timed.tail}


def write_log(path, data, rounds):
    """A device's log: of each round the milliseconds of every image."""
    images = sorted(str(file.relative_to(data)) for file in data.rglob("*.jpg"))
    lines = [
        f"{image},{number},{round(ms * 1e6)}"
        for number, one in enumerate(rounds)
        for image, ms in zip(images, one, strict=True)
    ]
    path.write_text("\n".join(["image,round,total_ns", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tiny model and its images, and a cache of their own."""
    folder = tmp_path_factory.mktemp("screens")
    tiny.card(folder / "model")
    tiny.data(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIPELINE_SIMULATOR_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def summaries(place):
    """Of three stacks side by side, and of a pair whose deployment was logged on a device."""
    inputs = {"model": place / "model" / "card.yaml", "data": place / "data"}
    bad = place / "data" / "red" / "[bold]no[nope].jpg"
    bad.write_bytes(b"no image")
    one = latency(
        ["pillow_fp32", "opencv_fp32", "pillow_fp32"], **inputs, queries=72, limit=7,
        fail_on=[
            "opencv_fp32.latency.p50 > 1s", "pillow_fp32-2.latency.p99 > 20ms", "skipped > 9",
        ],
        out=place / "one",
    ).summary  # fmt: skip
    bad.unlink()
    # Of ten rounds one is slow as a whole: each image is late in one of ten.
    log = write_log(place / "log.csv", place / "data", [[4.0] * 6] * 9 + [[30.0] * 6])
    two = tail(
        train="pillow_fp32", deploy="opencv_fp32", overrides=["deploy.runtime.threads=2"],
        **inputs, rounds=12, times=[f"deploy={log}"], deadlines_ms=[10, 12.5],
        fail_on=["deploy.tail_quality@10ms < 50%", "deploy.tail_quality@99 < 70%"],
        out=place / "two",
    ).summary  # fmt: skip
    return {"latency": one, "tail": two}


def screen(summary, width):
    """What is printed on a terminal of that many columns, without colors."""
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None, force_terminal=False)
    SCREENS[summary["command"]](summary, "runs/x", console)
    return file.getvalue()


def words(text):
    return " ".join(text.split())


BOTH = pytest.mark.parametrize("command", SCREENS)


@BOTH
def test_every_percentile_is_there_or_says_what_it_needs(summaries, command):
    text = screen(summaries[command], 120).partition("\nLatency, ms")[2]

    for rows in summaries[command]["percentiles"].values():
        for name, one in rows.items():
            (line,) = [line for line in text.splitlines() if line.split()[:1] == [name]]
            if one["ms"] is None:
                assert f"needs {one['needs']:,} more" in line
            else:
                figure = float(f"{one['ms']:.2g}")
                found = [float(number) for number in re.findall(r"\d+\.?\d*", line)]
                assert any(number == pytest.approx(figure, rel=0.06) for number in found)


@BOTH
def test_every_stack_note_and_rule_is_told_and_only_numbers(summaries, command):
    summary = summaries[command]
    text = words(screen(summary, 80))

    assert {side.split()[0] for side in summary["stacks"]} <= set(text.split())
    assert not re.search(r"\b(None|nan|inf|True|False)\b", text)
    for note in summary["warnings"]:
        assert words(f"note {note}") in text
    for rule in summary["gate"]["rules"]:
        verdict = "undecided" if rule["undecided"] else "FAILED" if rule["failed"] else "passed"
        assert f"gate {verdict} {rule['rule']}: " in text
        assert rule["reason"] is None or rule["reason"] in text
    assert text.endswith("run: runs/x") and "gate FAILED run:" in text


def test_what_a_rule_got_has_its_unit(summaries):
    one, two = (words(screen(summaries[command], 120)) for command in SCREENS)

    p50 = summaries["latency"]["latency_ms"]["opencv_fp32"]["total"]["p50"]
    assert f"opencv_fp32.latency.p50 > 1s: got {p50:.6g} ms" in one
    assert "deploy.tail_quality@10ms < 50%: got 0 %" in two
    assert "skipped > 9: got 1 " in one
    assert "skipped red/[bold]no[nope].jpg: read: " in one


def test_one_is_not_many(summaries):
    for command in SCREENS:
        text = screen(summaries[command], 120)
        assert not re.search(r"\b1 (rounds|inferences|threads|images|samples)\b", text)
    assert "12 rounds, 72 inferences, measured here, 1 thread\n" in re.sub(
        " +\n", "\n", screen(summaries["tail"], 120)
    )


def test_where_times_come_from(summaries):
    text = screen(summaries["tail"], 120)

    (deploy,) = [line for line in text.splitlines() if "recorded" in line]
    assert deploy.startswith("deploy") and "log.csv" in deploy
    assert "10 rounds, 60 inferences" in deploy and "measured here" not in deploy
    assert "opencv_fp32 +runtime.threads=2" in deploy


def test_the_figures_of_the_log(summaries):
    """Nine rounds in time and one late: on average 90 %, the worst 0 %, 10 % of answers late."""
    text = screen(summaries["tail"], 120)
    deploy = text.partition("\ndeploy   top-1")[2]
    (line,) = [line for line in deploy.splitlines() if line.split()[:1] == ["12.5ms"]][:1]

    assert line.split()[1:6] == ["12.50", "10.0%", "90.00%", "0.00%", "100.00%"]


def test_a_round_that_was_slow_as_a_whole_is_told(summaries):
    """Late one by one, six images in ten rounds would hardly ever all be late together."""
    told = summaries["tail"].warnings
    notice = [one for one in told if one.kind is Kind.SLOW_ROUNDS][-1]

    assert notice.about == ("deploy",)
    assert "10ms" in notice.text and "12.5ms" in notice.text


def test_ratios_say_of_what_and_how_they_were_measured(summaries):
    text = words(screen(summaries["latency"], 120))

    assert {*STAGES, "total"} <= set(text.split()) and "Stages, ms p50 / p90" in text
    for said in ("to warm up", "in turns of", "garbage collected", "preempted", "load", "cores"):
        assert said in text
    for side, one in summaries["latency"]["ratio"].items():
        assert re.search(
            rf"{side} takes {one['value']:.3f} .*pillow_fp32's time.*95 % interval", text
        )
    assert "ratio" not in screen(summaries["tail"], 120), "one of the two was not measured here"


def test_nothing_is_said_of_this_machine_where_nothing_ran_here(place):
    found = tail(
        ["pillow_fp32"], model=place / "model" / "card.yaml", data=place / "data",
        times=[str(write_log(place / "own.csv", place / "data", [[4.0] * 6]))],
        out=place / "logged",
    ).summary  # fmt: skip
    text = screen(found, 120)

    assert "to warm up" not in text and "garbage" not in text
    assert found["machine"]["cpu"] not in text


# The commands


OWN = {"latency": ("--queries", "30", "--limit", "6"), "tail": ("--rounds", "3")}


@BOTH
def test_what_is_piped_is_plain_and_120_wide(place, capsys, command):
    """The plan is explained on standard error."""
    inputs = ["--model", place / "model" / "card.yaml", "--data", place / "data"]
    more = ["--out", place / "shown", "--overwrite", "--explain-plan"]
    words_of = [command, "--profile", "pillow_fp32", *OWN[command], *inputs, *more]
    assert cli.main(list(map(str, words_of))) == 0
    out, err = capsys.readouterr()

    assert "decode" in err and "\x1b[" not in out
    _, summary = read_summary(place / "shown")
    expected = screen(summary, 120).replace("runs/x", str(place / "shown"))
    expected = f"{expected}report: {place / 'shown' / 'report.html'}\n"
    assert out.endswith(expected)
    assert words(out.removesuffix(expected)) == line(summary.verdict)


def help_of(capsys, command):
    with pytest.raises(SystemExit) as left:
        cli.main([command, "--help"])
    assert left.value.code == 0
    return capsys.readouterr().out


@BOTH
def test_help_says_what_it_does_with_an_example_that_parses(capsys, command):
    from simulator.analysis.gate import parse

    text = help_of(capsys, command)

    assert f"simulate {command} --profile" in text and "%%" not in text
    rules = re.findall(r'--fail-on "([^"]+)"', text)
    (named,) = re.findall(r'e\.g\.\s+"([^"]+)"; exit code 1', text)
    for rule in (*rules, named):
        assert parse(" ".join(rule.split())).op in "<>"
