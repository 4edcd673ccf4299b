"""What an audit leaves for pull requests and for CI, whatever its names hold."""

import copy
import html
import io
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import notice
from markdown_it import MarkdownIt
from rich.console import Console

from simulator.audit import junit, markdown
from simulator.audit import screen as audited
from simulator.report.verdict import line, verdict
from simulator.results.audits import AuditSummary

PAIR = {
    "model": "m", "deploy": "box", "folder": "pairs/m/box", "tail": None, "card": "net",
    "task": "classification", "unit": "image", "metric": "top1", "samples": 100, "skipped": 2,
    "train": 0.9, "value": 0.8, "delta": {"value": -0.1, "ci95": [-0.2, -0.01], "p": 0.01},
    "flips": {"count": 12, "units": 100, "rate": 0.12, "ci95": [0.06, 0.2]},
    "latency_ms": {
        "train": {"p50": 10.0, "p90": 12.0, "p99": None},
        "deploy": {"p50": 5.0, "p90": 6.25, "p99": None},
    },
    "differing": ["resize"], "bit_equal": True, "seconds": 1.5,
    "warnings": [notice("few images", "few_samples")],
    "passed": False,
}  # fmt: skip
RULES = [
    {
        "model": "m", "deploy": "box", "of": "pair", "because": "contract",
        "rule": "flip_rate > 1%",
        "value": 0.12, "limit": 0.01, "unit": "share", "failed": True, "reason": None,
    },
    {
        "model": "m", "deploy": "box", "of": "pair", "because": "camera",
        "rule": "deploy.latency.p99 > 20ms", "value": None, "limit": 20.0, "unit": "ms",
        "failed": True, "reason": "100 latencies cannot carry p99",
    },
    {
        "model": "m", "deploy": "box", "of": "tail", "because": "belt",
        "rule": "deploy.tail_quality@99 < 70%", "value": 0.75, "limit": 0.7, "unit": "share",
        "failed": False, "reason": None,
    },
]  # fmt: skip
SUMMARY = {
    "schema": 2, "command": "audit", "name": "spring", "summary": "May it go?", "train": "pillow",
    "stacks": {
        "train": {"profile": "pillow", "overrides": [], "evidence": {"color": "native"},
                  "claimed": ["color"]},
        "box": {
            "profile": "box_int8", "overrides": ["resize=x"],
            "evidence": {"color": "emulated", "geometry": "assumed", "resize": "native"},
            "claimed": ["color", "geometry"],
        },
    },
    "pairs": [PAIR], "gate": {"passed": False, "rules": RULES}, "seconds": 2.0,
}  # fmt: skip


def typed(summary):
    """The same as a model."""
    return AuditSummary.model_validate(summary)


CREATED = "2026-11-21T16:56:54+0000"
DIGEST = "5f2c" * 16


def suites(summary):
    return ET.fromstring(junit.document(typed(summary), CREATED))


def rendered(text):
    return MarkdownIt("commonmark").enable("table").enable("strikethrough").render(text)


def with_text(text):
    """The summary with *text* wherever a person or a data set may have written something."""
    summary = copy.deepcopy(SUMMARY)
    summary |= {"name": text, "summary": text, "train": text}
    summary["stacks"]["box"] |= {"profile": text, "overrides": [text]}
    summary["pairs"][0] |= {"card": text, "warnings": [notice(text)]}
    for rule in summary["gate"]["rules"]:
        rule |= {"because": text, "rule": text}
    summary["gate"]["rules"][1]["reason"] = text
    return summary


def test_a_rule_is_a_test_case_with_its_numbers():
    (suite,) = suites(SUMMARY)
    cases = suite.findall("testcase")

    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "3", "failures": "1", "errors": "1",
    }  # fmt: skip
    assert [case.get("name") for case in cases] == [rule["rule"] for rule in RULES]
    assert cases[0].find("failure").get("message") == "flip_rate > 1%: got 12 %"
    assert "because: contract" in cases[0].find("failure").text
    assert "100 latencies cannot carry p99" in cases[1].find("error").get("message")
    assert len(cases[2]) == 0
    assert "got 75 % (because: belt)" in suite.find("system-out").text


