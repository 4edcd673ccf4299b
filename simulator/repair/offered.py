"""Options from what differs: as the training stack does it, and as profiles and suites know it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.errors import MissingLibrary, ProfileError, UserError
from simulator.experiments.alone import TOGETHER
from simulator.experiments.common import chosen, refuse_missing
from simulator.pipeline.stack import Chosen
from simulator.profile import axes, document
from simulator.profile.load import builtin_names
from simulator.profile.suite import builtin_suites, load_suite, overrides
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
    set: Mapping[str, Any]
    stack: Chosen
    why: str


def offered(train: Chosen, deploy: Chosen, reference: str, changes: Sequence[str]) -> Repairs:
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
    lists = {
        "+".join(group): _options(train, deploy, reference, changes, group)
        for group in _groups(train, deploy, differing)
    }
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
    return Repairs(_document(train, deploy, taken, left_out))


def _document(
    train: Chosen, deploy: Chosen, taken: Mapping[str, Sequence[_Found]], left_out: dict[str, str]
) -> RepairSpec:
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
    names = deploy[0].name, train[0].name
    return RepairSpec(
        schema=1,
        name=f"{names[0]}-toward-{names[1]}",
        summary=f"what {names[0]} may do otherwise, made from what differs from {names[1]}",
        source="simulate repair, from the built-in profiles and suites; edit what the device cannot"
        " do, and the costs",
        axes=options,
        left_out=left_out,
    )


def _word(axis: str) -> str:
    return axis.replace("+", "_and_")


def _groups(train: Chosen, deploy: Chosen, differing: Sequence[str]) -> Iterator[list[str]]:
    """The axes one by one; precision and runtime together where neither can change alone."""
    together = [axis for axis in TOGETHER if axis in differing]
    alone = [axis for axis in differing if axis not in together]
    yield from ([axis] for axis in alone)
    try:
        for axis in together:
            axes.swap(deploy[0], train[0], [axis])
    except ProfileError:
        yield together
    else:
        yield from ([axis] for axis in together)


def _options(
    train: Chosen, deploy: Chosen, reference: str, changes: Sequence[str], group: Sequence[str]
) -> Iterator[_Found]:
    """Options of an axis, no two alike: the training stack's, then those of its own library.

    Of these the first are those that say most as training does; none says less than the deployment.
    """
    wanted, own = _value(train, group), _backends(deploy, group)
    seen = [_value(deploy, group)]
    most = _apart(seen[0], wanted)
    others: list[tuple[tuple[bool, int], _Found]] = []
    for one in _candidates(train, deploy, reference, changes, group):
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


def _apart(some: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> int:
    """In how many fields two values of a group of axes differ."""
    pairs = zip(some, others, strict=True)
    return sum(a.get(key) != b.get(key) for a, b in pairs for key in {*a, *b})


def _candidates(
    train: Chosen, deploy: Chosen, reference: str, changes: Sequence[str], group: Sequence[str]
) -> Iterator[_Found]:
    yield from _swapped(train, deploy, reference, changes, group, AS_TRAINED, "as training does it")
    for suite in builtin_suites():
        loaded = load_suite(suite)
        for column, name, asked in loaded.options():
            written = {axes.axis_of(one.partition("=")[0]) for one in asked}
            if written != {*group} or deploy[0].spec.modality != "image":
                continue
            try:
                stack = chosen(reference, [*changes, *asked])
            except UserError:
                continue
            option = loaded.spec.columns[column][name]
            yield _Found(name, option, stack, f"suite {suite}: {column}/{name}")
    for name in builtin_names():
        try:
            other = chosen(name, ())
        except UserError:
            continue
        if other[0].spec.modality == deploy[0].spec.modality and not axes.is_recorded(other[0]):
            word, why = name.replace("/", "-"), f"profile {name}"
            yield from _swapped(other, deploy, reference, changes, group, word, why)


def _swapped(
    other: Chosen, deploy: Chosen, reference: str, changes: Sequence[str], group: Sequence[str],
    name: str, why: str,
) -> Iterator[_Found]:  # fmt: skip
    """The option that takes axes from another stack; none where the stack cannot run so."""
    try:
        mixed, _ = axes.swap(deploy[0], other[0], group)
        before, after = (
            profile.spec.model_dump(by_alias=True, exclude_none=True, exclude=WORDS)
            for profile in (deploy[0], mixed)
        )
        if option := document.changes(before, after):
            yield _Found(name, option, chosen(reference, [*changes, *overrides(option)]), why)
    except UserError:
        return


def _value(stack: Chosen, group: Sequence[str]) -> Any:
    return [axes.flat(axes.value(*stack, axis)) for axis in group]


def _backends(stack: Chosen, group: Sequence[str]) -> list[Any]:
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
