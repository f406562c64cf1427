"""What the Snakefile needs from Python: the checked config with file names in its errors, paths for shell lines, stale locks.

Everything here is light: each cluster job parses the Snakefile and so imports this.
"""

import json
import os
import re
import shlex
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from .config import Config, check
from .config.finetuning import NOT_SCALED
from .config.multibind_generators import KNOWN as KNOWN_GENERATORS
from .config.multibind_generators import OPEN as OPEN_GENERATORS  # noqa: F401
from .config.multibind_generators import PAID as PAID_GENERATORS  # noqa: F401
from .config.questions import Vocabulary
from .config.reading import read_yaml, source_of
from .config.triplets import Triplets
from .errors import UserError
from .files import canonical_json, sha256, write_json
from .paths import model_files, resolve
from .vocabulary import read_vocabulary

LOCKS = Path(".snakemake/locks")
NOTE = Path(".snakemake/bindbench.json")
PATTERN = re.compile(r"\{\s*[.\w]+\s*(,[^}]*)?\}|<[a-z][a-z0-9_]*>")  # a wildcard, a path variable
SERVICES = Path(".snakemake/bindbench.services.json")


def checked_settings(config: dict, configfiles: list) -> Config:
    """Validates Snakemake's merged config, completes it in place, and ends the program with code 2 on a user's mistake.

    configfiles: in the order in which they were merged, the last one wins.
    """
    try:
        files = {str(path): read_yaml(path) for path in configfiles}
        settings = check(config, lambda key: source_of(config, files, key))
        check_files(settings, lambda *key: source_of(config, files, key))
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    config.update(settings.model_dump(mode="json"))
    return settings


def check_files(settings: Config, source) -> None:
    """Files that the config names are there, and the lists of the vocabulary are sound."""
    for key in ("objects", "attributes"):
        path = getattr(settings.vocabulary, key)
        if not resolve(path).is_file():
            raise UserError(f"{source('vocabulary', key)}: vocabulary.{key}: no such file (got {path!r})")
    vocabulary = settings.vocabulary
    read_vocabulary(resolve(vocabulary.objects), resolve(vocabulary.attributes), vocabulary.palette)
    _check_materials(settings, source)
    folder = settings.triplets.generation.resources
    if not resolve(folder).is_dir():
        raise UserError(
            f"{source('triplets', 'generation', 'resources')}: triplets.generation.resources: no such folder (got {folder!r})"
        )
    runs = settings.finetuning.runs.values()
    for name in dict.fromkeys([*(m for m in settings.models if m in settings.embedders), *(run.base for run in runs)]):
        for key in ("path", "adapter"):
            path = getattr(settings.embedders[name], key)
            local = path and path.startswith(("/", "./", "../", "resources/"))
            if local and not resolve(path).exists():
                raise UserError(
                    f"{source('embedders', name, key)}: embedders.{name}.{key}: no such folder (got {path!r})"
                )


def _check_materials(settings: Config, source) -> None:
    """The embedded renderer knows every material, colour and variant of a list or palette that is not the default one."""
    lists, default = settings.vocabulary, Vocabulary()
    draws = settings.scenes.renderer == "builtin" or any(run.learns_images for run in settings.finetuning.runs.values())
    if not draws or (lists.attributes, lists.palette) == (default.attributes, default.palette):
        return
    try:
        from .scenes.materials import check_vocabulary
    except ImportError:  # Snakemake alone in an environment, its jobs in others: the job that renders checks it
        return
    key = "attributes" if lists.attributes != default.attributes else "palette"
    try:
        check_vocabulary(read_vocabulary(resolve(lists.objects), resolve(lists.attributes), lists.palette))
    except UserError as error:
        raise UserError(
            f"{source('vocabulary', key)}: vocabulary.{key}: the renderer cannot draw it: {error}"
        ) from None


def settings_behind_tables(settings: Config, screened: bool) -> dict:
    """Every section that shapes SABER's tables; of the embedders those that are measured."""
    sections = {"vocabulary", "questions", "scenes", "models", "tables"} | ({"screening"} if screened else set())
    return settings.model_dump(mode="json", include=sections) | models_section(settings, settings.models)


def drawings(settings: Vocabulary) -> list[str]:
    """Shapes of the list of objects that are files of the user, not names such as noto:kite or own:cube."""
    vocabulary = read_vocabulary(resolve(settings.objects), resolve(settings.attributes), settings.palette)
    shapes = {thing.shape for thing in vocabulary.objects.values()}
    return sorted(shape for shape in shapes if not shape.startswith(("noto:", "own:")))


