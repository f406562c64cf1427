"""From YAML files to a checked Config, with one-line errors, and from a Config to the sections that stages read."""

import re
from collections.abc import Callable
from pathlib import Path

import yaml
from pydantic import BaseModel, ValidationError

from ..errors import UserError
from ..files import canonical_json
from .models import Config

MERGE = "tag:yaml.org,2002:merge"
NAMED_KEY = re.compile(r"([\w-]+(?:\.[\w-]+)*): ")


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice: plain YAML would drop the first one's section without a word."""

    def construct_mapping(self, node, deep=False):
        if any(key.tag == MERGE for key, _ in node.value):
            raise yaml.constructor.ConstructorError(
                None, None, "merge keys (<<) are not read; repeat the keys", node.start_mark
            )
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if isinstance(name, str) and name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name} stands twice", key.start_mark)
            seen.add(name if isinstance(name, str) else None)
        return super().construct_mapping(node, deep)


def load(paths: list[str | Path]) -> Config:
    """The config of one or more YAML files; later ones override, nested sections are merged, lists are replaced."""
    files = {str(path): read_yaml(path) for path in paths}
    merged: dict = {}
    for values in files.values():
        _merge(merged, values)
    return check(merged, lambda key: source_of(merged, files, key))


def source_of(config: dict, files: dict[str, dict], key: tuple) -> str:
    """The file that gave a key its value, the last of `files` first; --config when the value is none of the files'."""
    depth, current = _follow(config, key)
    depths = {path: _follow(values, key) for path, values in files.items()}
    for path in reversed(files):
        if depths[path] == (len(key), current):
            return path
    if depth == len(key) or any(found == len(key) for found, _ in depths.values()):
        return "--config"
    return max(reversed(files), key=lambda path: depths[path][0], default="--config")


def _follow(values, key: tuple) -> tuple[int, object]:
    """How many parts of the key a nested mapping holds, and what stands there."""
    for depth, part in enumerate(key):
        held = part in values if isinstance(values, dict) else isinstance(part, int) and part < len(values or ())
        if not held:
            return depth, None
        values = values[part]
    return len(key), values


def read_yaml(path: str | Path) -> dict:
    path = Path(path)
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise UserError(f"{where}: not valid YAML ({getattr(error, 'problem', None) or error})") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserError(f"{path}: must hold sections such as `questions:` (got {type(value).__name__})")
    return value


def _merge(base: dict, over: dict) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


def check(values: dict, source: str | Callable[[tuple], str] = "config") -> Config:
    """Validates; coerces strings, which is what `snakemake --config` gives for nested values.

    source: what an error names as the place: a file's path, or a function from the key's parts to it.
    Raises UserError, one line for each fault.
    """
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        problems = error.errors()
        places = [problem["loc"] for problem in problems]
        # A bad item makes its list too short as well: that says nothing new.
        told = [
            p
            for p in problems
            if p["type"] != "too_short" or not any(q[: len(p["loc"])] == p["loc"] != q for q in places)
        ]
        raise UserError("\n".join(dict.fromkeys(_line(source, problem) for problem in told))) from None


def _line(source: str | Callable[[tuple], str], problem: dict) -> str:
    location = tuple(part for part in problem["loc"] if part != "[key]")
    key = ".".join(str(part) for part in location)
    kind, context, message = problem["type"], problem.get("ctx", {}), problem["msg"]
    if kind == "value_error":
        message = message.removeprefix("Value error, ")
    if callable(source):
        # A fault between keys is found by the section that holds them, and its message begins with the key to mend.
        named = NAMED_KEY.match(message) if kind == "value_error" else None
        inner = (int(part) if part.isdigit() else part for part in named[1].split(".")) if named else ()
        source = source((*location, *inner))
    got = _shown(problem.get("input"))
    reason = {
        "extra_forbidden": "unknown key",
        "missing": "is missing",
        "greater_than": f"must be > {context.get('gt', 0):g}{got}",
        "greater_than_equal": f"must be >= {context.get('ge', 0):g}{got}",
        "less_than": f"must be < {context.get('lt', 0):g}{got}",
        "less_than_equal": f"must be <= {context.get('le', 0):g}{got}",
        "too_short": f"must hold at least {context.get('min_length')}",
        "literal_error": f"must be one of {context.get('expected')}{got}",
    }.get(kind)
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        reason = f"must be a section with keys of its own, or left out{got}"
    if kind == "tuple_type":
        reason = f"must be a list{got}"
    if kind == "value_error":
        reason = message
    if reason is None:
        reason = f"{message[:1].lower()}{message[1:]}{got}"
    return f"{source}: {key + ': ' if key else ''}{reason}"


def _shown(value) -> str:
    if isinstance(value, (dict, list, tuple, BaseModel)):
        return ""
    shown = repr(value)
    return f" (got {shown if len(shown) <= 80 else shown[:77] + '...'})"


def stage(config: Config, name: str) -> str:
    """Canonical JSON of one section, the only settings that a stage's program sees. `a.b` names a section inside one."""
    value = config
    for part in name.split("."):
        value = value[part] if isinstance(value, dict) else getattr(value, part)
    return canonical_json(value.model_dump(mode="json"))


def stage_from_json(model: type[BaseModel], text: str) -> BaseModel:
    """What a program makes of its --config argument. Raises UserError."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise UserError("\n".join(_line("--config", problem) for problem in error.errors())) from None
