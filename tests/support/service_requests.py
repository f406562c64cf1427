"""Requests that the tests of services make, and a run in a process of its own that can be killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bindbench.config.services import Services
from bindbench.services.requests import Request

OPENAI_KEY, GEMINI_KEY = "sk-marked-openai-2718281828", "gm-marked-gemini-3141592653"
SEEDREAM_KEY = "ark-marked-seedream-1414213562"


def pictures(count: int, start: int = 0, size: str = "64x64", **more) -> list[Request]:
    return [
        Request(
            "image_generation", "gpt-image-2", {"prompt": f"picture {i}", "size": size, "quality": "medium"}, **more
        )
        for i in range(start, start + count)
    ]


SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["accepted", "rejected"]}, "reason": {"type": "string"}},
    "required": ["verdict", "reason"],
    "additionalProperties": False,
}


def question(text: str = "Is it right?", **more) -> Request:
    body = {
        "messages": [{"role": "user", "content": text}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
        },
    }
    return Request("chat", "chatty", body, **more)


def gemini_picture(text: str = "a red cube", **more) -> Request:
    return Request(
        "gemini_content",
        "gemini-3-pro-image",
        {"contents": text, "config": {"response_modalities": ["IMAGE"], "image_config": {"aspect_ratio": "1:1"}}},
        **more,
    )


def wait_until(condition, seconds: float = 30.0):
    """The first true value of a condition."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("it did not come true in time")


def courier_of(store: Path) -> int | None:
    """The process id of the living courier of a store."""
    try:
        pid = json.loads((store / "courier.json").read_text())["pid"]
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid if "services.courier" in Path(f"/proc/{pid}/cmdline").read_text() else None


RUN = """
import json, sys
from bindbench.config.services import Services
from bindbench.errors import UserError
from bindbench.services import buying
from bindbench.services.requests import Request

settings, requests, courier = json.load(sys.stdin)
if not courier:
    buying.start_courier = lambda store, settings: None
try:
    for answer in buying.answers([Request.from_json(r) for r in requests], Services.model_validate(settings)):
        print(json.dumps([answer.request.key, answer.accepted, answer.reason, answer.held]), flush=True)
except UserError as error:
    sys.exit(str(error))
"""


class KillableRun:
    """`answers` in a process and session of its own; a line of JSON for each answer."""

    def __init__(self, requests: list[Request], settings: Services, courier: bool = True):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "workflow")},
        )
        json.dump([settings.model_dump(), [r.to_json() for r in requests], courier], self.process.stdin)
        self.process.stdin.close()
        self.process.stdin = None

    def kill(self) -> None:
        """kill -9 of the whole process group."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def first_answer(self) -> list:
        return json.loads(self.process.stdout.readline())

    def answers(self) -> list[list]:
        """All that are left, read as `first_answer` reads: `communicate` would miss what is buffered."""
        lines = list(self.process.stdout)
        error = self.process.stderr.read()
        assert self.process.wait(120) == 0, error
        return [json.loads(line) for line in lines]
