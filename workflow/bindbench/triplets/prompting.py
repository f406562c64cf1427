"""The paid backends of the triplets (B.1, B.3): what a language model is asked for, and what its answer is read as.

One request asks for several examples of one construction, as JSON that fits a schema. The prompt is put together from
the templates in resources/prompts/triplets/: CONSTRUCTION.txt is the whole, with rules.txt, words.txt and one example.txt for
each example put in. Both services get the same text. A backend only proposes: what is read here goes to the validator, and
what cannot be read becomes a reject with its reason.

Names in the answer are in alphabetical order, because bodies are stored and sent with sorted keys and models write the
fields in the order of the schema: the words come first, then the sentence that is made of them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from string import Template
from typing import Literal

from ..errors import UserError
from ..paths import resolve
from ..services.requests import Request
from .constructions import CONSTRUCTIONS, Binding, Construction, Guidance, Proposal, Reject, Specification

TEMPLATES = "resources/prompts/triplets"
NONE = "none"


def build_request(
    specifications: Sequence[Specification],
    guidance: Guidance,
    registers: Mapping[str, str],
    openers: Mapping[str, str],
    *,
    kind: Literal["openai", "google-genai"],
    model: str,
    temperature: float,
    max_tokens: int,
    stage: str,
) -> Request:
    """The request for the examples of these specifications, all of one construction, in their order (B.3).

    registers, openers: the instruction of each name. max_tokens: limit of the whole answer.
    Raises UserError for a missing or broken template, and for a register or opener without an instruction.
    """
    prompt = build_prompt(specifications, guidance, registers, openers)
    schema = answer_schema(specifications)
    if kind == "openai":
        json_schema = {"name": "examples", "strict": True, "schema": schema}
        body = {
            "messages": [{"role": "user", "content": prompt}],
            "response_format": {"type": "json_schema", "json_schema": json_schema},
            "temperature": temperature,
            "max_tokens": max_tokens,
        }
        return Request("chat", model, body, stage=stage)
    config = {
        "response_mime_type": "application/json",
        "response_json_schema": schema,
        "temperature": temperature,
        "max_output_tokens": max_tokens,
    }
    return Request("gemini_content", model, {"contents": prompt, "config": config}, stage=stage)


def answer_schema(specifications: Sequence[Specification]) -> dict:
    """JSON schema of the answer, in the words that both APIs know.

    Counts are exact. Only the examples' numbers of distractors may differ within a request: the schema holds their range,
    since prefixItems is unknown to OpenAI.
    """
    construction = _construction_of(specifications)
    asked = [specification.distractors for specification in specifications]
    distractor = _object_schema({"attribute": {"type": "string"}, "object": {"type": "string"}})
    fields = {
        "attributes": _list_schema(_list_schema({"type": "string"}, construction.attributes), construction.objects),
        "objects": _list_schema({"type": "string"}, construction.objects),
        "positive": {"type": "string"},
    }
    if construction.distractors:
        fields["distractors"] = _list_schema(distractor, min(asked), max(asked))
    if construction.attributes > 1:
        fields["families"] = _list_schema({"type": "string"}, construction.attributes)
    examples = _list_schema(_object_schema(fields), len(specifications))
    return _object_schema({"examples": examples})


def _object_schema(properties: dict) -> dict:
    names = sorted(properties)
    return {
        "type": "object",
        "properties": {name: properties[name] for name in names},
        "required": names,
        "additionalProperties": False,
    }


def _list_schema(items: dict, fewest: int, most: int | None = None) -> dict:
    return {"type": "array", "items": items, "minItems": fewest, "maxItems": fewest if most is None else most}


def _construction_of(specifications: Sequence[Specification]) -> Construction:
    """Raises ValueError when there is not exactly one."""
    names = {specification.construction for specification in specifications}
    if len(names) != 1:
        raise ValueError(f"a request is for examples of one construction, not of {sorted(names)}")
    return CONSTRUCTIONS[names.pop()]


# The prompt ----------------------------------------------------------------------------------------------------------


def build_prompt(
    specifications: Sequence[Specification],
    guidance: Guidance,
    registers: Mapping[str, str],
    openers: Mapping[str, str],
) -> str:
    """The text that is sent; the same for the same controls, in whatever order mappings and lists of words come.

    Raises UserError as build_request does.
    """
    construction = _construction_of(specifications)
    examples = (
        _filled("example", _controls(number, specification, registers, openers))
        for number, specification in enumerate(specifications, 1)
    )
    parts = {
        "count": str(len(specifications)),
        "rules": _filled("rules", {}),
        "words": _filled("words", _words(guidance)),
        "examples": "\n\n".join(examples),
    }
    return _filled(construction.name, parts) + "\n"


def _controls(
    number: int, specification: Specification, registers: Mapping[str, str], openers: Mapping[str, str]
) -> dict[str, str]:
    """The fields of example.txt."""
    return {
        "number": str(number),
        "scene": specification.scene,
        "time": specification.time_of_day or "not given",
        "weather": specification.weather or "not given",
        "register": specification.register,
        "register_instruction": _instruction("register", specification.register, registers),
        "opener": specification.opener,
        "opener_instruction": _instruction("opener", specification.opener, openers),
        "fewest": str(specification.length[0]),
        "most": str(specification.length[1]),
        "nearest": str(specification.distance[0]),
        "farthest": str(specification.distance[1]),
        "distractors": f"exactly {specification.distractors}" if specification.distractors else NONE,
        "order": _order(specification),
    }


def _order(specification: Specification) -> str:
    """In which order the bindings are told once both objects are introduced."""
    if CONSTRUCTIONS[specification.construction].attachment != "anaphoric":
        return "as the objects are named"
    return "the SECOND object is described first" if specification.reversed else "the FIRST object is described first"


def _instruction(what: str, name: str, instructions: Mapping[str, str]) -> str:
    if name not in instructions:
        raise UserError(f"{what}s.csv: no instruction for the {what} {name!r}; add its row")
    return instructions[name]


def _words(guidance: Guidance) -> dict[str, str]:
    """The fields of words.txt. Families keep the order of their words, in which the least used come first."""
    families = (f"- {family}: {', '.join(words)}" for family, words in sorted(guidance.suggestions.items()) if words)
    return {
        "suggestions": "\n".join(families) or NONE,
        "avoid": ", ".join(sorted(guidance.avoid)) or NONE,
        "banned": ", ".join(sorted(guidance.banned)) or NONE,
    }


def _filled(name: str, fields: Mapping[str, str]) -> str:
    """A template with all of its fields, each of which it has to name."""
    path = resolve(f"{TEMPLATES}/{name}.txt")
    try:
        template = Template(path.read_text(encoding="utf-8-sig").strip())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8; save it as UTF-8 text") from None
    named = template.get_identifiers() if template.is_valid() else None
    if named is None:
        raise UserError(f"{path}: a $ that begins no field; write $$ for a dollar sign")
    for field in named:
        if field not in fields:
            raise UserError(f"{path}: unknown field ${field}; known: {_listed(fields)}")
    for field in fields:
        if field not in named:
            raise UserError(f"{path}: the field ${field} is missing; put it back")
    return template.substitute(fields)


def _listed(fields: Mapping[str, str]) -> str:
    return ", ".join(f"${field}" for field in fields) or NONE


# The answer ----------------------------------------------------------------------------------------------------------

TRIED_STARTS = 20  # brackets in an answer at which its JSON may begin


def read_proposals(specifications: Sequence[Specification], payload: bytes) -> list[Proposal | Reject]:
    """What the model proposes for each specification, in their order; never raises, whatever the payload is.

    Reasons of rejects: not_json; missing_examples (JSON without a list of examples), missing_example (the list is too
    short), malformed_example (the detail says which field). Examples beyond the specifications are left out.
    """
    text = payload.decode("utf-8", "replace").strip()
    examples, reason = _examples_in(text)
    if examples is None:
        return _all_rejected(specifications, reason, text[:200])
    few = f"the answer holds {len(examples)} of {len(specifications)} examples"
    return [
        _read_example(specification, examples[index])
        if index < len(examples)
        else Reject(specification, None, "missing_example", few)
        for index, specification in enumerate(specifications)
    ]


def refusals(specifications: Sequence[Specification], reason: str, detail: str = "") -> list[Reject]:
    """The rejects of a whole request that has no answer. reason: no_answer_reason of what the services say."""
    return _all_rejected(specifications, reason, detail)


def no_answer_reason(said: str) -> str:
    """The name of the reason for which a request has no answer. said: the reason of its services.buying.Answer.

    cut_answer: at the token limit, each time; broken_answer: not what the schema asks for, each time; refused_answer:
    moderation, or an invalid request.
    """
    if not said.startswith("broken"):
        return "refused_answer"
    return "cut_answer" if "cut at the token limit" in said else "broken_answer"


def _all_rejected(specifications: Sequence[Specification], reason: str, detail: str) -> list[Reject]:
    return [Reject(specification, None, reason, detail) for specification in specifications]


def _examples_in(text: str) -> tuple[list | None, str]:
    """The list of examples in an answer, words and fences around its JSON forgiven; else None and the reason."""
    brackets = [match.start() for match in islice(re.finditer(r"[{\[]", text), TRIED_STARTS)]
    for start in brackets:
        value, _ = _json_at(text, start)
        if isinstance(value, dict) and isinstance(value.get("examples"), list):
            return value["examples"], ""
        if start == brackets[0] and isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return value, ""  # the list alone
    _, end = _json_at(text, 0)
    return None, "missing_examples" if text and end == len(text) else "not_json"


def _json_at(text: str, start: int) -> tuple[object, int]:
    """The JSON value that begins there, and its end; None and the beginning when there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start


