"""``torch.export`` programs from strangers: looked through before PyTorch reads them.

``torch.export.load`` unpickles what it finds, evaluates texts of the graph as Python and pastes its
names into Python that it generates, so that a program can run any command. Here a program is read
without PyTorch and written anew with those members alone that hold the graph
(:mod:`simulator.contract.program_graph`), raw weights and plain tensors. PyTorch reads the copy.

Source:
    torch/export/pt2_archive/_package.py and torch/_export/serde/serialize.py of PyTorch 2.13.
"""

from __future__ import annotations

import io
import json
import pickletools
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from simulator.contract.program_graph import plain_graph, plain_weights
from simulator.errors import ModelError, one_line

MOST_RATIO = 100
"""Unpacked to packed, of a file above :data:`SMALL`."""
SMALL = 2**26
_BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError,
    ValueError, OverflowError, RecursionError, LookupError, TypeError, AttributeError,
)  # fmt: skip
_SETTINGS = r"(\.data/(version|serialization_id)|byteorder)"
_MEMBERS = re.compile(
    rf"archive_format|archive_version|{_SETTINGS}|models/model\.json|data/sample_inputs/model\.pt"
    r"|data/(weights/(weight_\d+|model_weights_config\.json)"
    r"|constants/(tensor_\d+|model_constants_config\.json))"
)
"""What a program of one model may have, below the archive's own folder."""
GRAPH = "models/model.json"
_SAVED = re.compile(rf"data\.pkl|{_SETTINGS}|version|\.format_version|\.storage_alignment|data/\d+")
"""What ``torch.save`` writes of tensors."""
_STORAGES = (
    "BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float", "Half",
    "Int", "Long", "Short",
)  # fmt: skip
_GLOBALS = {
    "collections OrderedDict",
    "torch Size",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_tensor_v2",
    "torch.storage UntypedStorage",
    *(f"torch {kind}Storage" for kind in _STORAGES),
}
_OPCODES = {
    "APPEND", "APPENDS", "BINFLOAT", "BINGET", "BININT", "BININT1", "BININT2", "BINPERSID",
    "BINPUT", "BINUNICODE", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "FRAME", "GLOBAL", "LONG1",
    "LONG_BINGET", "LONG_BINPUT", "MARK", "MEMOIZE", "NEWFALSE", "NEWTRUE", "NONE", "PROTO",
    "REDUCE", "SETITEM", "SETITEMS", "SHORT_BINUNICODE", "STOP", "TUPLE", "TUPLE1", "TUPLE2",
    "TUPLE3",
}  # fmt: skip


def plain_program(path: Path) -> IO[bytes]:
    """Return a program that runs no code when PyTorch reads it.

    Args:
        path: a file of ``torch.export.save``.

    Returns:
        An open temporary file for ``torch.export.load``: the same graph, weights and examples.

    Raises:
        ModelError: the file holds more than a graph, weights and plain tensors, or is none.
    """
    copy = tempfile.TemporaryFile(suffix=".pt2")  # noqa: SIM115  the caller reads it
    try:
        with path.open("rb") as source:
            _copied(source, copy, _MEMBERS, _checked)
    except _BROKEN as error:
        copy.close()
        raise ModelError(
            f"{path}: {one_line(error, 200)}; a torch.export program is read only where it has a "
            "graph, weights and plain tensors: save it again with torch.export.save"
        ) from error
    copy.seek(0)
    return copy


Check = Callable[[str, bytes], bytes]


def _copied(source: IO[bytes], target: IO[bytes], known: re.Pattern[str], check: Check) -> None:
    """Copy a zip file member by member; ValueError where it holds what it should not."""
    size = source.seek(0, io.SEEK_END)
    with zipfile.ZipFile(source) as packed, zipfile.ZipFile(target, "w") as new:
        members = packed.infolist()
        if sum(member.file_size for member in members) > max(SMALL, MOST_RATIO * size):
            raise ValueError("it would unpack to far more bytes than it has")
        top = members[0].filename.partition("/")[0] if members else ""
        seen: set[str] = set()
        for one in members:
            folder, _, name = one.filename.partition("/")
            if folder != top or not known.fullmatch(name) or name in seen:
                raise ValueError(f"{one.filename[:100]!r} is none of what torch.export.save writes")
            seen.add(name)
            new.writestr(zipfile.ZipInfo(one.filename), check(name, packed.read(one)))
        if known is _MEMBERS and GRAPH not in seen:
            raise ValueError("it has no graph")


def _checked(name: str, content: bytes) -> bytes:
    """Return a member of a program, its pickles copied."""
    if name.endswith("_config.json"):
        plain_weights(name, json.loads(content))
    elif name.endswith(".json"):
        return json.dumps(plain_graph(json.loads(content))).encode()
    elif name.endswith(".pt") and content:  # empty where the program has no example inputs
        copy = io.BytesIO()
        _copied(io.BytesIO(content), copy, _SAVED, _unpicklable)
        return copy.getvalue()
    return content


def _unpicklable(name: str, content: bytes) -> bytes:
    """Refuse a pickle that does more than build tensors; ValueError."""
    if name == "data.pkl":
        for opcode, value, _ in pickletools.genops(content):
            if opcode.name not in _OPCODES:
                raise ValueError(f"a pickle in it does more than build tensors: {opcode.name}")
            if opcode.name == "GLOBAL" and value not in _GLOBALS:
                raise ValueError(f"a pickle in it calls {str(value).replace(' ', '.')[:100]}")
    return content
