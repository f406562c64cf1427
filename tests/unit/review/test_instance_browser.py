"""A session at MultiBind's review page in a real browser: keys, undo, resume; see review_browser.py."""

import pytest
from bindbench.multibind.parts import rejected_parts
from review_browser import Page, programs

TABLES = ("selected", "crops", "references", "backgrounds", "annotations", "prompts")
PROGRAM = """
import sys
from pathlib import Path
from bindbench.multibind.reviewing import InstanceReview
from bindbench.review.serving import serve_until_stopped
*tables, journal, port = sys.argv[1:]
review = InstanceReview(*map(Path, tables), Path(journal), by="Ada")
serve_until_stopped(review, port=int(port), open_browser=False)
"""


class InstancePage(Page):
    loaded = (
        "const all = [...document.querySelectorAll('.card .holder')]; return all.length > 0 && "
        "all.every(h => h.querySelector('img')?.complete && h.querySelector('img').naturalWidth)"
    )

    @property
    def instance(self):
        return self.text("#name")

    @property
    def chosen(self):
        return self.script("return document.querySelector('.card.chosen').getAttribute('aria-label')")

    def standing(self, part):
        return self.script(
            "return document.querySelector(`.card[aria-label='${arguments[0]}'] .standing`).textContent", part
        )

    def press(self, *keys, lines):
        return [(line["part"], line["verdict"], line["reason"]) for line in super().press(*keys, lines=lines)]

    def turned_to(self, instance):
        self.until(lambda: self.instance == instance, f"{instance} is not shown but {self.instance}")
        self.until_seen()


@pytest.fixture
def program(browser, multibind):
    with programs(browser, PROGRAM, [*map(multibind.path, TABLES), multibind.journal]) as start:
        yield start


@pytest.fixture
def page(browser, multibind, program):
    page = InstancePage(browser, multibind.journal)
    page.program = program()
    page.open(page.program.url)
    return page


def test_a_session(page, multibind, program):
    from selenium.webdriver.common.keys import Keys

    assert page.instance == "coco-a" and page.chosen == "the instance" and "30 open" in page.text("#totals")

    # every part has its key
    keys = {
        "2": "crop and mask of B",
        "5": "reference of A",
        "9": "background",
        "d": "description",
        "t": "prompt",
        "i": "the instance",
    }
    for key, name in keys.items():
        page.key(key)
        assert page.chosen == name
    page.key("i", "4")
    assert page.chosen == "the instance"  # there is no subject D
    page.key(Keys.ARROW_DOWN)
    assert page.chosen == "crop and mask of A"
    page.key(Keys.ARROW_UP, Keys.ARROW_UP)
    assert page.chosen == "prompt"

    # a part is rejected by a digit of its own reasons, another in own words; one part alone is accepted
    assert page.press("6", "r", "3", lines=1) == [("coco-a/reference/B", "rejected", "pose not neutral")]
    assert page.chosen == "reference of B" and page.standing("reference of B").startswith(
        "✗ rejected: pose not neutral"
    )
    page.key("9", "r", "0")
    page.key("a hand is left")
    assert page.press(Keys.ENTER, lines=1) == [("coco-a/background", "rejected", "a hand is left")]
    assert page.press("1", "y", lines=1) == [("coco-a/crop/A", "accepted", None)]

    # undo, one press after the other
    assert page.press("u", lines=1) == [("coco-a/crop/A", "open", None)]
    assert page.press("u", lines=1) == [("coco-a/background", "open", None)]
    assert set(rejected_parts(multibind.journal)) == {("coco-a", "reference", "B")}

    # the rest of the instance is accepted, the rejected part stays, and the page goes on; undo turns back
    accepted = page.press("a", lines=7)
    assert {verdict for _, verdict, _ in accepted} == {"accepted"} and "coco-a/reference/B" not in [
        part for part, *_ in accepted
    ]
    page.turned_to("folder-b")
    page.press("u", lines=7)
    page.turned_to("coco-a")
    assert page.standing("prompt").startswith("○ open") and page.standing("reference of B").startswith("✗")
    page.press("a", lines=7)
    page.turned_to("folder-b")

    # resume: another start of the program shows the first instance with open parts, also after a kill
    page.key("p")
    page.turned_to("coco-a")
    page.program.kill()
    page.open(program().url)
    assert page.instance == "folder-b" and "22 open, 1 rejected" in page.text("#totals")

    # filters, and the next open one
    page.choose("state", "rejected")
    page.turned_to("coco-a")
    page.choose("state", "all")
    page.turned_to("folder-b")
    page.choose("subjects", "4")
    page.turned_to("coco-c")
    page.choose("subjects", "")
    page.key("o")
    page.until(lambda: page.instance != "coco-a", "a finished instance is shown as open")
    assert page.complaints() == []


