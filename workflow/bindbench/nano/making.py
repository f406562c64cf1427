"""From scenes and sentences to a folder that any embedder's loader reads: tokenizer, pretraining, weights, record, card."""

import platform
import shutil
from pathlib import Path

import torch

from ..config.nano import Nano
from ..config.versions import VERSIONS
from ..files import sha256_of_file, write_json, write_text
from ..vocabulary import Vocabulary
from .card import card
from .forward import Forward
from .model import new_model, save_embedder, train_tokenizer
from .pretraining import Data, Trainee, pretrain, read_data, validate
from .texts import tokenizer_texts

CHECK_SCENES = 200  # of the validation's: what the card's figures are measured on, and a test again


def make_nano(
    vocabulary: Vocabulary,
    settings: Nano,
    pixels: list[Path],
    tables: list[Path],
    held_pixels: Path,
    held_table: Path,
    triplets: Path,
    folder: Path,
    threads: int = 0,
) -> None:
    """Pretrains, or goes on from the last checkpoint; writes folder/model, log.csv and record.json.

    pixels, tables: shards of `scenes.render_nano_scenes`. triplets: the training split. threads: of torch; 0: all.
    Raises UserError as `pretraining.pretrain` and `pretraining.read_data` do.
    """
    torch.set_num_threads(threads or torch.get_num_threads())
    data = read_data(vocabulary, pixels, tables, triplets)
    held = read_data(vocabulary, [held_pixels], [held_table], None)
    sentences = [text for pair in data.sentences for text in pair]
    tokenizer = train_tokenizer(tokenizer_texts(vocabulary, sentences))
    torch.manual_seed(settings.seed)
    trainee = Trainee(new_model(tokenizer))
    identity = {
        "version": VERSIONS["nano"],
        "scenes": [sha256_of_file(path) for path in [*tables, *pixels]],
        "triplets": sha256_of_file(triplets),
        "attributes": list(vocabulary.attributes),
        "objects": list(vocabulary.objects),
    }
    # Without a C++ compiler torch cannot compile; the weights differ in rounding only.
    compiled = any(shutil.which(name) for name in ("c++", "g++", "clang++"))
    rows = pretrain(trainee, tokenizer, data, held, settings, identity, folder, compiled)
    parameters = sum(weight.numel() for weight in trainee.model.parameters())
    save_embedder(trainee.model, tokenizer, folder / "model")
    record = {
        "settings": settings.model_dump(mode="json"),
        "scenes": len(data),
        "sentences": len(data.sentences),
        "tokens": len(tokenizer),
        "parameters": parameters,
        "phrases": len(vocabulary.attributes) * len(vocabulary.objects),
        "seconds": sum(_seconds(rows)),
        "machine": f"{torch.get_num_threads()} thread(s) of a CPU ({platform.machine()})",
        "compiled": compiled,
        "check": check(folder / "model", held),
    }
    write_json(folder / "record.json", record)
    write_json(folder / "model" / "record.json", record)
    write_text(folder / "model" / "README.md", card(record))


def _seconds(rows: list[list]) -> list[float]:
    """Of each stage."""
    return list({row[0]: row[2] for row in rows}.values())


def check(folder: Path, held: Data, scenes: int = CHECK_SCENES) -> dict:
    """The figures of the card, of the weights as they are written, on the first scenes of the validation."""
    from sentence_transformers import SentenceTransformer

    network = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": "float32"})[0]
    first = Data(held.vocabulary, held.shards, held.pairs[:scenes], held.tokens[:scenes], [])
    return {"scenes": scenes, **validate(Forward(network.model.eval(), network.tokenizer), first, seed=0)}
