"""The default config with comments, its JSON schema and its README, all from the pydantic models."""

import json
import types
import typing
from textwrap import wrap

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ..config.base import Section
from ..config.models import Config

HEADER = "# Generated from workflow/bindbench/config; edit values freely, comments and order come back with `make generated`.\n"


def default_yaml() -> str:
    """config/config.yaml: every section and key with its description as a comment."""
    lines = [
        "# The default configuration: the full SABER benchmark with the embedded models, offline and free.",
        "# Every key is explained in config/README.md. Override in a file of your own: snakemake --configfile my.yaml ...",
        HEADER.strip(),
    ]
    config = Config()
    for name, field in Config.model_fields.items():
        value = getattr(config, name)
        lines += ["", *(f"# {line}" for line in wrap(field.description, 112))]
        if isinstance(value, Section):
            lines.append(f"{name}:")
            lines += _keys(value, "  ")
        elif isinstance(value, dict) and value:
            lines.append(f"{name}:")
            for key, entry in value.items():
                given = entry.model_dump(mode="json", exclude_defaults=True) or {"loader": entry.loader}
                lines.append(f"  {key}:")
                lines += [f"    {k}: {_flow(v)}" for k, v in given.items()]
        else:
            lines.append(f"{name}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _keys(section: Section, indent: str) -> list[str]:
    """The keys of a section with their comments; sections inside it as blocks."""
    lines = []
    for key, field in type(section).model_fields.items():
        lines += [f"{indent}# {line}" for line in wrap(field.description, 112 - len(indent))]
        item = getattr(section, key)
        if isinstance(item, Section):
            lines += [f"{indent}{key}:", *_keys(item, indent + "  ")]
        elif isinstance(item, dict) and item:
            lines.append(f"{indent}{key}:")
            lines += [f"{indent}  {name}: {_flow(_plain(value))}" for name, value in item.items()]
        else:
            lines.append(f"{indent}{key}: {_flow(item)}")
    return lines


def _plain(value):
    return value.model_dump(mode="json", exclude_defaults=True) if isinstance(value, BaseModel) else value


def _flow(value) -> str:
    if value is PydanticUndefined:
        return "required"
    value = list(value) if isinstance(value, tuple) else value
    if isinstance(value, dict):
        value = {k: _plain(v) for k, v in value.items()}
    return (
        yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
        .removesuffix("\n")
        .removesuffix("\n...")
    )


def schema() -> str:
    """JSON schema, for editors that complete and check YAML."""
    return json.dumps(Config.model_json_schema(), indent=2) + "\n"


def readme() -> str:
    """config/README.md: a table for each section, a row for each key."""
    parts = [
        "# The configuration",
        "",
        "Generated from the models in `workflow/bindbench/config`; `make generated` writes it.",
        "",
        "`config/config.yaml` holds the defaults. It is read if it lies in the working directory; elsewhere (`--directory`) the",
        "built-in defaults hold, which are its values until you edit it. Put your changes into a file of your own and pass it:",
        "`snakemake --cores 8 results/saber_table2.csv --configfile my.yaml`. Sections are merged, lists are replaced.",
        "Several files may follow one `--configfile`; later ones win. Of two `--configfile` Snakemake heeds the last alone.",
        "",
        "`--config` on the command line is safe for `'models=[nano,minilm]'` alone. Inside a section, as in",
        "`'scenes={image_px: 128}'`, every value arrives as text: numbers, true and false are read back, but null becomes the",
        "word null, which is refused for a number and taken for a text. `scenes.image_px=128` is refused.",
        "",
        "Relative paths are sought in the working directory and then in the repository, never beside the config file: the lists",
        "of `vocabulary` and the SVG files that they name, `triplets.generation.resources`, and `path`, `revision` and `adapter`",
        "of an embedder where they name files. `screening.journal` and `services.store` lie in the working directory alone.",
        "",
        "| file | what it is |",
        "|---|---|",
        "| `config.yaml` | the full benchmark with the embedded models: no key, no GPU, no hub |",
        "| `tiny.yaml` | every embedded model on a handful of questions, without finetuning, five minutes; used by CI |",
        "| `transfer.yaml` | does text-only finetuning of nano reach images? three seeds (`make transfer`); CPU only |",
        "| `ablations.yaml` | MiniLM and nano finetuned, every ablation as a run (`make ablations`); CPU only, some hours |",
        "| `paper.yaml` | the paper's images (paid), triplets (Gemma 4), embedders and finetuning; needs keys, a GPU, the hub |",
        "",
        "Changing a value runs exactly the stages again that read it, and what follows from them. Threads, memory, GPUs and",
        "partitions are not here: they belong to `profiles/`. API keys come from the environment and never stand in a config:",
        "`OPENAI_API_KEY`, `GEMINI_API_KEY` (or `GOOGLE_API_KEY`), `SEEDREAM_API_KEY` (or `ARK_API_KEY`), and",
        "`BINDBENCH_SERVER_KEY` for `services.servers`.",
        "",
        "A fault is reported in one line, with exit code 2: `my.yaml: scenes.image_px: must be >= 64 (got 10)`.",
        "Name the target before `--configfile`, which takes every word after it for a file. A file that is missing or no YAML at",
        "all is met by Snakemake before us, with its own words; `check-config` below tells it in one line.",
        "`python -m bindbench check-config config/config.yaml my.yaml` checks without running anything. It reads the files that",
        "you name and no others: name `config/config.yaml` first, as Snakemake reads it first.",
    ]
    for name, field in Config.model_fields.items():
        parts += ["", f"## {name}", ""]
        model = _section(field)
        if model is None:  # its only row has the description
            parts += _table({name: field}, {name: getattr(Config(), name)})
            continue
        parts += [field.description, ""]
        if typing.get_origin(field.annotation) is dict:
            names = ", ".join(f"`{key}`" for key in getattr(Config(), name)) or "none"
            parts += [f"Keys are names of your choice; {names} are there by default. Each entry has:", ""]
        parts += _table(
            model.model_fields, {k: f.get_default(call_default_factory=True) for k, f in model.model_fields.items()}
        )
    return "\n".join(parts) + "\n"


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a section, or of a dictionary's entries."""
    for candidate in (field.annotation, *typing.get_args(field.annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _table(fields: dict[str, FieldInfo], defaults: dict) -> list[str]:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    entries: list[str] = []
    for name, field in fields.items():
        model = _section(field)
        if isinstance(defaults[name], Section):  # a section inside gets a table of its own
            inner = {k: f.get_default(call_default_factory=True) for k, f in model.model_fields.items()}
            entries += ["", f"`{name}` has:", "", *_table(model.model_fields, inner)]
            rows.append(f"| `{name}` | section | see below | {field.description} |")
            continue
        default, kind = _flow(defaults[name]), _type(field)
        if model and isinstance(defaults[name], dict):  # a dictionary of entries gets a table of its own
            default, kind = _flow(list(defaults[name])), "entries, see below"
            inner = {k: f.get_default(call_default_factory=True) for k, f in model.model_fields.items()}
            entries += ["", f"Each entry of `{name}` has:", "", *_table(model.model_fields, inner)]
        rows.append(f"| `{name}` | {kind} | `{default}` | {field.description} |".replace("\n", " "))
    return rows + entries


def _type(field: FieldInfo) -> str:
    return ", ".join([_type_name(field.annotation), *_limits(field.metadata)])


def _limits(metadata) -> list[str]:
    return [
        f"{sign} {getattr(item, name):.15g}"
        for item in metadata
        for name, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
        if getattr(item, name, None) is not None
    ]


def _type_name(annotation) -> str:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        given = [part for item in arguments[1:] for part in (item.metadata if isinstance(item, FieldInfo) else [item])]
        limits = ", ".join(_limits(given))
        return _type_name(arguments[0]) + (f" ({limits})" if limits else "")
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (types.UnionType, typing.Union):
        return " or ".join("empty" if a is type(None) else _type_name(a) for a in arguments)
    if origin is tuple:
        return f"list of {_type_name(arguments[0])}"
    if origin is dict:
        return f"{_type_name(arguments[1])} by name"
    return {int: "integer", float: "number", str: "text", bool: "true or false"}.get(annotation, str(annotation))
