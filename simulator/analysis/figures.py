"""The figures of a summary: their paths, their names in rules, what is declared of them.

A summary's model and its value are walked together. Keys of dictionaries are those of the value;
before there is one, those that a job's vocabulary lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from simulator.tasks.figures import Flips
from simulator.tasks.task import TASKS
from simulator.typed import About, Keys, Named, ResultModel, Unit

MISSING = object()
"""What :func:`find` returns for a path that a summary does not have."""
_VALUES = ("value", "rate", "ms")
"""A part that has one of these and ``ci95`` is one figure."""
_TO_BE = object()
"""In place of a value, of a run that is yet to be."""
_COUNT = About(Unit.COUNT)
"""A whole number counts, unless it is declared as something else."""
Vocabulary = Mapping[str, Iterable[str]]
AnySummary = Mapping[str, Any] | ResultModel
"""A summary as a model, or as its JSON has it."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of a summary.

    Attributes:
        path: dotted, in ``summary.json``.
        names: in rules, that which is listed first.
        about: what is declared of it.
        title: in words.
        value: None where it could not be worked out, or the run is yet to be.
        held: whether the part that it lies in has a value.
    """

    path: str
    names: tuple[str, ...]
    about: About
    title: str
    value: Any
    held: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a walk is: the path, its names in rules, and what stands behind the next part."""

    path: tuple[str, ...] = ()
    names: tuple[tuple[str, ...], ...] = ((),)
    behind: tuple[str, ...] = ()
    title: str = ""
    held: bool = True

    def down(self, part: str, said: Sequence[Any] = (), usual: bool = False) -> _Place:
        """Return the place of a part; *usual*: rules may leave it out."""
        named = _first(Named, said)
        path = (*self.path, part)
        if named and named.behind:
            return replace(self, path=path, behind=(named.word,))
        words = (part,) if named is None else (named.word,) if named.word else ()
        longer = tuple((*name, *words, *self.behind) for name in self.names)
        names = (*((*name, *self.behind) for name in self.names), *longer) if usual else longer
        return replace(self, path=path, names=names, behind=())

    def figure(self, about: About, value: Any) -> Figure:
        """Return the number that lies here."""
        path, names = ".".join(self.path), tuple(map(".".join, self.names))
        whole = None if value is _TO_BE else value
        names = (about.short,) if about.short else names
        return Figure(path, names, about, self.title, whole, self.held)


def figures(
    shape: type[BaseModel],
    vocabulary: Vocabulary | None = None,
    value: Any = _TO_BE,
    parts: Mapping[type, type[BaseModel]] | None = None,
) -> list[Figure]:
    """Return every number that a summary of this shape has, or can have.

    Lists of variable length have none.

    Args:
        shape: a model of results.
        vocabulary: the keys that dictionaries will have, by the kind of key; see
            :class:`simulator.typed.Keys`.
        value: the summary, where there is one: of the shape, or a mapping of the same.
        parts: models to read in place of others.
    """
    found = list(_Walk(vocabulary or {}, parts or {}).part(shape, value, _Place(), None))
    taken = {figure.path for figure in found}
    for at, figure in enumerate(found):  # a name is that of the first; others have their paths
        names = tuple(name for name in figure.names if name == figure.path or name not in taken)
        found[at] = replace(figure, names=names or (figure.path,))
        taken.update(names)
    return found


def of_run(summary: ResultModel) -> list[Figure]:
    """Return the figures of a finished run; those of its task are as the task declares them."""
    name = summary.get("task", "")
    if name not in TASKS.names:
        return figures(type(summary), value=summary)
    task = TASKS[name]
    return figures(type(summary), {"flips": task.kinds}, summary, {Flips: task.Flips})


