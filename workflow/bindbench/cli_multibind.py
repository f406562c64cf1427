"""The commands of MultiBind, one per rule, the same name; see cli.py."""

import json
from pathlib import Path

from .cli_arguments import JOURNAL, PAGE, SERVICES, path, paths, read_services, read_settings, section, serve
from .config.embedders import Embedder
from .config.multibind_annotation import Annotation
from .config.multibind_evaluation import Evaluation
from .config.multibind_generators import Generation
from .config.multibind_holistic import Holistic
from .config.multibind_pictures import Backgrounds, References
from .config.multibind_quality import Quality
from .config.multibind_scoring import Scoring
from .config.multibind_segmentation import Segmentation
from .config.multibind_selection import Selection
from .config.multibind_sources import Photographs
from .config.scoring import Figures
from .errors import UserError

SELECTED = path("--selected", "table of the chosen photographs; their pictures lie in the folder of its name")
CROPS = path("--crops", "table of their subjects")
PEOPLE_MODELS = path("--models", "folder of build-people-models, for the embedded method", required=False)
GENERATED = path("--generated", "table of generated images; they lie in the folder of its name")
DATA_SET = (
    path("--instances", "table of instances; their pictures lie beside it"),
    path("--subjects", "their subjects"),
)
MAX_PIXELS = ("--max-pixels", {"type": int, "required": True, "help": "larger photographs are left out"})
THREADS = ("--threads", {"type": int, "default": 1, "help": "processes at once"})
VERSION = (
    "--version",
    {"type": int, "required": True, "help": "version of the stage; another one makes everything again"},
)


def _pictures(table: Path) -> Path:
    """The folder of the pictures that a table names."""
    return table.with_suffix("")


def _rejected(options, part: str) -> dict:
    """SHA-256 of what people rejected of one kind of part."""
    from .multibind.parts import rejected_of, rejected_parts

    return rejected_of(rejected_parts(options.journal[0] if options.journal else None), part)


def build_people_models(options) -> None:
    from .people.building import build_people_models

    build_people_models(options.folder)


def list_photographs(options) -> None:
    from .multibind.sources.listing import list_photographs

    list_photographs(options.config, options.photographs)


def segment_photographs(options) -> None:
    from .multibind.segmenting import segment_photographs

    cache = _pictures(options.people)
    models, version = options.models or Path(), options.version  # yolo needs none
    segment_photographs(options.photographs, options.people, options.config, models, options.max_pixels, cache, version)


def select_photographs(options) -> None:
    from .multibind.selection import select_photographs

    outputs = options.selected, options.crops, options.rejected, _pictures(options.selected)
    select_photographs(options.people, options.config, options.max_pixels, *outputs, options.threads)


def make_references(options) -> None:
    from .multibind.references import make_references

    make_references(
        *(options.selected, options.crops, _pictures(options.selected), options.config),
        *(read_services(options.services), options.references, _pictures(options.references)),
        version=options.version,
        threads=options.threads,
        rejected=_rejected(options, "reference"),
    )


def make_backgrounds(options) -> None:
    from .multibind.backgrounds import make_backgrounds

    make_backgrounds(
        *(options.selected, options.crops, _pictures(options.selected), options.config),
        *(read_services(options.services), options.segmentation),
        *(options.backgrounds, _pictures(options.backgrounds)),
        version=options.version,
        photographs=options.people,
        threads=options.threads,
        rejected=_rejected(options, "background"),
    )


def annotate_instances(options) -> None:
    from .multibind.annotating import annotate_instances

    annotate_instances(
        *(options.selected, options.crops, _pictures(options.selected), options.config),
        *(read_services(options.services), options.annotations, options.models, _rejected(options, "annotation")),
    )


def compile_prompts(options) -> None:
    from .multibind.prompts import compile_prompts

    compile_prompts(options.annotations, options.prompts, options.lengths)


