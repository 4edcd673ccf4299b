"""``simulate backends prove``: runs the conformance suite, one line per check."""

from __future__ import annotations

from collections import Counter

from simulator import cli


def run(name: str) -> int:
    """Run the conformance suite on one backend.

    Args:
        name: of the backend.

    Returns:
        0: every check that can run here passed; 1: one failed; 2: none can run here.

    Raises:
        UserError: there is no such backend, or it cannot run here, with the reason.
    """
    from simulator import registry
    from simulator.testing import Mark, prove

    backend = registry.backend(name)
    counts = Counter[Mark]()
    for finding in prove(backend):
        counts[finding.mark] += 1
        head = f"{finding.mark:<7} {finding.stage:<9}"
        words = (finding.options, finding.check, finding.remark)
        print(head, "  ".join(word for word in words if word), flush=True)
    if not counts:
        print(f"{name} offers nothing that the suite can check")
        return cli.PASS
    print(f"{name}: " + ", ".join(f"{counts[mark]} {mark}" for mark in Mark))
    if counts[Mark.FAILED]:
        return cli.GATE_FAILED
    return cli.PASS if counts[Mark.PASSED] else cli.USER_ERROR
