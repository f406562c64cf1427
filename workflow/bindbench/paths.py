"""Where a configured path leads: the working directory first, then the repository that holds this package.

So `resources/...` in the config works from any `--directory` and when the workflow is used as a module; `~` is the home.
"""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def resolve(path: str | Path) -> Path:
    path = Path(path).expanduser()
    return path if path.exists() or path.is_absolute() else REPOSITORY / path if (REPOSITORY / path).exists() else path


def model_files(place: Path) -> list[Path]:
    """The files of a model, sorted: a file itself, or all inside a folder but model cards and hidden ones.

    What is left out (.git, download records, README.md) changes no vector. The embedding cache's identity and the inputs of
    the embedding rules both follow this list, so a changed file is noticed by both or by neither.
    """
    if place.is_file():
        return [place]
    inside = (file for file in sorted(place.rglob("*")) if file.is_file() and file.suffix != ".md")
    return [file for file in inside if not any(part.startswith(".") for part in file.relative_to(place).parts)]
