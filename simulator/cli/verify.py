"""Was a bundle changed since it was written? Nothing is run.

simulate verify audit/bundle.zip --digest SHA256

Every member is compared with its digest in the bundle, and every latency, count and outcome of a
rule with the records. What takes the model or cannot be worked out again is named: stated, not
verified. Who changes a member can change its digest and its records, too. So the SHA-256 of the
whole file is printed, which audit.md also names, and --digest compares it with a value that you
trust; --key tells whether the holder of a key has signed it (simulate audit --sign). The exit code
is 1 if something was changed, 2 for a file that is not a bundle.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from simulator import cli
from simulator.errors import UserError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle.zip of an audit")
    parser.add_argument("--digest", metavar="SHA256", help="the expected SHA-256 of the whole file")
    parser.add_argument(
        "--key", metavar="PUB", help="the public key (PEM, Ed25519) of whom must have signed it"
    )


def run(options: argparse.Namespace) -> int:
    """Check the digests and print what was changed."""
    from simulator.audit import bundle, doubts, signing
    from simulator.audit.archive import Archive

    digest = (options.digest or "").strip().lower()
    if digest and not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise UserError(
            f"--digest: expected the 64 hexadecimal digits of a SHA-256, got {digest!r}"
        )
    key = signing.public_key(Path(options.key)) if options.key else None
    stated: list[str] = []
    with Archive(Path(options.bundle)) as packed:
        found = bundle.check(packed)
        problems = list(found.problems)
        if not problems:
            problems, stated = doubts.without_a_model(packed)
    if digest and digest != found.sha256:
        problems.insert(0, f"the digest differs: {options.digest} was expected")
    if key and (problem := signing.problem(Path(options.bundle), found.sha256, key)):
        problems.insert(0, problem)
    elif key:
        print(f"signed by {signing.fingerprint(key)}")
    for problem in problems:
        print(problem)
    count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
    word = f"changed, {count}" if problems else f"intact, {found.members} members"
    if stated:
        print(f"stated, not verified: {', '.join(stated)}")
    print(f"{options.bundle}: {word}; SHA-256 {found.sha256}")
    return cli.GATE_FAILED if problems else cli.PASS
