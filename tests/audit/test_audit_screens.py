"""What an audit and its replay print on 80 columns: the verdict first, a block for each pair."""

import tiny
from audits import document

from simulator import cli, replay
from simulator.cli.experiment import show
from simulator.command.experiment import EXPERIMENTS
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


def test_an_audit_and_its_replay_say_their_verdict_first(card, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    data = tiny.data(tmp_path / "data", each=2)
    asked, out = document(tmp_path, card, data), tmp_path / "audit"

    assert cli.main(["audit", str(asked), "--out", str(out)]) == 1
    text = capsys.readouterr().out
    check(read_summary(out)[1], text)
    assert "tiny / bgr\n  images    6" in text
    assert "1 of 2 rules fails, on 1 of 2 pairs: bgr (tiny)." in words(text)

    again = replay(str(out / "bundle.zip"), models=[str(card)], images=[str(data)],
                   out=tmp_path / "again")  # fmt: skip
    show(EXPERIMENTS.of("replay"), [again], as_json=False)
    check(again.summary, capsys.readouterr().out)
