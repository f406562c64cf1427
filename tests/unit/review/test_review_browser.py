"""A session at the review page in a real browser, with the journal looked at after each press; see review_browser.py."""

import re
import signal

import pytest
from review_browser import Page, programs

PROGRAM = """
import sys
from pathlib import Path
from bindbench.review.scenes import SceneReview
from bindbench.review.serving import serve_until_stopped
questions, scenes, images, journal, port = sys.argv[1:]
review = SceneReview(questions, scenes, [images], Path(journal), by="Ada")
serve_until_stopped(review, port=int(port), open_browser=False)
"""


class ScenePage(Page):
    """What a person does and sees on SABER's page."""

    loaded = "return [...document.querySelectorAll('.card img')].filter(i => i.complete && i.naturalWidth).length == 5"

    @property
    def question(self):
        return self.text("#name")

    @property
    def standings(self):
        """The first word of each card's standing, without its sign: accepted, rejected, open."""
        cards = self.script("return [...document.querySelectorAll('.card .standing')].map(s => s.textContent)")
        return [re.match("[a-z]+?(?=not saved yet|by |:|;|$)", card[2:])[0] for card in cards]

    @property
    def chosen(self):
        return self.script("return [...document.querySelectorAll('.card')].findIndex(c => c.matches('.chosen'))") + 1

    def press(self, *keys, lines):
        """Role, verdict and reason of each line."""
        return [
            (line["scene"].split(".")[1], line["verdict"], line["reason"]) for line in super().press(*keys, lines=lines)
        ]

    def turn_to(self, *keys, question):
        self.key(*keys)
        self.until(lambda: self.question == question, f"{question} is not shown but {self.question}")
        self.until_seen()


@pytest.fixture
def program(browser, saber):
    with programs(browser, PROGRAM, (saber.questions, saber.scenes, *saber.images, saber.journal)) as start:
        yield start


@pytest.fixture
def page(browser, saber, program):
    page = ScenePage(browser, saber.journal)
    page.program = program()
    page.open(page.program.url)
    return page


def test_a_session(page, program):
    assert page.question == "i2-0" and page.chosen == 1
    assert page.standings == ["open"] * 5
    assert page.script("return location.hash") == ""  # the token is not left in the address

    # accept, reject by digit, reject in own words
    assert page.press("a", lines=1) == [("query", "accepted", None)]
    assert page.chosen == 2
    assert page.press("r", "4", lines=1) == [("candidate_1", "rejected", "wrong binding")]
    page.key("4", "r", "0")
    page.key("the kite is 2 kites")
    from selenium.webdriver.common.keys import Keys

    assert page.press(Keys.ENTER, lines=1) == [("candidate_3", "rejected", "the kite is 2 kites")]
    assert page.standings == ["accepted", "rejected", "open", "rejected", "open"]
    assert {line["by"] for line in page.lines()} == {"Ada"}

    # undo twice, cancel a rejection
    assert page.press("u", lines=1) == [("candidate_3", "open", None)]
    assert page.press("u", lines=1) == [("candidate_1", "open", None)]
    page.key("3", "r", Keys.ESCAPE)
    assert page.standings == ["accepted", *["open"] * 4] and len(page.lines()) == 5

    # accept the rest and go on; a rejected one stays
    page.press("2", "r", "1", lines=1)
    accepted = page.press("A", lines=3)
    assert [(role, verdict) for role, verdict, _ in accepted] == [(f"candidate_{i}", "accepted") for i in (2, 3, 4)]
    page.until(lambda: page.question == "c0-2", "the page did not go on")
    page.until_seen()

    # undo of a whole press turns back to its question
    page.press("u", lines=3)
    page.until(lambda: page.question == "i2-0", "undo did not turn back")
    assert page.standings == ["accepted", "rejected", "open", "open", "open"]
    page.press("A", lines=3)

    # resume: a reload starts at the first question with open scenes
    page.until(lambda: page.question == "c0-2", "the page did not go on")
    page.turn_to("p", question="i2-0")
    page.driver.refresh()
    page.until_seen()
    assert page.question == "c0-2"

    # filters
    page.choose("state", "rejected")
    page.until(lambda: page.question == "i2-0", "the filter did not show the rejected one")
    assert "question 1 of 1" in page.text("#place")
    page.choose("state", "open")
    page.until(lambda: page.question == "c0-2", "the filter did not show the open one")
    assert "question 1 of 3" in page.text("#place")
    page.choose("size", "3")
    page.until(lambda: page.question == "i3-0", "the filter did not show three objects")
    assert "question 1 of 2" in page.text("#place")
    page.choose("subset", "nested")
    page.until(lambda: page.question == "c0-3", "the filter did not show the nested one")
    page.choose("state", "accepted")
    page.until(lambda: page.text("#note") == "No question fits the filters.", "the empty filter is not told")
    assert page.script("return document.querySelector('#cards').getBoundingClientRect().height") == 0
    for name, value in (("state", "all"), ("size", ""), ("subset", "")):
        page.choose(name, value)
    page.until(lambda: page.question == "c0-2", "the filters did not open again")
    page.until_seen()

    # the server is killed; presses are kept and told, and saved once it is back
    before = page.lines()
    page.program.kill()
    page.key("a")
    page.until(lambda: "Not saved yet" in page.status and "1 press is kept" in page.status, "the trouble is not told")
    page.key("r", "6")
    page.until(lambda: "2 presses are kept" in page.status, "the second press is not told")
    assert page.standings[:2] == ["accepted", "rejected"]
    assert page.script("return document.querySelectorAll('.card .standing')[0].textContent").endswith("not saved yet")
    assert page.script("return !document.getElementById('retry').hidden")
    assert page.lines() == before
    again = program(page.program.port)
    page.until(lambda: "started anew" in page.status, "the page does not tell that its token is of an earlier session")
    page.open(again.url)
    page.until(lambda: len(page.lines()) == len(before) + 2, "the kept presses were not saved")
    assert [(line["verdict"], line["reason"]) for line in page.lines()[-2:]] == [
        ("accepted", None),
        ("rejected", "cut off"),
    ]
    page.until(lambda: page.status.startswith("Saved at"), "the page does not say that it is saved")
    assert page.standings == ["accepted", "rejected", "open", "open", "open"]


