"""The documents' claims: each tool's answer on small documents, then the repository's own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import claims  # noqa: E402

TABLE = """\
<!-- table: noise -->
| axis | cost | flips |
| --- | --- | --- |
| decode | 0.05 (0.18) / 0.4 (0.9) % | 3 (0.5 %) |
| resize: nearest | -1.20 to +0.30 | 1,618,659 (7.3 %) |
| resize: box | - | 0 (0.0 %) |

"""


def problems(text):
    return claims.check({"docs/some.md": TABLE + text})[1]


@pytest.mark.parametrize(
    "claim",
    [
        'noise["decode", "cost"] == 0.05 and noise["decode", "cost", 3] == 0.9',
        'noise["resize: nearest", "cost"] == -1.2 and noise["resize: nearest", "cost", 1] == 0.3',
        'noise["resize: nearest", "flips"] == 1618659',
        'all(noise[r, "flips"] >= 0 for r in noise.rows("resize:"))',
        'said(1.2, -noise["resize: nearest", "cost"]) and not said(1.3, 1.2) and said(7, 7.3)',
        "said(3.2, 3.15) and said(3.2, 3.25)",
    ],
)
def test_a_claim_that_is_true_holds(claim):
    assert claims.check({"docs/some.md": f"{TABLE}It is so.\n<!-- claim: {claim} -->\n"}) == (1, [])


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ('noise["decode", "flips"] > noise["resize: nearest", "flips"]', "claim is false"),
        ('noise["decode", "flip"] > 1', "claim cannot be evaluated (KeyError: 'flip')"),
        ('noise["resize: box", "cost"] > 1', "claim cannot be evaluated (IndexError"),
        ('all(noise[r, "flips"] for r in noise.rows("upsample"))', "(KeyError: 'upsample')"),
        ('loud["decode", "flips"] > 1', "claim cannot be evaluated (NameError"),
        ('noise["decode", "flips"]', "claim is neither true nor false"),
        ('open("/etc/passwd")', "(NameError"),
    ],
)
def test_a_claim_that_does_not_hold_is_named_with_its_line(claim, says):
    (problem,) = problems(f"First.\n\nDecoding is loud.\n<!-- claim: {claim} -->\n")

    assert problem.startswith("docs/some.md:10: ") and says in problem


@pytest.mark.parametrize(
    "words",
    ["Resizing is louder.", "- One.\n- It is within\n  noise.", "**Loud, as in the paper.** So."],
)
def test_a_risky_sentence_without_a_claim_is_named(words):
    (problem,) = problems(words)

    assert "no claim for this sentence" in problem


@pytest.mark.parametrize(
    "words",
    [
        "Call `louder()`.",
        "# Louder\n",
        "```sh\nlouder\n\nquiet\n```\n",
        "| louder |\n| --- |\n| a |\n",
    ],
)
def test_code_headings_and_tables_make_no_statements(words):
    assert problems(words) == []


def test_two_risky_sentences_need_two_claims():
    claim = '<!-- claim: noise["decode", "flips"] == 3 -->\n'

    assert len(problems(f"It is loud. It is quiet.\n{claim}")) == 1
    assert problems(f"It is loud. It is quiet.\n{claim}{claim}") == []


def test_names_of_tables_are_unique_and_used():
    assert "a second table noise" in problems(TABLE)[0]
    assert "no table follows" in problems("<!-- table: other -->\nNone.\n")[0]


def test_every_claim_of_the_documents_holds():
    done = subprocess.run(
        [sys.executable, "tools/claims.py", "--check"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
