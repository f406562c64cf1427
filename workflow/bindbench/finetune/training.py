"""Finetunes an embedder on triplets: LoRA, a hinge loss on cosine similarity, AdamW at a constant rate (section 4, B.5).

    python -m bindbench finetune --help

The output folder holds

    adapter/          the adapter, for PEFT and for `adapter:` of an entry of `embedders`
    adapter_lines/    the same, scaled by LiNeS (C.2)
    log.csv           a row a step: loss, learning rate, examples a second, and every so often validation
    record.json       what was trained, on what, how long, and validation before and after
    checkpoints/      what a killed run goes on from; the last one stays, so that a run that is asked for again is there

A step encodes four texts an example: its two triplets share query and positive. Queries, which are short, go through the
model by themselves, and the three sentences of an example, which are of one length, together: little is padded. A resumed
run equals the unbroken one to the bit on a CPU, with as many threads.

Image triplets (Appendix E) are trained by the same loss at the same places: in an example, four images stand for the four
texts, and only what makes features of them differs (`base.features_of`). The vision tower is frozen; no gradient enters it,
so torch keeps nothing of its forward pass.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from peft import PeftModel
from torch import nn
from torch.nn import functional
from tqdm import tqdm

from ..checkpoints import restore, write_checkpoint
from ..config.embedders import Embedder
from ..config.finetuning import Run
from ..config.versions import VERSIONS
from ..errors import UserError
from ..files import csv_text, progress, room_for, sha256_of_file, write_json, write_text
from . import processes as several
from .attention import attention_loss, attention_modules, recorded_attentions, word_pairs
from .base import (
    Model,
    base_entry,
    base_identity,
    embed,
    encode,
    features_of,
    library_versions,
    load_base,
    token_counts,
)
from .batches import Example, Picture, digest_of_images, read_examples, read_image_examples, steps_of
from .lines import neutral_texts, scale_adapter, sweep
from .lora import add_adapter, check_rank, trainable, write_adapter
from .words import locate_words

HEADER = [
    *("step", "loss", "learning_rate", "examples_per_second", "validation_accuracy", "validation_loss"),
]
# What may change without a new training: it changes no weight.
NOT_TRAINED = {"checkpoint_minutes", "validate_every", "lines_alpha"}
NEUTRAL_TEXTS = 500
TEXTS_AT_ONCE = 256


def triplet_hinge(query: torch.Tensor, positive: torch.Tensor, negatives: torch.Tensor, margin: float) -> torch.Tensor:
    """Mean over all triplets of max(0, margin - cos(query, positive) + cos(query, negative)) (section 4).

    query, positive: (n, d); negatives: (n, k, d): k triplets for each query.
    """
    near = functional.cosine_similarity(query, positive, dim=-1)
    far = functional.cosine_similarity(query[:, None], negatives, dim=-1)
    return functional.relu(margin - near[:, None] + far).mean()


class Trainee(NamedTuple):
    """What a step needs besides its examples."""

    model: Model
    run: Run
    attention: tuple[nn.Module, ...]  # the modules that the attention loss reads, by layer; none without that loss
    layers: range  # of the attention loss, counted from 1


def finetune(
    run: Run,
    entry: Embedder,
    name: str,
    train: Path,
    validation: Path,
    folder: Path,
    device: str | None = None,
    threads: int = 0,
    train_images: Sequence[Path] = (),
    validation_images: Sequence[Path] = (),
) -> None:
    """Trains what the run says, or goes on from its last checkpoint, and writes the folder (see above).

    entry: the base, `embedders[run.base]`. name: of the run. train, validation: tables of triplets, or of image triplets if
    the run learns images; then train_images, validation_images: the tables of their images.
    device: of torch; by default cuda, else mps, else cpu. threads: of torch on the CPU; 0: what OMP_NUM_THREADS says.
    Raises UserError for a base that cannot be trained, a rank beyond its projections, tables with too few examples, a loss
    that is not a number, images that are missing or damaged, and whatever `loading.load` raises.
    """
    key = f"finetuning.runs.{name}"
    wanted = run.examples, run.seed, f"{key}.examples"
    wanted_held = run.validation_examples, run.seed, f"{key}.validation_examples", True
    if run.learns_images:
        examples = read_image_examples(train, train_images, *wanted)
        held = read_image_examples(validation, validation_images, *wanted_held)
    else:
        examples, held = read_examples(train, *wanted), read_examples(validation, *wanted_held)
    identity = {
        "version": VERSIONS["finetuning"],
        "run": run.model_dump(mode="json", exclude=NOT_TRAINED),
        "base": base_identity(base_entry(entry, run), run.base),
        "train": sha256_of_file(train),
        "validation": sha256_of_file(validation),
    }
    if run.learns_images:
        identity["images"] = digest_of_images(examples + held)
    processes = several.start(device)
    model = load_base(entry, run, processes.device, threads)
    check_rank(model.network.transformers_model, run.base, run.rank, f"{key}.rank")
    adapted = add_adapter(model.network.transformers_model, run.base, run.rank, run.alpha, run.seed)
    trainee = prepare(model, run, key)
    weights = trainable(model.network)
    optimizer = torch.optim.AdamW(weights.values(), lr=run.learning_rate, weight_decay=run.weight_decay)
    lengths = lengths_of(model, examples)
    steps = steps_of(lengths, run.batch_size, run.accumulate, run.seed, run.epochs)

    torch.manual_seed(run.seed)
    found = restore(folder / "checkpoints", identity, weights, optimizer)
    done, record = found or (0, new_record(len(examples), len(steps)))
    started, saved = time.monotonic() - record["seconds"], time.monotonic()

    def checkpoint(step: int) -> None:
        record["seconds"] = time.monotonic() - started
        write_checkpoint(folder / "checkpoints", step, identity, record, weights, optimizer)

    if processes.writes:
        record["before"] = record["before"] or validate(model, held, run.margin)
        write_text(folder / "log.csv", csv_text(HEADER, record["log"]))
    with _progress(f"Finetuning {run.base} ({name})", len(steps), processes) as line:
        line.update(done)
        for step, batches in enumerate(steps[done:], start=done + 1):
            began = time.monotonic()
            loss = train_step(trainee, [[examples[i] for i in batch] for batch in batches], record, processes)
            loss = several.sum_gradients(list(weights.values()), loss, processes)
            if not np.isfinite(loss):
                raise UserError(f"{key}: the loss of step {step} is not a number; lower learning_rate, or use float32")
            optimizer.step()
            optimizer.zero_grad()
            line.set_postfix_str(f"loss {loss:.4f}", refresh=False)
            line.update()
            if not processes.writes:
                continue
            speed = sum(map(len, batches)) / (time.monotonic() - began)
            row = [step, round(loss, 6), run.learning_rate, round(speed, 2), "", ""]
            if run.validate_every and step % run.validate_every == 0 and step < len(steps):
                row[4:] = _rounded(validate(model, held, run.margin))
            record["log"].append(row)
            with room_for(folder / "log.csv"), (folder / "log.csv").open("a", encoding="utf-8") as file:
                file.write(csv_text(row, []))
            if time.monotonic() - saved > run.checkpoint_minutes * 60 and step < len(steps):
                checkpoint(step)
                saved = time.monotonic()
    if processes.writes:
        _finish(trainee, entry, name, adapted, held, record, checkpoint, folder)


def new_record(examples: int = 0, steps: int = 0) -> dict:
    """What a training writes down as it goes on; checkpoints keep it. tokens, padding: of the first process's share."""
    counts = {"examples": examples, "steps": steps, "tokens": 0, "padding": 0, "seconds": 0.0}
    return {**counts, "log": [], "before": None, "after": None}


