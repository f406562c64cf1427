"""Scores of the single-object measure, and its table: is the image of one object closest to its own phrase?

All comparisons are made between float32 cosines, equal phrases have equal cosines, and a tie is wrong, as in SABER's
multiple choice. The object alone is right when the closest phrase of all that hold it is strictly above every phrase of
another object; the attribute alone likewise. Both are right exactly when the phrase is.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..config.scoring import Tables
from ..errors import UserError
from ..files import csv_text, write_text
from ..statistics import Bootstrap, Estimate, bootstrap, interval, paired_difference, percent
from ..tables import NAMINGS, PHRASES, SINGLE_OBJECTS, phrase_id, read_embeddings, read_table, write_table
from .scoring import similarity_blocks
from .tabulate import COMBINATIONS

MEASURES = ("top_1", "top_5", "object", "attribute")
TOP = 5
ENDS = ("", "_low", "_high")
HEADER = [
    *("model", "combinations", "images"),
    *(measure + end for measure in MEASURES for end in ENDS),
    "base",
    *(f"{measure}_difference{end}" for measure in MEASURES for end in ENDS),
    *(f"top_1_kept{end}" for end in ENDS),
]


def score_single_objects(scenes: Path, phrases: Path, texts: Path, images: Path, output: Path) -> None:
    """Scores one model and writes the table NAMINGS.

    texts, images: its embeddings of all phrases and of the scenes' images. Raises UserError for tables that are missing or
    broken or do not belong together, and for texts and images that share no space.
    """
    scene_table, phrase_table = read_table(SINGLE_OBJECTS, scenes), read_table(PHRASES, phrases)
    pairs = [(b["attribute"], b["object"]) for (b,) in scene_table["bindings"].to_pylist()]
    ids = phrase_table["phrase"].to_pylist()
    row_of = {phrase: row for row, phrase in enumerate(ids)}
    if unknown := [pair for pair in pairs if phrase_id(*pair) not in row_of]:
        raise UserError(f"{phrases}: has no phrase of {' '.join(unknown[0])}; delete it and {scenes}, and run again")
    gallery, queries = _embeddings(texts, ids), _embeddings(images, scene_table["scene"].to_pylist())
    if gallery.shape[1] != queries.shape[1]:
        raise UserError(
            f"{texts} has {gallery.shape[1]} dimensions and {images} has {queries.shape[1]}: "
            "text and images of one model must share one space"
        )
    own = np.array([row_of[phrase_id(*pair)] for pair in pairs])
    words = {
        name: np.unique(phrase_table[name].to_pylist(), return_inverse=True)[1] for name in ("object", "attribute")
    }
    named = name_images(queries, gallery, own, words["object"], words["attribute"])
    named["nearest"] = [ids[row] for row in named["nearest"]]
    write_table(NAMINGS, {"scene": scene_table["scene"], "held_out": scene_table["held_out"], **named}, output)


def _embeddings(path: Path, ids: list[str]) -> np.ndarray:
    """(n_items, dimensions) float32, in the order of the ids."""
    items, matrix = read_embeddings(path)
    if items != ids:
        raise UserError(f"{path}: embeddings of other items than the tables of single objects; delete it and run again")
    return matrix


def name_images(
    images: np.ndarray, phrases: np.ndarray, own: np.ndarray, objects: np.ndarray, attributes: np.ndarray
) -> dict[str, np.ndarray]:
    """What each image is called, by the name of the column of NAMINGS.

    images: (n_images, dimensions) float32; phrases: (n_phrases, dimensions) float32; both of unit norm. own: (n_images,)
    row of the image's own phrase. objects, attributes: (n_phrases,) number of the word that the phrase holds.
    """
    parts = []
    for rows, similarities in similarity_blocks(images, phrases):
        right = own[rows]
        at_right = np.take_along_axis(similarities, right[:, None], axis=1)
        parts.append(
            {
                # Its own place counts, too; whatever is not strictly below stands above, and so does everything beside a NaN.
                "rank": (~(similarities < at_right)).sum(axis=1),
                "object_right": _is_above(similarities, objects == objects[right][:, None]),
                "attribute_right": _is_above(similarities, attributes == attributes[right][:, None]),
                "nearest": similarities.argmax(axis=1),
            }
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _is_above(similarities: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether the best of the right phrases is strictly above all others. Both (n_images, n_phrases); returns (n_images,)."""
    lowest = similarities.dtype.type(-np.inf)
    best = np.where(right, similarities, lowest).max(axis=1)
    return best > np.where(right, lowest, similarities).max(axis=1)