def test_retry_after_a_server_that_hung(page):
    page.program.process.send_signal(signal.SIGSTOP)
    try:
        page.script(
            "window.fetch = (real => (path, options) => real(path, {...options, signal: AbortSignal.timeout(300)}))(fetch)"
        )
        page.key("a")
        page.until(lambda: "1 press is kept" in page.status, "the trouble is not told")
    finally:
        page.program.process.send_signal(signal.SIGCONT)
    page.until(lambda: page.status.startswith("Saved at"), "the press was not saved")
    page.until(lambda: len({line["press"] for line in page.lines()}) == 1, "the journal has not the press")
    assert len(page.lines()) == 1  # sent more than once, kept once


def test_another_page_s_verdict_is_shown_and_not_undone_here(page, browser):
    page.press("a", lines=1)
    first = browser.current_window_handle
    token = page.program.url.split("#")[1]
    browser.switch_to.new_window("tab")
    try:
        page.open(f"http://127.0.0.1:{page.program.port}/#{token}")
        page.press("1", "r", "6", lines=1)
        browser.close()
    finally:
        browser.switch_to.window(first)
    page.script("dispatchEvent(new Event('focus'))")
    page.until(lambda: page.standings[0] == "rejected", "the other page's verdict is not shown")
    page.key("u")
    page.until(lambda: "judged again since" in page.status, "the refusal is not told")
    assert page.standings[0] == "rejected" and len(page.lines()) == 2


