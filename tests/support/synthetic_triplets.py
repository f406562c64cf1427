"""Tables of triplets with sentences of all seven constructions, made up by a few lines: right in form, poor in style."""

import numpy as np
import pyarrow as pa
from bindbench.tables import TRIPLET_REJECTS, TRIPLETS
from bindbench.triplets.constructions import CONSTRUCTIONS, LENGTH_BANDS, windows_of

COLOURS = ("red", "blue", "ivory", "orange", "green", "Victorian")
MATERIALS = ("oak", "glass", "woollen", "iron", "unvarnished", "ash-grey")
OBJECTS = ("mug", "umbrella", "tea towel", "lamp", "anvil", "oar", "mug rack", "shoe", "egg cup", "kite")
FAMILIES = {**dict.fromkeys(COLOURS[:-1], "color"), **dict.fromkeys(MATERIALS[:-1], "material"), "heavy": "weight"}
REGISTERS = ("field notebook", "auction listing", "police report")
OPENERS = ("place first", "there is")
FILLERS = ("beside the gate,", "as always,", "not far away,", "in plain view,", "under the sign,", 'marked "sold",')
REASONS = ("too_short", "too_long", "distance_outside_window", "word_at_its_cap", "duplicate", "article_error")
DISTRACTOR = {"attributes": ["square"], "object": "basket"}


def sentence(construction: str, attributes: list[str], objects: list[str], filler: str = "beside the gate,") -> str:
    """The same for the positive and both negatives: only the order of the words differs."""
    if construction == "predicative":
        (a, b), (o, p) = attributes, objects
        return f"At the fair the {o} was {a}, {filler} and the {p} had turned {b}."
    if construction == "deferred_bind_anaphoric":
        return (
            f"The {objects[0]} and the {objects[1]} stood {filler} the former {attributes[0]} and the latter "
            f"{attributes[1]}."
        )
    if construction == "deferred_bind_respective":
        return f"The {objects[0]} and the {objects[1]} were {attributes[0]} and {attributes[1]} respectively."
    each = len(attributes) // len(objects)
    phrases = [f"the {' '.join(attributes[each * i : each * i + each])} {o}" for i, o in enumerate(objects)]
    return f"At the fair stood {f' {filler} '.join(phrases)}."


def rows(construction: str, count: int, seed: int = 0, first: int = 0) -> list[dict]:
    """Rows of TRIPLETS. The lengths and distances in them are drawn, not measured."""
    generator = np.random.default_rng([seed, list(CONSTRUCTIONS).index(construction)])
    shape = CONSTRUCTIONS[construction]
    made = []
    for index in range(first, first + count):
        objects = generator.choice(OBJECTS, shape.objects, replace=False).tolist()
        pools = (COLOURS, MATERIALS) if shape.attributes == 2 else (COLOURS + MATERIALS,)
        columns = [generator.choice(pool, shape.objects, replace=False).tolist() for pool in pools]
        attributes = [list(pair) for pair in zip(*columns, strict=True)]
        swap = [*range(1, shape.objects), 0]
        if construction == "triple_bind_swap":
            swap = [1, 0, 2]
        moved = [[attributes[swap[i]][0], *attributes[i][1:]] for i in range(shape.objects)]
        filler = str(generator.choice(FILLERS))
        low, high = LENGTH_BANDS[generator.integers(len(LENGTH_BANDS))]
        window = windows_of(shape)[generator.integers(len(windows_of(shape)))]
        flat = [word for pair in attributes for word in pair]
        made.append(
            {
                "example": f"{construction}/{index:06}",
                "construction": construction,
                "bindings": [{"attributes": a, "object": o} for a, o in zip(attributes, objects, strict=True)],
                "slots": ["color", "material"] if shape.attributes == 2 else [],
                "distractors": [DISTRACTOR] * int(shape.distractors and generator.integers(3)),
                "scene": f"at fair {generator.integers(5)}",
                "time_of_day": str(generator.choice(["", "dawn"])),
                "weather": str(generator.choice(["", "fog", "snow"])),
                "register": str(generator.choice(REGISTERS)),
                "opener": str(generator.choice(OPENERS)),
                "length_low": low,
                "length_high": high,
                "distance_low": window[0],
                "distance_high": window[1],
                "n_distractors": 0,
                "source": "grammar",
                "query": " and ".join(f"{' '.join(a)} {o}" for a, o in zip(attributes, objects, strict=True)),
                "positive": sentence(construction, flat, objects, filler),
                "attribute_negative": sentence(construction, [w for pair in moved for w in pair], objects, filler),
                "object_negative": sentence(construction, flat, [objects[i] for i in swap], filler),
                "words": int(generator.integers(low - 1, high + 5)),
                "distance": int(generator.integers(window[0], window[1] + 1)),
            }
        )
    return made


def examples_table(made: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(made, schema=TRIPLETS.schema)


def rejects_table(made: list[dict], reasons: list[str]) -> pa.Table:
    """Rejects with the controls of the rows, one for each reason."""
    kept = set(TRIPLET_REJECTS.schema.names)
    return pa.Table.from_pylist(
        [
            {**{k: v for k, v in row.items() if k in kept}, "example": f"{row['example']}r", "reason": r, "detail": ""}
            for row, r in zip(made, reasons, strict=False)
        ],
        schema=TRIPLET_REJECTS.schema,
    )


def small_set(count: int = 40, seed: int = 0) -> tuple[pa.Table, pa.Table, dict[str, int]]:
    """Examples and rejects of all constructions, and the rows of each split: the deferred ones are held out (B.5)."""
    deferred = [name for name, c in CONSTRUCTIONS.items() if c.deferred]
    made = [row for name in CONSTRUCTIONS if name not in deferred for row in rows(name, count, seed)]
    made = [made[i] for i in np.random.default_rng(seed).permutation(len(made))]
    tenth = len(made) // 10
    splits = {"train": len(made) - 2 * tenth, "validation": tenth, "test": tenth}
    for name in deferred:
        made += rows(name, count, seed)
        splits[name] = count
    generator = np.random.default_rng(seed)
    reasons = generator.choice(REASONS, len(made) // 2, p=[0.3, 0.1, 0.3, 0.1, 0.1, 0.1]).tolist()
    chosen = [made[i] for i in generator.permutation(len(made))[: len(reasons)]]
    return examples_table(made), rejects_table(chosen, reasons), splits
