"""What buying costs the machine. Goals: 200 requests at once without a thread each, under 5 ms of CPU a request on top of
the bare client, 100,000 entries listed and verified in under 10 s, memory flat while 9,000 images stream through.

    python benchmarks/services.py        writes benchmarks/services.md; needs the dependency group services, ten minutes, 3 GB
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "workflow"), str(REPOSITORY / "tests" / "support")]

from bindbench.config.services import Services  # noqa: E402
from bindbench.services.judging import check_image  # noqa: E402
from bindbench.services.requests import Request  # noqa: E402
from bindbench.services.store import Store, header_line, make_header  # noqa: E402
from fake_services import FakeServices  # noqa: E402

# Either side in a process of its own: CPU seconds and peak memory of it and its children, as one line of JSON.
COMMON = """
import asyncio, base64, json, os, resource, sys, time
settings_json, start, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
body = lambda i: {"prompt": f"picture {start + i}", "size": size, "quality": "medium"}
def report(threads=None):
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"cpu": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, "threads": threads,
                      "run_mb": own.ru_maxrss / 1024, "courier_mb": children.ru_maxrss / 1024}))
"""

BARE = (
    COMMON
    + """
from openai import AsyncOpenAI
settings = json.loads(settings_json)
async def main():
    client = AsyncOpenAI(api_key="any", base_url=settings["openai_base_url"], max_retries=0)
    gate = asyncio.Semaphore(settings["concurrency"])
    async def one(i):
        async with gate:
            answer = await client.images.generate(model="gpt-image-2", **body(i))
            return len(base64.b64decode(answer.data[0].b64_json))
    sizes = await asyncio.gather(*map(one, range(count)))
    assert min(sizes) > 0
asyncio.run(main())
report()
"""
)

OURS = (
    COMMON
    + """
from pathlib import Path
from bindbench.config.services import Services
from bindbench.services.buying import answers
from bindbench.services.requests import Request
settings = Services.model_validate_json(settings_json)
seen, threads, pid = 0, 0, None
for answer in answers((Request("image_generation", "gpt-image-2", body(i)) for i in range(count)), settings):
    assert answer.accepted
    seen += 1
    if seen % 50 == 1:
        pid = json.loads((Path(settings.store) / "courier.json").read_text())["pid"]
        threads = max(threads, len(os.listdir(f"/proc/{pid}/task")))
assert seen == count
os.waitpid(pid, 0)
report(threads)
"""
)


def measured(program: str, settings: Services, start: int, count: int, size: str) -> dict:
    environment = {**os.environ, "OPENAI_API_KEY": "any", "PYTHONPATH": str(REPOSITORY / "workflow")}
    done = subprocess.run(
        [sys.executable, "-c", program, settings.model_dump_json(), str(start), str(count), size],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def overhead(server: FakeServices, folder: Path, size: str, padding: int, count: int = 1000) -> list[str]:
    """CPU milliseconds a request, start-up taken off by a run of one request: the bare client, and all of ours."""
    server.reset()
    server.control("settings", {"padding": padding})
    server.faults({"fault": "delay", "seconds": 1.0, "times": 10**9})
    settings = settings_for(server, folder / f"overhead {size} {padding}", 200)
    cost = {}
    for name, program in (("bare", BARE), ("ours", OURS)):
        one = measured(program, settings, 10**6, 1, size)
        many = measured(program, settings, 0, count, size)
        cost[name] = 1000 * (many["cpu"] - one["cpu"]) / (count - 1)
    most = server.control("seen")["most_in_flight"]
    payload = next(
        entry.payload for key in Store(settings.store).every_key() if (entry := Store(settings.store).read(key))
    )
    start, times = time.process_time(), 100
    for _ in range(times):
        check_image(base64.b64encode(payload).decode(), size)
    decoding = 1000 * (time.process_time() - start) / times
    return [
        f"| {size}, {padding // 1000 or '<1'} kB | {most} | {many['threads']} | {cost['bare']:.1f} | {cost['ours']:.1f} | "
        f"{cost['ours'] - cost['bare']:.1f} | {decoding:.1f} |"
    ]


def settings_for(server: FakeServices, store: Path, concurrency: int) -> Services:
    return Services(
        store=str(store),
        openai_base_url=f"{server.url}/v1",
        concurrency=concurrency,
        budget_usd=10_000,
        prices={"gpt-image-2": {"image_tokens": {"default": 1000}}},
    )


def listing(folder: Path, count: int = 100_000) -> list[str]:
    store = Store(folder / "many")
    for index in range(count):  # as `put` writes them, without an fsync for each
        request = Request("chat", "gemma-4-31b-it", {"messages": [{"role": "user", "content": f"text {index} " * 20}]})
        payload = f"answer {index} ".encode() * 20
        facts = {"status": "answer", "content_type": "text/plain", "tokens": {"input_text": 90}, "cost_usd": 0.001}
        path = store.path(request.key)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(header_line(make_header(request, payload, cost_from="usage", **facts)) + payload)
    rows = []
    for name, work in (
        ("list: every header read and checked", lambda: sum(header["cost_usd"] > 0 for header in store.headers())),
        ("verify: payloads hashed, keys computed", lambda: sum(bool(store.verify(key)) for key in store.every_key())),
    ):
        wall, processor = time.perf_counter(), time.process_time()
        assert work() == count
        rows.append(f"| {name} | {time.process_time() - processor:.1f} | {time.perf_counter() - wall:.1f} |")
    return rows


def streaming(server: FakeServices, folder: Path) -> list[str]:
    rows = []
    for count in (900, 9000):
        server.reset()
        server.control("settings", {"padding": 200_000, "keep_log": False})
        settings = settings_for(server, folder / f"stream {count}", 50)
        start = time.perf_counter()
        peak = measured(OURS, settings, 0, count, "64x64")
        seconds = time.perf_counter() - start
        rows.append(f"| {count:,} | {peak['run_mb']:.0f} | {peak['courier_mb']:.0f} | {count / seconds:.0f} |")
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as name, FakeServices() as server:
        folder = Path(name)
        lines = [
            "# Paid services",
            "",
            describe() + " Against the local server of the tests.",
            "",
            "CPU milliseconds a request with 200 in flight (answers take a second): the bare `AsyncOpenAI` with base64",
            "decoding, and the run and its courier together: journal, checking every image, hashes, store, fsyncs, handing",
            "over. Start-up is taken off. Goal: under 5 ms more, and no thread a request.",
            "",
            "| image | most in flight | threads of the courier | bare | ours | more | of which checking the image |",
            "|---|---|---|---|---|---|---|",
            *overhead(server, folder, "64x64", 0),
            *overhead(server, folder, "64x64", 200_000),
            *overhead(server, folder, "1024x1024", 0),
            *overhead(server, folder, "1024x1024", 1_800_000),
            "",
            "100,000 entries. Goal: under 10 s.",
            "",
            "| what | CPU seconds | seconds |",
            "|---|---|---|",
            *listing(folder),
            "",
            "Images of 200 kB through the store, 50 in flight: peak memory. Goal: flat.",
            "",
            "| images | run, MB | courier, MB | images a second |",
            "|---|---|---|---|",
            *streaming(server, folder),
        ]
    (REPOSITORY / "benchmarks/services.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
