"""From an annotation to the entity-indexed prompt, by rules, and a linter that reads it back (section 3.2).

A prompt has an opening that ties letters to references, one block for each subject, then what they share: relations,
background, light and camera. A block states the edit set of its own subject and leaves the preserve set to the reference
(section 3.1). One field is one sentence, so that nothing can be read under the wrong letter; the sentences below are all there
are. The same annotation gives the same bytes.
"""

import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ..errors import UserError
from ..files import write_json
from ..language import listed
from ..tables import read_table, write_table
from .annotation import Annotation, Position, Relation, Subject, edits_of, preserved_words, sensitive_words
from .tables import ANNOTATIONS, PROMPTS

# The sentence of each field; of two fields none begins like another.
SUBJECT_SENTENCES = {
    "position": "This person is placed {value}.",
    "pose.body": "Subject {slot} is shown {value}.",
    "pose.head": "The head of Subject {slot} is {value}.",
    "pose.arms": "The arms of Subject {slot} are {value}.",
    "pose.legs": "The legs of Subject {slot} are {value}.",
    "action": "At this moment, Subject {slot} is {value}.",
    "expression": "The face of Subject {slot} shows {value}.",
    "gaze": "The gaze of Subject {slot} is {value}.",
}
PRESERVE_SENTENCES = (
    "Subject {slot} keeps the identity, the face, the hair, the build, the clothes and the accessories of reference {slot}.",
    "Nothing of it is taken from another reference, and nothing of it is given to another subject.",
)
SHARED_SENTENCES = {
    "Background": {
        "setting": "The background shows {value}.",
        "objects": "In it there can be seen {value}.",
        "colours": "Its main colours are {value}.",
        "textures": "Its surfaces are {value}.",
    },
    "Light": {
        "environment": "The scene is set {value}.",
        "brightness": "The light is {value}.",
        "contrast": "The contrast is {value}.",
        "temperature": "The colour of the light is {value}.",
        "direction": "The light comes {value}.",
    },
    "Camera": {
        "framing": "The framing is {value}.",
        "angle": "The camera looks {value}.",
        "depth_of_field": "The depth of field is {value}.",
        "picture": "The picture has {value}.",
    },
}
IDENTITY_SENTENCE = "Subject {slot} is the person in reference {slot}."
BACKGROUND_SENTENCE = "It is the place in the background reference, with nothing of it moved."
NUMBERS = {2: "two", 3: "three", 4: "four"}

# Words that cannot both be true of one subject, or of the light.
OPPOSITES = (
    (r"standing", r"sitting|seated|lying|kneeling"),
    (r"facing the camera", r"back to the camera|facing away"),
    (r"smil(?:e|ing)", r"frown(?:ing)?|angry"),
    (r"neutral expression", r"smil(?:e|ing)|frown(?:ing)?|laugh(?:ing)?"),
    (r"closed mouth|mouth closed", r"open mouth|mouth (?:wide )?open"),
    (r"eyes closed|closed eyes", r"directed|looking|wide-open eyes"),
    (r"arms crossed", r"arms raised"),
)
SHARED_OPPOSITES = ((r"bright", r"dim"), (r"warm", r"cold|cool"), (r"indoors", r"outdoors"), (r"shallow", r"deep"))
# Relations that cannot hold both ways, and those that say the opposite.
ONE_WAY = ("to the left of", "to the right of", "in front of", "behind", "above", "below", "closer to the camera than")
REVERSED = {
    "to the left of": "to the right of",
    "in front of": "behind",
    "above": "below",
    "closer to the camera than": "farther from the camera than",
}


def compile_prompt(annotation: Annotation) -> str:
    """The prompt of one annotation: paragraphs divided by empty lines, words divided by single spaces."""
    parts = [_opening(annotation.slots)]
    parts += [_block(slot, annotation.subjects[slot]) for slot in annotation.slots]
    if annotation.relations:
        parts.append("Relations: " + " ".join(map(_relation, annotation.relations)))
    for heading, sentences in _shared(annotation).items():
        if sentences:
            parts.append(f"{heading}: " + " ".join(sentences.values()))
    return "\n\n".join(parts) + "\n"


