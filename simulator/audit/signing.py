"""Signatures of bundles, so that ``verify`` can say by whom: Ed25519, beside the bundle.

The keys are PEM files without a passphrase, as ``openssl genpkey -algorithm ed25519`` makes them.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.contract.installing import install
from simulator.errors import MissingLibrary, RunError, UserError, one_line
from simulator.files import hash_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

ENDING = ".sig"
"""Of the signature's file, after the bundle's name."""
_PURPOSE = b"simulate audit bundle, sha256 "
"""What is signed before the digest: a signature of something else is none of a bundle."""
_MOST = 2**16
"""Bytes of a key or a signature."""


def private_key(path: Path) -> Ed25519PrivateKey:
    """Read the key that signs.

    Raises:
        MissingLibrary: cryptography is not installed.
        UserError: the file is no such key.
    """
    with _needed():
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = _read(path, lambda content: load_pem_private_key(content, None))
    if not isinstance(found, Ed25519PrivateKey):
        raise UserError(f"{path}: not an Ed25519 key; make one: openssl genpkey -algorithm ed25519")
    return found


def public_key(path: Path) -> Ed25519PublicKey:
    """Read the key that a signature is held against.

    Raises:
        MissingLibrary: cryptography is not installed.
        UserError: the file is no such key.
    """
    with _needed():
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

    found = _read(path, load_pem_public_key)
    if not isinstance(found, Ed25519PublicKey):
        raise UserError(f"{path}: not an Ed25519 public key; make one: openssl pkey -pubout")
    return found


@contextmanager
def _needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingLibrary(
            f"signatures need cryptography, which is not installed; try: {install('sign')}"
        ) from error


def _read(path: Path, load: Callable[[bytes], object]) -> object:
    try:
        with path.open("rb") as file:
            return load(file.read(_MOST))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # of many kinds, some of them cryptography's own
        why = one_line(error, 100)
        raise UserError(f"{path}: not a PEM key without a passphrase: {why}") from error


def sign(bundle: Path, key: Ed25519PrivateKey) -> Path:
    """Write the signature of a bundle beside it, and return its path.

    Raises:
        RunError: it cannot be read or written.
    """
    place = signature_of(bundle)
    draft = place.with_name(f".{place.name}.part")
    try:
        signed = key.sign(_message(hash_file(bundle)))
        draft.write_bytes(base64.b64encode(signed) + b"\n")
        os.replace(draft, place)
    except OSError as error:
        raise RunError(f"{place}: cannot be written: {error.strerror or error}") from error
    return place


def problem(bundle: Path, sha256: str, key: Ed25519PublicKey) -> str:
    """Return why a bundle is not signed by a key; empty: it is.

    Args:
        bundle: the file; its signature lies beside it.
        sha256: its digest.
        key: of whom it should be.
    """
    from cryptography.exceptions import InvalidSignature

    place = signature_of(bundle)
    try:
        with place.open("rb") as file:
            written = base64.b64decode(file.read(_MOST).strip(), validate=True)
    except OSError as error:
        return f"not signed: {place}: {error.strerror or error}"
    except ValueError:
        return f"not signed: {place} is no signature"
    try:
        key.verify(written, _message(sha256))
    except InvalidSignature:
        return f"{place} is not a signature of this bundle by {fingerprint(key)}"
    return ""


def signature_of(bundle: Path) -> Path:
    """Return where the signature of a bundle lies."""
    return bundle.with_name(bundle.name + ENDING)


def fingerprint(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a public key's 32 bytes, in hexadecimal, with its kind."""
    return f"ed25519 {hashlib.sha256(key.public_bytes_raw()).hexdigest()}"


def _message(sha256: str) -> bytes:
    return _PURPOSE + sha256.encode()
