"""What each stage writes on small fixed inputs, reduced to numbers and digests.

    python tests/support/stage_outputs.py      writes tests/data/stage_outputs.json, after a version was bumped

tests/unit/foundation/test_stage_versions.py compares: another output needs another version of the stage in
bindbench.config.versions, or users would keep stale results (and a version that moves for nothing runs paid work again).
Numbers that depend on a machine's arithmetic are kept as numbers and compared with a tolerance, all else as a digest.
"""

import json
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = REPOSITORY / "tests/data/stage_outputs.json"
sys.path[:0] = [str(REPOSITORY / "workflow"), str(REPOSITORY / "tests/support")]

import multibind_outputs  # noqa: E402
import numpy as np  # noqa: E402
from bindbench.config.embedders import DEFAULT_EMBEDDERS  # noqa: E402
from bindbench.config.questions import PALETTE, Questions  # noqa: E402
from bindbench.config.scenes import Scenes  # noqa: E402
from bindbench.config.scoring import Figures, Tables  # noqa: E402
from bindbench.config.versions import VERSIONS  # noqa: E402
from bindbench.files import canonical_json, sha256, sha256_of_file  # noqa: E402
from bindbench.tables import (  # noqa: E402
    ATTENTION_MARGINS,
    IMAGE_TRIPLETS,
    IMAGES,
    NAMINGS,
    NANO_SCENES,
    PHRASES,
    QUESTIONS,
    SCENES,
    SCORES,
    SINGLE_OBJECTS,
    TEXT_SETS,
    TRIPLET_SCORES,
    TRIPLETS,
    embeddings_table,
    phrase_id,
    read_table,
    write_table,
)
from bindbench.vocabulary import read_vocabulary  # noqa: E402

LISTS = REPOSITORY / "resources/vocabulary"
SMALL = Questions(seed=5, object_counts=(2, 3, 4), independent=2, nested=2)


def outputs(shapes: Path, folder: Path) -> dict[str, dict]:
    """Stage -> {"digest": ..., "numbers": [...]} (either may be missing).

    shapes: JSON of the Noto shapes. folder: an empty one.
    """
    vocabulary = read_vocabulary(LISTS / "objects.csv", LISTS / "attributes.csv", PALETTE)
    questions, scenes = _questions(vocabulary, folder)
    return {
        "questions": {"digest": sha256(canonical_json([questions, scenes]))},
        "shapes": {"digest": sha256_of_file(shapes)},
        "scenes": {"numbers": _scenes(vocabulary, scenes, shapes, folder)},
        "bought_scenes": {"digest": _bought_scenes(scenes)},
        "screening": {"digest": _screening(scenes, folder)},
        "embedding": {"numbers": _embedding(scenes, folder)},
        "scoring": {"numbers": _scoring(folder)},
        "tables": {"digest": _tables(vocabulary, folder)},
        "single_objects": {"digest": _single_objects(vocabulary, folder)},
        "single_object_scores": {"digest": _single_object_scores(folder)},
        "figures": {"digest": _figures(folder)},
        "triplets": {"digest": _triplets(folder)},
        "triplet_splits": {"digest": _triplet_splits(vocabulary, folder)},
        "triplet_card": {"digest": _triplet_card(vocabulary, folder)},
        "triplet_accuracy": {"digest": _triplet_accuracy(folder)},
        "ablations": {"digest": _ablations(folder)},
        "image_triplets": {"digest": _image_triplets(vocabulary, folder)},
        "finetuning": {"numbers": _finetuning(folder)},
        "nano_scenes": _nano_scenes(vocabulary, shapes, folder),
        "nano": {"numbers": _nano(vocabulary, folder)},
        "attention": {"numbers": _attention(folder)},
        "attention_table": {"digest": _attention_table(folder)},
        **multibind_outputs.outputs(folder / "multibind"),
    }


