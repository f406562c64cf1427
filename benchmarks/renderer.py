"""The embedded renderer: CPU-seconds an image by N, two processes against one, PNG files, and pybullet's TinyRenderer.

    python benchmarks/renderer.py        writes benchmarks/renderer.md

Scenes are those of the question sampler, five a question, 512 px. Goals: at most 0.06 CPU-seconds an image with
encoding, 1.9 times the throughput with two processes. The reliefs are those of results/scenes where they exist, else they
are built first (the drawings come from npm). pybullet is looked for in the Python that PEERS_PYTHON names, in .venv/peers
and in this one; `pip install pybullet` brings it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "workflow"))

from bindbench.config.questions import Questions, Vocabulary  # noqa: E402
from bindbench.config.scenes import Scenes  # noqa: E402
from bindbench.paths import resolve  # noqa: E402
from bindbench.saber.questions import write_questions  # noqa: E402
from bindbench.scenes.images import encode_png, render_shard  # noqa: E402
from bindbench.scenes.relief import build_reliefs, read_reliefs  # noqa: E402
from bindbench.scenes.render import SceneObject, render_scene  # noqa: E402
from bindbench.scenes.shapes import fetch_shapes, noto_names  # noqa: E402
from bindbench.tables import SCENES, read_table  # noqa: E402
from bindbench.vocabulary import Vocabulary as Catalogue  # noqa: E402
from bindbench.vocabulary import read_vocabulary  # noqa: E402
from machine import describe  # noqa: E402

QUESTIONS_PER_N = 10
ROUNDS = 3
PEER = """
import json, sys, time
import pybullet as bullet
import pybullet_data
bullet.connect(bullet.DIRECT)
bullet.setAdditionalSearchPath(pybullet_data.getDataPath())
view = bullet.computeViewMatrix([0, -3, 2.2], [0, 0, 0.3], [0, 0, 1])
projection = bullet.computeProjectionMatrixFOV(40, 1, 0.1, 20)
bullet.loadURDF("plane.urdf")
shape = bullet.createVisualShape(bullet.GEOM_MESH, fileName="duck.obj", meshScale=[0.25] * 3)
seconds, placed = {}, 0
for count in map(int, sys.argv[2].split(",")):
    while placed < count:
        bullet.createMultiBody(0, -1, shape, [(placed % 4 - 1.5) * 0.5, (placed // 4 - 1) * 0.5, 0], [0.7071, 0, 0, 0.7071])
        placed += 1
    start = time.process_time()
    for _ in range(int(sys.argv[1])):
        bullet.getCameraImage(512, 512, view, projection, renderer=bullet.ER_TINY_RENDERER)
    seconds[count] = (time.process_time() - start) / int(sys.argv[1])
print(json.dumps(seconds))
"""


def inputs(folder: Path) -> tuple[Catalogue, dict[int, list[dict]], Path]:
    """The vocabulary, scenes by N, and the file of reliefs; what is missing in the folder is made."""
    settings = Vocabulary()
    vocabulary = read_vocabulary(resolve(settings.objects), resolve(settings.attributes), settings.palette)
    scenes = folder / "scenes.parquet"
    if not scenes.exists():
        settings = Questions(independent=QUESTIONS_PER_N, nested=0)
        write_questions(vocabulary, settings, folder / "questions.parquet", scenes)
    by_count = defaultdict(list)
    for row in read_table(SCENES, scenes).to_pylist():
        by_count[len(row["bindings"])].append(row)
    reliefs = REPOSITORY / "results/scenes/reliefs.bin"
    if not reliefs.exists():
        reliefs = folder / "reliefs"
        if not reliefs.exists():
            shapes = [thing.shape for thing in vocabulary.objects.values()]
            fetch_shapes(folder / "noto.json", noto_names(shapes))
            build_reliefs(shapes, folder / "noto.json", reliefs, workers=2)
    return vocabulary, by_count, reliefs


def measure_by_count(
    vocabulary: Catalogue, by_count: dict[int, list[dict]], reliefs: Path
) -> dict[int, tuple[float, float, float]]:
    """CPU-seconds of rendering and of encoding, and KiB, an image, for each N. Loading reliefs and tiles is counted."""
    opened, figures = read_reliefs(reliefs), {}
    for count, rows in by_count.items():
        rendering = encoding = size = 0.0
        for row in rows:
            objects = [
                SceneObject(
                    vocabulary.objects[binding["object"]].shape,
                    vocabulary.attributes[binding["attribute"]].material,
                    tuple(binding["slots"]),
                )
                for binding in row["bindings"]
            ]
            start = time.process_time()
            image = render_scene(objects, opened, 512, row["scene"], False)
            middle = time.process_time()
            size += len(encode_png(image)) / 1024
            encoding += time.process_time() - middle
            rendering += middle - start
        figures[count] = rendering / len(rows), encoding / len(rows), size / len(rows)
    return figures


def render_half(half: int, folder: Path) -> None:
    """One of two processes: says that it is ready, waits for a line, renders every second scene, says its seconds."""
    vocabulary, by_count, reliefs = inputs(folder)
    rows = [row for count in by_count for row in by_count[count]][half::2]
    print("ready", flush=True)
    sys.stdin.readline()
    start, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as output:
        render_shard(rows, vocabulary, reliefs, Scenes(), Path(output) / "0000.parquet", 1)
    print(time.perf_counter() - start, time.process_time() - cpu, len(rows), flush=True)


def seconds_of(halves: tuple[int, ...], folder: Path) -> tuple[float, float]:
    """Wall seconds of the slowest process, CPU-seconds an image; the processes start at the same moment."""
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--half", str(half), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for half in halves
    ]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [[float(word) for word in process.stdout.readline().split()] for process in processes]
    for process in processes:
        process.wait()
    return max(wall for wall, _, _ in answers), sum(cpu for _, cpu, _ in answers) / sum(n for _, _, n in answers)


def peer_seconds(counts: list[int]) -> dict[int, float] | str:
    """CPU-seconds an image of TinyRenderer, or why there are none."""
    for python in (os.environ.get("PEERS_PYTHON"), REPOSITORY / ".venv/peers/bin/python", sys.executable):
        if python and Path(python).exists():
            done = subprocess.run(
                [python, "-c", PEER, "10", ",".join(map(str, counts))], capture_output=True, text=True
            )
            if done.returncode == 0:
                return {int(count): value for count, value in json.loads(done.stdout.splitlines()[-1]).items()}
    return "pybullet is not installed: not compared"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocabulary, by_count, reliefs = inputs(folder)
        figures = measure_by_count(vocabulary, by_count, reliefs)
        peer = peer_seconds(list(by_count))
        alone = [seconds_of((half,), folder) for half in (0, 1) for _ in range(ROUNDS)]
        together = [seconds_of((0, 1), folder) for _ in range(ROUNDS)]
    lines = report(figures, peer, alone, together)
    (REPOSITORY / "benchmarks/renderer.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def report(figures: dict, peer: dict | str, alone: list, together: list) -> list[str]:
    lines = [
        "# Rendering",
        "",
        describe(),
        "",
        f"Load of the machine when the benchmark ended, itself included: {os.getloadavg()[1]:.1f} of {os.cpu_count()} cores.",
        "",
        f"512 px, {5 * QUESTIONS_PER_N} images for each N, one process, CPU-seconds an image.",
        "",
        "| N | rendering | PNG | both | KiB | TinyRenderer, without PNG | times our rendering |",
        "|---|---|---|---|---|---|---|",
    ]
    mean = [sum(values) / len(figures) for values in zip(*figures.values(), strict=True)]
    rows = {**figures, "mean": tuple(mean)}
    if not isinstance(peer, str):
        peer = {**peer, "mean": sum(peer.values()) / len(peer)}
    for count, (rendering, encoding, size) in rows.items():
        beside = "| |" if isinstance(peer, str) else f"{peer[count]:.3f} | {peer[count] / rendering:.1f} |"
        lines.append(
            f"| {count} | {rendering:.4f} | {encoding:.4f} | {rendering + encoding:.4f} | {size:.0f} | {beside}"
        )
    one, two = sum(min(a[0] for a in alone[half * ROUNDS :][:ROUNDS]) for half in (0, 1)), min(t[0] for t in together)
    one_cpu, two_cpu = min(cpu for _, cpu in alone), min(cpu for _, cpu in together)
    lines += [
        "",
        peer
        if isinstance(peer, str)
        else "TinyRenderer draws N ducks (pybullet's own mesh) on a plane: one texture, no materials.",
        "",
        f"Whole shards, from tables to PNG files (the fastest of {ROUNDS} rounds): one process after the other "
        f"{one:.1f} s, both at once {two:.1f} s: {one / two:.2f} times the throughput with two processes. In CPU-seconds "
        f"an image, which other programs on the machine hardly touch: {one_cpu:.4f} alone, {two_cpu:.4f} beside each other: "
        f"{2 * one_cpu / two_cpu:.2f} times.",
        "",
        "Goals: at most 0.06 CPU-seconds an image with encoding, mean over N = 2 to 10; 1.9 times; 300 KiB.",
    ]
    return lines


if __name__ == "__main__":
    if sys.argv[1:2] == ["--half"]:
        render_half(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
