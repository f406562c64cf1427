"""Paid services: where answers are kept, how they are asked for, what they cost and how much may be spent."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from .base import Section


class Price(Section):
    """What one model costs, in USD per million tokens, and how many tokens to expect where a request does not say.

    Real costs come from the token counts of the answers; the expectations serve estimates and the budget's reserve.
    """

    input_text: float = Field(0.0, ge=0, description="USD per million text tokens sent.")
    input_image: float = Field(0.0, ge=0, description="USD per million image tokens sent.")
    output_text: float = Field(0.0, ge=0, description="USD per million text tokens received, thoughts included.")
    output_image: float = Field(0.0, ge=0, description="USD per million image tokens received.")
    batch_factor: float = Field(0.5, ge=0, le=1, description="Part of the price that a batch pays.")
    image_tokens: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict,
        description="Tokens of one image received, by `quality size` such as `medium 1024x1024`; `default` for the rest.",
    )
    tokens_per_input_image: int = Field(1500, ge=0, description="Expected tokens of one image sent.")
    tokens_per_answer: int = Field(
        1000, ge=0, description="Expected text tokens received where a request sets no limit."
    )


# Read from the providers' price pages and third parties' copies of them in November 2026: check them before a large
# purchase. The budget never relies on them alone: real costs use the answers' own token counts.
DEFAULT_PRICES = {
    "gpt-image-2": Price(
        input_text=5,
        input_image=8,
        output_text=10,
        output_image=30,
        image_tokens={
            **{"low 1024x1024": 200, "medium 1024x1024": 1767, "high 1024x1024": 7033},
            **{"low 1024x1536": 167, "medium 1024x1536": 1367, "high 1024x1536": 5500},
            **{"low 1536x1024": 167, "medium 1536x1024": 1367, "high 1536x1024": 5500},
            "default": 7033,
        },
    ),
    "gpt-image-1.5": Price(
        input_text=5,
        input_image=8,
        output_text=10,
        output_image=32,
        image_tokens={
            **{"low 1024x1024": 272, "medium 1024x1024": 1056, "high 1024x1024": 4160},
            "default": 6240,
        },
    ),
    "gemini-3-pro-image": Price(
        input_text=2, input_image=2, output_text=12, output_image=120, image_tokens={"default": 1120, "4K": 2000}
    ),
    "gemini-3.1-flash-image": Price(
        input_text=0.5, input_image=0.5, output_text=3, output_image=60, image_tokens={"default": 1680}
    ),
    # Sold by the picture, whatever its size: one counts as one token, so this is $0.04 each.
    "seedream-4-5-251128": Price(output_image=40_000, tokens_per_input_image=0, image_tokens={"default": 1}),
    # Gemma through Gemini's API or a server of one's own: free of charge.
    "gemma-4-31b-it": Price(),
}


class Services(Section):
    """Calls that cost money. Keys come from the environment only: OPENAI_API_KEY, GEMINI_API_KEY (or GOOGLE_API_KEY), and
    SEEDREAM_API_KEY (or ARK_API_KEY).
    """

    store: str = Field(
        "~/.local/share/bindbench/store",
        min_length=1,
        description="Folder of everything that was bought; shared by branches, clones and results folders. The "
        "environment variable BINDBENCH_STORE overrides it.",
    )
    mode: Literal["online", "batch"] = Field(
        "online", description="online: one call a request; batch: the providers' batch APIs, slower and half the price."
    )
    budget_usd: float = Field(
        10.0,
        ge=0,
        description="The most that the store may ever hold in purchases, all runs together; 0: nothing may be bought. "
        "What is in flight counts with its estimate.",
    )
    concurrency: int = Field(
        8, ge=1, le=1000, description="Requests in flight at once, all runs of one store together."
    )
    connect_timeout_s: float = Field(10.0, gt=0, description="Seconds to wait for a connection.")
    read_timeout_s: float = Field(
        300.0, gt=0, description="Seconds to wait for an answer to begin, or between its parts."
    )
    max_retries: int = Field(8, ge=0, description="Further tries after a passing error (408, 409, 429, 5xx, network).")
    backoff_s: float = Field(
        1.0, ge=0, description="First wait after a passing error is drawn from 0 to this; it doubles each time."
    )
    backoff_limit_s: float = Field(60.0, ge=0, description="Longest wait after a passing error without Retry-After.")
    max_attempts_payload: int = Field(
        3,
        ge=1,
        description="How often an answer is bought in all when its payload is broken; the same again for one that reads well but "
        "breaks the rules of an annotation, or repeats what a person rejected.",
    )
    batch_requests: int = Field(5000, ge=1, le=50000, description="Requests of one batch without images.")
    batch_images: int = Field(200, ge=1, le=50000, description="Requests of one batch that answers with images.")
    batch_poll_s: float = Field(60.0, gt=0, description="Seconds between questions for a batch's state.")
    openai_base_url: str = Field(
        "https://api.openai.com/v1",
        pattern=r"^https?://",
        description="Where the openai client sends to.",
    )
    servers: dict[str, Annotated[str, Field(pattern=r"^https?://")]] = Field(
        default_factory=dict,
        description="Servers of single models that speak OpenAI's protocol, such as vLLM: `gemma-4-31b-it: "
        "http://localhost:8000/v1`. They get BINDBENCH_SERVER_KEY, where it is set, and never OPENAI_API_KEY.",
    )
    gemini_base_url: str = Field(
        "https://generativelanguage.googleapis.com",
        pattern=r"^https?://",
        description="Where the google-genai client sends to.",
    )
    seedream_base_url: str = Field(
        "https://ark.ap-southeast.bytepluses.com/api/v3",
        pattern=r"^https?://",
        description="Where requests for Seedream go to; always one by one, it has no batches.",
    )
    prices: dict[str, Price] = Field(
        DEFAULT_PRICES,
        description="By model; a model without an entry is not asked. A given entry changes single keys.",
    )

    @field_validator("prices", mode="before")
    @classmethod
    def _over_the_defaults(cls, given):
        """A given entry changes single keys of the default one of its name; the other defaults stay."""
        if not isinstance(given, dict):
            return given
        entries = {name: entry.model_dump(exclude_unset=True) for name, entry in DEFAULT_PRICES.items()}
        for name, entry in given.items():
            entries[name] = {**entries.get(name, {}), **entry} if isinstance(entry, dict) else entry
        return entries
