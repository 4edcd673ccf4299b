"""Write an evidence bundle: conformance and recordings of one backend, on the device of today."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from simulator import checkout, machine, registry
from simulator.audit import archive, bundle
from simulator.contract import Array, Backend
from simulator.errors import MissingLibrary, UserError
from simulator.evidence import inputs
from simulator.evidence.document import MANIFEST, SCHEMA, Conformance, Evidence, Recorded
from simulator.files import make_durable
from simulator.results.json_text import finite, json_text
from simulator.testing import Finding, Workshop, prove, registered
from simulator.testing.subject import first
from simulator.testing.values import CannotMake
from simulator.worker import environments

ARRAYS = "arrays"
_DRIVERS = {
    "nvidia": "/proc/driver/nvidia/version",
    "ascend": "/usr/local/Ascend/driver/version.info",
    "rknpu": "/sys/module/rknpu/version",
    "board": "/proc/device-tree/model",
}
"""Where systems tell the version of an accelerator's driver, and the name of a board."""
_MOST_LINE = 200


def gather(backend: Backend, path: Path, tell: Callable[[Finding], None]) -> Evidence:
    """Prove a backend, record it, and write the bundle.

    Args:
        backend: it must run here.
        path: of the new file.
        tell: gets every finding as soon as it is there.

    Returns:
        What is in the bundle.

    Raises:
        MissingLibrary: the backend cannot run here; nothing is written.
        UserError: the file exists, or cannot be written.
    """
    registry.require(backend)
    device, versions = _device(backend), dict(registry.versions(backend))
    draft = _draft(path)
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            workshop = Workshop(Path(folder), registered())
            findings = []
            for finding in prove(backend, workshop):
                tell(finding)
                findings.append(
                    Conformance(
                        stage=str(finding.stage), options=finding.options, check=finding.check,
                        mark=finding.mark.value, remark=finding.remark,
                    )
                )  # fmt: skip
            arrays: dict[str, bytes] = {}
            recordings = list(_recordings(backend, workshop, arrays))
        found = Evidence.model_validate({
            "schema": SCHEMA,
            "simulator": str(machine.describe({})["versions"]["pipeline-simulator"]),
            "commit": checkout.commit(),
            "backend": backend.name,
            "package": registry.BACKENDS.package(backend.name),
            "libraries": versions,
            "device": device,
            "drivers": drivers(),
            "machine": finite(machine.describe(versions)),
            "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "seconds": round(time.monotonic() - began, 1),
            "findings": findings,
            "recordings": recordings,
        })  # fmt: skip
        _write(draft, path, found, arrays)
    finally:
        draft.unlink(missing_ok=True)
    return found


def _device(backend: Backend) -> str:
    """Return where a backend runs, here or in a Python of its own."""
    home = registry.home(backend.name)
    found = environments.check(home).device if home else backend.device and backend.device()
    return f"{found or 'cpu'}, {platform.machine()}"


def _draft(path: Path) -> Path:
    """Reserve a place beside the bundle, before anything long is begun."""
    if path.exists():
        raise UserError(f"{path} exists already; choose another --out, or remove it")
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.write_bytes(b"")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error
    return draft


def _recordings(
    backend: Backend, workshop: Workshop, arrays: dict[str, bytes]
) -> Iterator[Recorded]:
    """Yield what each implementation gave; *arrays* gets the files, by their digest."""
    for offer in backend.offers:
        if not inputs.is_recorded(offer.stage):
            continue
        try:
            variants = list(inputs.subjects(first(backend, offer, workshop)))
        except (MissingLibrary, CannotMake):  # the findings say so
            continue
        for variant in variants:
            for what in inputs.recorded_kinds(variant):
                try:
                    found = inputs.attempts(variant, what)
                except (MissingLibrary, CannotMake):
                    continue
                yield Recorded(
                    stage=str(offer.stage),
                    options=finite(dict(variant.options)),
                    what=what,
                    inputs={attempt.name: attempt.digest for attempt in found},
                    arrays={
                        attempt.name: [_kept(array, arrays) for array in attempt.outcome]
                        for attempt in found
                        if not isinstance(attempt.outcome, str)
                    },
                    refused={
                        attempt.name: attempt.outcome
                        for attempt in found
                        if isinstance(attempt.outcome, str)
                    },
                )


def _kept(array: Array, arrays: dict[str, bytes]) -> str:
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(array), allow_pickle=False)
    content = file.getvalue()
    sha = hashlib.sha256(content).hexdigest()
    arrays[sha] = content
    return sha


def _write(draft: Path, path: Path, found: Evidence, arrays: dict[str, bytes]) -> None:
    members: dict[str, bytes] = {f"{ARRAYS}/{sha}.npy": data for sha, data in arrays.items()}
    members[MANIFEST] = json_text(found.model_dump(mode="json", by_alias=True)).encode()
    members[bundle.DIGESTS] = bundle.listed(
        {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    )
    try:
        archive.write(draft, path.parent, [], members)
        make_durable(draft)
        os.replace(draft, path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error


def drivers() -> dict[str, str]:
    """Return the first line of what the system says of each driver, and of the board."""
    found: dict[str, str] = {}
    for name, place in _DRIVERS.items():
        try:
            text = Path(place).read_text(errors="replace").replace("\0", "")
        except OSError:
            continue
        if text.strip():
            found[name] = text.strip().splitlines()[0][:_MOST_LINE]
    return found