def tabulate_single_objects(
    scores: dict[str, Path], phrases: Path, settings: Tables, bases: dict[str, str], output: Path
) -> None:
    """Writes the table: of each model and kind of combination the shares of images that are named right, in percent.

    scores: table NAMINGS of each model. bases: of each finetuned model the embedder that was finetuned: its row has the
    paired differences to it, and how much of its top-1 is kept. Intervals are bootstrapped over the images.
    Raises UserError when no model is given, or tables are broken or of other images.
    """
    if not scores:
        raise UserError(
            "models: none of them embeds both images and texts, so none can name single objects; add one, such as nano"
        )
    held_out, values = read_namings(scores)
    present = [index for index in range(len(COMBINATIONS)) if (held_out == index).any()]
    strata = np.searchsorted(present, held_out)
    sample = bootstrap(values, strata, [None] * len(strata), settings.bootstrap_samples, settings.seed)
    models = list(scores)
    rows = [
        _row(name, COMBINATIONS[index], int((held_out == index).sum()), cells)
        for name, cells in [("chance", _chance(phrases))]
        for index in present
    ]
    for number, model in enumerate(models):
        of_model = _part(sample, number)
        estimates = [interval(of_model, settings.confidence)]
        if base := bases.get(model):
            of_base = _part(sample, models.index(base))
            estimates.append(interval(paired_difference(of_model, of_base), settings.confidence))
            estimates.append(interval(_kept(of_model, of_base), settings.confidence))
        for stratum, index in enumerate(present):
            own, *others = [_cells(estimate, stratum) for estimate in estimates]
            cells = [*own, base or "", *(cell for part in others for cell in part)]
            rows.append(_row(model, COMBINATIONS[index], int((strata == stratum).sum()), cells))
    write_text(output, csv_text(HEADER, rows))


def read_namings(scores: dict[str, Path]) -> tuple[np.ndarray, np.ndarray]:
    """(n_images,) whether each image's combination was held out, as 0 or 1, and (n_images, n_models, n_measures) shares.

    Raises UserError when the models named different images.
    """
    tables = [(path, read_table(NAMINGS, path)) for path in scores.values()]
    first, reference = tables[0]
    for path, table in tables:
        if table.select(["scene", "held_out"]) != reference.select(["scene", "held_out"]):
            raise UserError(f"{path}: scores of other images than {first}; delete both and run again")
    values = [
        np.stack(
            [
                *((table["rank"].to_numpy() <= top).astype(float) for top in (1, TOP)),
                *(table[name].cast("float64").to_numpy() for name in ("object_right", "attribute_right")),
            ],
            axis=1,
        )
        for _, table in tables
    ]
    return reference["held_out"].cast("int64").to_numpy(), np.stack(values, axis=1)


def _part(sample: Bootstrap, model: int) -> Bootstrap:
    """One model's: (n_strata, n_measures)."""
    return Bootstrap(sample.means[:, model], sample.resampled[:, :, model])


def _kept(model: Bootstrap, base: Bootstrap) -> Bootstrap:
    """The share of the base's top-1 that the model keeps, resample by resample: (n_strata, 1); NaN where the base has none."""
    shares = []
    for part, whole in zip(model, base, strict=True):
        part, whole = part[..., :1], whole[..., :1]
        shares.append(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))
    return Bootstrap(*shares)


def _chance(phrases: Path) -> list[str]:
    """Cells of a model that ranks the phrases at random, without intervals."""
    table = read_table(PHRASES, phrases)
    n_phrases = len(table)
    n_objects, n_attributes = (len(table[name].unique()) for name in ("object", "attribute"))
    shares = (1 / n_phrases, min(TOP / n_phrases, 1), 1 / n_objects, 1 / n_attributes)
    return [cell for share in shares for cell in (percent(share), "", "")]


def _cells(estimate: Estimate, stratum: int) -> list[str]:
    """Value, low and high of every measure of one stratum."""
    return [percent(float(part[stratum, measure])) for measure in range(estimate.mean.shape[1]) for part in estimate]


def _row(model: str, combinations: str, images: int, cells: Sequence[str]) -> list:
    row = [model, combinations, images, *cells]
    return row + [""] * (len(HEADER) - len(row))