def _questions(vocabulary, folder: Path):
    from bindbench.saber.questions import write_questions

    write_questions(vocabulary, SMALL, folder / "questions.parquet", folder / "scenes.parquet")
    return read_table(QUESTIONS, folder / "questions.parquet").to_pylist(), read_table(
        SCENES, folder / "scenes.parquet"
    ).to_pylist()


def _scenes(vocabulary, scenes: list[dict], shapes: Path, folder: Path) -> list[int]:
    """Two images as 12 x 12 thumbnails: grey levels, so that a machine's rounding does not matter."""
    from bindbench.scenes.images import render_shard
    from bindbench.scenes.relief import build_reliefs
    from PIL import Image

    rows = scenes[-2:]
    wanted = [vocabulary.objects[binding["object"]].shape for row in rows for binding in row["bindings"]]
    build_reliefs(sorted(set(wanted)), shapes, folder / "reliefs.bin", 1)
    render_shard(rows, vocabulary, folder / "reliefs.bin", Scenes(image_px=240), folder / "images.parquet", 0)
    numbers = []
    for row in read_table(IMAGES, folder / "images.parquet").to_pylist():
        image = Image.open(folder / row["path"]).convert("RGB").resize((12, 12), Image.Resampling.BOX)
        numbers += np.asarray(image).ravel().tolist()
    return numbers


def _bought_scenes(scenes: list[dict]) -> str:
    """The keys of the requests: another key would be bought again."""
    from bindbench.saber.bought_images import scene_request

    settings = Scenes(renderer="openai", image_px=1024)
    return sha256("".join(scene_request(row, settings, attempt).key for row in scenes[:6] for attempt in (0, 1)))


def _screening(scenes: list[dict], folder: Path) -> str:
    """One scene rejected, one open, of a generator's images."""
    from bindbench.config.screening import Screening
    from bindbench.review.journal import verdict_line
    from bindbench.saber.screening import collect_verdicts, screen_questions

    drawn = {"path": "", "flipped": False, "renderer": "openai/x"}
    images = {scene["scene"]: sha256(scene["scene"]) for scene in scenes}
    write_table(IMAGES, [{"scene": s, "sha256": d, **drawn} for s, d in images.items()], folder / "bought.parquet")
    names = list(images)
    lines = [verdict_line(name, images[name], "accepted", None, None) for name in names[1:]]
    lines.append(verdict_line(names[7], images[names[7]], "rejected", "extra object", None))
    (folder / "journal.jsonl").write_text("".join(canonical_json(line) + "\n" for line in lines))
    collect_verdicts([folder / "bought.parquet"], folder / "journal.jsonl", folder / "verdicts.parquet")
    paths = [folder / name for name in ("questions.parquet", "scenes.parquet", "verdicts.parquet")]
    outputs = [folder / name for name in ("kept_questions.parquet", "kept_scenes.parquet", "counts.json")]
    screen_questions(*paths, Screening(), *outputs)
    kept = read_table(QUESTIONS, outputs[0])["question"].to_pylist()
    return sha256(canonical_json([kept, json.loads(outputs[2].read_text())]))


def _embedding(scenes: list[dict], folder: Path) -> list[float]:
    from bindbench.embedders.embed import embed_texts

    texts = {row["scene"]: row["caption"] for row in scenes[:3]}
    embed_texts(DEFAULT_EMBEDDERS["wordllama"], "wordllama", texts, folder / "cache", folder / "texts.parquet", 0)
    return (
        np.concatenate(read_table(embeddings_table(256), folder / "texts.parquet")["embedding"].to_pylist())
        .round(4)
        .tolist()
    )


