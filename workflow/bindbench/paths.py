"""Where a configured path leads: the working directory first, then the repository that holds this package.

So `resources/...` in the config works from any `--directory` and when the workflow is used as a module.
"""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def resolve(path: str | Path) -> Path:
    path = Path(path)
    return path if path.exists() or path.is_absolute() else REPOSITORY / path if (REPOSITORY / path).exists() else path
