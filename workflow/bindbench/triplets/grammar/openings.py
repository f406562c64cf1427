"""How a sentence begins (B.3): one of 16 openers, in the register's voice, and the mode in which the bindings follow.

Modes: "subject", the first thing is a subject and a verb comes; "nominal", the things are named after a verb that has been
said ("there was", "the clerk noted", "on the shelf stood"); "joint", named after a verb of having or offering, where
"beside" would make no sense; "bare", named without any verb, in terse registers.
"""

from .draft import Draft
from .fragments import Fragment, Pool

OBSERVED = 0.35  # chance that a clause names who sees the things
EXISTING = 0.12  # or that it is "there was"
TIGHT = 4  # words of an opening where room is scarce
REPORTED = 0.6  # chance of a that-clause where attributes are predicated


def open_sentence(draft: Draft, limit: int) -> str | None:
    """Writes the opener in at most limit words. Returns the mode of what follows, or None where none is short enough."""
    forms = draft.voice.openers[draft.specification.opener]
    form, pool = forms[0] if len(forms) == 1 else _weighted(draft, forms)
    found = _short_enough(draft, pool, min(limit, TIGHT) if draft.tight else limit)
    if found is None and draft.tight:
        found = _short_enough(draft, pool, limit)
    if found is None:
        return None
    if found.text:
        draft.add_fragment(found)
    return _mode(draft, form, limit)


def _weighted(draft: Draft, forms: list[tuple[str, Pool]]) -> tuple[str, Pool]:
    chosen = int(draft.generator.random() * sum([len(pool) for _, pool in forms]))
    for form, pool in forms:
        chosen -= len(pool)
        if chosen < 0:
            return form, pool
    return forms[-1]


def _short_enough(draft: Draft, pool: Pool, limit: int) -> Fragment | None:
    for _ in range(5):
        found = draft.draw(pool, 0, limit)
        if found is None:
            return None
        if not found.context or found.words + draft.context_words(found) <= limit:
            return found
    return None


def _mode(draft: Draft, form: str, limit: int) -> str | None:
    chance = 1.0 if draft.tight else draft.generator.random()  # in scarce room neither an observer nor "there was"
    if form == "labels":
        if draft.voice.nominal and chance < 0.5:
            _indefinite(draft)
            return "bare"
        form = "clause"
        if not draft.tight:
            chance = draft.generator.random()
    if form == "clause":
        return _clause(draft, chance, limit)
    if form == "observer":
        return _observe(draft, ("note", "see"), limit)
    if form == "note":
        return _observe(draft, ("note", "joint"), limit, 0.3 if draft.specification.distance[1] > 5 else 0)
    if form == "joint":
        return _observe(draft, ("joint",), limit, reported=0)
    if form == "nominal":
        draft.determiner = "the"
    elif form == "existential":
        _indefinite(draft)
    return "subject" if form in ("report", "subject") else "nominal"


def _clause(draft: Draft, chance: float, limit: int) -> str | None:
    if draft.specification.opener == "object first":
        return "subject"
    if chance < OBSERVED:
        return _observe(draft, ("note", "see", "joint"), limit)
    if chance < OBSERVED + EXISTING:
        draft.add("there is" if draft.voice.present else "there was", 2)
        _indefinite(draft)
        return "nominal"
    return "subject"


def _indefinite(draft: Draft) -> None:
    """Not "there was the mug"."""
    if draft.determiner == "the":
        draft.determiner = "a"


def _observe(draft: Draft, parts: tuple[str, ...], limit: int, reported: float = REPORTED) -> str | None:
    """The register's observer and its verb; before a predication rather "the inspector saw that"."""
    left = max(4, limit - draft.written)
    if draft.construction.attachment != "adjacent" and draft.generator.random() < reported:
        found = draft.draw(draft.pools["that"], 0, left)
        if found is not None:
            draft.add_fragment(found)
            return "subject"
    pools = [(part, draft.pools[part]) for part in parts if len(draft.pools[part])]
    if not pools:
        pools = [(part, draft.pools[part]) for part in ("joint", "note", "see") if len(draft.pools[part])]
    part, pool = _weighted(draft, pools)
    found = draft.draw(pool, 0, min(left, 3) if draft.tight else left)
    if found is None:
        return None
    draft.add_fragment(found)
    return "joint" if part == "joint" else "nominal"
