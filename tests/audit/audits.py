"""Audits of the tiny classifier, written and run."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import pyarrow.parquet as pq
import yaml

from simulator.audit import bundle
from simulator.audit.archive import Archive

BGR = {"profile": "pillow_fp32", "set": {"color.order": "bgr"}}
RULE = {"fail_on": "flip_rate > 50%", "because": "half of the answers must stay"}


def document(folder, card, data, **fields):
    """Write an audit of the tiny classifier; *fields* replace those of the document."""
    spec = {
        "schema": 1,
        "name": "colors",
        "summary": "May it be shipped?",
        "train": "pillow_fp32",
        "deploy": {"same": "pillow_fp32", "bgr": BGR},
        "models": {"tiny": {"card": str(card)}},
        "data": str(data),
        "rules": [RULE],
    } | fields
    path = folder / "audit.yaml"
    path.write_text(
        yaml.safe_dump({k: v for k, v in spec.items() if v is not None}, sort_keys=False)
    )
    return path


def read(path):
    return json.loads(path.read_text())


def verified(place):
    """Hold every member of a bundle against its digest."""
    with Archive(place) as packed:
        return bundle.check(packed)


def changed(bundle, place, change):
    """Write a bundle again with other members: *change* gets a dictionary of them."""
    with zipfile.ZipFile(bundle) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    change(members)
    with zipfile.ZipFile(place, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return place


def forged(bundle, place, **changes):
    """Write a bundle with changed JSON: *changes* are functions, by the member's place.

    ``summary`` is the audit's own, ``pairs__tiny__bgr__summary`` that of a pair.
    """

    def forge(members):
        for name, change in changes.items():
            member = f"{name.replace('__', '/')}.json"
            content = json.loads(members[member])
            change(content)
            members[member] = json.dumps(content).encode()
        signed(members)

    return changed(bundle, place, forge)


def rewritten(members, name, change):
    """Change a table of a bundle."""
    buffer = io.BytesIO()
    pq.write_table(change(pq.read_table(io.BytesIO(members[name]))), buffer)
    members[name] = buffer.getvalue()
    signed(members)


def signed(members):
    """Make the digests fit the members, as a forger would."""
    listed = json.loads(members["digests.json"])
    listed["digests"] = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in members.items()
        if name != "digests.json"
    }
    members["digests.json"] = json.dumps(listed).encode()
