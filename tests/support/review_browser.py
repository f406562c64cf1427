"""A real browser at a review page, and the review as a person starts it; used by the tests of each page.

Needs Chromium and chromedriver (apt install chromium chromium-driver). Without them the tests are skipped, unless
BINDBENCH_BROWSER=required says that they must be there, as in CI.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,720"),
)
PATIENCE_S = 30


def missing() -> str | None:
    if BROWSER is None or DRIVER is None:
        return "no Chromium with chromedriver on this machine"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    return None


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    lacking = missing()
    if lacking:
        if os.environ.get("BINDBENCH_BROWSER") == "required":
            pytest.fail(f"BINDBENCH_BROWSER=required, but {lacking}")
        pytest.skip(lacking)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver):
    """At an empty page that has no complaints yet, of those of earlier tests either."""
    leave(driver)
    driver.get_log("browser")
    return driver


def leave(driver):
    driver.get("about:blank")


class Program:
    """The review as a person starts it: a process of its own, killed when it pleases."""

    def __init__(self, program, files, port=0):
        """program: Python code that serves files and a port, its arguments, and prints the address."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, files), str(port)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self.process.stdout.readline().split("Open ")[1].strip()
        self.port = int(self.url.split(":")[2].split("/")[0])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def programs(browser, code, files):
    """Starts a Program with these files at each call; at the end the browser leaves before its server does."""
    running = []

    def start(port=0):
        running.append(Program(code, files, port))
        return running[-1]

    try:
        yield start
    finally:
        leave(browser)
        for one in running:
            if one.process.poll() is None:
                one.kill()


class Page:
    """What a person does and sees on any review page. loaded: JavaScript that is true once all pictures are there."""

    loaded: str

    def __init__(self, driver, journal):
        self.driver, self.journal = driver, journal

    def open(self, url):
        leave(self.driver)
        self.driver.get(url)
        self.until_seen()

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}; the page says {self.status!r}"
            time.sleep(0.02)

    def until_seen(self):
        self.until(lambda: self.script(self.loaded), "the pictures did not show")

    def key(self, *keys):
        """Keys as the keyboard sends them, to whatever has the focus; a capital is Shift and its letter."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            actions = ActionChains(self.driver)
            if key == "A":
                actions.key_down(Keys.SHIFT).send_keys("a").key_up(Keys.SHIFT)
            else:
                actions.send_keys(key)
            actions.perform()

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    @property
    def status(self):
        return self.text("#status")

    def lines(self):
        if not self.journal.exists():
            return []
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def press(self, *keys, lines):
        """Presses keys and waits until the page says that all is saved; returns the lines, of which there are so many."""
        before = len(self.lines())
        self.key(*keys)
        self.until(lambda: len(self.lines()) == before + lines, "the journal has not the line")
        self.until(lambda: self.status.startswith("Saved at"), "the page does not say that it is saved")
        return self.lines()[before:]

    def choose(self, name, value):
        self.script(
            "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))",
            f"filter-{name}",
            value,
        )

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
