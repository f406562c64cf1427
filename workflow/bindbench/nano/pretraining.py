"""Pretrains the nano embedder from random weights, in two stages on two CPU cores.

    python -m bindbench pretrain-nano --help

    words   the vision tower and the word embeddings alone: every visual token must point, by cosine, to the words of the
            object and of the attribute that it shows. Without it the objects stay at chance: attributes alone satisfy the rest.
    joint   everything. Contrast (InfoNCE) of image and caption, of two views of a scene, of two texts; in most steps against
            captions with one concept replaced. A batch is made of whole blocks, whose scenes share their words. Grounding:
            half-way through the decoder the state of an object's word in a caption must be closest to the visual tokens of
            that object, among all objects of the batch. Generative losses: the decoder writes the caption behind the image,
            goes on with sentences of the triplets, and a small head, thrown away afterwards, retells a scene or a sentence
            from nothing but the embedding of its image or of its text.

No caption with swapped attributes is ever contrasted (two scenes of a batch that hold the same words are no negatives of
one another), and no held-out combination occurs: what the embedding knows of binding comes from naming and grounding single
objects. With `siblings`, captions with swapped attributes are contrasted too (Appendix E's multimodal supervision): a model
of its own, to compare.

Matrices are trained by Muon, the rest by AdamW; weights are float32, the passes bfloat16. A batch follows from the seed and
the number of its step, so a resumed run goes on as the unbroken one.
"""

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..captions import caption
from ..checkpoints import restore, write_checkpoint
from ..config.nano import Nano
from ..errors import UserError
from ..files import csv_text, progress, write_text
from ..tables import NANO_SCENES, TRIPLETS, read_table
from ..vocabulary import Vocabulary
from .combinations import is_held_out
from .forward import BLOCKED, TOKENS, Forward, padded_ids
from .model import TURN_END
from .scenes import BLOCK, IMAGE_PX, VIEWS
from .texts import BARE, Pairs, bare_caption, shuffled, with_one_replaced

REPLACED = 0.75  # share of the joint steps whose second captions have one concept replaced
ATTRIBUTE_WEIGHT = 0.5  # of the attribute's words in the first stage: they are learnt long before the objects
SENTENCES = 0.5  # pairs of query and sentence from the triplets, as a share of the scenes of a step
RETOLD_FROM = 8  # tokens that the head makes of an embedding
RETELLING_LAYERS = 2
IGNORED = -100
NOT_TRAINED = {"log_every", "validate_every", "validation_scenes", "checkpoint_minutes"}  # they change no weight
HEADER = [
    *("stage", "step", "seconds", "loss", "words", "image_text", "image_image", "text_text", "sentences"),
    *("grounding", "captioning", "retelling", "language"),
    *("object_tokens", "attribute_tokens", "grounded", "single_object", "binding"),
]


