"""Takes the verdicts of a page: what may be judged, how it stands, and the presses of keys that go into the journal."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from .journal import Journal
from .server import Refusal

LONGEST_REASON = 500  # characters
PRESS = re.compile(r"[0-9a-f]{16,64}")


class Judged(NamedTuple):
    """What may be judged, as it was made last."""

    sha256: str
    default_verdict: str = "open"  # while nobody has judged it


class Judging:
    """items: what may be judged, by id. by: who judges, for the journal. most: verdicts that one press may hold."""

    def __init__(self, journal: Journal, items: Mapping[str, Judged], by: str | None, most: int):
        self.journal, self.items, self.by, self.most = journal, items, by, most
        self.journal.refresh()

    def standing(self, item: str) -> dict:
        """How an item stands as it is now: verdict, reason, whether a person judged it, and what a model proposes."""
        sha256, default_verdict = self.items[item]
        line = self.journal.standing(item, sha256)
        if line is not None:
            return {"verdict": line["verdict"], "reason": line.get("reason"), "by": line.get("by"), "by_person": True}
        proposal = self.journal.proposal(item, sha256)
        standing = {"verdict": default_verdict, "by_person": False}
        if proposal is not None:
            standing["proposal"] = {
                "verdict": proposal["proposed"],
                "reason": proposal.get("reason"),
                "by": proposal.get("by"),
            }
        return standing

    def standings(self) -> dict[str, dict]:
        """Of all items that are not simply open, after what others have judged meanwhile."""
        self.journal.refresh()
        untouched = {"verdict": "open", "by_person": False}
        standings = {item: self.standing(item) for item in self.items}
        return {item: standing for item, standing in standings.items() if standing != untouched}

    def press(self, body: dict) -> dict:
        """Appends what a press says; a press that is sent twice counts once. Returns how its items stand then.

        body: {press, verdicts: [{ID, sha256, verdict, reason}]}, ID by the name of the journal's key, or {press, undoes: an
        earlier press}. Raises Refusal, and UserError where the journal cannot be written.
        """
        press = body.get("press")
        if not isinstance(press, str) or not PRESS.fullmatch(press):
            raise Refusal(400, "press must be 16 to 64 hexadecimal digits")
        if "undoes" in body:
            lines = self.journal.append(lambda: self._undone(press, body["undoes"]))
        else:
            verdicts = self._checked(body.get("verdicts"))
            lines = self.journal.append(lambda: self._judged(press, verdicts))
        touched = [line[self.journal.key] for line in lines or self.journal.lines_of(press)]
        return {item: self.standing(item) for item in touched if item in self.items}

    def _checked(self, verdicts) -> list[dict]:
        key = self.journal.key
        if not isinstance(verdicts, list) or not 0 < len(verdicts) <= self.most:
            raise Refusal(400, f"verdicts must be a list of 1 to {self.most}")
        checked = []
        for given in verdicts:
            if not isinstance(given, dict) or given.get("verdict") not in self.journal.verdicts:
                raise Refusal(400, f"a verdict must be one of {', '.join(self.journal.verdicts)}")
            item, reason = given.get(key), given.get("reason")
            if not isinstance(item, str) or item not in self.items:
                raise Refusal(404, f"there is no such {key}")
            if given.get("sha256") != self.items[item].sha256:
                raise Refusal(409, f"this {key} is not what was judged; look again")
            if not isinstance(reason, (str, type(None))) or len(reason or "") > LONGEST_REASON:
                raise Refusal(400, f"a reason is a text of at most {LONGEST_REASON} characters")
            reason = " ".join((reason or "").split()) or None
            if given["verdict"] == "rejected" and reason is None:
                raise Refusal(400, "a rejection needs a reason")
            checked.append({"judged": item, "sha256": given["sha256"], "verdict": given["verdict"], "reason": reason})
        if len({line["judged"] for line in checked}) < len(checked):
            raise Refusal(400, f"a {key} is judged twice in one press")
        return checked

    def _judged(self, press: str, verdicts: list[dict]) -> list[dict]:
        key = self.journal.key
        known = {line[key] for line in self.journal.lines_of(press)}
        return [self.journal.line(**line, by=self.by, press=press) for line in verdicts if line["judged"] not in known]

    def _undone(self, press: str, undoes) -> list[dict]:
        if self.journal.lines_of(press):
            return []
        earlier = self.journal.lines_of(undoes) if isinstance(undoes, str) else []
        if not earlier:
            raise Refusal(404, "there is no such press to undo")
        key = self.journal.key
        lines = []
        for line in earlier:
            item, sha256 = line[key], line["sha256"]
            counts, before = self.journal.before(undoes, item, sha256)
            if not counts or item not in self.items:
                continue  # judged again since, perhaps by somebody else
            verdict = before["verdict"] if before else self.items[item].default_verdict
            reason, by = (before.get("reason"), before.get("by")) if before else (None, self.by)
            lines.append(self.journal.line(item, sha256, verdict, reason, by, press=press, undoes=undoes))
        if not lines:
            raise Refusal(409, "judged again since; nothing was undone")
        return lines