def assemble_instances(options) -> None:
    from .multibind.assembling import assemble, write_data_manifest
    from .services.costs import read_costs

    folder = options.instances.parent
    made = options.references, options.backgrounds, options.annotations, options.prompts
    journal = options.journal[0] if options.journal else None
    assemble(options.selected, options.crops, *made, options.rejected, journal, options.config, folder)
    behind = json.loads(options.behind)
    tables = options.instances, options.subjects
    write_data_manifest(options.manifest, behind, *tables, options.counts, read_costs(options.costs))


def draw_instances(options) -> None:
    from .multibind.sheet import write_card, write_sheet

    write_sheet(options.instances, options.subjects, options.sheet)
    write_card(options.instances, options.subjects, options.counts, options.card)


def generate_images(options) -> None:
    from .multibind.generators.making import generate

    if options.generator not in options.config.generators:
        raise UserError(f"--generator {options.generator}: is none of {', '.join(options.config.generators)}")
    generate(
        *(options.instances, options.subjects, options.instances.parent),
        *(options.generator, options.config.generators[options.generator], read_services(options.services)),
        *(options.generated, _pictures(options.generated)),
        longest_px=options.config.longest_px,
        version=options.version,
        threads=options.threads,
    )


def match_subjects(options) -> None:
    from .multibind.matching import match_subjects

    cache = options.matched.parent / "found"
    match_subjects(
        *(options.generated, _pictures(options.generated), options.instances, options.subjects, options.config),
        *(options.segmentation, options.models, options.matched, cache, options.version),
    )


def measure_similarities(options) -> None:
    from .multibind.similarities import measure_similarities, specialists_of

    embedders = {name: Embedder.model_validate(entry) for name, entry in json.loads(options.embedders).items()}
    specialists = specialists_of(
        options.config, embedders, options.models, version=options.version, threads=options.threads
    )
    measure_similarities(
        *(options.matched, options.generated, _pictures(options.generated), options.instances, options.subjects),
        *(options.instances.parent, specialists, options.similarities.parent.parent / "features"),
        *(options.similarities, options.validity),
    )


def measure_holistic(options) -> None:
    from .multibind.holistic.measuring import measure_holistic, measures_of

    embedders = {name: Embedder.model_validate(entry) for name, entry in json.loads(options.embedders).items()}
    measures = measures_of(options.config, embedders, options.version, threads=options.threads)
    measure_holistic(
        *(options.generated, _pictures(options.generated), options.instances, options.instances.parent),
        *(measures, options.scores.parent.parent / "features", options.scores),
    )


def tabulate_multibind(options) -> None:
    from .files import write_json
    from .manifest import made_with
    from .multibind.holistic.reading import models_of
    from .multibind.labels import write_agreement
    from .multibind.outcomes import write_outcomes
    from .multibind.rates import freeze_subjects
    from .multibind.tabulate import tabulate_multibind
    from .multibind.thresholds import write_thresholds
    from .services.costs import read_costs

    tables = options.generators, options.matched, options.validity, options.similarities
    freeze_subjects(options.compared_generators, options.matched, options.compared)
    labels = options.labels[0] if options.labels else None
    write_thresholds(*tables, labels, options.generated, options.defaults, options.config, options.cutoffs)
    folder = options.table.parent
    write_agreement(labels, folder / "multibind_agreement.csv")
    tabulate_multibind(*tables, options.compared, options.cutoffs, options.config, folder, options.holistic)
    outputs = options.subject_outcomes, options.image_patterns
    write_outcomes(*tables, options.compared, options.cutoffs, options.config, *outputs)
    behind = {"multibind": json.loads(options.behind)}
    compared_on = {"compared_generators": options.compared_generators}
    more = {"costs": read_costs(options.costs), "holistic": models_of(options.holistic)}
    write_json(options.manifest, {**made_with(behind), **compared_on, **more})


def plot_multibind(options) -> None:
    from .figures.multibind_plots import plot_multibind
    from .multibind.evaluation_tables import SUBJECT_OUTCOMES
    from .tables import read_table

    outcomes = read_table(SUBJECT_OUTCOMES, options.subject_outcomes).to_pylist()
    plot_multibind(options.rates, outcomes, options.figures[0].parent, options.config)


