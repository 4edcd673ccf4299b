"""NVIDIA Triton: ``config.pbtxt`` of a DALI model, or of an ensemble that begins with one.

Sources: triton-inference-server/common, ``protobuf/model_config.proto``; Triton documentation,
"Ensemble Models"; triton-inference-server/dali_backend, README (``1/dali.py`` beside the
configuration, or ``1/model.dali``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simulator.importers import values
from simulator.importers.dali import DALI
from simulator.importers.draft import Draft
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.textproto import TextProto

_BESIDE = ("dali.py", "model.dali")


class Triton(Importer):
    """A model of a repository, with the pipeline that it names."""

    name = tool = "triton"
    about = "Triton's config.pbtxt of a DALI model, or of an ensemble with one"
    base = "dali_fp32"
    stems = ("config",)
    line = (
        r"^[ \t]*(platform|backend)\s*:\s*\"|^[ \t]*ensemble_scheduling\b|^[ \t]*max_batch_size\s*:"
    )

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name the pipelines."""
        found = _pipeline(file.path, _read(file), [])
        return DALI.stacks(ConfigFile(found)) if isinstance(found, Path) else ["the only one"]

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the pipeline of the model that gets the image."""
        config = _read(file)
        draft.name = str(config.get("name", ""))
        found = _pipeline(file.path, config, draft.aside)
        if isinstance(found, str):
            draft.problems.append(f"{file.path}:1: {found}")
            return
        draft.aside += [
            f"{values.plain(key)}={values.show(value)}: how Triton serves it"
            for key, value in config.items()
        ]
        draft.aside.append(f"the preprocessing is that of {found.name}")
        DALI.read(ConfigFile(found), draft, stack)


def _read(file: ConfigFile) -> values.Object:
    return TextProto.read(file.path, file.text).values


def _pipeline(path: Path, config: values.Object, told: list[str]) -> Path | str:
    """Return the file of the pipeline, or why there is none."""
    folder = path.resolve().parent
    kind = config.get("backend") or config.get("platform")
    if kind == "dali":
        names = [folder / "1" / name for name in _BESIDE]
        return next((one for one in names if one.is_file()), "a DALI model without 1/dali.py "
                    "or 1/model.dali beside it")  # fmt: skip
    schedule: Any = config.get("ensemble_scheduling")
    steps = schedule.get("step", []) if isinstance(schedule, dict) else []
    steps = steps if isinstance(steps, list) else [steps]
    models = [str(step.get("model_name", "")) for step in steps if isinstance(step, dict)]
    if not models:
        return ("tensors of one network, and no preprocessing: give the client's code as a stack, "
                "or import the ensemble around it")  # fmt: skip
    for model in models:
        beside = folder.parent / model / "config.pbtxt"
        inner = _read(ConfigFile(beside)) if beside.is_file() else {}
        if inner.get("backend") == "dali" and "ensemble_scheduling" not in inner:
            told.append(f"ensemble_scheduling: {values.show(model)} makes the network's input")
            return _pipeline(beside, inner, told)
    listed = values.show(", ".join(models))
    return f"none of {listed} is a DALI model beside this one; give its code as a stack"


TRITON = Triton()
