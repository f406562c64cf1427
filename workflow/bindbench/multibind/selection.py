"""Chooses the photographs that become instances of MultiBind and cuts their subjects out (section 3.2).

Everyone who is large enough is a subject; a photograph is taken whole or left out whole, with one reason. What boxes alone
can tell is judged first, no file being opened; then the photographs are taken in an order drawn from their ids, until the
quotas are full. So a larger source keeps what was chosen of a smaller one, and neither the order of the rows nor the number
of processes changes anything.
"""

import multiprocessing
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pyarrow as pa

from ..config.multibind_selection import Selection
from ..errors import UserError
from ..files import progress, sha256
from ..tables import read_batches, write_table
from .cutting import make_instance
from .subjects import Rejection, choose_subjects
from .tables import CROPS, PHOTOGRAPHS, REJECTED, SELECTED

AHEAD = 8  # photographs that wait for each process


@dataclass(frozen=True)
class Candidate:
    """A photograph that its boxes let through; `index` is its row among them."""

    index: int
    photograph: str
    source: str
    n_subjects: int


def select_photographs(
    photographs: Path,
    settings: Selection,
    max_pixels: int,
    selected: Path,
    crops: Path,
    rejected: Path,
    folder: Path,
    threads: int = 1,
) -> None:
    """Writes the tables SELECTED, CROPS and REJECTED of the PHOTOGRAPHS, and the pictures that they name into `folder`.

    Every photograph stands in exactly one of `selected` and `rejected`. Pictures: targets/INSTANCE.png, and
    crops/INSTANCE_SLOT.png and masks/INSTANCE_SLOT.png for each subject. A file that is no longer there, or broken, when its
    turn comes is a rejection like any other. Quotas that are not filled are told on standard error.
    Raises UserError where nothing is left.
    """
    candidates, table, rejections = _judge_boxes(photographs, settings)
    folder = Path(folder)
    for name in ("targets", "crops", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    work = partial(make_instance, settings=settings, max_pixels=max_pixels, folder=folder)
    instances: list[dict] = []
    subjects: list[dict] = []
    taken: Counter[int | str] = Counter()  # by number of subjects and by source
    hashes = np.empty(len(candidates), np.uint64)
    results = _in_order(
        work,
        progress(candidates, "photographs", unit="photograph"),
        lambda candidate: _row(table, candidate.index),
        lambda candidate: _full_quota(candidate, taken, settings) is None,
        threads,
    )
    for candidate, made in results:
        # The quota comes first: what a process has made in advance must not decide the reason.
        outcome = _full_quota(candidate, taken, settings) or made
        if not isinstance(outcome, Rejection):
            outcome = _same_as_before(outcome, hashes, instances, settings) or outcome
        if isinstance(outcome, Rejection):
            rejections[candidate.photograph] = (candidate.source, outcome)
            if isinstance(made, tuple):
                _remove(folder, *made)
            continue
        instance, its_subjects = outcome
        hashes[len(instances)] = int(instance["perceptual_hash"], 16)
        instances.append(instance)
        subjects += its_subjects
        taken.update((candidate.n_subjects, candidate.source))
    if not instances:
        counts = Counter(rejection.reason for _, rejection in rejections.values())
        told = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
        raise UserError(
            f"{photographs}: none of its {len(rejections)} photographs can be taken ({told or 'it is empty'}); give other "
            "photographs, or loosen multibind.selection"
        )
    write_table(SELECTED, sorted(instances, key=lambda row: row["instance"]), selected)
    write_table(CROPS, sorted(subjects, key=lambda row: (row["instance"], row["slot"])), crops)
    rows = [
        {"photograph": photograph, "source": source, "reason": rejection.reason, "detail": rejection.detail}
        for photograph, (source, rejection) in sorted(rejections.items())
    ]
    write_table(REJECTED, rows, rejected)
    for line in _open_quotas(taken, settings):
        print(line, file=sys.stderr)


def _open_quotas(taken: Counter, settings: Selection) -> list[str]:
    """A line for each quota that the photographs did not fill."""
    quotas = [(f"quotas.{number}", number, quota) for number, quota in settings.quotas.items()]
    quotas += [(f"source_quotas.{kind}", kind, quota) for kind, quota in settings.source_quotas.items()]
    return [
        f"multibind.selection.{key}: {taken[counted]} of {quota} photographs were found"
        for key, counted, quota in quotas
        if taken[counted] < quota
    ]


def _full_quota(candidate: Candidate, taken: Counter, settings: Selection) -> Rejection | None:
    """taken: photographs by number of subjects and by source."""
    number, source = candidate.n_subjects, candidate.source
    if number in settings.quotas and taken[number] >= settings.quotas[number]:
        return Rejection("quota_full", f"{taken[number]} photographs of {number} subjects are taken")
    if source in settings.source_quotas and taken[source] >= settings.source_quotas[source]:
        return Rejection("source_quota_full", f"{taken[source]} photographs of {source} are taken")
    return None


def _judge_boxes(
    photographs: Path, settings: Selection
) -> tuple[list[Candidate], pa.Table, dict[str, tuple[str, Rejection]]]:
    """Candidates in the order in which they are taken, with their rows; source and rejection of the others by photograph."""
    candidates, kept, rejections = [], [PHOTOGRAPHS.schema.empty_table()], {}
    for batch in read_batches(PHOTOGRAPHS, photographs):
        chosen = []
        for index, row in enumerate(batch.to_pylist()):
            subjects = choose_subjects(row, settings)
            if isinstance(subjects, Rejection):
                rejections[row["photograph"]] = (row["source"], subjects)
            else:
                candidates.append(Candidate(len(candidates), row["photograph"], row["source"], len(subjects)))
                chosen.append(index)
        kept.append(batch.take(pa.array(chosen, pa.int64())))
    candidates.sort(key=lambda candidate: sha256(f"{settings.seed}:{candidate.photograph}"))
    return candidates, pa.concat_tables(kept).combine_chunks(), rejections


def _row(table: pa.Table, index: int) -> dict:
    return table.slice(index, 1).to_pylist()[0]


def _in_order(
    work: Callable[[dict], tuple | Rejection],
    candidates: Iterable[Candidate],
    load: Callable[[Candidate], dict],
    is_wanted: Callable[[Candidate], bool],
    threads: int,
) -> Iterator[tuple[Candidate, tuple | Rejection | None]]:
    """Each candidate with what `work` makes of its row, in their order; None where it was not wanted any more.

    Only a few photographs are under way at a time, whatever their number. A process that dies is a UserError.
    """
    if threads == 1:
        cv2.setNumThreads(1)
        for candidate in candidates:
            yield candidate, work(load(candidate)) if is_wanted(candidate) else None
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(threads, mp_context=context, initializer=cv2.setNumThreads, initargs=(1,)) as pool:
        waiting = deque()
        try:
            for candidate in candidates:
                waiting.append((candidate, pool.submit(work, load(candidate)) if is_wanted(candidate) else None))
                if len(waiting) >= AHEAD * threads:
                    yield _result(*waiting.popleft())
            while waiting:
                yield _result(*waiting.popleft())
        except BrokenProcessPool:
            raise UserError(
                "a process that reads photographs has died, most likely for want of memory; run again with fewer threads "
                "or a lower limit of pixels"
            ) from None


def _result(candidate: Candidate, future) -> tuple[Candidate, tuple | Rejection | None]:
    return candidate, future.result() if future else None


def _same_as_before(made: tuple, hashes: np.ndarray, instances: list[dict], settings: Selection) -> Rejection | None:
    """Compares with all that were taken at once: one popcount over packed hashes."""
    if settings.duplicate_bits is None or not instances:
        return None
    own = np.uint64(int(made[0]["perceptual_hash"], 16))
    distances = np.bitwise_count(hashes[: len(instances)] ^ own)
    closest = int(distances.argmin())
    if distances[closest] > settings.duplicate_bits:
        return None
    return Rejection(
        "near_duplicate",
        f"{distances[closest]} of 64 bits differ from {instances[closest]['photograph']}, more than "
        f"{settings.duplicate_bits} are asked for",
    )


def _remove(folder: Path, instance: dict, subjects: list[dict]) -> None:
    for name in (instance["target"], *(name for row in subjects for name in (row["crop"], row["mask_file"]))):
        (folder / name).unlink(missing_ok=True)
