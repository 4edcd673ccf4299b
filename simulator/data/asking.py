"""How a server behind a URL is asked: patiently, for bytes as they are and no more than a bound.

Where its error may pass it is asked again; why it refuses is said in words.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from simulator.data.address import without_keys
from simulator.errors import DataError, MissingLibrary, one_line
from simulator.limits import ANSWER
from simulator.places import Unreachable

T = TypeVar("T")
PAUSES = (0.5, 2.0)
"""Seconds before a request is tried again, where its error may pass."""
SILENCE = 60.0
"""Seconds after which a web server that gives nothing is taken for one that does not answer."""
_GONE = frozenset({
    "ClientConnectorError", "ConnectionTimeoutError", "ConnectionRefusedError",
    "EndpointConnectionError", "ConnectTimeoutError", "ConnectTimeout",
})  # fmt: skip
"""Errors of libraries where no server answered; they have no class in common."""
_MAY_PASS = frozenset({
    *_GONE, "ClientConnectionError", "ClientPayloadError", "ConnectionError", "TimeoutError",
    "HTTPClientError", "IncompleteRead",
})  # fmt: skip
_ASTRAY = frozenset({"NonHttpUrlRedirectClientError", "InvalidUrlRedirectClientError"})
_LATER = frozenset({408, 429, 500, 502, 503, 504})
"""What a web server answers that may give the file a moment later."""


def asked(url: str, ask: Callable[[], T]) -> T:
    """Ask a server for something; where it fails and may not a moment later, ask again.

    Raises:
        Unreachable: no server answers.
        OSError: it refuses, or what it gives breaks off.
    """
    # S3's library asks again by itself.
    pauses = () if url.startswith(("s3://", "s3a://")) else PAUSES
    for pause in (*pauses, None):
        try:
            return ask()
        except (MissingLibrary, DataError):
            raise
        except Exception as error:
            if pause is None or not _may_pass(error):
                raise told(url, error) from error
        time.sleep(pause)
    raise AssertionError


def told(url: str, error: BaseException) -> OSError:
    """Return what a library of a protocol raised, which has no class in common, as an OSError."""
    cause, kinds = _cause(error), _kinds(error)
    # What a library says may name the URL that was asked for, or one it was sent to.
    words = without_keys(one_line(cause))[:200]
    code, why = errno.EIO, f"{type(cause).__name__}: {words}"
    if kinds & _GONE:
        return Unreachable(errno.ECONNREFUSED, f"no server answers: {words}", url)
    if "TooManyRedirects" in kinds:
        code, why = errno.ELOOP, "the server redirects in a circle"
    elif kinds & _ASTRAY:
        code, why = errno.EPERM, f"the server redirects to what is no web address: {words}"
    elif status := getattr(cause, "status", None):
        said = f"the server says {status} {getattr(cause, 'message', '')}"
        why = without_keys(said.strip())
    elif isinstance(cause, FileNotFoundError):
        code, why = errno.ENOENT, "nothing is there"
    elif isinstance(cause, OSError) and cause.strerror:
        code, why = cause.errno or errno.EIO, without_keys(cause.strerror)
    elif isinstance(cause, TimeoutError):
        code, why = errno.ETIMEDOUT, f"the server gave nothing for {SILENCE:g} s"
    elif "range requests" in words:
        code, why = errno.ESPIPE, "the server gives no part of a file"
    return OSError(code, why, url)


def _cause(error: BaseException) -> BaseException:
    """What fsspec calls a file that is not there, whatever the reason was."""
    hidden = isinstance(error, FileNotFoundError) and error.__cause__
    return hidden or error


def _kinds(error: BaseException) -> set[str]:
    return {one.__name__ for one in type(_cause(error)).__mro__}


def _may_pass(error: BaseException) -> bool:
    return bool(_kinds(error) & _MAY_PASS) or getattr(_cause(error), "status", None) in _LATER


def is_web(url: str) -> bool:
    """Return whether a URL is a web server's."""
    return url.startswith(("http://", "https://"))


def manners(url: str) -> dict[str, object]:
    """Return what fsspec is told for a URL: how long a server may be silent, and how it answers.

    A large file may take any time. Nothing is unpacked on the way: a few bytes may become many.
    """
    if not is_web(url):
        return {}
    import fsspec
    from aiohttp import ClientTimeout

    own = fsspec.config.conf.get(url.partition(":")[0], {}).get("client_kwargs", {})
    patience = ClientTimeout(total=None, sock_connect=SILENCE, sock_read=SILENCE)
    plain = {"auto_decompress": False, "headers": {"Accept-Encoding": "identity"}}
    return {"client_kwargs": {"timeout": patience, **plain, "response_class": _bounded(), **own}}


@cache
def _bounded() -> type[Any]:
    """Return the class of a web server's answers; what is read in one go has a bound."""
    from aiohttp import ClientResponse

    class Answer(ClientResponse):
        async def read(self) -> bytes:
            if self._body is None:
                pieces, total = [], 0
                async for piece in self.content.iter_any():
                    total += len(piece)
                    if total > ANSWER:
                        self.close()
                        raise OSError(errno.EFBIG, f"an answer of more than {ANSWER:,} bytes")
                    pieces.append(piece)
                self._body = b"".join(pieces)
            return self._body

    return Answer
