# Helper functions of the rules; no rules here. Heavy libraries stay out: every cluster job parses this file.
import re
import sys
from pathlib import Path

WORKFLOW = (
    Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).resolve().parent
    / "workflow"
)
if str(WORKFLOW) not in sys.path:
    sys.path.insert(0, str(WORKFLOW))

from bindbench import snakemake_support as support
from bindbench.config import stage
from bindbench.config.versions import VERSIONS
from bindbench.files import canonical_json
from bindbench.paths import resolve

# Settings of paid services change no result (where the store is, how many calls at once, how much may be spent), so they reach
# programs through this file, which is no input: raising the budget runs nothing again.
SERVICES_FILE = str(support.SERVICES)


# Programs find the package, and outside conda the interpreter that runs Snakemake, whatever the caller's PATH is.
shell.prefix(
    support.shell_prefix(WORKFLOW, workflow.deployment_settings.deployment_method)
)


def checked_settings():
    """The validated config; `config` itself is completed in place, so that reports show every value."""
    given = list(workflow.overwrite_configfiles)
    return support.checked_settings(
        config, [path for path in workflow.configfiles if path not in given] + given
    )


def model_names():
    """A pattern of the models that are measured: another name in a target has no rule."""
    return "|".join(re.escape(name) for name in settings.models)


def note_start():
    support.note_start(settings)


support.release_stale_lock()


def stage_config(name):
    """Canonical JSON of one section: a stage's only way to its settings, and what makes it run again."""
    return stage(settings, name)


def config_of_results():
    """The sections behind the tables, for their manifest. Each is a param of a rule above them already."""
    return canonical_json(support.settings_behind_tables(settings, is_screened()))


def escaped(path):
    """A path for input; ends on one that Snakemake would take for a pattern."""
    return support.input_path(path)


def vocabulary_lists():
    lists = settings.vocabulary
    return [escaped(resolve(lists.objects)), escaped(resolve(lists.attributes))]


def vocabulary_drawings():
    """Users' own SVG files that the list of objects names."""
    return [escaped(resolve(shape)) for shape in support.drawings(settings.vocabulary)]


def embedder(wildcards):
    return settings.entry_of(wildcards.model)


def embedder_config(wildcards):
    return canonical_json(embedder(wildcards).model_dump(mode="json"))


def embedder_adapter(wildcards):
    """The adapter of a finetuned model: as LiNeS has scaled it, or as it was trained."""
    run = settings.run_of(wildcards.model)
    folder = "adapter_lines" if run == wildcards.model else "adapter"
    return (
        f"<results>/finetuning/{run}/{folder}/adapter_model.safetensors" if run else []
    )


def adapter_argument(wildcards, input):
    return f"--adapter {Path(input.adapter).parent}" if input.adapter else ""


def base_of_run(wildcards):
    return settings.embedders[settings.finetuning.runs[wildcards.run].base]


def base_gpus(wildcards):
    return gpus_for(base_of_run(wildcards))


def base_files(wildcards):
    return files_of(base_of_run(wildcards))


def base_config(wildcards):
    return canonical_json(base_of_run(wildcards).model_dump(mode="json"))


def run_config(wildcards):
    return stage(settings, f"finetuning.runs.{wildcards.run}")


def run_names():
    """A pattern of the runs of finetuning; one that fits nothing where there are none."""
    return "|".join(re.escape(name) for name in settings.finetuning.runs) or "(?!)"


def run_data(wildcards):
    """What a run of finetuning learns and is validated on: training and validation split, one of the ablations' sets, or
    image triplets with the tables of their images. Files of images are known by the hashes in their tables.
    """
    data = settings.finetuning.runs[wildcards.run].data
    if data == "image_triplets":
        return {
            "train": "<results>/image_triplets/train.parquet",
            "validation": "<results>/image_triplets/validation.parquet",
            "train_images": image_triplet_tables("train"),
            "validation_images": image_triplet_tables("validation"),
        }
    return {
        "train": f"<results>/triplets/{'' if data == 'train' else 'sets/'}{data}.parquet",
        "validation": "<results>/triplets/validation.parquet",
        "train_images": [],
        "validation_images": [],
    }


def image_triplets_config(*keys):
    """What a stage of the image triplets reads of their section."""
    return canonical_json(
        settings.image_triplets.model_dump(mode="json", include=set(keys))
    )