def _progress(what: str, total: int, processes: several.Processes):
    """The progress line of the process that writes; of the others a silent one."""
    return progress(None, what, total, "step") if processes.writes else tqdm(total=total, disable=True)


def lengths_of(model: Model, examples: list[Example]) -> list[tuple[int, int]]:
    """By what examples are sorted into batches: the tokens of the positive, then those of the query.

    Negatives hold the positive's words. Sorted by letters instead, 13 to 15 % of what is computed is padding; so, 1 to 3 %.
    Images are of one size, so all their examples are of one length.
    """
    if isinstance(examples[0].query, Picture):
        return [(1, 1)] * len(examples)
    lengths = []
    for start in progress(range(0, len(examples), TEXTS_AT_ONCE), f"Tokens for {model.name}", unit="batch"):
        part = examples[start : start + TEXTS_AT_ONCE]
        columns = ([example.positive for example in part], [example.query for example in part])
        lengths += zip(*(token_counts(model.tokens(texts)) for texts in columns), strict=True)
    return lengths


def prepare(model: Model, run: Run, key: str = "finetuning.runs") -> Trainee:
    """Finds the layers of the attention loss, if the run asks for it.

    key: of the run, for messages. Raises UserError for a range beyond the layers.
    """
    if not run.attention_weight:
        return Trainee(model, run, (), range(0))
    modules = attention_modules(model.network, model.tokens(["a cube"]), run.base)
    count = len(modules)
    # The paper's 18 to 26 of 36 (C.3).
    first, last = run.attention_layers or (max(1, round(count * 18 / 36)), max(1, round(count * 26 / 36)))
    if last > count:
        raise UserError(
            f"{key}.attention_layers: {run.base} has {count} layers (got {first} to {last}); correct the range"
        )
    return Trainee(model, run, tuple(modules), range(first, last + 1))


