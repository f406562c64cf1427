"""manifest.json beside every final table: with what it was made, so that a number can be traced and made again."""

import json
import math
import platform
import subprocess
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from . import __version__
from .errors import UserError
from .files import write_json

# Libraries whose version can change a table, whichever of them an environment holds.
LIBRARIES = (
    *("numpy", "pyarrow", "pydantic", "inflect", "pillow", "matplotlib", "opencv-python-headless", "resvg-py"),
    *("torch", "torchvision", "transformers", "sentence-transformers", "peft", "open-clip-torch", "wordllama"),
    *("pycocotools", "imagehash", "mediapipe", "ultralytics", "torch-fidelity"),
)


def write_manifest(
    path: Path, settings: dict, facts: Sequence[Path], costs: dict | None = None, screening: Path | None = None
) -> None:
    """Writes the manifest.

    settings: the config sections that shaped the tables, by name; every seed in them is also listed by itself.
    facts: the JSON files beside the embeddings, one for each model and modality.
    costs: of what was bought for the tables: requests, refused, cost_usd, tokens. screening: JSON with the counts of
        questions that were scored and left out.
    Raises UserError when one of the files is missing or broken.
    """
    costs = costs or {"cost_usd": 0.0, "tokens": {}}
    embeddings = [_read_facts(fact) for fact in facts]
    counts = _read_counts(screening) if screening else None
    write_json(
        path,
        {
            **made_with(settings),
            "embeddings": embeddings,
            "embedding_seconds": round(sum(fact["seconds"] for fact in embeddings), 1),
            "bought": costs,
            "tokens": sum(costs["tokens"].values()),
            "money_usd": costs["cost_usd"],
            "screening": counts,
        },
    )


def made_with(settings: dict) -> dict:
    """What every manifest says: versions, the commit, the machine, and the config sections with their seeds."""
    return {
        "bindbench": __version__,
        "git": git_state(Path(__file__).parent),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "libraries": library_versions(),
        "settings": settings,
        "seeds": dict(_seeds(settings)),
    }


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read_facts(path: Path) -> dict:
    facts = _read_record(path)
    named = isinstance(facts.get("embedder"), str) and isinstance(facts.get("modality"), str)
    if not (named and isinstance(facts.get("identity"), dict) and is_number(facts.get("seconds"))):
        raise UserError(f"{path}: not a record of embeddings; delete it and run again")
    return facts


def _read_counts(path: Path) -> dict:
    counts = _read_record(path)
    if not is_number(counts.get("questions")):
        raise UserError(f"{path}: not a record of screening; delete it and run again")
    return counts


def _read_record(path: Path) -> dict:
    """A JSON object; anything else becomes an empty one, which no reader takes."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run snakemake to make it") from None
    except (OSError, ValueError):
        record = None
    return record if isinstance(record, dict) else {}


def git_state(folder: Path) -> dict | None:
    """Commit of the checkout that tracks the package, and whether tracked files differ from it; None outside of one.

    A package installed into an environment that lies inside some other repository is not that repository's.
    """
    if _git(folder, "ls-files", "--error-unmatch", "manifest.py") is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if commit is None else {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of a git command; None where it fails or git is absent."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def library_versions() -> dict[str, str]:
    """Versions of those of LIBRARIES that this environment holds."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _seeds(settings: dict, prefix: str = "") -> Iterator[tuple[str, int]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _seeds(value, f"{prefix}{key}.")
        elif key == "seed":
            yield f"{prefix}{key}", value
