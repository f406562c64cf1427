"""Starts a page for the person at this machine: its public files, its address, the browser, and the end by Ctrl-C."""

import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from ..figures.pages import STYLE
from ..files import sha256
from .judging import Judging
from .server import LoopbackServer, PortTaken, Reply

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
FRAME = {"/": "review.html", "/review.js": "review.js", "/furniture.js": "furniture.js", "/review.css": "review.css"}


class Review(Protocol):
    """What a page needs of the side that serves it."""

    title: str  # of what is done, for the terminal
    # Files of the folder page besides FRAME, by path: /page.js, which calls begin, and /page.css.
    pages: Mapping[str, str]
    judging: Judging

    def answer(self, method: str, parts: list[str], body: dict | None) -> Reply:
        """Raises Refusal."""


def public_files(pages: Mapping[str, str]) -> dict[str, tuple[str, bytes]]:
    """Content type and bytes of what a page is made of, by path. pages: files of the folder page, by path."""
    folder = files(__package__) / "page"
    public = {path: (_kind(name), (folder / name).read_bytes()) for path, name in pages.items()}
    return public | {"/style.css": (_kind("style.css"), STYLE.encode())}


def _kind(name: str) -> str:
    return f"{KINDS[Path(name).suffix]}; charset=utf-8"


def usual_port(journal: Path) -> int:
    """A port of this journal's own, outside the ranges that systems hand out by themselves."""
    return 20000 + int(sha256(str(Path(journal).resolve())), 16) % 10000


def server_of(review: Review, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> LoopbackServer:
    """The server, bound but not yet serving. Raises UserError as LoopbackServer does."""
    return LoopbackServer(host, port, public_files(FRAME | review.pages), review.answer, token)


def serve_until_stopped(review: Review, host: str = "127.0.0.1", port: int = 0, open_browser: bool = True) -> None:
    """Serves a page until Ctrl-C or SIGTERM.

    port: 0 takes the journal's own while it is free: presses that a page kept when the server went away lie in the browser
    under the old address, and are found again there. Raises UserError as server_of does.
    """
    journal = review.judging.journal.path
    ports = [port] if port else [usual_port(journal), 0]
    for number in ports:
        try:
            server = server_of(review, host, number)
            break
        except PortTaken:
            if number == ports[-1]:
                raise
    print(f"{review.title}; what is judged goes into {journal}. Open {server.url}\nCtrl-C ends it.", flush=True)

    def stop(*about) -> None:
        threading.Thread(target=server.shutdown).start()

    previous = signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory(prefix="bindbench-") as folder:
        try:
            if open_browser and not webbrowser.open(_door(Path(folder), server.url)):
                print("No browser could be opened here: open the address yourself.", file=sys.stderr)
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, previous)
            server.server_close()


def _door(folder: Path, url: str) -> str:
    """Address of a file, for this user's eyes, that leads to the page: command lines, which all users of a machine see,
    must not hold the token.
    """
    path = folder / "review.html"
    path.touch(mode=0o600)
    path.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">', encoding="utf-8")
    return path.as_uri()
