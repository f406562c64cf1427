"""What an answer is: a checked payload, a broken one, a final refusal, a passing error, or a reason to stop the run.

The same judgement serves calls (status and body of an HTTP response) and lines of a batch's output.

* answer: a whole image of the size asked for, or text; JSON that fits the schema when one was asked for.
* broken: the service says that all went well, but the payload is not that. It is kept as a reject and asked for again.
* refused: moderation, or an invalid request. Kept as a reject and never asked for again.
* passing: overload, rate limit, trouble of the server or the network. Asked again after a wait; nothing is kept.
* stop: a wrong key, no quota, an unknown model: no request would fare better. The run ends; nothing is kept.
"""

import base64
import binascii
import io
import json
import re
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Literal

from ..files import canonical_json
from .prices import tokens_used, wants_image
from .requests import Request

Verdict = Literal["answer", "broken", "refused", "passing", "stop"]

PASSING_STATUS = (408, 409, 425, 429)
STOP_CODES = (
    *("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated"),
    *("invalid_api_key", "model_not_found", "API_KEY_INVALID"),
)
# Gemini's reasons for which a candidate is withheld.
WITHHELD = (
    *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER"),
)
# The words of OpenAI and Gemini, and of Seedream: InputTextSensitiveContentDetected and the like.
MODERATION = re.compile("moderation|content_policy|safety|content_filter|sensitive.?content", re.IGNORECASE)
MOST_PIXELS = 64 << 20  # no service sends more; a larger claim is an attack or an error
PNG_END = b"\0\0\0\0IEND\xaeB`\x82"  # the last chunk: its length, type and checksum
KEPT_OF_BROKEN = 1 << 20  # bytes of a broken answer that are kept for people to look at


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    reason: str = ""
    payload: bytes = b""
    content_type: str = "text/plain"
    tokens: dict[str, int] = field(default_factory=dict)
    retry_after_s: float | None = None
    uncertain: bool = False  # passing, and the service may have answered (and billed) all the same

    def __post_init__(self):
        # Half a surrogate pair in what a service says cannot be written down, and the answer would be lost with it.
        object.__setattr__(self, "reason", self.reason.encode("utf-8", "replace").decode())


def judge(request: Request, status: int, body: bytes, retry_after: str | None = None) -> Judgement:
    """The judgement of one HTTP response, or of one line of a batch with its status and body."""
    if status >= 400:
        return _error(request, status, body, retry_after)
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        return _broken(body, "the answer is not a JSON object")
    read = {"chat": _chat, "gemini_content": _gemini, "seedream_image": _seedream_image}.get(
        request.kind, _openai_image
    )
    usage = answer.get("usageMetadata" if request.service == "gemini" else "usage")
    tokens = tokens_used(request.service, usage)
    try:
        verdict = read(request, answer)
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeEncodeError, RecursionError):
        verdict = _broken(body, "the answer does not have the form of its kind")
    if verdict.verdict == "broken":
        verdict = _broken(body, verdict.reason)
    return Judgement(verdict.verdict, verdict.reason, verdict.payload, verdict.content_type, tokens)


def _broken(body: bytes, reason: str) -> Judgement:
    return Judgement("broken", reason, body[:KEPT_OF_BROKEN], "application/octet-stream")


def _error(request: Request, status: int, body: bytes, retry_after: str | None) -> Judgement:
    code, message = error_of(body)
    text = f"{status}{' ' + code if code else ''}: {message}"
    wait = seconds_of(retry_after)
    if status in (401, 403) or any(stop in (code, *_details(body)) for stop in STOP_CODES):
        return Judgement("stop", f"{request.service} refuses the key or the account ({text})")
    if status == 404:
        return Judgement("stop", f"{request.service} knows no model {request.model} or no such address ({text})")
    if status in PASSING_STATUS or status >= 500:
        return Judgement("passing", text, retry_after_s=wait)
    if MODERATION.search(f"{code} {message}"):
        return Judgement("refused", f"moderation ({text})", body[:KEPT_OF_BROKEN], "application/json")
    return Judgement("refused", f"invalid request ({text})", body[:KEPT_OF_BROKEN], "application/json")


def error_of(body: bytes) -> tuple[str, str]:
    """Code and message of an error body of either service; of any other body its beginning."""
    try:
        error = json.loads(body)
        error = error[0] if isinstance(error, list) else error
        error = error.get("error", error)
        code = (
            error.get("code") if isinstance(error.get("code"), str) else error.get("status") or error.get("type") or ""
        )
        return str(code or ""), " ".join(str(error.get("message") or "no message").split())[:500]
    except (ValueError, AttributeError, IndexError, RecursionError):
        return "", " ".join(body[:300].decode("utf-8", "replace").split()) or "empty answer"


def _details(body: bytes) -> list[str]:
    """The reasons in the details of a Gemini error, and the type of an OpenAI one."""
    try:
        error = json.loads(body)
        error = (error[0] if isinstance(error, list) else error)["error"]
        return [str(error.get("type"))] + [str(item.get("reason")) for item in error.get("details") or ()]
    except (ValueError, AttributeError, IndexError, KeyError, TypeError, RecursionError):
        return []


