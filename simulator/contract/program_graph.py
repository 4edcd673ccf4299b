"""The graph of a ``torch.export`` program from a stranger: every text in it has a grammar.

PyTorch pastes names into Python that it generates, evaluates expressions of sizes and of guards,
finds operators by walking along their names, and imports what shapes of inputs name. So a name is
an identifier here, an expression is arithmetic, an operator is one of
:mod:`simulator.contract.program_operators`, and a text of which no grammar is known is refused.

Source:
    torch/_export/serde/schema.py, torch/export/_unlift.py and torch/fx/graph.py of PyTorch 2.13.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from simulator.contract.program_operators import is_known

LONGEST = 4_000
"""Characters of an expression, of which PyTorch's algebra takes long."""
HIGHEST = 16
"""The highest power of a size."""
_SIZE = re.compile(r"[a-z]{1,4}\d{1,6}", re.ASCII)
_FUNCTIONS = {
    "Abs", "Add", "And", "CeilDiv", "CeilToInt", "CleanDiv", "Eq", "FloatPow", "FloatTrueDiv",
    "FloorDiv", "FloorToInt", "Ge", "Gt", "Identity", "IntTrueDiv", "Integer", "LShift", "Le",
    "Lt", "Max", "Min", "Mod", "ModularIndexing", "Mul", "Ne", "Not", "Or", "Pow", "PowByNatural",
    "PythonMod", "RShift", "Rational", "RoundDecimal", "RoundToInt", "Symbol", "ToFloat",
    "TruncToFloat", "TruncToInt", "Where", "ceiling", "floor", "max", "min",
}  # fmt: skip
"""Of sympy and PyTorch, in expressions of sizes."""
_POWERS = {"FloatPow", "LShift", "Pow", "PowByNatural", "RShift"}
_WORDS = {"True", "False", "oo", "int_oo"}
_NODES = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.keyword,
    ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
_INPUT = re.compile(r"L(\['[A-Za-z]\w{0,99}'\]|\[\d{1,4}\])+(\.size\(\)\[\d{1,3}\])?", re.ASCII)
"""An input in a guard, or one of its sizes."""
_LAYERS = re.compile(r"[\w.,:;<>@/()+*=$ \[\]-]*", re.ASCII)
"""A node's layers: nothing that ends a line, a string or a comment."""
_CONTAINERS = {
    "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict",
    "torch.fx.immutable_collections.immutable_list",
    "torch.fx.immutable_collections.immutable_dict",
}  # fmt: skip


def plain_graph(graph: Any) -> Any:
    """Return a graph without the remarks of its nodes, but for the names of their layers.

    Args:
        graph: ``models/model.json`` of a program, parsed.

    Raises:
        ValueError: it has a text that PyTorch might run as code.
    """
    if not isinstance(graph, dict):
        raise ValueError("its graph is no JSON object")
    return _plain(graph, "")


def plain_weights(name: str, config: Any) -> None:
    """Refuse a list of weights or constants that are more than raw bytes; ValueError."""
    for key, one in config["config"].items():
        _path(key)
        if one["use_pickle"] is not False:
            raise ValueError(f"{name}: {key[:100]!r} is pickled")
        _matching(r"(weight|tensor)_\d{1,6}", "the name of a file")(one["path_name"])
        _plain(one["tensor_meta"], "tensor_meta")


def _plain(value: Any, key: str) -> Any:
    """Return a part of a graph; *key* is the nearest one above it."""
    if isinstance(value, dict):
        if key == "metadata":
            return _layers(value)
        check = _KEYS.get(key, _name)
        for one in value:
            check(one)
        return {one: _plain(inner, "" if key in _MAPS else one) for one, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, key) for inner in value]
    if isinstance(value, str):
        if key not in _TEXTS:
            raise ValueError(f"it says {key}: {value[:100]!r}, and what that does is not known")
        _TEXTS[key](value)
    return value


def _layers(remarks: dict[str, object]) -> dict[str, str]:
    """Return what a node's remarks say of its layers; whatever else they say is for people."""
    found = remarks.get("nn_module_stack")
    return {"nn_module_stack": found} if isinstance(found, str) and _LAYERS.fullmatch(found) else {}


def _matching(pattern: str, what: str) -> Callable[[str], None]:
    """Return a function that refuses what does not match; ValueError."""
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> None:
        if not isinstance(text, str) or not compiled.fullmatch(text):
            raise ValueError(f"{str(text)[:100]!r} is not {what}")

    return check


def _name(text: str) -> None:
    """Refuse what is no name of Python's, and names that Python gives a meaning; ValueError."""
    fine = text.isascii() and text.isidentifier() and len(text) <= 500
    if text and (not fine or keyword.iskeyword(text) or text.startswith("__")):
        raise ValueError(f"a name in it is not an identifier: {text[:100]!r}")


def _path(text: str) -> None:
    """Refuse what is no path of a layer or of a weight, such as ``blocks.0.weight``; ValueError."""
    for part in text.split(".") if text else ():
        if not re.fullmatch(r"[\w-]{1,500}", part, re.ASCII) or part.startswith("__"):
            raise ValueError(f"{text[:100]!r} is not the path of a layer")


