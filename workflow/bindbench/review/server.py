"""A web server for the person at this machine: loopback only, one page, one token, no cookie, nothing from outside.

The page itself is public; everything else needs the session's token in a header. The token travels in the address's
fragment, which browsers send to nobody; other sites' pages therefore cannot ask for anything, and a name that was made
to point at this machine (DNS rebinding) is refused by the Host header. Views plug in a function `answer`.
"""

import errno
import hmac
import ipaddress
import json
import re
import secrets
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ..errors import UserError

TOKEN_HEADER = "X-Review-Token"
MOST_BYTES = 64 << 10  # of a request's body
IDLE_S = 60  # an idle connection's thread ends after this
LOCAL_HOST = re.compile(r"(127(\.\d{1,3}){3}|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PortTaken(UserError):
    """Another program listens there."""


class Reply(NamedTuple):
    status: int
    content_type: str
    body: bytes


class Refusal(Exception):
    """What was asked for cannot be given; the message is shown on the page."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def json_reply(value, status: int = 200) -> Reply:
    return Reply(status, "application/json", json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


class LoopbackServer(ThreadingHTTPServer):
    """files: what is public, by path. answer(method, parts of the path, JSON of the body or None): everything else.

    Raises UserError when the host is not of this machine alone, or the port is taken.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        host: str,
        port: int,
        files: dict[str, tuple[str, bytes]],
        answer: Callable[[str, list[str], dict | None], Reply],
        token: str | None = None,
    ):
        address = loopback_address(host)
        self.address_family = AF_INET6 if ":" in address else AF_INET
        self.files, self.answer = files, answer
        self.token = token or secrets.token_urlsafe(24)
        try:
            super().__init__((address, port), Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(
                    f"{host}: port {port} is taken, perhaps by another review page; choose another (0: any free one)"
                ) from None
            raise UserError(f"{host}: port {port}: {error.strerror}") from None
        except OverflowError:
            raise UserError(f"{host}: port {port} must be from 0 to 65535") from None

    @property
    def url(self) -> str:
        """With the token: for the person alone."""
        host, port = self.server_address[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/#{self.token}"

    def server_bind(self):
        """Without the name look-up of the library's own, which may ask the network."""
        self.socket.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, request, client_address):
        """A page that goes away in the middle of an answer is no error."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def loopback_address(host: str) -> str:
    """The numeric address of a host that only this machine can reach. Raises UserError for any other."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        raise UserError(
            f"--host {host}: only this machine may open the page (127.0.0.1, ::1 or localhost); "
            "from another machine use a tunnel: ssh -L 8217:127.0.0.1:8217 HOST"
        )
    return str(address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bindbench", ""
    timeout = IDLE_S
    server: LoopbackServer

    def do_GET(self):
        self._serve("GET")

    def do_POST(self):
        self._serve("POST")

    def do_other(self):
        self._serve(self.command)

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = do_other

    def _serve(self, method: str) -> None:
        try:
            reply = self._reply(method)
        except Refusal as refusal:
            reply = json_reply({"error": str(refusal)}, refusal.status)
        except UserError as error:
            reply = json_reply({"error": str(error)}, 500)
        except Exception as error:  # a fault of ours: told to the page, traced on standard error
            self._send(json_reply({"error": f"the server failed ({type(error).__name__}); see its terminal"}, 500))
            raise
        self._send(reply)

    def _reply(self, method: str) -> Reply:
        if not LOCAL_HOST.fullmatch(self.headers.get("Host", "")):
            raise Refusal(403, "wrong Host")
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != self.headers["Host"].lower():
            raise Refusal(403, "wrong Origin")
        if method not in ("GET", "POST"):
            raise Refusal(405, f"{method} is not served")
        path = urlsplit(self.path).path
        if method == "GET" and path in self.server.files:
            return Reply(200, *self.server.files[path])
        if not hmac.compare_digest(self.headers.get(TOKEN_HEADER, "").encode(), self.server.token.encode()):
            raise Refusal(403, "wrong token")
        body = self._body() if method == "POST" else None
        return self.server.answer(method, [unquote(part) for part in path.split("/")[1:]], body)

    def _body(self) -> dict:
        if self.headers.get_content_type() != "application/json":
            raise Refusal(415, "the body must be application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refusal(411, "the body needs a Content-Length")
        if int(length) > MOST_BYTES:
            raise Refusal(413, "the body is too long")
        data = self.rfile.read(int(length))
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            raise Refusal(400, "the body is not JSON") from None
        if not isinstance(value, dict):
            raise Refusal(400, "the body is not a JSON object")
        return value

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if reply.status == 405:
            self.send_header("Allow", "GET, POST")
        if reply.status >= 400:
            self.close_connection = True  # a refused body may be unread
            self.send_header("Connection", "close")
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def send_error(self, code, message=None, explain=None):
        """What the library refuses by itself: unknown methods, malformed or oversized requests."""
        if not getattr(self, "command", None):
            self.command = ""
        self.request_version = getattr(self, "request_version", "") or "HTTP/1.1"
        self._send(json_reply({"error": message or self.responses.get(code, ("error",))[0]}, int(code)))

    def log_message(self, *about):
        """Nothing: the terminal is the person's."""
