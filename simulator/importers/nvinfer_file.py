"""The two forms of a Gst-nvinfer configuration: a GKeyFile (``[property]``) and NVIDIA's YAML.

Sources: GLib's ``gkeyfile.c`` (comments, groups, and ``g_key_file_get_integer``, which stops at
the first space); ``gstnvinfer_yaml_parser.cpp`` of DeepStream's ``nvdsgst_helper``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from simulator.importers import nvinfer_keys, values
from simulator.importers.draft import Draft
from simulator.importers.importer import ConfigFile
from simulator.importers.keys import Keys
from simulator.profile.document import Document, Key

Groups = dict[str, dict[str, tuple[str, str]]]
"""Group to key to (value, ``FILE:LINE``)."""

YAML = r"^property\s*:"
"""Found in the form of YAML only."""
_LINE = re.compile(r"\s*([^=\s][^=]*?)\s*=\s*(.*?)\s*")


def groups(file: ConfigFile, draft: Draft) -> Groups:
    """Return the groups of a file; lines that cannot be read become problems."""
    if re.search(YAML, file.text, re.MULTILINE):
        return _of_yaml(file.yaml, draft)
    return _of_key_file(file.path, file.text, draft)


def keys(draft: Draft, path: Path, found: Groups, group: str) -> Keys:
    """Return the keys of one group, which may be missing."""
    here = found.get(group, {})
    prefix = "" if group == "property" else f"[{group}] "

    def where(key: Key) -> str:
        return here[str(key[-1])][1] if key[-1] in here else f"{path}"

    return Keys(draft, {key: value for key, (value, _) in here.items()}, where, prefix=prefix)


def _of_key_file(path: Path, raw: str, draft: Draft) -> Groups:
    found: Groups = {}
    group = None
    if re.search(r"^[ \t]*\[", raw, re.MULTILINE) is None:  # TAO's nvinfer_config.txt
        group = "property"
        found[group] = {}
        draft.aside.append("no [property]: keys to paste into it, as TAO Toolkit writes them")
    for line, text in enumerate(raw.splitlines(), 1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        if header := re.fullmatch(r"\s*\[([^\[\]]+)\]\s*", text):
            group = header[1]
            found.setdefault(group, {})
            continue
        pair = _LINE.fullmatch(text)
        if pair is None or group is None:
            said = values.show(text.strip())
            what = "[group] or key=value expected" if group else "a [group] expected first"
            draft.problems.append(f"{path}:{line}: {what}, got {said}")
            continue
        key, value = pair[1], _integer(pair[1], pair[2])
        before = found[group].get(key)
        if before is not None and before[0] != value:
            said, first = values.plain(key), before[1].rpartition(":")[2]
            draft.problems.append(f"{path}:{line}: {said}: given twice, first on line {first}")
            continue
        found[group][key] = (value, f"{path}:{line}")
    return found


def _of_yaml(document: Document, draft: Draft) -> Groups:
    found: Groups = {}
    written = yaml.load(document.path.read_text("utf-8"), yaml.BaseLoader)  # digits as they stand
    for group, inner in written.items():
        if not isinstance(inner, dict):
            where, said = document.where((group,)), f"{values.plain(group)}={values.show(inner)}"
            draft.problems.append(f"{where}: {said}: keys and values expected, as in property:")
            continue
        found[group] = {
            key: (_text(key, value), document.where((group, key))) for key, value in inner.items()
        }
    return found


def _text(key: str, value: Any) -> str:
    """Return a YAML value as the text that a GKeyFile would have."""
    return ";".join(map(str, value)) if isinstance(value, list) else _integer(key, str(value))


def _integer(key: str, value: str) -> str:
    """Cut what ``g_key_file_get_integer`` does not read: all after a number's first space."""
    parts = [value] if key in nvinfer_keys.INTEGERS else []
    parts = value.split(";") if key in nvinfer_keys.LISTS else parts
    return ";".join(next(iter(part.split()), "") for part in parts) if parts else value
