"""What decoding has to stand: NaN, what does not fit, threads; and which settings are the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, combinations, product
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from pydantic import ValidationError

from simulator.errors import ModelError, SampleError
from simulator.profile.postprocess import Postprocess
from simulator.profile.section import Section
from simulator.testing.subject import Failed, expect, one_line
from simulator.testing.task_subject import Outputs, TaskSubject, plain

THREADS, ROUNDS = 4, 5
_TRIED: dict[Any, tuple[Any, ...]] = {bool: (False, True), int: (1, 2), float: (0.125, 0.5)}


def nan_and_infinity_are_refused(subject: TaskSubject) -> str | None:
    """An output of NaN or infinity is a SampleError; so is a single one, or it is not read."""
    whole, expected = [], plain(subject.answer())
    for name, array in subject.fresh().items():
        if array.dtype.kind != "f":
            whole.append(name)
            continue
        for value in (np.nan, np.inf, -np.inf):
            outputs = subject.fresh()
            outputs[name][...] = value
            _refused(subject, outputs, f"nothing but {value} in output {name!r}", SampleError)
            for place in sorted({0, array.size // 2, array.size - 1}):
                outputs = subject.fresh()
                outputs[name].flat[place] = value
                what = f"{value} at {place} of {array.size} in output {name!r}"
                _refused(subject, outputs, what, SampleError, expected)
    return f"integers cannot be NaN: {', '.join(whole)}" if whole else None


def what_does_not_fit_is_refused(subject: TaskSubject) -> None:
    """The card's own shapes pass; two images at once, no numbers, no output are a ModelError."""
    subject.task.check({name: array.shape for name, array in subject.outputs[0].items()})
    for name in subject.outputs[0]:
        for what, change in (
            ("two images at once in", lambda array: np.stack([array, array])),
            ("complex numbers in", lambda array: array.astype(np.complex64)),
        ):
            outputs = subject.fresh()
            outputs[name] = change(outputs[name])
            _refused(subject, outputs, f"{what} output {name!r}", ModelError)
    for name in subject.task.outputs():
        outputs = subject.fresh()
        del outputs[name]
        _refused(subject, outputs, f"no output {name!r}", ModelError)


def outputs_are_left_alone(subject: TaskSubject) -> None:
    """Decoding writes nothing into the outputs: several stacks may share them."""
    outputs = subject.fresh()
    subject.decoded(outputs)
    for name, array in subject.outputs[0].items():
        same = plain(array) == plain(outputs[name])
        expect(same, f"output {name!r}: the same bytes expected after decoding, got others")


def any_strides_will_do(subject: TaskSubject) -> None:
    """Outputs that are transposed, reversed or read-only in memory are decoded as copies are."""
    expected = plain(subject.answer())
    for what, laid in (
        ("in Fortran's order", np.asfortranarray),
        ("reversed in memory", lambda array: np.flip(np.flip(array).copy())),
        ("read-only", _read_only),
    ):
        outputs = {name: laid(array) for name, array in subject.fresh().items()}
        same = plain(subject.decoded(outputs)) == expected
        expect(same, f"outputs {what}: the answer to a plain copy expected, got another")


def the_same_twice(subject: TaskSubject) -> None:
    """The same outputs are answered alike again, after another image too; that one otherwise."""
    outputs = subject.fresh()
    first, other, again = (
        plain(subject.decoded(some)) for some in (outputs, subject.fresh(1), outputs)
    )
    expect(first == again, "decoding again: the same answer expected, got another")
    expect(first != other, "the other image: another answer expected, got the same")


def threads_see_the_same(subject: TaskSubject) -> None:
    """Four threads, on two images in turns, get what one thread gets."""
    expected = [plain(subject.answer(which)) for which in range(2)]
    with ThreadPoolExecutor(THREADS) as pool:
        work = [number % 2 for number in range(THREADS * ROUNDS)]
        found = list(pool.map(lambda which: plain(subject.answer(which)), work))
    wrong = sum(got != expected[which] for which, got in zip(work, found, strict=True))
    expect(not wrong, f"{THREADS} threads: the answers of one expected, got {wrong} others")


def equal_identities_do_equal_work(subject: TaskSubject) -> None:
    """Profiles whose settings have one identity get one answer, and the identity is JSON.

    Every value of every field of ``postprocess`` is tried alone, and with every other field of its
    section. What this task has no use for may change nothing; what changes the answer must change
    the identity, as equal work is done once.
    """
    known: dict[str, tuple[str, Any]] = {}
    for words, asked in profiles():
        try:
            one, other = subject.task.settings(asked), subject.task.settings(asked.model_copy())
        except ModelError:
            continue
        identity, again = one.identity(), other.identity()
        told = json.dumps(identity, sort_keys=True, allow_nan=False)
        same = told == json.dumps(again, sort_keys=True)
        expect(same, f"{words}: one identity expected of equal profiles, got {identity}, {again}")
        answer = _answer(subject, asked)
        like, expected = known.setdefault(told, (words, answer))
        why = f"the answer of {like} expected, which has the same identity, got another"
        expect(answer == expected, f"{words}: {why}")


def profiles() -> Iterator[tuple[str, Postprocess]]:
    """Yield what profiles may ask for, with its words: nothing, one field, two of a section."""
    yield "the card alone", Postprocess()
    for words, document in _documents(Postprocess):
        with suppress(ValidationError):  # no profile may ask for these two together
            yield words, Postprocess.model_validate(document)


def _documents(section: type[Section], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    own = []
    for name, field in section.model_fields.items():
        place, kind = f"{path}{name}", field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            for words, inner in _documents(kind, f"{place}."):
                yield words, {name: inner}
        else:
            tried = [value for value in _values(kind) if value != field.default]
            own.append([(f"{place} {value}", {name: value}) for value in tried])
    yield from chain(*own)
    for one, other in combinations(own, 2):
        for (words, document), (more, beside) in product(one, other):
            yield f"{words}, {more}", document | beside


def _values(kind: Any) -> list[Any]:
    """The values of a field's type that are tried: all names, a few numbers."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        return [value for part in get_args(kind) for value in _values(part)]
    bare = get_args(kind)[0] if get_args(kind) else kind
    return list(_TRIED.get(bare, ()))


def _answer(subject: TaskSubject, asked: Postprocess) -> Any:
    """What decoding comes to, a refusal included."""
    try:
        return plain(subject.answer(0, asked))
    except ModelError as error:
        return f"refused: {error}"


def _read_only(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _refused(
    subject: TaskSubject, outputs: Outputs, what: str, kind: type[Exception], unread: Any = None
) -> None:
    """Expect decoding to raise this kind of error, in one line, or to give the answer *unread*."""
    expected = f"{what}: a {kind.__name__} in one line expected"
    try:
        answer = subject.decoded(outputs)
    except kind as error:
        expect(str(error) and "\n" not in str(error), f"{expected}, got {str(error)!r}")
        return
    except Exception as error:
        raise Failed(f"{expected}, got {one_line(error)}") from error
    got = " ".join(str(answer).split())[:100]
    expect(unread is not None and plain(answer) == unread, f"{expected}, got {got}")