def show_multibind_failures(options) -> None:
    from .multibind.gallery import Paths, show_failures

    tables = Paths(
        *(options.instances, options.subjects, options.generated, options.matched, options.validity),
        *(options.similarities, options.subject_outcomes, options.image_patterns, options.cutoffs, options.rates),
    )
    show_failures(tables, options.page, options.folder, options.config)


def derive_default_thresholds(options) -> None:
    from .multibind.default_thresholds import derive_default_thresholds

    derive_default_thresholds(
        *(options.generation.generators, options.matched, options.validity, options.similarities),
        *(options.config, options.defaults),
    )


def review_instances(options) -> None:
    from .multibind.reviewing import InstanceReview

    names = "selected", "crops", "references", "backgrounds", "annotations", "prompts"
    tables = (options.results / "multibind" / f"{name}.parquet" for name in names)
    journal = Path(read_settings(options).multibind.quality.journal)
    serve(InstanceReview(*tables, journal, options.by), options)


def label_subjects(options) -> None:
    from .multibind.labelling import LabelReview, evaluation_files
    from .multibind.labels import USUAL_TABLE

    if options.most < 1:
        raise UserError(f"--most {options.most}: ask about at least one")
    if options.seed < 0:
        raise UserError(f"--seed {options.seed}: must be 0 or more")
    settings = read_settings(options).multibind
    files = evaluation_files(options.results / "multibind", list(settings.generation.used))
    labels = options.labels or Path(settings.scoring.labels or USUAL_TABLE)
    sample = {"seed": options.seed, "most": options.most, "blind": not options.show_generators}
    serve(LabelReview(files, settings.scoring, labels, options.by, **sample), options)
    if settings.scoring.labels is None:
        print(f"To calibrate the thresholds with them, set multibind.scoring.labels to {labels}.")