ATTRIBUTES = {
    "testsuites": {},
    "testsuite": {
        "package": r".*", "id": r"\d+", "name": r".+", "hostname": r"\S+", "tests": r"\d+",
        "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "failures": r"\d+", "errors": r"\d+",
        "time": r"\d+\.\d+",
    },
    "properties": {},
    "property": {"name": r".+", "value": r"(?s).*"},
    "testcase": {"name": r"(?s).*", "classname": r".+", "time": r"\d+"},
    "failure": {"message": r"(?s).*", "type": r".+"},
    "error": {"message": r"(?s).*", "type": r".+"},
    "system-out": {},
    "system-err": {},
}  # fmt: skip
CHILDREN = {
    "testsuites": r"(testsuite )*",
    "testsuite": r"properties (testcase )*system-out system-err ",
    "properties": r"(property )*",
    "testcase": r"((failure|error) )?",
}


def check_schema(node):
    """Windy Road's JUnit.xsd (Apache License 2.0), element by element; it is the stricter one."""
    wanted = ATTRIBUTES[node.tag]
    assert node.attrib.keys() == wanted.keys()
    assert all(re.fullmatch(wanted[key], value) for key, value in node.attrib.items())
    children = "".join(f"{child.tag} " for child in node)
    assert re.fullmatch(CHILDREN.get(node.tag, ""), children)
    for child in node:
        check_schema(child)


def test_junit_is_valid():
    check_schema(suites(SUMMARY))
    check_schema(suites({**SUMMARY, "pairs": [], "gate": {"passed": True, "rules": []}}))


@given(st.text())
def test_junit_holds_any_text(text):
    """Control characters and lone surrogates, which XML cannot hold, are replaced."""
    root = suites(with_text(text))

    check_schema(root)
    assert len(root.findall(".//testcase")) == 3


SAID = (
    "2 of 3 rules fail, on 1 of 1 pair: box (m). Answers that change: 12 of 100 (95 % "
    "interval 6.00% to 20.00%); top-1 -10.00 points (95 % interval -20.00 to -1.00), more than "
    "chance explains. 2 of 102 images were skipped: no stack can answer them. The page of the "
    "first is pairs/m/box/report.html. Failed: flip_rate > 1%; deploy.latency.p99 > 20ms."
)
PASSED = {
    **SUMMARY, "pairs": [{**PAIR, "passed": True}], "gate": {"passed": True, "rules": RULES[2:]},
}  # fmt: skip


def test_the_verdict_comes_first_and_is_the_same_in_markdown_and_junit():
    first, _, said, *_ = markdown.comment(typed(SUMMARY), DIGEST).splitlines()
    (suite,) = suites(SUMMARY)

    assert line(verdict(typed(SUMMARY))) == f"NOT OK: {SAID}"
    assert first == "### Audit spring"
    assert re.sub("<[^>]*>", "", rendered(said)) == f"❌ NOT OK: {html.escape(SAID)}\n"
    assert suite.find("system-out").text.splitlines()[0] == f"NOT OK: {SAID}"
    held = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert held["verdict"] == f"NOT OK: {SAID}"


def test_a_passed_audit_says_what_it_loses_all_the_same():
    said = markdown.comment(typed(PASSED), DIGEST).splitlines()[2]

    assert said.startswith("✅ **OK**: 1 of 1 pair passes every rule. Answers that change")


def test_rules_that_are_undecided_are_not_said_to_fail():
    rules = [{**RULES[1], "undecided": True}, RULES[2]]
    found = verdict(typed({**SUMMARY, "gate": {"passed": False, "rules": rules}}))

    assert line(found).startswith("UNDECIDED: 1 of 2 rules is undecided, on 1 of 1 pair: box (m).")
    assert found.cause == "Undecided: deploy.latency.p99 > 20ms."