def nano_shards(ending):
    return [
        f"<results>/nano/scenes/{shard:04d}{ending}"
        for shard in range(settings.nano.shards)
    ]


def nano_scenes_config(wildcards):
    """What a part of nano's scenes depends on: more shards or another training render nothing again."""
    size = "validation_scenes" if wildcards.nano_part == "validation" else "shard_size"
    return canonical_json(settings.nano.model_dump(mode="json", include={"seed", size}))


def image_triplet_tables(part):
    return [
        f"<results>/image_triplets/{part}/{index:04d}.parquet"
        for index in range(support.image_triplet_shards(settings)[part])
    ]


def embedder_gpus(wildcards):
    return gpus_for(embedder(wildcards))


def gpus_for(entry):
    """A GPU for checkpoints of others; the package's own small models run anywhere."""
    packaged = entry.loader not in ("sentence-transformers", "open_clip")
    return 0 if packaged or str(entry.path).startswith("resources/") else 1


def embedder_folder(wildcards):
    return files_of(embedder(wildcards))


def files_of(entry):
    """Local weights as inputs, file by file: a model that was trained again is embedded again. Hub ids are no files."""
    return [
        escaped(path)
        for path in support.weight_files(entry.path, entry.adapter, entry.revision)
    ]


def embedding_cache(wildcards, output):
    """Beside the results of all models; path variables such as <results> are not filled in params."""
    return str(Path(output.embeddings).parents[2] / "cache/embeddings")


def image_tables():
    return [
        f"<results>/saber/images/{index:04d}.parquet"
        for index in range(support.shard_count(settings))
    ]


def screening_journal():
    """People's verdicts, once there are any: rejected scenes are made again."""
    journal = settings.screening.journal
    return [escaped(journal)] if Path(journal).exists() else []


def is_screened():
    """Whether verdicts can leave a question out; the embedded renderer's scenes are right until somebody rejects one."""
    images = any(
        "image" in settings.entry_of(model).modalities for model in settings.models
    )
    return images and (
        settings.scenes.renderer != "builtin" or bool(screening_journal())
    )


def scored(table):
    """The questions or scenes that are scored: all, or those that the screening left."""
    folder = "saber/screened" if is_screened() else "saber"
    return f"<results>/{folder}/{table}.parquet"


def screening_counts():
    return ["<results>/saber/screened/counts.json"] if is_screened() else []


def image_costs():
    """What each shard of bought images cost."""
    bought = settings.scenes.renderer != "builtin"
    return (
        [table.replace(".parquet", ".json") for table in image_tables()]
        if bought
        else []
    )


def embeddings_of(wildcards):
    """Embeddings of the modalities that the model has, keyed as score_saber names them."""
    return {
        f"{modality}s": f"results/embeddings/{wildcards.model}/saber.{modality}.parquet"
        for modality in embedder(wildcards).modalities
    }


def triplet_state_before(wildcards):
    """A shard begins where the one before it ended."""
    shard = int(wildcards.shard)
    return (
        f"<results>/triplets/shards/{wildcards.construction}/{shard - 1:04d}.state.json"
        if shard
        else []
    )


def state_argument(wildcards, input):
    return f"--before {input.state}" if input.state else ""


def triplet_shard_size(wildcards):
    """Accepted examples of one shard; the last one of a construction may be smaller."""
    return support.triplet_shards(settings)[wildcards.construction][
        int(wildcards.shard)
    ]


def generation_config():
    """What a shard of triplets reads of its section."""
    return canonical_json(support.generation_section(settings))


def triplet_lists():
    """Every list that sentences are made of: an edited one makes them again."""
    return [escaped(path) for path in support.resource_files(settings.triplets)]


def triplet_prompts():
    return [escaped(path) for path in support.prompt_files()]


def triplet_shards(ending):
    return [
        f"<results>/triplets/shards/{construction}/{shard:04d}{ending}"
        for construction, sizes in support.triplet_shards(settings).items()
        for shard in range(len(sizes))
    ]


def measured_splits():
    return [
        f"<results>/triplets/{split}.parquet"
        for split in support.measured_splits(settings)
    ]


def text_models():
    return support.text_models(settings)


def single_object_models():
    return support.single_object_models(settings)