def _scoring(folder: Path) -> list[float]:
    """Random vectors that lean towards each scene's bindings, so that every column takes several values."""
    from bindbench.saber.scoring import score_saber

    scenes = read_table(SCENES, folder / "scenes.parquet").to_pylist()
    generator = np.random.Generator(np.random.PCG64(3))
    directions: dict = {}
    vectors = []
    for scene in scenes:
        total = 0.6 * generator.normal(size=16)
        for binding in scene["bindings"]:
            pair = binding["attribute"], binding["object"]
            if pair not in directions:
                directions[pair] = generator.normal(size=16)
            total = total + directions[pair]
        vectors.append((total / np.linalg.norm(total)).astype(np.float32))
    rows = [{"item": scene["scene"], "embedding": vector} for scene, vector in zip(scenes, vectors, strict=True)]
    write_table(embeddings_table(16), rows, folder / "fixed.parquet")
    score_saber(
        folder / "questions.parquet",
        folder / "scenes.parquet",
        folder / "fixed.parquet",
        None,
        folder / "scores.parquet",
    )
    numbers = []
    for row in read_table(SCORES, folder / "scores.parquet").to_pylist():
        numbers += [
            round(float(v), 4) for v in [*row["similarities"], *(v for v in row.values() if isinstance(v, int | float))]
        ]
    return numbers


def _tables(vocabulary, folder: Path) -> str:
    from bindbench.saber.tabulate import tabulate_saber

    reference = REPOSITORY / "resources/reference/saber_paper.csv"
    paths = folder / "questions.parquet", folder / "scenes.parquet"
    (folder / "tables").mkdir()
    settings = Tables(bootstrap_samples=100)
    tabulate_saber({"fixed": folder / "scores.parquet"}, *paths, vocabulary, settings, reference, folder / "tables")
    return sha256("".join(path.read_text() for path in sorted((folder / "tables").iterdir())))


def _single_objects(vocabulary, folder: Path) -> str:
    from bindbench.config.single_objects import SingleObjects
    from bindbench.saber.single_objects import write_single_objects

    paths = folder / "single_scenes.parquet", folder / "phrases.parquet"
    write_single_objects(vocabulary, SingleObjects(seen=12, held_out=8), *paths)
    tables = zip((SINGLE_OBJECTS, PHRASES), paths, strict=True)
    return sha256(canonical_json([read_table(table, path).to_pylist() for table, path in tables]))


def _single_object_scores(folder: Path) -> str:
    """Vectors of whole numbers, half of the images next to their phrase: no machine's rounding decides anything."""
    from bindbench.saber.naming import score_single_objects, tabulate_single_objects

    scenes = read_table(SINGLE_OBJECTS, folder / "single_scenes.parquet").to_pylist()
    phrases = read_table(PHRASES, folder / "phrases.parquet")["phrase"].to_pylist()
    generator = np.random.Generator(np.random.PCG64(6))
    text = generator.choice([-1.0, 1.0], (len(phrases), 16)).astype(np.float32)
    own = [phrases.index(phrase_id(b["attribute"], b["object"])) for (b,) in (scene["bindings"] for scene in scenes)]
    image = np.where(np.arange(len(own))[:, None] % 2, text[own], text[::-1][own])
    paths = [folder / f"single_{kind}.parquet" for kind in ("text", "image", "scores")]
    for path, items, vectors in ((paths[0], phrases, text), (paths[1], [row["scene"] for row in scenes], image)):
        rows = [{"item": item, "embedding": vector / 4} for item, vector in zip(items, vectors, strict=True)]
        write_table(embeddings_table(16), rows, path)
    score_single_objects(folder / "single_scenes.parquet", folder / "phrases.parquet", *paths)
    settings, bases = Tables(bootstrap_samples=100), {"tuned": "base"}
    scores = dict.fromkeys(("base", "tuned"), paths[2])
    tabulate_single_objects(scores, folder / "phrases.parquet", settings, bases, folder / "single_objects.csv")
    return sha256(
        canonical_json(read_table(NAMINGS, paths[2]).to_pylist()) + (folder / "single_objects.csv").read_text()
    )


def _figures(folder: Path) -> str:
    """The SVG without matplotlib's name and version."""
    from bindbench.figures.plots import plot_saber

    (folder / "figures").mkdir()
    plot_saber(folder / "tables", folder / "figures", Figures())
    return sha256("".join(path.read_text() for path in sorted((folder / "figures").glob("*.svg"))))


