"""`longpole report --open`: serves a report to one browser, and the trace to Perfetto."""

from __future__ import annotations

import secrets
import sys
import tempfile
import webbrowser
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from longpole.report.page import page_text

if TYPE_CHECKING:
    from longpole.engine.critical_path import CriticalPath
    from longpole.report.sections import Page

_HOST: Final = "127.0.0.1"
_PERFETTO: Final = "https://ui.perfetto.dev"
_COOKIE: Final = "longpole"


class Server(ThreadingHTTPServer):
    """Serves one page, and one archive for Perfetto, on the loopback interface."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__((_HOST, port), _Handler)
        self.page = b""
        self.archive = b""
        self.token: str | None = secrets.token_urlsafe(32)
        self.token_lock = Lock()
        self.session = secrets.token_urlsafe(32)
        self.archive_key = secrets.token_urlsafe(32)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error of a request on stderr, unless the client has disconnected."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def show(self, page: Page) -> None:
        """Serve a page, with a link to Perfetto if there is an archive for it."""
        link = ("Open the trace with its critical path in Perfetto", perfetto_link(self))
        self.page = page_text(replace(page, links=(link,)) if self.archive else page).encode()

    def add_trace(self, name: str, path: CriticalPath) -> None:
        """Serve a trace with its critical path, for Perfetto."""
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder, "trace.zip")
            path.to_perfetto(archive, beside=name)
            self.archive = archive.read_bytes()

    def serve(self, *, opens_browser: bool) -> None:
        """Serve until Ctrl-C."""
        sys.stderr.write(f"{self.opening_address}  (works once; Ctrl-C ends)\n")
        if opens_browser:
            webbrowser.open(self.opening_address)
        with suppress(KeyboardInterrupt):
            self.serve_forever()

    @property
    def address(self) -> str:
        """The address of the server."""
        return f"http://{_HOST}:{self.server_port}"

    @property
    def opening_address(self) -> str:
        """The address that opens the page once."""
        return f"{self.address}/open/{self.token}"

    @property
    def archive_address(self) -> str:
        """The address from which Perfetto loads the trace and the path."""
        return f"{self.address}/{self.archive_key}.zip"


def perfetto_link(server: Server) -> str:
    """Return the link that opens the trace with its path in Perfetto."""
    return f"{_PERFETTO}/#!/?url={quote(server.archive_address, safe='')}"


class _Handler(BaseHTTPRequestHandler):
    """Answers GET requests for the page, the token, and the archive."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer one request."""
        if self.headers.get("Host") != f"{_HOST}:{self.server.server_port}":
            self._refuse(HTTPStatus.FORBIDDEN)
        elif self.path.startswith("/open/"):
            self._open(self.path.removeprefix("/open/"))
        elif _is_same(self.path, f"/{self.server.archive_key}.zip"):
            headers = {"Access-Control-Allow-Origin": _PERFETTO}
            self._send(self.server.archive, "application/zip", headers)
        elif self.path == "/" and self._is_known():
            self._send(self.server.page, "text/html; charset=utf-8", {})
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - name of the base class
        """Do not log requests to stderr."""

    def _open(self, token: str) -> None:
        """Exchange the token for a cookie, once; a wrong token does not invalidate it."""
        with self.server.token_lock:
            is_known = self.server.token is not None and _is_same(token, self.server.token)
            if is_known:
                self.server.token = None
        if not is_known:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.SEE_OTHER)
        cookie = f"{_COOKIE}={self.server.session}; HttpOnly; SameSite=Strict; Path=/"
        self.send_header("Set-Cookie", cookie)
        self.send_header("Location", "/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _is_known(self) -> bool:
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(_COOKIE)
        except CookieError:
            return False
        return cookie is not None and _is_same(cookie.value, self.server.session)

    def _send(self, body: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(HTTPStatus.OK)
        usual = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        for name, value in {**usual, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _is_same(given: str, secret: str) -> bool:
    """Whether a string is the secret, compared in constant time."""
    # As bytes: `compare_digest` raises an error for a string that is not ASCII.
    return secrets.compare_digest(given.encode(errors="replace"), secret.encode())
