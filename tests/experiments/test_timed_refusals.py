"""What ``simulate latency`` and ``simulate tail`` refuse in a line, before anything is run."""

import pytest
from timed_runs import JOBS, board, one_line

ONE = ("--profile", "pillow_fp32")
RULES = {
    "latency": [
        ("deploy.latency.p99 > 5%", "is a time: use us, ms or s"),
        ("deploy.latency.p98 > 20ms", "deploy.latency.p99"),
        ("deploy.latency.inver.p90 > 1ms", "deploy.latency.infer.p90"),
        ("dploy.latency.p99 > 20ms", "deploy.latency.p99"),
        ("train.latency.p99 > 20ms", "deploy.latency.p99"),
        ("deploy.tail_quality@99 < 70%", "which this run does not have"),
        ("flip_rate > 1%", "which this run does not have"),
        ("ratio.deploy.value > 1.1", "ratio.deploy.value, which this run does not have"),
        ("deploy.latency.p99", "cannot read the rule"),
    ],
    "tail": [
        ("deploy.tail_quality@12ms < 70%", "deploy.tail_quality@10ms"),
        ("deploy.tail_quality@98 < 70%", "deploy.tail_quality@99"),
        ("deploy.tail_quality@p99 < 70%", "deploy.tail_quality@99"),
        ("deploy.tail_quality < 70%", "deploy.tail_quality@"),
        ("train.tail_quality@99 < 70%", "deploy.tail_quality@99"),
        ("deploy.tail_quality@99 < 70", "write 70% or 7000%"),
        ("deploy.tail_quality@99 < 70ms", "is not a time"),
        ("deploy.latency.p99 > 70%", "is a time: use us, ms or s"),
        ("ratio.deploy.value > 2", "which this run does not have"),
    ],
}
ARGUMENTS = {
    "latency": [
        ("--queries 0", "--queries must be at least 1, got 0"),
        ("--queries -1", "--queries must be at least 1, got -1"),
        ("--limit 0", "limit must be at least 1, got 0"),
        ("--seed -1", "seed must be at least 0"),
        ("--workers 0", "workers must be at least 1"),
        ("--memory 0", "memory must be at least 1"),
        ("--train pillow_fp32", "give --profile, once or more, or both --train and --deploy"),
        ("--set train.runtime.threads=2", "expected with"),
        ("--set deploy.runtime.thread=2", "unknown key 'thread'; did you mean 'threads'?"),
        ("--set deploy", "--set deploy: "),
        ("--profile pilow_fp32", "unknown profile 'pilow_fp32'; did you mean 'pillow_fp32'?"),
        ("--profile opencv_fp32 --set deploy.runtime.threads=2", "pillow_fp32 or opencv_fp32"),
    ],
    "tail": [
        *((f"--deadline-ms {ms}", "--deadline-ms must be") for ms in ("0", "nan", "-1")),
        ("--deadline-ms inf", "got inf"),
        ("--rounds 0", "--rounds must be auto or at least 1, got 0"),
        ("--rounds -5", "--rounds must be auto or at least 1, got -5"),
        ("--scenario Server", "unknown scenario 'Server'"),
        ("--samples-per-query 4", "--samples-per-query is for MultiStream, and not for Singl"),
        ("--scenario MultiStream --samples-per-query 0", "must be at least 1, got 0"),
        ("--batch 4 --scenario SingleStream", "SingleStream sends one sample at a time"),
        ("--batch 4 --samples-per-query 6", "queries of 6 samples cannot be batches of 4"),
        ("--max-rounds 0", "--max-rounds must be at least 1"),
        *((f"--max-minutes {minutes}", "--max-minutes") for minutes in ("0", "nan", "inf")),
        ("--limit 0", "limit must be at least 1, got 0"),
        ("--set train.runtime.threads=2", "expected with"),
    ],
}
DEADLINES = [
    *(f"--scenario Server --qps 50 --deadline-ms {ms}" for ms in ("0", "-1", "nan", "inf", "1e30")),
    "--scenario Offline --deadline-ms 5", "--deadline-ms 5",
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("alone")


@pytest.mark.parametrize(
    ("command", "words", "says"),
    [
        *((job, words.split(), says) for job, of in ARGUMENTS.items() for words, says in of),
        *(("latency", ["--fail-on", rule], says) for rule, says in RULES["latency"]),
        *(("tail", ["--rounds", "1", "--deadline-ms", "10", "--fail-on", rule], says)
          for rule, says in RULES["tail"]),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_or_judged(simulate, tmp_path, command, words, says):
    assert says in one_line(simulate(command, *ONE, *words))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", DEADLINES)
def test_a_deadline_that_cannot_be_meant(simulate, tmp_path, words):
    pytest.importorskip("mlperf_loadgen")
    assert "--deadline-ms" in one_line(simulate("latency", *ONE, *words.split()))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [[], ["--train", "pillow_fp32"], ["--deploy", "opencv_fp32"]])
@pytest.mark.parametrize("command", JOBS)
def test_no_stack_or_half_a_pair(simulate, command, words):
    message = one_line(simulate(command, *words))

    assert message == "give --profile, once or more, or both --train and --deploy"


@pytest.mark.parametrize("rule", ["ratio.train.value > 1.1", "ratio.train.ci95.0 > 1.1"])
def test_the_first_stack_has_no_ratio_to_itself(simulate, rule):
    pair = ("latency", "--train", "pillow_fp32", "--deploy", "pillow_fp32", "--queries", "10")

    assert "ratio.deploy" in one_line(simulate(*pair, "--fail-on", rule))


def test_a_recorded_stack_without_latencies(simulate, card, data, tmp_path):
    message = one_line(simulate("latency", "--profile", board(tmp_path, card, data)))

    assert "no latency" in message
    assert "--times deploy" not in message, "latency has no such option"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        *(("latency", words) for words in (["--queries", "many"], ["--times", "x.csv"], ["stray"])),
        *(("tail", ["--rounds", rounds]) for rounds in ("five", "2.5", "")),
    ],
)
def test_arguments_that_do_not_parse(simulate, command, words):
    code, out, err = simulate(command, *ONE, *words)

    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.endswith(
        f"simulate {command} --help lists the options\n"
    )
    if command == "tail":
        assert "--rounds" in err and "auto" in err.splitlines()[-1] and "_rounds" not in err


@pytest.mark.parametrize("command", JOBS)
def test_nothing_left(simulate, data, command):
    for image in data.rglob("*.jpg"):
        image.write_bytes(b"I am not an image")

    message = one_line(simulate(command, *ONE))

    assert "none of 6 images could go through every stack; the first: blue/blue0.jpg" in message
