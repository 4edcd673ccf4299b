"""Run the checks that every task must pass."""

from __future__ import annotations

from simulator.errors import UserError
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import TASKS, Task
from simulator.testing import task_faults, task_outputs, task_records, task_scores
from simulator.testing.suite import Suite, Verdict

SUITE = Suite(
    task_scores.the_perfect_scores_1,
    task_scores.the_worthless_scores_0,
    task_scores.what_comes_too_late_is_worthless,
    task_scores.what_is_absent_is_left_out,
    task_scores.nothing_to_find_changes_nothing,
    task_scores.the_order_does_not_matter,
    task_scores.a_resample_is_a_data_set,
    task_scores.without_truth_flips_still_count,
    task_scores.no_sample_is_a_data_error,
    task_outputs.nan_and_infinity_are_refused,
    task_outputs.what_does_not_fit_is_refused,
    task_outputs.outputs_are_left_alone,
    task_outputs.any_strides_will_do,
    task_outputs.the_same_twice,
    task_outputs.threads_see_the_same,
    task_outputs.another_process_gets_the_same,
    task_outputs.equal_identities_do_equal_work,
    task_records.every_column_is_recorded,
    task_records.records_survive_parquet,
    task_records.an_answer_is_like_itself,
    task_records.the_same_answer_is_the_same,
    task_records.changes_count_both_ways_alike,
    task_records.stamps_tell_truths_apart,
    task_records.a_comparison_has_its_parts,
    task_records.a_comparison_is_json,
    task_records.reports_get_their_words,
    task_records.changes_can_be_drawn,
    task_faults.faults_have_a_verdict,
)


def prove_task(what: str | type[Task] | Specimen) -> list[Verdict]:
    """Run every check on a task.

    Args:
        what: the name of an installed task, or its class, which is checked with all its
            specimens; or one specimen.

    Raises:
        UserError: there is no such task, or it has no specimen.
        MissingLibrary: what it needs is not installed.
    """
    if isinstance(what, Specimen):
        return SUITE.prove(what)
    task = TASKS[what] if isinstance(what, str) else what
    specimens = task.specimens()
    if not specimens:
        raise UserError(
            f"the task {task.name!r} has no specimens to check it with; write its specimens(), see "
            "docs/conformance.md"
        )
    return [found for one in specimens.values() for found in SUITE.prove(one)]
