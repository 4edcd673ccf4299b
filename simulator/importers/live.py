"""A live transform: the document that says the same, from the object's class and fields.

Nothing of the object's library is imported. Sources: pytorch/vision, ``transforms/transforms.py``
and ``v2`` (fields have the names of the parameters; a ``Compose`` has ``transforms``);
albumentations, ``core/serialization.py`` (``to_dict``); timm, ``models/_pretrained.py``
(``PretrainedCfg``), ``data/config.py`` (``resolve_data_config`` gives a dictionary).
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simulator.errors import ProfileError, UserError
from simulator.importers.compositions import CONTAINERS
from simulator.importers.importing import convert
from simulator.importers.torchvision import PARAMETERS

_OF_MODELS = ("pretrained_cfg", "default_cfg")


def convert_object(transform: object, name: str | None = None, base: str | None = None) -> str:
    """Convert a transform that is in memory to a profile.

    Args:
        transform: a composition of torchvision or albumentations; of timm a ``pretrained_cfg``,
            what ``resolve_data_config`` returns, or a model that has one.
        name: the name of the profile.
        base: the profile to extend; None uses the importer's own.

    Returns:
        A YAML document, as of :func:`simulator.importers.convert`.

    Raises:
        ProfileError: one line for everything that a profile cannot express.
        UserError: nothing is known of such an object.
    """
    format, text = document_of(transform)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"transform{'.json' if format != 'torchvision' else '.txt'}"
        path.write_text(text, encoding="utf-8")
        try:
            return convert(path, format, name, base)
        except ProfileError as error:
            said = type(transform).__name__
            lines = [line.replace(str(path), said) for line in error.problems]
            raise ProfileError(lines) from error


def document_of(transform: object) -> tuple[str, str]:
    """Return the format and the text of the document that says what an object does.

    Raises:
        UserError: nothing is known of such an object.
    """
    kind = type(transform).__name__
    for field in _OF_MODELS:
        if hasattr(transform, field):
            transform = getattr(transform, field)
    if dataclasses.is_dataclass(transform) and not isinstance(transform, type):
        transform = dataclasses.asdict(transform)
    if hasattr(transform, "to_dict") and type(transform).__module__.startswith("albumentations"):
        transform = transform.to_dict()
    if isinstance(transform, Mapping):
        format = "albumentations" if "transform" in transform else "timm"
        return format, json.dumps(_plain(dict(transform)))
    if kind in CONTAINERS or kind in PARAMETERS:
        return "torchvision", _written(transform)
    module = type(transform).__module__
    raise UserError(
        f"{module}.{kind}: a transform of torchvision or albumentations, or timm's data_config, "
        "expected; give the function itself as a stack instead"
    )


def _written(transform: object) -> str:
    """Return a transform of torchvision as the call that makes it."""
    kind = type(transform).__name__
    if kind in CONTAINERS:
        inner: Any = getattr(transform, "transforms", transform)
        steps = "".join(f"    {_written(step)},\n" for step in inner)
        return f"{kind}([\n{steps}])"
    if kind not in PARAMETERS:
        named = getattr(transform, "__name__", "")
        return named if named.isidentifier() else f"{kind}()"
    fields = [name for name in PARAMETERS[kind].split() if hasattr(transform, name)]
    return f"{kind}({', '.join(f'{name}={_value(getattr(transform, name))}' for name in fields)})"


def _value(value: object) -> str:
    """Return a field as it would be written: an enumeration by its name, an array as a list."""
    if hasattr(value, "name") and hasattr(value, "value"):
        return repr(str(value.name))
    return repr(_plain(value)) if not str(value).startswith("torch.") else repr(str(value))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: arrays as lists of the fewest digits that are the same."""
    if hasattr(value, "tolist"):
        return [float(str(one)) for one in np.asarray(value).ravel()]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value if isinstance(value, int | float | str | None) else str(value)
