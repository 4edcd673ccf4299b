"""The checks that every pass of the phase ``graph`` has to pass, and how they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args, get_origin

import numpy as np
import onnx
from pydantic import BaseModel, TypeAdapter, ValidationError

from simulator.contract import Array
from simulator.contract.passes import PASSES, Feeds, Fitting, GraphPass
from simulator.errors import UserError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change
from simulator.testing import models
from simulator.testing.subject import expect
from simulator.testing.suite import Suite, Verdict
from simulator.testing.values import one_line

NONSENSE = "no such value"
MODELS = (*models.FAMILIES, "hand", "folded", "roi_align")


@dataclass(frozen=True)
class Subject:
    """A pass, tried on a small model of each operator family."""

    one: GraphPass

    @cached_property
    def values(self) -> list[Any]:
        """Its examples, and every single word of its schema; ``keep`` excepted."""
        found = [*self.one.examples, *_values(self.one.schema)]
        return [value for value in found if value != self.one.keep]

    def applied(self, model: str, value: Any) -> tuple[onnx.ModelProto, Change]:
        """Apply a value to a fresh model."""
        made = onnx.ModelProto()
        made.CopyFrom(models.build(model))
        return made, self.one.change(made, value, self._fitting(model, value))

    def _fitting(self, model: str, value: Any) -> Fitting | None:
        """The suite's inputs of a model, for every stack that a value asks for."""
        needed = self.one.wanted(value)
        if needed is None:
            return None
        scales = [1 + 0.25 * number for number in range(len(needed.through))]

        def samples() -> Iterator[tuple[Feeds, ...]]:
            for x in models.inputs(model)[: needed.samples]:
                yield tuple({"x": np.float32(scale) * x} for scale in scales)

        return Fitting("the suite's inputs", samples, _running)

    def each(self) -> Iterator[tuple[str, Any, str]]:
        """Take every value with every model, and the words for both."""
        for value in self.values:
            words = (
                value.model_dump(exclude_defaults=True) if isinstance(value, BaseModel) else value
            )
            for model in MODELS:
                yield model, value, f"{self.one.name}: {words} on {model}"


@contextmanager
def _running(model: onnx.ModelProto) -> Iterator[Callable[[Feeds], Feeds]]:
    def run(feeds: Feeds) -> dict[str, Array]:
        return {model.graph.output[0].name: models.evaluate(model, feeds["x"])}

    yield run


def keep_changes_nothing(subject: Subject) -> None:
    """``keep`` is a value of the schema and leaves every model as it is; nonsense is no value."""
    schema = TypeAdapter(subject.one.schema)
    schema.validate_python(subject.one.keep)
    try:
        schema.validate_python(NONSENSE)
    except ValidationError:
        pass
    else:
        expect(False, f"{NONSENSE!r}: a refusal expected, got a value")
    for model in MODELS:
        made, change = subject.applied(model, subject.one.keep)
        same = _bytes(made) == _bytes(models.build(model)) and not change.rewritten
        expect(same, f"keep on {model}: the model as it was expected, got changes")


def it_changes_a_model(subject: Subject) -> None:
    """Some value changes one of the models."""
    changed = any(subject.applied(model, value)[1].rewritten for model, value, _ in subject.each())
    expect(changed, "a value that changes a model expected, got none")


def it_tells_what_it_did(subject: Subject) -> None:
    """It tells of nodes that are there, before and after, and of a change where there is one."""
    for model, value, words in subject.each():
        made, change = subject.applied(model, value)
        expect(
            isinstance(change, Change), f"{words}: a Change expected, got {type(change).__name__}"
        )
        outputs = {name for node in models.build(model).graph.node for name in node.output}
        strange = sorted({*change.before, *change.after} - outputs)
        expect(not strange, f"{words}: outputs of the model expected, got {strange}")
        expect(
            change.before.keys() == change.after.keys(), f"{words}: the same nodes after expected"
        )
        if change.rewritten:
            edited = _bytes(made) != _bytes(models.build(model))
            expect(edited, f"{words}: a change expected as it tells, got the model as it was")
        else:
            old, new = (models.evaluate(one, models.inputs(model)[0])
                        for one in (models.build(model), made))  # fmt: skip
            expect(np.array_equal(old, new), f"{words}: none expected as it tells, got a change")


def the_model_stays_valid(subject: Subject) -> None:
    """A changed model keeps its inputs and outputs, passes ONNX's checks, and runs."""
    for model, value, words in subject.each():
        made, change = subject.applied(model, value)
        if not change.rewritten:
            continue
        for side in ("input", "output"):
            old, new = ([port.name for port in getattr(one.graph, side)]
                        for one in (models.build(model), made))  # fmt: skip
            expect(old == new, f"{words}: {side}s {old} expected, got {new}")
        try:
            edit.infer(made)
            onnx.checker.check_model(made)
            found = models.evaluate(made, models.inputs(model)[0])
        except Exception as error:  # whatever ONNX says of the model
            expect(False, f"{words}: a valid model expected, got {one_line(error)}")
        else:
            expect(np.isfinite(found).all(), f"{words}: finite numbers expected, got others")


def the_same_twice(subject: Subject) -> None:
    """Applied to two copies of a model, it makes the same model twice."""
    for model, value, words in subject.each():
        one, other = (subject.applied(model, value)[0] for _ in range(2))
        same = _bytes(one) == _bytes(other)
        expect(same, f"{words}: the same model again expected, got another")


def _bytes(model: onnx.ModelProto) -> bytes:
    """What a model computes: its nodes and its constants."""
    parts = (*model.graph.node, *model.graph.initializer)
    return b"".join(part.SerializeToString(deterministic=True) for part in parts)


def _values(schema: Any) -> Iterator[Any]:
    """The words of a ``Literal``, or a section with one of its fields' words."""
    if get_origin(schema) is Literal:
        yield from get_args(schema)
    elif isinstance(schema, type) and issubclass(schema, BaseModel):
        for name, field in schema.model_fields.items():
            for value in _words(field.annotation):
                try:
                    yield schema.model_validate({name: value})
                except ValidationError:  # it wants company, which only its author knows
                    continue


def _words(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    for inner in get_args(annotation):
        if not isinstance(inner, str):
            yield from _words(inner)


SUITE: Suite[Subject] = Suite.of(__name__)


def prove_graph_pass(what: str | GraphPass) -> list[Verdict]:
    """Run every check on a pass of the phase ``graph``.

    Args:
        what: the name of an installed pass, or one.

    Raises:
        UserError: there is no such pass, or it acts in another phase.
    """
    one = PASSES[what] if isinstance(what, str) else what
    if not isinstance(one, GraphPass):
        raise UserError(f"{one.name} is a pass of the phase {one.phase}; a condition asks for it")
    return SUITE.prove(Subject(one))
