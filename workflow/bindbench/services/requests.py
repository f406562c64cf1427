"""A request to a service, and the key under which its answer is kept.

The key is the SHA-256 of the canonical JSON of everything that shapes the answer: service, model, kind, body, input images
by their hash, the attempt (a deliberate remake) and the try (the next one after a broken payload). Where the server is,
who asks and for which stage is not part of it.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ..files import canonical_json, sha256, sha256_of_file

# The service that answers each kind of request.
KINDS = {
    "image_generation": "openai",
    "image_edit": "openai",
    "chat": "openai",
    "gemini_content": "gemini",
    "seedream_image": "seedream",
}


@dataclass(frozen=True)
class InputImage:
    """An image that goes with a request; it is read when the request is sent, and must still have this hash then."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: str | Path) -> "InputImage":
        return cls(str(Path(path).resolve()), sha256_of_file(path))


@dataclass(frozen=True)
class Request:
    """One request.

    kind: image_generation and image_edit (OpenAI's images API; one image an answer), chat (chat completions; JSON when
        the body has a response_format), gemini_content (Gemini's generateContent), seedream_image (one image of Seedream's).
    body: the parameters in the wire format without the model: prompt, size and quality; messages and response_format;
        contents and config (config in the keys of google-genai). `{"image": i}` as a content part stands for images[i];
        image_edit and seedream_image send all images in order.
    attempt: 1, 2, ...: a deliberate remake of the same request.
    stage: whose purchase it is, for the accounts; not part of the key.
    """

    kind: str
    model: str
    body: dict
    images: tuple[InputImage, ...] = ()
    attempt: int = 1
    stage: str = ""
    try_number: int = field(default=1, kw_only=True)

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"kind: {self.kind} is none of {', '.join(KINDS)}")
        if self.body.get("n", 1) != 1:
            raise ValueError("n: one image a request; use attempts for more")

    @property
    def service(self) -> str:
        return KINDS[self.kind]

    @cached_property
    def identity(self) -> dict:
        """Everything the key is made of."""
        return canonical(
            {
                "service": self.service,
                "model": self.model,
                "kind": self.kind,
                "body": self.body,
                "images": [image.sha256 for image in self.images],
                "attempt": self.attempt,
                "try": self.try_number,
            }
        )

    @cached_property
    def key(self) -> str:
        return key_of(self.identity)

    def at_try(self, number: int) -> "Request":
        """The same request, asked again because the payload of the try before was broken."""
        return self if number == self.try_number else replace(self, try_number=number)

    def to_json(self) -> dict:
        return {
            "kind": self.kind,
            "model": self.model,
            "body": self.body,
            "images": [[image.path, image.sha256] for image in self.images],
            "attempt": self.attempt,
            "stage": self.stage,
            "try_number": self.try_number,
        }

    @classmethod
    def from_json(cls, value: dict) -> "Request":
        return cls(**{**value, "images": tuple(InputImage(*image) for image in value["images"])})


def key_of(identity: dict) -> str:
    return sha256(canonical_json(identity))


def canonical(value):
    """The value with one spelling for each number and list: 1.0 and 1 are the same request, as are (1,) and [1].

    Raises ValueError for what JSON cannot hold.
    """
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("keys of a request's body must be strings")
        return {name: canonical(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a request cannot hold the number {value}")
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, (str, bool, int)):
        return value
    raise ValueError(f"a request cannot hold a {type(value).__name__}")