def _target(text: str) -> None:
    if not is_known(text):
        raise ValueError(
            f"the operator {text[:100]!r} is not one of those that a program may call here; "
            "export the model to ONNX instead"
        )


def _shape(text: str, check: Callable[[str], None]) -> None:
    """Refuse the shape of inputs or outputs with more than tuples, lists, dicts; ValueError.

    Args:
        text: of PyTorch's pytree, as JSON.
        check: refuses keys of dicts.
    """
    version, shape = json.loads(text)
    if version != 1:
        raise ValueError(f"the shape of its inputs is of version {str(version)[:20]}; 1 is read")
    waiting = [shape]
    while waiting:
        one = waiting.pop()
        kind, context = one["type"], one["context"]
        if set(one) != {"type", "context", "children_spec"}:
            raise ValueError("the shape of its inputs is not as PyTorch writes it")
        if kind is not None and kind not in _CONTAINERS:
            raise ValueError(f"its inputs or outputs are a {str(kind)[:100]!r}")
        keys = json.loads(context) if context is not None else None
        if keys is not None and not isinstance(keys, list):
            raise ValueError(f"its inputs name something else than keys: {context[:100]!r}")
        for key in keys or ():
            if not isinstance(key, int):
                check(key)
        waiting += one["children_spec"]


def _guard(text: str) -> None:
    """Refuse a condition on the inputs that is more than arithmetic of their sizes; ValueError."""
    _expression(_INPUT.sub("s0", text))


def _expression(text: str) -> None:
    """Refuse an expression of sizes that is more than arithmetic, or without end; ValueError."""
    try:
        if len(text) > LONGEST:
            raise ValueError(f"an expression of sizes in it has {len(text):,} characters")
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not an expression of sizes: {text[:100]!r}") from error
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    if not all(_arithmetic(node, called) for node in nodes):
        raise ValueError(f"an expression of sizes in it is code: {text[:100]!r}")
    for node in nodes:
        if _is_power(node) and not _is_low(node):
            raise ValueError(f"an expression of sizes in it has high powers: {text[:100]!r}")


def _arithmetic(node: ast.AST, called: set[int]) -> bool:
    if isinstance(node, ast.Name):
        known = _FUNCTIONS if id(node) in called else _WORDS
        return node.id in known or bool(_SIZE.fullmatch(node.id) and id(node) not in called)
    if isinstance(node, ast.Constant):
        number = isinstance(node.value, int | float) and abs(node.value) < 2**63
        return number or (isinstance(node.value, str) and bool(_SIZE.fullmatch(node.value)))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name)
    return isinstance(node, _NODES)


def _is_power(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Pow | ast.LShift | ast.RShift)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (
        node.func.id in _POWERS
    )  # fmt: skip


def _is_low(node: Any) -> bool:
    """Return whether a power has a small number as exponent, and no other power below it."""
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else node.args
    if len(parts) != 2 or any(_is_power(one) for part in parts for one in ast.walk(part)):
        return False
    exponent = list(ast.walk(parts[1]))
    numbers: list[Any] = [one.value for one in exponent if isinstance(one, ast.Constant)]
    names = {one.id for one in exponent if isinstance(one, ast.Name)}
    plain = not any(isinstance(one, ast.BinOp) for one in exponent) and names <= {"Integer"}
    return plain and all(
        not isinstance(number, str) and abs(number) <= HIGHEST for number in numbers
    )


def _nothing(text: str) -> None:
    raise ValueError(f"{text[:100]!r} in it is more than a graph, weights and plain tensors")


_word = _matching(r"[a-z_]{1,20}", "a word")
_number = _matching(r"-?Infinity|NaN", "a number")
_text = _matching(r"[\w .,:;/+=<>()\[\]*'%!-]{0,1000}", "a text of an operator")
_TEXTS: dict[str, Callable[[str], None]] = {
    **dict.fromkeys(("name", "as_name", "forward_arg_names", "user_input_name"), _name),
    **dict.fromkeys(("fqn", "parameter_name", "buffer_name", "tensor_constant_name"), _path),
    **dict.fromkeys(("target", "as_operator"), _target),
    "in_spec": partial(_shape, check=_name),
    "out_spec": partial(_shape, check=_path),
    **dict.fromkeys(("as_string", "as_strings"), _text),
    **dict.fromkeys(("as_float", "as_floats", "as_float_lists", "real", "imag"), _number),
    "expr_str": _expression,
    "guards_code": _guard,
    "type": _word,
    "verifiers": _matching("ATEN|TRAINING|", "a dialect"),
    "torch_version": _matching(r"[\w.+<= -]{0,60}", "a version"),
}
"""The grammar of each text, by the nearest key above it."""
_KEYS: dict[str, Callable[[str], None]] = {
    "range_constraints": _matching(_SIZE.pattern, "the name of a size"),
    **dict.fromkeys(("custom_obj_values", "treespec_namedtuple_fields", "as_custom_obj"), _nothing),
    **dict.fromkeys(("custom_obj", "as_string_to_argument"), _nothing),
}
"""The grammar of keys that the file itself chooses, where they are not names."""
_MAPS = ("range_constraints", "tensor_values", "sym_int_values", "sym_float_values",
         "sym_bool_values")  # fmt: skip
