"""Write the reference pages of the site from what the code declares; ``make docs`` runs it.

python tools/reference.py FOLDER    write commands.md, documents.md, figures.md, ...

Commands come from their parsers, documents and figures from the JSON schemas in ``profiles`` and
``docs/schemas``, backends from their offers, checks from their docstrings. Nothing of it
is committed.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simulator import cli, registry
from simulator.cli.prove import SUITES
from simulator.command.experiment import EXPERIMENTS
from simulator.contract import Backend
from simulator.contract.stage import named, stages
from simulator.profile.fit import told
from simulator.testing import checks_of, proved_stages

ROOT = Path(__file__).parent.parent
Schema = dict[str, Any]
Row = tuple[str, ...]


def main(arguments: list[str]) -> int:
    """Run the tool and return its exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "commands": ("Every command and option", commands()),
        "documents": ("Every field of every document", documents()),
        "figures": ("Every figure", figures()),
        "backends": ("Every backend and what it offers", backends()),
        "checks": ("Every check of the conformance suite", checks()),
    }
    for name, (title, lines) in pages.items():
        text = "\n".join([f"# {title}", "", *lines])
        (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    return 0


def commands() -> Iterator[str]:
    """One section for each command: what it does, and its options."""
    for name in (cli.MAIN, *cli.listed()):
        title = "simulate" if name == cli.MAIN else f"simulate {name}"
        parser = argparse.ArgumentParser(prog=title, add_help=False)
        cli.prepared(name, parser)
        yield from (f"## {title}", "", "```text", (parser.description or "").strip(), "```", "")
        if name in EXPERIMENTS and (why := getattr(EXPERIMENTS[name], "in_process", "")):
            yield from (f"It {why}, so that it takes no executor but `local`.", "")
        yield from table(("option", "what it does"), map(_option, parser._actions))


def _option(action: argparse.Action) -> Row:
    words = " ".join(action.option_strings) or str(action.metavar or action.dest)
    if action.nargs != 0 and action.option_strings:
        choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
        words += f" {action.metavar or choices or action.dest.upper()}"
    return f"`{words}`", (action.help or "").replace("%%", "%")


def documents() -> Iterator[str]:
    """One section for each kind of document, and one table for each mapping in it.

    What several have in common, such as the sections of all profiles, is written once.
    """
    written = set[str]()
    for path in sorted((ROOT / "profiles").glob("*schema.json"), key=_first):
        schema = json.loads(path.read_text("utf-8"))
        yield from (f"## {schema['title']}: {path.name}", "")
        for name, part in {"": schema, **schema.get("$defs", {})}.items():
            rows = [_field(key, one) for key, one in part.get("properties", {}).items()]
            if rows and (text := json.dumps(part)) not in written:
                written.add(text)
                yield from ([f"### {name}", ""] if name else [])
                yield from (part.get("description", ""), "")
                yield from table(("field", "value", "what it says"), rows)


def _first(path: Path) -> tuple[bool, str]:
    """Profiles of images first, then the others by name."""
    return path.name != "schema.json", path.name


def _field(name: str, schema: Schema) -> Row:
    return f"`{name}`", _values(schema), str(schema.get("description", ""))


def _values(schema: Any) -> str:
    """Return what a schema allows, in a few words."""
    if not isinstance(schema, dict):
        return ""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            parts = [_values(one) for one in schema[name] if one != {"type": "null"}]
            return ", ".join(dict.fromkeys(filter(None, parts)))
    words = [schema["const"]] if "const" in schema else schema.get("enum", [])
    if words:
        return ", ".join(f"`{json.dumps(word).strip(chr(34))}`" for word in words)
    if schema.get("type") == "array":
        return f"a list of {_values(schema.get('items')) or 'values'}"
    return str(schema.get("type", ""))


def figures() -> Iterator[str]:
    """One table for each summary: the path of each figure, its unit, and what it is."""
    for path in sorted((ROOT / "docs" / "schemas").glob("*.json")):
        schema = json.loads(path.read_text("utf-8"))
        yield from (f"## {path.stem}", "", schema.get("description", ""), "")
        yield from table(("figure", "unit", "what it is"), _figures(schema, schema, "", ()))


def _figures(schema: Schema, root: Schema, place: str, above: Sequence[str]) -> Iterator[Row]:
    """The leaves below a part of a schema; what contains itself is written once."""
    for part in _branches(schema):
        reference = str(part.get("$ref", ""))
        if reference in above:
            continue
        if reference:
            inner = root["$defs"][reference.rpartition("/")[2]]
            yield from _figures(inner, root, place, (*above, reference))
        for name, one in part.get("properties", {}).items():
            here = f"{place}.{name}" if place else name
            unit = next((x["unit"] for x in _branches(one) if "unit" in x), "")
            if unit or not any("$ref" in x or "items" in x for x in _branches(one)):
                yield f"`{here}`", str(unit), str(one.get("description", ""))
            yield from _figures(one, root, here, above)
        for key in ("additionalProperties", "items"):
            if isinstance(part.get(key), dict):
                yield from _figures(part[key], root, f"{place}.*", above)


def _branches(schema: Schema) -> list[Schema]:
    found: list[Schema] = schema.get("anyOf") or schema.get("oneOf") or [schema]
    return found


def backends() -> Iterator[str]:
    """One section for each backend: its library, its stages, and the values of each field."""
    for one in registry.backends():
        library = one.library.distribution if one.library else "part of the simulator"
        yield from (f"## {one.name}", "", one.summary, "", f"Library: {library}.", "")
        yield from table(("stage", "evidence", "field", "values"), _offers(one))


def _offers(backend: Backend) -> Iterator[Row]:
    for spec in stages():
        for offer in backend.of(spec.name):
            for name, admits in offer.options.items() or [("-", ())]:
                yield spec.name, str(offer.evidence), f"`{name}`", told(admits)


def checks() -> Iterator[str]:
    """One table for each stage and each kind of extension: the checks, and what they demand."""
    found = {f"Stage {name}": checks_of(name) for name in proved_stages()}
    for kind, module in SUITES.items():
        found[kind.replace("_", " ").capitalize()] = named(
            f"simulator.testing.{module}:SUITE"
        ).checks
    for title, some in found.items():
        yield from (f"## {title}", "")
        rows = [(f"`{one.__name__}`", inspect.cleandoc(one.__doc__ or "")) for one in some]
        yield from table(("check", "what it demands"), rows)


def table(head: Row, rows: Iterator[Row] | Sequence[Row] | map[Row]) -> Iterator[str]:
    """A Markdown table, with an empty line behind it."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in dict.fromkeys(rows):
        yield f"| {' | '.join(_cell(one) for one in row)} |"
    yield ""


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
