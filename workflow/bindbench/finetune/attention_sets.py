"""The three text sets of the attention analysis, its table of margins, and the numbers of Figure 4 (SABER, C.3).

Queries of the held-out test split, in proportion to the constructions of the training data; their longer positives; queries
of SABER, as many of each number of objects. A positive's distractors are objects of the caption too, with margins of
their own. Draws depend on the seed and the ids alone.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..config.embedders import Embedder
from ..config.scoring import Tables
from ..embedders.sources import fingerprint, identity
from ..errors import UserError
from ..files import csv_text, write_json, write_text
from ..manifest import library_versions
from ..statistics import Estimate, bootstrap, interval, random_generator
from ..tables import ATTENTION_MARGINS, SCENES, TEXT_SETS, TRIPLETS, read_table, write_table

COUNT = 1000  # captions of each set
HEADER = ["model", "text_set", "layer", "margin", "low", "high", "captions", "undefined"]


class Caption(NamedTuple):
    """A text with its bindings: of each object the attribute words, and the object's word."""

    name: str
    text: str
    bindings: tuple[tuple[tuple[str, ...], str], ...]


def text_sets(train: Path, test: Path, scenes: Path, seed: int, count: int = COUNT) -> dict[str, list[Caption]]:
    """The captions of each set: `queries`, `positives` and `saber`, up to `count` each.

    train, test: tables of triplets. scenes: SABER's. Raises UserError when one of them is missing or empty.
    """
    constructions = Counter(read_table(TRIPLETS, train)["construction"].to_pylist())
    examples = sample_examples(read_table(TRIPLETS, test).to_pylist(), constructions, count, seed)
    queries = sample_scenes(read_table(SCENES, scenes).to_pylist(), count, seed)
    for path, rows in ((test, examples), (scenes, queries)):
        if not rows:
            raise UserError(f"{path}: has no captions to measure attention on; raise the counts of its stage")
    sets = (
        [Caption(row["example"], row["query"], _pairs(row["bindings"])) for row in examples],
        [Caption(row["example"], row["positive"], _pairs(row["bindings"] + row["distractors"])) for row in examples],
        [Caption(row["scene"], row["caption"], _scene_pairs(row["bindings"])) for row in queries],
    )
    return dict(zip(TEXT_SETS, sets, strict=True))


def sample_examples(examples: Sequence[dict], constructions: Mapping[str, int], count: int, seed: int) -> list[dict]:
    """Rows of a table of triplets, in proportion to the constructions' counts, ordered as in the table."""
    return _sample(examples, [row["construction"] for row in examples], constructions, count, seed, "queries")


def sample_scenes(scenes: Sequence[dict], count: int, seed: int) -> list[dict]:
    """SABER's queries among the rows of a table of scenes, as many of each number of objects, ordered as in the table."""
    queries = [row for row in scenes if row["role"] == "query"]
    sizes = [len(row["bindings"]) for row in queries]
    return _sample(queries, sizes, dict.fromkeys(sizes, 1), count, seed, "saber")


def _sample(rows, kinds, proportions, count, seed, name) -> list[dict]:
    generator = random_generator(seed, f"attention {name}")
    order = generator.permutation(len(rows))
    left = quotas(Counter(kinds), proportions, count)
    chosen = []
    for index in order.tolist():
        if left[kinds[index]]:
            left[kinds[index]] -= 1
            chosen.append(index)
    return [rows[index] for index in sorted(chosen)]


def quotas(available: Mapping[Hashable, int], proportions: Mapping[Hashable, int], count: int) -> dict[Hashable, int]:
    """How many of each kind: in proportion, by largest remainders; what a kind lacks goes to the others in proportion.

    Kinds without a proportion get none. The sum is `count`, or all that is available if that is less.
    """
    taken = dict.fromkeys(available, 0)
    open_kinds = [kind for kind in available if proportions.get(kind)]
    missing = min(count, sum(available[kind] for kind in open_kinds))
    while missing:
        total = sum(proportions[kind] for kind in open_kinds)
        shares = {kind: divmod(missing * proportions[kind], total) for kind in open_kinds}
        rest = missing - sum(whole for whole, _ in shares.values())
        extra = sorted(open_kinds, key=lambda kind: -shares[kind][1])[:rest]
        for kind in open_kinds:
            more = min(shares[kind][0] + (kind in extra), available[kind] - taken[kind])
            taken[kind] += more
            missing -= more
        open_kinds = [kind for kind in open_kinds if taken[kind] < available[kind]]
    return taken


def _pairs(bindings: list[dict]) -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple((tuple(pair["attributes"]), pair["object"]) for pair in bindings)


