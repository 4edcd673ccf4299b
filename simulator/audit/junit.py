"""An audit as JUnit XML: a test suite for each model and stack, a test case for each rule.

Valid under both schemas in use, Ant's (Windy Road's JUnit.xsd) and Jenkins' (junit-10.xsd). The
former takes no text in a case that passes, so the suite's ``system-out`` has every number.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from simulator.report.rules import FAILED, PASSED, got, units, verdict
from simulator.report.verdict import line
from simulator.report.verdict import verdict as told
from simulator.results.audits import AuditedPair, AuditedRule, AuditSummary

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even as a reference."""


def document(summary: AuditSummary, created: str) -> bytes:
    """Return ``junit.xml``.

    Args:
        summary: of an audit.
        created: when it was begun, ISO 8601.
    """
    root, said = ET.Element("testsuites"), line(told(summary))
    for number, pair in enumerate(summary.pairs):
        rules = [
            rule
            for rule in summary.gate.rules
            if (rule.model, rule.deploy) == (pair.model, pair.deploy)
        ]
        root.append(_suite(number, summary, pair, rules, created, said))
    ET.indent(root)
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"


def _suite(
    number: int,
    summary: AuditSummary,
    pair: AuditedPair,
    rules: Sequence[AuditedRule],
    created: str,
    said: str,
) -> ET.Element:
    """A pair; *said* is the audit's verdict."""
    verdicts = [verdict(audited_rule) for audited_rule in rules]
    suite = ET.Element(
        "testsuite",
        {
            "id": str(number),
            "package": plain(" ".join(summary.name.split())),
            "name": plain(f"{pair.model}.{pair.deploy}"),
            "timestamp": created[:19],
            "hostname": "localhost",
            "tests": str(len(rules)),
            "failures": str(verdicts.count(FAILED)),
            "errors": str(sum(one not in (PASSED, FAILED) for one in verdicts)),
            "time": f"{pair.seconds:.3f}",
        },
    )
    held = ET.SubElement(suite, "properties")
    stack = summary.stacks[pair.deploy]
    for name, value in {
        "model": pair.card, "train": summary.train, "deploy": stack.profile,
        units([pair]): pair.samples, "folder": pair.folder, "verdict": said,
    }.items():  # fmt: skip
        ET.SubElement(held, "property", {"name": name, "value": plain(str(value)) or "-"})
    for rule, came in zip(rules, verdicts, strict=True):
        suite.append(_case(pair, rule, came))
    lines = [
        f"{came}: {_name(rule)}: {got(rule)} (because: {rule.because})"
        for rule, came in zip(rules, verdicts, strict=True)
    ]
    ET.SubElement(suite, "system-out").text = plain("\n".join([said, *lines]))
    ET.SubElement(suite, "system-err").text = plain("\n".join(map(str, pair.warnings)))
    return suite


def _case(pair: AuditedPair, rule: AuditedRule, came: str) -> ET.Element:
    case = ET.Element(
        "testcase",
        {
            "classname": plain(f"{pair.model}.{pair.deploy}.{rule.of}"),
            "name": plain(_name(rule)),
            "time": "0",
        },
    )
    if came != PASSED:
        kind = "failure" if came == FAILED else "error"
        message = plain(f"{_name(rule)}: {got(rule)}")
        told = ET.SubElement(case, kind, {"type": f"gate.{kind}", "message": message})
        told.text = plain(f"{message}\nbecause: {rule.because}")
    return case


def _name(rule: AuditedRule) -> str:
    return " ".join(str(rule.rule).split())


def plain(text: str) -> str:
    """Return text that XML can hold; what it cannot becomes U+FFFD."""
    return _ILLEGAL.sub("\ufffd", text)
