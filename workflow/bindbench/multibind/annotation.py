"""What is written down about a photograph of several people (section 3.2): one part per subject, then what they share.

Looks without identity: there is no place for names, for ages beyond adult or child, for ethnicity, skin, religion, health or
other sensitive traits; further keys are refused, and free text with a sensitive word is refused as well.

Every field of a subject is in one of two sets (section 3.1). What the canonical reference alters is in the edit set: the
prompt has to state it. What the reference carries over is in the preserve set: the prompt leaves it to the reference. Both are
declared here, for the prompts and for what is asked of the model that makes the references.

Phrases are written so that they complete a sentence, which each field's description gives.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ..files import canonical_json
from .tables import SLOTS

Slot = Literal[SLOTS]
Edge = Literal["left", "right", "top", "bottom"]

# What the canonical reference alters, in the words of an instruction.
EDIT_SET = {
    "position": "the position and size in the frame",
    "pose.body": "the posture of the body",
    "pose.head": "the turn and tilt of the head",
    "pose.arms": "the position of the arms and hands",
    "pose.legs": "the position of the legs",
    "action": "the action",
    "expression": "the facial expression",
    "gaze": "the direction of the gaze",
}
# What it carries over. The identity has no field: only the reference knows it.
PRESERVE_SET = {
    "identity": "the identity and the face",
    "appearance.hair": "the hair",
    "appearance.accessories": "the accessories",
    "appearance.build": "the build",
    "appearance.age_group": "the age",
    "clothes.head": "the headwear",
    "clothes.upper_body": "the clothes of the upper body",
    "clothes.outer_layer": "the outer layer",
    "clothes.lower_body": "the clothes of the lower body",
    "clothes.feet": "the footwear",
}

_EMPTY = "-, none, null, n/a, na, nothing, unknown, unclear, not visible, not applicable, not known"
EMPTY = ("", *_EMPTY.split(", "))

# Whole words, a star for any ending. The schema has no place for what they say; this is the second net.
_SENSITIVE_WORDS = (
    "ethnic*, racial*, caucasian*, african*, asian*, arab, arabs, arabic, latino*, latina*, hispanic*, "
    "jewish, jew, jews, muslim*, islam*, christian*, hindu*, buddhist*, sikh*, catholic*, atheist*, religio*, "
    "hijab*, niqab*, burqa*, turban*, kippah*, yarmulke*, cassock*, "
    "skinned, complexion*, dark-skinned, light-skinned, fair-skinned, "
    "disab*, handicap*, illness*, disease*, autis*, pregnan*, obes*, overweight, anorexi*, wheelchair*, "
    "gay, lesbian*, bisexual*, transgender*, queer, homosexual*, heterosexual*, "
    "nationalit*, immigrant*, refugee*, celebrit*, politician*, republican*, democrat*, "
    "elderly, middle-aged, middle aged, teenage*, senior citizen*, toddler*, infant*, "
    "middle eastern*, middle-eastern*, indigenous, native american*, afro-american*, headscarf*, headscarves, nun, nuns, "
    "crucifix*, rosary, rosaries, crutch, crutches, prosthe*, hearing aid*, blind man, blind woman, blind person, blind people"
)
SENSITIVE = tuple(_SENSITIVE_WORDS.split(", "))
_PEOPLE = "man|woman|men|women|boys?|girls?|person|people|males?|females?|guys?|lady|ladies|couples?|gentlem[ae]n|child|children"
_DECADES = r"(?:twen|thir|for|fif|six|seven|eigh|nine)ties|teens|\d0s"
_NATIONS = "chinese|japanese|korean|indian|mexican"  # of a person; a lantern may be Chinese
_SENSITIVE = re.compile(
    r"\b(?:"
    + "|".join(re.escape(word[:-1]) + r"\w*" if word.endswith("*") else re.escape(word) for word in SENSITIVE)
    # A colour is a colour of clothes, unless a person has it; an age is a number of years.
    + rf"|skin(?!-?tight)|(?:white|black|brown|yellow|dark|pale|old|older|young|younger|{_NATIONS})\s+(?:{_PEOPLE})(?!['’]s)"
    + r"|aged\s+\d+|\d+[\s-]years?[\s-]old"
    + rf"|in\s+(?:his|her|their)\s+(?:(?:early|mid|middle|late)[\s-]+)?(?:{_DECADES}))\b",
    re.IGNORECASE,
)


def sensitive_words(text: str) -> list[str]:
    """What in a text speaks of ethnicity, skin, religion, health, orientation, politics or a finer age; as it stands there."""
    return [match.group(0) for match in _SENSITIVE.finditer(text)]


def _tidied(value: Any) -> Any:
    """One line that can stand within a sentence; None for words that say nothing."""
    if not isinstance(value, str):
        return value
    text = " ".join(value.split())
    text = re.sub(r"\s*[.;:!?]+(?=\s|$)", ",", text).strip(" ,")
    if text.lower() in EMPTY:
        return None
    if text[:1].isupper() and text[1:2].islower():
        text = text[0].lower() + text[1:]
    return text


def _checked(text: str) -> str:
    if found := sensitive_words(text):
        raise ValueError(f"sensitive: {', '.join(found)}")
    if named := re.search(r"\b(?:[Ss]ubject|[Pp]erson|[Rr]eference|[Ss]lot)s? [A-Z]\b", text):
        raise ValueError(f"names {named.group(0)}: what joins two subjects belongs to the relations")
    return text


def _listed(value: Any) -> Any:
    """A list without the entries that say nothing."""
    return [entry for entry in value if _tidied(entry) is not None] if isinstance(value, (list, tuple)) else value


Phrase = Annotated[str, BeforeValidator(_tidied), Field(min_length=2, max_length=400), AfterValidator(_checked)]
Name = Annotated[str, BeforeValidator(_tidied), Field(min_length=2, max_length=80), AfterValidator(_checked)]
PhraseOrNone = Annotated[Phrase | None, BeforeValidator(_tidied)]
NameOrNone = Annotated[Name | None, BeforeValidator(_tidied)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_listed)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Hair(_Part):
    colour: NameOrNone = Field(None, description="Such as: grey; dark brown.")
    length: NameOrNone = Field(None, description="Such as: short; shoulder-length.")
    style: NameOrNone = Field(None, description="Such as: combed back; curly and loose.")


class Garment(_Part):
    garment: Name = Field(description="Such as: jacket; trousers.")
    colour: Name = Field(description="Such as: dark blue.")
    pattern: NameOrNone = Field(None, description="Such as: plain; striped.")
    details: PhraseOrNone = Field(None, description="Such as: two rows of buttons.")


class Clothes(_Part):
    """What is worn, by region; null where nothing is worn or seen."""

    head: Garment | None = Field(None, description="Headwear.")
    upper_body: Garment | None = Field(None, description="The main garment of the upper body.")
    outer_layer: Garment | None = Field(None, description="A jacket or coat over it.")
    lower_body: Garment | None = Field(None, description="Trousers, skirt and the like.")
    feet: Garment | None = Field(None, description="Footwear.")


class Appearance(_Part):
    """Looks without identity."""

    hair: Hair | None = Field(None, description="As seen; null where none is seen.")
    accessories: Names = Field((), max_length=8, description="What is worn or carried besides clothes.")
    build: NameOrNone = Field(None, description="As seen, such as: slim; sturdy.")
    age_group: Literal["adult", "child"] | None = Field(None, description="Nothing finer than this.")


class Pose(_Part):
    body: Phrase = Field(description="Completes `is shown ...`: standing upright and facing the camera.")
    head: PhraseOrNone = Field(None, description="Completes `The head is ...`: turned to the left of the picture.")
    arms: PhraseOrNone = Field(None, description="Completes `The arms are ...`: crossed in front of the chest.")
    legs: PhraseOrNone = Field(None, description="Completes `The legs are ...`: apart, with the left knee bent.")


class Position(_Part):
    """Where the box lies, in percent of the picture's sides from its top left corner, and the edges that cut it."""

    left: int = Field(ge=0, le=100)
    right: int = Field(ge=0, le=100)
    top: int = Field(ge=0, le=100)
    bottom: int = Field(ge=0, le=100)
    cut_by: tuple[Edge, ...] = Field((), max_length=4)

    @model_validator(mode="after")
    def _in_order(self):
        if self.left >= self.right or self.top >= self.bottom:
            raise ValueError("left lies before right, and top above bottom")
        return self


