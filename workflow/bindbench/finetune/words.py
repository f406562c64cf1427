"""Where a caption's object and attribute words are among the tokens that a model reads (SABER, C.3).

Words are found in the text by its characters, and mapped to sub-tokens by the tokenizer's offsets. What stands before and
after the text (a chat template, the instruction, special tokens) is found in what the tokenizer really made of it, not
assumed: positions are right for any template, or there is an error.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..embedders.loading import Model
from ..errors import UserError

Span = tuple[int, int]  # characters of a text: start, stop
Bindings = Sequence[tuple[Sequence[str], str]]  # the attribute words of an object, and the object's word
TokenList = tuple[int, ...]

TEXTS_AT_ONCE = 256
PROBE = "⁂"  # a text that no template holds, and byte-level tokenizers can spell


class CaptionWords(NamedTuple):
    """Token indices of the words of one caption, counted without padding."""

    objects: tuple[TokenList, ...]
    attributes: tuple[tuple[TokenList, ...], ...]  # of each object


def locate_words(model: Model, captions: Sequence[tuple[str, Bindings]]) -> list[CaptionWords]:
    """The tokens of every object and attribute word, as the model's own tokenizer, template and instruction place them.

    Raises UserError as `word_spans`, `word_tokens` and `token_offsets` do.
    """
    offsets = token_offsets(model, [text for text, _ in captions])
    return [caption_words(text, bindings, of) for (text, bindings), of in zip(captions, offsets, strict=True)]


def caption_words(text: str, bindings: Bindings, offsets: np.ndarray) -> CaptionWords:
    """The tokens of one caption's words. offsets: as of `word_tokens`. Raises UserError as `locate_words` does."""
    phrases = [phrase for attributes, thing in bindings for phrase in (thing, *attributes)]
    tokens = iter(word_tokens(offsets, word_spans(text, phrases), text))
    objects, attributes = [], []
    for words, _ in bindings:
        objects.append(next(tokens))
        attributes.append(tuple(next(tokens) for _ in words))
    return CaptionWords(tuple(objects), tuple(attributes))


def word_spans(text: str, words: Sequence[str]) -> list[Span]:
    """Where each word stands in the text, whatever its case: whole words only, and a hyphen is part of a word.

    A word may be a phrase ("hot air balloon", "white and orange striped"). Longer phrases are placed first, so that
    "balloon" is not sought inside "hot air balloon". Raises UserError for a word that stands there never or twice.
    """
    spans: dict[int, Span] = {}
    for index in sorted(range(len(words)), key=lambda index: -len(words[index])):
        pattern = re.compile(rf"(?<![\w-]){re.escape(words[index])}(?![\w-])", re.IGNORECASE)
        found = [m.span() for m in pattern.finditer(text) if not any(_overlap(m.span(), s) for s in spans.values())]
        if len(found) != 1:
            raise UserError(
                f"attention: the word {words[index]!r} stands {len(found)} times in {text!r};"
                " its attention is defined where it stands once: correct the caption or its bindings"
            )
        spans[index] = found[0]
    return [spans[index] for index in range(len(words))]


def word_tokens(offsets: np.ndarray, spans: Sequence[Span], text: str) -> list[TokenList]:
    """The sub-tokens of each word: all that hold a character of it, so also those that begin with the space before it.

    offsets: (n_tokens, 2) integers, start and stop characters of each token in the text; empty or outside the text for
    tokens of the template. text: for the messages.
    Raises UserError for a word without tokens (the text was cut), and for two words that share one.
    """
    starts, stops = np.asarray(offsets, dtype=np.int64).reshape(-1, 2).T
    owner: dict[int, Span] = {}
    found = []
    for start, stop in spans:
        tokens = np.flatnonzero((starts < stop) & (stops > start) & (stops > starts)).tolist()
        if not tokens:
            raise UserError(f"attention: no token of {text!r} holds the word {text[start:stop]!r}; raise max_tokens")
        for token in tokens:
            if token in owner:
                other = text[slice(*owner[token])]
                raise UserError(
                    f"attention: the words {other!r} and {text[start:stop]!r} share a token in {text!r};"
                    " their attention cannot be told apart: leave the caption out"
                )
            owner[token] = (start, stop)
        found.append(tuple(tokens))
    return found


def token_offsets(model: Model, texts: Sequence[str]) -> list[np.ndarray]:
    """Start and stop characters, counted from the start of the text, of every token that the model reads.

    (n_tokens, 2) int64 for each text, without padding; tokens of the template lie before 0 or behind the text's end, or are
    empty.
    Raises UserError for a tokenizer that keeps no offsets, and for one whose tokens are not those of the text.
    """
    tokenizer = getattr(model.network, "tokenizer", None)
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            f"embedders.{model.name}: its tokenizer keeps no offsets, so words have no tokens; leave it out"
        )
    before = _rendered(tokenizer, next(_token_ids(model, [PROBE]))).partition(PROBE)[0] if model.is_chat_model else ""
    found = []
    for text, ids in zip(texts, _token_ids(model, texts), strict=True):
        if model.is_chat_model:
            # Byte-level tokens spell the rendered text again, to the last character.
            prefix, rendered = before, _rendered(tokenizer, ids)
            encoding = tokenizer(rendered, add_special_tokens=False, return_offsets_mapping=True)
        else:
            prefix = model.prompt or ""
            rendered = prefix + text
            # SigLIP reads padding as tokens of the text; it is filled up here on the side that the tokenizer fills.
            encoding = tokenizer(rendered, return_offsets_mapping=True, padding="max_length", max_length=len(ids))
        if not rendered.startswith(prefix + text) or encoding["input_ids"] != ids:
            raise UserError(
                f"embedders.{model.name}: its tokens do not spell {text!r}, so words have no tokens;"
                " raise max_tokens if it cuts texts, else leave the model out"
            )
        found.append(np.array(encoding["offset_mapping"], dtype=np.int64).reshape(-1, 2) - len(prefix))
    return found


def _rendered(tokenizer, ids: list[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _token_ids(model: Model, texts: Sequence[str]) -> Iterator[list[int]]:
    """The token ids of each text, without padding, from the same call that makes the model's input."""
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        features = model.tokens(list(texts[start : start + TEXTS_AT_ONCE]))
        masks = features.get("attention_mask")
        for row, ids in enumerate(features["input_ids"]):
            yield (ids if masks is None else ids[masks[row].bool()]).tolist()


def _overlap(first: Span, second: Span) -> bool:
    return first[0] < second[1] and second[0] < first[1]
