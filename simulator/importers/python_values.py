"""Values that a Python text writes down, read from its syntax tree: nothing is executed.

Names are followed where they were given one value in plain sight; what is computed stays
:class:`Code`. A name that is given a value in a branch or a loop is not known behind it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.errors import ProfileError
from simulator.importers.values import Object, plain
from simulator.profile.document import Key

Scope = Object
"""The values of names."""
MAX_CHARACTERS = 400_000
MAX_VALUES = 10_000
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_DAMAGE = (SyntaxError, ValueError, RecursionError, MemoryError)


class Code(str):
    """An expression that is not followed, as it is written."""

    __slots__ = ()


class Default(int):
    """A whole number that a parameter has where a caller gives none."""


@dataclass(frozen=True, slots=True)
class Called:
    """A call that stands in the text.

    Attributes:
        value: its arguments: ``type`` is the last part of what is called, ``args`` the list of
            those without a name.
        called: what is called, as it is written.
        name: of the variable or function in which it stands, if there is one.
        function: in which it stands; empty in the module itself.
        line: of the text, from 1.
    """

    value: Scope
    called: str
    name: str
    function: str
    line: int


class Reader:
    """Reads the statements of a text in their order.

    Attributes:
        path: the file.
        calls: every call, in the order of the text; inner ones first.
        scope: the names of the module.
        bases: those of the files that ``_base_`` names.

    Args:
        path: the file.
        text: what it holds.
        base: returns the names of a file by what ``_base_``, or an import below ``read_base()``,
            calls it.

    Raises:
        ProfileError: it is no Python, or too long.
    """

    def __init__(self, path: Path, text: str, base: Callable[[Reader, str], Scope]) -> None:
        self.path = path
        self.calls: list[Called] = []
        self.scope: Scope = {}
        self.bases: Scope = {}
        self._base = base
        self._places: dict[tuple[int, str | int], str] = {}
        self._kept: list[Any] = []
        self._name = self._function = ""
        if len(text) > MAX_CHARACTERS:
            raise ProfileError([f"{path}: more than {MAX_CHARACTERS:,} characters of Python"])
        try:
            self._statements(ast.parse(text).body, self.scope)
        except _DAMAGE as error:
            line = getattr(error, "lineno", None) or 1
            why = plain(str(getattr(error, "msg", error)))[:80]
            raise ProfileError([f"{path}:{line}: not Python: {why}"]) from error

    def where(self, root: Any) -> Callable[[Key], str]:
        """Return what gives ``FILE:LINE`` of a place inside of a value."""

        def place(key: Key) -> str:
            found, at = self._places.get((id(root), ""), f"{self.path}:1"), root
            for part in key:
                found = self._places.get((id(at), part), found)
                try:
                    at = at[part]
                except (KeyError, IndexError, TypeError):
                    break
            return found

        return place

    def adopt(self, other: Reader) -> None:
        """Take over the places of a text that this one is based on."""
        self._places.update(other._places)
        self._kept.append(other)

    def inherit(self, made: Scope, *parts: Scope) -> None:
        """Give the keys of a mapping that was made of others the places of those."""
        self._kept += [made, *parts]
        for part in parts:
            for key in ("", *part):
                if (id(part), key) in self._places:
                    self._places[(id(made), key)] = self._places[(id(part), key)]

    # Statements

    def _statements(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        for one in body:
            self._statement(one, scope)

    def _statement(self, one: ast.stmt, scope: Scope) -> None:
        match one:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                outer, self._name = self._name, name
                scope[name] = self.value(value, scope)
                self._name = outer
                self._places[(id(scope), name)] = f"{self.path}:{one.lineno}"
            case ast.Assign(targets=targets, value=value):
                self._unpack(targets, self.value(value, scope), scope)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                added = self.value(value, scope)
                scope[name] = self._computed(op, scope.get(name), added, Code(name))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)) as func)):
                self._method(name, func.attr, one.value, scope)  # type: ignore[arg-type]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                outer, around = self._name, self._function
                self._name = self._function = one.name
                inner = dict(scope)
                if not isinstance(one, ast.ClassDef):
                    inner |= _parameters(one.args)
                self._statements(one.body, inner)
                self._name, self._function = outer, around
            case ast.With(items=items, body=body):
                reads = any("read_base" in ast.unparse(item.context_expr) for item in items)
                self._statements(body, scope)
                for inner_one in body if reads else ():
                    if isinstance(inner_one, ast.ImportFrom):
                        found = self._base(self, "." * inner_one.level + (inner_one.module or ""))
                        wanted = {one.name: one.asname or one.name for one in inner_one.names}
                        scope |= {
                            wanted.get(key, key): value
                            for key, value in found.items()
                            if key in wanted or "*" in wanted
                        }
            case ast.Import() | ast.ImportFrom():
                pass
            case _:
                self._other(one, scope)
        if isinstance(one, ast.Assign) and "_base_" in scope and self._name == "":
            self._bases(one, scope)

    def _bases(self, one: ast.Assign, scope: Scope) -> None:
        if isinstance(one.targets[0], ast.Name) and one.targets[0].id == "_base_":
            written = scope["_base_"]
            found: Scope = {}
            for name in written if isinstance(written, list) else [written]:
                found |= self._base(self, str(name))
            scope["_base_"] = self.bases = found

    def _unpack(self, targets: list[ast.expr], value: Any, scope: Scope) -> None:
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple | ast.List) else None
            fits = names and isinstance(value, list) and len(value) == len(names)
            for at, name in enumerate(names or [target]):
                if isinstance(name, ast.Name):
                    scope[name.id] = (
                        value[at] if fits else value if names is None else Code(name.id)
                    )
                else:
                    self._forget(name, scope)

    def _method(self, name: str, method: str, call: ast.Call, scope: Scope) -> None:
        """Follow ``append`` and ``extend``; any other method may change what it belongs to."""
        added = [self.value(one, scope) for one in call.args]
        self._arguments(call, scope)
        before = scope.get(name)
        if isinstance(before, list) and len(added) == 1 and method in ("append", "extend"):
            more = added if method == "append" else added[0]
            scope[name] = self._kind([*before, *more]) if isinstance(more, list) else Code(name)
            self._copy_places(scope[name], before)
        else:
            self._forget(ast.Name(name), scope)

    def _other(self, one: ast.stmt, scope: Scope) -> None:
        """Look through a branch, a loop or any other statement; forget the names it gives."""
        inner = dict(scope)
        for _, field in ast.iter_fields(one):
            for part in field if isinstance(field, list) else [field]:
                if isinstance(part, ast.stmt):
                    self._statement(part, inner)
                elif isinstance(part, ast.expr):
                    self.value(part, scope)
        for node in ast.walk(one):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    scope[name] = Code(name)
                case ast.Call(func=ast.Attribute(value=holder)):
                    self._forget(holder, scope)
                case ast.Subscript(ctx=ast.Store() | ast.Del()):
                    self._forget(node, scope)

    def _forget(self, node: ast.expr, scope: Scope) -> None:
        """Forget a list or mapping that is changed in place, and what holds it."""
        while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
            node = node.value
        changed = scope.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(changed, list | dict):
            inside = [id(one) for one in _every(changed) if isinstance(one, list | dict)]
            for name, value in scope.items():
                if any(id(one) in inside for one in _every(value)):
                    scope[name] = Code(name)

    # Expressions

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """Return the value of an expression: as JSON has them, or :class:`Code`."""
        found: Any = Code(ast.unparse(node))
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None):
                found = node.value
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                number = self.value(inner, scope)
                found = -number if _is_number(number) else found
            case ast.Set(elts=[ast.Set(elts=[inner])]):  # {{_base_.name}} of MMEngine
                found = self.value(inner, scope)
            case ast.List() | ast.Tuple() | ast.Set():
                found = self._list(node.elts, scope)
            case ast.Dict():
                found = self._dict(node, scope)
            case ast.Name(id=name):
                found = scope.get(name, found)
            case (
                ast.Attribute(value=inner, attr=name)
                | ast.Subscript(value=inner, slice=ast.Constant(value=str() | int() as name))
            ):
                with suppress(LookupError, TypeError):
                    holder: Any = self.value(inner, scope)
                    found = found if isinstance(holder, str) else holder[name]
            case ast.BinOp(left=left, op=op, right=right):
                found = self._computed(op, self.value(left, scope), self.value(right, scope), found)
            case ast.Call():
                found = self._call(node, scope)
            case _:
                for part in ast.iter_child_nodes(node):
                    if isinstance(part, ast.expr):
                        self.value(part, scope)
        return found

    def _list(self, items: list[ast.expr], scope: Scope) -> Any:
        made: list[Any] = []
        lines: list[int] = []
        for one in items:
            starred = isinstance(one, ast.Starred)
            found = self.value(one.value if isinstance(one, ast.Starred) else one, scope)
            made += found if starred and isinstance(found, list) else [found]
            lines += [one.lineno] * (len(made) - len(lines))
        kept = self._kind(made)
        for at, line in enumerate(lines):
            self._places[(id(kept), at)] = f"{self.path}:{line}"
        return kept

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        made: Scope = {}
        lines: dict[str, int] = {}
        for key, inner in zip(node.keys, node.values, strict=True):
            found = self.value(inner, scope)
            name = None if key is None else self.value(key, scope)
            new = {str(name): found} if key is not None else found
            if not isinstance(new, dict):
                return Code(ast.unparse(node))
            made |= new
            lines |= dict.fromkeys(new, inner.lineno)
        return self._placed(made, lines)

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        named, lines = self._arguments(node, scope)
        args = self._list(node.args, scope)
        called = ast.unparse(node.func)
        if called in ("dict", "list", "tuple", "ConfigDict") and len(node.args) <= 1:
            first = args[0] if node.args else {}
            if called in ("list", "tuple"):
                return first if isinstance(first, list) else Code(ast.unparse(node))
            whole = isinstance(first, dict) and named is not None
            return self._placed({**first, **(named or {})}, lines) if whole else Code("dict(...)")
        if named is None or not isinstance(args, list):
            return Code(ast.unparse(node))
        made = self._placed({"type": called.rpartition(".")[2], **named}, lines)
        if isinstance(made, dict):
            made.update({"args": args} if args else {})
            for key in ("", "type", "args"):
                self._places[(id(made), key)] = f"{self.path}:{node.lineno}"
            self.calls.append(Called(made, called, self._name, self._function, node.lineno))
        return made

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[Scope | None, dict[str, int]]:
        """Return the named arguments, None where one of ``**x`` is not known; and their lines."""
        named: Scope | None = {}
        lines: dict[str, int] = {}
        for one in node.keywords:
            found = self.value(one.value, scope)
            new = {one.arg: found} if one.arg is not None else found
            if named is None or not isinstance(new, dict):
                named = None
                continue
            named |= new
            lines |= dict.fromkeys(new, one.value.lineno)
        return named, lines

    def _computed(self, op: ast.operator, left: Any, right: Any, otherwise: Code) -> Any:
        kind = _OPERATORS.get(type(op))
        lists = isinstance(left, list) and isinstance(right, list) and isinstance(op, ast.Add)
        if kind is None or not (lists or (_is_number(left) and _is_number(right))):
            return otherwise
        try:
            found = kind(left, right)
        except (ArithmeticError, ValueError):
            return otherwise
        return self._kind(found) if lists else found

    def _placed(self, made: Scope, lines: dict[str, int]) -> Any:
        kept = self._kind(made)
        for key, line in lines.items():
            self._places[(id(kept), key)] = f"{self.path}:{line}"
        return kept

    def _copy_places(self, made: Any, before: list[Any]) -> None:
        for at in range(len(before)):
            if (id(before), at) in self._places:
                self._places[(id(made), at)] = self._places[(id(before), at)]

    def _kind(self, made: Any) -> Any:
        """Keep a list or mapping alive, so that its place stays its own, unless it is too large."""
        if sum(1 for _ in _every(made)) > MAX_VALUES:
            return Code("more values than are read")
        self._kept.append(made)
        return made


def _every(value: Any) -> Iterator[Any]:
    """Every value inside of a value, up to one more than are read."""
    left, count = [value], 0
    while left and count <= MAX_VALUES:
        one = left.pop()
        count += 1
        yield one
        if isinstance(one, dict | list):
            left += one.values() if isinstance(one, dict) else one


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _parameters(arguments: ast.arguments) -> Scope:
    """Return the parameters of a function: a :class:`Default` where one is written."""
    placed = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(placed), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    every = [*placed, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    made: Scope = {one.arg: Code(one.arg) for one in every if one is not None}
    for one, default in pairs:
        if isinstance(default, ast.Constant) and type(default.value) is int:
            made[one.arg] = Default(default.value)
    return made
