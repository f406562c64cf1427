# Helper functions of the rules; no rules here. Heavy libraries stay out: every cluster job parses this file.
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

# Programs find the package, and outside conda the interpreter that runs Snakemake, whatever the caller's PATH is.
shell.prefix(
    support.shell_prefix(WORKFLOW, workflow.deployment_settings.deployment_method)
)


wildcard_constraints:
    shard=r"\d{4}",
    model=r"[A-Za-z0-9][A-Za-z0-9.+-]*",
    modality="text|image",


def checked_settings():
    """The validated config; `config` itself is completed in place, so that reports show every value."""
    given = list(workflow.overwrite_configfiles)
    return support.checked_settings(
        config, [path for path in workflow.configfiles if path not in given] + given
    )


def note_start():
    support.note_start()


support.release_stale_lock()


def stage_config(name):
    """Canonical JSON of one section: a stage's only way to its settings, and what makes it run again."""
    return stage(settings, name)


def config_of_results():
    """The sections behind the tables, for their manifest. Each is a param of a rule above them already."""
    values = settings.model_dump(
        mode="json", include={"vocabulary", "questions", "scenes", "models", "tables"}
    )
    return canonical_json(
        values
        | {"embedders": {name: config["embedders"][name] for name in settings.models}}
    )


def vocabulary_lists():
    return [
        str(resolve(settings.vocabulary.objects)),
        str(resolve(settings.vocabulary.attributes)),
    ]


def vocabulary_drawings():
    """Users' own SVG files that the list of objects names."""
    return [str(resolve(shape)) for shape in support.drawings(settings.vocabulary)]


def embedder_config(wildcards):
    return stage(settings, f"embedders.{wildcards.model}")


def embedder(wildcards):
    return settings.embedders[wildcards.model]


def embedder_gpus(wildcards):
    """A GPU for checkpoints of others; the package's own small models run anywhere."""
    entry = embedder(wildcards)
    packaged = entry.loader not in ("sentence-transformers", "open_clip")
    return 0 if packaged or str(entry.path).startswith("resources/") else 1


def embedder_folder(wildcards):
    """Local weights as an input: a model that was trained again is embedded again. Hub ids are no files."""
    paths = (embedder(wildcards).path, embedder(wildcards).adapter)
    return [str(resolve(path)) for path in paths if path and resolve(path).is_dir()]


def embedding_cache(wildcards, output):
    """Beside the results of all models; path variables such as <results> are not filled in params."""
    return str(Path(output.embeddings).parents[2] / "cache/embeddings")


def image_shards():
    return [f"{index:04d}" for index in range(support.shard_count(settings))]


def embeddings_of(wildcards):
    """Embeddings of the modalities that the model has, keyed as score_saber names them."""
    return {
        f"{modality}s": f"results/embeddings/{wildcards.model}/saber.{modality}.parquet"
        for modality in embedder(wildcards).modalities
    }
