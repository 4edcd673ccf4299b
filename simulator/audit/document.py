"""Audit documents: which stacks, which models and images, and the rules with their reasons."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from simulator.analysis import gate
from simulator.errors import ProfileError, UserError, unknown
from simulator.profile import messages
from simulator.profile.document import Document, Key, Values, read
from simulator.profile.lookup import find
from simulator.profile.reference import read_reference
from simulator.profile.section import Above0, Positive, Section
from simulator.profile.suite import overrides

TRAIN = "train"
"""What the training stack is called beside the names of the others."""
BORNE = "an answer that the deployment alone cannot give is the gravest change there is"
"""Why every gate fails where the deployment fails on more samples than are allowed."""
EXAMPLE = "built-in"
"""What the built-in model is called where a document names no model."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")

Text = Annotated[str, Field(min_length=1)]
Names = Annotated[list[str], Field(min_length=1)]
"""Left out, all are meant; an empty list would be a rule that never applies."""


class StackSpec(Section):
    """A profile, and fields of it that are overridden: dotted keys and their values."""

    profile: str
    set: dict[str, Any] = Field(default_factory=dict)


class ModelSpec(Section):
    """A model card, and its images where they are not those of the document."""

    card: str | None = None
    data: str | None = None


class RuleSpec(Section):
    """What must not be, and why the team has this rule; for some stacks or models only."""

    fail_on: Text
    because: Text
    deploy: Names | None = None
    models: Names | None = None


class TailSpec(Section):
    """Rounds in SingleStream besides; the rules are about what ``simulate tail`` finds."""

    deadlines_ms: list[Above0] = Field(default_factory=list)
    rounds: Literal["auto"] | Positive = "auto"
    max_rounds: Positive = 100
    max_minutes: Above0 = 60.0
    deploy: Names | None = None
    rules: list[RuleSpec] = Field(default_factory=list)


class AuditSpec(Section):
    """The document; paths in it are relative to it."""

    schema_: Literal[1] = Field(alias="schema")
    name: Text
    summary: str = ""
    train: StackSpec
    deploy: dict[str, StackSpec]
    models: dict[str, ModelSpec] = Field(default_factory=lambda: {EXAMPLE: ModelSpec()})
    data: str | None = None
    limit: Positive | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    rules: list[RuleSpec] | Literal["none"] = Field(default_factory=list)
    allow_failed: Text | None = None
    tail: TailSpec | None = None


@dataclass(frozen=True, slots=True)
class DocumentRule:
    """A gate rule of the document.

    Attributes:
        rule: as the gate takes it.
        because: why the team has it.
        where: ``file:line: key`` of it.
        deploy: the stacks that it is for; None: all.
        models: likewise.
    """

    rule: gate.Rule
    because: str
    where: str
    deploy: Sequence[str] | None
    models: Sequence[str] | None

    def is_for(self, model: str, deploy: str) -> bool:
        """Whether it is about this stack with this model."""
        return (self.deploy is None or deploy in self.deploy) and (
            self.models is None or model in self.models
        )


@dataclass(frozen=True, slots=True)
class Audit:
    """A document that was checked; no profile, model or image of it has been opened.

    Attributes:
        path: the file.
        spec: its content.
        rules: on what the pairs give.
        tail_rules: on what the rounds give.
        borne: what every gate has besides, see :func:`simulator.analysis.gate.read`.
        document: for messages.
    """

    path: Path
    spec: AuditSpec
    rules: tuple[DocumentRule, ...]
    tail_rules: tuple[DocumentRule, ...]
    borne: DocumentRule
    document: Document

    def of_pair(self, model: str, deploy: str) -> list[DocumentRule]:
        """Return the rules on the answers of a pair."""
        return self._own(self.rules, model, deploy)

    def of_rounds(self, model: str, deploy: str) -> list[DocumentRule]:
        """Return the rules on the rounds of a pair."""
        return self._own(self.tail_rules, model, deploy)

    def _own(self, rules: Sequence[DocumentRule], model: str, deploy: str) -> list[DocumentRule]:
        found = [rule for rule in rules if rule.is_for(model, deploy)]
        return [*found, self.borne] if found else []

    def stacks(self) -> Iterator[tuple[str, StackSpec, Key]]:
        """Yield every stack with its name and its key in the document; the training stack first."""
        yield TRAIN, self.spec.train, (TRAIN,)
        for name, stack in self.spec.deploy.items():
            yield name, stack, ("deploy", name)

    def profiles(self) -> dict[str, tuple[str, list[str]]]:
        """Find the profile of every stack, or what else names it; with its overrides.

        Raises:
            ProfileError: profiles that are not there, each as ``file:line: key: what``.
        """
        found: dict[str, tuple[str, list[str]]] = {}
        problems = []
        for name, stack, key in self.stacks():
            try:
                named = read_reference(stack.profile, self.path.parent)
                place = named.text if named else find(stack.profile, self.path.parent).resolve()
            except ProfileError as error:
                problems.append(f"{self.document.where(key)}: {'.'.join(map(str, key))}: {error}")
            else:
                found[name] = str(place), overrides(stack.set)
        if problems:
            raise ProfileError(problems)
        return found

    def require_rules(self) -> None:
        """Refuse a document that judges nothing and does not say so.

        Raises:
            ProfileError: with the place of its rules.
        """
        if not (self.rules or self.tail_rules or self.spec.rules == "none"):
            where = self.document.where(("rules",))
            words = (
                f"{where}: rules: at least one expected, got none: an audit without rules passes "
                "whatever it finds; write rules: none to measure and judge nothing"
            )
            raise ProfileError([words])

    def card(self, model: str) -> Path | None:
        """Return where a model card is; None is the built-in model."""
        return self._beside(self.spec.models[model].card)

    def data(self, model: str) -> Path | None:
        """Return where a model's images are; None are the built-in images."""
        return self._beside(self.spec.models[model].data or self.spec.data)

    def timed(self, deploy: str) -> bool:
        """Whether a stack goes through rounds."""
        tail = self.spec.tail
        return tail is not None and (tail.deploy is None or deploy in tail.deploy)

    def _beside(self, written: str | None) -> Path | None:
        return None if written is None else self.path.parent / os.path.expanduser(written)


