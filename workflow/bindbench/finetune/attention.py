"""Attention between attributes and objects: the binding margin of every layer, and the attention loss (SABER, C.3).

The attention between two words is read from the later word to the earlier one, the only direction that a causal decoder
has. Encoders attend both ways; the same later-to-earlier convention is used for them, so that numbers compare. A margin is
an object's mean attention with its own attribute words minus that with the attribute words of the caption's other objects.
It is undefined for an object without attributes, and where no other object has any.

Attention matrices exist only with the eager implementation (`embedders.NAME.attention: eager`). They are read by hooks on
the attention modules: a measurement holds those of one layer at a time.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..config.embedders import Embedder
from ..embedders.loading import Model, batches_by_length, load
from ..errors import UserError
from ..files import progress
from .words import Bindings, CaptionWords, TokenList, locate_words


class WordPairs(NamedTuple):
    """The token pairs of all margins of a batch: everything that `object_margins` needs but the attention itself.

    Rows are the objects of the batch whose margin is defined; short rows are filled up with pairs of weight 0.
    """

    caption: Tensor  # (objects, pairs) int64: row of the batch
    later: Tensor  # (objects, pairs) int64: token of the later word
    earlier: Tensor  # (objects, pairs) int64: token of the earlier word
    weight: Tensor  # (objects, pairs) float32: positive for an object's own attributes
    n_captions: int
    undefined: int  # objects without a margin, which have no row

    def to(self, device: torch.device | str) -> "WordPairs":
        return self._replace(**{name: getattr(self, name).to(device) for name in self._fields[:4]})


def pair_attention(attention: np.ndarray | Tensor, later: TokenList, earlier: TokenList) -> float:
    """e(u, v) of C.3 at one layer: the sum over the earlier word's tokens, then the mean over the later word's and heads.

    attention: (heads, n, n), from row to column. later, earlier: token indices of the two words.
    """
    matrix = np.asarray(attention, dtype=np.float64)
    return float(matrix[:, list(later)][:, :, list(earlier)].sum(axis=-1).mean())


def word_pairs(words: Sequence[CaptionWords], attention_mask: Tensor | None = None) -> WordPairs:
    """The index tensors of a batch, made once for all layers.

    words: of each caption, token indices counted without padding. attention_mask: (captions, n), 1 where a token is not
    padding, which may stand on either side; without one no caption is padded. The tensors lie on the CPU.
    """
    rows, undefined = [], 0
    for number, caption in enumerate(words):
        places = None if attention_mask is None else attention_mask[number].nonzero().flatten().tolist()
        for thing in range(len(caption.objects)):
            pairs = _weighted_pairs(caption, thing)
            undefined += not pairs
            if pairs:
                rows.append([(number, *(places[t] if places else t for t in pair[:2]), pair[2]) for pair in pairs])
    longest = max(map(len, rows), default=0)
    filled = [row + [(row[0][0], 0, 0, 0.0)] * (longest - len(row)) for row in rows]
    table = torch.tensor(filled, dtype=torch.float64).reshape(len(rows), longest, 4)
    return WordPairs(*(table[..., column].long() for column in range(3)), table[..., 3].float(), len(words), undefined)


def _weighted_pairs(caption: CaptionWords, thing: int) -> list[tuple[int, int, float]]:
    """Later token, earlier token and weight of one object's margin; none when it is undefined."""
    own = caption.attributes[thing]
    others = [word for other, words in enumerate(caption.attributes) if other != thing for word in words]
    if not own or not others:
        return []
    pairs = []
    for attributes, sign in ((own, 1.0), (others, -1.0)):
        for attribute in attributes:
            earlier, later = sorted((caption.objects[thing], attribute))
            weight = sign / (len(attributes) * len(later))
            pairs += [(s, t, weight) for s in later for t in earlier]
    return pairs


def object_margins(attention: Tensor, pairs: WordPairs) -> Tensor:
    """The margin of every object of a batch at one layer, (objects,), differentiable.

    attention: (captions, heads, n, n), on the device of the pairs. Summed in float32, or in float64 if it is that.
    """
    values = attention[pairs.caption, :, pairs.later, pairs.earlier]  # (objects, pairs, heads)
    precision = torch.promote_types(values.dtype, torch.float32)
    return (values.to(precision).mean(dim=-1) * pairs.weight).sum(dim=-1)


def caption_margins(
    attentions: Sequence | np.ndarray | Tensor,
    objects: Sequence[TokenList],
    attributes: Sequence[Sequence[TokenList]],
) -> np.ndarray:
    """The margin of one caption at every layer, (layers,) float64: the mean over its objects; NaN if none has one.

    attentions: (heads, n, n) of each layer. objects: token indices of each object's word. attributes: of each object,
    those of its attribute words.
    """
    words = CaptionWords(tuple(map(tuple, objects)), tuple(tuple(map(tuple, words)) for words in attributes))
    pairs = word_pairs([words])
    pairs = pairs._replace(weight=pairs.weight.double())
    layers = (torch.as_tensor(attention).double() for attention in attentions)
    return np.array([mean_by_caption(object_margins(layer[None], pairs), pairs)[0] for layer in layers])


