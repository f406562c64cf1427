"""envs/*.yaml: one conda environment for each dependency group that rules name, with the exact versions of the lock.

Everything comes from pip inside conda, so a rule gets the same wheels with and without conda.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import UserError

STAGES = ("questions", "scenes", "services", "embed", "score", "people", "evaluate")
PYTHON = "3.11"


@dataclass(frozen=True)
class Pin:
    """One package of requirements.lock."""

    version: str
    marker: str
    needed_by: frozenset[str]


def environments(repository: Path) -> dict[str, str]:
    """Name and text of each environment. Raises UserError when the lock lacks a package that pyproject.toml names."""
    project = tomllib.loads((repository / "pyproject.toml").read_text())
    lock = read_lock((repository / "requirements.lock").read_text())
    base, groups = project["project"]["dependencies"], project["dependency-groups"]
    return {stage: _environment(stage, base + _requirements(groups, stage), lock) for stage in STAGES}


def _requirements(groups: dict[str, list], name: str) -> list[str]:
    """The requirements of a group, those of the groups that it includes among them."""
    found = []
    for entry in groups[name]:
        found += [entry] if isinstance(entry, str) else _requirements(groups, entry["include-group"])
    return list(dict.fromkeys(found))


def read_lock(text: str) -> dict[str, Pin]:
    """Every package of requirements.lock by its canonical name."""
    lock = {}
    for name, version, marker, rest in re.findall(
        r"^([A-Za-z0-9._-]+)==([^\s;\\]+)[ ]*(?:;([^\\\n]+))?((?:.*\n(?![A-Za-z0-9]))*.*)", text, re.MULTILINE
    ):
        needed_by = frozenset(
            canonicalize_name(parent)
            for parent in re.findall(r"#(?:[ ]via)?[ ]+([A-Za-z0-9._-]+)$", rest, re.MULTILINE)
        )
        lock[canonicalize_name(name)] = Pin(version, (marker or "").strip(), needed_by)
    return lock


def with_dependencies(names: set[str], lock: dict[str, Pin]) -> set[str]:
    """The named packages and all that they need, by the lock's own record of which package needs which."""
    while True:
        more = {name for name, pin in lock.items() if name not in names and pin.needed_by & names}
        if not more:
            return names
        names = names | more


def _environment(stage: str, requirements: list[str], lock: dict[str, Pin]) -> str:
    extras = {}
    for line in requirements:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name not in lock:
            raise UserError(f"requirements.lock: {requirement.name} of group {stage} is missing; run `make lock`")
        extras[name] = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    pins = []
    for name in sorted(with_dependencies(set(extras), lock)):
        marker = f" ; {lock[name].marker}" if lock[name].marker else ""
        pins.append(f"{name}{extras.get(name, '')}=={lock[name].version}{marker}")
    lines = [
        f"# Generated from the dependency group {stage} of pyproject.toml and requirements.lock: `make generated`.",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",
        "dependencies:",
        f"  - python={PYTHON}",
        "  - pip",
        "  - pip:",
        *(f'      - "{pin}"' if " ; " in pin else f"      - {pin}" for pin in pins),
    ]
    return "\n".join(lines) + "\n"
