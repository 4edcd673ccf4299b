"""How a web server is asked: patiently, for bytes as they are, and for no more than a bound."""

from __future__ import annotations

import errno
from functools import cache
from typing import Any

from simulator.data import asking
from simulator.limits import ANSWER


def is_web(url: str) -> bool:
    """Return whether a URL is a web server's."""
    return url.startswith(("http://", "https://"))


def manners(url: str) -> dict[str, Any]:
    """Return what fsspec is told for a URL: how long a server may be silent, and how it answers.

    A large file may take any time. Nothing is unpacked on the way: a few bytes may become many.
    """
    if not is_web(url):
        return {}
    import fsspec
    from aiohttp import ClientTimeout

    own = fsspec.config.conf.get(url.partition(":")[0], {}).get("client_kwargs", {})
    patience = ClientTimeout(total=None, sock_connect=asking.SILENCE, sock_read=asking.SILENCE)
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
