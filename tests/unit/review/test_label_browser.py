"""A session at the page of labels in a real browser: keys, undo, reload and resume after a kill; see review_browser.py."""

import pytest
from bindbench.multibind.evaluation_tables import LABELS
from bindbench.tables import read_table
from review_browser import Page, programs

PROGRAM = """
import sys
from pathlib import Path
from bindbench.config.multibind_scoring import Scoring
from bindbench.multibind.labelling import LabelReview, evaluation_files
from bindbench.review.serving import serve_until_stopped
folder, labels, port = sys.argv[1:]
files = evaluation_files(Path(folder), ["good", "bad"])
review = LabelReview(files, Scoring(dimensions=("face", "pose")), Path(labels), "Ada")
serve_until_stopped(review, port=int(port), open_browser=False)
"""


class LabelPage(Page):
    loaded = (
        "const all = [...document.querySelectorAll('#cards .holder')]; return all.length > 0 && "
        "all.every(h => h.querySelector('img')?.complete && h.querySelector('img').naturalWidth)"
    )

    @property
    def own(self):
        return self.text("#name")[-1]

    @property
    def others(self):
        slots = self.script("return [...document.querySelectorAll('.card.target b')].map(b => b.textContent[0])")
        return [slot for slot in slots if slot != self.own]

    @property
    def done(self):
        return int(self.text("#totals").split(" of ")[0])

    @property
    def place(self):
        """The number of the crop that is shown; 0 while there is none yet."""
        return int(self.text("#place").rpartition("crop ")[2].split(" ")[0] or 0)

    def standings(self):
        """First word of each target's standing, its own first."""
        cards = self.script(
            "return [...document.querySelectorAll('.card.target')].map(c => [c.matches('.own'), "
            "c.querySelector('.standing').firstChild.textContent])"
        )
        return [text.split()[1] for own, text in sorted(cards, key=lambda card: not card[0])]

    def turned_to(self, place):
        self.until(lambda: self.place == place, f"crop {place} is not shown but {self.place}")
        self.until_seen()


@pytest.fixture
def program(browser, labelling):
    with programs(browser, PROGRAM, [labelling.folder, labelling.labels]) as start:
        yield start


def test_a_session(browser, labelling, program):
    from selenium.webdriver.common.keys import Keys

    page = LabelPage(browser, labelling.journal("Ada"))
    running = program()
    page.open(running.url)
    assert page.text("#totals") == "0 of 20 crops labelled" and page.place == 1
    shown = page.script("return document.body.textContent")
    assert "good" not in shown and "bad" not in shown and "undefined" not in shown
    over = """
        const card = document.querySelector('.card.person');
        const [picture, drawn] = [card.querySelector('img'), card.querySelector('svg')].map(e => e.getBoundingClientRect());
        return [card.querySelectorAll('path').length, Math.abs(picture.width - drawn.width) + Math.abs(picture.top - drawn.top)]
    """
    paths, apart = page.script(over)
    assert paths == 2 and apart < 2

    # both questions are answered by a key each, and the page goes on by itself
    page.press("y", lines=1)
    assert page.standings()[0] == "yes" and page.place == 1
    page.press("0", lines=len(page.others))
    page.turned_to(2)
    assert page.done == 1

    # a letter means the others are not; it can be taken back and more may follow, so the page waits
    while len(page.others) < 2:
        before = page.place
        page.key("s")
        page.until(lambda before=before: page.place != before, "the page does not skip")
        page.until_seen()
    place, (first, second) = page.place, page.others
    page.press("n", lines=1)
    page.press(first.lower(), lines=2)
    assert page.standings() == ["no", "yes", "no"] and page.place == place
    page.press(second.lower(), lines=1)
    page.press(first.lower(), lines=1)
    assert page.standings() == ["no", "no", "yes"]
    page.key(page.own.lower())
    assert "press y or n" in page.status and page.standings() == ["no", "no", "yes"]

    # undo, key by key, also of one that led to another crop
    page.press("u", "u", lines=2)
    assert page.standings() == ["no", "yes", "no"]
    page.press("u", lines=2)
    assert page.standings() == ["no", "open", "open"]
    page.press("x", lines=2)
    page.until(lambda: page.place != place, "the page did not go on")
    page.until_seen()
    page.press("u", lines=2)
    page.turned_to(place)
    assert page.standings() == ["no", "open", "open"] and page.done == 1
    page.press("0", lines=2)
    page.until(lambda: page.done == 2, "the progress is not shown")

    # reload, and another start after a kill: nothing is lost, and the first open crop is shown
    first_open = 2 if place != 2 else 3
    page.driver.refresh()
    page.turned_to(first_open)
    assert page.done == 2
    running.kill()
    page.key("y")
    page.until(lambda: "1 press is kept" in page.status, "the trouble is not told")
    page.open(program(running.port).url)
    page.until(lambda: page.lines()[-1]["verdict"] == "yes" and page.status.startswith("Saved at"), "not saved later")
    assert page.done == 2 and page.place == first_open and page.standings()[0] == "yes"

    # enlarged beside another person, and back
    page.key("z", Keys.ARROW_DOWN, "z")
    assert not page.script("return document.getElementById('large').open")
    page.choose("dimension", "pose")
    page.until(lambda: page.text("#name").startswith("pose"), "the filter shows another dimension")

    rows = read_table(LABELS, labelling.labels).to_pylist()
    judged = {line["label"]: line["verdict"] for line in page.lines()}
    assert {
        "/".join((r["generator"], r["instance"], r["dimension"], r["row"], r["column"])): r["label"] for r in rows
    } == {label: verdict == "yes" for label, verdict in judged.items() if verdict in ("yes", "no")}
    assert [entry for entry in page.complaints() if "net::ERR_" not in entry] == []


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_nothing_is_cut_off_or_asked_for_from_outside(browser, labelling, program, width, height):
    page = LabelPage(browser, labelling.journal("Ada"))
    page.open(program().url)
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert page.complaints() == []