def load_audit(path: Path) -> Audit:
    """Read an audit document.

    Raises:
        ProfileError: all that is wrong with it, each as ``file:line: key: what``.
    """
    document = read(path)
    values = _spelled_out(document.values)
    reason = "an audit names what it audits, and every rule its reason"
    spec = messages.checked(AuditSpec, values, document.where, "audit", reason=reason)
    problems = [*_names(spec, document)]
    written = [] if spec.rules == "none" else spec.rules
    rules = _rules(written, ("rules",), spec, document, problems)
    timed = spec.tail.rules if spec.tail else []
    tail_rules = _rules(timed, ("tail", "rules"), spec, document, problems)
    if spec.tail and spec.tail.deploy is not None:
        problems += _strange(spec.tail.deploy, spec.deploy, ("tail", "deploy"), document)
        problems += _untimed(spec.tail, document)
    borne = _borne(spec, document, problems)
    if problems or borne is None:
        raise ProfileError(problems)
    return Audit(path, spec, rules, tail_rules, borne, document)


def _spelled_out(values: Values) -> Values:
    """Write a stack that is only a profile's name as a section."""

    def stack(given: Any) -> Any:
        return {"profile": given} if isinstance(given, str) else given

    found = dict(values)
    if "train" in found:
        found["train"] = stack(found["train"])
    if isinstance(deploy := found.get("deploy"), dict):
        found["deploy"] = {name: stack(one) for name, one in deploy.items()}
    return found


def _names(spec: AuditSpec, document: Document) -> Iterator[str]:
    sections: dict[str, list[str]] = {"deploy": [*spec.deploy], "models": [*spec.models]}
    for section, names in sections.items():
        if not names:
            yield f"{document.where((section,))}: {section}: at least one expected, got none"
        folded: dict[str, str] = {}
        for name in names:
            where = f"{document.where((section, name))}: {section}.{name}"
            if not _NAME.fullmatch(name):
                yield f"{where}: a name has letters, digits, _ and -, at most 64, and no - in front"
            elif name == TRAIN:
                yield f"{where}: 'train' is reserved for the training stack; choose another name"
            elif folded.setdefault(name.lower(), name) != name:
                yield f"{where}: differs from {folded[name.lower()]} in upper and lower case only"


def _rules(
    written: Sequence[RuleSpec], key: Key, spec: AuditSpec, document: Document, problems: list[str]
) -> tuple[DocumentRule, ...]:
    """Parse rules; what is wrong with them goes to *problems*."""
    found = []
    for number, rule_spec in enumerate(written):
        place: Key = (*key, number)
        for field, known in (("deploy", spec.deploy), ("models", spec.models)):
            problems += _strange(getattr(rule_spec, field), known, (*place, field), document)
        where = f"{document.where((*place, 'fail_on'))}: {_dotted(place)}.fail_on"
        try:
            rule = gate.parse(rule_spec.fail_on)
        except UserError as error:
            problems.append(f"{where}: {error}")
        else:
            found.append(
                DocumentRule(rule, rule_spec.because, where, rule_spec.deploy, rule_spec.models)
            )
    return tuple(found)


def _borne(spec: AuditSpec, document: Document, problems: list[str]) -> DocumentRule | None:
    where = f"{document.where(('allow_failed',))}: allow_failed"
    try:
        return DocumentRule(gate.borne(spec.allow_failed), BORNE, where, None, None)
    except UserError as error:
        problems.append(f"{where}: {str(error).partition(': ')[2]}")
        return None


def _strange(
    names: Sequence[str] | None, known: Collection[str], key: Key, document: Document
) -> list[str]:
    return [
        f"{document.where((*key, at))}: {_dotted(key)}: {unknown('name', name, known)}"
        for at, name in enumerate(names or ())
        if name not in known
    ]


def _untimed(tail: TailSpec, document: Document) -> list[str]:
    """Name the stacks that a rule on rounds is for, and that go through none."""
    return [
        f"{document.where((*key, at))}: {_dotted(key)}: {name} is not in tail.deploy"
        for number, rule in enumerate(tail.rules)
        for key in [("tail", "rules", number, "deploy")]
        for at, name in enumerate(rule.deploy or ())
        if tail.deploy is not None and name not in tail.deploy
    ]


def _dotted(key: Key) -> str:
    return ".".join(map(str, key))


def check(
    rules: Sequence[DocumentRule], shape: type[BaseModel], vocabulary: Mapping[str, Iterable[str]]
) -> None:
    """Hold rules against what a run will have; see :func:`simulator.analysis.gate.check`.

    Raises:
        ProfileError: a rule names what no such run has, each as ``file:line: key: what``.
    """
    problems = []
    for rule in rules:
        try:
            gate.check([rule.rule], shape, vocabulary)
        except UserError as error:
            problems.append(f"{rule.where}: {error}")
    if problems:
        raise ProfileError(problems)
