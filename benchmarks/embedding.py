"""The embedding loop against a plain `SentenceTransformer.encode` of the same items. Goal: no slower.

    python benchmarks/embedding.py        writes benchmarks/embedding.md

Ours hashes the model's files and every item, checks every image against its hash, fills the cache and writes the table;
plain encode gets the texts or the opened images and returns an array. The model is loaded before, once for both.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "workflow"))

from bindbench.config.embedders import DEFAULT_EMBEDDERS  # noqa: E402
from bindbench.embedders import loading  # noqa: E402
from bindbench.embedders.embed import embed_images, embed_texts  # noqa: E402
from bindbench.files import sha256_of_file  # noqa: E402
from bindbench.tables import embeddings_table, read_table  # noqa: E402
from machine import describe  # noqa: E402
from PIL import Image, ImageDraw  # noqa: E402

ROUNDS = 4
IMAGES = 160
TEXTS = {"nano": 512, "minilm": 192, "wordllama": 9000}
COLOURS = ("red", "blue", "green", "yellow", "striped", "dotted", "wooden", "glass")
OBJECTS = ("cube", "sphere", "dog", "boot", "kite", "lamp", "drum", "chair")


def captions(count: int, seed: int = 0) -> dict[str, str]:
    """Captions of 2 to 10 objects, numbered so that no two are equal."""
    generator = random.Random(seed)
    return {
        str(index): ", ".join(
            f"a {generator.choice(COLOURS)} {generator.choice(OBJECTS)}" for _ in range(generator.randint(2, 10))
        )
        + f" {index}"
        for index in range(count)
    }


def scenes(folder: Path, seed: int = 0) -> list[tuple[str, Path, str]]:
    """512 px PNG files of shaded ellipses, about as large as the renderer's."""
    generator = np.random.default_rng(seed)
    items = []
    for index in range(IMAGES):
        image = Image.new("RGB", (512, 512), (220, 220, 215))
        draw = ImageDraw.Draw(image)
        for _ in range(12):
            x, y = generator.integers(0, 430, 2).tolist()
            draw.ellipse((x, y, x + 90, y + 70), fill=tuple(generator.integers(0, 256, 3).tolist()))
        noisy = np.asarray(image, np.int16) + generator.integers(-2, 3, (512, 512, 1))
        path = folder / f"{index}.png"
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path)
        items.append((str(index), path, sha256_of_file(path)))
    return items


def seconds(run) -> tuple[float, float]:
    """Wall seconds and CPU-seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - processor


def compare(name: str, modality: str, items, folder: Path) -> str:
    """One row of the table: ours and plain encode in turn, the fastest round of each."""
    entry = DEFAULT_EMBEDDERS[name]
    model = loading.load(entry, name=name)
    embed = embed_texts if modality == "text" else embed_images
    output, original = folder / "table.parquet", loading.load
    ours, warm, plain = [], [], []
    vectors = None
    loading.load = lambda *arguments: model
    try:
        for round_ in range(ROUNDS):
            cache = folder / f"cache-{name}-{modality}-{round_}"
            ours.append(seconds(lambda: embed(entry, name, items, cache, output, 1)))  # noqa: B023
            warm.append(seconds(lambda: embed(entry, name, items, cache, output, 1)))  # noqa: B023

            def encode():
                nonlocal vectors
                plain_items = list(items.values()) if modality == "text" else [Image.open(path) for _, path, _ in items]
                vectors = model.network.encode(plain_items, batch_size=entry.batch_size, show_progress_bar=False)

            plain.append(seconds(encode))
    finally:
        loading.load = original
    table = read_table(embeddings_table(vectors.shape[1]), output)
    embedded = np.array(table["embedding"].to_pylist(), np.float32)
    difference = np.abs(embedded - vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).max()
    best = [min(column) for runs in (ours, plain) for column in zip(*runs, strict=True)]
    count = len(items)
    return (
        f"| {name} | {count} {modality}s | {count / best[0]:.0f} | {count / best[2]:.0f} | {best[0] / best[2]:.2f} "
        f"| {best[1] / best[3]:.2f} | {min(warm)[0]:.2f} | {difference:.0e} |"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            compare("nano", "image", scenes(folder), folder),
            *(compare(model, "text", captions(count), folder) for model, count in TEXTS.items()),
        ]
    goal = "Goal: ratios of at most 1. Hashing the model's files is a fixed cost, the first part of `all cached`."
    text = "\n".join(
        [
            "# Embedding",
            "",
            describe(),
            "",
            "The loop (hashing, checking, cache and table included) and a plain `SentenceTransformer.encode` of the same",
            f"items, in turn, the fastest of {ROUNDS} rounds each. Images are 512 px PNG files. Ratio under 1: ours is faster.",
            "",
            "| model | items | ours, items/s | encode, items/s | wall ratio | CPU ratio | all cached, s | largest difference |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            goal,
        ]
    )
    (REPOSITORY / "benchmarks/embedding.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
