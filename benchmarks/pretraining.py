"""Nano's forward pass for training against transformers' own, forward and backward, on the same batch of the same weights.

    python benchmarks/pretraining.py        writes benchmarks/pretraining.md

Both embed a batch and pass back from the sum of squares of a fixed direction. Ours knows that all images have one grid and
that texts are padded on the right; transformers' takes what its processor makes of the same pictures and texts.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "workflow"))

from bindbench.captions import caption  # noqa: E402
from bindbench.nano.forward import Forward  # noqa: E402
from machine import describe  # noqa: E402
from PIL import Image  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

ROUNDS, IMAGES, TEXTS = 3, 48, 96
MODEL = REPOSITORY / "resources/models/nano"


def texts() -> list[str]:
    """Captions of one to six objects."""
    generator = np.random.default_rng(0)
    things, kinds = (
        ("car", "kite", "lamp", "drum", "dog", "boat"),
        ("red", "striped", "furry", "golden", "icy", "wooden"),
    )
    return [
        caption(
            [(str(generator.choice(kinds)), str(generator.choice(things))) for _ in range(generator.integers(1, 7))]
        )
        for _ in range(TEXTS)
    ]


def passed(embed, network) -> tuple[float, float, torch.Tensor]:
    """CPU-seconds of forward and of backward, and the vectors."""
    started = time.process_time()
    vectors = embed()
    forward = time.process_time()
    (vectors.float() @ torch.linspace(-1, 1, vectors.shape[1])).square().sum().backward()
    ended = time.process_time()
    network.zero_grad()
    return forward - started, ended - forward, vectors.detach()


def main() -> None:
    loaded = SentenceTransformer(str(MODEL), device="cpu", model_kwargs={"dtype": "float32"})
    network = loaded[0].model
    passes = Forward(network, loaded.tokenizer)
    pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (IMAGES, 160, 160, 3), np.uint8))
    pictures, captions = [Image.fromarray(image.numpy()) for image in pixels], texts()
    features = {"images": loaded.preprocess(pictures), "texts": loaded.preprocess(captions)}
    rows = []
    for name, ours in (
        ("images", lambda: passes.embed_images(pixels)),
        ("texts", lambda: passes.embed_texts(captions)),
    ):
        peer = lambda name=name: loaded(dict(features[name]))["sentence_embedding"]  # noqa: E731
        measured = [(passed(ours, network), passed(peer, network)) for _ in range(ROUNDS)]
        best = [[min(round_[side][part] for round_ in measured) for part in (0, 1)] for side in (0, 1)]
        difference = (measured[0][0][2] - measured[0][1][2]).abs().max().item()
        count = IMAGES if name == "images" else TEXTS
        rates = [count / sum(side) for side in best]
        ratios = [best[0][part] / best[1][part] for part in (0, 1)]
        rows.append(
            f"| {count} {name} | {rates[0]:.0f} | {rates[1]:.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} | {difference:.0e} |"
        )
    table = "\n".join(rows)
    text = f"""# Pretraining of nano

{describe()}

Forward and backward pass of nano in float32, ours (`nano/forward.py`) and transformers', on the same batch and weights, in
turn, the fastest of {ROUNDS} rounds each, in CPU-seconds. Ratio under 1: ours is faster.

| batch | ours, items a CPU-second | transformers, items a CPU-second | forward ratio | backward ratio | largest difference |
|---|---|---|---|---|---|
{table}

Pictures are prepared before: transformers' processor is not in its time, the conversion of pixels is in ours.
"""
    (REPOSITORY / "benchmarks/pretraining.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