def single_object_bases():
    return canonical_json(support.single_object_bases(settings))


def single_object_scenes():
    """What the rendering of single objects reads of section scenes."""
    return canonical_json(support.single_object_scenes(settings))


def single_object_images():
    return [
        f"<results>/single_objects/images/{index:04d}.parquet"
        for index in range(support.single_object_shards(settings))
    ]


def config_of_single_objects():
    """The sections behind the table of single objects, for its manifest."""
    return canonical_json(support.settings_behind_single_objects(settings))


def single_object_table():
    """The table of single objects, where a full run makes it."""
    measured = support.names_single_objects(settings)
    return rules.tabulate_single_objects.output if measured else []


def ablation_models(reads_text=False):
    """The models of the tables of ablations; only those that read text, which alone can be measured on triplets."""
    return support.ablation_models(settings, reads_text)


def ablation_facts():
    saber = [
        f"<results>/embeddings/{model}/saber.{modality}.json"
        for model in ablation_models()
        for modality in settings.entry_of(model).modalities
    ]
    return saber + [
        f"<results>/embeddings/{model}/triplets.text.json"
        for model in ablation_models(reads_text=True)
    ]


def ablation_plan():
    """The tables of ablations and the runs behind their rows."""
    return canonical_json(support.ablation_plan(settings))


def config_of_ablations():
    """The sections behind the tables of ablations, for their manifest."""
    return canonical_json(support.settings_behind_ablations(settings, is_screened()))


def measured_bases():
    """Of each finetuned model its base, where both are measured."""
    return canonical_json(support.measured_bases(settings))


def measured_seeds():
    """Finetuned models that differ in nothing but their seed, under a common name."""
    return canonical_json(support.measured_seeds(settings))


def config_of_triplets():
    """The sections behind the accuracy of triplets, for its manifest."""
    return canonical_json(support.settings_behind_triplets(settings))


def attention_models():
    return support.attention_models(settings)


def attention_captions():
    return canonical_json(support.attention_captions(settings))


def config_of_attention():
    """The sections behind the table of attention, for its manifest."""
    return canonical_json(support.settings_behind_attention(settings))


def attention_figure():
    """Figure 4, where a model's attention can be read and a test split gives captions."""
    possible = attention_models() and settings.triplets.splits.test
    return (
        [rules.tabulate_attention.output, rules.plot_attention.output]
        if possible
        else []
    )


def photograph_annotations():
    """Annotation files of MultiBind's sources; photographs themselves are no inputs, there may be a hundred thousand."""
    return [escaped(path) for path in support.photograph_annotations(settings)]


def people_models(stage):
    """The models of poses and faces, where a stage of MultiBind is embedded."""
    embedded = getattr(settings.multibind, stage).method == "embedded"
    names = ("pose_landmarker.task", "face_landmarker.task")
    return [f"<results>/multibind/models/{name}" for name in names] if embedded else []


def models_argument(wildcards, input):
    return f"--models {Path(input.models[0]).parent}" if input.models else ""


def segmentation_weights(own=None):
    """The file of YOLO's weights; one that is missing is told of by the job that needs it.

    own: of generated images, where they have a segmentation of their own.
    """
    section = own or settings.multibind.segmentation
    path = section.yolo_weights if section.method == "yolo" else None
    return [escaped(file) for file in support.weight_file(path)]


def background_weights():
    section = settings.multibind.backgrounds
    path = section.lama_weights if section.method == "lama" else None
    return [escaped(file) for file in support.weight_file(path)]


def multibind_journal():
    """People's verdicts on the parts of instances, once there are any."""
    journal = settings.multibind.quality.journal
    return [escaped(journal)] if Path(journal).exists() else []


def rejected_parts(part):
    """A digest of what people rejected of one kind of part: its maker runs again when it changes, and no other one."""
    return support.rejected_digest(settings.multibind.quality.journal, part)


def paid_slots(stage):
    """A place among the jobs that call a service, for a stage of MultiBind that is bought."""
    paid = ("gemini", "google-genai", "openai")
    return 1 if getattr(settings.multibind, stage).method in paid else 0


DATA_SET = (
    *("photographs", "segmentation", "selection", "references"),
    *("backgrounds", "annotation", "quality"),
)


