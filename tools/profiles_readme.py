"""Write ``profiles/README.md``: every built-in stack, what is known of it, and from where.

  python tools/profiles_readme.py           write it
  python tools/profiles_readme.py --check   exit 1 if it is not current

A profile whose summary or whose evidence is still to be written is refused.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from simulator.contract import Evidence
from simulator.profile import axes, template
from simulator.profile.document import read
from simulator.profile.implementations import Choices, choose
from simulator.profile.load import load
from simulator.profile.lookup import builtin_folder, builtin_names
from simulator.profile.profile import Profile

TARGET = Path(__file__).parent.parent / "profiles" / "README.md"
YARDSTICKS = {"image": "pillow_fp32", "text": "text_fp32", "audio": "librosa_fp32"}
"""The commonest training stack of each modality."""
HEAD = f"""# The library of stacks

Generated from the documents by `python tools/profiles_readme.py`; do not edit.

Differences are those from the commonest training stack of the same kind of samples
({", ".join(f"`{name}`" for name in YARDSTICKS.values())}). Evidence counts the
sections for which a profile, or one that it extends, cites a source: *native* is the very library
or device, *vendor_simulator* the vendor's own arithmetic without the device, *emulated* is rebuilt
from a public source or stood in for, *recorded* was dumped on the device, *assumed* says that no
source was found. How to add one: [contributing a profile](../docs/contributing-a-profile.md).

| profile | stack | differs in | evidence |
| --- | --- | --- | --- |
"""
SOURCES = """
## Sources

What each document cites itself; the rest is inherited from what it extends.
"""


def page() -> str:
    """The whole page."""
    loaded = {name: load(name) for name in builtin_names()}
    chosen = {name: (profile, choose(profile)) for name, profile in loaded.items()}
    rows = [
        _row(name, own, chosen[YARDSTICKS[own[0].spec.modality]]) for name, own in chosen.items()
    ]
    parts = [part for name in chosen for part in _sources(name)]
    return HEAD + "".join(rows) + SOURCES + "".join(parts)


def _row(name: str, own: tuple[Profile, Choices], yardstick: tuple[Profile, Choices]) -> str:
    kinds = Counter(claim.kind for claim in own[0].spec.evidence.values())
    evidence = ", ".join(f"{kinds[str(kind)]} {kind}" for kind in Evidence if kinds[str(kind)])
    differs = ", ".join(axes.differing(yardstick, own)) or "-"
    summary = _cell(own[0].spec.summary)
    return f"| [{name}]({name}.yaml) | {summary} | {differs} | {evidence} |\n"


def _sources(name: str) -> Iterator[str]:
    values = read(builtin_folder() / f"{name}.yaml").values
    above = (
        f", which extends [{values['extends']}](#{values['extends']})"
        if values.get("extends")
        else ""
    )
    yield f"\n### {name}\n\n`{name}.yaml`{above}:\n\n"
    for section, claim in (values.get("evidence") or {}).items():
        if claim:
            yield f"- {section}, {claim['kind']}: {_cell(claim['source'])}\n"


def _cell(text: str) -> str:
    """Text that Markdown takes for nothing else."""
    for mark in "\\|*_<>[]`":
        text = text.replace(mark, f"\\{mark}")
    return text


def unfinished() -> list[str]:
    """Everything in a built-in profile that is still to be written."""
    found = {name: template.unfinished(load(name)) for name in builtin_names()}
    return [
        f"{where}: {key}: still to be written"
        for keys in found.values()
        for key, where in keys.items()
    ]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    if problems := unfinished():
        print("\n".join(problems), file=sys.stderr)
        return 1
    text = page()
    if arguments == ["--check"]:
        current = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text
        if not current:
            print(f"{TARGET} is not current; run: python tools/profiles_readme.py", file=sys.stderr)
        return 0 if current else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
