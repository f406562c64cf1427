"""The rerun matrix: change each leaf of the config, and exactly the stages that read it, and what follows, run again."""

import copy
import shutil

import pytest
import yaml
from bindbench.config import Config, load, stage
from bindbench.config.multibind import MultiBind
from bindbench.snakemake_support import triplet_shards
from snakemake_runs import REPOSITORY, planned

TINY = load([REPOSITORY / "config/config.yaml", REPOSITORY / "config/tiny.yaml"])
SHARDS = {"render_scenes 0000", "render_scenes 0001"}
TABLES = {"tabulate_saber", "plot_saber", "draw_answer_sheet"}


def embeds(*models, modalities=("text", "image")) -> set[str]:
    """Embedding of the models in those of the modalities that they have, and their scores."""
    jobs = set()
    for model in models:
        shared = set(TINY.embedders[model].modalities) & set(modalities)
        jobs |= {f"embed_{modality}s {model}" for modality in shared} | ({f"score_saber {model}"} if shared else set())
    return jobs


def triplets(*models) -> set[str]:
    """Embedding and scores of triplets with those of the models that read text, and the table."""
    read = [model for model in models if "text" in TINY.embedders[model].modalities]
    return {f"{job}_triplets {model}" for model in read for job in ("embed", "score")} | {"tabulate_triplets"}


def attention(*models) -> set[str]:
    """Margins of those of the models that have attention between words, and what is made of them."""
    read = [model for model in models if TINY.embedders[model].has_text_attention]
    return {f"measure_attention {model}" for model in read} | {"tabulate_attention", "plot_attention"}


def single_objects(*models) -> set[str]:
    """Naming of single objects by those of the models that read images and texts, and the table."""
    both = [model for model in models if len(TINY.embedders[model].modalities) == 2]
    return {f"{job}_single_objects {model}" for model in both for job in ("embed", "score")} | {
        "tabulate_single_objects"
    }


SINGLE_OBJECTS = {"render_single_objects 0000"} | single_objects(*TINY.models)
ALL_SHARDS = {
    f"write_triplets {name} {shard:04d}" for name, sizes in triplet_shards(TINY).items() for shard in range(len(sizes))
}
FROM_SPLITTING = {
    *{"split_triplets", "select_triplets", "card_triplets"},
    *triplets(*TINY.models),
    *attention(*TINY.models),
}
FROM_TRIPLETS = ALL_SHARDS | FROM_SPLITTING
FROM_SIZES = {"write_triplets pair_swap 0000"} | FROM_SPLITTING
FROM_RENDERING = SHARDS | {"draw_contact_sheet"} | embeds(*TINY.models, modalities=("image",)) | TABLES
FROM_QUESTIONS = (
    {"sample_questions", "draw_contact_sheet"} | SHARDS | embeds(*TINY.models) | TABLES | attention(*TINY.models)
)
FROM_SAMPLING = {"sample_single_objects"} | SINGLE_OBJECTS
FROM_VOCABULARY = FROM_QUESTIONS | {"build_reliefs", "select_triplets", "card_triplets"} | FROM_SAMPLING

FROM_NANO = embeds("nano") | triplets("nano") | attention("nano") | single_objects("nano") | TABLES
FROM_FIGURES = {
    *{"plot_saber", "plot_attention", "draw_contact_sheet", "draw_answer_sheet", "card_triplets"},
    *{"plot_multibind", "show_multibind_failures"},
}
FROM_INTERVALS = {"tabulate_saber", "plot_saber", "tabulate_triplets"} | attention() | single_objects()

