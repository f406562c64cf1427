"""API keys: from the environment only, and in no file, log or error."""

import os

from ..errors import UserError
from ..files import sha256

PROTOCOL = 1  # of the spool's files; runs of another one do not share a courier
VARIABLES = {
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "seedream": ("SEEDREAM_API_KEY", "ARK_API_KEY"),
    "server": ("BINDBENCH_SERVER_KEY",),  # of services.servers, which never see another service's key
}


def key_for(service: str) -> str:
    """Raises UserError when no variable is set."""
    for name in VARIABLES[service]:
        if os.environ.get(name):
            return os.environ[name]
    raise UserError(
        f"{' or '.join(VARIABLES[service])} is not set; export it (any value for a local server) and run again"
    )


def server_key() -> str:
    """The key for the servers of services.servers; most of them ask for none."""
    return os.environ.get(VARIABLES["server"][0]) or "none"


def redacted(text: str) -> str:
    """The text without any key, for logs, errors and reasons that repeat what a server said."""
    for name in (name for names in VARIABLES.values() for name in names):
        value = os.environ.get(name)
        if value:
            text = text.replace(value, f"[{name}]")
    return text


def fingerprint(settings_json: str) -> str:
    """Tells whether two runs buy with the same settings and keys; a key cannot be computed from it."""
    keys = [os.environ.get(name, "") for names in VARIABLES.values() for name in names]
    return sha256("\0".join([str(PROTOCOL), settings_json, *keys]))[:16]