def test_a_verdict_names_five_of_many_pairs():
    pairs = [{**PAIR, "deploy": f"box{n}"} for n in range(8)]
    stacks = {**SUMMARY["stacks"], **{f"box{n}": SUMMARY["stacks"]["box"] for n in range(8)}}
    rules = [{**RULES[0], "deploy": f"box{n}"} for n in range(8)]
    gate = {"passed": False, "rules": rules}
    found = verdict(typed({**SUMMARY, "pairs": pairs, "stacks": stacks, "gate": gate}))

    assert found.lost[0] == (
        "8 of 8 rules fail, on 8 of 8 pairs: box0 (m), box1 (m), box2 (m), box3 (m), box4 (m) and "
        "3 more."
    )


def test_the_table_has_a_row_for_each_stack():
    page = rendered(markdown.comment(typed(SUMMARY), DIGEST))
    cells = re.findall(r"<td>(.*?)</td>", page)

    assert cells == [
        "❌", "box (box_int8) +resize=x", "100, 2 skipped", "12 of 100 = 12.00% (6.00% to 20.00%)",
        "top-1 -10.00 points (-20.00 to -1.00)", "p90 12.00 → 6.25 ms",
        "emulated: color; assumed: geometry; not claimed: resize",
    ]  # fmt: skip
    assert "<strong>flip_rate &gt; 1%</strong>: got 12 %. Because: contract" in page
    assert f"<code>{DIGEST}</code>" in page


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("<script>alert(1)</script>", "<script"),
        ("<img src=x onerror=y>", "<img"),
        ("[a](javascript:b)", "<a "),
        ("![a](http://x/y.png)", "<img"),
        ("**bold** and `code`", "<strong>bold"),
        ("a | b | c", "<td>b</td>"),
        ("a\n\n# heading", "<h1"),
        ("</details>", "\n</details> "),
        ("https://evil.example", "<a "),
        ("<!-- -->", "<!--"),
    ],
)
def test_names_are_data(text, never):
    page = rendered(markdown.comment(typed(with_text(text)), DIGEST))

    assert never not in page
    assert page.count("<table>") == 1
    assert page.count("<td>") == 7


@pytest.mark.parametrize("mention", ["@octocat", "fixes #12", "www.evil.example", ":smile:"])
def test_nobody_is_mentioned_and_nothing_is_linked(mention):
    """GitHub looks for these in what is rendered, where backslashes are gone."""
    text = markdown.escaped(mention)

    assert mention not in text
    assert not re.search(r"@\w|#\d|(?<!\\)www\.|(?<!\\):", text)


@given(st.text())
def test_any_text_is_one_line_of_plain_text(text):
    """It renders to itself: no element but the paragraph, and no line break."""
    line = markdown.escaped(text)
    page = rendered(f"x{line}x")

    assert "\n" not in line
    assert re.sub(r"^<p>|</p>\n$", "", page).count("<") == 0


def test_the_comment_fits_github_whatever_the_audit_holds():
    """65,536 characters are taken; what is left out is said."""
    rules = [{**RULES[0], "because": "ä" * 300, "rule": f"flip_rate > {n}%"} for n in range(3000)]
    stacks = {**SUMMARY["stacks"], **{str(n): SUMMARY["stacks"]["box"] for n in range(3000)}}
    pairs = [{**PAIR, "deploy": str(n), "warnings": [notice(f"{n}" * 50)]} for n in range(3000)]
    gate = {"passed": False, "rules": rules}

    text = markdown.comment(
        typed({**SUMMARY, "pairs": pairs, "stacks": stacks, "gate": gate}), DIGEST
    )

    assert len(text.encode()) < 60_000
    assert re.search(r"… and \d+ more pairs: see `summary.json`", text)
    assert re.search(r"… and \d+ more rules: see `junit.xml`", text)
    assert re.search(r"… and \d+ more notes: see `summary.json`", text)
    assert DIGEST in text
    assert text.count("<details>") == text.count("</details>")


def test_the_screen_has_verdict_number_and_reason():
    console = Console(width=120, record=True, file=io.StringIO())
    audited.audit(typed(SUMMARY), "out", console)
    text = console.export_text()

    assert "FAILED m / box: flip_rate > 1%: got 12 %" in text
    assert "ERROR m / box: deploy.latency.p99 > 20ms: 100 latencies cannot carry p99" in text
    assert "because: belt" in text
    assert "gate FAILED" in text
