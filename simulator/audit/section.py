"""An audit: what came of every stack, and of every rule with its reason."""

from __future__ import annotations

from urllib.parse import quote

from simulator.report import rules
from simulator.report.reading import Run
from simulator.report.sections.section import Badge, Cell, Link, Section, Table, part
from simulator.report.words import PAGE
from simulator.results.audits import AuditedPair, AuditSummary

_KINDS = {
    rules.PASSED: "good", rules.FAILED: "bad", rules.ERROR: "bad", rules.UNDECIDED: "bad",
    rules.NOT_JUDGED: "bad",
}  # fmt: skip


@part(order=10)
def verdicts(run: Run[AuditSummary]) -> Section:
    """Show a row for each model and stack, with the way to its own report."""
    summary = run.summary
    return Section(
        "verdicts",
        "Stacks: what each loses, and whether its rules hold",
        f"What does each stack lose against {summary.train}?",
        tables=[
            Table(
                ["stack", "verdict", "report", "model", rules.units(summary.pairs), "flips",
                 "delta", "latency", "evidence"],
                [_train(summary), *(_row(summary, pair) for pair in summary.pairs)],
                "Every stack against the training stack",
                marked=frozenset(
                    at for at, pair in enumerate(summary.pairs, 1) if not pair.passed
                ),
            )
        ],
    )  # fmt: skip


@part(order=20)
def reasons(run: Run[AuditSummary]) -> Section:
    """Show every rule, what was found, and why the team has it; those that fail first."""
    summary = run.summary
    outcomes = sorted(summary.gate.rules, key=lambda rule: not rule.failed)
    rows: list[list[Cell]] = [
        [
            one.rule, f"{one.model} / {one.deploy}",
            Badge(rules.verdict(one), _KINDS[rules.verdict(one)]), rules.got(one), one.because,
        ]
        for one in outcomes
    ]  # fmt: skip
    return Section(
        "rules",
        "Rules: what was found, and why they are there",
        "Which rules hold, and what is the reason for each?",
        notes=["undecided: the samples do not give the figure; that fails the gate too."]
        if any(outcome.undecided for outcome in outcomes)
        else [],
        tables=[
            Table(
                ["rule", "model / stack", "verdict", "found", "because"],
                rows,
                "Every rule, those that fail first",
                marked=frozenset(at for at, outcome in enumerate(outcomes) if outcome.failed),
            )
        ],
    )


def _train(summary: AuditSummary) -> list[Cell]:
    own = rules.evidence(summary.stacks["train"])
    return [f"train: {summary.train}", "", "", "", "", "", "", "", own]


def _row(summary: AuditSummary, pair: AuditedPair) -> list[Cell]:
    stack = summary.stacks[pair.deploy]
    profile = "".join([stack.profile, *(f" +{override}" for override in stack.overrides)])
    reports: list[Badge | str | Link] = [Link("pair", f"{quote(pair.folder)}/{PAGE}")]
    if pair.tail:
        reports.append(Link("rounds", f"{quote(pair.tail)}/{PAGE}"))
    return [
        f"{pair.deploy}: {profile}",
        _verdict(summary, pair),
        reports,
        pair.model,
        *rules.cells(pair, stack),
    ]


def _verdict(summary: AuditSummary, pair: AuditedPair) -> Cell:
    if not summary.gate.rules:
        return "not judged"
    return Badge("passed", "good") if pair.passed else Badge("FAILED", "bad")