def shell_prefix(workflow_folder: Path, deployment_methods) -> str:
    """Put before every shell command. It is a format string: braces of a path are doubled."""
    methods = {getattr(method, "name", str(method)).lower() for method in deployment_methods or ()}
    package, programs = (_for_shell(folder) for folder in (workflow_folder, Path(sys.executable).parent))
    prefix = f"set -euo pipefail; export PYTHONPATH={package}${{{{PYTHONPATH:+:$PYTHONPATH}}}}; "
    if "conda" not in methods and "apptainer" not in methods:
        prefix += f"export PATH={programs}:$PATH; "
    return prefix


def _for_shell(path: Path) -> str:
    return shlex.quote(str(path)).replace("{", "{{").replace("}", "}}")


def shard_count(settings: Config) -> int:
    """Jobs that the images of the benchmark are divided into."""
    questions = settings.questions
    images = 5 * len(questions.object_counts) * (questions.independent + questions.nested)
    return -(-images // settings.scenes.shard_size)


def image_triplet_shards(settings: Config) -> dict[str, int]:
    """Jobs that render the image triplets, by part."""
    triplets = settings.image_triplets
    counts = {"train": triplets.examples, "validation": triplets.validation_examples}
    return {part: -(-count // triplets.shard_size) for part, count in counts.items()}


def triplet_shards(settings: Config) -> dict[str, list[int]]:
    """Accepted examples of each shard, by construction; a construction that is not wanted has none."""
    size = settings.triplets.shard_size
    counts = settings.triplets.counts
    return {name: [min(size, count - start) for start in range(0, count, size)] for name, count in counts.items()}


def measured_splits(settings: Config) -> list[str]:
    """Splits on which triplet accuracy is measured (Table 10): the test and both held-out constructions, where not empty."""
    deferred = [name for name, count in settings.triplets.counts.items() if count and name.startswith("deferred")]
    return (["test"] if settings.triplets.splits.test else []) + deferred


def resource_files(settings: Triplets) -> list[Path]:
    """Every list of triplets.generation.resources that the backend reads; those of the grammar only for itself."""
    folder = resolve(settings.generation.resources)
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".csv", ".txt"))
    if settings.generation.backend == "grammar":
        return files
    return [path for path in files if path.parent == folder and path.name != "objects.csv"]


def prompt_files() -> list[Path]:
    return sorted(resolve("resources/prompts/triplets").glob("*.txt"))


def generation_section(settings: Config) -> dict:
    """Section triplets.generation, without what only a language model reads where the grammar writes."""
    generation = settings.triplets.generation
    of_grammar = {"seed", "resources", "backend", "least_acceptance"} if generation.backend == "grammar" else None
    return generation.model_dump(mode="json", include=of_grammar)


def settings_behind_triplets(settings: Config) -> dict:
    """Every section that shapes the accuracy of triplets; of the embedders those that are measured."""
    triplets = settings.triplets.model_dump(mode="json", exclude={"generation"})
    triplets |= {"generation": generation_section(settings)}
    behind = settings.model_dump(mode="json", include={"tables"}) | {"triplets": triplets}
    return behind | models_section(settings, text_models(settings))


def ablation_models(settings: Config, reads_text: bool = False) -> list[str]:
    """The models of the tables of ablations, in the order of `models`; with reads_text those that read text."""
    wanted = {model for table in settings.ablations.values() for model in (table.baseline, *table.models)}
    return [model for model in (text_models(settings) if reads_text else settings.models) if model in wanted]


def ablation_plan(settings: Config) -> dict:
    """The tables of ablations in their order, and the run behind each finetuned model: what their program reads."""
    tables = [{"name": name, **table.model_dump(mode="json")} for name, table in settings.ablations.items()]
    runs = {model: settings.run_of(model) for model in ablation_models(settings)}
    return {
        "tables": tables,
        "runs": {model: settings.finetuning.runs[run].model_dump(mode="json") for model, run in runs.items() if run},
    }


def settings_behind_ablations(settings: Config, screened: bool) -> dict:
    """Every section that shapes the tables of ablations; of the embedders and runs those that stand in them."""
    models = ablation_models(settings)
    behind = settings_behind_tables(settings, screened) | settings_behind_triplets(settings)
    behind |= settings.model_dump(mode="json", include={"ablations"}) | {"models": models}
    return {key: value for key, value in behind.items() if key != "finetuning"} | models_section(settings, models)


def measured_bases(settings: Config) -> dict[str, str]:
    """Of each finetuned model its base, where both are measured."""
    bases = {model: settings.finetuning.runs[run].base for model in settings.models if (run := settings.run_of(model))}
    return {model: base for model, base in bases.items() if base in settings.models}


def measured_seeds(settings: Config) -> dict[str, list[str]]:
    """Finetuned models of one measured base whose runs differ in what they learnt by nothing but their seed, under a common name.

    One of each seed, two or more.
    """
    alike: dict[str, dict[int, str]] = {}
    for model in measured_bases(settings):
        run = settings.finetuning.runs[settings.run_of(model)]
        scaled = not model.endswith(NOT_SCALED)
        told = {"seed", "checkpoint_minutes", "validate_every", *(() if scaled else ("lines_alpha",))}
        seeds = alike.setdefault(canonical_json([run.model_dump(mode="json", exclude=told), scaled]), {})
        seeds.setdefault(run.seed, model)
    found = [list(seeds.values()) for seeds in alike.values() if len(seeds) > 1]
    return {f"{models[0]} (mean of {len(models)} seeds)": models for models in found}


def single_object_models(settings: Config) -> list[str]:
    """The models that name single objects: those that read both images and texts, in the order of the tables."""
    return [model for model in settings.models if {"text", "image"} <= set(settings.entry_of(model).modalities)]


def names_single_objects(settings: Config) -> bool:
    """Whether a full run measures single objects: a model can, and the embedded renderer, which always draws them, knows the
    vocabulary.
    """
    lists, default = settings.vocabulary, Vocabulary()
    drawn = settings.scenes.renderer == "builtin" or (lists.attributes, lists.palette) == (
        default.attributes,
        default.palette,
    )
    return bool(single_object_models(settings)) and drawn


def single_object_bases(settings: Config) -> dict[str, str]:
    """Of each finetuned model that names single objects its base, where that is measured, too."""
    models = single_object_models(settings)
    return {model: base for model, base in measured_bases(settings).items() if model in models}


def single_object_scenes(settings: Config) -> dict:
    """What the embedded renderer reads of section scenes."""
    return settings.scenes.model_dump(mode="json", include={"image_px", "seed", "flip_probability", "shard_size"})


def single_object_shards(settings: Config) -> int:
    """Jobs that the images of single objects are divided into."""
    return -(-(settings.single_objects.seen + settings.single_objects.held_out) // settings.scenes.shard_size)


def settings_behind_single_objects(settings: Config) -> dict:
    """Every section that shapes the table of single objects; of the embedders those that stand in it."""
    behind = settings.model_dump(mode="json", include={"vocabulary", "single_objects", "tables"})
    behind |= {"scenes": single_object_scenes(settings)}
    return behind | models_section(settings, single_object_models(settings))


def text_models(settings: Config) -> list[str]:
    """The models that read text, in the order of the tables."""
    return [model for model in settings.models if "text" in settings.entry_of(model).modalities]


def attention_models(settings: Config) -> list[str]:
    """The models whose attention is measured, in the order of the table and of Figure 4's legend."""
    every = [model for model in settings.models if settings.entry_of(model).has_text_attention]
    return list(settings.attention.models) or every


def attention_captions(settings: Config) -> dict:
    """Section attention without its models: another model does not measure the others again."""
    return settings.attention.model_dump(mode="json", exclude={"models"})


def settings_behind_attention(settings: Config) -> dict:
    """Every section that shapes the table of attention; of the embedders those that are measured."""
    behind = settings.model_dump(mode="json", include={"vocabulary", "questions", "tables"})
    behind |= {"triplets": settings_behind_triplets(settings)["triplets"], "attention": attention_captions(settings)}
    return behind | models_section(settings, attention_models(settings))


def models_section(settings: Config, models: Sequence[str]) -> dict:
    """The embedders that are measured, the runs that made them, and the image triplets of those that learn images."""
    embedders = {name: settings.entry_of(name).model_dump(mode="json") for name in models}
    runs = dict.fromkeys(run for run in map(settings.run_of, models) if run)
    images = any(settings.finetuning.runs[run].learns_images for run in runs)
    runs = {run: settings.finetuning.runs[run].model_dump(mode="json") for run in runs}
    return (
        {"embedders": embedders}
        | ({"finetuning": {"runs": runs}} if runs else {})
        | (settings.model_dump(mode="json", include={"image_triplets"}) if images else {})
    )


def note_start(settings: Config) -> None:
    """Remembers which process holds the working directory's lock, and writes the services' settings for the programs."""
    write_json(NOTE, {"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())})
    write_json(SERVICES, settings.services.model_dump(mode="json"))


def release_stale_lock() -> None:
    """Removes a lock whose holder was killed on this machine, so that the same command simply goes on.

    A lock of another machine, or one whose holder still runs, is left to Snakemake.
    """
    if not NOTE.exists() or not LOCKS.is_dir() or not any(LOCKS.iterdir()):
        return
    try:
        holder = json.loads(NOTE.read_text())
        gone = holder["host"] == socket.gethostname() and _started(holder["pid"]) != holder["started"]
    except (ValueError, KeyError, TypeError):
        return
    if gone:
        for lock in LOCKS.iterdir():
            lock.unlink(missing_ok=True)
        print(
            f"The run with process id {holder['pid']} was killed; its lock is released and the work goes on.",
            file=sys.stderr,
        )


def weight_files(*paths: str | None) -> list[Path]:
    """Every file of the local models among the paths; hub ids have none."""
    return sorted({file for path in filter(None, paths) for file in model_files(resolve(path))})


def known_generators(settings: Config) -> dict:
    """The evaluated generators of which it is known who is in which slot, by name.

    A collage is one where its references are cut out of the photograph; others stand and look otherwise.
    """
    cut_out = settings.multibind.references.method == "embedded"
    kinds = [kind for kind in KNOWN_GENERATORS if kind != "collage" or cut_out]
    return {name: entry for name, entry in settings.multibind.generation.used.items() if entry.kind in kinds}


def ready_images(settings: Config, name: str) -> list[Path]:
    """The files in the folder of ready images that a generator is; none where it is another kind, or the folder is not there."""
    generator = settings.multibind.generation.generators[name]
    folder = resolve(generator.folder) if generator.kind == "folder" else None
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder and folder.is_dir() else []


def generator_weights(settings: Config, name: str) -> list[Path]:
    """Every file of the local checkpoint of an open generator; none where it is another kind, or the checkpoint is on the hub."""
    from .config.multibind_generators import OPEN

    generator = settings.multibind.generation.generators[name]
    return weight_files(generator.model_name) if generator.kind in OPEN else []


def specialist_files(settings: Config) -> list[Path]:
    """Every file of the local models that MultiBind's specialists are."""
    section = settings.multibind.evaluation
    entries = [settings.embedders[name] for name in section.embedders.values()]
    places = [section.face.pack, section.pose.checkpoint]
    return weight_files(*places, *(path for entry in entries for path in (entry.path, entry.adapter, entry.revision)))


def holistic_files(settings: Config) -> list[Path]:
    """Every file of the local models that look at MultiBind's whole images, where it is there."""
    section = settings.multibind.holistic
    entries = [settings.embedders[name] for name in section.embedders.values()]
    places = [
        section.dino.checkpoint,
        *(path for entry in entries for path in (entry.path, entry.adapter, entry.revision)),
    ]
    return [*weight_files(*places), *weight_file(section.fid.weights), *weight_file(section.aesthetic.head)]


def photograph_annotations(settings: Config) -> list[Path]:
    """Annotation files of MultiBind's sources that are there; the listing says which are missing, and of which key."""
    from .multibind.sources import photographs_files

    return [path for path in photographs_files(settings.multibind.photographs) if path.exists()]


def photographs_digest(settings: Config) -> str:
    """Changes when a photograph in a source of kind folder is replaced in place."""
    from .multibind.sources import photographs_digest

    return photographs_digest(settings.multibind.photographs)


def input_path(path: str | Path) -> str:
    """A path for an input. Ends with code 2 on one that Snakemake would take for a pattern: it has no escape for that."""
    if found := PATTERN.search(str(path)):
        print(
            f"{path}: Snakemake takes {found[0]} in a path for a pattern; rename it, or name a link to it whose path has none",
            file=sys.stderr,
        )
        sys.exit(2)
    return str(path)


def weight_file(path: str | None) -> list[Path]:
    """A file of weights where it is there; the program that needs it tells of a missing one and names its key."""
    file = None if path is None else resolve(Path(path).expanduser())
    return [file] if file is not None and file.is_file() else []


def rejected_digest(journal: str, part: str) -> str:
    """Of everything of a kind of part that stands rejected in a journal of MultiBind; empty: nothing. Ends on a broken one."""
    if not Path(journal).exists():
        return ""
    from .multibind.parts import rejected_of, rejected_parts

    try:
        rejected = rejected_of(rejected_parts(Path(journal)), part)
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    return (
        sha256(canonical_json(sorted([str(place), sorted(digests)] for place, digests in rejected.items())))
        if rejected
        else ""
    )


def _started(pid: int) -> str | None:
    """Start time of a process in clock ticks since boot, with the boot's id; None when there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + "/" + fields[19]
    except FileNotFoundError:
        pass
    except OSError:
        return None
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
        return str(pid)
    except OSError:
        return None
