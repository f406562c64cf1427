"""One call with the official clients, openai and google-genai, their own retries switched off, and how long to wait.

Seedream's API has the form of OpenAI's for images, so the openai client speaks to it, too.

Retries are ours because the budget and the journal have to see every one of them.
"""

import random
from dataclasses import dataclass

from ..config.services import Services
from .judging import Judgement, judge
from .keys import key_for, redacted, server_key
from .requests import Request
from .wire import gemini_contents, image_bytes, media_type, openai_body, seedream_body


class Clients:
    """The asynchronous clients of all services, made when first needed. Their keys never show in a repr."""

    def __init__(self, settings: Services):
        self._settings = settings
        self._made: dict[str, object] = {}

    def openai(self, model: str):
        """The client for a model: OpenAI's service, or the model's own server."""
        arguments = openai_arguments(self._settings, model)
        if arguments["base_url"] not in self._made:
            from openai import AsyncOpenAI

            self._made[arguments["base_url"]] = AsyncOpenAI(**arguments)
        return self._made[arguments["base_url"]]

    def gemini(self):
        if "gemini" not in self._made:
            from google import genai

            self._made["gemini"] = genai.Client(**gemini_arguments(self._settings))
        return self._made["gemini"].aio

    def seedream(self):
        if "seedream" not in self._made:
            from openai import AsyncOpenAI

            self._made["seedream"] = AsyncOpenAI(**seedream_arguments(self._settings))
        return self._made["seedream"]

    async def close(self) -> None:
        for name, client in self._made.items():
            await (client.aio.aclose() if name == "gemini" else client.close())


def openai_arguments(settings: Services, model: str) -> dict:
    """Arguments of OpenAI and AsyncOpenAI for a model. Raises UserError for a missing key."""
    return {
        "api_key": server_key() if model in settings.servers else key_for("openai"),
        "base_url": settings.servers.get(model, settings.openai_base_url),
        **_patience(settings),
    }


def seedream_arguments(settings: Services) -> dict:
    """Arguments of AsyncOpenAI for Seedream. Raises UserError for a missing key."""
    return {"api_key": key_for("seedream"), "base_url": settings.seedream_base_url, **_patience(settings)}


def _patience(settings: Services) -> dict:
    import httpx2

    return {"max_retries": 0, "timeout": httpx2.Timeout(settings.read_timeout_s, connect=settings.connect_timeout_s)}


def gemini_arguments(settings: Services) -> dict:
    """Arguments of genai.Client; without retry_options it never retries."""
    import httpx2

    limits = httpx2.Limits(max_connections=settings.concurrency + 8, max_keepalive_connections=100)
    return {
        "api_key": key_for("gemini"),
        "vertexai": False,
        "http_options": {
            "base_url": settings.gemini_base_url,
            # In milliseconds, and the only one that the client heeds: it sets each request's timeouts by it.
            "timeout": int(settings.read_timeout_s * 1000),
            "async_client_args": {"limits": limits},
        },
    }


@dataclass(frozen=True)
class Reply:
    """What a service said, not judged yet."""

    status: int
    body: bytes
    retry_after: str | None = None

    def judged(self, request: Request) -> Judgement:
        return judge(request, self.status, self.body, self.retry_after)


async def send(request: Request, clients: Clients) -> Reply | Judgement:
    """Sends a request once: what the service said, or the judgement of a network that failed.

    Raises UserError for a missing key or a changed input image.
    """
    try:
        return await {"openai": _openai, "gemini": _gemini, "seedream": _seedream}[request.service](request, clients)
    except Exception as error:
        outcome = outcome_of(error)
        if outcome is None:
            raise
        return outcome


async def _openai(request: Request, clients: Clients) -> Reply:
    client = clients.openai(request.model)
    headers = {"Idempotency-Key": request.key}
    if request.kind == "chat":
        body = openai_body(request)
        more = {name: value for name, value in body.items() if name not in ("model", "messages")}
        answer = await client.chat.completions.with_raw_response.create(
            model=request.model, messages=body["messages"], extra_body=more, extra_headers=headers
        )
    else:
        more = {name: value for name, value in request.body.items() if name != "prompt"}
        asked = {"model": request.model, "prompt": request.body["prompt"], "extra_body": more, "extra_headers": headers}
        if request.kind == "image_edit":
            images = [image_bytes(image) for image in request.images]
            asked["image"] = [
                (f"image_{index}.{media_type(data).split('/')[1]}", data, media_type(data))
                for index, data in enumerate(images)
            ]
            answer = await client.images.with_raw_response.edit(**asked)
        else:
            answer = await client.images.with_raw_response.generate(**asked)
    return Reply(answer.status_code, answer.content)


async def _gemini(request: Request, clients: Clients) -> Reply:
    config = dict(request.body.get("config") or {})
    answer = await clients.gemini().models.generate_content(
        model=request.model,
        contents=gemini_contents(request),
        config={
            **config,
            "should_return_http_response": True,
            "automatic_function_calling": {"disable": True},
            "http_options": {"headers": {"Idempotency-Key": request.key}},
        },
    )
    return Reply(200, (answer.sdk_http_response.body or "").encode())


async def _seedream(request: Request, clients: Clients) -> Reply:
    answer = await clients.seedream().images.with_raw_response.generate(
        model=request.model,
        prompt=request.body["prompt"],
        extra_body=seedream_body(request),
        extra_headers={"Idempotency-Key": request.key},
    )
    return Reply(answer.status_code, answer.content)


def outcome_of(error: Exception) -> Reply | Judgement | None:
    """What a client's exception stands for; None when it is neither a service's nor the network's.

    A connection that was never made cannot have been billed; one that was lost, or a timeout, may have been.
    """
    for cause in _causes(error):
        response = getattr(cause, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int):
            headers = getattr(response, "headers", {})
            return Reply(status, _content(response, cause), headers.get("retry-after"))
    import httpx2

    for cause in _causes(error):
        if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
            return Judgement("passing", f"no connection{_server('to', cause)} ({_line(cause)})")
        if isinstance(cause, httpx2.TimeoutException):
            return Judgement("passing", f"no answer{_server('from', cause)} in time", uncertain=True)
        if isinstance(cause, httpx2.TransportError):
            return Judgement(
                "passing", f"the connection{_server('to', cause)} was lost ({_line(cause)})", uncertain=True
            )
    return None


def _server(word: str, error) -> str:
    """Host and port that a request went to, behind a word; never the rest of its address, which may hold a key."""
    try:
        url = error.request.url
    except RuntimeError:  # the error belongs to no request
        return ""
    return f" {word} {url.host}{f':{url.port}' if url.port else ''}"


def _causes(error: BaseException | None):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _content(response, error) -> bytes:
    try:
        return response.content
    except Exception:  # a response that was streamed and is closed
        return str(getattr(error, "message", "") or "").encode()


def _line(error: BaseException) -> str:
    return redacted(" ".join(str(error).split())[:200] or type(error).__name__)


def backoff_s(retry: int, settings: Services) -> float:
    """Seconds before the next try: full-jitter exponential backoff, on top of what a server's Retry-After asks for.

    retry: 0 for the first wait.
    """
    return random.uniform(0, min(settings.backoff_limit_s, settings.backoff_s * 2 ** min(retry, 30)))