# Another value for every key of a run.
RUN = {
    **{"base": "nano", "data": "random", "examples": 9, "epochs": 2, "rank": 2, "alpha": 2, "margin": 0.1},
    **{"learning_rate": 0.1, "weight_decay": 0.1, "batch_size": 3, "accumulate": 2, "max_tokens": 64},
    **{"dtype": "bfloat16", "gradient_checkpointing": True, "seed": 1, "validation_examples": 9, "validate_every": 3},
    **{"checkpoint_minutes": 1, "lines_alpha": "sweep", "attention_weight": 1, "attention_margin": 0.1},
    **{"attention_layers": [1, 2]},
}
NANO = {
    **{"seed": 1, "shards": 3, "shard_size": 50, "validation_scenes": 60, "words_steps": 3, "words_batch": 8},
    **{"words_rate": 0.001, "joint_steps": 3, "joint_batch": 8, "joint_rate": 0.002, "pointing_weight": 0.5},
    **{"captioning_weight": 0.5, "retelling_weight": 0.1, "siblings": True, "log_every": 5, "validate_every": 7},
    **{"grounding_weight": 0.5, "language_weight": 0.5},
    **{"checkpoint_minutes": 1},
}
# Leaves that nothing of the tiny workflow reads, with other values: they are changed all at once, and nothing runs.
UNREAD = {
    # Drawn and rendered once a run learns images: see test_image_finetuning.py.
    "image_triplets.examples": 9,
    "image_triplets.validation_examples": 9,
    "image_triplets.object_counts": [2],
    "image_triplets.image_px": 64,
    "image_triplets.seed": 1,
    "image_triplets.shard_size": 3,
    # The default workflow never pretrains: see test_nano.py.
    **{f"nano.{name}": value for name, value in NANO.items()},
    # tiny.yaml measures no finetuned model: see test_finetuning.py.
    **{f"finetuning.runs.{run}.{name}": value for run in ("minilm-lora", "nano-lora") for name, value in RUN.items()},
    "triplets.generation.model": "another",  # the grammar reads none of these
    "triplets.generation.temperature": 0.5,
    "triplets.generation.max_tokens": 500,
    "triplets.generation.examples_per_request": 3,
    "triplets.generation.requests_per_round": 9,
    "screening.journal": "elsewhere.jsonl",  # nobody has judged anything yet
    "screening.require_verdict": True,  # the embedded renderer's scenes count as accepted
    "screening.proposal_model": "some-model",
}
# Another value for every key of a generator.
GENERATOR = {
    **{"kind": "folder", "folder": "x", "stretch": 2.0, "grey_tolerance": 9, "of_three": "first_two", "person": "B"},
    **{"blur": 0.1, "model": "x", "revision": "abc", "size": "1K", "quality": "low", "steps": 9, "guidance": 2.0},
    **{"image_guidance": 3.0, "seed": 1, "dtype": "float32", "area_px": 512 * 512, "trust_remote_code": True},
}
# Stages of MultiBind by the section that each reads: another value for every leaf, and what must run.
GENERATORS = TINY.multibind.generation.generators
FROM_RATES = {"tabulate_multibind", "plot_multibind", "show_multibind_failures"}


def measured(*generators) -> set[str]:
    """Similarities of the generators' images, and the tables."""
    return {f"measure_similarities {name}" for name in generators} | FROM_RATES


def whole(*generators) -> set[str]:
    """Figures of the generators' whole images, and the tables."""
    return {f"measure_holistic {name}" for name in generators} | FROM_RATES


def matched(*generators) -> set[str]:
    return {f"match_subjects {name}" for name in generators} | measured(*generators)


def generated(*generators) -> set[str]:
    return {f"generate_images {name}" for name in generators} | matched(*generators)


