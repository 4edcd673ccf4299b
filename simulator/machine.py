"""The machine of a run: its processor and the versions of its software."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypedDict

from simulator.contract.library import installed_version


class Processor(TypedDict):
    """A processor, as the system reports it."""

    model: str
    flags: list[str]


class Machine(TypedDict):
    """A machine and the versions of its software."""

    platform: str
    python: str
    cpu: Processor
    cores: int | None
    usable_cores: list[int]
    versions: dict[str, str | None]


def describe(versions: Mapping[str, str | None]) -> Machine:
    """Return the machine and the versions of every library in use.

    Args:
        versions: versions of the libraries that the backends use, by distribution.
    """
    core = ("numpy", "onnx", "pyarrow", "pydantic", "scipy", "pipeline-simulator")
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": processor(),
        "cores": os.cpu_count(),
        "usable_cores": usable(),
        "versions": dict(sorted({**versions, **{n: installed_version(n) for n in core}}.items())),
    }


@cache
def processor() -> Processor:
    """Return the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {"model": platform.processor(), "flags": []}
    found: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    model = found.get("model name") or found.get("CPU part", "")  # x86, else ARM
    flags = found.get("flags") or found.get("Features", "")
    return {"model": model, "flags": sorted(flags.split())}


def mhz() -> list[float]:
    """Return the current frequency, in MHz, of each processor that this process may use.

    Empty if the system does not report it, as in many virtual machines.
    """
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    pairs = re.findall(r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$", text, re.M | re.S)
    found = {int(cpu): float(frequency) for cpu, frequency in pairs}
    return [found[cpu] for cpu in usable() if cpu in found]


def usable() -> list[int]:
    """Return the numbers of the processors that this process may use (``taskset`` limits them)."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
