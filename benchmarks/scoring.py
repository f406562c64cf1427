"""Our scorer at the paper's size against the bare matrix products of the same run, and against ranx and torchmetrics.

    python benchmarks/scoring.py        writes benchmarks/scoring.md

1,800 queries, 7,200 candidates, 4,096 dimensions, all four pairings. Goals: at most 1.5 times the four bare float32
products, 1.5 GB at most, and average precision equal to scikit-learn's to 1e-6 where nothing ties. A peer that is not
installed is left out; `pip install ranx torchmetrics` brings both.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "workflow"))

import numpy as np  # noqa: E402
from bindbench.config.questions import Questions, Vocabulary  # noqa: E402
from bindbench.config.scoring import Tables  # noqa: E402
from bindbench.paths import resolve  # noqa: E402
from bindbench.saber.questions import write_questions  # noqa: E402
from bindbench.saber.scoring import read_benchmark, read_split, score_pairings  # noqa: E402
from bindbench.saber.tabulate import tabulate_saber  # noqa: E402
from bindbench.tables import PAIRINGS, SCENES, embeddings_table, read_table, write_table  # noqa: E402
from bindbench.vocabulary import read_vocabulary  # noqa: E402
from machine import describe  # noqa: E402

DIMENSIONS = 4096
REPEATS = 5


def timed(work: Callable) -> tuple[float, float, object]:
    """Wall seconds, CPU seconds and the result of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def write_random_embeddings(scenes: Path, folder: Path) -> dict[str, Path]:
    items = read_table(SCENES, scenes)["scene"].to_pylist()
    paths = {}
    for seed, modality in enumerate(("text", "image")):
        matrix = np.random.default_rng(seed).standard_normal((len(items), DIMENSIONS), dtype=np.float32)
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        paths[modality] = folder / f"{modality}.parquet"
        write_table(embeddings_table(DIMENSIONS), {"item": items, "embedding": list(matrix)}, paths[modality])
    return paths


def bare_products(splits: dict) -> None:
    for pairing in PAIRINGS:
        queries, gallery = pairing.split("_")
        np.matmul(splits[queries].queries, splits[gallery].gallery.T)


def peak_megabytes(questions: Path, scenes: Path, embeddings: dict[str, Path], scores: Path) -> float:
    """Peak memory of the whole program score-saber, from files to file."""
    subprocess.run(
        [
            *(sys.executable, "-m", "bindbench", "score-saber", "--questions", questions, "--scenes", scenes),
            *("--texts", embeddings["text"], "--images", embeddings["image"], "--scores", scores),
        ],
        check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow")},
        stderr=subprocess.DEVNULL,
    )
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def largest_error(similarities: np.ndarray, relevance: np.ndarray, ours: np.ndarray) -> str:
    """Against scikit-learn, which sorts each query's gallery."""
    try:
        from sklearn.metrics import average_precision_score
    except ImportError:
        return "scikit-learn is not installed: not compared"
    rows = [row for row in range(len(similarities)) if len(np.unique(similarities[row])) == similarities.shape[1]]
    errors = [abs(average_precision_score(relevance[row], similarities[row]) - ours[row]) for row in rows]
    return f"{max(errors):.1e} over the {len(rows)} queries without a tie"


def torchmetrics_seconds(similarities: np.ndarray, relevance: np.ndarray) -> tuple[float, float, float]:
    import torch
    from torchmetrics.retrieval import RetrievalMAP

    index = torch.arange(len(similarities)).repeat_interleave(similarities.shape[1])
    scores, positives = (torch.from_numpy(array).reshape(-1) for array in (similarities, relevance))
    return timed(lambda: RetrievalMAP()(scores, positives, indexes=index))