ASSEMBLED = {"assemble_instances", "draw_instances"} | generated(*GENERATORS)
DESCRIBED = {"annotate_instances", "compile_prompts"} | ASSEMBLED
SELECTED = {"select_photographs", "make_references", "make_backgrounds"} | DESCRIBED
SEGMENTED = {"segment_photographs"} | SELECTED
MULTIBIND = {
    "photographs": (
        {
            **{"max_pixels": 9, "sources.builtin.kind": "folder", "sources.builtin.images": "."},
            **{"sources.builtin.annotations": None, "sources.builtin.licence": "ours", "sources.builtin.limit": 1},
            "use": ["builtin"],
        },
        {"list_photographs"} | SEGMENTED,
    ),
    "segmentation": (
        {
            **{"min_face_score": 0.6, "method": "yolo", "yolo_weights": "x.pt", "yolo_image_px": 320},
            **{"min_person_score": 0.3, "mask_threshold": 0.4, "min_area": 0.01},
        },
        SEGMENTED,
    ),
    "selection": (
        {
            **{"seed": 1, "min_subjects": 3, "max_subjects": 3, "min_subject_share": 0.1, "max_bystander_share": 0.1},
            **{
                "min_subject_height_px": 9,
                "max_at_border": 0.1,
                "min_filled": 0.1,
                "max_pieces": 2,
                "max_overlap": 0.1,
            },
            **{"min_side_px": 99, "max_side_px": 999, "min_sharpness": 1, "min_subject_sharpness": 1},
            **{"duplicate_bits": None, "quotas": {2: 1}, "source_quotas": {"builtin": 1}},
        },
        SELECTED,
    ),
    "references": (
        {
            **{"size_px": 512, "method": "gemini", "gemini_model": "x", "openai_model": "x", "quality": "low"},
            **{"margin": 0.1, "least_coverage": 0.1},
        },
        {"make_references"} | ASSEMBLED,
    ),
    "backgrounds": (
        {
            **{"seed": 1, "method": "opencv", "grow": 0.1, "grow_below": 0.1, "longest_px": 320, "patch_px": 5},
            **{"algorithm": "ns", "radius_px": 2, "lama_weights": "x.pt", "gemini_model": "x", "openai_model": "x"},
            **{"quality": "low", "gemini_size": "2K"},
        },
        {"make_backgrounds"} | ASSEMBLED,
    ),
    "annotation": (
        {
            **{"measures.visibility": 0.4, "method": "gemini", "model": "x", "temperature": 0.5, "max_tokens": 5000},
            **{"measures.face_score": 0.6, "measures.slight_expression": 0.2, "measures.strong_expression": 0.7},
            **{"measures.patterned": 8, "measures.colour_share": 0.3, "measures.bare_distance": 13},
        },
        DESCRIBED,
    ),
    "quality": (
        {
            **{
                "require_verdict": True,
                "journal": "elsewhere.jsonl",
                "reference_problems": [],
                "background_problems": [],
            },
            **{"annotation_problems": [], "prompt_problems": []},
        },
        ASSEMBLED,
    ),
    "generation": (
        {
            **{"longest_px": 320, "use": ["swap"]},
            **{f"generators.{name}.{key}": value for name in GENERATORS for key, value in GENERATOR.items()},
        },
        generated(*GENERATORS),
    ),
    "evaluation": (
        {
            **{"min_iou": 0.2, "second_look_iou": 0.5, "segmentation": {"method": "yolo", "yolo_weights": "x.pt"}},
            **{"min_face_score": 0.6, "face.method": "insightface", "face.pack": "x", "appearance.embedder": "nano"},
            **{"pose.method": "vitpose", "pose.checkpoint": "x", "pose.similarity": "joint_angles"},
            **{"pose.min_visibility": 0.4, "pose.common_keypoints": 6, "expression.method": "embedder"},
            **{"expression.embedder": "nano", "expression.instruction": None},
        },
        matched(*GENERATORS),
    ),
    "holistic": (
        {
            **{"similarities": ["efficientnet-lite0"], "fid.weights": "x.pth", "clip_i.embedder": "nano"},
            **{"dino.checkpoint": "x", "aesthetic.head": "x.pth", "aesthetic.embedder": "nano"},
        },
        whole(*GENERATORS),
    ),
    "scoring": (
        {
            **{
                "js_temperature": 0.2,
                "dimensions": ["face", "pose"],
                "labels": "x.parquet",
                "default_thresholds": "x.csv",
                "compared_generators": ["target"],
            },
            **{"thresholds": {"face": {"consistency": -0.2}}, "js_temperatures": [0.3], "confidence": 0.9, "seed": 1},
            **{"undiagnosable_similarity": 0.9, "folds": 4, "bootstrap_rounds": 200, "fid_rounds": 50},
        },
        FROM_RATES,
    ),
}
# Leaves of a section that not all of its rules read, or not for every generator: another value, and what must run.
PARTS = {
    "generation.generators.blend.stretch": (2.0, generated("blend")),
    "generation.generators.swap.of_three": ("first_two", generated("swap")),
    "generation.use": (["copy", "swap"], measured()),
    "evaluation.second_look_iou": (0.5, matched(*GENERATORS)),
    "evaluation.min_face_score": (0.6, measured(*GENERATORS)),
    "evaluation.pose.similarity": ("joint_angles", measured(*GENERATORS)),
    "evaluation.appearance.embedder": ("nano", measured(*GENERATORS)),
}
# A leaf, another value, and what must run.
CASES = {
    "vocabulary.objects": ("{copy}/objects.csv", FROM_VOCABULARY),
    "vocabulary.attributes": ("{copy}/attributes.csv", FROM_VOCABULARY),
    "vocabulary.palette": (["red", "orange", "yellow", "green", "blue", "purple", "pink", "white"], FROM_VOCABULARY),
    "questions.seed": (1, FROM_QUESTIONS),
    "questions.object_counts": ([3, 4, 5], FROM_QUESTIONS),
    "questions.independent": (3, FROM_QUESTIONS),
    "questions.nested": (4, FROM_QUESTIONS),
    "questions.min_moved": (2, set()),  # the only possible value at N = 3, so nothing changes and nothing runs
    "scenes.renderer": ("builtin", set()),  # the only one
    "scenes.model": ("another", FROM_RENDERING),
    "scenes.quality": ("low", FROM_RENDERING),
    "scenes.image_px": (200, FROM_RENDERING | SINGLE_OBJECTS),
    "scenes.seed": (1, FROM_RENDERING | SINGLE_OBJECTS),
    "scenes.flip_probability": (0.25, FROM_RENDERING | SINGLE_OBJECTS),
    "scenes.shard_size": (61, FROM_RENDERING | SINGLE_OBJECTS),
    "single_objects.seen": (13, FROM_SAMPLING),
    "single_objects.held_out": (7, FROM_SAMPLING),
    "single_objects.seed": (1, FROM_SAMPLING),
    "models": (["nano", "minilm"], TABLES | {"tabulate_triplets"}),
    "attention.captions": (5, attention(*TINY.models)),
    "attention.seed": (1, attention(*TINY.models)),
    "attention.models": (["minilm"], attention()),
    "tables.confidence": (0.9, FROM_INTERVALS),
    "tables.bootstrap_samples": (300, FROM_INTERVALS),
    "tables.seed": (1, FROM_INTERVALS),
    "triplets.counts.pair_swap": (31, {"write_triplets pair_swap 0001"} | FROM_SPLITTING),
    "triplets.counts.triple_bind_cycle": (21, {"write_triplets triple_bind_cycle 0001"} | FROM_SPLITTING),
    "triplets.counts.triple_bind_swap": (19, {"write_triplets triple_bind_swap 0000"} | FROM_SPLITTING),
    "triplets.counts.attr_bundle": (22, {"write_triplets attr_bundle 0001"} | FROM_SPLITTING),
    "triplets.counts.predicative": (0, FROM_SPLITTING),
    "triplets.counts.deferred_bind_anaphoric": (0, FROM_SPLITTING),
    "triplets.counts.deferred_bind_respective": (12, {"write_triplets deferred_bind_respective 0000"} | FROM_SPLITTING),
    "triplets.shard_size": (40, FROM_SIZES),
    "triplets.generation.seed": (1, FROM_TRIPLETS),
    "triplets.generation.resources": ("{lists}", FROM_TRIPLETS),
    "triplets.generation.backend": ("grammar", set()),  # the only one without a service
    "triplets.generation.least_acceptance": (0.1, FROM_TRIPLETS),
    "triplets.splits.seed": (1, FROM_SPLITTING),
    "triplets.splits.validation": (0.2, FROM_SPLITTING),
    "triplets.splits.test": (0.2, FROM_SPLITTING),
    "triplets.splits.set_size": (5, FROM_SPLITTING),
    "figures.dpi": (100, FROM_FIGURES),
    "figures.sheet_questions": (3, FROM_FIGURES),
    "figures.failure_examples": (2, FROM_FIGURES),
    "embedders.nano.loader": ("open_clip", FROM_NANO - {"measure_attention nano"}),  # that loader gives no attention
    "embedders.nano.path": ("{copy}", FROM_NANO),
    "embedders.nano.revision": ("abc", FROM_NANO),
    "embedders.nano.modalities": (
        ["text"],
        {"embed_texts nano", "score_saber nano"} | triplets("nano") | attention("nano") | TABLES,
    ),
    "embedders.nano.instruction": ("Represent the user's input.", FROM_NANO),
    "embedders.nano.dtype": ("bfloat16", FROM_NANO),
    "embedders.nano.attention": ("sdpa", FROM_NANO),
    "embedders.nano.min_pixels": (1000, FROM_NANO),
    "embedders.nano.max_pixels": (100_000, FROM_NANO),
    "embedders.nano.max_tokens": (64, FROM_NANO),
    "embedders.nano.dimensions": (32, FROM_NANO),
    "embedders.nano.adapter": ("{copy}", FROM_NANO),
    "embedders.nano.trust_remote_code": (True, FROM_NANO),
    "embedders.nano.batch_size": (3, FROM_NANO),
    "embedders.minilm.batch_size": (3, embeds("minilm") | triplets("minilm") | attention("minilm") | TABLES),
    "embedders.efficientnet-lite0.batch_size": (
        3,
        embeds("efficientnet-lite0") | TABLES | measured(*GENERATORS),  # it is the specialist of appearance
    ),
}