MULTIBIND = [
    (
        "build-people-models",
        "Build the models of poses and faces out of published packages.",
        [path("--folder", "folder to write into")],
        build_people_models,
    ),
    (
        "list-photographs",
        "List the photographs of all sources, with the people that their annotations know.",
        [path("--photographs", "table to write"), section("--config", Photographs, "section multibind.photographs")],
        list_photographs,
    ),
    (
        "segment-photographs",
        "Find the people in photographs without masks.",
        [
            path("--photographs", "table of photographs"),
            path("--people", "table to write; what was found is kept in a folder beside it"),
            PEOPLE_MODELS,
            MAX_PIXELS,
            VERSION,
            section("--config", Segmentation, "section multibind.segmentation"),
        ],
        segment_photographs,
    ),
    (
        "select-photographs",
        "Choose the photographs that become instances and crop their subjects.",
        [
            path("--people", "table of photographs with everyone's masks"),
            SELECTED,
            CROPS,
            path("--rejected", "table of the others to write"),
            MAX_PIXELS,
            THREADS,
            section("--config", Selection, "section multibind.selection"),
        ],
        select_photographs,
    ),
    (
        "make-references",
        "Make the canonical reference of each subject.",
        [
            SELECTED,
            CROPS,
            JOURNAL,
            path("--references", "table to write; the pictures go into a folder beside it, the costs into a JSON file"),
            SERVICES,
            THREADS,
            VERSION,
            section("--config", References, "section multibind.references"),
        ],
        make_references,
    ),
    (
        "make-backgrounds",
        "Remove the people from the photographs.",
        [
            SELECTED,
            CROPS,
            path("--people", "table of photographs with everyone's masks: bystanders are removed, too"),
            JOURNAL,
            path(
                "--backgrounds", "table to write; the pictures go into a folder beside it, the costs into a JSON file"
            ),
            SERVICES,
            THREADS,
            VERSION,
            section(
                "--segmentation", Segmentation, "section multibind.segmentation, for the check that nobody is left"
            ),
            section("--config", Backgrounds, "section multibind.backgrounds"),
        ],
        make_backgrounds,
    ),
    (
        "annotate-instances",
        "Describe the photographs: who wears what, stands how and where, and what is around.",
        [
            SELECTED,
            CROPS,
            JOURNAL,
            PEOPLE_MODELS,
            path("--annotations", "table to write; the costs go into a JSON file beside it"),
            SERVICES,
            section("--config", Annotation, "section multibind.annotation"),
        ],
        annotate_instances,
    ),
    (
        "compile-prompts",
        "Compile annotations into entity-indexed prompts.",
        [
            path("--annotations", "table of annotations"),
            path("--prompts", "table to write"),
            path("--lengths", "JSON of the prompts' lengths to write"),
        ],
        compile_prompts,
    ),
    (
        "assemble-instances",
        "Put the instances together: their tables, their pictures, and what was left out and why.",
        [
            SELECTED,
            CROPS,
            path("--references", "table of references"),
            path("--backgrounds", "table of backgrounds"),
            path("--annotations", "table of annotations"),
            path("--prompts", "table of prompts"),
            path("--rejected", "table of the photographs that were not chosen"),
            JOURNAL,
            paths("--costs", "what was bought for references, backgrounds and annotations, JSON"),
            path("--instances", "table to write; the pictures go into the folder images beside it"),
            path("--subjects", "table that is written beside it"),
            path("--counts", "JSON that is written beside it"),
            path("--manifest", "manifest to write"),
            ("--behind", {"required": True, "metavar": "JSON", "help": "the sections behind the data set"}),
            section("--config", Quality, "section multibind.quality"),
        ],
        assemble_instances,
    ),
    (
        "draw-instances",
        "Draw the sheet of the instances, and write their card.",
        [
            path("--instances", "table of instances"),
            path("--subjects", "table of their subjects"),
            path("--counts", "JSON of the counts"),
            path("--sheet", "HTML to write"),
            path("--card", "Markdown to write"),
        ],
        draw_instances,
    ),
    (
        "generate-images",
        "Make one generator's images of all instances.",
        [
            *DATA_SET,
            ("--generator", {"required": True, "help": "its name"}),
            path("--generated", "table to write; the images go into a folder beside it, the costs into a JSON file"),
            SERVICES,
            VERSION,
            THREADS,
            section("--config", Generation, "section multibind.generation with this generator"),
        ],
        generate_images,
    ),
    (
        "match-subjects",
        "Find each subject's place in the generated images, and who is there.",
        [
            *DATA_SET,
            GENERATED,
            PEOPLE_MODELS,
            path("--matched", "table to write; what was found is kept in the folder found beside it"),
            section("--segmentation", Segmentation, "section multibind.segmentation"),
            VERSION,
            section("--config", Evaluation, "section multibind.evaluation without its specialists"),
        ],
        match_subjects,
    ),
    (
        "measure-similarities",
        "Measure how alike generated and real people are, in each dimension.",
        [
            *DATA_SET,
            GENERATED,
            path("--matched", "table of matched slots"),
            PEOPLE_MODELS,
            path("--similarities", "table to write"),
            path("--validity", "table of what could be measured, to write"),
            ("--embedders", {"required": True, "metavar": "JSON", "help": "the entries of embedders that it names"}),
            VERSION,
            THREADS,
            section("--config", Evaluation, "section multibind.evaluation"),
        ],
        measure_similarities,
    ),
    (
        "measure-holistic",
        "Measure how alike whole generated images and their photographs are, and how appealing.",
        [
            path("--instances", "table of instances; their pictures lie beside it"),
            GENERATED,
            path("--scores", "table to write"),
            ("--embedders", {"required": True, "metavar": "JSON", "help": "the entries of embedders that it names"}),
            VERSION,
            THREADS,
            section("--config", Holistic, "section multibind.holistic"),
        ],
        measure_holistic,
    ),
    (
        "tabulate-multibind",
        "From similarities to rates, their differences and intervals.",
        [
            ("--generators", {"nargs": "+", "required": True, "help": "names, in the order of the tables"}),
            (
                "--compared-generators",
                {"nargs": "+", "required": True, "help": "those that must have a subject for it to be compared"},
            ),
            paths("--matched", "tables of matched slots, one for each generator"),
            paths("--validity", "tables of what could be measured"),
            paths("--similarities", "tables of similarities"),
            paths("--holistic", "tables of whole images, where anything is measured of them", nargs="*"),
            paths("--labels", "table of labels of people, once there is one", nargs="*"),
            paths("--generated", "tables of generated images: labels belong to their bytes"),
            path("--defaults", "CSV of the uncalibrated thresholds"),
            paths("--costs", "records beside the generated images"),
            path("--table", "CSV to write; the other tables are written beside it"),
            path("--compared", "table of the subjects that those generators have, to write"),
            path("--cutoffs", "table of thresholds to write"),
            path("--subject-outcomes", "table to write: what came of each subject"),
            path("--image-patterns", "table to write: the patterns of each image"),
            path("--manifest", "manifest to write"),
            ("--behind", {"required": True, "metavar": "JSON", "help": "the sections behind the table"}),
            section("--config", Scoring, "section multibind.scoring"),
        ],
        tabulate_multibind,
    ),
    (
        "plot-multibind",
        "Draw the figures of MultiBind from its tables.",
        [
            path("--rates", "multibind_table.csv"),
            path("--subject-outcomes", "table: what came of each subject"),
            paths("--figures", "SVG files to write; the PNGs go beside them"),
            section("--config", Figures, "section figures"),
        ],
        plot_multibind,
    ),
    (
        "show-multibind-failures",
        "Show the worst failures of each generator beside the photographs, and draw their confusion matrices.",
        [
            *DATA_SET,
            paths("--generated", "tables of generated images; the images of each lie in the folder of its name"),
            paths("--matched", "tables of matched slots, one for each generator"),
            paths("--validity", "tables of what could be measured"),
            paths("--similarities", "tables of similarities"),
            path("--subject-outcomes", "table: what came of each subject"),
            path("--image-patterns", "table: the patterns of each image"),
            path("--cutoffs", "table of thresholds"),
            path("--rates", "multibind_table.csv"),
            path("--page", "HTML to write"),
            path("--folder", "folder of the figures to write"),
            section("--config", Figures, "section figures"),
        ],
        show_multibind_failures,
    ),
    (
        "derive-default-thresholds",
        "Derive uncalibrated thresholds from images of which it is known who is in which slot.",
        [
            paths("--matched", "tables of matched slots, one for each generator"),
            paths("--validity", "tables of what could be measured"),
            paths("--similarities", "tables of similarities"),
            path("--defaults", "CSV to write; what it rests on is written beside it, as a note and as a table"),
            section("--generation", Generation, "section multibind.generation with these generators"),
            section("--config", Scoring, "section multibind.scoring"),
        ],
        derive_default_thresholds,
    ),
    (
        "review-instances",
        "Accept MultiBind's instances, or reject single parts of them, in a browser on this machine.",
        [*PAGE],
        review_instances,
    ),
    (
        "label-subjects",
        "Judge generated people, in a browser on this machine, so that MultiBind's thresholds can be calibrated.",
        [
            *(argument for argument in PAGE if argument[0] != "--by"),
            ("--by", {"required": True, "help": "your name or initials: labels are kept by annotator"}),
            (
                "--labels",
                {
                    "type": Path,
                    "help": "table to write; default: multibind.scoring.labels, or one in the folder screening",
                },
            ),
            (
                "--most",
                {"type": int, "default": 500, "help": "generated people to be asked about, each in one dimension"},
            ),
            ("--seed", {"type": int, "default": 0, "help": "draws who is asked about first"}),
            ("--show-generators", {"action": "store_true", "help": "tell which generator made a picture"}),
        ],
        label_subjects,
    ),
]