def test_every_key_has_a_button_and_the_buttons_work(page):
    def click(name):
        page.script("document.querySelector(`footer [data-do=${arguments[0]}]`).click()", name)

    click("accept")
    page.until(lambda: len(page.lines()) == 1, "accept")
    click("reject")
    page.script("document.querySelectorAll('#reasons button')[2].click()")
    page.until(lambda: len(page.lines()) == 2, "reject")
    assert page.lines()[-1]["reason"] == "extra object"
    click("undo")
    page.until(lambda: len(page.lines()) == 3, "undo")
    click("acceptAll")
    page.until(lambda: page.question == "c0-2" and len(page.lines()) == 7, "accept the rest")
    click("next")
    page.until(lambda: page.question == "i3-0", "next")
    click("previous")
    page.until(lambda: page.question == "c0-2", "previous")
    click("nextOpen")
    page.until(lambda: page.question == "i3-0", "next open")
    page.until_seen()
    page.script("document.querySelectorAll('.card .picture')[3].click()")
    assert page.script("return document.getElementById('large').open") and page.chosen == 4
    page.press("a", lines=1)
    assert page.text("#large-standing").startswith("✓ accepted")
    page.key("z")
    assert not page.script("return document.getElementById('large').open")
    click("help")
    assert page.script("return document.getElementById('help').open")
    page.script("document.querySelector('#help [data-close]').click()")
    names = page.script("return [...document.querySelectorAll('button, input, select, img')].map(e => e.textContent || e.ariaLabel "
                        "|| e.alt || e.labels?.[0]?.textContent || e.id)")  # fmt: skip
    assert all(names)


def test_caps_lock_or_a_held_key_accepts_one_scene_only(page):
    page.script("dispatchEvent(new Event('focus'))")
    for more in ({"key": "A"}, {"key": "a", "repeat": True}, {"key": "a", "ctrlKey": True}):
        page.script("document.dispatchEvent(new KeyboardEvent('keydown', arguments[0]))", more | {"bubbles": True})
    page.until(lambda: page.status.startswith("Saved at"), "the press was not saved")
    assert [line["scene"] for line in page.lines()] == ["i2-0.query"] and page.question == "i2-0"


def test_a_proposal_is_shown_as_one_and_confirmed_by_a_key(saber, browser, program):
    from bindbench.review.journal import Journal, append_proposal

    append_proposal(
        Journal(saber.journal), "i2-0.query", saber.hashes["i2-0.query"], "rejected", "cut off: kite", "model"
    )
    page = ScenePage(browser, saber.journal)
    page.open(program().url)
    assert page.text(".card .standing") == "◌ open; proposed: rejected, cut off: kiteby model, not confirmed"
    assert page.script("return getComputedStyle(document.querySelector('.card')).borderStyle") == "dashed"
    assert "20 open" in page.text("#totals")
    assert page.press("c", lines=1) == [("query", "rejected", "cut off: kite")]
    assert page.lines()[-1]["by"] == "Ada" and page.standings[0] == "rejected"


def test_a_picture_that_is_not_shown_cannot_be_judged(saber, browser, program):
    (saber.folder / "images/0000/0.png").write_bytes(b"something else")
    page = ScenePage(browser, saber.journal)
    browser.get(program().url)
    page.until(lambda: "made again" in page.text(".card .picture"), "the trouble is not told")
    page.key("1", "a")
    assert "cannot be judged" in page.status
    page.key("A")
    assert "cannot be judged" in page.status and page.lines() == [] and page.question == "i2-0"


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1920, 1080), (390, 844)])
def test_nothing_is_cut_off_or_asked_for_from_outside(page, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.script("return document.documentElement.scrollWidth <= innerWidth")
        tops = page.script("return [...document.querySelectorAll('.card img')].map(i => i.getBoundingClientRect().top)")
        if width > 1000:
            assert len(set(tops)) == 1
            bottoms = page.script(
                "return [...document.querySelectorAll('.card img, footer')].map(i => i.getBoundingClientRect().bottom)"
            )
            assert max(bottoms) <= height
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    origin = page.program.url.split("#")[0]
    asked = page.script("return performance.getEntriesByType('resource').map(r => r.name)")
    assert asked and all(name.startswith((origin, f"blob:{origin}")) for name in asked)
    assert page.complaints() == []


def test_without_a_token_or_with_an_old_one_the_page_says_what_to_do(browser, saber, program):
    running, page = program(), ScenePage(browser, saber.journal)
    browser.get("about:blank")
    browser.switch_to.new_window("tab")
    browser.get(running.url.split("#")[0])
    page.until(lambda: "Open the whole address" in page.text("#note"), "the missing token is not told")
    browser.get("about:blank")
    browser.get(f"{running.url.split('#')[0]}#wrong")
    page.until(lambda: "open the address that it printed" in page.status, "the wrong token is not told")
    browser.close()
    browser.switch_to.window(browser.window_handles[0])