def leaves(value, prefix="") -> set[str]:
    if isinstance(value, dict):
        return {leaf for key, inner in value.items() for leaf in leaves(inner, f"{prefix}.{key}".strip("."))}
    return {prefix}


def test_every_leaf_of_the_config_has_a_case():
    entry = {f"embedders.nano.{key}" for key in TINY.embedders["nano"].model_dump()}
    # No rule reads the section services: how answers are bought does not change them.
    free = ("embedders.", "services.")
    others = {leaf for leaf in leaves(Config().model_dump(mode="json")) if not leaf.startswith(free)}
    multibind = {f"multibind.{section}.{leaf}" for section, (values, _) in MULTIBIND.items() for leaf in values}
    assert entry | others <= set(CASES) | set(UNREAD) | multibind


@pytest.mark.parametrize("section", MULTIBIND)
def test_a_changed_section_of_multibind_runs_exactly_what_reads_it(tiny, tmp_path, section):
    values, expected = MULTIBIND[section]
    leaf, value = next(iter(values.items()))
    config = tiny_with(tmp_path, {f"multibind.{section}.{leaf}": value})
    assert planned("all", directory=tiny, config=config) == expected


@pytest.mark.parametrize("leaf", PARTS)
def test_a_changed_part_of_a_section_of_multibind_runs_no_more_than_what_reads_it(tiny, tmp_path, leaf):
    value, expected = PARTS[leaf]
    # The default generators written out: a given list takes the place of them.
    written_out = {"multibind.generation.generators": {name: {"kind": name} for name in GENERATORS}}
    config = tiny_with(tmp_path, written_out | {f"multibind.{leaf}": value})
    assert planned("all", directory=tiny, config=config) == expected