def _scene_pairs(bindings: list[dict]) -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple(((pair["attribute"],), pair["object"]) for pair in bindings)


def write_margins(
    entry: Embedder,
    name: str,
    sets: Mapping[str, Sequence[Caption]],
    output: Path,
    version: int,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Measures the margins of one embedder on every set; writes them, and a record (`output` with the suffix .json).

    version: of the stage's code. Raises UserError as `measure_margins` does.
    """
    from .attention import measure_margins

    started = monotonic()
    captions = [caption for members in sets.values() for caption in members]
    texts = [(caption.text, caption.bindings) for caption in captions]
    margins = measure_margins(entry, name, texts, entry.batch_size, device, threads)
    n_captions, n_layers = margins.shape
    set_of = [text_set for text_set, members in sets.items() for _ in members]
    columns = {
        "model": [name] * margins.size,
        "text_set": np.repeat(set_of, n_layers),
        "caption": np.repeat([caption.name for caption in captions], n_layers),
        "layer": np.tile(np.arange(1, n_layers + 1, dtype=np.int32), n_captions),
        "margin": pa.array(margins.ravel(), from_pandas=True),  # NaN: an empty cell
    }
    write_table(ATTENTION_MARGINS, columns, output)
    described = identity(entry.model_copy(update={"attention": "eager"}), name, version)
    record = {"embedder": name, "modality": "text", "items": n_captions, "layers": n_layers}
    record |= {"fingerprint": fingerprint(described), "identity": described, "libraries": library_versions()}
    write_json(output.with_suffix(".json"), record | {"seconds": round(monotonic() - started, 1)})


def tabulate_attention(tables: Mapping[str, Path], settings: Tables, output: Path) -> None:
    """Writes the numbers of Figure 4: the mean margin of each model, set and layer, with its interval over captions.

    tables: of `write_margins`, by model. The models share the resamples of a set. captions: those that the mean is over;
    undefined: those that have no margin and are left out.
    Raises UserError for a table that is not whole or of another model, when two of them measured other captions, and when
    there is none.
    """
    if not tables:
        raise UserError("models: none has attention between words (loaders sentence-transformers, minilm); add one")
    rows = []
    captions_of: dict[str, list[str]] = {}
    for model, path in tables.items():
        for text_set, (captions, margins) in read_margins(path, model).items():
            if captions_of.setdefault(text_set, captions) != captions:
                raise UserError(f"{path}: measured on other captions than the other models; delete it and run again")
            estimate = mean_margins(margins, settings)
            defined = np.isfinite(margins[:, 0]).sum()
            for layer, numbers in enumerate(zip(*estimate, strict=True), 1):
                cells = ("" if np.isnan(number) else f"{number:.6f}" for number in numbers)
                rows.append([model, text_set, layer, *cells, defined, len(captions) - defined])
    write_text(output, csv_text(HEADER, rows))


def read_margins(path: Path, model: str) -> dict[str, tuple[list[str], np.ndarray]]:
    """By text set, the ids of the captions and their margins, (captions, layers) float64, NaN where undefined.

    Raises UserError for a table that is not whole or holds another model.
    """
    table = read_table(ATTENTION_MARGINS, path)
    table = table.sort_by([("text_set", "ascending"), ("caption", "ascending"), ("layer", "ascending")])
    layer = table["layer"].to_numpy()
    n_layers = int(layer.max(initial=1))
    whole = len(layer) > 0 and np.array_equal(layer, np.resize(np.arange(1, n_layers + 1), len(layer)))
    if not whole or len(layer) % n_layers or table["model"].unique().to_pylist() != [model]:
        raise UserError(f"{path}: not the margins of {model}; delete it and run again")
    margins = table["margin"].to_numpy(zero_copy_only=False).astype(np.float64).reshape(-1, n_layers)
    first = table.take(np.arange(0, len(table), n_layers))
    set_of = first["text_set"].to_numpy(zero_copy_only=False)
    captions = first["caption"].to_numpy(zero_copy_only=False)
    present = [name for name in TEXT_SETS if name in set_of]
    return {name: (captions[set_of == name].tolist(), margins[set_of == name]) for name in present}


def mean_margins(margins: np.ndarray, settings: Tables) -> Estimate:
    """Mean and interval of each layer over the captions that have a margin, (layers,) each; the bootstrap draws captions.

    margins: (captions, layers), NaN in whole rows.
    """
    strata, alone = np.zeros(len(margins), np.int64), [None] * len(margins)
    sample = bootstrap(margins, strata, alone, settings.bootstrap_samples, settings.seed)
    return Estimate(*(part[0] for part in interval(sample, settings.confidence)))
