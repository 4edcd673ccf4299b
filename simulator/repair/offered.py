"""Options from what differs: as the training stack does it, and as profiles and suites know it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from simulator.errors import MissingLibrary, UserError
from simulator.experiments.alone import groups_of
from simulator.experiments.common import chosen, refuse_missing
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile import axes, document
from simulator.profile.lookup import builtin_names
from simulator.profile.modality import IMAGE
from simulator.profile.suite import Option, builtin_suites, load_suite, overrides
from simulator.repair.document import MEASURED, CostSpec, OptionSpec, Repairs, RepairSpec

AS_TRAINED = "as_trained"
"""The name of the option that takes an axis from the training stack."""
LISTED = 256
"""Options are added to every axis in turn, as long as there are no more combinations than these."""
WORDS = {"schema_", "name", "summary", "evidence"}
"""The fields of a profile that change nothing that is computed."""


@dataclass(frozen=True, slots=True)
class _Found:
    """An option, and where it comes from."""

    name: str
    set: Option
    stack: ResolvedProfile
    why: str


def offered(
    train: ResolvedProfile, deploy: ResolvedProfile, reference: str, changes: Sequence[str]
) -> Repairs:
    """Return a document of what a deployment may do otherwise, made from what differs.

    For every axis that differs: as the training stack does it, and what built-in profiles and
    suites say of that axis alone and runs here; options of the library that the deployment has
    come first.

    Args:
        train: the training stack.
        deploy: the deployment stack.
        reference: the deployment's profile: a path or a name.
        changes: overrides of it, ``KEY=VALUE``.

    Raises:
        UserError: nothing differs, or nothing of it can be changed.
    """
    axes.refuse_recorded(train[0], deploy[0])
    differing = axes.differing(train, deploy)
    if not differing:
        raise UserError("the two profiles describe the same stack; there is nothing to repair")
    pair = _Pair(train, deploy, reference, changes)
    lists = {"+".join(group): pair.options(group) for group in pair.groups(differing)}
    taken: dict[str, list[_Found]] = {axis: [] for axis in lists}
    left_out: dict[str, str] = {}
    while lists:
        for axis in list(lists):
            one = next(_running(axis, lists[axis], left_out), None)
            sizes = [len(of) + 1 + (name == axis) for name, of in taken.items()]
            if one is None or math.prod(sizes) > LISTED:
                del lists[axis]
            else:
                taken[axis].append(one)
    if not any(taken.values()):
        raise UserError(f"nothing can be changed of {', '.join(differing)}; give --options")
    options = {
        _word(axis): {
            one.name: OptionSpec.model_validate(
                {"set": dict(one.set), "cost": CostSpec(ms=MEASURED), "why": one.why}
            )
            for one in of
        }
        for axis, of in taken.items()
        if of
    }
    here, there = deploy[0].name, train[0].name
    return Repairs(
        RepairSpec(
            schema=1,
            name=f"{here}-toward-{there}",
            summary=f"what {here} may do otherwise, made from what differs from {there}",
            source="simulate repair, from the built-in profiles and suites; edit what the device "
            "cannot do, and the costs",
            axes=options,
            left_out=left_out,
        )
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """What options are looked for; see :func:`offered`."""

    train: ResolvedProfile
    deploy: ResolvedProfile
    reference: str
    changes: Sequence[str]

    def groups(self, differing: Sequence[str]) -> Iterator[list[str]]:
        """Yield the axes one by one; precision and runtime together where neither goes alone."""
        for group in groups_of(differing):
            try:
                for axis in group:
                    axes.swap(self.deploy[0], self.train[0], [axis])
            except UserError:
                yield group
            else:
                yield from ([axis] for axis in group)

    def options(self, group: Sequence[str]) -> Iterator[_Found]:
        """Yield options of an axis, no two alike: the training stack's, then its own library's.

        Of these the first are those that say most as training does; none says less than the
        deployment.
        """
        wanted, own = _value(self.train, group), _backends(self.deploy, group)
        seen = [_value(self.deploy, group)]
        most = _apart(seen[0], wanted)
        others: list[tuple[tuple[bool, int], _Found]] = []
        for one in self._candidates(group):
            value = _value(one.stack, group)
            if value in seen:
                continue
            seen.append(value)
            if one.name == AS_TRAINED:
                yield one
            elif (far := _apart(value, wanted)) <= most:
                others.append(((_backends(one.stack, group) != own, far), one))
        names: set[str] = set()
        for _, one in sorted(others, key=lambda ranked: ranked[0]):
            if one.name not in names:
                names.add(one.name)
                yield one

    def _candidates(self, group: Sequence[str]) -> Iterator[_Found]:
        modality = self.deploy[0].spec.modality
        yield from self._swapped(self.train, group, AS_TRAINED, "as training does it")
        for suite in builtin_suites():
            loaded = load_suite(suite)
            for column, name, asked in loaded.options():
                written = {axes.axis_of(one.partition("=")[0]) for one in asked}
                if written != {*group} or modality != IMAGE:
                    continue
                with suppress(UserError):
                    stack = chosen(self.reference, [*self.changes, *asked])
                    option = loaded.spec.columns[column][name]
                    yield _Found(name, option, stack, f"suite {suite}: {column}/{name}")
        for name in builtin_names():
            with suppress(UserError):
                other = chosen(name, ())
                if other[0].spec.modality == modality and not axes.is_recorded(other[0]):
                    word = name.replace("/", "-")
                    yield from self._swapped(other, group, word, f"profile {name}")

    def _swapped(
        self, other: ResolvedProfile, group: Sequence[str], name: str, why: str
    ) -> Iterator[_Found]:
        """The option that takes axes from another stack; none where the stack cannot run so."""
        with suppress(UserError):
            mixed, _ = axes.swap(self.deploy[0], other[0], group)
            before, after = (
                profile.spec.model_dump(by_alias=True, exclude_none=True, exclude=WORDS)
                for profile in (self.deploy[0], mixed)
            )
            if option := document.changes(before, after):
                stack = chosen(self.reference, [*self.changes, *overrides(option)])
                yield _Found(name, option, stack, why)


def _word(axis: str) -> str:
    return axis.replace("+", "_and_")


def _apart(some: Sequence[Option], others: Sequence[Option]) -> int:
    """In how many fields two values of a group of axes differ."""
    pairs = zip(some, others, strict=True)
    return sum(a.get(key) != b.get(key) for a, b in pairs for key in {*a, *b})


def _value(stack: ResolvedProfile, group: Sequence[str]) -> list[Option]:
    return [axes.flat(axes.value(*stack, axis)) for axis in group]


def _backends(stack: ResolvedProfile, group: Sequence[str]) -> list[Any]:
    return [own.get("backend") for own in _value(stack, group)]


def _running(axis: str, found: Iterator[_Found], left_out: dict[str, str]) -> Iterator[_Found]:
    """Yield the options that run here; the others go to *left_out*, with the reason."""
    for one in found:
        try:
            refuse_missing([one.stack])
        except MissingLibrary as error:
            left_out[f"{_word(axis)}/{one.name}"] = "; ".join(str(error).splitlines())
        else:
            yield one