def seconds_of(retry_after: str | None, now: datetime | None = None) -> float | None:
    """Seconds of a Retry-After header: a number of seconds or an HTTP date; None for anything else."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def _openai_image(request: Request, answer: dict) -> Judgement:
    return check_image(answer["data"][0].get("b64_json"), request.body.get("size"))


def _seedream_image(request: Request, answer: dict) -> Judgement:
    """An image that was withheld comes as an error in its place. The size is only nearly the one asked for."""
    image = answer["data"][0]
    if "error" in image:
        code, message = error_of(canonical_json(image).encode())
        if MODERATION.search(f"{code} {message}"):
            return Judgement("refused", f"moderation ({code}: {message})", canonical_json(image).encode())
        return Judgement("broken", f"the answer holds an error ({code}: {message})")
    return check_image(image.get("b64_json"), None)


def _chat(request: Request, answer: dict) -> Judgement:
    choice = answer["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    if message.get("refusal"):
        return Judgement("refused", f"the model refuses: {message['refusal'][:300]}", str(message["refusal"]).encode())
    if finish == "content_filter":
        return Judgement("refused", "moderation (content_filter)", (message.get("content") or "").encode())
    if finish == "length":
        return Judgement("broken", "the answer is cut at the token limit")
    wanted = request.body.get("response_format") or {}
    schema = (wanted.get("json_schema") or {}).get("schema")
    return check_text(message.get("content"), schema, wanted.get("type") in ("json_schema", "json_object"))


def _gemini(request: Request, answer: dict) -> Judgement:
    blocked = (answer.get("promptFeedback") or {}).get("blockReason")
    if blocked:
        return Judgement("refused", f"moderation ({blocked})", canonical_json(answer["promptFeedback"]).encode())
    candidate = answer["candidates"][0]
    finish = candidate.get("finishReason")
    if finish in WITHHELD:
        return Judgement("refused", f"moderation ({finish})", canonical_json(candidate)[:KEPT_OF_BROKEN].encode())
    if finish == "MAX_TOKENS":
        return Judgement("broken", "the answer is cut at the token limit")
    parts = [part for part in candidate["content"]["parts"] if not part.get("thought")]
    if wants_image(request):
        images = [part["inlineData"]["data"] for part in parts if "inlineData" in part]
        return check_image(images[-1] if images else None, None)
    config = request.body.get("config") or {}
    schema = config.get("response_json_schema") or config.get("response_schema")
    json_wanted = config.get("response_mime_type") == "application/json"
    return check_text("".join(part.get("text", "") for part in parts), schema, json_wanted)


def check_image(encoded: str | None, size: str | None) -> Judgement:
    """An image from base64, plain or URL-safe, whole, and of the size asked for.

    A PNG is whole when every chunk to the last has the checksum that its writer gave it: a cut, a wrong bit or bytes of
    something else are found at a tenth of what decoding its pixels costs. Other formats have no checksums: every pixel is
    decoded. size: such as 1024x1024; anything else (auto) is not compared.
    """
    if not isinstance(encoded, str) or not encoded:
        return Judgement("broken", "the answer holds no image")
    try:
        if "-" in encoded or "_" in encoded:
            encoded = encoded.replace("-", "+").replace("_", "/")
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return Judgement("broken", "the image is not whole base64")
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as image:
                width, height, kind = image.width, image.height, image.format
                if width * height > MOST_PIXELS:
                    return Judgement("broken", f"the image claims {width}x{height} pixels")
                if kind == "PNG":
                    image.verify()
                    if PNG_END not in data:
                        return Judgement("broken", "the image is cut at its end")
                else:
                    image.load()
    except Exception as error:  # Pillow raises many kinds for broken files
        return Judgement("broken", f"the image is not whole ({type(error).__name__})")
    if size and re.fullmatch(r"\d+x\d+", size) and size != f"{width}x{height}":
        return Judgement("broken", f"the image is {width}x{height}, not {size}")
    return Judgement("answer", "", data, f"image/{kind.lower()}")


def check_text(text: str | None, schema: dict | None, json_wanted: bool) -> Judgement:
    """Text, or JSON that fits a schema; JSON is kept in canonical form."""
    if not isinstance(text, str) or not text.strip():
        return Judgement("broken", "the answer holds no text")
    if not json_wanted and not schema:
        return Judgement("answer", "", text.encode())
    try:
        value = json.loads(text)
    except ValueError:
        return Judgement("broken", "the answer is not JSON")
    if schema:
        problem = next(_validator(canonical_json(schema)).iter_errors(value), None)
        if problem is not None:
            where = ".".join(str(part) for part in problem.absolute_path)
            return Judgement(
                "broken", f"the answer does not fit the schema ({where or 'top'}: {problem.message[:200]})"
            )
    return Judgement("answer", "", canonical_json(value).encode(), "application/json")


@lru_cache(maxsize=32)
def _validator(schema: str):
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))
