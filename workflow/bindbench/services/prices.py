"""What requests cost: expected before they are sent, real by the token counts of their answers."""

import json

from ..config.services import Price, Services
from ..errors import UserError
from .requests import Request

TOKEN_KINDS = ("input_text", "input_image", "output_text", "output_image")
CHARACTERS_PER_TOKEN = 4  # of English text; a rule of thumb for estimates


def price_of(request: Request, settings: Services) -> Price:
    """Raises UserError for a model without a price: nothing is bought at an unknown price."""
    price = settings.prices.get(request.model)
    if price is None:
        raise UserError(
            f"services.prices: no price for {request.model}; add an entry (all zero for a server of your own)"
        )
    return price


def expected_tokens(request: Request, price: Price) -> dict[str, int]:
    """Tokens that a request is expected to need, an upper guess where its body sets limits."""
    body = request.body
    tokens = dict.fromkeys(TOKEN_KINDS, 0)
    tokens["input_text"] = len(json.dumps(body, ensure_ascii=False)) // CHARACTERS_PER_TOKEN + 1
    tokens["input_image"] = len(request.images) * price.tokens_per_input_image
    if wants_image(request):
        tokens["output_image"] = _image_tokens(request, price)
    else:
        limits = (body.get("max_completion_tokens"), body.get("max_tokens"), _config(body).get("max_output_tokens"))
        tokens["output_text"] = next((int(limit) for limit in limits if limit), price.tokens_per_answer)
    return tokens


def wants_image(request: Request) -> bool:
    """Whether the answer is an image."""
    if request.kind == "gemini_content":
        return "IMAGE" in (_config(request.body).get("response_modalities") or ())
    return request.kind in ("image_generation", "image_edit", "seedream_image")


def _config(body: dict) -> dict:
    return body.get("config") or {}


def _image_tokens(request: Request, price: Price) -> int:
    body, table = request.body, price.image_tokens
    size = body.get("size") or (_config(body).get("image_config") or {}).get("image_size") or ""
    for name in (f"{body.get('quality', '')} {size}".strip(), "default"):
        if name in table:
            return table[name]
    return max(table.values(), default=0)


def cost(tokens: dict[str, int], price: Price, batch: bool = False) -> float:
    """USD."""
    dollars = sum(tokens.get(kind, 0) * getattr(price, kind) for kind in TOKEN_KINDS) / 1e6
    return round(dollars * (price.batch_factor if batch else 1), 8)


def expected_cost(request: Request, settings: Services, batch: bool = False) -> float:
    price = price_of(request, settings)
    return cost(expected_tokens(request, price), price, batch)


def tokens_used(service: str, usage: dict | None) -> dict[str, int]:
    """Token counts in one spelling, from the usage of an answer of any service; empty when there is none."""
    if not isinstance(usage, dict):
        return {}
    if service == "gemini":
        sent = _by_modality(usage.get("promptTokensDetails"), usage.get("promptTokenCount"))
        received = _by_modality(usage.get("candidatesTokensDetails"), usage.get("candidatesTokenCount"))
        received["text"] += _count(usage.get("thoughtsTokenCount"))
    elif service == "seedream":  # which sells pictures, however large: one counts as a token
        sent, received = {"text": 0, "image": 0}, {"text": 0, "image": _count(usage.get("generated_images"))}
    elif "prompt_tokens" in usage:
        sent = {"text": _count(usage.get("prompt_tokens")), "image": 0}
        received = {"text": _count(usage.get("completion_tokens")), "image": 0}
    else:
        sent = _by_field(usage.get("input_tokens_details"), usage.get("input_tokens"), otherwise="text")
        received = _by_field(usage.get("output_tokens_details"), usage.get("output_tokens"), otherwise="image")
    return {
        "input_text": sent["text"],
        "input_image": sent["image"],
        "output_text": received["text"],
        "output_image": received["image"],
    }


def _count(value) -> int:
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def _by_field(details, total, otherwise: str) -> dict[str, int]:
    """OpenAI: {"text_tokens", "image_tokens"}; without details all tokens are of one kind."""
    if isinstance(details, dict):
        return {"text": _count(details.get("text_tokens")), "image": _count(details.get("image_tokens"))}
    return {"text": 0, "image": 0, otherwise: _count(total)}


def _by_modality(details, total) -> dict[str, int]:
    """Gemini: [{"modality": "IMAGE", "tokenCount": 1120}, ...]; what the list leaves of the total is text."""
    counts = {"text": 0, "image": 0}
    for item in details if isinstance(details, list) else ():
        counts["image" if item.get("modality") == "IMAGE" else "text"] += _count(item.get("tokenCount"))
    counts["text"] += max(0, _count(total) - sum(counts.values()))
    return counts
