"""Names in tables of other programs: a cell shows what is written in it, and does nothing."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARKDOWN = re.compile(r"([\\`*\[\]<>|])")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def spreadsheet(text: str) -> str:
    """Return a name for a CSV file that Excel or LibreOffice does not take for a formula.

    Source:
        OWASP, CSV Injection: an apostrophe before a cell that begins with = + - @, tab or CR.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def markdown(text: str) -> str:
    """Return a name for a Markdown table, on one line, without markup, links or mentions."""
    plain = _MARKDOWN.sub(r"\\\1", _CONTROL.sub(" ", text))
    return plain.replace("@", "@\u200b")


def latex(text: str) -> str:
    """Return a name for a LaTeX table, on one line, without commands."""
    return "".join(_LATEX.get(char, char) for char in _CONTROL.sub(" ", text))
