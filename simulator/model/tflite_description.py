"""What a ``.tflite`` file says of itself.

Sources: tensorflow, ``lite/schema/schema.fbs``; tensorflow/tflite-support,
``metadata_schema.fbs``; "LiteRT 8-bit quantization specification".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from simulator.contract.description import (
    Beginning,
    Description,
    Value,
    operators,
    precision,
    schemes,
)
from simulator.errors import ModelError
from simulator.files import LARGE, read_file
from simulator.importers.flat import Broken, Table, type_of
from simulator.importers.tflite import MARK, Network, network_of, packed_behind

PRODUCTS = {"CONV_2D": (0, 1), "DEPTHWISE_CONV_2D": (0, 1), "FULLY_CONNECTED": (0, 1),
            "CONV_3D": (0, 1), "BATCH_MATMUL": (0, 1), "TRANSPOSE_CONV": (2, 1),
            "UNIDIRECTIONAL_SEQUENCE_LSTM": (0, 1)}  # fmt: skip
"""The places of data and weights among the inputs of each convolution and product."""
_NAMES = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
    EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
    LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1
    RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
    SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
    BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
    UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT
    LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG
    PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE
    EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD
    REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV
    REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
    SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE
    RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
    BATCH_MATMUL
""".split()  # noqa: SIM905
_CUSTOM = 32
_SUPPRESS = ("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "TFLite_Detection_PostProcess")


def describe(path: Path) -> Description:
    """Read the first subgraph; weights are left alone.

    Raises:
        ModelError: it is no ``.tflite`` file, or a damaged one.
    """
    data = read_file(path, LARGE)
    if data[4:8] != MARK:
        raise ModelError(f"{path}: not a .tflite file: its first bytes are another file's")
    try:
        return _described(Table.root(data), network_of(path.name, data), packed_behind(data))
    except Broken as error:
        raise ModelError(f"{path}: a damaged .tflite file: {error}") from error


def _described(model: Table, said: Network, behind: Mapping[str, str]) -> Description:
    codes = [_code(one) for one in model.tables(1)]
    graphs, buffers = model.tables(2), model.tables(4)
    if not graphs:
        raise Broken("it has no subgraph")
    graph = graphs[0]
    tensors = [_Tensor(one, buffers) for one in graph.tables(0)]

    def named(field: int) -> tuple[Value, ...]:
        return tuple(_at(tensors, int(one)).value for one in graph.numbers(field, "<i"))

    found = [
        _typed(codes, tensors, one.integer(0, "<I"), [int(at) for at in one.numbers(1, "<i")])
        for one in graph.tables(3)
    ]
    made = operators(found)
    stored, computed = precision(made, PRODUCTS)
    kinds = dict.fromkeys(name for name, *_ in found)
    return Description(
        inputs=named(1),
        outputs=named(2),
        operators=made,
        quantization=schemes(scheme for one in tensors for scheme in one.schemes()),
        form="integer tensors" if any(one.scales for one in tensors) else "",
        storage=stored,
        compute=computed,
        preprocessing=_beginning(codes, tensors, graph).made(),
        postprocessing=tuple(name for name in kinds if name in _SUPPRESS),
        metadata={
            "version": str(model.integer(0, "<I")),
            "description": model.text(3),
            "carries": ", ".join(filter(None, (one.text(0) for one in model.tables(6)))),
            "name": said.title,
            "summary": said.summary,
            "NormalizationOptions mean": ", ".join(f"{one:.8g}" for one in said.mean),
            "NormalizationOptions std": ", ".join(f"{one:.8g}" for one in said.std),
            "files": ", ".join(said.files),
            **behind,
        },
    )


def _code(one: Table) -> str:
    """An operator's name; codes above 127 stand in a field of their own."""
    number = max(one.integer(0, "<b"), one.integer(3, "<i"))
    if number == _CUSTOM:
        return one.text(1) or "CUSTOM"
    return _NAMES[number] if 0 <= number < len(_NAMES) else f"operator {number}"


class _Tensor:
    """One tensor of the graph."""

    def __init__(self, table: Table, buffers: Sequence[Table]) -> None:
        self.dtype, buffer = type_of(table), table.integer(2, "<I")
        raw = buffers[buffer].raw(0) if 0 < buffer < len(buffers) else b""
        self.stored = bool(raw)
        few = self.dtype == "float32" and len(raw) in (4, 12)
        self.numbers = struct.unpack(f"<{len(raw) // 4}f", raw) if few else ()
        quantization = table.table(4)
        self.scales = quantization.numbers(2, "<f") if quantization else ()
        zeros = quantization.numbers(3, "<q") if quantization else ()
        self.zeros = tuple(int(zero) for zero in zeros)
        sizes = table.numbers(7, "<i") or table.numbers(0, "<i")
        whole = len(self.scales) == 1 and self.dtype != "float32"
        self.value = Value(
            table.text(3), self.dtype, tuple(None if one < 0 else int(one) for one in sizes),
            float(self.scales[0]) if whole else 0, self.zeros[0] if whole and self.zeros else 0,
        )  # fmt: skip

    def schemes(self) -> Iterator[tuple[str, str, str, bool | None]]:
        if self.scales and self.dtype in ("int4", "int8", "uint8", "int16"):
            middle = 128 if self.dtype == "uint8" else 0
            per = "tensor" if len(self.scales) == 1 else "channel"
            symmetric = all(zero == middle for zero in self.zeros)
            yield "weights" if self.stored else "activations", self.dtype, per, symmetric


def _beginning(codes: Sequence[str], tensors: Sequence[_Tensor], graph: Table) -> Beginning:
    """Follow the only image from the input on; operators stand in the order in which they run."""
    begun, inputs = Beginning(), [int(one) for one in graph.numbers(1, "<i")]
    if len(inputs) != 1 or len(_at(tensors, inputs[0]).value.shape) != 4:
        return begun
    at = inputs[0]
    for one in graph.tables(3):
        code, taken = one.integer(0, "<I"), [int(place) for place in one.numbers(1, "<i")]
        if at not in taken or code >= len(codes):
            break
        others = [_at(tensors, place).numbers for place in taken if place != at]
        kind, first = codes[code].title(), taken[0] == at
        if codes[code] == "TRANSPOSE":
            begun.then("axes exchanged")
        elif codes[code] == "CAST":
            begun.then(f"{_at(tensors, at).dtype} to float32")
        elif not (
            kind in ("Add", "Sub", "Mul", "Div") and len(others) == 1 and others[0]
            and (first or kind in ("Add", "Mul")) and begun.arithmetic(kind, others[0])
        ):  # fmt: skip
            break
        (at,) = (int(place) for place in one.numbers(2, "<i"))
    return begun


def _at(tensors: Sequence[_Tensor], place: int) -> _Tensor:
    if not 0 <= place < len(tensors):
        raise Broken("an operator takes a tensor that is not there")
    return tensors[place]


def _typed(
    codes: Sequence[str], tensors: Sequence[_Tensor], code: int, inputs: Sequence[int]
) -> tuple[str, str, str]:
    if code >= len(codes):
        raise Broken("an operator's code is missing")
    name = codes[code]
    data, weights = PRODUCTS.get(name, (0, -1))
    given = [_at(tensors, at) for at in inputs if at >= 0]
    taken = given[data].dtype if data < len(given) else ""
    own = given[weights] if 0 <= weights < len(given) else None
    if own is None:
        return name, "", taken
    # 8-bit weights beside floats: the kernel rounds the floats of each inference ("dynamic range")
    computed = "int8" if taken == "float32" and own.dtype == "int8" else taken
    return name, own.dtype, computed
