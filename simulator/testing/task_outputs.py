"""Checks of decoding: NaN, wrong shapes, threads, and equal settings."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, combinations, product
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from pydantic import ValidationError

from simulator.contract import Array
from simulator.errors import ModelError, NotFinite
from simulator.profile.postprocess import Postprocess
from simulator.profile.section import Section
from simulator.tasks.specimen import Specimen
from simulator.testing.subject import Failed, expect
from simulator.testing.task_cases import plain
from simulator.testing.values import one_line

Parts = Sequence[Mapping[str, Array]]
THREADS, ROUNDS = 4, 5
_TRIED: dict[Any, tuple[Any, ...]] = {bool: (False, True), int: (1, 2), float: (0.125, 0.5)}


def nan_and_infinity_are_refused(subject: Specimen) -> str | None:
    """An output of NaN or infinity is NotFinite; so is a single one, unless it is not read."""
    whole, expected = [], plain(subject.answer())
    for at, name, array in _arrays(subject):
        if array.dtype.kind != "f":
            whole.append(name)
            continue
        for value in (np.nan, np.inf, -np.inf):
            parts = subject.fresh()
            parts[at][name][...] = value
            _refused(subject, parts, f"nothing but {value} in output {name!r}", NotFinite)
            for place in sorted({0, array.size // 2, array.size - 1}):
                parts = subject.fresh()
                parts[at][name].flat[place] = value
                what = f"{value} at {place} of {array.size} in output {name!r}"
                _refused(subject, parts, what, NotFinite, expected)
    return f"integers cannot be NaN: {', '.join(whole)}" if whole else None


def what_does_not_fit_is_refused(subject: Specimen) -> None:
    """The card's own shapes pass; two samples at once, no numbers, no output are a ModelError."""
    for part in subject.fresh():
        subject.task.check({name: array.shape for name, array in part.items()})
    for at, name, _ in _arrays(subject):
        for what, change in (
            ("two samples at once in", lambda array: np.stack([array, array])),
            ("complex numbers in", lambda array: array.astype(np.complex64)),
        ):
            parts = subject.fresh()
            parts[at][name] = change(parts[at][name])
            _refused(subject, parts, f"{what} output {name!r}", ModelError)
        if name in subject.task.outputs():
            parts = subject.fresh()
            del parts[at][name]
            _refused(subject, parts, f"no output {name!r}", ModelError)


def outputs_are_left_alone(subject: Specimen) -> None:
    """Decoding writes nothing into the outputs: several stacks may share them."""
    parts = subject.fresh()
    subject.decoded(parts)
    for at, name, array in _arrays(subject):
        same = plain(array) == plain(parts[at][name])
        expect(same, f"output {name!r}: the same bytes expected after decoding, got others")


def any_strides_will_do(subject: Specimen) -> None:
    """Outputs that are transposed, reversed or read-only in memory are decoded as copies are."""
    expected = plain(subject.answer())
    for what, laid in (
        ("in Fortran's order", np.asfortranarray),
        ("reversed in memory", lambda array: np.flip(np.flip(array).copy())),
        ("read-only", _read_only),
    ):
        parts = [{name: laid(array) for name, array in part.items()} for part in subject.fresh()]
        same = plain(subject.decoded(parts)) == expected
        expect(same, f"outputs {what}: the answer to a plain copy expected, got another")


def the_same_twice(subject: Specimen) -> None:
    """The same outputs get the same answer, after another sample too; that one gets another."""
    parts = subject.fresh()
    first, other, again = (
        plain(subject.decoded(some)) for some in (parts, subject.fresh(1), parts)
    )
    expect(first == again, "decoding again: the same answer expected, got another")
    expect(first != other, "the other sample: another answer expected, got the same")


