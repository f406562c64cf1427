"""`python -m bindbench COMMAND`: one command per rule, the same name. Parses, calls, reports errors; no logic here.

Settings come as the canonical JSON of the one section that a stage may read (`--config`); the rules pass it from params.
A user's mistake is one line on standard error and exit code 2.
"""

import argparse
import errno
import json
import sys
from pathlib import Path

from . import __version__
from .cli_arguments import (
    CONFIGFILE,
    JOURNAL,
    PAGE,
    RESULTS,
    SERVICES,
    path,
    paths,
    read_services,
    read_settings,
    section,
    serve,
)
from .cli_multibind import MULTIBIND
from .config import Config, load
from .config.ablations import AblationPlan
from .config.attention import Attention
from .config.embedders import Embedder
from .config.finetuning import Run
from .config.image_triplets import ImageTriplets
from .config.nano import Nano
from .config.questions import Questions, Vocabulary
from .config.scenes import Scenes
from .config.scoring import Figures, Tables
from .config.screening import Screening
from .config.single_objects import SingleObjects
from .config.triplets import CONSTRUCTIONS, Generation, Splits
from .errors import UserError

# Not faults of the program: no space, no permission, a folder where a file should be.
OF_THE_MACHINE = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
)


def main(arguments: list[str] | None = None) -> int:
    try:
        options = build_parser().parse_args(arguments)
        options.run(options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in OF_THE_MACHINE:
            raise
        place = f"{error.filename}: " if error.filename else ""
        print(f"{place}cannot be written or read ({error.strerror or error}); mend that and run again", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bindbench", description="The programs behind the rules of the workflow.")
    parser.add_argument("--version", action="version", version=f"bindbench {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, description, arguments, run in [*COMMANDS, *MULTIBIND]:
        command = commands.add_parser(name, help=description, description=description)
        for flags in arguments:
            command.add_argument(flags[0], **flags[1])
        command.set_defaults(run=run)
    return parser


QUESTIONS = path("--questions", "table of questions")
SCENES = path("--scenes", "table of scenes")
VOCABULARY = section("--vocabulary", Vocabulary, "section vocabulary")
IMAGES = paths("--images", "tables of images, one for each shard")
SCORES = paths("--scores", "tables of scores, one for each model")
MODELS = ("--models", {"nargs": "+", "required": True, "help": "names of the models, in the order of --scores"})
PHRASES = path("--phrases", "table of phrases")
SINGLE_SCENES = path("--scenes", "table of scenes of one object")
BASES = ("--bases", {"type": json.loads, "default": {}, "metavar": "JSON", "help": "of each finetuned model its base"})
SEEDS = (
    "--seeds",
    {
        "type": json.loads,
        "default": {},
        "metavar": "JSON",
        "help": "models that differ in their seed alone, by a common name",
    },
)
BEHIND = ("--behind", {"required": True, "metavar": "JSON", "help": "the settings behind the table, for the manifest"})
VERSION = ("--version", {"type": int, "required": True, "help": "version of the stage, for the record"})


def _vocabulary(settings: Vocabulary):
    from .paths import resolve
    from .vocabulary import read_vocabulary

    return read_vocabulary(resolve(settings.objects), resolve(settings.attributes), settings.palette)


def check_config(options) -> None:
    from .config.reading import read_yaml, source_of
    from .snakemake_support import check_files

    settings = load(options.files)
    files = {str(path): read_yaml(path) for path in options.files}
    check_files(settings, lambda *key: source_of(settings.model_dump(mode="json"), files, key))


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


def _shard(options) -> tuple[list[dict], dict[str, int]]:
    """Rows of one shard, and the attempts of its scenes that were rejected."""
    from .review.journal import read_journal
    from .tables import SCENES, read_table

    size = options.config.shard_size
    rows = read_table(SCENES, options.scenes).slice(options.shard * size, size).to_pylist()
    journals = [read_journal(path) for path in options.journal]
    attempts = {row["scene"]: sum(len(journal.rejected_images(row["scene"])) for journal in journals) for row in rows}
    return rows, attempts


def render_scenes(options) -> None:
    from .scenes.images import render_shard

    rows, attempts = _shard(options)
    vocabulary = _vocabulary(options.vocabulary)
    render_shard(rows, vocabulary, options.reliefs, options.config, options.images, options.version, attempts)


def buy_scenes(options) -> None:
    from .saber.bought_images import buy_shard

    buy_shard(*_shard(options), options.config, read_services(options.services), options.images)


def screen_questions(options) -> None:
    from .saber.screening import collect_verdicts, screen_questions

    collect_verdicts(options.images, Path(options.config.journal), options.verdicts)
    screen_questions(
        *(options.questions, options.scenes, options.verdicts, options.config),
        *(options.screened_questions, options.screened_scenes, options.counts),
    )


def _images(results: Path, settings: Config) -> list[Path]:
    """Tables of the images of all shards that the config has; older ones of more shards may lie beside them."""
    from .snakemake_support import shard_count

    folder = results / "saber/images"
    tables = [folder / f"{index:04d}.parquet" for index in range(shard_count(settings))]
    if missing := [table for table in tables if not table.exists()]:
        raise UserError(
            f"{missing[0]}: no images yet; make them first, with the same config: snakemake --cores 8 results/saber_scenes.html"
        )
    return tables


def review_scenes(options) -> None:
    from .review.scenes import SceneReview

    settings = read_settings(options)
    saber, journal = options.results / "saber", Path(settings.screening.journal)
    tables = saber / "questions.parquet", saber / "scenes.parquet", _images(options.results, settings)
    serve(SceneReview(*tables, journal, options.by), options)


def propose_verdicts(options) -> None:
    from .saber.proposing import propose_verdicts

    settings = read_settings(options)
    model = settings.screening.proposal_model
    if not model:
        raise UserError("screening.proposal_model: name the vision-language model that proposes verdicts")
    scenes, journal = options.results / "saber/scenes.parquet", Path(settings.screening.journal)
    images = _images(options.results, settings)
    counts = propose_verdicts(scenes, images, journal, model, settings.services)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


def store(options) -> None:
    from .services import commands

    settings = read_settings(options).services
    if options.action == "list":
        commands.show_store(settings, options.entries)
    elif options.action == "verify":
        commands.verify_store(settings)
    elif options.file is None:
        raise UserError(f"store {options.action}: name the tar file")
    elif options.action == "export":
        commands.export_to(settings, options.file, options.service, options.stage)
    else:
        commands.import_from(settings, options.file)


def estimate(options) -> None:
    from .planning import planned_requests
    from .services.commands import show_estimate

    settings = read_settings(options)
    show_estimate(planned_requests(options.target, options.configfile, settings), settings.services)


def draw_contact_sheet(options) -> None:
    from .saber.sheets import write_contact_sheet

    write_contact_sheet(options.questions, options.scenes, options.images, options.sheet, options.config)


def _embedder(options) -> Embedder:
    """The entry, with the adapter of a finetuned model."""
    return options.config.model_copy(update={"adapter": str(options.adapter)} if options.adapter else {})


def embed_texts(options) -> None:
    from .embedders.embed import embed_texts
    from .tables import SCENES, read_table

    scenes = read_table(SCENES, options.scenes)
    texts = dict(zip(scenes["scene"].to_pylist(), scenes["caption"].to_pylist(), strict=True))
    embed_texts(
        _embedder(options),
        options.model,
        texts,
        options.cache,
        options.embeddings,
        options.version,
        threads=options.threads,
    )


def _image_items(manifests: list[Path]) -> list[tuple[str, Path, str]]:
    """Id, path and SHA-256 of the images of all shards."""
    from .tables import IMAGES, read_table

    return [
        (row["scene"], manifest.parent / row["path"], row["sha256"])
        for manifest in manifests
        for row in read_table(IMAGES, manifest).select(["scene", "path", "sha256"]).to_pylist()
    ]


def embed_images(options) -> None:
    from .embedders.embed import embed_images

    embed_images(
        _embedder(options),
        options.model,
        _image_items(options.images),
        options.cache,
        options.embeddings,
        options.version,
        threads=options.threads,
    )


def score_saber(options) -> None:
    from .saber.scoring import score_saber

    score_saber(options.questions, options.scenes, options.texts, options.images, options.scores)


def tabulate_saber(options) -> None:
    from .manifest import write_manifest
    from .saber.tabulate import tabulate_saber
    from .services.costs import read_costs

    scores = dict(zip(options.models, options.scores, strict=True))
    vocabulary = _vocabulary(options.vocabulary)
    tabulate_saber(
        *(scores, options.questions, options.scenes, vocabulary, options.config, options.reference),
        *(options.table2.parent, options.bases, options.seeds),
    )
    write_manifest(
        options.manifest, json.loads(options.behind), options.facts, read_costs(options.costs), options.screening
    )


def sample_single_objects(options) -> None:
    from .saber.single_objects import write_single_objects

    write_single_objects(_vocabulary(options.vocabulary), options.config, options.scenes, options.phrases)


def render_single_objects(options) -> None:
    from .scenes.images import render_shard
    from .tables import SINGLE_OBJECTS, read_table

    size = options.config.shard_size
    rows = read_table(SINGLE_OBJECTS, options.scenes).slice(options.shard * size, size)
    vocabulary = _vocabulary(options.vocabulary)
    render_shard(rows, vocabulary, options.reliefs, options.config, options.images, options.version)


def embed_single_objects(options) -> None:
    from .embedders.embed import embed_images, embed_texts
    from .tables import PHRASES, read_table

    phrases = read_table(PHRASES, options.phrases)
    texts = dict(zip(phrases["phrase"].to_pylist(), phrases["caption"].to_pylist(), strict=True))
    for embed, items, output in (
        (embed_texts, texts, options.embeddings),
        (embed_images, _image_items(options.images), options.image_embeddings),
    ):
        embed(
            *(_embedder(options), options.model, items, options.cache, output, options.version), threads=options.threads
        )


def score_single_objects(options) -> None:
    from .saber.naming import score_single_objects

    score_single_objects(options.scenes, options.phrases, options.texts, options.images, options.scores)


def tabulate_single_objects(options) -> None:
    from .manifest import write_manifest
    from .saber.naming import tabulate_single_objects

    scores = dict(zip(options.models, options.scores, strict=True))
    tabulate_single_objects(scores, options.phrases, options.config, options.bases, options.table)
    write_manifest(options.manifest, json.loads(options.behind), options.facts)


def plot_saber(options) -> None:
    from .figures.plots import plot_saber

    plot_saber(options.tables[0].parent, options.figures[0].parent, options.config)


def draw_answer_sheet(options) -> None:
    from .saber.sheets import write_answer_sheet

    scores = dict(zip(options.models, options.scores, strict=True))
    write_answer_sheet(options.questions, options.scenes, options.images, scores, options.sheet, options.config)


def write_triplets(options) -> None:
    from .triplets.building import build_shard

    outputs = options.examples, options.rejects, options.state, options.record
    build_shard(options.construction, options.size, options.before, options.config, None, *outputs)


def buy_triplets(options) -> None:
    from .triplets.building import build_shard

    outputs = options.examples, options.rejects, options.state, options.record
    services = read_services(options.services)
    build_shard(options.construction, options.size, options.before, options.config, services, *outputs)


def split_triplets(options) -> None:
    from .triplets.splits import write_splits

    write_splits(options.examples, options.config, options.splits[0].parent)


def select_triplets(options) -> None:
    from .triplets.splits import write_sets

    write_sets(options.train, _vocabulary(options.vocabulary), options.config, options.sizes.parent)


def card_triplets(options) -> None:
    from .triplets.card import write_cards

    write_cards(
        *(
            options.splits,
            options.rejects,
            options.generation.resources,
            _vocabulary(options.vocabulary),
            options.config,
        ),
        *(options.card, options.summary, options.all_rejects, options.page, options.figures[0].parent),
    )


def export_triplets(options) -> None:
    from .triplets.export import export_triplets, read_summary

    export_triplets({path.stem: path for path in options.splits}, read_summary(options.summary), options.folder)


def embed_triplets(options) -> None:
    from .embedders.embed import embed_texts
    from .triplets.accuracy import triplet_texts

    texts = triplet_texts(options.splits)
    embed_texts(
        *(_embedder(options), options.model, texts, options.cache, options.embeddings, options.version),
        threads=options.threads,
    )


def sample_image_triplets(options) -> None:
    from .saber.image_triplets import write_image_triplets

    vocabulary = _vocabulary(options.vocabulary)
    write_image_triplets(vocabulary, options.config, options.scenes, options.train, options.validation)


def render_image_triplets(options) -> None:
    from .saber.image_triplets import scenes_of
    from .scenes.images import render_shard
    from .tables import IMAGE_TRIPLETS, read_table

    size = options.config.shard_size
    scenes = scenes_of(read_table(IMAGE_TRIPLETS, options.examples).slice(options.shard * size, size).to_pylist())
    settings = Scenes(image_px=options.config.image_px, seed=options.config.seed)
    render_shard(scenes, _vocabulary(options.vocabulary), options.reliefs, settings, options.images, options.version)


def finetune(options) -> None:
    from .finetune.training import finetune

    finetune(
        *(options.config, options.base, options.run_name, options.train, options.validation, options.record.parent),
        threads=options.threads,
        train_images=options.train_images,
        validation_images=options.validation_images,
    )


def merge_adapter(options) -> None:
    from .config.finetuning import NOT_SCALED
    from .finetune.base import merge

    settings = read_settings(options)
    made = [name + end for name in settings.finetuning.runs for end in ("", NOT_SCALED)]
    if options.model not in made:
        raise UserError(
            f"{options.model}: no run of finetuning makes it ({', '.join(made) or 'there is none'}); "
            "name one of them, and the config of its run by --configfile"
        )
    run = settings.run_of(options.model)
    base = settings.finetuning.runs[run].base
    adapter = options.results / "finetuning" / run / ("adapter_lines" if run == options.model else "adapter")
    merge(settings.embedders[base], base, adapter, options.folder)


def render_nano_scenes(options) -> None:
    from .nano.scenes import render_nano_scenes

    size = options.config.shard_size
    if options.part == "validation":
        numbers, seed = range(options.config.validation_scenes), options.config.seed + 1
    else:
        numbers, seed = range(int(options.part) * size, (int(options.part) + 1) * size), options.config.seed
    vocabulary = _vocabulary(options.vocabulary)
    render_nano_scenes(vocabulary, options.reliefs, seed, numbers, options.pixels, options.table)


def pretrain_nano(options) -> None:
    from .nano.making import make_nano

    make_nano(
        *(_vocabulary(options.vocabulary), options.config, options.pixels, options.tables),
        *(options.held_pixels, options.held_table, options.triplets, options.record.parent, options.threads),
    )


def plot_nano(options) -> None:
    from .figures.nano_plots import plot_nano

    plot_nano(options.curves, options.figure.parent, options.config)


def measure_attention(options) -> None:
    from .finetune.attention_sets import text_sets, write_margins

    settings = options.attention
    sets = text_sets(options.train, options.test, options.scenes, settings.seed, settings.captions)
    write_margins(
        *(_embedder(options), options.model, sets, options.margins, options.version),
        threads=options.threads,
    )


def tabulate_attention(options) -> None:
    import json

    from .finetune.attention_sets import tabulate_attention
    from .manifest import write_manifest
    from .services.costs import read_costs

    tabulate_attention(dict(zip(options.models, options.margins, strict=True)), options.config, options.table)
    write_manifest(options.manifest, json.loads(options.behind), options.facts, read_costs(options.costs))


def plot_attention(options) -> None:
    from .figures.attention_plots import plot_attention

    plot_attention(options.table, options.figure.parent, options.config)


def score_triplets(options) -> None:
    from .triplets.accuracy import score_triplets

    score_triplets(options.splits, options.embeddings, options.scores)


def tabulate_triplets(options) -> None:
    from .manifest import write_manifest
    from .services.costs import read_costs
    from .triplets.accuracy import tabulate_accuracy

    scores = dict(zip(options.models, options.scores, strict=True))
    tabulate_accuracy(scores, options.config, options.table)
    write_manifest(options.manifest, json.loads(options.behind), options.facts, read_costs(options.costs))


def tabulate_ablations(options) -> None:
    from .manifest import write_manifest
    from .saber.ablations import tabulate_ablations
    from .services.costs import read_costs

    scores = dict(zip(options.models, options.scores, strict=True))
    triplets = dict(zip(options.text_models, options.triplets, strict=True))
    tabulate_ablations(
        *(options.plan, scores, options.questions, triplets, options.config, options.reference),
        *(options.table, options.page),
    )
    write_manifest(
        options.manifest, json.loads(options.behind), options.facts, read_costs(options.costs), options.screening
    )


EMBED = [
    path("--embeddings", "table to write"),
    ("--model", {"required": True, "help": "name of the model, for messages and the record"}),
    path("--cache", "folder of the embedding cache"),
    path("--adapter", "adapter of a finetuned model", required=False, default=None),
    ("--threads", {"type": int, "default": 0, "help": "CPU threads (0: all)"}),
    section("--config", Embedder, "the embedder's entry"),
    VERSION,
]

MEASURED = paths("--splits", "tables of examples, named by their split")
PROPOSE = [
    ("--construction", {"choices": CONSTRUCTIONS, "required": True, "help": "one of the seven"}),
    ("--shard", {"type": int, "required": True, "help": "index of the shard, for the log"}),
    ("--size", {"type": int, "required": True, "help": "accepted examples to make"}),
    path("--before", "state after the shard before; none for the first", required=False, default=None),
    path("--examples", "table to write"),
    path("--rejects", "table to write"),
    path("--state", "state after this shard, to write"),
    path("--record", "counts and costs, JSON to write"),
    section("--config", Generation, "section triplets.generation"),
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
            JOURNAL,
            VOCABULARY,
            section("--config", Scenes, "section scenes"),
            VERSION,
        ],
        render_scenes,
    ),
    (
        "buy-scenes",
        "Get the images of one shard of the scenes from a paid service.",
        [
            SCENES,
            ("--shard", {"type": int, "required": True, "help": "index of the shard"}),
            path("--images", "table to write; the images go into a folder beside it, the costs into a JSON file"),
            JOURNAL,
            SERVICES,
            section("--config", Scenes, "section scenes"),
        ],
        buy_scenes,
    ),
    (
        "screen-questions",
        "Leave out the questions of which an image was rejected.",
        [
            QUESTIONS,
            SCENES,
            IMAGES,
            path("--verdicts", "table of verdicts to write"),
            path("--screened-questions", "table to write"),
            path("--screened-scenes", "table to write"),
            path("--counts", "JSON file to write"),
            section("--config", Screening, "section screening"),
        ],
        screen_questions,
    ),
    (
        "propose-verdicts",
        "Let a vision-language model propose verdicts on the images that nobody has judged.",
        [RESULTS, CONFIGFILE],
        propose_verdicts,
    ),
    (
        "review-scenes",
        "Screen the images in a browser on this machine.",
        [
            *PAGE,
        ],
        review_scenes,
    ),
    (
        "store",
        "What was bought: list, verify, export, import.",
        [
            ("action", {"choices": ("list", "verify", "export", "import"), "nargs": "?", "default": "list"}),
            ("file", {"nargs": "?", "type": Path, "help": "tar file to export to or import from"}),
            ("--entries", {"action": "store_true", "help": "list: a line for each entry"}),
            ("--service", {"nargs": "+", "default": (), "help": "export: only these services"}),
            ("--stage", {"nargs": "+", "default": (), "help": "export: only these stages"}),
            CONFIGFILE,
        ],
        store,
    ),
    (
        "estimate",
        "What a target would buy: requests, tokens, price, and what the store holds already.",
        [("target", {"help": "a target of Snakemake, such as results/saber_table2.csv"}), CONFIGFILE],
        estimate,
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
            paths("--costs", "what the images cost, one file for each shard", required=False, default=[]),
            path("--screening", "counts of the screening", required=False),
            BASES,
            SEEDS,
            BEHIND,
        ],
        tabulate_saber,
    ),
    (
        "sample-single-objects",
        "Draw the scenes of one object, and write every phrase of the vocabulary.",
        [SINGLE_SCENES, PHRASES, VOCABULARY, section("--config", SingleObjects, "section single_objects")],
        sample_single_objects,
    ),
    (
        "render-single-objects",
        "Render one shard of the scenes of one object.",
        [
            SINGLE_SCENES,
            ("--shard", {"type": int, "required": True, "help": "index of the shard"}),
            path("--reliefs", "file of the reliefs"),
            path("--images", "table to write; the images go into a folder beside it"),
            VOCABULARY,
            section("--config", Scenes, "section scenes"),
            VERSION,
        ],
        render_single_objects,
    ),
    (
        "embed-single-objects",
        "Embed every phrase of the vocabulary and the images of one object.",
        [PHRASES, IMAGES, path("--image-embeddings", "table to write"), *EMBED],
        embed_single_objects,
    ),
    (
        "score-single-objects",
        "Score one model's embeddings of single objects.",
        [
            SINGLE_SCENES,
            PHRASES,
            path("--texts", "embeddings of the phrases"),
            path("--images", "embeddings of the images"),
            path("--scores", "table to write"),
        ],
        score_single_objects,
    ),
    (
        "tabulate-single-objects",
        "Make the table of single objects from the scores of all models.",
        [
            paths("--scores", "tables of scores, one for each model", nargs="*"),
            ("--models", {"nargs": "*", "required": True, "help": "names of the models, in the order of --scores"}),
            paths("--facts", "records beside the embeddings", nargs="*"),
            PHRASES,
            path("--table", "CSV to write"),
            path("--manifest", "manifest to write"),
            section("--config", Tables, "section tables"),
            BASES,
            BEHIND,
        ],
        tabulate_single_objects,
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
    ("write-triplets", "Write one shard of triplets with the embedded grammar.", PROPOSE, write_triplets),
    (
        "buy-triplets",
        "Get one shard of triplets from a language model.",
        [*PROPOSE, SERVICES],
        buy_triplets,
    ),
    (
        "split-triplets",
        "Split the triplets into training, validation, test and the held-out constructions.",
        [
            paths("--examples", "tables of examples, one for each shard"),
            paths("--splits", "tables to write, in one folder"),
            section("--config", Splits, "section triplets.splits"),
        ],
        split_triplets,
    ),
    (
        "select-triplets",
        "Select the training sets of the ablations.",
        [
            path("--train", "table of the training split"),
            paths("--sets", "tables to write, in one folder"),
            path("--sizes", "JSON to write beside them"),
            VOCABULARY,
            section("--config", Splits, "section triplets.splits"),
        ],
        select_triplets,
    ),
    (
        "card-triplets",
        "Write the card, the page and the figures of the triplets.",
        [
            paths("--splits", "tables of the splits"),
            paths("--rejects", "tables of rejects, one for each shard"),
            path("--card", "README.md to write"),
            path("--summary", "JSON to write"),
            path("--all-rejects", "table to write: the rejects of all shards"),
            path("--page", "HTML to write"),
            paths("--figures", "figures to write"),
            section("--generation", Generation, "section triplets.generation"),
            VOCABULARY,
            section("--config", Figures, "section figures"),
        ],
        card_triplets,
    ),
    (
        "export-triplets",
        "Export the triplets as CSV, JSONL and a Hugging Face data set.",
        [
            paths("--splits", "tables of the splits"),
            path("--summary", "JSON of their card"),
            path("--folder", "folder to write"),
        ],
        export_triplets,
    ),
    ("embed-triplets", "Embed the texts of triplets.", [MEASURED, *EMBED], embed_triplets),
    (
        "sample-image-triplets",
        "Draw the image triplets, none of which the benchmark shows.",
        [
            SCENES,
            path("--train", "table of examples to write"),
            path("--validation", "table of examples to write"),
            VOCABULARY,
            section("--config", ImageTriplets, "section image_triplets"),
        ],
        sample_image_triplets,
    ),
    (
        "render-image-triplets",
        "Render one shard of the image triplets.",
        [
            path("--examples", "table of examples"),
            ("--shard", {"type": int, "required": True, "help": "index of the shard"}),
            path("--reliefs", "file of the reliefs"),
            path("--images", "table to write; the images go into a folder beside it"),
            VOCABULARY,
            section("--config", ImageTriplets, "section image_triplets"),
            VERSION,
        ],
        render_image_triplets,
    ),
    (
        "finetune",
        "Finetune an embedder on triplets, or go on from its last checkpoint.",
        [
            ("--run", {"dest": "run_name", "required": True, "help": "name of the run, for messages and the record"}),
            path("--train", "table of triplets"),
            path("--validation", "table of triplets"),
            paths("--train-images", "of image triplets: tables of their images", required=False, nargs="*", default=[]),
            paths("--validation-images", "the same", required=False, nargs="*", default=[]),
            path("--record", "record.json to write; everything else goes beside it"),
            ("--threads", {"type": int, "default": 0, "help": "CPU threads (0: all)"}),
            section("--base", Embedder, "the base's entry"),
            section("--config", Run, "the run"),
        ],
        finetune,
    ),
    (
        "render-nano-scenes",
        "Render one part of the scenes that the nano embedder is pretrained on.",
        [
            ("--part", {"required": True, "help": "index of the shard, or validation"}),
            path("--reliefs", "file of the reliefs"),
            path("--pixels", "images of the part, NumPy array to write"),
            path("--table", "what is on them, table to write"),
            VOCABULARY,
            section("--config", Nano, "section nano"),
        ],
        render_nano_scenes,
    ),
    (
        "pretrain-nano",
        "Pretrain the nano embedder from nothing, or go on from the last checkpoint.",
        [
            paths("--pixels", "images of the shards, in order"),
            paths("--tables", "what is on them"),
            path("--held-pixels", "images of the validation"),
            path("--held-table", "what is on them"),
            path("--triplets", "training split of the triplets"),
            path("--record", "record.json to write; everything else goes beside it"),
            ("--threads", {"type": int, "default": 0, "help": "CPU threads (0: all)"}),
            VOCABULARY,
            section("--config", Nano, "section nano"),
        ],
        pretrain_nano,
    ),
    (
        "plot-nano",
        "Draw the curves of the nano embedder's pretraining.",
        [
            path("--curves", "log.csv of the pretraining"),
            path("--figure", "SVG to write, and PNG beside it"),
            section("--config", Figures, "section figures"),
        ],
        plot_nano,
    ),
    (
        "merge-adapter",
        "Write a finetuned model as a folder of its own: its base with the adapter added to the weights.",
        [
            ("model", {"help": "a run of finetuning (its adapter that LiNeS has scaled), or RUN-nolines"}),
            ("folder", {"type": Path, "help": "folder to write, in sentence-transformers' format"}),
            RESULTS,
            CONFIGFILE,
        ],
        merge_adapter,
    ),
    (
        "measure-attention",
        "Measure one model's attention between attributes and objects, layer by layer.",
        [
            path("--train", "table of triplets, for the proportion of its constructions"),
            path("--test", "table of triplets"),
            SCENES,
            path("--margins", "table to write; its record goes beside it"),
            ("--model", {"required": True, "help": "name of the model, for messages and the record"}),
            path("--adapter", "adapter of a finetuned model", required=False, default=None),
            ("--threads", {"type": int, "default": 0, "help": "CPU threads (0: all)"}),
            section("--attention", Attention, "section attention, without its models"),
            section("--config", Embedder, "the embedder's entry"),
            VERSION,
        ],
        measure_attention,
    ),
    (
        "tabulate-attention",
        "Make the table of attention by layer.",
        [
            path("--margins", "tables of margins, one for each model", nargs="*"),
            ("--models", {"nargs": "*", "required": True, "help": "names of the models, in the order of --margins"}),
            path("--facts", "records beside the margins", nargs="*"),
            paths("--costs", "records beside the shards"),
            path("--table", "CSV to write"),
            path("--manifest", "manifest to write"),
            section("--config", Tables, "section tables"),
            BEHIND,
        ],
        tabulate_attention,
    ),
    (
        "plot-attention",
        "Draw attention by layer from its table.",
        [
            path("--table", "CSV table"),
            path("--figure", "SVG to write; the PNG goes beside it"),
            section("--config", Figures, "section figures"),
        ],
        plot_attention,
    ),
    (
        "score-triplets",
        "Score one model's embeddings of triplets.",
        [MEASURED, path("--embeddings", "table of embeddings"), path("--scores", "table to write")],
        score_triplets,
    ),
    (
        "tabulate-triplets",
        "Make the table of triplet accuracy.",
        [
            SCORES,
            MODELS,
            paths("--facts", "records beside the embeddings"),
            paths("--costs", "records beside the shards"),
            path("--table", "CSV to write"),
            path("--manifest", "manifest to write"),
            section("--config", Tables, "section tables"),
            BEHIND,
        ],
        tabulate_triplets,
    ),
    (
        "tabulate-ablations",
        "Make the tables of ablations.",
        [
            paths("--scores", "tables of scores on SABER, one for each model", nargs="*"),
            ("--models", {"nargs": "*", "required": True, "help": "names of the models, in the order of --scores"}),
            paths("--triplets", "tables of scores on triplets, one for each model that reads text", nargs="*"),
            ("--text-models", {"nargs": "*", "required": True, "help": "their names, in the order of --triplets"}),
            paths("--facts", "records beside the embeddings", nargs="*"),
            paths("--costs", "records beside the images and the triplets", nargs="*"),
            path("--screening", "counts of the screening", required=False),
            QUESTIONS,
            path("--reference", "CSV of the paper's known values"),
            path("--table", "CSV to write"),
            path("--page", "HTML to write"),
            path("--manifest", "manifest to write"),
            section("--plan", AblationPlan, "the tables and the runs behind their rows"),
            section("--config", Tables, "section tables"),
            BEHIND,
        ],
        tabulate_ablations,
    ),
]
