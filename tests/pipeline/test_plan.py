"""The DAG of unique work: what chains share is planned once."""

import pickle

import pytest
import steps
from steps import Step, nothing

from simulator.contract.recipe import Boundary, Chain
from simulator.pipeline.plan import Arm, plan


def chain(*names):
    """Steps that are told apart by their names."""
    return Chain(tuple(Step(name, name, nothing) for name in names))


def test_equal_chains_share_every_node():
    merged = steps.merged(chain("a", "b", "c"), chain("a", "b", "c"))

    assert len(merged.nodes) == 3
    assert merged.paths == ((0, 1, 2), (0, 1, 2))
    assert merged.shared() == ["a", "b", "c"]


def test_chains_share_what_they_begin_alike_with():
    """An equal step after different ones is other work: its input is another."""
    merged = steps.merged(chain("a", "b", "z"), chain("a", "c", "z"))

    assert [node.recipe.stage for node in merged.nodes] == ["a", "b", "z", "c", "z"]
    assert [node.parent for node in merged.nodes] == [None, 0, 1, 0, 3]
    assert [node.children for node in merged.nodes] == [2, 1, 0, 1, 0]
    assert merged.shared() == ["a"]


def test_one_stack_shares_with_nobody():
    assert steps.merged(chain("a", "b")).shared() == []


def test_chains_beside_the_arms_share_with_them_and_with_each_other():
    merged = steps.merged(chain("a", "b"), asides={"one": chain("a", "c"), "two": chain("a", "c")})

    assert [node.recipe.stage for node in merged.nodes] == ["a", "b", "c"]
    assert merged.paths == ((0, 1),)
    assert merged.asides == {"one": (0, 2), "two": (0, 2)}


def test_twins_are_equal_steps_in_different_places_that_ask_for_it():
    """Both networks are one, behind different decoders; what ends a chain is no twin."""
    network = Step("infer", "net", nothing, shares_equal_inputs=True)
    a, b, end = (Step(name, name, nothing) for name in ("a", "b", "end"))

    merged = steps.merged(Chain((a, network, end)), Chain((b, network, end)))

    twins = [node.twin for node in merged.nodes]
    assert [twin is not None for twin in twins] == [False, True, False, False, True, False]
    assert twins[1] == twins[4]
    alone = steps.merged(Chain((a, network, end)), Chain((a, network)))
    assert [node.twin for node in alone.nodes] == [None] * 3


def test_a_plan_knows_its_arms():
    arms = {Arm("train"): chain("a"), Arm("train", "jpeg:40", 2): chain("b")}

    assert plan(arms).arms == (Arm("train"), Arm("train", "jpeg:40", 2))


def under(conditions, stacks="ab"):
    """Stacks with a decoder of their own and one network, under conditions."""
    network = Step("infer", "net", nothing, gives=Boundary.OUTPUTS)
    end = Step("end", "end", nothing)
    return plan({
        Arm(stack, condition): Chain((Step(stack, stack + condition, nothing), network, end))
        for condition in conditions
        for stack in stacks
    })  # fmt: skip


def test_under_conditions_up_to_eight_inferences_of_one_network_come_in_a_row():
    """Ten inputs of one network: eight are made and inferred, then two; the answers follow."""
    merged = under([f"fog:{at}" for at in range(5)])

    stages = [merged.nodes[at].recipe.stage for at in merged.order]
    rows = [
        *"ab" * 4, *["infer"] * 8, *["end"] * 8, "a", "b", "infer", "infer", "end", "end",
    ]  # fmt: skip
    assert stages == rows
    assert sorted(merged.order) == list(range(30))
    assert all(
        merged.nodes[at].parent in (None, *merged.order[:place])
        for place, at in enumerate(merged.order)
    )


def test_without_several_conditions_each_stack_is_computed_by_itself():
    """Its inference then follows its own steps, so that its latency is that of the stack alone."""
    for condition in ("", "fog:1"):
        assert under([condition]).order == tuple(range(6))


def test_inputs_that_wait_for_their_row_count_as_memory():
    """Two bytes for each input and output: eight inputs wait, and the first output comes."""

    class Sized(Step):
        def memory(self, source):
            return 0 if self.stage == "end" else 2

    last = Sized("infer", "net", nothing, gives=Boundary.OUTPUTS), Sized("end", "end", nothing)
    merged = plan({
        Arm("a", f"fog:{at}"): Chain((Sized("a", str(at), nothing), *last)) for at in range(20)
    })  # fmt: skip

    assert merged.memory(None) == 8 * 2 + 2


def test_a_plan_needs_the_memory_of_its_unique_steps():
    """Three bytes a pixel for each step that says so; here 7 + 7 bytes for four steps."""

    class Large(Step):
        def memory(self, source):
            return 7

    a, b = Large("a", "a", nothing), Large("b", "b", nothing)

    assert steps.merged(Chain((a, b)), Chain((a, b))).memory(None) == 14


@pytest.mark.parametrize(
    ("boundary", "count"),
    [(Boundary.FRAME, 1), (Boundary.INPUT, 3), (Boundary.OUTPUTS, 4), (Boundary.ANSWER, 4)],
)
def test_a_chain_ends_at_a_boundary(boundary, count):
    """At the last step that gives it; a chain without it stays whole."""
    whole = Chain(
        (
            Step("decode", "d", nothing, gives=Boundary.FRAME),
            Step("normalize", "n", nothing, gives=Boundary.INPUT),
            Step("condition", "c", nothing, gives=Boundary.INPUT),
            Step("infer", "i", nothing, gives=Boundary.OUTPUTS),
        )
    )

    assert whole.until(boundary).recipes == whole.recipes[:count]
    assert whole.has(boundary) is (boundary is not Boundary.ANSWER)


def test_a_step_is_put_right_behind_its_boundary():
    d, n = (Step(s, s, nothing, gives=b) for s, b in (("d", Boundary.FRAME), ("n", Boundary.INPUT)))
    new = Step("x", "x", nothing)
    chain = Chain((d, n))

    assert chain.inserted(new, Boundary.SOURCE).recipes == (new, d, n)
    assert chain.inserted(new, Boundary.FRAME).recipes == (d, new, n)
    assert chain.inserted(new, Boundary.INPUT).recipes == (d, n, new)
    assert chain.last == n


def test_stages_are_those_that_are_timed_each_once():
    chain = Chain(
        (
            Step("decode", "a", nothing),
            Step("color", "b", nothing),
            Step("condition", "c", nothing, timed=False),
            Step("color", "d", nothing),
        )
    )

    assert chain.stages() == ("decode", "color")


def test_a_plan_pickles():
    merged = steps.merged(chain("a", "b"), chain("a", "c"), asides={"x": chain("d")})

    again = pickle.loads(pickle.dumps(merged))

    assert again == merged
    assert [node.key for node in again.nodes] == [node.key for node in merged.nodes]