def _triplets(folder: Path) -> str:
    """A few sentences of the grammar, and the keys of a model's requests: another key would be bought again."""
    from bindbench.config.triplets import Generation
    from bindbench.triplets.building import begin_round, build_shard, read_state, request_number
    from bindbench.triplets.constructions import CONSTRUCTIONS
    from bindbench.triplets.controls import read_controls

    controls = read_controls(REPOSITORY / "resources/triplets")
    texts = []
    for construction in CONSTRUCTIONS:
        paths = [folder / f"{construction}.{kind}" for kind in ("examples", "rejects", "state", "record")]
        build_shard(construction, 4, None, Generation(), None, *paths)
        texts += [row for path in paths[2:] for row in path.read_text().splitlines()]
        texts += read_table(TRIPLETS, paths[0])["positive"].to_pylist()
        for backend in ("openai", "google-genai"):
            settings, state = Generation(backend=backend), read_state(None, construction)
            begin_round(state, controls, settings)
            texts += [request_number(n, construction, state.guidance, controls, settings)[0].key for n in range(2)]
    return sha256("\n".join(texts))


def _made_up_triplets(folder: Path) -> list[Path]:
    """Tables that do not follow the grammar, so that only a change of the stage itself shows."""
    from bindbench.triplets.constructions import CONSTRUCTIONS
    from synthetic_triplets import rows

    paths = [folder / f"{construction}.made_up" for construction in CONSTRUCTIONS]
    for construction, path in zip(CONSTRUCTIONS, paths, strict=True):
        made = json.loads(json.dumps(rows(construction, 30)).replace("mug rack", "rack"))
        write_table(TRIPLETS, made, path)
    return paths


def _triplet_splits(vocabulary, folder: Path) -> str:
    from bindbench.config.triplets import Splits
    from bindbench.triplets.splits import write_sets, write_splits

    (folder / "splits").mkdir()
    write_splits(_made_up_triplets(folder), Splits(), folder / "splits")
    write_sets(folder / "splits/train.parquet", vocabulary, Splits(), folder / "splits")
    tables = {path.stem: read_table(TRIPLETS, path).to_pylist() for path in (folder / "splits").glob("*.parquet")}
    return sha256(canonical_json([tables, json.loads((folder / "splits/sizes.json").read_text())]))


def _triplet_card(vocabulary, folder: Path) -> str:
    from bindbench.triplets.card import write_card
    from bindbench.triplets.summary import summarise
    from synthetic_triplets import FAMILIES, small_set

    examples, rejects, splits = small_set(20)
    write_card(summarise(examples, rejects, splits, FAMILIES, vocabulary), folder / "README.md")
    return sha256((folder / "README.md").read_text())


def _triplet_accuracy(folder: Path) -> str:
    from bindbench.triplets.accuracy import NEGATIVES, tabulate_accuracy

    generator = np.random.Generator(np.random.PCG64(4))
    rows = [
        {"example": f"{i}", "split": "test", "construction": ("pair_swap", "predicative")[i % 2], "positive": 0.5}
        | {name: float(np.round(generator.normal(0.45, 0.1), 2)) for name in NEGATIVES}
        for i in range(60)
    ]
    write_table(TRIPLET_SCORES, rows, folder / "triplet_scores.parquet")
    settings = Tables(bootstrap_samples=100)
    tabulate_accuracy({"fixed": folder / "triplet_scores.parquet"}, settings, folder / "accuracy.csv")
    return sha256((folder / "accuracy.csv").read_text())


def _image_triplets(vocabulary, folder: Path) -> str:
    from bindbench.config.image_triplets import ImageTriplets
    from bindbench.saber.image_triplets import scenes_of, write_image_triplets

    paths = folder / "image_train.parquet", folder / "image_validation.parquet"
    settings = ImageTriplets(examples=6, validation_examples=3)
    write_image_triplets(vocabulary, settings, folder / "scenes.parquet", *paths)
    return sha256(canonical_json([scenes_of(read_table(IMAGE_TRIPLETS, path).to_pylist()) for path in paths]))