def _opening(slots: tuple[str, ...]) -> str:
    return " ".join(_opening_sentences(slots))


def _opening_sentences(slots: tuple[str, ...]) -> list[str]:
    number = NUMBERS[len(slots)]
    return [
        f"Create one photograph in which the {number} people of the {number} references appear together, each exactly once.",
        *(IDENTITY_SENTENCE.format(slot=slot) for slot in slots),
        "The background reference shows the place without them.",
        "What a person looks like comes from that person's own reference alone; how a person is placed, what a person does and "
        "what the face shows come from the words below, and not from the reference.",
        "Percentages of the picture are counted from its left and from its top edge.",
        "Each sentence holds for the subject that it names and for no other.",
        "Left and right in the picture are as the viewer sees them, while a left or right arm, leg or eye is the person's own.",
    ]


def _block(slot: str, subject: Subject) -> str:
    edits = [SUBJECT_SENTENCES[field].format(slot=slot, value=value) for field, value in edit_phrases(subject).items()]
    return f"Subject {slot}: " + " ".join([*edits, *(sentence.format(slot=slot) for sentence in PRESERVE_SENTENCES)])


def edit_phrases(subject: Subject) -> dict[str, str]:
    """What a block states of its subject: the edit set of section 3.1, each field as a phrase, in the order of a block."""
    values = edits_of(subject)
    values["position"] = position_phrase(values["position"])
    return {field: values[field] for field in SUBJECT_SENTENCES if field in values}


def position_phrase(position: Position) -> str:
    """Such as: on the left of the picture, from 7 to 66 percent of its width ..."""
    left, right, top, bottom = position.left, position.right, position.top, position.bottom
    centre = (left + right) / 2
    limits = (
        (20, "at the far left of"),
        (40, "on the left side of"),
        (60, "in the middle of"),
        (80, "on the right side of"),
    )
    place = next((words for limit, words in limits if centre < limit), "at the far right of")
    # A box that covers nearly all of the width is nowhere in particular.
    place = "across most of" if right - left >= 75 else place
    edges = "edges" if len(position.cut_by) > 1 else "edge"
    cut = f" and cut off by its {listed(position.cut_by)} {edges}" if position.cut_by else ""
    return (
        f"{place} the picture, from {left} to {right} percent of its width and from {top} to {bottom} percent of its height, "
        f"filling {_share(bottom - top)} of the height{cut}"
    )


def _share(percent: int) -> str:
    """A share in words, where a plain one is near."""
    shares = {
        10: "about a tenth",
        20: "about a fifth",
        25: "about a quarter",
        33: "about a third",
        40: "about two fifths",
    }
    shares |= {50: "about half", 60: "about three fifths", 67: "about two thirds", 75: "about three quarters"}
    shares |= {80: "about four fifths", 90: "about nine tenths", 98: "almost all"}
    return min(shares.items(), key=lambda entry: (abs(entry[0] - percent), entry[0]))[1]


def _relation(relation: Relation) -> str:
    detail = f", {relation.detail}" if relation.detail else ""
    return f"Subject {relation.first} is {relation.relation} Subject {relation.second}{detail}."


def _shared(annotation: Annotation) -> dict[str, dict[str, str]]:
    """Sentences of what the subjects share, by heading and field."""
    parts = {"Background": annotation.background, "Light": annotation.light, "Camera": annotation.camera}
    sentences: dict[str, dict[str, str]] = {}
    for heading, templates in SHARED_SENTENCES.items():
        sentences[heading] = {}
        for field, template in templates.items():
            value = getattr(parts[heading], field)
            if value:
                words = listed(value) if isinstance(value, tuple) else value
                sentences[heading][field] = template.format(value=words)
    one = len(annotation.background.colours) == 1
    if one:
        sentences["Background"]["colours"] = f"Its main colour is {annotation.background.colours[0]}."
    sentences["Background"]["reference"] = BACKGROUND_SENTENCE
    return sentences


# The linter ----------------------------------------------------------------------------------------------------------