@pytest.mark.parametrize("section", MULTIBIND)
def test_every_leaf_of_multibind_is_in_what_its_stage_reads_and_in_no_other(section):
    """The stage's param is this JSON: what changes it runs the stage again. Values are not checked against one another."""
    plain = TINY.multibind.model_dump(mode="json")
    for leaf, value in MULTIBIND[section][0].items():
        changed = copy.deepcopy(plain)
        inner = changed[section]
        *outer, key = leaf.split(".")
        for part in outer:
            inner = inner[part]
        assert key in inner, f"{leaf} is no key of the section"
        inner[key] = value
        config = TINY.model_copy(update={"multibind": MultiBind.model_construct(**sections_of(changed))})
        differ = {name for name in plain if stage(config, f"multibind.{name}") != stage(TINY, f"multibind.{name}")}
        stays = value is None and leaf == "sources.builtin.annotations"  # builtin photographs have none
        assert differ == (set() if stays else {section}), leaf


def sections_of(values: dict) -> dict:
    """The sections with values that need not fit together."""
    fields = MultiBind.model_fields
    return {name: Unchecked(fields[name].annotation, section) for name, section in values.items()}


class Unchecked:
    def __init__(self, model, values):
        assert set(values) == set(model.model_fields)
        self.values = values

    def model_dump(self, **how):
        return self.values


@pytest.mark.parametrize("leaf", CASES)
def test_a_changed_leaf_runs_exactly_what_reads_it(tiny, tmp_path, leaf):
    value, expected = CASES[leaf]
    if isinstance(value, str) and "{copy}" in value:
        for name in ("objects", "attributes"):
            (tmp_path / f"{name}.csv").write_text((REPOSITORY / f"resources/vocabulary/{name}.csv").read_text())
        value = value.format(copy=tmp_path)
    if value == "{lists}":
        value = str(shutil.copytree(REPOSITORY / "resources/triplets", tmp_path / "lists"))
    config = tiny_with(tmp_path, {leaf: value})
    assert planned("all", directory=tiny, config=config) == expected


def test_what_nothing_reads_runs_nothing(tiny, tmp_path):
    assert planned("all", directory=tiny, config=tiny_with(tmp_path, UNREAD)) == set()


def tiny_with(folder, changes: dict):
    """config/tiny.yaml with other values of some leaves."""
    values = yaml.safe_load((REPOSITORY / "config/tiny.yaml").read_text())
    for leaf, value in changes.items():
        *sections, key = leaf.split(".")
        inner = values
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    config = folder / "changed.yaml"
    config.write_text(yaml.safe_dump(values))
    return config


def test_the_order_of_keys_changes_nothing(tiny, tmp_path):
    values = yaml.safe_load((REPOSITORY / "config/tiny.yaml").read_text())
    config = tmp_path / "turned.yaml"
    turned = {
        name: dict(reversed(section.items())) if isinstance(section, dict) else section
        for name, section in reversed(values.items())
    }
    config.write_text(yaml.safe_dump(turned, sort_keys=False))
    assert planned("all", directory=tiny, config=config) == set()
