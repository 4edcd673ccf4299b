"""An audit as Markdown, for the comment on a pull request.

Names and reasons are data: what Markdown, HTML or GitHub would make of them is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from simulator.report.rules import (
    ERROR,
    FAILED,
    NOT_JUDGED,
    UNDECIDED,
    cells,
    evidence,
    got,
    notes,
    units,
    verdict,
)
from simulator.report.verdict import WORDS, line
from simulator.report.verdict import verdict as told
from simulator.report.words import count
from simulator.results.audits import AuditedRule, AuditedStack, AuditSummary

MOST = 60_000
"""Bytes; GitHub takes 65,536 characters in a comment."""
_CELL = 240
"""Characters of one name, reason or figure."""
_SAID = 2_000
"""Characters of the verdict."""
_DECISIONS = {"ok": "✅", "not ok": "❌", "undecided": "⚠️", "not judged": "❌"}
_MARKS = {FAILED: "❌", ERROR: "⚠️", UNDECIDED: "⚠️", NOT_JUDGED: "❌"}
_ESCAPED = re.compile(r"([\\`*_\[\]<>#|~$&:@])")
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def comment(summary: AuditSummary, digest: str) -> str:
    """Return ``audit.md``, below :data:`MOST` bytes whatever the audit holds.

    Args:
        summary: of an audit.
        digest: SHA-256 of its bundle.
    """
    rules = summary.gate.rules
    bad = [_rule(rule) for rule in rules if rule.failed]
    good = [_rule(rule) for rule in rules if not rule.failed]
    noted = [f"- {escaped(note)}" for note in notes(summary.pairs)]
    page = _Page(_head(summary))
    page.section("", _table(summary), "pairs", "summary.json")
    if bad:
        page.section("**Rules that failed**", bad, "rules", "junit.xml")
    if good:
        page.folded(f"{count(len(good), 'rule')} passed", good, "rules", "junit.xml")
    if noted:
        page.folded(count(len(noted), "note"), noted, "notes", "summary.json")
    end = f"Bundle: `bundle.zip`, SHA-256 `{digest}`; check it with `simulate verify`."
    return page.text(end)


def escaped(text: object, most: int = _CELL) -> str:
    """Return text that reads as it is written, on one line, and neither links nor mentions.

    Args:
        text: what to write.
        most: characters of it; the rest is left out.
    """
    words = " ".join(_INVISIBLE.sub(" ", str(text)).split())
    if len(words) > most:
        words = f"{words[: most - 1]}…"
    words = _ESCAPED.sub(r"\\\1", words)
    words = words.replace("\\@", "@\u200b")  # GitHub looks for mentions in what is rendered
    words = re.sub(r"\\#(?=\d)", "\\#\u200b", words)
    return re.sub(r"(?i)\bwww\.", "www\\.", words)


class _Page:
    """Lines; each section takes at most its share of what is left."""

    def __init__(self, head: list[str]) -> None:
        self._lines = head
        self._left = MOST - 4096 - sum(len(text.encode()) + 1 for text in head)

    def section(self, heading: str, lines: Sequence[str], what: str, where: str) -> None:
        """Add lines while there is room; say how many were left out, and where they are."""
        room = self._left // 2
        self._lines += ["", heading, ""] if heading else [""]
        for number, text in enumerate(lines):
            size = len(text.encode()) + 1
            if size > room:
                self._lines += ["", f"… and {len(lines) - number} more {what}: see `{where}`"]
                break
            room -= size
            self._left -= size
            self._lines.append(text)

    def folded(self, heading: str, lines: Sequence[str], what: str, where: str) -> None:
        """Add lines that are shown when somebody asks for them."""
        opened = f"<details><summary>{heading}</summary>"
        self.section(opened, lines, what, where)
        self._lines += ["", "</details>"]

    def text(self, end: str) -> str:
        """Return the page, with a last line."""
        return "\n".join([*self._lines, "", end]) + "\n"


def _head(summary: AuditSummary) -> list[str]:
    found = told(summary)
    word, said = found.decision, escaped(line(found.model_copy(update={"decision": None})), _SAID)
    if word:
        said = f"{_DECISIONS[word]} **{WORDS[word]}**: {said}"
    lines = [f"### Audit {escaped(summary.name)}", "", said]
    if summary.summary:
        lines += ["", escaped(summary.summary)]
    train = f"{summary.train} ({evidence(summary.stacks['train'])})"
    return [*lines, "", f"Training stack: {escaped(train)}"]


def _table(summary: AuditSummary) -> list[str]:
    several = len({pair.model for pair in summary.pairs}) > 1
    heads = ["", "deploy", units(summary.pairs), "flips", "delta", "latency", "evidence"]
    if several:
        heads.insert(1, "model")
    rows = [heads, ["---"] * len(heads)]
    for pair in summary.pairs:
        stack = summary.stacks[pair.deploy]
        row = [
            ("✅" if summary.gate.rules else "") if pair.passed else "❌",
            *map(escaped, (_named(pair.deploy, stack), *cells(pair, stack))),
        ]
        if several:
            row.insert(1, escaped(pair.model))
        rows.append(row)
    return [f"| {' | '.join(row)} |" for row in rows]


def _named(name: str, stack: AuditedStack) -> str:
    own = " ".join(f"+{override}" for override in stack.overrides)
    return " ".join(filter(None, (name, f"({stack.profile})" * (stack.profile != name), own)))


def _rule(rule: AuditedRule) -> str:
    mark = _MARKS.get(verdict(rule), "✅")
    where = f"{rule.model} / {rule.deploy}"
    of = " (rounds)" if rule.of == "tail" else ""
    return (
        f"- {mark} {escaped(where)}{of}: **{escaped(rule.rule)}**: {escaped(got(rule))}. "
        f"Because: {escaped(rule.because)}"
    )
