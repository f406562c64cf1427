"""`python -m bindbench COMMAND`: one command per rule, the same name. Parses, calls, reports errors; no logic here.

Settings come as the canonical JSON of the one section that a stage may read (`--config`); the rules pass it from params.
A user's mistake is one line on standard error and exit code 2.
"""

import argparse
import sys
from pathlib import Path

from . import __version__
from .config import load, stage_from_json
from .config.embedders import Embedder
from .config.questions import Questions, Vocabulary
from .config.scenes import Scenes
from .config.scoring import Figures, Tables
from .errors import UserError


def main(arguments: list[str] | None = None) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bindbench", description="The programs behind the rules of the workflow.")
    parser.add_argument("--version", action="version", version=f"bindbench {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, description, arguments, run in COMMANDS:
        command = commands.add_parser(name, help=description, description=description)
        for flags in arguments:
            command.add_argument(flags[0], **flags[1])
        command.set_defaults(run=run)
    return parser


def path(name: str, text: str, **more) -> tuple[str, dict]:
    return name, {"type": Path, "required": True, "help": text, **more}


def paths(name: str, text: str, **more) -> tuple[str, dict]:
    return path(name, text, nargs="+", **more)


def section(name: str, model: type, text: str) -> tuple[str, dict]:
    """Canonical JSON of a config section, parsed and checked."""
    return name, {
        "type": lambda value: stage_from_json(model, value),
        "required": True,
        "help": text,
        "metavar": "JSON",
    }


QUESTIONS = path("--questions", "table of questions")
SCENES = path("--scenes", "table of scenes")
VOCABULARY = section("--vocabulary", Vocabulary, "section vocabulary")
IMAGES = paths("--images", "tables of images, one for each shard")
SCORES = paths("--scores", "tables of scores, one for each model")
MODELS = ("--models", {"nargs": "+", "required": True, "help": "names of the models, in the order of --scores"})
VERSION = ("--version", {"type": int, "required": True, "help": "version of the stage, for the record"})


def _vocabulary(settings: Vocabulary):
    from .paths import resolve
    from .vocabulary import read_vocabulary

    return read_vocabulary(resolve(settings.objects), resolve(settings.attributes), settings.palette)


def check_config(options) -> None:
    load(options.files)


def sample_questions(options) -> None:
    from .saber.questions import write_questions

    write_questions(_vocabulary(options.vocabulary), options.config, options.questions, options.scenes)


def fetch_shapes(options) -> None:
    from .scenes.shapes import fetch_shapes

    fetch_shapes(options.shapes)


def build_reliefs(options) -> None:
    from .scenes.materials import check_vocabulary
    from .scenes.relief import build_reliefs

    vocabulary = _vocabulary(options.vocabulary)
    check_vocabulary(vocabulary)
    build_reliefs(
        [thing.shape for thing in vocabulary.objects.values()], options.shapes, options.reliefs, options.workers
    )


def render_scenes(options) -> None:
    from .scenes.images import render_shard
    from .tables import SCENES, read_table

    scenes = read_table(SCENES, options.scenes)
    size = options.config.shard_size
    rows = scenes.slice(options.shard * size, size).to_pylist()
    render_shard(
        rows, _vocabulary(options.vocabulary), options.reliefs, options.config, options.images, options.version
    )


def draw_contact_sheet(options) -> None:
    from .figures.sheets import write_contact_sheet

    write_contact_sheet(options.questions, options.scenes, options.images, options.sheet, options.config)


def embed_texts(options) -> None:
    from .embedders.embed import embed_texts
    from .tables import SCENES, read_table

    scenes = read_table(SCENES, options.scenes)
    texts = dict(zip(scenes["scene"].to_pylist(), scenes["caption"].to_pylist(), strict=True))
    embed_texts(
        options.config,
        options.model,
        texts,
        options.cache,
        options.embeddings,
        options.version,
        threads=options.threads,
    )


def embed_images(options) -> None:
    from .embedders.embed import embed_images
    from .tables import IMAGES, read_table

    items = [
        (row["scene"], manifest.parent / row["path"], row["sha256"])
        for manifest in options.images
        for row in read_table(IMAGES, manifest).select(["scene", "path", "sha256"]).to_pylist()
    ]
    embed_images(
        options.config,
        options.model,
        items,
        options.cache,
        options.embeddings,
        options.version,
        threads=options.threads,
    )


def score_saber(options) -> None:
    from .saber.scoring import score_saber

    score_saber(options.questions, options.scenes, options.texts, options.images, options.scores)


def tabulate_saber(options) -> None:
    import json

    from .manifest import write_manifest
    from .saber.tabulate import tabulate_saber

    scores = dict(zip(options.models, options.scores, strict=True))
    vocabulary = _vocabulary(options.vocabulary)
    tabulate_saber(
        scores, options.questions, options.scenes, vocabulary, options.config, options.reference, options.table2.parent
    )
    write_manifest(options.manifest, json.loads(options.behind), options.facts)


def plot_saber(options) -> None:
    from .figures.plots import plot_saber

    plot_saber(options.tables[0].parent, options.figures[0].parent, options.config)


def draw_answer_sheet(options) -> None:
    from .figures.sheets import write_answer_sheet

    scores = dict(zip(options.models, options.scores, strict=True))
    write_answer_sheet(options.questions, options.scenes, options.images, scores, options.sheet, options.config)


EMBED = [
    path("--embeddings", "table to write"),
    ("--model", {"required": True, "help": "name of the model, for messages and the record"}),
    path("--cache", "folder of the embedding cache"),
    ("--threads", {"type": int, "default": 0, "help": "CPU threads (0: all)"}),
    section("--config", Embedder, "the embedder's entry"),
    VERSION,
]

COMMANDS = [
    (
        "check-config",
        "Check config files; later ones override.",
        [("files", {"nargs": "+", "type": Path, "help": "YAML files"})],
        check_config,
    ),
    (
        "sample-questions",
        "Draw the questions of SABER and the scenes of their queries and candidates.",
        [QUESTIONS, SCENES, VOCABULARY, section("--config", Questions, "section questions")],
        sample_questions,
    ),
    ("fetch-shapes", "Fetch the Noto shapes.", [path("--shapes", "JSON file to write")], fetch_shapes),
    (
        "build-reliefs",
        "Turn the vocabulary's shapes into reliefs.",
        [
            path("--shapes", "JSON file of the Noto shapes"),
            path("--reliefs", "file to write"),
            ("--workers", {"type": int, "default": 1, "help": "processes"}),
            VOCABULARY,
        ],
        build_reliefs,
    ),
    (
        "render-scenes",
        "Render one shard of the scenes.",
        [
            SCENES,
            ("--shard", {"type": int, "required": True, "help": "index of the shard"}),
            path("--reliefs", "file of the reliefs"),
            path("--images", "table to write; the images go into a folder beside it"),
            VOCABULARY,
            section("--config", Scenes, "section scenes"),
            VERSION,
        ],
        render_scenes,
    ),
    (
        "draw-contact-sheet",
        "Show questions: query and candidates side by side.",
        [
            QUESTIONS,
            SCENES,
            IMAGES,
            path("--sheet", "HTML file to write"),
            section("--config", Figures, "section figures"),
        ],
        draw_contact_sheet,
    ),
    ("embed-texts", "Embed the captions of the scenes.", [SCENES, *EMBED], embed_texts),
    ("embed-images", "Embed the images of the scenes.", [IMAGES, *EMBED], embed_images),
    (
        "score-saber",
        "Score one model's embeddings.",
        [
            QUESTIONS,
            SCENES,
            path("--texts", "embeddings of the captions", required=False),
            path("--images", "embeddings of the images", required=False),
            path("--scores", "table to write"),
        ],
        score_saber,
    ),
    (
        "tabulate-saber",
        "Make the tables of SABER from the scores of all models.",
        [
            SCORES,
            MODELS,
            paths("--facts", "records beside the embeddings"),
            QUESTIONS,
            SCENES,
            path("--reference", "CSV of the paper's known values"),
            path("--table2", "Table 2 to write; the others go beside it"),
            path("--manifest", "manifest to write"),
            VOCABULARY,
            section("--config", Tables, "section tables"),
            (
                "--behind",
                {"required": True, "metavar": "JSON", "help": "the settings behind the tables, for the manifest"},
            ),
        ],
        tabulate_saber,
    ),
    (
        "plot-saber",
        "Draw the figures of SABER from its tables.",
        [
            paths("--tables", "CSV tables"),
            paths("--figures", "figures to write"),
            section("--config", Figures, "section figures"),
        ],
        plot_saber,
    ),
    (
        "draw-answer-sheet",
        "Show what each model ranked first, question by question.",
        [
            SCORES,
            MODELS,
            QUESTIONS,
            SCENES,
            IMAGES,
            path("--sheet", "HTML file to write"),
            section("--config", Figures, "section figures"),
        ],
        draw_answer_sheet,
    ),
]
