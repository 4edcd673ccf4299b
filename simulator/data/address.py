"""What ``--data`` may be: a path, or the address of something that is elsewhere."""

from __future__ import annotations

import hashlib
import posixpath
import re
from pathlib import Path

from simulator.errors import DataError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")
_QUERY = re.compile(r"(?<=://)([^\s?'\"<>]*)\?([^\s'\"<>]+)")
_HIDDEN = re.compile(r"sha256=[0-9a-f]{12}")
"""What stands for a query."""
Root = Path | str
"""A path, or a URL."""


class Address(str):
    """A URL with a query, which may be a key to the data: as a text it has a digest in its place.

    So whatever is written of it keeps no key; only what asks the server takes :func:`in_full`.

    Attributes:
        whole: with its query.
    """

    whole: str

    def __new__(cls, url: str, shown: str | None = None) -> Address:
        """Make one of a whole URL; *shown* is how it is written where that is given."""
        path, _, query = url.partition("?")
        made = super().__new__(cls, f"{path}?{_digest(query)}" if shown is None else shown)
        made.whole = url
        return made

    def __reduce__(self) -> tuple[type[Address], tuple[str, str]]:
        return Address, (self.whole, str(self))


def without_keys(text: str) -> str:
    """Return a text in which no URL has its query: a digest stands for it.

    Queries of presigned URLs are keys. The same query has the same digest, the first 12 hexadecimal
    digits of its SHA-256.
    """
    return _QUERY.sub(lambda found: f"{found[1]}?{_digest(found[2])}", text)


def _digest(query: str) -> str:
    known = _HIDDEN.fullmatch(query) is not None
    return query if known else f"sha256={hashlib.sha256(query.encode()).hexdigest()[:12]}"


def in_full(url: str) -> str:
    """Return a URL as its server is asked for it.

    Raises:
        DataError: it was read from a result, which keeps no query.
    """
    if isinstance(url, Address):
        return url.whole
    if _HIDDEN.fullmatch(url.partition("?")[2]):
        raise DataError(
            f"{url}: what stood behind '?' may be a key, so results keep a digest of it; "
            "give the whole URL again (`simulate resume` takes --data URL for this)"
        )
    return url


def again(known: str, given: str) -> Root:
    """Return a URL that is given again for one that a result has, and is written as it is there.

    Raises:
        DataError: it is the URL of something else.
    """
    if not is_url(given) or given.partition("?")[0] != known.partition("?")[0]:
        raise DataError(f"--data {without_keys(given)}: the run was made of {known}")
    return Address(given, known)


def bare(root: Root) -> str:
    """Return a path, or a URL without its query, for the name at its end."""
    return root.partition("?")[0] if isinstance(root, Address) else str(root)


def below(url: str, name: str) -> str:
    """Return the URL of something in a folder; what gives access to the folder does so to it."""
    return _with_path(url, f"{bare(url).rstrip('/')}/{name}")


def beside(url: str) -> str:
    """Return the URL of the folder that something is in."""
    return _with_path(url, bare(url).rpartition("/")[0])


def _with_path(url: str, path: str) -> str:
    if not isinstance(url, Address):
        return path
    query, shown = url.whole.partition("?")[2], url.partition("?")[2]
    return Address(f"{path}?{query}", f"{path}?{shown}")


def address(url: str) -> str:
    """Return a URL, which as a text shows no key."""
    _, mark, query = url.partition("?")
    return Address(url) if mark and not _HIDDEN.fullmatch(query) else url


def is_url(text: str | Path) -> bool:
    """Whether this is the address of something elsewhere: ``s3://``, ``https://``, ``memory://``."""
    return isinstance(text, str) and _URL.match(text) is not None


def root_of(data: str | Path) -> Root:
    """Return a path, or a URL, which as a text shows no key."""
    if isinstance(data, Address):
        return data
    return address(data) if isinstance(data, str) and is_url(data) else Path(data)


def absolute(root: Root) -> str:
    """Return the full path, or a URL as it is shown."""
    return str(root if isinstance(root, str) else root.resolve())


def safe(name: str, where: str) -> str:
    """Return a path below a folder in its plain form.

    Raises:
        DataError: it leads out of the folder.
    """
    if name.startswith("/") or ".." in name.split("/"):
        raise DataError(f"{where}: {name!r} leads out of the folder; write a path below it")
    return posixpath.normpath(name)
