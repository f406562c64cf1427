"""What the nano embedder reads in its pretraining: captions of scenes, and captions in which one concept is replaced."""

import numpy as np

from ..captions import caption
from ..vocabulary import Vocabulary
from .combinations import is_held_out

Pairs = list[tuple[str, str]]  # (attribute, object)

REPLACED_OBJECT = 0.7  # else an attribute is replaced: objects are the harder half
BARE = 0.15  # chance of a caption without articles


def bare_caption(pairs: Pairs) -> str:
    return ", ".join(f"{attribute} {thing}" for attribute, thing in pairs)


def shuffled(pairs: Pairs, generator: np.random.Generator) -> Pairs:
    return [pairs[index] for index in generator.permutation(len(pairs))]


def with_one_replaced(pairs: Pairs, vocabulary: Vocabulary, generator: np.random.Generator) -> Pairs:
    """One object or attribute becomes another that the scene does not hold; no held-out combination comes about.

    No pair of the result swaps what the scene holds: binding is never taught by contrast.
    """
    attributes, things = zip(*pairs, strict=True)
    objects, kinds = list(vocabulary.objects), list(vocabulary.attributes)
    while True:
        index = int(generator.integers(len(pairs)))
        attribute, thing = pairs[index]
        if generator.random() < REPLACED_OBJECT:
            thing = objects[int(generator.integers(len(objects)))]
            if thing in things:
                continue
        else:
            attribute = kinds[int(generator.integers(len(kinds)))]
            if attribute in attributes:
                continue
        if not is_held_out(attribute, thing):
            return [*pairs[:index], (attribute, thing), *pairs[index + 1 :]]


def tokenizer_texts(vocabulary: Vocabulary, sentences: list[str], seed: int = 0) -> list[str]:
    """What the tokenizer is trained on: captions, so many that each word of a scene becomes one token, and sentences."""
    generator = np.random.default_rng([seed, 1])
    objects, attributes = list(vocabulary.objects), list(vocabulary.attributes)
    texts = []
    for _ in range(max(20_000, len(sentences) // 4)):
        size = int(generator.integers(1, 5))
        things = generator.choice(len(objects), min(size, len(objects)), replace=False)
        kinds = generator.choice(len(attributes), min(size, len(attributes)), replace=False)
        texts.append(caption([(attributes[kind], objects[thing]) for kind, thing in zip(kinds, things, strict=False)]))
    return texts + sentences