def ranx_seconds(similarities: np.ndarray, relevance: np.ndarray) -> tuple[float, float, float]:
    from ranx import Qrels, Run, evaluate

    names = [f"c{column}" for column in range(similarities.shape[1])]
    positives = {f"q{row}": {names[c]: 1 for c in np.flatnonzero(line)} for row, line in enumerate(relevance)}

    def work() -> float:
        ranking = {f"q{row}": dict(zip(names, line.tolist(), strict=True)) for row, line in enumerate(similarities)}
        return evaluate(Qrels(positives), Run(ranking), "map")

    evaluate(Qrels({"q": {"c": 1}}), Run({"q": {"c": 1.0, "d": 0.5}}), "map")  # compiles, which is not counted
    return timed(work)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = measure(Path(folder))
    (REPOSITORY / "benchmarks/scoring.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def measure(folder: Path) -> list[str]:
    settings = Vocabulary()
    vocabulary = read_vocabulary(resolve(settings.objects), resolve(settings.attributes), settings.palette)
    questions, scenes, scores = (folder / f"{name}.parquet" for name in ("questions", "scenes", "scores"))
    write_questions(vocabulary, Questions(), questions, scenes)
    embeddings = write_random_embeddings(scenes, folder)
    peak = peak_megabytes(questions, scenes, embeddings, scores)

    relating, _, benchmark = timed(lambda: read_benchmark(questions, scenes))
    reading, _, splits = timed(lambda: {name: read_split(path, benchmark) for name, path in embeddings.items()})
    bare_products(splits)  # the first call starts the threads
    rounds = [
        (timed(lambda: bare_products(splits)), timed(lambda: score_pairings(benchmark, splits))) for _ in range(REPEATS)
    ]
    bare, ours = (min(times) for times in zip(*((b[0], o[0]) for b, o in rounds), strict=True))
    bare_cpu, ours_cpu = (min(times) for times in zip(*((b[1], o[1]) for b, o in rounds), strict=True))
    table = rounds[-1][1][2]

    models = {f"model {number}": scores for number in range(4)}
    reference = resolve("resources/reference/saber_paper.csv")
    tabulating, _, _ = timed(
        lambda: tabulate_saber(models, questions, scenes, vocabulary, Tables(), reference, folder / "tables")
    )

    similarities = splits["text"].queries @ splits["image"].gallery.T
    relevance = np.zeros(similarities.shape, dtype=bool)
    for row, relations in enumerate(benchmark.relations):
        relevance[row, relations.positives] = True
    n = len(similarities)
    precision = table["average_precision"].to_numpy()[n : 2 * n]  # text_image is the second pairing
    error = largest_error(similarities, relevance, precision)
    n_queries, n_candidates = similarities.shape
    return [
        "# Scoring",
        "",
        describe(),
        "",
        f"{n_queries:,} queries, {n_candidates:,} candidates, {DIMENSIONS:,} dimensions, float32; "
        f"the fastest of {REPEATS} rounds, our scorer and the bare products in turn. "
        f"Load of the machine meanwhile: {os.getloadavg()[0]:.1f}.",
        "",
        "| all four pairings | wall s | CPU s | times the bare products |",
        "|---|---|---|---|",
        f"| four bare matrix products | {bare:.2f} | {bare_cpu:.2f} | 1 |",
        f"| everything in the table of scores | {ours:.2f} | {ours_cpu:.2f} | {ours / bare:.2f} (CPU {ours_cpu / bare_cpu:.2f}) |",
        "",
        f"Measured apart: relating queries to the gallery {relating:.2f} s, reading both modalities {reading:.2f} s, "
        f"all tables with intervals ({Tables().bootstrap_samples:,} resamples) for four models {tabulating:.2f} s.",
        "",
        f"Peak memory of the whole program from files to file: {peak:,.0f} MB. "
        f"Largest difference from scikit-learn's average precision: {error}.",
        "",
        *peer_lines(similarities, relevance, ours / len(PAIRINGS), ours_cpu / len(PAIRINGS), precision.mean()),
        "",
        "Goals: at most 1.5 times the bare products, 1,500 MB, 1e-6.",
    ]


def peer_lines(
    similarities: np.ndarray, relevance: np.ndarray, wall: float, cpu: float, mean_precision: float
) -> list[str]:
    """One pairing from ready similarities (ours from embeddings: product, multiple choice and containment included)."""
    lines = [
        "| one pairing | what is timed | mAP | wall s | CPU s | times ours (wall, CPU) |",
        "|---|---|---|---|---|---|",
        f"| bindbench | product, retrieval, multiple choice, containment | {mean_precision:.6f} "
        f"| {wall:.2f} | {cpu:.2f} | 1 |",
    ]
    peers = {
        "torchmetrics RetrievalMAP": ("mAP of ready similarities*", torchmetrics_seconds),
        "ranx map": ("run built from ready similarities, and its mAP", ranx_seconds),
    }
    for name, (what, measure_peer) in peers.items():
        try:
            peer_wall, peer_cpu, value = measure_peer(similarities, relevance)
        except ImportError as missing:
            lines.append(f"| {name} | not installed ({missing.name}) | | | | |")
            continue
        ratio = f"{peer_wall / wall:.1f}, {peer_cpu / cpu:.1f}"
        lines.append(f"| {name} | {what} | {float(value):.6f} | {peer_wall:.1f} | {peer_cpu:.1f} | {ratio} |")
    note = "*torchmetrics takes a positive whose similarity is not above 0 for a negative, hence its other mAP."
    return [*lines, "", note]


if __name__ == "__main__":
    main()