class _Malformed(Exception):
    """A field that is not what it has to be."""


def _read_example(specification: Specification, example) -> Proposal | Reject:
    try:
        return _proposal(CONSTRUCTIONS[specification.construction], example)
    except _Malformed as problem:
        return Reject(specification, None, "malformed_example", str(problem))


def _proposal(construction: Construction, example) -> Proposal:
    if not isinstance(example, dict):
        raise _Malformed("the example is not an object")
    positive = _text("positive", example.get("positive"))
    nouns = [_noun(name, item) for name, item in _items("objects", example.get("objects"), construction.objects)]
    attributes = [
        _attributes(name, item, construction.attributes)
        for name, item in _items("attributes", example.get("attributes"), construction.objects)
    ]
    bindings = [Binding(words, noun) for words, noun in zip(attributes, nouns, strict=True)]
    distractors = [_distractor(name, item) for name, item in _items("distractors", example.get("distractors") or [])]
    families: tuple[str, ...] = ()
    if construction.attributes > 1:
        found = _items("families", example.get("families"), construction.attributes)
        families = tuple(_text(name, item) for name, item in found)
    return Proposal(tuple(bindings), positive, tuple(distractors), families)


def _items(name: str, value, count: int | None = None) -> list[tuple[str, object]]:
    """The items of a list, each with its name for messages."""
    if not isinstance(value, list):
        raise _Malformed(f"{name}: missing" if value is None else f"{name}: not a list")
    if count is not None and len(value) != count:
        raise _Malformed(f"{name}: {len(value)} instead of {count}")
    return [(f"{name}.{index}", item) for index, item in enumerate(value)]


def _text(name: str, value) -> str:
    """A text of printable characters, its runs of white space made one space."""
    if not isinstance(value, str):
        raise _Malformed(f"{name}: missing" if value is None else f"{name}: not a text")
    text = " ".join(value.split())
    if not text or not text.isprintable():
        raise _Malformed(f"{name}: {'characters that do not print' if text else 'empty'}")
    return text


def _noun(name: str, value) -> str:
    """Without the article that models like to put before an object."""
    return re.sub(r"^(an?|the) (?=.)", "", _text(name, value), flags=re.IGNORECASE)


def _attributes(name: str, value, count: int) -> tuple[str, ...]:
    """A list of attributes, or a text of one, or of several with commas."""
    words = value.split(",") if isinstance(value, str) else value
    return tuple(_text(part, word) for part, word in _items(name, words, count))


def _distractor(name: str, value) -> Binding:
    if not isinstance(value, dict):
        raise _Malformed(f"{name}: not an object")
    (attribute,) = _attributes(f"{name}.attribute", value.get("attribute"), 1)
    return Binding((attribute,), _noun(f"{name}.object", value.get("object")))
