"""Notices: kinds for programs, sentences for people."""

import inspect

import pytest

from simulator import notices
from simulator.notices import STRICT, Kind, Notice, merged


def test_a_notice_of_several_stacks_is_told_once():
    told = [
        Notice(Kind.MODEL, "3 nodes folded").of("train"),
        Notice(Kind.DATA, "2 files left out"),
        Notice(Kind.MODEL, "3 nodes folded").of("deploy"),
        Notice(Kind.MODEL, "3 nodes folded").of("deploy"),
    ]

    assert list(map(str, merged(told))) == ["train and deploy: 3 nodes folded", "2 files left out"]


def test_the_same_words_of_another_kind_are_another_notice():
    told = [Notice(Kind.MODEL, "x", ("a",)), Notice(Kind.DATA, "x", ("b",))]

    assert merged(told) == told


@pytest.mark.parametrize(
    ("stacks", "said"),
    [
        ((), "x"),
        (("a",), "a: x"),
        (("a", "b"), "a and b: x"),
        (("a", "b", "c"), "a, b and c: x"),
        (("a", "b", "c", "d"), "a, b, c and 1 more: x"),
    ],
)
def test_of_many_stacks_the_first_are_named(stacks, said):
    assert str(Notice(Kind.DATA, "x", stacks)) == said


def test_strict_refuses_what_is_not_in_force_and_what_cannot_be_judged():
    assert {kind for kind in Kind if Notice(kind, "").is_strict} == STRICT
    assert {Kind.NOT_IN_FORCE, Kind.DROPPED_CAST, Kind.SATURATED, Kind.AT_CHANCE} == STRICT


def test_every_kind_says_what_it_is():
    lines = inspect.getsource(notices.Kind).splitlines()

    for kind in Kind:
        at = next(n for n, line in enumerate(lines) if line.strip().startswith(f"{kind.name} ="))
        assert lines[at + 1].strip().startswith('"""')