@dataclass
class Data:
    """Scenes in memory maps, by shard, and what is on them. sentences: (query, positive) of the training triplets."""

    vocabulary: Vocabulary
    shards: list[np.ndarray]  # (scenes, 2, 160, 160, 3) uint8 each
    pairs: list[Pairs]
    tokens: list[list[list[int]]]  # of each scene and view the binding of each visual token, or -1
    sentences: list[tuple[str, str]]

    def __len__(self) -> int:
        return len(self.pairs)

    def pixels(self, index: int, view: int) -> np.ndarray:
        size = len(self.shards[0])
        return self.shards[index // size][index % size, view]

    def labels(self, index: int, view: int) -> tuple[np.ndarray, np.ndarray]:
        """(25,) numbers of the object and of the attribute that each visual token shows, IGNORED for none."""
        attributes, things = zip(*self.pairs[index], strict=True)
        shown = np.array(self.tokens[index][view])
        names = (list(self.vocabulary.objects), things), (list(self.vocabulary.attributes), attributes)
        found = (np.array([known.index(name) for name in present] + [IGNORED])[shown] for known, present in names)
        return tuple(found)


def read_data(vocabulary: Vocabulary, pixels: list[Path], tables: list[Path], triplets: Path | None) -> Data:
    """pixels, tables: of the shards, in order. Raises UserError for files that are missing, broken or not of one another."""
    parts = [read_table(NANO_SCENES, table).to_pylist() for table in tables]
    rows = [row for part in parts for row in part]
    sentences = []
    if triplets:
        columns = read_table(TRIPLETS, triplets).select(["query", "positive"]).to_pylist()
        sentences = [(row["query"], row["positive"]) for row in columns]
    return Data(
        vocabulary,
        [_images_of(path, len(part)) for path, part in zip(pixels, parts, strict=True)],
        [list(zip(row["attributes"], row["objects"], strict=True)) for row in rows],
        [row["tokens"] for row in rows],
        sentences,
    )


def _images_of(path: Path, scenes: int) -> np.ndarray:
    """(scenes, 2, 160, 160, 3) uint8, mapped."""
    try:
        images = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        images = None
    if images is None or images.shape != (scenes, VIEWS, IMAGE_PX, IMAGE_PX, 3) or images.dtype != np.uint8:
        raise UserError(f"{path}: not the images of the {scenes} scenes beside it; delete it and run again")
    return images


class Retelling(nn.Module):
    """Writes a caption from an embedding: a few layers of the decoder's kind behind tokens made of the vector."""

    def __init__(self, text: nn.Module):
        super().__init__()
        width = text.config.hidden_size
        self.unfold = nn.Linear(width, RETOLD_FROM * width)
        self.layers = nn.ModuleList(deepcopy(text.layers[number]) for number in range(RETELLING_LAYERS))

    def forward(self, passes: Forward, vectors: torch.Tensor, captions: torch.Tensor) -> torch.Tensor:
        """vectors: (n, width). captions: (n, length) token ids. Returns the states that foretell each of them."""
        width = vectors.shape[-1]
        scaled = (vectors * width**0.5).to(self.unfold.weight.dtype)
        told = self.unfold(scaled).view(len(vectors), RETOLD_FROM, width)
        states = torch.cat([told, passes.model.language_model.embed_tokens(captions)], 1)
        positions = torch.arange(states.shape[1]).expand(3, -1)
        return passes.decode(self.layers, states, positions)[:, RETOLD_FROM - 1 : -1]


class Trainee(nn.Module):
    """The model and what is trained beside it and thrown away."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.retelling = Retelling(model.language_model)
        self.log_scale = nn.Parameter(torch.tensor(float(np.log(1 / 0.07))))  # of the contrast
        self.log_sharpness = nn.Parameter(torch.tensor(2.6))  # of the words
        self.log_focus = nn.Parameter(torch.tensor(2.6))  # of the grounding


class Training:
    """Float32 weights with their optimizers, and the bfloat16 copy that passes forward and back."""

    def __init__(self, trainee: Trainee, tokenizer, rate: float, first_stage: bool, compiled: bool):
        # Only what the stage trains is handed to the optimizers; all of it is kept in checkpoints.
        self.weights = {name: weight.detach().clone() for name, weight in trainee.named_parameters()}
        self.trainee = deepcopy(trainee).to(torch.bfloat16)
        self.passes = Forward(self.trainee.model, tokenizer, compiled)
        self.trained = {
            name: weight.requires_grad_() for name, weight in self.weights.items() if not first_stage or _first(name)
        }
        matrices = [weight for name, weight in self.trained.items() if _is_matrix(name, weight)]
        others = [weight for name, weight in self.trained.items() if not _is_matrix(name, weight)]
        self.rate = rate
        self.muon = torch.optim.Muon(matrices, lr=rate, weight_decay=0.02, adjust_lr_fn="match_rms_adamw")
        self.adam = torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
        self.others = others
        self.copies = dict(self.trainee.named_parameters())
        self.copy()

    @torch.no_grad()
    def copy(self) -> None:
        for name, weight in self.weights.items():
            self.copies[name].copy_(weight)

    def step(self, share: float) -> None:
        """share: of the full learning rates."""
        for name, weight in self.trained.items():
            gradient = self.copies[name].grad
            weight.grad = None if gradient is None else gradient.float()
        self.trainee.zero_grad()
        nn.utils.clip_grad_norm_(self.others, 1.0)
        for optimizer, rate in ((self.muon, self.rate), (self.adam, 0.6 * self.rate)):
            for group in optimizer.param_groups:
                group["lr"] = rate * share
            optimizer.step()
            optimizer.zero_grad()
        self.copy()

    @torch.no_grad()
    def write_back(self, trainee: Trainee) -> None:
        for name, weight in trainee.named_parameters():
            weight.copy_(self.weights[name])


def _first(name: str) -> bool:
    """What the first stage trains."""
    in_tower = name.startswith("model.visual.") and "deepstack" not in name
    return in_tower or "embed_tokens" in name or name == "log_sharpness"


def _is_matrix(name: str, weight: torch.Tensor) -> bool:
    return weight.ndim == 2 and "embed" not in name


def rate_share(step: int, steps: int, warmup: int) -> float:
    """Share of the full rate at a step, from 0: it rises, stays, and falls in a straight line from half-way on."""
    rising = min(1.0, (step + 1) / warmup)
    falling = min(1.0, 2 * (1 - step / steps))
    return rising * max(0.02, falling)


def pointing_loss(
    trainee: Trainee, passes: Forward, vocabulary: Vocabulary, seen: torch.Tensor, labels: tuple
) -> tuple[torch.Tensor, torch.Tensor, float, float]:
    """Cross-entropy of the object's and of the attribute's word by cosine, over the visual tokens that show one.

    seen: (n, 25, width). labels: two (n, 25) arrays. Returns both losses and both accuracies.
    """
    results = []
    shown = torch.from_numpy(np.stack(labels[0])).flatten() != IGNORED
    states = functional.normalize(seen.reshape(-1, seen.shape[-1])[shown].float(), dim=-1)
    for words, targets in ((vocabulary.objects, labels[0]), (vocabulary.attributes, labels[1])):
        vectors = functional.normalize(passes.word_vectors(list(words)).float(), dim=-1)
        scores = trainee.log_sharpness.float().exp() * states @ vectors.T
        target = torch.from_numpy(np.stack(targets)).flatten()[shown]
        results.append((functional.cross_entropy(scores, target), (scores.argmax(1) == target).float().mean().item()))
    return results[0][0], results[1][0], results[0][1], results[1][1]


def words_loss(training: Training, data: Data, settings: Nano, generator: np.random.Generator):
    """Of one step of the first stage, with what is logged about it."""
    chosen = [(int(generator.integers(len(data))), int(generator.integers(2))) for _ in range(settings.words_batch)]
    pixels = torch.from_numpy(np.stack([data.pixels(*place) for place in chosen]))
    labels = tuple(zip(*(data.labels(*place) for place in chosen), strict=True))
    seen, _ = training.passes.see(pixels)
    objects, attributes, right_objects, right_attributes = pointing_loss(
        training.trainee, training.passes, data.vocabulary, seen, labels
    )
    loss = objects + ATTRIBUTE_WEIGHT * attributes
    logged = {"words": loss.item(), "object_tokens": right_objects, "attribute_tokens": right_attributes}
    return loss, logged


def contrast(
    scale: torch.Tensor,
    left: torch.Tensor,
    right: torch.Tensor,
    others: torch.Tensor | None = None,
    alike: torch.Tensor | None = None,
) -> torch.Tensor:
    """InfoNCE in both directions; row i belongs to row i. others: more rows that no left row belongs to.

    alike: (n, n) bool, pairs of rows that are no negatives of one another.
    """
    n = len(left)
    scores = scale * left @ right.T
    if alike is not None:
        scores = scores.masked_fill(alike & ~torch.eye(n, dtype=torch.bool), BLOCKED)
    back, target = scores.T, torch.arange(n)
    if others is not None:
        scores = torch.cat([scores, scale * left @ others.T], 1)
    return (functional.cross_entropy(scores, target) + functional.cross_entropy(back, target)) / 2


def equal_pairs(keys: list) -> torch.Tensor:
    """(n, n) bool: which of the keys are equal."""
    number = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    numbers = torch.tensor([number[key] for key in keys])
    return numbers[:, None] == numbers[None]


def words_of(pairs: Pairs) -> tuple:
    """What a scene holds whatever is bound to what: equal for scenes that only swap."""
    attributes, things = zip(*pairs, strict=True)
    return frozenset(attributes), frozenset(things)


def phrase_ends(passes: Forward, pairs: Pairs) -> list[int]:
    """Of each object of a caption the place of its last token in the text as it goes into the decoder."""
    ends, length = [], len(passes.before)
    for number, pair in enumerate(pairs):
        length += len(passes.ids((" and " if number else "") + caption([pair])))
        ends.append(length - 1)
    return ends


def grounding_loss(
    trainee: Trainee, seen: torch.Tensor, shown: torch.Tensor, read: torch.Tensor, pairs: Pairs
) -> tuple[torch.Tensor, float]:
    """InfoNCE between the objects of a batch as they are seen and as they are read; equal pairs are no negatives.

    seen: (images, 25, width). shown: (objects, images * 25) bool, the visual tokens of each object. read: (objects, width).
    Returns the loss and how often an object's word is closest to its own tokens. Objects without a token take no part.
    """
    present = shown.any(1)
    share = shown[present].float()
    looks = (share / share.sum(1, keepdim=True)).to(seen.dtype) @ seen.flatten(0, 1)
    looks = functional.normalize(looks.float(), dim=-1)
    words = functional.normalize(read[present].float(), dim=-1)
    alike = equal_pairs([pair for pair, there in zip(pairs, present.tolist(), strict=True) if there])
    loss = contrast(trainee.log_focus.float().exp().clamp(max=100), words, looks, alike=alike)
    scores = (words @ looks.T).masked_fill(alike & ~torch.eye(len(words), dtype=torch.bool), -2)
    return loss, (scores.argmax(1) == torch.arange(len(words))).float().mean().item()


def next_token_loss(passes: Forward, states: torch.Tensor, captions: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """Cross-entropy of the captions' tokens; states: (n, length, width) that foretell them, not normed."""
    kept = torch.arange(captions.shape[1])[None] < torch.tensor(lengths)[:, None]
    logits = passes.normed(states[kept]) @ passes.model.language_model.embed_tokens.weight.T
    return functional.cross_entropy(logits.float(), captions[kept])


def joint_loss(training: Training, data: Data, settings: Nano, generator: np.random.Generator):
    """Of one step of the second stage, with what is logged about it."""
    trainee, passes = training.trainee, training.passes
    chosen = sorted(_blocks(len(data), settings.joint_batch, generator), key=lambda index: len(data.pairs[index]))
    scenes = [data.pairs[index] for index in chosen]
    n, scale = len(chosen), trainee.log_scale.float().exp().clamp(max=100)

    pixels = torch.from_numpy(np.stack([data.pixels(index, view) for view in (0, 1) for index in chosen]))
    labels = tuple(zip(*(data.labels(index, view) for view in (0, 1) for index in chosen), strict=True))
    seen, deepstack = passes.see(pixels)
    objects, attributes, right_objects, right_attributes = pointing_loss(trainee, passes, data.vocabulary, seen, labels)

    replaced = generator.random() < REPLACED
    orders = [shuffled(pairs, generator) for pairs in scenes]
    second = [_second_caption(pairs, data.vocabulary, replaced, settings.siblings, generator) for pairs in scenes]
    sentences = [
        data.sentences[index]
        for index in generator.integers(len(data.sentences), size=round(n * SENTENCES) if data.sentences else 0)
    ]
    asked, answered = [query for query, _ in sentences], [sentence for _, sentence in sentences]
    texts = [*(caption(pairs) for pairs in orders), *second, *asked, *answered]
    ends = [phrase_ends(passes, pairs) for pairs in orders]
    vectors, read, language = read_texts(passes, passes.text_ids(texts), ends, 2 * n)
    told, other = vectors[:n], vectors[n : 2 * n]
    queries, answers = vectors[2 * n :].chunk(2)

    # The decoder writes a caption behind one of the views; the scenes are in order of size, so a half is padded little.
    captions = [passes.ids(caption(shuffled(pairs, generator)) + TURN_END) for pairs in scenes]
    half = n // 2
    middle, last = passes.image_states(seen[:n], deepstack[:n])
    images, written = [last[:, -1]], []
    at = len(passes.image_ids)
    for part in (slice(0, half), slice(half, n)):
        ids = padded_ids(captions[part])
        both = seen[n:][part], deepstack[n:][part]
        _, states = passes.image_states(*both, ids)
        images.append(states[:, at - 1])
        written.append(next_token_loss(passes, states[:, at - 1 : -1], ids, [len(row) for row in captions[part]]))
    captioning = sum(written) / 2
    images = passes.embedded(torch.cat(images))
    left, right = images[:n], images[n:]

    first, past = passes.image_at, passes.image_at + TOKENS
    pairs = [pair for order in orders for pair in order]
    shown = torch.from_numpy(_tokens_of(data, chosen, orders))
    grounding, grounded = grounding_loss(trainee, middle[:, first:past], shown, read, pairs)

    # The head retells the scene from the embeddings of an image and of a caption, and a sentence from its query's.
    retold = []
    for part in (slice(0, half), slice(half, n)):
        retold.append(retelling_loss(trainee, passes, (left[part], told[part]), captions[part]))
    if sentences:
        retold.append(retelling_loss(trainee, passes, (queries,), [passes.ids(text + TURN_END) for text in answered]))
    retelling = sum(retold) / len(retold)

    # Scenes of a block may hold the same words, bound otherwise: with siblings alone these are contrasted.
    alike = equal_pairs([frozenset(pairs) if settings.siblings else words_of(pairs) for pairs in scenes])
    image_image = contrast(scale, left, right, alike=alike)
    if replaced or settings.siblings:
        image_text = sum(contrast(scale, view, told, other, alike) for view in (left, right)) / 2
        text_text = torch.zeros(())
    else:
        views = [(view, text) for view in (left, right) for text in (told, other)]
        image_text = sum(contrast(scale, view, text, alike=alike) for view, text in views) / 4
        text_text = contrast(scale, told, other, alike=alike)
    between = contrast(scale, queries, answers) if sentences else torch.zeros(())
    pointing = objects + attributes
    loss = (
        image_text
        + 0.25 * (image_image + text_text + between)
        + settings.pointing_weight * pointing
        + settings.grounding_weight * grounding
        + settings.captioning_weight * captioning
        + settings.retelling_weight * retelling
        + settings.language_weight * language
    )
    logged = {
        "words": pointing,
        "image_text": image_text,
        "image_image": image_image,
        "text_text": text_text if not replaced else float("nan"),
        "sentences": between,
        "grounding": grounding,
        "captioning": captioning,
        "retelling": retelling,
        "language": language,
    }
    logged = {name: value.item() if torch.is_tensor(value) else value for name, value in logged.items()}
    return loss, {
        **logged,
        "object_tokens": right_objects,
        "attribute_tokens": right_attributes,
        "grounded": grounded,
    }


def _blocks(scenes: int, size: int, generator: np.random.Generator) -> list[int]:
    """Numbers of `size` scenes: whole blocks, and a part of one more."""
    order = generator.permutation(-(-scenes // BLOCK))
    chosen: list[int] = []
    for block in order:
        members = generator.permutation(np.arange(block * BLOCK, min(scenes, (block + 1) * BLOCK)))
        chosen += members[: size - len(chosen)].tolist()
        if len(chosen) == size:
            break
    return chosen


def _tokens_of(data: Data, chosen: list[int], orders: list[Pairs]) -> np.ndarray:
    """(objects, images * 25) bool: the visual tokens of the first views that show each object of each caption."""
    rows = []
    for number, (index, order) in enumerate(zip(chosen, orders, strict=True)):
        tokens = np.array(data.tokens[index][0])
        for pair in order:
            row = np.zeros((len(chosen), len(tokens)), bool)
            row[number] = tokens == data.pairs[index].index(pair)
            rows.append(row.ravel())
    return np.stack(rows)


def read_texts(
    passes: Forward, ids: list[list[int]], ends: list[list[int]], sentences_from: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Embeddings (texts, width), states half-way at the ends of the first texts (ends, width), and the mean next-token loss
    within the texts from number `sentences_from` on.
    """
    vectors, read, losses = {}, {}, []
    for part, rows, middle, states in passes.text_states(ids):
        last = torch.tensor([len(row) - 1 for row in rows])
        vectors |= dict(zip(part, passes.embedded(states[torch.arange(len(rows)), last]), strict=True))
        for place, number in enumerate(part):
            if number < len(ends):
                read[number] = middle[place, ends[number]]
        told = [place for place, number in enumerate(part) if number >= sentences_from]
        if told:
            first = len(passes.before)
            inner = [rows[place][first : -len(passes.after)] for place in told]
            captions = padded_ids(inner)[:, : states.shape[1] - first]
            foretelling = states[told, first - 1 : first - 1 + captions.shape[1]]
            tokens = sum(map(len, inner))
            losses.append((next_token_loss(passes, foretelling, captions, list(map(len, inner))), tokens))
    language = (
        sum(loss * tokens for loss, tokens in losses) / sum(tokens for _, tokens in losses)
        if losses
        else torch.zeros(())
    )
    in_order = torch.stack([vectors[number] for number in range(len(ids))])
    return in_order, torch.cat([read[number] for number in range(len(ends))]), language


def retelling_loss(trainee: Trainee, passes: Forward, vectors: tuple, captions: list[list[int]]) -> torch.Tensor:
    """Of token ids from each of the embeddings (n, width) that belong to them."""
    ids = padded_ids(captions).repeat(len(vectors), 1)
    states = trainee.retelling(passes, torch.cat(vectors), ids)
    return next_token_loss(passes, states, ids, len(vectors) * [len(row) for row in captions])


def _second_caption(pairs: Pairs, vocabulary: Vocabulary, replaced: bool, siblings: bool, generator) -> str:
    pairs = shuffled(pairs, generator)
    if siblings and len(pairs) > 1:
        swapped = _swapped(pairs, generator)
        if swapped:
            return caption(swapped)
    if replaced or siblings:
        return caption(with_one_replaced(pairs, vocabulary, generator))
    return bare_caption(pairs) if generator.random() < BARE else caption(pairs)


def _swapped(pairs: Pairs, generator: np.random.Generator) -> Pairs | None:
    """The same concepts bound otherwise, without a held-out combination; None where none was found."""
    attributes, things = zip(*pairs, strict=True)
    for _ in range(20):
        order = generator.permutation(len(pairs))
        swapped = [(attributes[index], thing) for index, thing in zip(order, things, strict=True)]
        if set(swapped) != set(pairs) and not any(is_held_out(*pair) for pair in swapped):
            return swapped
    return None


@torch.no_grad()
def validate(passes: Forward, held: Data, seed: int) -> dict[str, float]:
    """On scenes that are not trained on: one object named among all combinations of the vocabulary, and binding.

    single_object: share of the one-object scenes whose image is closest to their own phrase. binding: share of the scenes of
    two to four objects whose image is closer to their caption than to one with the attributes deranged (chance 0.5).
    """
    generator = np.random.default_rng([seed, 3])
    alone = [index for index, pairs in enumerate(held.pairs) if len(pairs) == 1]
    several = [index for index, pairs in enumerate(held.pairs) if 2 <= len(pairs) <= 4]
    every = [(attribute, thing) for attribute in held.vocabulary.attributes for thing in held.vocabulary.objects]
    phrases = _batched(passes.embed_texts, [caption([pair]) for pair in every])
    images = _images(passes, held, alone)
    best = (images @ phrases.T).argmax(1).tolist()
    single = np.mean([every[found] == held.pairs[index][0] for found, index in zip(best, alone, strict=True)])

    right = [caption(shuffled(held.pairs[index], generator)) for index in several]
    wrong = [caption(shuffled(_deranged(held.pairs[index]), generator)) for index in several]
    images = _images(passes, held, several)
    near = (images * _batched(passes.embed_texts, right)).sum(1)
    far = (images * _batched(passes.embed_texts, wrong)).sum(1)
    return {"single_object": float(single), "binding": float((near > far).float().mean())}


def _deranged(pairs: Pairs) -> Pairs:
    attributes, things = zip(*pairs, strict=True)
    return list(zip(attributes[1:] + attributes[:1], things, strict=True))


def _images(passes: Forward, held: Data, chosen: list[int]) -> torch.Tensor:
    def embed(indices: list[int]) -> torch.Tensor:
        return passes.embed_images(torch.from_numpy(np.stack([held.pixels(index, 0) for index in indices])))

    return _batched(embed, chosen)


def _batched(embed, items: list, size: int = 256) -> torch.Tensor:
    return torch.cat([embed(items[start : start + size]) for start in range(0, len(items), size)])


def stages(settings: Nano) -> Iterator[tuple[str, int, float, int]]:
    """Name, steps, learning rate and warm-up of each stage."""
    yield "words", settings.words_steps, settings.words_rate, 60
    yield "joint", settings.joint_steps, settings.joint_rate, 100


def _means(window: list[dict]) -> dict[str, float]:
    """Of each column over the steps that have it; a step whose second captions were replaced has no text_text."""
    present = {name: [row[name] for row in window if not np.isnan(row[name])] for name in window[0]}
    return {name: float(np.mean(values)) for name, values in present.items() if values}


def _trained_by(settings: Nano, stage: str) -> dict:
    """The settings that the weights at the end of a stage depend on: other joint steps leave the first stage as it was."""
    kept = settings.model_dump(mode="json", exclude=NOT_TRAINED)
    later = {"siblings", *(name for name in kept if name.endswith("_weight"))}
    return {
        name: value
        for name, value in kept.items()
        if stage == "joint" or not (name.startswith("joint_") or name in later)
    }


def pretrain(
    trainee: Trainee, tokenizer, data: Data, held: Data, settings: Nano, identity: dict, folder: Path, compiled: bool
) -> list[list]:
    """Trains, or goes on from the last checkpoint; returns the rows of log.csv, which grows in the folder.

    identity: what the training is, for the checkpoints. Raises UserError when the loss is not a number.
    """
    rows: list[list] = []
    for stage, steps, rate, warmup in stages(settings):
        training = Training(trainee, tokenizer, rate, stage == "words", compiled)
        key = {**identity, "stage": stage, "settings": _trained_by(settings, stage)}
        record = {"log": rows, "seconds": 0.0}
        found = restore(folder / "checkpoints", key, training.weights, training.muon, training.adam)
        done, record = found or (0, record)
        rows = record["log"]
        training.copy()
        compute = words_loss if stage == "words" else joint_loss
        started, saved, window = time.monotonic() - record["seconds"], time.monotonic(), []

        def checkpoint(step: int, training=training, key=key, record=record, started=started) -> None:
            record["seconds"] = time.monotonic() - started
            optimizers = training.muon, training.adam
            write_checkpoint(folder / "checkpoints", step, key, record, training.weights, *optimizers)

        with progress(None, f"Pretraining nano ({stage})", steps, "step") as line:
            line.update(done)
            for step in range(done, steps):
                torch.manual_seed(settings.seed + step)
                generator = np.random.default_rng([settings.seed, len(stage), step])
                loss, logged = compute(training, data, settings, generator)
                if not torch.isfinite(loss):
                    raise UserError(f"nano: the loss of step {step + 1} ({stage}) is not a number; lower {stage}_rate")
                loss.backward()
                training.step(rate_share(step, steps, warmup))
                window.append({"loss": loss.item(), **logged})
                line.set_postfix_str(f"loss {loss.item():.3f}", refresh=False)
                line.update()
                last = step + 1 == steps
                if (step + 1) % settings.log_every == 0 or last:
                    means, window = _means(window), []
                    if stage == "joint" and ((step + 1) % settings.validate_every == 0 or last):
                        means |= validate(training.passes, held, settings.seed)
                    seconds = time.monotonic() - started
                    cells = [f"{means[name]:.5g}" if name in means else "" for name in HEADER[3:]]
                    rows.append([stage, step + 1, round(seconds, 1), *cells])
                    write_text(folder / "log.csv", csv_text(HEADER, rows))
                if last or time.monotonic() - saved > settings.checkpoint_minutes * 60:
                    checkpoint(step + 1)
                    saved = time.monotonic()
        training.write_back(trainee)
    return rows
