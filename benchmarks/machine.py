"""One line about where and when a benchmark ran."""

import os
import platform
from datetime import date
from pathlib import Path


def describe() -> str:
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    return f"{date.today()}, {os.cpu_count()} cores, {processor}, Python {platform.python_version()}."


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
