"""What an audit and its replay print on 80 columns: the verdict first, a block for each pair."""

from simulator import replay
from simulator.cli.experiment import show
from simulator.command.experiment import EXPERIMENTS
from simulator.experiments.job import Result
from simulator.report.verdict import line
from simulator.results.read import read_summary

PATHS = ("run: ", "report: ", "next: ", "stated, not verified: ")
"""How lines begin that hold a path or are one line for whoever searches them."""


def words(text):
    return " ".join(text.split())


def check(summary, text):
    assert words(text).startswith(line(summary.verdict))
    long = [one for one in text.splitlines() if len(one) > 80 and not one.startswith(PATHS)]
    assert not long


def test_an_audit_and_its_replay_say_their_verdict_first(finished, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    summary = read_summary(finished.folder)[1]
    show(EXPERIMENTS.of("audit"), [Result(summary, finished.folder)], as_json=False)
    text = capsys.readouterr().out
    check(summary, text)
    assert "tiny / bgr\n  images    6" in text
    assert "1 of 2 rules fails, on 1 of 2 pairs: bgr (tiny)." in words(text)

    given = {"models": [str(finished.card)], "images": [str(finished.data)]}
    again = replay(str(finished.bundle), out=tmp_path / "again", **given)
    show(EXPERIMENTS.of("replay"), [again], as_json=False)
    check(again.summary, capsys.readouterr().out)