def train_step(
    trainee: Trainee, batches: list[list[Example]], record: dict, processes: several.Processes = several.ONE
) -> float:
    """Adds up the gradients of one step, the mean over all its triplets. Returns this process's share of the loss.

    record: its `tokens` and `padding` grow.
    """
    total, loss = sum(map(len, batches)), 0.0
    for batch in batches:
        share = batch[processes.rank :: processes.count]
        if share:
            part = batch_loss(trainee, share, record) * (len(share) / total)
            part.backward()
            loss += part.item()
    return loss


def batch_loss(trainee: Trainee, batch: list[Example], record: dict) -> torch.Tensor:
    """The loss of some examples, from four texts or images each: of the triplets, and of attention where the run asks."""
    count, run = len(batch), trainee.run
    queries, candidates = items_of(batch)
    bindings = [[(pair["attributes"], pair["object"]) for pair in example.bindings] for example in batch]
    query, query_term = _encode(trainee, queries, bindings, record)
    vectors, positive_term = _encode(trainee, candidates, bindings, record)
    positive, negatives = vectors[:count], vectors[count:].view(2, count, -1).transpose(0, 1)
    loss = triplet_hinge(query, positive, negatives, run.margin)
    if run.attention_weight:
        loss = loss + run.attention_weight * (query_term + positive_term) / 2
    return loss


def _encode(
    trainee: Trainee, items: list[str] | list[Picture], bindings: list, record: dict
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Vectors of the items, and the attention loss of the texts that hold the bindings: the first of them, one for each."""
    model, run = trainee.model, trainee.run
    features = features_of(model, items)
    counted = sum(token_counts(features))
    record["tokens"] += counted
    record["padding"] += features["input_ids"].numel() - counted
    if not run.attention_weight:
        return encode(model, features), None
    words = locate_words(model, list(zip(items, bindings, strict=False)))
    pairs = word_pairs(words, features["attention_mask"]).to(model.network.device)
    with recorded_attentions(trainee.attention, trainee.layers) as attentions:
        vectors = encode(model, features)
    return vectors, attention_loss(attentions, pairs, run.attention_margin, trainee.layers)


def items_of(batch: list[Example]) -> tuple[list, list]:
    """The queries; and all positives, then all attribute negatives, then all object negatives."""
    candidates = [
        getattr(example, role) for role in ("positive", "attribute_negative", "object_negative") for example in batch
    ]
    return [example.query for example in batch], candidates


def validate(model, examples: list[Example], margin: float) -> dict[str, float]:
    """Triplet accuracy, a tie being wrong, and loss, with the model as it is measured (`Model.embed`)."""
    queries, candidates = items_of(examples)
    query = embed(model, queries)
    similarities = np.einsum("nd,knd->kn", query, embed(model, candidates).reshape(3, len(query), -1))
    near, far = similarities[0], similarities[1:]
    hinge = np.maximum(0, margin - near + far).mean(dtype=np.float64)
    return {"accuracy": float((near > far).mean()), "loss": float(hinge)}


def _rounded(scores: dict[str, float]) -> list[float]:
    return [round(scores["accuracy"], 6), round(scores["loss"], 6)]


def _finish(
    trainee: Trainee,
    entry: Embedder,
    name: str,
    adapted: PeftModel,
    held: list[Example],
    record: dict,
    checkpoint: Callable[[int], None],
    folder: Path,
) -> None:
    """Validates, keeps the last checkpoint, and writes adapters, log and record."""
    model, run = trainee.model, trainee.run
    if record["after"] is None:
        record["after"] = validate(model, held, run.margin)
        record["log"][-1][4:] = _rounded(record["after"])
        checkpoint(record["steps"])
    write_text(folder / "log.csv", csv_text(HEADER, record["log"]))
    write_adapter(adapted, entry.path or entry.loader, folder / "adapter")
    alpha, rows = run.lines_alpha, None
    if alpha == "sweep":
        phrases = neutral_texts([example.bindings for example in held], NEUTRAL_TEXTS)
        alpha, rows = sweep(
            adapted, lambda: validate(model, held, run.margin)["accuracy"], lambda: model.embed(phrases)
        )
    scale_adapter(folder / "adapter", folder / "adapter_lines", alpha)
    weights = trainable(model.network)
    write_json(
        folder / "record.json",
        {
            "name": name,
            "run": run.model_dump(mode="json"),
            "base": base_identity(base_entry(entry, run), run.base),
            "trainable_parameters": sum(weight.numel() for weight in weights.values()),
            "parameters": sum(weight.numel() for weight in model.network.parameters()),
            "examples": record["examples"],
            "validation_examples": len(held),
            "steps": record["steps"],
            "seconds": round(record["seconds"], 1),
            "tokens": record["tokens"],
            "padding_share": round(record["padding"] / (record["tokens"] + record["padding"]), 4),
            "validation": {"before": record["before"], "after": record["after"]},
            "lines": {"alpha": alpha, "sweep": rows},
            "attention_layers": list(trainee.layers),
            "device": model.facts()["device"],
            "libraries": library_versions(),
        },
    )
