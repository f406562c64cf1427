"""Arguments that commands share: paths, config sections as JSON, the settings of services, journals of verdicts."""

from pathlib import Path

from .config import stage_from_json
from .config.services import Services
from .errors import UserError


def path(name: str, text: str, **more) -> tuple[str, dict]:
    return name, {"type": Path, "required": True, "help": text, **more}


def paths(name: str, text: str, **more) -> tuple[str, dict]:
    return path(name, text, **{"nargs": "+", **more})


def section(name: str, model: type, text: str) -> tuple[str, dict]:
    """Canonical JSON of a config section, parsed and checked."""
    return name, {
        "type": lambda value: stage_from_json(model, value),
        "required": True,
        "help": text,
        "metavar": "JSON",
    }


JOURNAL = (
    "--journal",
    {"type": Path, "nargs": "*", "default": [], "help": "verdicts of the screening, once there are any"},
)
SERVICES = path("--services", "JSON file with the settings of services")


def read_services(path: Path) -> Services:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: settings of services cannot be read ({error.strerror})") from None
    return stage_from_json(Services, text)
