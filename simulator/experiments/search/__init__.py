"""The search over stacks: what is tried, how it runs, and what is dropped when.

A :class:`.space.Space` is what may be tried: axes of options over one stack. An
:class:`.evaluate.Evaluation` runs stacks over the samples in rounds and has their records; several
of them in one run are :class:`.steps.Steps`. A :class:`.policy.Policy` says which stacks run on
after each round: all, or by one of :mod:`.questions` those that still matter for its answer, each
tested by :class:`.gate.SequentialGate` with the statistics of :mod:`.stopping`.
"""