def test_slots_outlines_prompt_blocks_and_problems_are_to_be_seen(multibind, browser, program):
    multibind.row("references", "coco-a", "B")["problems"] = ["no_face", "small"]
    multibind.row("backgrounds", "coco-a").update(background=None, sha256=None, people_left=None, problems=["refused"])
    multibind.write()
    page = InstancePage(browser, multibind.journal)
    page.open(program().url)
    letters = (
        "return [...document.querySelectorAll(`.card[aria-label='the instance'] svg text`)].map(t => t.textContent)"
    )
    assert page.script(letters) == ["A", "B"]
    over = """
        const card = document.querySelector(`.card[aria-label='crop and mask of A']`);
        const [picture, drawn] = [card.querySelector('img'), card.querySelector('svg')].map(e => e.getBoundingClientRect());
        return [card.querySelectorAll('path').length, Math.abs(picture.width - drawn.width) + Math.abs(picture.top - drawn.top)]
    """
    paths, apart = page.script(over)
    assert paths == 2 and apart < 2
    colours = page.script(
        "return [...document.querySelectorAll('.text p.block')].map(p => getComputedStyle(p).borderLeftColor)"
    )
    assert len(colours) == len(set(colours)) == 2
    assert page.text(".card[aria-label='reference of B'] .problems") == "⚠ no_face, small"
    assert page.text(".card.missing") == "No background was made: refused."
    assert page.text(".card[aria-label='prompt'] .facts").endswith(" words")
    page.key("9")
    assert page.chosen == "the instance"  # what was not made cannot be chosen
    page.choose("problems", "found something")
    page.until(lambda: "instance 1 of 1" in page.text("#place"), "the filter shows others")
    page.key("6", "z")
    assert page.text("#large-problems") == "⚠ no_face, small"
    page.press("r", "1", lines=1)
    assert page.text("#large-standing").startswith("✗ rejected: other identity")


def test_what_was_not_seen_cannot_be_judged(multibind, browser, program):
    path = multibind.folder / "references" / multibind.row("references", "coco-a", "A")["reference"]
    path.write_bytes(b"another")
    (multibind.folder / "selected" / multibind.row("crops", "coco-a", "B")["mask_file"]).write_bytes(b"another")
    page = InstancePage(browser, multibind.journal)
    browser.get(program().url)
    page.until(lambda: "made again" in page.text(".card[aria-label='reference of A'] .note"), "the trouble is not told")
    for keys in (("5", "y"), ("a",)):
        page.key(*keys)
        assert "cannot be judged" in page.status
    page.key("2", "y")
    assert "made again" in page.status and page.lines() == [] and page.instance == "coco-a"


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_nothing_is_cut_off_or_asked_for_from_outside(page, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    origin = page.program.url.split("#")[0]
    asked = page.script("return performance.getEntriesByType('resource').map(r => r.name)")
    assert asked and all(name.startswith((origin, f"blob:{origin}")) for name in asked)
    assert page.complaints() == []
