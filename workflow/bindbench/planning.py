"""Which requests a target would send: Snakemake is asked which jobs it would run, and each job's requests are made in memory."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .config import Config
from .config.multibind_generators import PAID as PAID_GENERATORS
from .config.multibind_pictures import PAID
from .errors import UserError
from .paths import REPOSITORY, resolve
from .services.requests import Request


def planned_requests(target: str, configfiles: list[Path], settings: Config) -> Iterator[Request]:
    """Requests of every job that calls a service on the way to the target. Raises UserError when there is no such target."""
    plan = dry_run(target, configfiles)
    yield from _scenes(plan, settings)
    yield from _triplets(plan, settings)
    yield from _multibind(plan, settings)
    yield from _generators(plan, settings)


def dry_run(target: str, configfiles: list[Path]) -> str:
    """What Snakemake says that it would do, shell commands included. Raises UserError when there is no such target."""
    print(f"estimate: asking Snakemake what it would run for {target}", file=sys.stderr)
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
    return done.stdout + done.stderr


def _scenes(plan: str, settings: Config) -> Iterator[Request]:
    """Images of SABER: the questions are drawn again."""
    shards = sorted({int(shard) for shard in re.findall(r"bindbench buy-scenes .*?--shard (\d+)", plan)})
    if not shards:
        return
    from .review.journal import read_journal
    from .saber.bought_images import scene_requests
    from .saber.questions import sample_questions
    from .vocabulary import read_vocabulary

    lists = settings.vocabulary
    vocabulary = read_vocabulary(resolve(lists.objects), resolve(lists.attributes), lists.palette)
    _, scenes = sample_questions(vocabulary, settings.questions)
    journal = read_journal(settings.screening.journal)
    size = settings.scenes.shard_size
    for shard in shards:
        rows = scenes[shard * size : (shard + 1) * size]
        attempts = {row["scene"]: len(journal.rejected_images(row["scene"])) for row in rows}
        yield from scene_requests(rows, settings.scenes, attempts)


def _triplets(plan: str, settings: Config) -> Iterator[Request]:
    """Sentences of a language model: each construction from the first of its shards that would be made."""
    jobs = re.findall(
        r"bindbench buy-triplets --construction (\w+) --shard (\d+) --size (\d+) (?:--before (\S+))?", plan
    )
    if not jobs:
        return
    from .triplets.building import planned_requests as requests_of

    for construction in dict.fromkeys(job[0] for job in jobs):
        shards = sorted(
            (int(shard), int(size), before) for name, shard, size, before in set(jobs) if name == construction
        )
        before = Path(shards[0][2]) if shards[0][2] else None
        total = sum(size for _, size, _ in shards)
        yield from requests_of(construction, total, before, settings.triplets.generation, settings.services)


def _multibind(plan: str, settings: Config) -> Iterator[Request]:
    """Pictures and annotations of MultiBind's chosen photographs; while none are chosen, a line says what to run first."""
    multibind = settings.multibind
    paid = {
        "make-references": multibind.references.method in PAID,
        "make-backgrounds": multibind.backgrounds.method in PAID,
        "annotate-instances": multibind.annotation.method != "embedded",
    }
    jobs = {name: options for name in paid if paid[name] and (options := _options(plan, name))}
    if not jobs:
        return
    if choosing := _options(plan, "select-photographs"):
        print(
            f"MultiBind's photographs are not chosen yet, so that its requests ({', '.join(jobs)}) are not counted: run "
            f"snakemake {shlex.quote(choosing['selected'])} first",
            file=sys.stderr,
        )
        return
    from .multibind.annotating import annotation_requests, subjects_of
    from .multibind.backgrounds import backgrounds_requests
    from .multibind.parts import picture_folder, rejected_of, rejected_parts
    from .multibind.references import references_requests
    from .multibind.tables import CROPS, SELECTED
    from .tables import read_table

    rejected = rejected_parts(Path(multibind.quality.journal))
    for name, options in jobs.items():
        tables = Path(options["selected"]), Path(options["crops"])
        folder = picture_folder(tables[0])
        if name == "make-references":
            yield from references_requests(*tables, folder, multibind.references, rejected_of(rejected, "reference"))
        elif name == "make-backgrounds":
            known = Path(options["people"]), rejected_of(rejected, "background")
            yield from backgrounds_requests(*tables, folder, multibind.backgrounds, *known)
        else:
            instances, crops = (
                read_table(table, path).to_pylist() for table, path in zip((SELECTED, CROPS), tables, strict=True)
            )
            subjects, known = subjects_of(instances, crops, tables[1]), rejected_of(rejected, "annotation")
            yield from annotation_requests(instances, subjects, folder, multibind.annotation, known)


def _generators(plan: str, settings: Config) -> Iterator[Request]:
    """Images of MultiBind's paid generators; while its instances are still to be made, a line says what to run first."""
    section = settings.multibind.generation
    jobs = [
        job for job in _jobs(plan, "generate-images") if section.generators[job["generator"]].kind in PAID_GENERATORS
    ]
    if jobs and _jobs(plan, "assemble-instances"):
        names, instances = ", ".join(job["generator"] for job in jobs), shlex.quote(jobs[0]["instances"])
        print(
            f"MultiBind's instances are not made yet, so that the images of {names} are not counted: run "
            f"snakemake {instances} first",
            file=sys.stderr,
        )
        return
    for job in jobs:
        from .multibind.generators.making import generator_requests

        instances, generator = Path(job["instances"]), section.generators[job["generator"]]
        yield from generator_requests(instances, Path(job["subjects"]), instances.parent, generator, section.longest_px)


def _options(plan: str, command: str) -> dict[str, str]:
    """The first value of each option of the first job of a command; empty where no such job would run."""
    return next(iter(_jobs(plan, command)), {})


def _jobs(plan: str, command: str) -> list[dict[str, str]]:
    """Of each job of a command the first value of each of its options."""
    jobs = []
    for line in dict.fromkeys(re.findall(rf"bindbench {command} (.*)", plan)):
        words = shlex.split(line)
        jobs.append(
            {
                word[2:]: value
                for word, value in zip(words, [*words[1:], "--"], strict=True)
                if word.startswith("--") and value[:2] != "--"
            }
        )
    return jobs
