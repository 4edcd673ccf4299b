"""YAML documents: what they say, on which line, and everything that can be wrong with them."""

import contextlib
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.errors import ProfileError
from simulator.profile.document import Document, Loader, read, read_value

BUILTIN = sorted((Path(__file__).parents[2] / "profiles").glob("*.yaml"))


CALLS = 1_000_000
"""Ten for each byte that a document may have."""


@contextlib.contextmanager
def little_work():
    """Fail at more than so many calls of functions: a busy machine makes as many as an idle one."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")
        assert calls <= CALLS

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


def test_much_work_is_seen():
    with pytest.raises(AssertionError), little_work():
        sum(abs(number) for number in range(CALLS))


@pytest.fixture
def refused(tmp_path):
    """Write a document, and return the problems for which it is refused."""

    def read_it(content):
        path = tmp_path / "p.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(ProfileError) as caught, little_work():
            read(path)
        return [problem.removeprefix(f"{path}") for problem in caught.value.problems]

    return read_it


def test_every_key_knows_its_line(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("# a comment\na: 1\nb:\n  c: [x,\n      y]\n\n  d: {e: null}\n")

    document = read(path)

    assert document.values == {"a": 1, "b": {"c": ["x", "y"], "d": {"e": None}}}
    wanted = {("a",): 2, ("b",): 3, ("b", "c"): 4, ("b", "c", 1): 5, ("b", "d", "e"): 7}
    assert {key: document.lines[key] for key in wanted} == wanted
    assert document.where(("b", "d", "e")) == f"{path}:7"


def test_a_key_that_is_not_there_stands_where_its_section_does():
    document = Document(Path("p.yaml"), {}, {(): 1, ("b",): 3})

    assert document.where(("b", "x", "y")) == "p.yaml:3"
    assert document.where(("z",)) == "p.yaml:1"


def test_a_repeated_key_names_both_lines(refused):
    assert refused("a: 1\nb: {c: 1}\n\na: 2\n") == [":4: a: given twice, first on line 1"]


def test_repeated_keys_come_all_at_once_with_their_sections(refused):
    problems = refused("a:\n  x: 1\n  x: 2\nb: 1\n'b': 2\n")

    assert problems == [
        ":3: a.x: given twice, first on line 2",
        ":5: b: given twice, first on line 4",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a:\n\tb: 1\n", ":2: a tab; YAML indents with spaces"),
        ("a: 1\nb: *nowhere\n", ":2: found undefined alias 'nowhere'"),
        ("a: &a\n  b: *a\n", ":1: an anchor that contains itself"),
        ("a: &a [1, *a]\n", ":1: an anchor that contains itself"),
        ("- a\n- b\n", ":1: a mapping of keys to values expected"),
        ("just words\n", ":1: a mapping of keys to values expected"),
        ("", ":1: a mapping of keys to values expected"),
        ("# only a comment\n", ":1: a mapping of keys to values expected"),
        ("a: 1\n---\nb: 2\n", ":2: but found another document"),
        (b"a: 1\nb: caf\xe9\n", ":2: not UTF-8 text (byte 11)"),
        ("a: 1".encode("utf-16"), ":1: not UTF-8 text (byte 0)"),
        ("a: 2020-13-45\n", ":1: month must be in 1..12"),
        ("a: !!timestamp soon\n", ":1: 'soon' does not fit its tag tag:yaml.org,2002:timestamp"),
        ("a: !!bool maybe\n", ":1: 'maybe' does not fit its tag tag:yaml.org,2002:bool"),
        ("a: !!int ''\n", ":1: '' does not fit its tag tag:yaml.org,2002:int"),
        ("a: 0x" + "f" * 50 + "\n", ":1: a number with 200 bits; at most 64 are allowed"),
        ("a: " + "9" * 5000 + "\n", ":1: a number with too many digits"),
        ("? [a, b]\n: 1\n", ":1: a key must be a plain word"),
        ('"a\\nb": 1\n', ":1: a key must be a plain word"),
        ('"\\e[31mred": 1\n', ":1: a key must be a plain word"),
    ],
)  # fmt: skip
def test_is_refused_with_its_line(refused, content, problem):
    assert refused(content) == [problem]


def test_a_python_object_is_never_made(refused):
    (problem,) = refused("a: !!python/object/apply:os.system ['true']\n b: 1")

    assert problem.startswith(":")


def test_syntax_errors_name_their_line(refused):
    (problem,) = refused("a: 1\nb: [1, 2\nc: 3\n")

    assert problem.startswith(":3: ")


def test_an_alias_bomb_is_refused_with_little_work(refused):
    """Nine levels of ten make a billion values out of half a kilobyte."""
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10))

    (problem,) = refused(f"l0: &l0 [x]\n{levels}\n")

    assert "more than 10,000 values" in problem


@pytest.mark.parametrize(
    "content",
    [
        "a: " + "[" * 40_000,
        "{" * 40_000,
        "a: " + "[" * 60 + "]" * 60,
        "- " * 40_000,
        "\n".join(" " * n + "a:" for n in range(300)),
        "a: &a " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 30 + "*a" + "]" * 30,
    ],
)
def test_deep_nesting_is_refused_with_little_work(refused, content):
    (problem,) = refused(content)

    assert "nested" in problem


def test_a_huge_file_is_refused_without_being_parsed(refused, monkeypatch):
    parser = "simulator.profile.document.compose"
    monkeypatch.setattr(parser, lambda text: pytest.fail("it was parsed"))

    (problem,) = refused(b"a: [\n" + b"1,\n" * 3_000_000)

    assert problem == ": the document is larger than 100,000 bytes"


def test_an_endless_file_is_refused():
    with pytest.raises(ProfileError, match="not a regular file, but a pipe or a device"):
        read(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("path", "reason"),
    [("absent.yaml", "No such file"), (".", "Is a directory"), ("a" * 300, "File name too long")],
)
def test_what_cannot_be_read_says_why(tmp_path, path, reason):
    with pytest.raises(ProfileError, match=f"cannot be read: {reason}"):
        read(tmp_path / path)


def test_a_byte_order_mark_and_windows_lines_are_fine(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")

    assert read(path).values == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("a", "a"), ("[1, b]", [1, "b"]), ("{a: 1}", {"a": 1}), ("", None), ("null", None)],
)
def test_one_value(text, value):
    assert read_value(text) == value


@pytest.mark.parametrize("text", ["[1", "{a: 1, a: 2}", "*a", "2020-99-99", "[" * 5000, "a: b: c"])
def test_what_is_no_value(text):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        read_value(text)


YAMLISH = st.text(st.sampled_from("ab1:- []{}&*!?|>'\"#%@`,\n\t=.~\\<\x00é\ud7ff"), max_size=60)
TAME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def survives(path, content):
    """Reading gives a mapping, or a ProfileError that names the file, one line a problem."""
    path.write_bytes(content)
    try:
        document = read(path)
    except ProfileError as error:
        problems = error.problems
    else:
        assert isinstance(document.values, dict)
        return
    assert problems
    assert all(p.startswith(str(path)) and "\n" not in p for p in problems)


@TAME
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path, content):
    survives(tmp_path / "p.yaml", content)


@TAME
@given(YAMLISH)
def test_any_text_of_yaml_signs(tmp_path, text):
    survives(tmp_path / "p.yaml", text.encode("utf-8"))


@TAME
@given(
    st.sampled_from(BUILTIN),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 8), YAMLISH), min_size=1, max_size=4),
)
def test_any_mutation_of_a_built_in_profile(tmp_path, source, edits):
    text = source.read_text()
    for at, drop, put in edits:
        place = at % len(text)
        text = text[:place] + put + text[place + drop :]
    survives(tmp_path / "p.yaml", text.encode("utf-8"))


@pytest.mark.parametrize("path", BUILTIN[:4], ids=lambda path: path.stem)
def test_libyaml_and_the_parser_in_python_read_a_document_alike(path):
    """The first is six times as fast; the second explains what is wrong."""
    text = path.read_text()
    found = []
    for loader in (Loader, yaml.SafeLoader):
        root = loader(text).get_single_node()
        found.append([(node.value, child.start_mark.line) for node, child in root.value])

    assert Loader is not yaml.SafeLoader
    assert found[0] == found[1]


@pytest.mark.parametrize(("text", "what"), [("a:\tb", "a tab"), ("a: [", "expected the node")])
def test_what_libyaml_takes_or_says_otherwise_is_told_as_ever(refused, text, what):
    assert what in refused(text)[0]
