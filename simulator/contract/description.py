"""What a model file says of itself: how it is typed, quantized and fed. Read, never run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

TUNED = "pipeline_simulator.quantized"
"""In the metadata of an ONNX file that was fine-tuned with few bits: the method and the bits."""


@dataclass(frozen=True, slots=True)
class Value:
    """An input or an output.

    Attributes:
        name: in the file.
        dtype: NumPy's name of its type, for example ``float32``; empty: not known.
        shape: its dimensions; None for a free one.
        scale: of integers that stand for real numbers, (q - zero) * scale; 0: they do not.
        zero: their zero point.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    scale: float = 0
    zero: int = 0


@dataclass(frozen=True, slots=True)
class Operators:
    """Operators of one kind that have the same types.

    Attributes:
        operator: its name in the format, for example ``Conv``.
        count: how many there are.
        weights: the type of their weights as profiles write it, for example ``int8``; empty: they
            have none.
        activations: the type of what they take, likewise.
    """

    operator: str
    count: int
    weights: str
    activations: str


@dataclass(frozen=True, slots=True)
class Scheme:
    """Tensors that are quantized in the same way.

    Attributes:
        of: ``weights`` or ``activations``.
        dtype: of the integers, for example ``int8``.
        per: what has a scale of its own: ``tensor``, ``channel`` or ``block``.
        symmetric: whether every zero point is 0 (128 of uint8); None: not known.
        count: how many tensors.
    """

    of: str
    dtype: str
    per: str
    symmetric: bool | None
    count: int


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What the graph does with its one input before the network begins.

    Attributes:
        steps: in words, in order.
        mean: what is taken away from each channel, in the network's order of channels.
        std: what the result is divided by.
        reversed: whether the order of the channels is reversed.
        refused: a step that a stack would do twice and cannot leave out, in words; empty: none.
    """

    steps: tuple[str, ...]
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    reversed: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Description:
    """What a model file says of itself.

    Attributes:
        inputs: what must be fed; empty: the file does not say.
        outputs: what it gives.
        operators: its operators by kind and types, the most frequent first.
        quantization: how tensors are quantized; empty: none is, or the file does not say.
        form: how the file writes that: ``QDQ``, ``QOperator``, ``FakeQuantize``, ...
        storage: the type of the weights of most products, as a profile's ``precision.storage``;
            None: the file does not say.
        compute: the type of the arithmetic that the file asks for, likewise.
        preprocessing: what it does with its input before the network begins; None: nothing.
        postprocessing: operators that decode or suppress boxes, by name.
        metadata: producer, operator sets, and what else the file carries.
        unread: why the file says no more; empty: all was read.
    """

    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    operators: tuple[Operators, ...] = ()
    quantization: tuple[Scheme, ...] = ()
    form: str = ""
    storage: str | None = None
    compute: str | None = None
    preprocessing: Preprocessing | None = None
    postprocessing: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    unread: str = ""


PRECISIONS = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64",
    "int4": "int4", "uint4": "int4", "int8": "int8", "uint8": "int8",
    "int16": "int16", "uint16": "int16", "int2": "int2", "uint2": "int2",
    "float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2",
}  # fmt: skip
"""The words of profiles for NumPy's types of weights and activations."""


def operators(found: Iterable[tuple[str, str, str]]) -> tuple[Operators, ...]:
    """Count operators.

    Args:
        found: for each its name, and NumPy's types of its weights and of its activations.
    """
    counted = Counter(
        (name, *(PRECISIONS.get(kind, kind) for kind in kinds)) for name, *kinds in found
    )
    return tuple(
        Operators(name, count, *kinds)
        for (name, *kinds), count in sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    )


def schemes(found: Iterable[tuple[str, str, str, bool | None]]) -> tuple[Scheme, ...]:
    """Count quantized tensors; for each the fields of a :class:`Scheme` without its count."""
    counted = sorted(Counter(found).items(), key=lambda one: (one[0][0] != "weights", -one[1]))
    return tuple(Scheme(*one, count) for one, count in counted)


def precision(made: Sequence[Operators], products: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the types of weights and of activations of most products of a file.

    Args:
        made: its operators.
        products: the names of convolutions and matrix products.
    """
    known = set(products)
    weights, activations = Counter[str](), Counter[str]()
    for one in made:
        if one.operator in known:
            weights[one.weights] += one.count
            activations[one.activations] += one.count
    del weights[""], activations[""]
    stored = max(weights, key=lambda kind: weights[kind], default=None)
    computed = max(activations, key=lambda kind: activations[kind], default=None)
    return stored, computed


class Beginning:
    """The steps at the start of a graph, put together as a reader follows them."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.refused = ""
        self._mean, self._std = [0.0] * 3, [1.0] * 3
        self._reversed = False

    def arithmetic(self, kind: str, values: Sequence[float]) -> bool:
        """Take ``x kind values``, one number or one a channel; False: it is the network's own.

        Args:
            kind: ``Add``, ``Sub``, ``Mul`` or ``Div``.
            values: what is added, taken away, multiplied with or divided by.
        """
        if len(values) not in (1, 3) or (kind in ("Mul", "Div") and 0 in values):
            return False
        each = [*values] * (3 // len(values))
        if kind in ("Mul", "Div"):
            factors = [1 / one for one in each] if kind == "Mul" else each
            self._std = [old * one for old, one in zip(self._std, factors, strict=True)]
        else:
            sign = 1 if kind == "Sub" else -1
            self._mean = [
                old + sign * one * std
                for old, one, std in zip(self._mean, each, self._std, strict=True)
            ]
        self.steps.append(f"{kind} {', '.join(f'{one:.7g}' for one in values)}")
        return True

    def reverse(self) -> bool:
        """Take a reversal of the channels."""
        self._mean.reverse()
        self._std.reverse()
        self._reversed = not self._reversed
        self.steps.append("channels reversed")
        return True

    def then(self, words: str, refused: str = "") -> bool:
        """Take a step that changes no number, or one that a stack cannot leave out."""
        self.steps.append(words)
        self.refused = self.refused or refused
        return True

    def made(self) -> Preprocessing | None:
        """Return what the steps do; None where there are none."""
        if not self.steps:
            return None
        return Preprocessing(
            tuple(self.steps), tuple(self._mean), tuple(self._std), self._reversed, self.refused
        )