_FIELDS = {
    field: re.compile(
        re.escape(sentence).replace(r"\{slot\}", "(?P<slot>[A-Z])").replace(r"\{value\}", "(?P<value>.*)")
    )
    for field, sentence in SUBJECT_SENTENCES.items()
}
_NO_VALUE = re.compile(
    r"\b(?:is|are|shows|comes|looks|has|of|shown|seen)\s*[.,]|\s[.,]|,\s*[,.]|\b(?:None|null|nan)\b|[{}]| {2}"
)


@dataclass(frozen=True)
class _Paragraph:
    heading: str  # Opening, Subject A, Relations, Background, Light or Camera
    sentences: tuple[str, ...]


def lint_prompt(prompt: str, annotation: Annotation) -> list[str]:
    """What is wrong with a prompt, each as `short_name: what exactly`; empty for every prompt that was compiled from it.

    Short names: unknown_letter, missing_letter, missing_block, repeated_block, no_edits, wrong_letter, missing_value,
    wrong_value, contradiction, preserved_stated, empty_value, sensitive_words, unknown_sentence, wrong_order.
    A prompt may yet be flagged when its annotation itself contradicts itself or states clothes among the actions.
    """
    paragraphs = [_paragraph(text) for text in prompt.strip().split("\n\n")]
    blocks = [paragraph for paragraph in paragraphs if paragraph.heading.startswith("Subject ")]
    problems = _letters(prompt, annotation.slots)
    problems += _blocks(blocks, annotation.slots)
    for block in blocks:
        if (slot := block.heading[-1]) in annotation.subjects:
            problems += _block_problems(block, slot, annotation)
    problems += _opening_problems(paragraphs, annotation.slots)
    problems += _relation_problems(paragraphs, annotation)
    problems += _shared_problems(paragraphs, annotation)
    problems += [f"empty_value: {match.group(0)!r}" for match in _NO_VALUE.finditer(prompt)]
    problems += [f"sensitive_words: {word}" for word in sensitive_words(prompt)]
    return list(dict.fromkeys(problems))


def _paragraph(text: str) -> _Paragraph:
    heading, found, rest = text.partition(": ")
    if not found or not re.fullmatch(r"Subject [A-Z]|Relations|Background|Light|Camera", heading):
        heading, rest = "Opening", text
    return _Paragraph(heading, tuple(re.split(r"(?<=\.)\s+", rest.strip())))


def _letters(prompt: str, slots: tuple[str, ...]) -> list[str]:
    found = set(re.findall(r"\b(?:[Ss]ubject|[Rr]eference)s? ([A-Z])\b", prompt))
    unknown = [f"unknown_letter: {letter}" for letter in sorted(found - set(slots))]
    return unknown + [f"missing_letter: {letter}" for letter in slots if letter not in found]


def _blocks(blocks: list[_Paragraph], slots: tuple[str, ...]) -> list[str]:
    letters = [block.heading[-1] for block in blocks]
    problems = [f"missing_block: {slot}" for slot in slots if slot not in letters]
    problems += [f"repeated_block: {letter}" for letter, count in Counter(letters).items() if count > 1]
    if not problems and letters != list(slots):
        problems.append(f"wrong_order: {', '.join(letters)}")
    return problems


def _block_problems(block: _Paragraph, slot: str, annotation: Annotation) -> list[str]:
    own = edit_phrases(annotation.subjects[slot])
    kept = [sentence.format(slot=slot) for sentence in PRESERVE_SENTENCES]
    stated: dict[str, list[str]] = {}
    problems = []
    for sentence in block.sentences:
        field, letter, value = _read(sentence, slot)
        if field is None:
            if sentence not in kept:
                problems.append(_foreign(sentence, slot, annotation))
            continue
        stated.setdefault(field, []).append(value)
        if letter != slot:
            problems.append(f"wrong_letter: {field} of {letter} stands under {slot}")
        elif value != own.get(field):
            problems.append(_wrong_value(field, value, slot, annotation))
    problems += [f"missing_value: {field} of {slot}" for field in own if field not in stated]
    problems += [f"missing_value: what {slot} keeps" for sentence in kept if sentence not in block.sentences]
    for field, values in stated.items():
        if len(set(values)) > 1:
            problems.append(f"contradiction: {field} of {slot} has {len(set(values))} values")
    if not set(stated) - {"position"}:
        problems.append(f"no_edits: {slot}")
    text = ". ".join(value for field, values in stated.items() if field != "position" for value in values)
    problems += [f"contradiction: {slot} is {pair}" for pair in _opposed(text, OPPOSITES)]
    return problems + [f"preserved_stated: {words} under {slot}" for words in _stated(text, annotation)]


