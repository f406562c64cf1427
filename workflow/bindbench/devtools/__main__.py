"""`python -m bindbench.devtools [--check]`: the config's default, schema and README, and the conda environments."""

import difflib
import sys

from ..files import write_text
from ..paths import REPOSITORY
from .config_files import default_yaml, readme, schema
from .environments import environments


def generated() -> dict[str, str]:
    """Path in the repository and content of every generated file."""
    return {
        "config/config.yaml": default_yaml(),
        "config/README.md": readme(),
        "workflow/schemas/config.schema.json": schema(),
        **{f"envs/{name}.yaml": text for name, text in environments(REPOSITORY).items()},
    }


def main(check: bool) -> int:
    outdated = 0
    for name, text in generated().items():
        path = REPOSITORY / name
        current = path.read_text() if path.exists() else ""
        if current == text:
            continue
        outdated += 1
        if check:
            sys.stdout.writelines(
                difflib.unified_diff(current.splitlines(True), text.splitlines(True), name, f"{name} (generated)")
            )
        else:
            write_text(path, text)
            print(f"wrote {name}")
    if check and outdated:
        print(f"{outdated} generated files are out of date: run `make generated`", file=sys.stderr)
    return 1 if check and outdated else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
