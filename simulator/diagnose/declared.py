"""Differences that two profiles declare: which of their axes make a part differ.

Of all axes of a part on which the profiles differ, the smallest set is kept whose repair makes the
part equal: those are left out, last first, without which it is equal all the same, or up to
rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from simulator.contract import Stage
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.diagnose import stack_words
from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.diagnose.gap import INPUT_ROUNDING, OUTPUT_ROUNDING, SAME
from simulator.diagnose.parts import DEPLOY, TRAIN, Parts, behind, cut
from simulator.diagnose.trial import apart, changed, records_of, values_of
from simulator.errors import ModelError, UserError
from simulator.experiments.session import Session, Variant
from simulator.modalities.image.card import ImageCard
from simulator.pipeline.inference import answered
from simulator.pipeline.stack import Pair, ResolvedProfile
from simulator.profile import axes
from simulator.profile.document import changes
from simulator.results.diagnose import State
from simulator.tasks.score import Record

NAMED = 2
"""Fields at most that the name of a finding has."""

_ANSWERS = {
    "iou_threshold": "another IoU threshold of the NMS: {} in place of {}",
    "score_threshold": "another score threshold: {} in place of {}",
    "top_k_after": "at most {} boxes are kept in place of {}",
    "kind": "another NMS: {} in place of {}",
}
"""Of the postprocessing's fields."""