class Subject(_Part):
    appearance: Appearance = Field(default_factory=Appearance, description="Looks without identity.")
    clothes: Clothes = Field(default_factory=Clothes, description="What is worn, by region.")
    pose: Pose = Field(description="How the body is held.")
    action: PhraseOrNone = Field(None, description="Completes `is ...`, present participle: pointing to the right.")
    expression: PhraseOrNone = Field(None, description="Completes `The face shows ...`: a broad smile.")
    gaze: PhraseOrNone = Field(None, description="Completes `The gaze is ...`: directed at the camera.")
    position: Position


class Relation(_Part):
    first: Slot = Field(description="The subject that the sentence begins with.")
    second: Slot = Field(description="The subject that it ends with.")
    relation: Phrase = Field(description="Completes `FIRST is ... SECOND`: to the left of; with one arm around.")
    detail: PhraseOrNone = Field(None, description="Goes on after a comma: with a wide gap between them.")

    @model_validator(mode="after")
    def _of_two(self):
        if self.first == self.second:
            raise ValueError("a relation joins two different subjects")
        return self


class Background(_Part):
    setting: Phrase = Field(description="Completes `The background shows ...`: a city street in front of a bus.")
    objects: Names = Field((), max_length=12, description="What else is seen, each with its article: a green door.")
    colours: Names = Field((), max_length=6, description="The main colours.")
    textures: PhraseOrNone = Field(None, description="Completes `Its surfaces are ...`: smooth and evenly coloured.")