def _read(sentence: str, slot: str) -> tuple[str | None, str, str]:
    """Field, letter and value of a sentence of the block of a slot; one that names no letter is of that slot."""
    for field, pattern in _FIELDS.items():
        if match := pattern.fullmatch(sentence):
            return field, match.groupdict().get("slot") or slot, match["value"]
    return None, "", ""


def _foreign(sentence: str, slot: str, annotation: Annotation) -> str:
    """A sentence of a block that is none of its fields."""
    named = set(re.findall(r"\b(?:[Ss]ubject|[Rr]eference)s? ([A-Z])\b", sentence)) - {slot}
    if named:
        return f"wrong_letter: {', '.join(sorted(named))} named under {slot}"
    if words := _stated(sentence, annotation):
        return f"preserved_stated: {words[0]} under {slot}"
    return f"unknown_sentence: under {slot}: {sentence[:60]}"


def _wrong_value(field: str, value: str, slot: str, annotation: Annotation) -> str:
    for other, subject in annotation.subjects.items():
        if other != slot and edit_phrases(subject).get(field) == value:
            return f"wrong_letter: {field} of {other} is stated of {slot}"
    return f"wrong_value: {field} of {slot} is not the annotation's"


def _opposed(text: str, pairs: tuple[tuple[str, str], ...]) -> list[str]:
    """Pairs of words in a text that cannot both be true."""
    found = ((re.search(rf"\b(?:{one})\b", text), re.search(rf"\b(?:{other})\b", text)) for one, other in pairs)
    return [f"{one.group(0)} and {other.group(0)}" for one, other in found if one and other]


def _stated(text: str, annotation: Annotation) -> list[str]:
    """What a text says of clothes, hair and accessories: verbs of wearing, and the annotation's own phrases of any subject."""
    found = re.findall(r"\b(?:wears|wearing|dressed|clad|haired)\b", text)
    phrases = sorted({phrase for subject in annotation.subjects.values() for phrase in preserved_words(subject)})
    return found + [phrase for phrase in phrases if re.search(rf"\b{re.escape(phrase)}\b", text, re.IGNORECASE)]


def _opening_problems(paragraphs: list[_Paragraph], slots: tuple[str, ...]) -> list[str]:
    expected = _opening_sentences(slots)
    found = [sentence for paragraph in paragraphs if paragraph.heading == "Opening" for sentence in paragraph.sentences]
    problems = []
    for sentence in found:
        match = re.fullmatch(r"Subject ([A-Z]) is the person in reference ([A-Z])\.", sentence)
        if match and match[1] != match[2]:
            problems.append(f"wrong_letter: Subject {match[1]} is tied to reference {match[2]}")
        elif sentence not in expected:
            problems.append(f"unknown_sentence: in the opening: {sentence[:60]}")
    return problems + [f"missing_value: opening: {sentence[:60]}" for sentence in expected if sentence not in found]


def _relation_problems(paragraphs: list[_Paragraph], annotation: Annotation) -> list[str]:
    expected = [_relation(relation) for relation in annotation.relations]
    found = [
        sentence for paragraph in paragraphs if paragraph.heading == "Relations" for sentence in paragraph.sentences
    ]
    problems = []
    for sentence in found:
        if sentence not in expected:
            masked = re.sub(r"Subject [A-Z]", "Subject", sentence)
            letters = any(re.sub(r"Subject [A-Z]", "Subject", known) == masked for known in expected)
            problems.append(f"{'wrong_letter' if letters else 'unknown_sentence'}: relations: {sentence[:60]}")
    problems += [f"missing_value: relation: {sentence[:60]}" for sentence in expected if sentence not in found]
    return problems + _two_ways(found)


