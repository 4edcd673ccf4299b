"""Reads the files of text samples."""

from __future__ import annotations

import json
from typing import Any

from simulator.contract.text import Passage, Request
from simulator.errors import SampleError, one_line, shortened
from simulator.places import Where, read_sample

SUFFIXES = (".json", ".txt")
LARGEST = 2**24
"""Bytes of one sample at most."""
MOST = 2**31
"""Ids below this fit into every integer type that tokenizers use."""
_KEYS = {"context", "continuation", "length", "ids", "scored"}


def read(path: Where) -> Passage:
    """Read one sample.

    A ``.txt`` file is one request without a continuation, exactly as it is in the file; a
    ``.json`` file is ``{"requests": [{"context": ...}]}``, each with the fields of a
    :class:`simulator.contract.text.Request`.

    Args:
        path: where it is; any other suffix than ``.json`` is taken as text.

    Raises:
        SampleError: it cannot be read, is empty, larger than :data:`LARGEST`, not UTF-8, or its
            requests are not as described; one line.
    """
    data = read_sample(path, LARGEST)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SampleError(f"not UTF-8: {error.reason} at byte {error.start}") from error
    if not text.strip():
        raise SampleError("empty: there is no text")
    if path.suffix.lower() != ".json":
        return Passage((Request(text),), data)
    return Passage(requests(text), data)


def requests(text: str) -> tuple[Request, ...]:
    """Return the requests of a JSON document.

    Raises:
        SampleError: it is not of the form that :func:`read` describes; one line.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SampleError(f"not JSON: {one_line(error)}") from error
    found = document.get("requests") if isinstance(document, dict) else None
    if not isinstance(found, list) or set(document) != {"requests"}:
        raise SampleError('{"requests": [...]} expected, with no other key')
    if not found:
        raise SampleError("no requests: one expected at least")
    return tuple(_request(one, number) for number, one in enumerate(found))


def _request(values: Any, number: int) -> Request:
    where = f"request {number}"
    if not isinstance(values, dict):
        raise SampleError(f"{where}: an object with a context expected")
    if strange := sorted(set(values) - _KEYS):
        raise SampleError(f"{where}: unknown key {shortened(strange[0])!r}")
    length, ids = values.get("length"), values.get("ids")
    context, continuation = values.get("context", ""), values.get("continuation", "")
    if not (isinstance(context, str) and isinstance(continuation, str)):
        raise SampleError(f"{where}: context and continuation must be texts")
    try:
        (context + continuation).encode("utf-8")
    except UnicodeEncodeError as error:
        raise SampleError(f"{where}: half a character: {error.reason}") from error
    if "context" not in values and ids is None:
        raise SampleError(f"{where}: a context or ids expected")
    if not (length is None or (type(length) is int and length >= 0)):
        raise SampleError(f"{where}: length: a number of characters expected")
    if ids is None:
        return Request(context, continuation, length)
    if not (isinstance(ids, list) and ids and all(type(i) is int and 0 <= i < MOST for i in ids)):
        raise SampleError(f"{where}: ids: token ids from 0 up expected, one at least")
    scored = values.get("scored", 0)
    if not (type(scored) is int and 0 <= scored < len(ids)):
        raise SampleError(f"{where}: scored: a number of ids below {len(ids)} expected")
    return Request(context, continuation, length, tuple(ids), scored)
