"""Everything that the contract passes around comes out of the codec as it went in."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from simulator.contract import (
    Effective,
    Encoded,
    Matrix,
    PixelFormat,
    Port,
    Range,
    inspect,
    yuv_frame,
)
from simulator.worker.codec import Memory, decode, encode

KINDS = [np.uint8, np.int8, np.float16, np.float32, np.float64, np.int64, np.bool_]


@pytest.fixture(scope="module")
def memories():
    with tempfile.TemporaryFile() as file:
        yield Memory(file.fileno()), Memory(os.dup(file.fileno()))


def there(memories, value):
    ours, theirs = memories
    return decode(encode({"value": value}, ours), theirs)["value"]


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(KINDS).flatmap(
            lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0))
        ),
        max_size=4,
    )
)
def test_arrays(memories, values):
    got = there(memories, values)

    assert [a.dtype for a in got] == [a.dtype for a in values]
    assert all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(got, values, strict=True)
    )


def test_any_strides(memories):
    base = np.arange(60, dtype=np.uint8).reshape(5, 4, 3)

    for view in (base[::-1], base[:, ::2], base.transpose(2, 0, 1), base[..., ::-1]):
        assert np.array_equal(there(memories, view), view)


def test_a_message_larger_than_any_before(memories):
    for size in (10, 10_000, 1_000_000):
        array = np.full(size, 3, np.uint16)
        assert np.array_equal(there(memories, array), array)


def test_what_arrives_is_a_copy(memories):
    first = there(memories, np.zeros(8, np.uint8))
    there(memories, np.ones(8, np.uint8))

    assert first.tolist() == [0] * 8


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
        | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
        | st.lists(inner).map(tuple),
    )
)  # fmt: skip
def test_plain_values(memories, value):
    assert there(memories, value) == value


def test_records(memories):
    planes = [np.full(shape, 7, np.uint8) for shape in ((4, 6), (2, 3), (2, 3))]
    frame = yuv_frame(PixelFormat.NV12, *planes, Matrix.BT709, Range.LIMITED)
    got = there(memories, frame)
    assert (got.format, got.matrix, got.range) == (frame.format, frame.matrix, frame.range)
    assert all(np.array_equal(a, b) for a, b in zip(got.planes, frame.planes, strict=True))
    for value in (
        Port("x", np.dtype("f4"), (1, None, 3)),
        Effective({"fp32": 3}, {"threads": 1}, {"kernels": {"Conv": 2}}),
        Path("/a/b"),
    ):
        assert there(memories, value) == value


def test_what_cannot_travel_is_named(memories):
    with pytest.raises(TypeError, match="a set cannot be sent"):
        there(memories, {1})


def test_an_encoded_image(memories):
    image = inspect("a.jpg", tiny.encoded(tiny.picture((9, 9, 9), (8, 6))))
    got = there(memories, image)
    assert isinstance(got, Encoded)
    assert got == image