def _two_ways(sentences: list[str]) -> list[str]:
    """Relations that contradict each other: A is left of B and B is left of A, or A is right of B."""
    known = set()
    for sentence in sentences:
        if match := re.match(r"Subject ([A-Z]) is (?:apparently )?(.+?) Subject ([A-Z])\b", sentence):
            known.add(match.groups())
    problems = []
    for first, words, second in sorted(known):
        if words in (*ONE_WAY, *REVERSED) and first < second and (second, words, first) in known:
            problems.append(f"contradiction: {first} and {second} are both {words} each other")
        if words in REVERSED and (first, REVERSED[words], second) in known:
            problems.append(f"contradiction: {first} is {words} and {REVERSED[words]} {second}")
    return problems


def _shared_problems(paragraphs: list[_Paragraph], annotation: Annotation) -> list[str]:
    problems = []
    for heading, expected in _shared(annotation).items():
        found = [sentence for part in paragraphs if part.heading == heading for sentence in part.sentences]
        for sentence in found:
            if sentence not in expected.values():
                problems.append(f"unknown_sentence: under {heading}: {sentence[:60]}")
            problems += [f"contradiction: {heading.lower()}: {pair}" for pair in _opposed(sentence, SHARED_OPPOSITES)]
        problems += [
            f"missing_value: {heading.lower()}: {field}" for field, text in expected.items() if text not in found
        ]
        for field, template in SHARED_SENTENCES[heading].items():
            beginning = template.split("{value}")[0]
            if len({sentence for sentence in found if sentence.startswith(beginning)}) > 1:
                problems.append(f"contradiction: {heading.lower()}: {field} has several values")
    return problems


# The tables ----------------------------------------------------------------------------------------------------------


def compile_prompts(annotations: Path, out: Path, statistics: Path) -> None:
    """Writes the table PROMPTS of a table ANNOTATIONS, and how long the prompts are as JSON.

    Raises UserError for a table that is missing or whose annotations are of another version.
    """
    rows, lengths, problems = [], {}, Counter()
    for row in read_table(ANNOTATIONS, annotations).to_pylist():
        if not row["annotation"]:
            rows.append({"instance": row["instance"], "prompt": None, "words": 0, "problems": ["no_annotation"]})
            continue
        annotation = _read_annotation(row, annotations)
        prompt = compile_prompt(annotation)
        found = lint_prompt(prompt, annotation)
        for problem in found:
            print(f"{row['instance']}: {problem}", file=sys.stderr)
        names = list(dict.fromkeys(problem.split(":", 1)[0] for problem in found))
        problems.update(names)
        words = len(prompt.split())
        lengths.setdefault(len(annotation.subjects), []).append(words)
        rows.append({"instance": row["instance"], "prompt": prompt, "words": words, "problems": names})
    write_table(PROMPTS, rows, out)
    every = [words for group in lengths.values() for words in group]
    write_json(
        statistics,
        {
            "words": length_statistics(every),
            "words_by_subjects": {str(number): length_statistics(lengths[number]) for number in sorted(lengths)},
            "without_annotation": sum(row["prompt"] is None for row in rows),
            "problems": dict(problems),
        },
    )


def length_statistics(words: list[int]) -> dict:
    """Of the numbers of words of some prompts; the figures are null where there is none."""
    if not words:
        return {"prompts": 0, "mean": None, "min": None, "max": None}
    return {"prompts": len(words), "mean": round(sum(words) / len(words), 1), "min": min(words), "max": max(words)}


def _read_annotation(row: dict, path: Path) -> Annotation:
    try:
        return Annotation.model_validate_json(row["annotation"])
    except ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(str(part) for part in wrong["loc"])
        raise UserError(
            f"{path}: {row['instance']}: not an annotation of this version ({where}: {wrong['msg']}); delete it and run again"
        ) from None