class Light(_Part):
    environment: PhraseOrNone = Field(None, description="Completes `The scene is set ...`: outdoors on a sunny day.")
    brightness: PhraseOrNone = Field(None, description="Completes `The light is ...`: bright and hard.")
    contrast: PhraseOrNone = Field(None, description="Completes `The contrast is ...`: high, with deep shadows.")
    temperature: PhraseOrNone = Field(None, description="Completes `The colour of the light is ...`: warm.")
    direction: PhraseOrNone = Field(None, description="Completes `The light comes ...`: from the upper left.")


class Camera(_Part):
    framing: Phrase = Field(description="Completes `The framing is ...`: a medium shot from the waist up.")
    angle: PhraseOrNone = Field(None, description="Completes `The camera looks ...`: straight ahead at eye level.")
    depth_of_field: PhraseOrNone = Field(None, description="Completes `The depth of field is ...`: shallow.")
    picture: PhraseOrNone = Field(None, description="Completes `The picture has ...`: landscape format.")


class Annotation(_Part):
    """Everything that is known of one photograph; as JSON in the tables ANNOTATIONS and INSTANCES."""

    subjects: dict[Slot, Subject] = Field(min_length=2, max_length=len(SLOTS))
    relations: tuple[Relation, ...] = Field((), max_length=24, description="What joins two subjects.")
    background: Background
    light: Light = Field(default_factory=Light)
    camera: Camera

    @model_validator(mode="after")
    def _slots_in_use(self):
        if tuple(sorted(self.subjects)) != SLOTS[: len(self.subjects)]:
            raise ValueError(
                f"slots: {', '.join(sorted(self.subjects))} are not the first {len(self.subjects)} letters"
            )
        for relation in self.relations:
            for slot in (relation.first, relation.second):
                if slot not in self.subjects:
                    raise ValueError(f"slots: a relation names {slot}, which is no subject")
        return self

    @property
    def slots(self) -> tuple[str, ...]:
        return SLOTS[: len(self.subjects)]

    def to_json(self) -> str:
        """The one JSON text of this annotation: same annotation, same bytes."""
        return canonical_json(self.model_dump(mode="json"))


def value_at(subject: Subject, field: str) -> Any:
    """The value of a field of EDIT_SET or PRESERVE_SET; None for the identity, which has no field."""
    if field == "identity":
        return None
    value: Any = subject
    for name in field.split("."):
        value = getattr(value, name)
    return value


def edits_of(subject: Subject) -> dict[str, Any]:
    """The edit set of a subject without what is not known (section 3.1)."""
    return {field: value for field in EDIT_SET if (value := value_at(subject, field)) is not None}