def config_of_instances():
    """The sections behind MultiBind's data set, for its manifest."""
    return canonical_json(
        settings.multibind.model_dump(mode="json", include=set(DATA_SET))
    )


def generator_names():
    """A pattern of MultiBind's generators: another name in a target has no rule."""
    return "|".join(re.escape(name) for name in settings.multibind.generation.used)


def generator_config(wildcards):
    """What one generator reads of section multibind.generation."""
    section = settings.multibind.generation
    generator = section.generators[wildcards.generator].model_dump(
        mode="json", exclude_defaults=True
    )
    return canonical_json(
        {
            "generators": {wildcards.generator: generator},
            "longest_px": section.longest_px,
        }
    )


def generator_kind(wildcards):
    return settings.multibind.generation.generators[wildcards.generator].kind


def generator_gpus(wildcards):
    return 1 if generator_kind(wildcards) in support.OPEN_GENERATORS else 0


def generator_slots(wildcards):
    return 1 if generator_kind(wildcards) in support.PAID_GENERATORS else 0


def ready_images(wildcards):
    """Of a generator that is a folder: the folder's files, once there are any."""
    return [
        escaped(path) for path in support.ready_images(settings, wildcards.generator)
    ]


def generator_weights(wildcards):
    """Local checkpoints as inputs, file by file: one that was replaced in place draws again."""
    return [
        escaped(path)
        for path in support.generator_weights(settings, wildcards.generator)
    ]


def of_generators(table, names=None):
    """A table of each of the generators, by default of all that are evaluated."""
    names = settings.multibind.generation.used if names is None else names
    return [f"<results>/multibind/{table}/{name}.parquet" for name in names]


def known_generators():
    """The evaluated generators of which it is known who is in which slot."""
    return list(support.known_generators(settings))


def known_generation():
    """Section multibind.generation with these generators alone."""
    section = settings.multibind.generation
    known = {
        name: entry.model_dump(mode="json", exclude_defaults=True)
        for name, entry in support.known_generators(settings).items()
    }
    return canonical_json({"generators": known, "longest_px": section.longest_px})


def matching_config():
    """Section multibind.evaluation without its specialists."""
    keys = {"segmentation", "min_iou", "second_look_iou"}
    return canonical_json(
        settings.multibind.evaluation.model_dump(mode="json", include=keys)
    )


def specialist_embedders():
    """The entries of `embedders` that the specialists name."""
    names = settings.multibind.evaluation.embedders.values()
    return canonical_json(
        {name: settings.embedders[name].model_dump(mode="json") for name in names}
    )


def specialist_files():
    """Local weights of the specialists: other ones are measured with again."""
    return [escaped(path) for path in support.specialist_files(settings)]


def specialist_gpus():
    section = settings.multibind.evaluation
    entries = [settings.embedders[name] for name in section.embedders.values()]
    heavy = section.face.method == "insightface" or section.pose.method == "vitpose"
    return max([int(heavy), *map(gpus_for, entries)])


def holistic_embedders():
    """The entries of `embedders` that look at whole images."""
    names = settings.multibind.holistic.embedders.values()
    return canonical_json(
        {name: settings.embedders[name].model_dump(mode="json") for name in names}
    )


def holistic_files():
    """Local weights of what looks at whole images: with other ones it is looked again."""
    return [escaped(path) for path in support.holistic_files(settings)]


def holistic_gpus():
    section = settings.multibind.holistic
    entries = [settings.embedders[name] for name in section.embedders.values()]
    heavy = bool(section.fid.weights or section.dino.checkpoint)
    return max([int(heavy), *map(gpus_for, entries)])


def holistic_scores():
    """Figures of whole images, where anything is configured that measures them."""
    return of_generators("holistic") if settings.multibind.holistic.is_measured else []


def scoring_labels():
    labels = settings.multibind.scoring.labels
    return [escaped(resolve(labels))] if labels else []


def paid_prompt(stage, name):
    """The template of what a paid stage of MultiBind asks for: an edited one asks anew."""
    return multibind_prompt(name) if paid_slots(stage) else []


def generator_prompt(wildcards):
    made = (*support.PAID_GENERATORS, *support.OPEN_GENERATORS)
    return multibind_prompt("generate") if generator_kind(wildcards) in made else []


def multibind_prompt(name):
    return [escaped(resolve(f"resources/prompts/multibind/{name}.txt"))]
