"""Which requests a target would send: Snakemake is asked which jobs it would run, the questions are drawn in memory."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ..config import Config
from ..errors import UserError
from ..paths import REPOSITORY, resolve
from ..review.journal import read_journal
from ..services.requests import Request
from ..vocabulary import read_vocabulary
from .bought_images import scene_requests
from .questions import sample_questions


def planned_requests(target: str, configfiles: list[Path], settings: Config) -> Iterator[Request]:
    """Requests of every job that calls a service on the way to the target. Raises UserError when there is no such target."""
    shards = planned_shards(target, configfiles)
    if not shards:
        return
    lists = settings.vocabulary
    vocabulary = read_vocabulary(resolve(lists.objects), resolve(lists.attributes), lists.palette)
    _, scenes = sample_questions(vocabulary, settings.questions)
    journal = read_journal(settings.screening.journal)
    size = settings.scenes.shard_size
    for shard in shards:
        rows = scenes[shard * size : (shard + 1) * size]
        attempts = {row["scene"]: len(journal.rejected_images(row["scene"])) for row in rows}
        yield from scene_requests(rows, settings.scenes, attempts)


def planned_shards(target: str, configfiles: list[Path]) -> list[int]:
    """Shards of bought images that a dry run for the target would make."""
    local = Path("Snakefile")
    command = [sys.executable, "-m", "snakemake", target, "-n", "-p", "--nolock"]
    command += ["--snakefile", str(local if local.exists() else REPOSITORY / "Snakefile")]
    if configfiles:
        command += ["--configfile", *map(str, configfiles)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        why = [line for line in lines if line.startswith(("No rule", "Missing")) or "must be" in line]
        raise UserError(f"{target}: {(why or lines or ['snakemake failed'])[0]}")
    return sorted(
        {int(shard) for shard in re.findall(r"bindbench buy-scenes .*?--shard (\d+)", done.stdout + done.stderr)}
    )
