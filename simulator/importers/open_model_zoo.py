"""What OpenVINO's Model Optimizer put before a network: ``model.yml``, or Accuracy Checker's own.

Sources: openvinotoolkit/open_model_zoo, ``models/*/*/model.yml`` (``model_optimizer_args``), and
Accuracy Checker's launcher ``dlsdk`` (``mo_params``, ``mo_flags``); OpenVINO's documentation,
"Embedding Preprocessing Computation": first channels are reversed, then means and scales are
applied, so that these are in the order of the channels that the original model takes. Numbers:
``preprocessor/normalization.py`` (its table of standard deviations holds the means, and is applied
as it stands), ``utils.py`` (``string_to_tuple``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from simulator.importers import values
from simulator.importers.draft import Draft, Normalization
from simulator.importers.keys import Keys
from simulator.importers.network import CardFields
from simulator.profile import document

BESIDE = "model.yml"
TASKS = {"classification": "classification", "detection": "detection",
         "semantic_segmentation": "segmentation"}  # fmt: skip
_ARGUMENTS = "model_optimizer_args"
_GROUP = re.compile(r"[^\[\](),]*([\[(][^\[\]()]*[\])])")
_CONVERTED = ("convert_model", "caffe_model", "tf_model", "onnx_model", "mxnet_weights",
              "saved_model_dir", "mo_params", "mo_flags")  # fmt: skip
"""Keys of a launcher whose model Accuracy Checker converts itself."""
_TABLES = {
    "imagenet": ("104.00698793", "116.66876762", "122.67891434"),
    "cifar10": ("125.307", "122.961", "113.8575"),
}
"""``PRECOMPUTED_MEANS``, and, letter by letter, ``PRECOMPUTED_STDS``."""


def numbers(value: Any) -> list[Fraction]:
    """Take one number a channel: one or three, text with commas, or the name of a data set."""
    if isinstance(value, str) and value in _TABLES:
        return [values.decimal(one) for one in _TABLES[value]]
    if isinstance(value, str):
        parts = value.strip().strip("()[]").split(",")
        found = [values.decimal(part) for part in parts if part.strip()]
    else:
        found = [values.number(v) for v in (value if isinstance(value, list) else [value])]
    if len(found) not in (1, 3):
        raise ValueError("one number or three expected")
    return found * (3 // len(found))


def divisors(value: Any) -> list[Fraction]:
    """Take numbers above 0, as :func:`numbers` does."""
    return values.all_above_zero(numbers(value))


@dataclass(slots=True)
class Inside:
    """What a network does with the tensor before the layers of the original model.

    Attributes:
        kind, source: the evidence; ``assumed`` where nothing says what it does.
        normalization: in the order of the channels after the reversal.
        reverse: the origin of the reversal of the channels, which comes first; empty without one.
    """

    kind: str
    source: str
    normalization: Normalization
    reverse: str = ""

    @property
    def is_known(self) -> bool:
        """Whether something says what the network does."""
        return self.kind != "assumed"


def inside(keys: Keys, path: Path) -> Inside | None:
    """Return what the network of an OpenVINO launcher does first.

    Args:
        keys: of the launcher; those of the conversion are taken.
        path: the file, beside which ``model.yml`` may be.

    Returns:
        None for an ONNX file, which OpenVINO reads as it is.

    Raises:
        ProfileError: ``model.yml`` is no YAML document.
    """
    params: values.Object = keys.take("mo_params", values.mapping, {})
    flags: list[str] = keys.take("mo_flags", values.texts, [])
    if any(key in keys for key in _CONVERTED):
        source = "Accuracy Checker has the network converted by Model Optimizer"
        given = [(name, value, keys.origin("mo_params")) for name, value in params.items()]
        given += [(name, True, keys.origin("mo_flags")) for name in flags]
        return _converted(source, given, lambda why: keys.problem("mo_params", why))
    if str(keys.values.get("model", "")).endswith(".onnx"):
        return None
    beside = path.resolve().parent / BESIDE
    return zoo(beside, keys.draft) if beside.is_file() else _unknown(f"no {BESIDE} beside it")


def card_fields(path: Path, draft: Draft) -> CardFields:
    """Return what ``model.yml`` says of the network before its conversion, on the scale 0-255.

    Open Model Zoo feeds BGR: where the conversion reverses the channels, the network takes RGB.

    Raises:
        ProfileError: it is no YAML document.
    """
    found = zoo(path, draft)
    made = CardFields(f"{path.name} beside it", problems=list(draft.problems))
    task = document.read(path).values.get("task_type")
    if task in TASKS:
        made.say(f"{path.name}: task_type={task}", task=TASKS[task])
    if found.is_known:
        order = "rgb" if found.reverse else "bgr"
        made.say(found.reverse or f"{path.name}: channels are not reversed", input__order=order)
        origin = "; ".join(found.normalization.origins) or f"{path.name}: neither mean nor scale"
        mean, std = found.normalization.mean, found.normalization.std
        made.say(origin, input__top=255, input__mean=[float(one) for one in mean])
        made.say(origin, input__std=[float(one) for one in std])
    return made


def _unknown(why: str) -> Inside:
    said = "mean, scale and channel order inside of the IR are not known"
    return Inside("assumed", f"{said}: {why}", Normalization())


def zoo(path: Path, draft: Draft) -> Inside:
    """Read Open Model Zoo's arguments of Model Optimizer."""
    found = document.read(path)
    written, where = found.values.get(_ARGUMENTS), found.where((_ARGUMENTS,))
    inputs = found.values.get("input_info")
    for one in inputs if isinstance(inputs, list) else ():
        draft.card.append(f"input ({BESIDE}: input_info={values.show(one)})")
    if written is None:
        framework = values.show(found.values.get("framework"))
        return _unknown(f"{BESIDE} has no {_ARGUMENTS} (framework={framework})")
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        draft.problems.append(f"{where}: {_ARGUMENTS}: a list of texts expected")
        return _unknown(BESIDE)
    given = []
    for one in written:
        name, _, value = one.lstrip("-").partition("=")
        given.append((name.strip(), value.strip() or True, f"from {BESIDE}: {values.show(one)}"))
    source = f"{BESIDE}: Model Optimizer puts mean, scale and channel order into the IR"
    return _converted(source, given, lambda why: draft.problems.append(f"{where}: {why}"))


def _converted(
    source: str, given: Iterable[tuple[str, Any, str]], refuse: Callable[[str], None]
) -> Inside:
    """Return what the arguments of Model Optimizer say."""
    made = Inside("emulated", f"{source}; here they come before the network", Normalization())
    for word, value, origin in given:
        name = "scale" if word == "s" else word
        if name == "reverse_input_channels" and value is True:
            made.reverse = origin
        elif name in ("mean_values", "scale_values", "scale"):
            try:
                if name == "mean_values":
                    made.normalization.mean = numbers(_of_one_input(value))
                else:
                    made.normalization.std = divisors(_of_one_input(value))
            except ValueError as error:
                refuse(f"{name}={values.show(value)}: {error}")
            made.normalization.origins.append(origin)
        elif name in ("mean_file", "mean_file_offsets"):
            refuse(f"{name}={values.show(value)}: a mean for every pixel; a profile has one each")
    return made


def _of_one_input(value: Any) -> Any:
    """Return the numbers of ``data[1,2,3]``."""
    groups = _GROUP.findall(value) if isinstance(value, str) else []
    if len(groups) > 1:
        raise ValueError("numbers of several inputs; a profile feeds one image")
    return groups[0] if groups else value
