"""The grammar's resource files, read once and checked: word lists, context, and the fragments of each register.

A register's `Voice` holds its own fragments, those of its group and those of all, its own with more weight, in its tense.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import UserError
from ..controls import ADJECTIVES, OPENERS, REGISTERS, SCENES, TIMES, WEATHERS, read_list
from ..sentences import word_set
from .fragments import FLAGS, Fragment, Need, Pool, fragment
from .words import CLASSES, KINDS, Lexicon, read_lexicon

OBJECTS = "objects.csv"
FOLDER = "grammar"
GROUPS = ("narrative", "record", "listing", "guide")
TENSES = ("past", "present")
FORMS = ("clause", "observer", "note", "existential", "inverted", "nominal", "report", "subject", "joint")
PARTS = (
    "labels", "note", "see", "joint", "that", "report", "links verbal", "links and", "links joint", "links spatial",
    "links second", "predicates", "modifiers", "modifiers of both", "adverbials", "where", "tails", "tails context",
    "endings", "copulas", "copulas of change", "relatives", "relatives of change", "conjunctions", "references",
    "respective predicate", "respective appositive", "respective clause", "distractors after", "distractors before",
    "distractors between",
)  # fmt: skip
NEEDED = ("labels", "that", "report", "tails")  # parts that a register has of its own
# How often a register's own lines stand in its pools, for one of its group or of all.
OWN_WEIGHT = {"labels": 1, "tails": 1, "references": 4, "copulas": 4, "relatives": 4, "respective clause": 3}
PLACEHOLDERS = word_set(
    "place when weather sky weathername a b r s d stood stood2 n m clock date day month year name surname"
)
# Where a place may be cut: in the back room, of a pawn shop.
PREPOSITIONS = word_set("of in at near by on with among from outside above beside behind between over under below")
_FLAGS = re.compile(r"([a-z, ]+)> ?(.*)")
_VERB = re.compile(r"\[([^\[\]]*)\]")
_OPENER = re.compile(r"opener ([a-z ]+): (\w+)")


@dataclass(frozen=True)
class Line:
    """One line of a fragment file: who says it (a register, a group or any), which part it can be, what it needs."""

    owner: str
    part: str
    text: str
    needs: int
    where: str


@dataclass
class Voice:
    """How one register speaks. pools: part to fragments for one thing as subject, plural: for two. openers: opener to
    (form, fragments).
    """

    register: str
    group: str
    present: bool
    nominal: bool
    pools: dict[str, Pool] = field(default_factory=dict)
    plural: dict[str, Pool] = field(default_factory=dict)
    openers: dict[str, list[tuple[str, Pool]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Grammar:
    """All that `propose` needs. scenes: place to setting; postures: class to verb forms, singular and plural, by tense."""

    lexicon: Lexicon
    scenes: dict[str, str]
    times: dict[str, str]
    weathers: dict[str, tuple[str, str]]
    voices: dict[str, Voice]
    postures: dict[tuple[str, bool, bool], tuple[str, ...]]
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def shorter_places(self, scene: str) -> tuple[str, ...]:
        """A place and its shorter forms: in the back room of a pawn shop, in the back room."""
        found = self.places.get(scene)
        if found is None:
            words = scene.split()
            cuts = [index for index, word in enumerate(words) if index > 2 and word in PREPOSITIONS]
            found = (scene, *[" ".join(words[:index]) for index in reversed(cuts)])
            self.places[scene] = found
        return found


def read_grammar(folder: str | Path) -> Grammar:
    """Reads resources/triplets. Raises UserError that names the file, the row and the fault."""
    folder = Path(folder)
    registers = {row["register"] for row in read_list(folder / REGISTERS, ("register",))}
    openers = {row["opener"] for row in read_list(folder / OPENERS, ("opener",))}
    verbs = _read_verbs(folder / FOLDER / "verbs.csv")
    shared = folder / FOLDER / "shared.txt"
    own = folder / FOLDER / "registers.txt"
    voices, lines = {}, []
    for path in (shared, own):
        lines += _read_lines(path, registers, openers, voices)
    if missing := registers - voices.keys():
        raise UserError(f"{own}: row 1: no section of the register {min(missing)}")
    for voice in voices.values():
        _fill(voice, [line for line in lines if line.owner in ("any", voice.group, voice.register)], verbs)
        for opener in sorted(openers):
            if not voice.openers.get(opener):
                raise UserError(f"{shared}: row 1: no opener {opener!r} for the register {voice.register}")
        for part in NEEDED:
            if not len(voice.pools[part]):
                raise UserError(f"{own}: row 1: {voice.register} has no {part}")
    return Grammar(
        read_lexicon(folder / OBJECTS, folder / ADJECTIVES),
        _read_scenes(folder / SCENES),
        {row["time"]: row["phrase"] for row in read_list(folder / TIMES, ("time", "phrase"))},
        {
            row["weather"]: (row["phrase"], row["clause"])
            for row in read_list(folder / WEATHERS, ("weather", "phrase", "clause"))
        },
        voices,
        _read_postures(folder / FOLDER / "postures.csv", verbs),
    )


def _read_scenes(path: Path) -> dict[str, str]:
    """Place to setting."""
    scenes = {}
    for number, row in enumerate(read_list(path, ("scene", "kind", "setting")), 2):
        where = f"{path}: row {number}: {row['scene']}"
        if row["kind"] not in KINDS:
            raise UserError(f"{where}: kind {row['kind']!r} must be one of {', '.join(KINDS)}")
        if row["setting"] not in ("indoor", "outdoor"):
            raise UserError(f"{where}: setting must be indoor or outdoor (got {row['setting']!r})")
        scenes[row["scene"]] = row["setting"]
    return scenes


def _read_verbs(path: Path) -> dict[str, tuple[str, ...]]:
    columns = ("past", "past_plural", "present", "present_plural")
    return {row["past"]: tuple(row[c] for c in columns) for row in read_list(path, columns)}


def _read_postures(path: Path, verbs: dict[str, tuple[str, ...]]) -> dict[tuple[str, bool, bool], tuple[str, ...]]:
    """Verb forms by class, present tense, plural."""
    postures = {}
    for number, row in enumerate(read_list(path, ("class", "postures")), 2):
        words = row["postures"].split("|")
        if unknown := [word for word in words if word not in verbs]:
            raise UserError(f"{path}: row {number}: verb {unknown[0]!r} does not stand in verbs.csv")
        for present in (False, True):
            for plural in (False, True):
                forms = tuple(verbs[word][2 * present + plural] for word in words)
                postures[row["class"], present, plural] = forms
    if missing := [name for name in CLASSES if (name, False, False) not in postures]:
        raise UserError(f"{path}: row 1: no row of the class {missing[0]}")
    return postures


def _read_lines(path: Path, registers: set[str], openers: set[str], voices: dict[str, Voice]) -> list[Line]:
    try:
        rows = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as text ({error})") from None
    owner = part = ""
    lines = []
    for number, row in enumerate(rows, 1):
        where = f"{path}: row {number}"
        row = row.strip()
        if row.startswith("== "):
            owner, part = _owner(row[3:], where, registers, voices), ""
        elif row.startswith("-- "):
            part = _part(row[3:], where, openers)
        elif not row or row.startswith("#"):
            continue
        elif not owner or not part:
            raise UserError(f"{where}: a line outside of a section (== NAME, then -- PART)")
        else:
            lines.append(_line(owner, part, row, where))
    return lines


def _owner(header: str, where: str, registers: set[str], voices: dict[str, Voice]) -> str:
    name, *fields = [cell.strip() for cell in header.split("|")]
    if not fields:
        if name not in ("any", *GROUPS):
            raise UserError(f"{where}: {name!r} is neither any nor a group ({', '.join(GROUPS)})")
        return name
    if name not in registers or name in voices:
        raise UserError(f"{where}: {name!r} is {'there twice' if name in voices else 'no register of registers.csv'}")
    group, tense, *more = [*fields, ""][:3]
    if group not in GROUPS or tense not in TENSES or more not in ([""], ["nominal"]):
        raise UserError(f"{where}: must be REGISTER | {'/'.join(GROUPS)} | past/present | nominal or nothing")
    voices[name] = Voice(name, group, tense == "present", more == ["nominal"])
    return name


def _part(header: str, where: str, openers: set[str]) -> str:
    opener = _OPENER.fullmatch(header)
    if header in PARTS or (opener and opener[1] in openers and opener[2] in FORMS):
        return header
    raise UserError(f"{where}: {header!r} is no part (one of {', '.join(PARTS)}, or opener NAME: FORM)")


def _line(owner: str, part: str, row: str, where: str) -> Line:
    needs = 0
    match = _FLAGS.fullmatch(row)
    if match:
        row = match[2]
        for flag in match[1].split(","):
            if flag.strip() not in FLAGS:
                raise UserError(f"{where}: {flag.strip()!r} is no flag (one of {', '.join(FLAGS)})")
            needs |= Need[flag.strip()]
    if unknown := set(re.findall(r"\{([^{}]*)\}", row)) - PLACEHOLDERS:
        raise UserError(f"{where}: {{{min(unknown)}}} is no placeholder")
    if re.search(r"[{}\[\]]", _VERB.sub("", re.sub(r"\{\w+\}", "", row))):
        raise UserError(f"{where}: a bracket is not closed")
    return Line(owner, part, row, needs, where)


def _fill(voice: Voice, lines: list[Line], verbs: dict[str, tuple[str, ...]]) -> None:
    singular: dict[str, list[Fragment]] = {part: [] for part in PARTS}
    plural: dict[str, list[Fragment]] = {part: [] for part in PARTS}
    for line in lines:
        one = fragment(_conjugated(line, verbs, voice.present, False), line.needs)
        two = fragment(_conjugated(line, verbs, voice.present, True), line.needs)
        weight = OWN_WEIGHT.get(line.part, 3) if line.owner == voice.register else 1
        singular.setdefault(line.part, []).extend([one] * weight)
        plural.setdefault(line.part, []).extend([two] * weight)
    voice.pools = {part: Pool(found) for part, found in singular.items() if not part.startswith("opener")}
    voice.plural = {part: Pool(found) for part, found in plural.items() if not part.startswith("opener")}
    # A clause with "that" must not stand before a bare preposition: "a lamp that everyone noticed beside a chair".
    voice.pools["modifiers apart"] = Pool(f for f in singular["modifiers"] if f.text.startswith(","))
    for part, found in singular.items():
        opener = _OPENER.fullmatch(part)
        if opener:
            voice.openers.setdefault(opener[1], []).append((opener[2], Pool(found)))
    for opener, forms in (("reported speech", "report"), ("label first", "labels")):
        voice.openers[opener] = [(forms, voice.pools[forms])]
    for opener, form in (("observer first", "observer"), ("object first", "clause")):
        voice.openers[opener] = [(form, Pool([fragment("")]))]


def _conjugated(line: Line, verbs: dict[str, tuple[str, ...]], present: bool, plural: bool) -> str:
    def form(match: re.Match) -> str:
        words = match[1].split("|")
        if len(words) == 1 and words[0] in verbs:
            return verbs[words[0]][2 * present + plural]
        if len(words) == 2:
            return words[present]
        if len(words) == 4:
            return words[2 * present + plural]
        raise UserError(f"{line.where}: [{match[1]}] is no verb of verbs.csv, nor past|present, nor all four forms")

    return _VERB.sub(form, line.text)