@dataclass(frozen=True, slots=True)
class _Walk:
    """Walks a model and its value.

    Attributes:
        known: the names of keys, by kind.
        parts: models to read in place of others.
    """

    known: Vocabulary
    parts: Mapping[type, type[BaseModel]]

    def part(
        self, shape: type[BaseModel], value: Any, place: _Place, given: About | None
    ) -> Iterator[Figure]:
        """Yield the figures of a part; *given*: what is declared of its numbers from outside."""
        own = type(value)
        shape = own if issubclass(own, shape) and own is not shape else self.parts.get(shape, shape)
        fields = {field.alias or name: field for name, field in shape.model_fields.items()}
        main = next((one for one in _VALUES if one in fields), "") if "ci95" in fields else ""
        for key, field in fields.items():
            inner = _inside(value, key)
            if inner is MISSING:
                continue
            at = place.down(key, field.metadata)
            at = replace(at, title=field.description or place.title)
            if key == main:
                at = replace(at, names=(*place.names, *at.names))
            if main and key == "ci95":
                yield from self._ends(fields[main], inner, place, given)
            else:
                yield from self.numbers(field.annotation, field.metadata, inner, at, given)
        for key, about in self._beside(shape, value):
            inner = _inside(value, key)
            if key not in fields and (inner is None or inner is _TO_BE or _is_number(inner)):
                yield place.down(key).figure(about, inner)

    def _ends(
        self, main: FieldInfo, value: Any, place: _Place, given: About | None
    ) -> Iterator[Figure]:
        """Yield both ends of the interval of a figure."""
        kind = self.numbers(main.annotation, main.metadata, _TO_BE, _Place(), given)
        about = next(kind).about
        names = ((about.short,),) if about.short else place.names
        for at, word in enumerate(("low", "high")):
            end = value[at] if isinstance(value, list | tuple) else value
            yield _Place(
                (*place.path, "ci95", str(at)),
                tuple((*name, word) for name in names),
                title=place.title,
                held=place.held and value is not None,
            ).figure(replace(about, short=""), end)

    def _beside(self, shape: type[BaseModel], value: Any) -> Iterator[tuple[str, About]]:
        """Yield what lies beside the fields of an open part, which a task names."""
        kinds: Mapping[str, About] = getattr(shape, "OPEN", {})
        words = {name: kinds[word] for word in kinds for name in self.known.get(word, ())}
        if kinds and value is not _TO_BE and value is not None:
            words = {key: words.get(key, next(iter(kinds.values()))) for key in value}
        yield from words.items()

    def numbers(
        self, kind: Any, said: Sequence[Any], value: Any, place: _Place, given: About | None
    ) -> Iterator[Figure]:
        """Yield the figures of a field of some type, or of a value in a dictionary or a list.

        Args:
            kind: the type.
            said: what annotates it.
            value: of it.
            place: of it.
            given: what is declared outside.
        """
        while get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            said = [*said, *more]
        origin, inner = get_origin(kind), get_args(kind)
        own = _first(About, said)
        if origin in (Union, UnionType):
            kind = next(one for one in inner if one is not NoneType)
            yield from self.numbers(kind, said, value, place, given)
        elif origin is dict or (kind is Any and isinstance(value, Mapping)):
            of = inner[1] if inner else Any
            yield from self._values(of, _first(Keys, said), value, place, own or given)
        elif origin is list:
            for at in range(_length(said)):
                end = value[at] if isinstance(value, list | tuple) else value
                yield from self.numbers(inner[0], (), end, place.down(str(at)), own or given)
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            held = replace(place, held=place.held and value is not None)
            yield from self.part(kind, value, held, own or given)
        elif kind is int or kind is float:
            yield place.figure(own or _COUNT if kind is int else own or given or About(), value)
        elif kind is Any and _is_number(value):
            yield place.figure(own or given or About(), value)

    def _values(
        self, kind: Any, keys: Keys | None, value: Any, place: _Place, given: About | None
    ) -> Iterator[Figure]:
        """Yield the figures of a dictionary."""
        names = value or ()
        if value is _TO_BE:
            names = self.known.get(keys.of, ()) if keys else ()
        for name in names:
            at = place.down(name, usual=bool(keys and name == keys.usual))
            yield from self.numbers(kind, (), _inside(value, name), at, given)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _inside(value: Any, key: str) -> Any:
    """The value of a field; of none, and of one that is yet to be, the same."""
    if value is None or value is _TO_BE:
        return value
    return value.get(key, MISSING)


def _first(kind: type[T], said: Iterable[Any]) -> T | None:
    return next((one for one in said if isinstance(one, kind)), None)


def _length(said: Sequence[Any]) -> int:
    """The fixed length of a list; 0 where it varies."""
    limits = [one for field in said for one in getattr(field, "metadata", [field])]
    least = max((limit.min_length for limit in limits if hasattr(limit, "min_length")), default=0)
    most = min((limit.max_length for limit in limits if hasattr(limit, "max_length")), default=-1)
    return least if least == most else 0


def by_name(known: Iterable[Figure]) -> dict[str, Figure]:
    """Return figures by every name that rules have for them; a path is its own name."""
    known = [*known]
    found = {figure.path: figure for figure in known}
    for figure in known:
        for name in figure.names:
            found.setdefault(name, figure)
    return found


def find(node: Any, parts: Sequence[str]) -> Any:
    """The value at a path, whose keys may contain dots; None if a part of the path is None."""
    if not parts or node is None:
        return node
    if isinstance(node, list | tuple):
        inside = parts[0].isascii() and parts[0].isdigit() and int(parts[0]) < len(node)
        return find(node[int(parts[0])], parts[1:]) if inside else MISSING
    if isinstance(node, Mapping | ResultModel):
        for length in range(1, len(parts) + 1):
            key = ".".join(parts[:length])
            if key in node:
                found = find(node[key], parts[length:])
                if found is not MISSING:
                    return found
    return MISSING


def leaves(node: Any, prefix: str) -> Iterator[str]:
    """The paths of all values in *node* that are not mappings or lists."""
    keys = range(len(node)) if isinstance(node, list | tuple) else node.keys()
    for key in keys:
        if isinstance(node[key], Mapping | list | tuple | ResultModel):
            yield from leaves(node[key], f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