def preserved_words(subject: Subject) -> list[str]:
    """Phrases of two words or more that state a part of the preserve set: `black jacket`, `grey hair`, `reading glasses`."""
    garments = [getattr(subject.clothes, region) for region in Clothes.model_fields]
    worn = [garment for garment in garments if garment is not None]
    words = [f"{garment.colour} {garment.garment}" for garment in worn]
    words += [f"{garment.pattern} {garment.garment}" for garment in worn if garment.pattern]
    words += [garment.details for garment in worn if garment.details]
    hair = subject.appearance.hair
    words += [f"{value} hair" for value in (hair.colour, hair.length, hair.style) if value] if hair else []
    words += list(subject.appearance.accessories)
    return [phrase for phrase in words if " " in phrase]


def position_of(box: list[float], width: int, height: int) -> Position:
    """Of a box [x, y, width, height] in a picture of this size; at least one percent wide and high."""
    x, y, w, h = box
    spans = []
    for start, end, size in ((x, x + w, width), (y, y + h, height)):
        low = min(max(round(100 * start / size), 0), 99)
        spans.append((low, max(low + 1, min(round(100 * end / size), 100))))
    touched = {"left": x <= 1, "right": x + w >= width - 1, "top": y <= 1, "bottom": y + h >= height - 1}
    (left, right), (top, bottom) = spans
    edges = tuple(edge for edge, cut in touched.items() if cut)
    return Position(left=left, right=right, top=top, bottom=bottom, cut_by=edges)


# What a model is asked for -------------------------------------------------------------------------------------------

_KEPT = ("type", "enum", "description", "minItems", "maxItems")


def answer_schema(slots: tuple[str, ...]) -> dict:
    """JSON schema of a model's annotation of these slots, in the words that OpenAI's strict mode and Gemini both know.

    It is Annotation without the positions, which the boxes tell; every key is required, and no other is allowed.
    """
    whole = Annotation.model_json_schema()
    parts = whole["$defs"]
    subject = _strict(parts["Subject"], parts)
    del subject["properties"]["position"]
    subject["required"].remove("position")
    schema = _strict(whole, parts)
    schema["properties"]["subjects"] = _object(dict.fromkeys(slots, subject))
    relation = schema["properties"]["relations"]["items"]["properties"]
    for end in ("first", "second"):
        relation[end] = {**relation[end], "enum": list(slots)}
    return schema


def _strict(schema: dict, parts: dict) -> dict:
    if "$ref" in schema:
        schema = {**parts[schema["$ref"].rsplit("/", 1)[1]], **schema}
    kept = {name: schema[name] for name in _KEPT if name in schema}
    if "anyOf" in schema:
        kept["anyOf"] = [_strict(option, parts) for option in schema["anyOf"]]
    if "items" in schema:
        kept["items"] = _strict(schema["items"], parts)
    if "properties" in schema:
        kept |= _object({name: _strict(part, parts) for name, part in schema["properties"].items()})
    return kept


def _object(properties: dict) -> dict:
    names = sorted(properties)
    return {
        "type": "object",
        "properties": {name: properties[name] for name in names},
        "required": names,
        "additionalProperties": False,
    }


class BrokenAnnotation(Exception):
    """Why an answer is no annotation. problem: a short name for the table; the message: what exactly is wrong."""

    def __init__(self, problem: str, detail: str):
        super().__init__(detail)
        self.problem = problem


def annotation_of(answer: Any, positions: dict[str, Position]) -> Annotation:
    """The annotation of a model's answer (JSON that was read), with the positions of the boxes.

    positions: of exactly the instance's slots. Raises BrokenAnnotation: wrong_slots, sensitive_words or not_an_annotation.
    """
    try:
        subjects = answer["subjects"]
        if set(subjects) != set(positions):
            raise BrokenAnnotation("wrong_slots", f"subjects {sorted(subjects)}, not {sorted(positions)}")
        placed = {slot: {**subject, "position": positions[slot]} for slot, subject in subjects.items()}
        return Annotation.model_validate({**answer, "subjects": placed})
    except ValidationError as error:
        wrong = error.errors()[0]
        detail = f"{'.'.join(str(part) for part in wrong['loc']) or 'whole'}: {wrong['msg']}"
        messages = [str(found["msg"]) for found in error.errors()]
        if any("sensitive: " in message for message in messages):
            raise BrokenAnnotation("sensitive_words", detail) from None
        if any("slots: " in message for message in messages):
            raise BrokenAnnotation("wrong_slots", detail) from None
        raise BrokenAnnotation("not_an_annotation", detail) from None
    except (TypeError, KeyError, AttributeError):
        raise BrokenAnnotation("not_an_annotation", "it has no subjects by slot") from None