def _ablations(folder: Path) -> str:
    """One table of two models with the same scores on SABER and others on triplets."""
    from bindbench.config.ablations import AblationPlan
    from bindbench.saber.ablations import tabulate_ablations

    rows = read_table(TRIPLET_SCORES, folder / "triplet_scores.parquet").to_pylist()
    better = [row | {"positive": row["positive"] + 0.05} for row in rows]
    write_table(TRIPLET_SCORES, better, folder / "better_triplets.parquet")
    plan = AblationPlan.model_validate(
        {
            "tables": [{"name": "data", "title": "Data", "baseline": "fixed", "models": ["better"]}],
            "runs": {"fixed": {"base": "minilm"}, "better": {"base": "minilm", "data": "random"}},
        }
    )
    tabulate_ablations(
        *(plan, dict.fromkeys(("fixed", "better"), folder / "scores.parquet"), folder / "questions.parquet"),
        {"fixed": folder / "triplet_scores.parquet", "better": folder / "better_triplets.parquet"},
        *(Tables(bootstrap_samples=100), REPOSITORY / "resources/reference/saber_paper.csv"),
        *(folder / "ablations.csv", folder / "ablations.html"),
    )
    return sha256((folder / "ablations.csv").read_text() + (folder / "ablations.html").read_text())


def _finetuning(folder: Path) -> list[float]:
    """The losses of three steps of MiniLM, and the accuracy before and after."""
    from bindbench.config.finetuning import Run
    from bindbench.finetune.training import finetune

    table = folder / "pair_swap.made_up"
    run = Run(base="minilm", examples=12, batch_size=4, learning_rate=1e-2, validation_examples=8)
    finetune(run, DEFAULT_EMBEDDERS["minilm"], "recorded", table, table, folder / "finetuned", "cpu", 1)
    record = json.loads((folder / "finetuned/record.json").read_text())
    lines = (folder / "finetuned/log.csv").read_text().splitlines()[1:]
    losses = [float(line.split(",")[1]) for line in lines]
    return [*losses, record["validation"]["before"]["loss"], record["validation"]["after"]["loss"]]


def _nano_scenes(vocabulary, shapes: Path, folder: Path) -> dict:
    """Which scenes are drawn; of a small one the tokens' labels, and both views as 6 x 6 thumbnails."""
    from bindbench.nano.scenes import draw_scene, render_nano_scenes
    from bindbench.scenes.relief import build_reliefs
    from PIL import Image

    scenes = [draw_scene(vocabulary, 0, number) for number in range(60)]
    number = next(number for number, scene in enumerate(scenes) if len(scene.bindings) == 2)
    wanted = {vocabulary.objects[thing].shape for _, thing in scenes[number].bindings}
    build_reliefs(sorted(wanted), shapes, folder / "nano_reliefs.bin", 1)
    paths = folder / "nano.npy", folder / "nano.parquet"
    render_nano_scenes(vocabulary, folder / "nano_reliefs.bin", 0, range(number, number + 1), *paths)
    numbers = []
    for view in np.load(paths[0])[0]:
        numbers += np.asarray(Image.fromarray(view).resize((6, 6), Image.Resampling.BOX)).ravel().tolist()
    drawn = [[list(scene.bindings), scene.looks] for scene in scenes]
    return {
        "digest": sha256(canonical_json([drawn, read_table(NANO_SCENES, paths[1]).to_pylist()])),
        "numbers": numbers,
    }


