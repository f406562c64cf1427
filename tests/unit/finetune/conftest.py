"""Tiny models and small tables that the tests of finetuning share."""

from pathlib import Path

import pytest
import tiny_models
import torch
from bindbench.config.embedders import Embedder
from bindbench.config.finetuning import Run
from bindbench.tables import TRIPLETS, write_table
from synthetic_triplets import examples_table, rows


@pytest.fixture(scope="session", autouse=True)
def _one_thread(one_thread):
    """Every test here computes with torch."""


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Embedder:
    """Qwen3-VL-Embedding in miniature, with the instruction that all inputs get."""
    folder = tiny_models.qwen3_vl(tmp_path_factory.mktemp("tiny") / "qwen3-vl")
    return Embedder(path=str(folder), instruction="Represent the user's input.", batch_size=16)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> Embedder:
    """MiniLM in miniature: a BertModel of three layers with mean pooling, and with the dropout that it was trained with."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny") / "bert"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tiny_models.byte_level_bpe(("<pad>", "<unk>")), pad_token="<pad>", unk_token="<unk>"
    )
    shape = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 48}
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(tokenizer), initializer_range=0.2, **shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    modules = [Transformer(str(folder)), Pooling(32, pooling_mode="mean"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder.with_name("encoder")))
    return Embedder(path=str(folder.with_name("encoder")), modalities=("text",), batch_size=16)


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> tuple[Path, Path]:
    """Training and validation tables of 30 and 10 examples."""
    folder = tmp_path_factory.mktemp("tables")
    paths = folder / "train.parquet", folder / "validation.parquet"
    for path, count, first in zip(paths, (10, 3), (0, 10), strict=True):
        kinds = ("pair_swap", "predicative", "triple_bind_cycle")
        write_table(TRIPLETS, examples_table([row for kind in kinds for row in rows(kind, count, first=first)]), path)
    return paths


@pytest.fixture
def run_of():
    def run(**settings) -> Run:
        return Run(**{"base": "tiny", "batch_size": 5, "learning_rate": 1e-3, "validate_every": 0} | settings)

    return run
