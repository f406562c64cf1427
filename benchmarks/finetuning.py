"""A finetuning step against SentenceTransformerTrainer with TripletLoss on the same examples. Goal: 1.4 times faster.

    python benchmarks/finetuning.py        writes benchmarks/finetuning.md

Both train the same LoRA (rank 4 on query, key, value and output projections) of the same embedder on the same triplets, as
many examples a step, one epoch, AdamW, on one thread. The trainer gets two triplets an example, six texts; ours encodes four,
in batches of like length. Loading the model is left out on both sides; tokenising and the optimizer count on both.

The trainer's data set is a list of rows in place of `datasets.Dataset`: that package is not among our dependencies, and a list
is no slower. Its model card, which would be drawn from the data set, is switched off.
"""

import sys
import tempfile
import time
from pathlib import Path

import torch

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "workflow"))

from bindbench.config.embedders import DEFAULT_EMBEDDERS  # noqa: E402
from bindbench.config.finetuning import Run  # noqa: E402
from bindbench.config.triplets import Generation  # noqa: E402
from bindbench.finetune.base import load_base  # noqa: E402
from bindbench.finetune.batches import Example, read_examples, steps_of  # noqa: E402
from bindbench.finetune.lora import add_adapter, trainable  # noqa: E402
from bindbench.finetune.training import lengths_of, new_record, prepare, train_step  # noqa: E402
from bindbench.triplets.building import build_shard  # noqa: E402
from machine import describe  # noqa: E402
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments  # noqa: E402
from sentence_transformers.base import trainer as trainer_module  # noqa: E402
from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss  # noqa: E402

CONSTRUCTIONS = ("pair_swap", "triple_bind_cycle", "attr_bundle", "predicative")
EXAMPLES = {"minilm": 96, "nano": 192}
BATCH = 16
GOAL = 1.4


def examples(folder: Path, count: int) -> list[Example]:
    """Examples of the embedded grammar, as many of each construction."""
    found = []
    for name in CONSTRUCTIONS:
        outputs = [folder / f"{name}.{kind}" for kind in ("parquet", "rejects.parquet", "state.json", "json")]
        build_shard(name, count // len(CONSTRUCTIONS), None, Generation(), None, *outputs)
        found += read_examples(outputs[0], None, 0, "examples")
    return found


class Rows(list):
    """The rows of a data set, for the trainer."""

    column_names = ("anchor", "positive", "negative")


class Trainer(SentenceTransformerTrainer):
    """The trainer, with a list for its data set and without a model card."""

    def preprocess_dataset(self, dataset, *arguments, **options):
        return dataset

    def add_model_card_callback(self, *arguments) -> None:
        pass


def triplets(chosen: list[Example]) -> Rows:
    return Rows(
        {"anchor": example.query, "positive": example.positive, "negative": negative}
        for example in chosen
        for negative in (example.attribute_negative, example.object_negative)
    )


def model_of(name: str, run: Run):
    model = load_base(DEFAULT_EMBEDDERS[name], run, "cpu", 1)
    add_adapter(model.network.transformers_model, name, run.rank, run.alpha, run.seed)
    return model


def ours(name: str, run: Run, chosen: list[Example]) -> tuple[float, float]:
    """CPU-seconds of an epoch, and its share of padding."""
    model = model_of(name, run)
    trainee, weights, record = prepare(model, run), trainable(model.network), new_record()
    optimizer = torch.optim.AdamW(weights.values(), lr=run.learning_rate, weight_decay=run.weight_decay)
    started = time.process_time()
    for batches in steps_of(lengths_of(model, chosen), run.batch_size, 1, run.seed, 1):
        train_step(trainee, [[chosen[i] for i in batch] for batch in batches], record)
        optimizer.step()
        optimizer.zero_grad()
    seconds = time.process_time() - started
    return seconds, record["padding"] / (record["tokens"] + record["padding"])


def theirs(name: str, run: Run, chosen: list[Example], folder: Path) -> float:
    """CPU-seconds of the trainer's epoch."""
    model = model_of(name, run)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=1,
        per_device_train_batch_size=2 * run.batch_size,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        lr_scheduler_type="constant",
        optim="adamw_torch",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    loss = TripletLoss(model.network, TripletDistanceMetric.COSINE, run.margin)
    trainer = Trainer(model=model.network, args=arguments, train_dataset=triplets(chosen), loss=loss)
    started = time.process_time()
    trainer.train()
    return time.process_time() - started


def without_datasets() -> None:
    """Lets the trainer take `Rows`."""
    trainer_module.is_training_available = lambda: True
    trainer_module.Dataset = Rows
    for absent in ("DatasetDict", "IterableDataset", "IterableDatasetDict"):
        setattr(trainer_module, absent, type(absent, (), {}))


def row(name: str, folder: Path) -> str:
    run = Run(base=name, batch_size=BATCH)
    chosen = examples(folder, EXAMPLES[name])
    mine, peer = [], []
    for _ in range(2):
        seconds, padding = ours(name, run, chosen)
        mine.append(seconds)
        peer.append(theirs(name, run, chosen, folder))
    a, b, count = min(mine), min(peer), len(chosen)
    return f"| {name} | {count} | {count / a:.1f} | {count / b:.1f} | {b / a:.2f} | {100 * padding:.0f} |"


def main() -> None:
    torch.set_num_threads(1)
    without_datasets()
    with tempfile.TemporaryDirectory() as name:
        rows = [row(model, Path(name)) for model in EXAMPLES]
    text = "\n".join(
        [
            "# Finetuning",
            "",
            describe(),
            "",
            f"One epoch in steps of {BATCH} examples (two triplets each) of four constructions, on one thread: ours, and",
            "SentenceTransformerTrainer with TripletLoss (cosine, the same margin, LoRA and optimizer), in turn, the better of two",
            "rounds each, in CPU-seconds. The trainer's data set is a list in place of `datasets.Dataset`.",
            "",
            "| model | examples | ours, examples/s | trainer, examples/s | times faster | our padding, % |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            f"Goal: at least {GOAL} times faster.",
        ]
    )
    (REPOSITORY / "benchmarks/finetuning.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