@dataclass(frozen=True)
class Declared:
    """Finds the axes of a pair of profiles that make a part differ."""

    session: Session
    pair: Pair
    parts: Parts
    items: Sequence[Item]

    def findings(self, part: Part) -> list[Finding]:
        """Return the axes of a part, each by its fields; none where the profiles declare none.

        Raises:
            SampleError: a sample fails.
        """
        kept = [axis for axis in axes.differing(*self._sides) if self._part(axis) is part]
        if Stage.FRONT_END in kept:  # code or a recording, in which a profile changes nothing
            return []
        state = self._state(part, kept) if kept else "unknown"
        if state not in SAME:
            return []
        for axis in reversed(kept[:]):
            others = [one for one in kept if one != axis]
            if others and (without := self._state(part, others)) in SAME:
                kept, state = others, without
        certainty = Certainty.EXACT if state == "equal" else Certainty.ROUNDING
        return [one for axis in kept for one in self._findings(part, axis, kept, certainty)]

    @property
    def _sides(self) -> tuple[Any, Any]:
        return self.pair[TRAIN], self.pair[DEPLOY]

    def _part(self, axis: str) -> Part:
        if axes.is_of_front_end(axis, self.pair[DEPLOY][0]):
            return Part.FRONT_END
        return Part.POSTPROCESS if axis in axes.POST_AXES else Part.NETWORK

    def _state(
        self, part: Part, repaired: Sequence[str], but: Mapping[str, JsonValue] | None = None
    ) -> State:
        """What the part is with some axes of the training stack; unknown: it does not run so.

        Args:
            part: of both stacks.
            repaired: the axes.
            but: fields of these that stay the deployment's, with its values.
        """
        train, deploy = self._sides
        try:
            mixed = axes.swap(deploy[0], train[0], repaired)
            mixed = changed(mixed, but) if but else mixed
            chains = self._chains(part, mixed)
            found = values_of(self.session, chains, self.items)
        except UserError:
            return "unknown"
        if part is Part.POSTPROCESS:
            pairs = zip(*found.values(), self.items, strict=True)
            records = [records_of(self.session, item, pair) for *pair, item in pairs]
            same = all(self._answer(one) == self._answer(two) for one, two in records)
            return "equal" if same else "differs"
        rounding = INPUT_ROUNDING if part is Part.FRONT_END else OUTPUT_ROUNDING
        return apart(found[TRAIN], found[DEPLOY], rounding).state

    def _answer(self, record: Record) -> dict[str, object]:
        """A record without the counts of what changed."""
        task = self.session.card.task
        counts = {*task.kinds, "changed", "units"}
        return {name: value for name, value in record.items() if name not in counts}

    def _chains(self, part: Part, mixed: Any) -> dict[str, Chain]:
        """The training stack, and the same with one part of another stack."""
        own = self.parts.cuts[TRAIN]
        assert own.front is not None and own.outputs is not None
        if part is Part.FRONT_END:
            return {TRAIN: own.front, DEPLOY: self.session.builder.front_end(*mixed)}
        if part is Part.POSTPROCESS:
            train = self.parts.stacks[TRAIN].chain
            other = behind(self.pair[TRAIN][0], mixed[0], self.session.card)
            return {TRAIN: train, DEPLOY: answered(train, other)}
        front = TRAIN if self.parts.outputs(TRAIN, DEPLOY) else DEPLOY  # which both networks take
        outputs, before = self.parts.outputs(front, TRAIN), self.parts.cuts[front].front
        if outputs is None or before is None:
            raise ModelError("no input goes into both networks")
        stack = self.session.stack(Variant("repaired", mixed, self.pair))
        return {TRAIN: outputs, DEPLOY: Chain((*before.recipes, *cut(self.session, stack).network))}

    def _findings(
        self, part: Part, axis: str, kept: list[str], certainty: Certainty
    ) -> Iterator[Finding]:
        """An axis by the names of what differs in it; by its fields where none has a name."""
        fields = [
            f"{key} {_word(ours)} → {_word(theirs)}"
            for own, key, ours, theirs in axes.differences(*self._sides)
            if own == axis
        ]
        so = " and ".join([axis, *(one for one in kept if one != axis)])
        how = "equal to the bit" if certainty is Certainty.EXACT else "equal up to rounding"
        told = f"With the training stack's {so} the {part.value} is {how}."
        evidence = f"{axis}: {', '.join(fields)}", told
        more = f" and {len(fields) - NAMED} more" if len(fields) > NAMED else ""
        plain = f"{axis} differs ({', '.join(fields[:NAMED])}{more})"
        for name in self._names(part, axis, kept) or [plain]:
            yield Finding(part, name, evidence, certainty, change=self._change(axis))

    def _names(self, part: Part, axis: str, kept: Sequence[str]) -> list[str]:
        """What engineers call what differs in an axis; nothing where that is not known."""
        if part is Part.POSTPROCESS:
            apart = [one[1:] for one in axes.differences(*self._sides) if one[0] == axis]
            return [
                _ANSWERS[key].format(*(_of_card(one) for one in (theirs, ours)))
                for key, ours, theirs in apart
                if key in _ANSWERS
            ]
        card = self.session.card.spec
        if not isinstance(card, ImageCard) or part is not Part.FRONT_END:
            return []
        every = stack_words.between(*self._sides, card)
        found = [one for one in every if axis in map(axes.axis_of, one.change)]
        needed = [
            one.name for one in found if len(found) == 1 or self._matters(axis, kept, one.change)
        ]
        return needed or [one.name for one in found]

    def _matters(self, axis: str, kept: Sequence[str], change: Mapping[str, Any]) -> bool:
        """Whether some fields of an axis change pixels, on the one side or, else, on the other."""
        train, deploy = self._sides
        theirs: Mapping[str, Any] = axes.flat(self._written(deploy))
        but = {key: theirs.get(key) for key in change}
        if (state := self._state(Part.FRONT_END, kept, but)) != "unknown":
            return state not in SAME
        try:
            mixed = axes.swap(deploy[0], train[0], [one for one in kept if one != axis])
            sides = {TRAIN: changed(mixed, change), DEPLOY: mixed}
            chains = {side: self.session.builder.front_end(*one) for side, one in sides.items()}
            found = values_of(self.session, chains, self.items)
        except UserError:
            return True
        return apart(found[TRAIN], found[DEPLOY], INPUT_ROUNDING).state not in SAME

    @staticmethod
    def _written(side: ResolvedProfile) -> dict[str, Any]:
        return side[0].spec.model_dump(mode="json", by_alias=True, exclude_none=True)

    def _change(self, axis: str) -> Mapping[str, object]:
        """The fields of the deployment's profile that the axis takes from the training's."""
        train, deploy = self._sides
        mixed = axes.swap(deploy[0], train[0], [axis])
        found = changes(*map(self._written, (deploy, mixed)))
        found.pop("evidence", None)
        return axes.flat(found)


def _of_card(value: Any) -> str:
    return "the model card's" if value == "model" else str(value)


def _word(value: Any) -> str:
    return "none" if value == "-" else str(value)
