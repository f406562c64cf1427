"""Embeds a corpus: what the cache holds is taken from it, the rest is embedded, and the table is written in order.

Which items share a batch depends on the whole corpus alone, and whole batches go into the cache. So a run that was
killed and resumed puts the same items through the model side by side as one that was not, and ends with the same bytes.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..config.embedders import Embedder
from ..errors import UserError
from ..files import progress, read_verified, sha256, write_json
from ..tables import embeddings_table, write_table
from .cache import Cache
from .sources import fingerprint, identity

NAMED = 20  # texts that were cut, by id in the record: every manifest repeats it


def embed_texts(
    entry: Embedder,
    name: str,
    texts: dict[str, str],
    cache_root: Path,
    output: Path,
    version: int,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Writes the embeddings of texts, and a record of the model beside them (`output` with the suffix .json).

    texts: of each item, by its id; the rows of the table keep their order. Equal texts are embedded once.
    name: of the embedder in the config. cache_root: folder of all embedding caches. version: of the stage's code.
    Raises UserError for a modality that the entry does not list, and whatever `loading.load` raises.
    """
    _check_modality(entry, name, "text")
    keys = [bytes.fromhex(sha256(text)) for text in texts.values()]
    distinct = dict(zip(keys, texts.values(), strict=True))
    order = sorted(distinct, key=lambda key: (-len(distinct[key]), key))  # the longest first: memory runs out at once

    def prepare(model, batch: list[bytes]) -> tuple[dict, np.ndarray]:
        texts = [distinct[key] for key in batch]
        return model.prepare_texts(texts), model.cut(texts)

    _embed(entry, name, "text", list(texts), keys, order, prepare, cache_root, output, version, device, threads)


def embed_images(
    entry: Embedder,
    name: str,
    images: list[tuple[str, Path, str]],
    cache_root: Path,
    output: Path,
    version: int,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Writes the embeddings of images, as `embed_texts` does of texts.

    images: item id, path and SHA-256 of the file (hex) of each. Equal files are read and embedded once.
    Raises UserError also for an image that is missing, unreadable, or not the file that its hash names.
    """
    _check_modality(entry, name, "image")
    keys = [bytes.fromhex(digest) for _, _, digest in images]
    distinct = {key: Path(path) for key, (_, path, _) in reversed(list(zip(keys, images, strict=True)))}
    order = list(dict.fromkeys(keys))

    def prepare(model, batch: list[bytes]) -> tuple[dict, None]:
        return model.prepare_images([verified_image(distinct[key], key.hex()) for key in batch]), None

    items = [item for item, _, _ in images]
    _embed(entry, name, "image", items, keys, order, prepare, cache_root, output, version, device, threads)


def _embed(
    entry: Embedder,
    name: str,
    modality: str,
    items: list[str],
    keys: list[bytes],
    order: list[bytes],
    prepare: Callable,
    cache_root: Path,
    output: Path,
    version: int,
    device: str | None,
    threads: int | None,
) -> None:
    """keys: of each item. order: the distinct keys as they are batched. prepare: (model, keys) -> features, cut."""
    started = time.monotonic()
    if not items:
        raise ValueError("there is nothing to embed")
    described = identity(entry, name, version)
    cache = Cache(cache_root, fingerprint(described), modality)
    cache.record(described)
    vectors, cached = cache.read(order)
    size = entry.batch_size
    batches = (range(start, min(start + size, len(order))) for start in range(0, len(order), size))
    missing = [rows for batch in batches if (rows := [row for row in batch if not cached[row]])]
    if missing:
        from .loading import load

        model = load(entry, device, name, threads)
        cache.record(described, model.facts())

        def prepared(rows: list[int]) -> tuple[dict, np.ndarray | None]:
            return prepare(model, [order[row] for row in rows])

        count = sum(map(len, missing))
        try:
            with progress(None, f"Embedding {modality}s with {name}", total=count, unit=modality) as line:
                for rows, (features, cut) in zip(missing, ahead(prepared, missing), strict=True):
                    batch = model.vectors(features)
                    if vectors is None:
                        vectors = np.zeros((len(order), batch.shape[1]), np.float32)
                    vectors[rows] = batch
                    cache.add([order[row] for row in rows], batch, cut)
                    line.update(len(rows))
        finally:
            cache.flush()
    row_of = {key: row for row, key in enumerate(order)}
    _write(output, items, vectors[[row_of[key] for key in keys]])
    write_json(
        output.with_suffix(".json"),
        {
            "embedder": name,
            "modality": modality,
            "items": len(items),
            "distinct": len(order),
            "dimensions": vectors.shape[1],
            "fingerprint": fingerprint(described),
            "identity": described,
            "models": cache.models(),
            **(_cut_texts(cache, name, items, keys) if modality == "text" else {}),
            "seconds": round(time.monotonic() - started, 1),
        },
    )


def _cut_texts(cache: Cache, name: str, items: list[str], keys: list[bytes]) -> dict:
    """For the record: how many texts lost their ends to the model's token limit, and the first of them by id.

    Both are null where vectors of an older version, which did not count, are among them. Says so on standard error, too.
    """
    cut = cache.cut_among(keys)
    if cut is None:
        return {"cut": None, "first_cut": None}
    named = [item for item, key in zip(items, keys, strict=True) if key in cut]
    if named:
        print(
            f"embedders.{name}: {len(named)} of {len(items)} texts are longer than the model reads; their ends were cut "
            f"(the first: {named[0]})",
            file=sys.stderr,
        )
    return {"cut": len(named), "first_cut": named[:NAMED]}


def _write(output: Path, items: list[str], vectors: np.ndarray) -> None:
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    columns = [pa.array(items, pa.string()), pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])]
    write_table(embeddings_table(vectors.shape[1]), pa.table(columns, names=["item", "embedding"]), output)


def _check_modality(entry: Embedder, name: str, modality: str) -> None:
    if modality not in entry.modalities:
        raise UserError(f"embedders.{name}.modalities: {modality} is not among them ({', '.join(entry.modalities)})")


def ahead(function: Callable, arguments: Iterable, depth: int = 2) -> Iterator:
    """Results in order, computed in another thread while the caller works on earlier ones; at most `depth` wait."""
    with ThreadPoolExecutor(1) as worker:
        waiting: deque = deque()
        try:
            for argument in arguments:
                waiting.append(worker.submit(function, argument))
                if len(waiting) >= depth:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def verified_image(path: Path, digest: str):
    """The image of a file whose bytes are checked against the hash that was written down when it was made.

    Raises UserError.
    """
    from .loading import read_image

    # Of a shard, Snakemake knows the table beside the folder alone; the good images are kept when it is made again.
    remedy = f"delete {path.parent}.parquet and run again"
    data = read_verified(path, digest, remedy)
    try:
        return read_image(data)
    except UserError as error:
        raise UserError(f"{path}: {str(error).removeprefix('image: ')}; {remedy}") from None
