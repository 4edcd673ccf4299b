"""Samples behind URLs, read by fsspec: ``s3://``, ``https://``, ``memory://`` and many more."""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypedDict, TypeVar
from urllib.parse import quote, unquote

from simulator.contract.installing import install
from simulator.data import asking
from simulator.data.address import Address, Root, bare, below, in_full, safe, without_keys
from simulator.data.asking import asked, is_web, manners
from simulator.errors import DataError, MissingLibrary, one_line
from simulator.limits import FOLDERS, LISTED
from simulator.places import ByteSource, InMemory, Unreachable, Where, state_of, too_large

T = TypeVar("T")
ARCHIVES = 16
"""Archives that stay open."""
AT_ONCE = 16
"""Small files that are fetched at once."""
_PIECE = 2**20
_SECRET = re.compile(r"(?<=https:)//[^/?#]*@|(?<=http:)//[^/?#]*@|//[^/?#@]*:[^/?#]*@")
"""Who asks, as a part of a URL; on others than web servers a name without a password is none."""
_MARKS = ("ETag", "Last-Modified", "LastModified", "mtime", "modified", "modify", "created")
"""What file systems call the version of a file, or the time when it was written."""


class _Info(TypedDict, total=False):
    """What fsspec says of a file."""

    name: str
    size: int | None
    type: str


@dataclass(frozen=True, slots=True)
class Url(ByteSource):
    """The bytes behind a URL.

    Attributes:
        url: with its protocol.
        length: how many bytes it was listed with; None: the listing did not say.
    """

    url: str
    length: int | None = None

    @property
    def suffix(self) -> str:
        """The ending of the URL."""
        return PurePosixPath(_in_archive(self.url)[1] or bare(self.url)).suffix

    def read(self, most: int) -> bytes:
        """Return the bytes; one request."""
        if self.length is not None and self.length > most:
            raise too_large(self, self.length, most)

        def whole(files: Any, path: str) -> bytes:
            # In one pass; with any size, so that fsspec does not ask for it first.
            once = {"block_size": 0, "size": 1} if "http" in files.protocol else {}
            with files.open(path, "rb", **once) as file:
                return b"".join(_pieces(file, most, self))

        return _ask(self.url, whole)

    def size(self) -> int | None:
        """Return the bytes of the listing."""
        return self.length

    def __str__(self) -> str:
        return self.url


def place(root: Root) -> Where:
    """Return where the bytes of a path or a URL are."""
    return Url(root) if isinstance(root, str) else root


def inside(root: Root, name: str) -> Where:
    """Return the place of a file below a folder or a URL, by its name from there."""
    if not isinstance(root, str):
        return root / name
    return Url(below(root, quote(name) if is_web(root) else name))


def ahead(places: Sequence[Where], most: int) -> Iterator[Where]:
    """Yield places of small files; those behind URLs are fetched, some at once, and in memory.

    Args:
        places: in the order in which they are asked for.
        most: bytes of one of them; a place that cannot be read stays where it is.

    Raises:
        DataError: no server answers; the rest is not asked for.
    """

    def fetched(one: Where) -> Where:
        try:
            return InMemory.of(one, most) if isinstance(one, Url) else one
        except Unreachable as error:
            raise error.stop() from error
        except OSError:
            return one

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(fetched, places)


def filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it; no answer of a server is unpacked.

    Raises:
        MissingLibrary: fsspec, or what it needs for the protocol, is not installed.
        DataError: no library has this protocol, or results would keep the URL's password.
    """
    if _SECRET.search(url):
        raise DataError(
            f"{_SECRET.sub('//…@', url)}: a name or a password in a URL would be kept in every "
            'result; give it by FSSPEC_HTTPS or the like (docs/data-cards.md, "Behind a URL")'
        )
    try:
        import fsspec

        kind, path, archive = _in_archive(in_full(url))
        if archive:
            return _opened_archive(kind, archive, state_of(Path(archive))), path
        found: tuple[Any, str] = fsspec.core.url_to_fs(in_full(url), **manners(url))
    except ImportError as error:
        extra = "s3" if url.startswith("s3") else "remote"
        raise MissingLibrary(
            f"{url}: {without_keys(one_line(error))}; try: {install(extra)}"
        ) from error
    except ValueError as error:
        raise DataError(f"{url}: {without_keys(one_line(error))}") from error
    return found


def _in_archive(url: str) -> tuple[str, str, str]:
    """Return protocol, path and archive of ``zip://a/b.jpg::/data/val.zip``; else empty texts."""
    inside, _, archive = url.partition("::")
    kind, mark, path = inside.partition("://")
    return (kind, path, archive) if mark and archive else ("", "", "")


@lru_cache(maxsize=ARCHIVES)
def _opened_archive(kind: str, archive: str, state: tuple[int, ...]) -> Any:
    """Open an archive once as long as it stays the same: its table of contents is read then."""
    import fsspec

    options = {archive.partition(":")[0]: manners(archive)} if is_web(archive) else {}
    return fsspec.core.url_to_fs(f"{kind}://::{archive}", **options)[0]