def threads_see_the_same(subject: Specimen) -> None:
    """Four threads, on two samples in turn, get what one thread gets."""
    expected = [plain(subject.answer(which)) for which in range(2)]
    with ThreadPoolExecutor(THREADS) as pool:
        work = [number % 2 for number in range(THREADS * ROUNDS)]
        found = list(pool.map(lambda which: plain(subject.answer(which)), work))
    wrong = sum(got != expected[which] for which, got in zip(work, found, strict=True))
    expect(not wrong, f"{THREADS} threads: the answers of one expected, got {wrong} others")


def another_process_gets_the_same(subject: Specimen) -> None:
    """A task and its settings that were pickled and read back decode as they did."""
    settings = subject.task.settings(Postprocess())
    try:
        task, again = pickle.loads(pickle.dumps((subject.task, settings)))
    except Exception as error:
        raise Failed(f"a task that can be pickled expected, got {one_line(error)}") from error
    parts = subject.fresh()
    same = plain(task.decode(subject.read(parts), again, subject.placement)) == plain(
        subject.answer()
    )
    expect(same, "after pickling: the same answer expected, got another")


def what_is_run_once_tells_stacks_apart(subject: Specimen) -> str | None:
    """What a second network is run on once is data, and that of another stack has another identity.

    Stacks of equal identities share its outputs.
    """
    if not subject.steps:
        return "no second network is run once"
    told = [json.dumps(step.identity(), sort_keys=True) for step in subject.steps]
    expect(len(set(told)) == len(told), "other prompts: another identity expected, got the same")
    again = pickle.loads(pickle.dumps(subject.steps))
    same = [json.dumps(step.identity(), sort_keys=True) for step in again] == told
    expect(same, "after pickling: the same identities expected, got others")
    return None


def equal_identities_do_equal_work(subject: Specimen) -> None:
    """Profiles whose settings have one identity get one answer, and the identity is JSON.

    Every value of every field of ``postprocess`` is tried alone, and with every other field of its
    section. A field that this task does not use must change nothing; one that changes the answer
    must change the identity, because equal work is done once.
    """
    known: dict[str, tuple[str, Any]] = {}
    for words, asked in profiles():
        try:
            settings, other = (
                subject.task.settings(asked),
                subject.task.settings(asked.model_copy()),
            )
        except ModelError:
            continue
        identity, again = settings.identity(), other.identity()
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


def _documents(section: type[Section], path: str = "") -> Iterator[tuple[str, dict[str, object]]]:
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
    """The values of a field's type that are tried: all names, a few numbers, one for a class."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if get_origin(kind) is dict:
        fields = get_args(kind)[1].model_fields.items()
        return [
            {"1": {name: tried}} for name, field in fields for tried in _values(field.annotation)
        ]
    if get_origin(kind) in (Union, UnionType):
        return [value for part in get_args(kind) for value in _values(part)]
    bare = get_args(kind)[0] if get_args(kind) else kind
    return list(_TRIED.get(bare, ()))


def _arrays(subject: Specimen) -> Iterator[tuple[int, str, Array]]:
    """Every output of the first sample: the number of its inference, its name, the array."""
    for at, part in enumerate(subject.fresh()):
        for name, array in part.items():
            yield at, name, array


def _answer(subject: Specimen, asked: Postprocess) -> Any:
    """Return the answer of decoding, or its refusal."""
    try:
        return plain(subject.answer(0, asked))
    except ModelError as error:
        return f"refused: {error}"


def _read_only(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _refused(
    subject: Specimen, parts: Parts, what: str, kind: type[Exception], unread: Any = None
) -> None:
    """Expect decoding to raise this kind of error, in one line, or to give the answer *unread*."""
    expected = f"{what}: a {kind.__name__} in one line expected"
    try:
        answer = subject.decoded(parts)
    except kind as error:
        expect(str(error) and "\n" not in str(error), f"{expected}, got {str(error)!r}")
        return
    except Exception as error:
        raise Failed(f"{expected}, got {one_line(error)}") from error
    got = " ".join(str(answer).split())[:100]
    expect(unread is not None and plain(answer) == unread, f"{expected}, got {got}")