def _nano(vocabulary, folder: Path) -> list[float]:
    """Which scenes and tokens are drawn, and the losses of a few steps on images of noise."""
    import torch
    from bindbench.config.nano import Nano
    from bindbench.nano.model import new_model, train_tokenizer
    from bindbench.nano.pretraining import Data, Trainee, pretrain
    from bindbench.nano.scenes import draw_scene
    from bindbench.nano.texts import tokenizer_texts

    torch.set_num_threads(1)
    generator = np.random.Generator(np.random.PCG64(2))
    scenes = [draw_scene(vocabulary, 0, number) for number in range(60)]
    pixels = generator.integers(0, 256, (60, 2, 160, 160, 3), np.uint8)
    tokens = [[generator.integers(-1, len(s.bindings), 25).tolist() for _ in (0, 1)] for s in scenes]
    sentences = [("a red car and an icy cup", "By the gate stood a red car and an icy cup.")] * 3
    data = Data(vocabulary, [pixels], [scene.bindings for scene in scenes], tokens, sentences)
    tokenizer = train_tokenizer(tokenizer_texts(vocabulary, [text for pair in sentences for text in pair]))
    torch.manual_seed(0)
    steps = {
        "words_steps": 2,
        "words_batch": 4,
        "joint_steps": 2,
        "joint_batch": 4,
        "log_every": 1,
        "validate_every": 9,
    }
    settings = Nano(**steps)
    rows = pretrain(Trainee(new_model(tokenizer)), tokenizer, data, data, settings, {}, folder / "nano", False)
    drawn = int(sha256(canonical_json([[list(s.bindings), s.looks] for s in scenes]))[:6], 16)
    return [drawn, len(tokenizer), *(round(float(row[3]), 2) for row in rows)]


def _attention(folder: Path) -> list[float]:
    """Which captions are drawn and the margins of MiniLM on them; the made-up positives hold no distractors."""
    from bindbench.finetune.attention_sets import text_sets, write_margins

    for split in ("train", "test"):
        rows = read_table(TRIPLETS, folder / f"splits/{split}.parquet").to_pylist()
        write_table(TRIPLETS, [row | {"distractors": []} for row in rows], folder / f"read_{split}.parquet")
    paths = folder / "read_train.parquet", folder / "read_test.parquet", folder / "scenes.parquet"
    write_margins(
        DEFAULT_EMBEDDERS["minilm"], "minilm", text_sets(*paths, 0, 4), folder / "margins.parquet", 0, "cpu", 1
    )
    return (
        read_table(ATTENTION_MARGINS, folder / "margins.parquet")["margin"].to_numpy().astype(float).round(6).tolist()
    )


def _attention_table(folder: Path) -> str:
    """The table and its figure, of margins that are made up."""
    from bindbench.figures.attention_plots import plot_attention
    from bindbench.finetune.attention_sets import tabulate_attention

    generator = np.random.Generator(np.random.PCG64(5))
    paths = {}
    for model, n_layers in (("deep", 4), ("flat", 2)):
        keys = [(s, f"{c}", n + 1) for s in TEXT_SETS for c in range(20) for n in range(n_layers)]
        rows = [dict(zip(("text_set", "caption", "layer"), key, strict=True)) for key in keys]
        margins = generator.normal(0.02, 0.01, len(rows)).round(4)
        rows = [row | {"model": model, "margin": float(margin)} for row, margin in zip(rows, margins, strict=True)]
        paths[model] = folder / f"{model}.parquet"
        write_table(ATTENTION_MARGINS, rows, paths[model])
    tabulate_attention(paths, Tables(bootstrap_samples=100), folder / "attention.csv")
    plot_attention(folder / "attention.csv", folder, Figures())
    return sha256((folder / "attention.csv").read_text() + (folder / "attention.svg").read_text())


def fetched_shapes(folder: Path) -> Path:
    from bindbench.scenes.shapes import fetch_shapes

    fetch_shapes(folder / "noto.json")
    return folder / "noto.json"


def main() -> None:
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        now = outputs(fetched_shapes(Path(first)), Path(second))
    record = {stage: {"version": VERSIONS[stage], **output} for stage, output in now.items()}
    RECORD.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(stage)}: {canonical_json(value)}" for stage, value in record.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"wrote {RECORD}")


if __name__ == "__main__":
    main()