def size_and_time(url: str) -> tuple[int, int]:
    """Return how many bytes a URL has, and a number that changes when it is written again.

    Raises:
        OSError: it cannot be reached, or does not say how long it is.
    """
    found = _ask(url, lambda files, path: files.info(path))
    if not isinstance(found.get("size"), int):
        raise OSError(errno.ESPIPE, "the server does not say how long it is", url)
    mark = next((found[key] for key in _MARKS if found.get(key)), "")
    version = hashlib.blake2b(str(mark).encode(), digest_size=7).digest()
    return found["size"], int.from_bytes(version, "big")


@contextmanager
def opened(url: str) -> Iterator[IO[bytes]]:
    """Open a URL to be read in any order.

    Raises:
        OSError: it cannot be reached or not be read in any order.
    """

    def open_(files: Any, path: str) -> IO[bytes]:
        file: IO[bytes] = files.open(path, "rb")
        if not file.seekable():
            file.close()
            raise OSError(errno.ESPIPE, "the server gives no part of a file", url)
        return file

    with _ask(url, open_) as file:
        try:
            yield file
        except (OSError, DataError, EOFError):
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("pyarrow", "tarfile"):
                raise  # what is in the file is wrong
            raise asking.told(url, error) from error


def part(url: str, offset: int, size: int, whole: int) -> bytes:
    """Return some bytes of a URL; one request.

    Args:
        url: of a file.
        offset: of the first byte.
        size: how many.
        whole: the bytes of the file; a server that gives no parts gives these.

    Raises:
        OSError: they cannot be read; fewer are returned where the file ends before.
    """
    end = offset + size
    data: bytes = _ask(url, lambda files, path: files.cat_file(path, start=offset, end=end))
    return data[offset:end] if len(data) == whole else data


def names(url: str) -> list[str]:
    """Return what is directly in a folder; the names of folders end in ``/``.

    Raises:
        OSError: it cannot be listed.
        DataError: a name leads out of it.
    """

    def listing(files: Any, root: str) -> list[str]:
        found = [(one["name"].rstrip("/"), one["type"]) for one in files.ls(root, detail=True)]
        last = ((name.rpartition("/")[2], kind == "directory") for name, kind in sorted(found))
        return [_plain(url, name) + "/" * folder for name, folder in last if name]

    return _ask(_listable(url), listing)


def listed(url: str) -> dict[str, Url]:
    """Return the files below a URL by their names from there, sorted.

    Raises:
        DataError: it cannot be listed, or a name leads out of it.
    """

    def listing(files: Any, root: str) -> dict[str, Url]:
        root = root.rstrip("/")
        found = _walked(files, root) if is_web(url) else files.find(root, detail=True)
        top, (kind, _, archive) = f"{root}/" if root else "", _in_archive(url)
        return {
            _plain(url, path.removeprefix(top)): Url(
                f"{kind}://{path}::{archive}" if archive else files.unstrip_protocol(path),
                one.get("size"),
            )
            for path, one in sorted(found.items())
            if path.startswith(top) and one.get("type", "file") == "file"
            and not (is_web(url) and "?" in path)  # how a listing may be sorted
        }  # fmt: skip

    try:
        return _ask(_listable(url), listing)
    except OSError as error:
        raise DataError(f"{url}: cannot be listed: {error.strerror or error}") from error


def _walked(files: Any, root: str) -> dict[str, _Info]:
    """What is below a folder of a web server, which may list folders without end."""
    found: dict[str, _Info] = {}
    # By itself fsspec leaves out the folders that it cannot list.
    for number, (_, _, inside) in enumerate(files.walk(root, detail=True, on_error="raise")):
        found |= {one["name"]: one for one in inside.values()}
        if number >= FOLDERS or len(found) > LISTED:
            many = f"more than {FOLDERS:,} folders or {LISTED:,} files"
            raise OSError(errno.E2BIG, f"{many}; give shards or a table")
    return found


def _ask(url: str, ask: Callable[[Any, str], T]) -> T:
    """Ask the file system of a URL for something at a path; see :func:`asked`."""
    return asked(url, lambda: ask(*filesystem(url)))


def _listable(url: str) -> str:
    """Return the URL of a folder that can be listed: what a listing links to has no query."""
    if isinstance(url, Address):
        raise DataError(
            f"{url}: a folder behind a URL with a query cannot be listed; give shards "
            "(`…/val-{0000..0049}.tar?…`) or a table (`…/val.csv?…`), or keys by fsspec's "
            'configuration (docs/data-cards.md, "Behind a URL")'
        )
    return url


def _plain(url: str, name: str) -> str:
    """A name of a listing: on web pages blanks are ``%20``, and some begin with ``./``."""
    return safe(unquote(name) if is_web(url) else name, url)


def _pieces(file: IO[bytes], most: int, place: Url) -> Iterator[bytes]:
    """Read no more than is allowed: a listing may be old, or lie."""
    total = 0
    while piece := file.read(_PIECE):
        total += len(piece)
        if total > most:
            raise too_large(place, total, most)
        yield piece