def mean_by_caption(margins: Tensor, pairs: WordPairs) -> np.ndarray:
    """The mean over the objects of each caption, (captions,) float64; NaN for a caption of which no object has a margin."""
    caption = pairs.caption[:, 0].cpu().numpy() if len(margins) else np.zeros(0, np.int64)
    totals = np.bincount(caption, margins.detach().double().cpu().numpy(), minlength=pairs.n_captions)
    counts = np.bincount(caption, minlength=pairs.n_captions)
    return np.divide(totals, counts, out=np.full(pairs.n_captions, np.nan), where=counts > 0)


def measure_margins(
    entry: Embedder,
    name: str,
    captions: Sequence[tuple[str, Bindings]],
    batch_size: int,
    device: str | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """The margin of each caption at each layer of an embedder (C.3), (captions, layers) float32.

    entry, name, device, threads: as of `embedders.loading.load`; the embedder is loaded with eager attention, its adapter
    included. captions: text and bindings. NaN in the rows of captions whose margin is undefined.
    Raises UserError as `load`, `locate_words` and `attention_modules` do.
    """
    if not entry.has_text_attention:
        raise UserError(f"embedders.{name}: has no attention between words that could be read; leave it out")
    model = load(entry.model_copy(update={"attention": "eager"}), device, name, threads)
    modules = attention_modules(model.network, model.tokens(["a cube"]), name)
    words = locate_words(model, captions)
    result = np.full((len(captions), len(modules)), np.nan, np.float32)
    batches = batches_by_length([len(text) for text, _ in captions], batch_size)
    for batch in progress(batches, f"attention of {name}", unit="batch"):
        result[batch] = margins_of_batch(model, modules, [captions[i][0] for i in batch], [words[i] for i in batch])
    return result


def margins_of_batch(
    model: Model, modules: Sequence[nn.Module], texts: list[str], words: Sequence[CaptionWords]
) -> np.ndarray:
    """(texts, layers) float64, from one forward pass that never holds the attention of two layers."""
    from sentence_transformers.util import batch_to_device

    features = model.tokens(texts)
    pairs = word_pairs(words, features.get("attention_mask")).to(model.network.device)
    layers: list[np.ndarray] = []

    def measure(module, inputs, output):
        layers.append(mean_by_caption(object_margins(output[1], pairs), pairs))
        return (output[0], None, *output[2:])  # nothing above needs the weights, so they end here

    with _hooked(dict.fromkeys(modules, measure)), torch.inference_mode():
        model.network(batch_to_device(features, model.network.device))
    return np.stack(layers, axis=1)


def attention_modules(network: nn.Module, features: dict, name: str) -> list[nn.Module]:
    """The modules that return attention between the tokens of a text, in the order of the layers.

    network: a SentenceTransformer. features: what its processor makes of one text, which is read once to find them.
    name: of the embedder, for messages. Raises UserError when there are none: the implementation is not eager.
    """
    from sentence_transformers.util import batch_to_device

    n_tokens = features["input_ids"].shape[-1]
    found: list[nn.Module] = []

    def note(module, inputs, output):
        weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        is_attention = torch.is_tensor(weights) and weights.ndim == 4 and weights.shape[2:] == (n_tokens, n_tokens)
        # Of nested modules that hand the same weights up (BertAttention) only the innermost counts.
        if is_attention and not any(inner in found for inner in list(module.modules())[1:]):
            found.append(module)

    with _hooked(dict.fromkeys(network.modules(), note)), torch.no_grad():
        network(batch_to_device(dict(features), network.device))
    if not found or len(set(found)) < len(found):
        raise UserError(
            f"embedders.{name}.attention: this model gives no attention of its own for each layer;"
            " set it to eager, or leave the model out"
        )
    return found


@contextmanager
def recorded_attentions(modules: Sequence[nn.Module], layers: Sequence[int]) -> Iterator[dict[int, Tensor]]:
    """Keeps the attention of the chosen layers, by number from 1, of the last forward pass inside the block.

    modules: of `attention_modules`. (captions, heads, n, n) each, differentiable, under gradient checkpointing too (not
    its reentrant kind). Leave the block before the backward pass, which would record what it computes again.
    Raises UserError for a layer that the model does not have.
    """
    kept: dict[int, Tensor] = {}

    def keeping(number: int):
        def keep(module, inputs, output):
            kept[number] = output[1]

        return keep

    for number in layers:
        if not 1 <= number <= len(modules):
            raise UserError(
                f"attention loss: layer {number} is not among the model's {len(modules)}; correct the range"
            )
    with _hooked({modules[number - 1]: keeping(number) for number in layers}):
        yield kept


def attention_loss(attentions: Mapping[int, Tensor], pairs: WordPairs, margin: float, layers: Sequence[int]) -> Tensor:
    """The attention loss: the mean over layers and objects of max(0, margin - the object's margin). A scalar.

    attentions: (captions, heads, n, n) by layer, numbered from 1. pairs: of `word_pairs`, on their device.
    The paper supervises the layers in which the base model's margin collapses, 18 to 26 of 36, but its text does not keep the
    form nor the weight of the loss (C.3): the hinge, its margin and its weight beside the triplet loss are ours to choose.
    Zero, with a gradient of zero, for a batch without any margin.
    """
    short = torch.stack([torch.relu(margin - object_margins(attentions[layer], pairs)) for layer in layers])
    return short.sum() / max(short.numel(), 1)


@contextmanager
def _hooked(hooks: Mapping[nn.Module, object]) -> Iterator[None]:
    handles = [module.register_forward_hook(hook) for module, hook in hooks.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
