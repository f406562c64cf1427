"""Arguments that commands share: paths, config sections as JSON, the settings of services, journals of verdicts."""

from pathlib import Path

from .config import Config, load, stage_from_json
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
RESULTS = ("--results", {"type": Path, "default": Path("results"), "help": "folder of the results"})
CONFIGFILE = ("--configfile", {"nargs": "+", "type": Path, "default": [], "help": "YAML files over config/config.yaml"})
PAGE = (  # of the commands that open a page of verdicts
    RESULTS,
    ("--by", {"help": "your name or initials, noted with each verdict"}),
    ("--port", {"type": int, "default": 0, "help": "port on this machine (0: any)"}),
    ("--no-browser", {"action": "store_true", "help": "only print the address"}),
    CONFIGFILE,
)
SERVICES = path("--services", "JSON file with the settings of services")


def read_services(path: Path) -> Services:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: settings of services cannot be read ({error.strerror})") from None
    return stage_from_json(Services, text)


def read_settings(options) -> Config:
    """The config of commands that a person calls: config/config.yaml where there is one, then the named files."""
    default = Path("config/config.yaml")
    return load([*([default] if default.exists() else []), *options.configfile])


def serve(review, options) -> None:
    """The page of a review (see review.serving) with the options of PAGE, until it is stopped."""
    from .review.serving import serve_until_stopped

    serve_until_stopped(review, port=options.port, open_browser=not options.no_browser)
