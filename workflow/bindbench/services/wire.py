"""Requests in the services' wire formats: where they go and what is sent.

A content part `{"image": i}` of a body becomes the service's own form of the i-th input image.
"""

import base64
from pathlib import Path

from ..errors import UserError
from ..files import sha256
from .requests import InputImage, Request

ENDPOINTS = {
    "image_generation": "/v1/images/generations",
    "image_edit": "/v1/images/edits",
    "chat": "/v1/chat/completions",
}


def image_bytes(image: InputImage) -> bytes:
    """Raises UserError when the file is not what it was when the request was made."""
    try:
        data = Path(image.path).read_bytes()
    except OSError as error:
        raise UserError(f"{image.path}: input image of a request: {error.strerror}") from None
    if sha256(data) != image.sha256:
        raise UserError(f"{image.path}: input image of a request changed meanwhile; run the same command again")
    return data


def media_type(data: bytes) -> str:
    """Raises UserError for bytes that are no PNG, JPEG or WebP."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise UserError("an input image is neither PNG, JPEG nor WebP")


def data_url(data: bytes) -> str:
    return f"data:{media_type(data)};base64,{base64.b64encode(data).decode()}"


def openai_body(request: Request) -> dict:
    """The JSON body of an OpenAI request, as a batch line holds it and as chat completions are sent."""
    body = {"model": request.model, **request.body}
    if request.kind == "chat":
        body["messages"] = _with_images(request, body["messages"], _chat_part)
    elif request.kind == "image_edit":
        body["images"] = [{"image_url": data_url(image_bytes(image))} for image in request.images]
    return body


def seedream_body(request: Request) -> dict:
    """The JSON body of a Seedream request without model and prompt: images as data URLs."""
    body = {name: value for name, value in request.body.items() if name != "prompt"}
    return {**body, "image": [data_url(image_bytes(image)) for image in request.images]} if request.images else body


def gemini_contents(request: Request) -> list:
    """The contents of a Gemini request."""
    contents = request.body["contents"]
    if isinstance(contents, str):
        contents = [{"role": "user", "parts": [{"text": contents}]}]
    return _with_images(request, contents, _gemini_part)


def _chat_part(data: bytes) -> dict:
    return {"type": "image_url", "image_url": {"url": data_url(data)}}


def _gemini_part(data: bytes) -> dict:
    return {"inline_data": {"mime_type": media_type(data), "data": data}}  # the client encodes it


def _with_images(request: Request, value, part):
    if isinstance(value, dict):
        if set(value) == {"image"}:
            return part(image_bytes(request.images[value["image"]]))
        return {name: _with_images(request, item, part) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_images(request, item, part) for item in value]
    return value
