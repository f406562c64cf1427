"""Pictures that a page shows: with the bytes that a table names, so that a verdict belongs to what was seen."""

from pathlib import Path

from ..files import sha256
from .server import Refusal, Reply

CONTENT_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}


def noted_bytes(path: Path, digest: str, name: str) -> bytes:
    """A file's bytes. name: what it is called on the page. Raises Refusal unless they have the digest."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Refusal(404, f"{name} cannot be read ({error.strerror})") from None
    if sha256(data) != digest:
        raise Refusal(409, f"{name} was made again; start the review again")
    return data


def picture_reply(path: Path, digest: str, name: str) -> Reply:
    """A picture as it lies there. Raises Refusal as noted_bytes does."""
    kind = CONTENT_TYPES.get(path.suffix.lower(), "application/octet-stream")
    return Reply(200, kind, noted_bytes(path, digest, name))
