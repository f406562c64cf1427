"""What a language model is asked for (B.2, B.3), and what is read from whatever it answers."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from string import Template

import jsonschema
import pytest
from bindbench.errors import UserError
from bindbench.triplets import prompting
from bindbench.triplets.constructions import (
    CONSTRUCTIONS,
    Binding,
    Example,
    Guidance,
    Proposal,
    Reject,
    Specification,
)
from bindbench.triplets.prompting import (
    answer_schema,
    build_prompt,
    build_request,
    no_answer_reason,
    read_proposals,
    refusals,
)
from bindbench.triplets.validation import check
from hypothesis import given
from hypothesis import strategies as st

TEMPLATES = Path(__file__).resolve().parents[3] / "resources" / "prompts" / "triplets"
REGISTERS = {"field notebook": "Terse, in the past tense.", "museum label": "Sober, in the present tense."}
OPENERS = {"place first": "Begin with the place.", "time first": "Begin with the time."}
GUIDANCE = Guidance(("teapot", "amber"), ("wooden", "lamp"), {"shape": ("oval", "slender"), "color": ("teal",)})
FAMILIES = {
    "worn": "condition",
    "pristine": "condition",
    "shabby": "condition",
    "wooden": "material",
    "ceramic": "material",
}
FIRST = Specification(
    "pair_swap", 7, "at a tram depot", "transport", "dusk", "fog", "field notebook", "place first", (16, 22), (3, 5), 1
)


def specifications(construction: str = "pair_swap", count: int = 2) -> list[Specification]:
    """Specifications of which every control differs."""
    most = 3 if CONSTRUCTIONS[construction].distractors else 0
    second = replace(
        FIRST,
        index=8,
        scene="beside a mountain lake",
        time_of_day="",
        weather="",
        register="museum label",
        opener="time first",
        length=(31, 42),
        distance=(10, 13),
        distractors=most,
        reversed=True,
    )
    first = replace(FIRST, distractors=min(FIRST.distractors, most))
    return [replace(one, construction=construction) for one in (first, second)][:count]


def prompt_of(asked: list[Specification], guidance: Guidance = GUIDANCE) -> str:
    return build_prompt(asked, guidance, REGISTERS, OPENERS)


def request_of(
    asked: list[Specification],
    kind: str = "openai",
    guidance: Guidance = GUIDANCE,
    registers: dict = REGISTERS,
    openers: dict = OPENERS,
):
    named = {"model": "gemma-4-31b-it", "temperature": 0.8, "max_tokens": 900, "stage": "triplets"}
    return build_request(asked, guidance, registers, openers, kind=kind, **named)


def block(prompt: str, number: int) -> str:
    """The controls of a numbered example."""
    return re.search(rf"^Example {number}\n((?:- .*\n)+)", prompt, re.MULTILINE)[1]


# What is asked -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_every_control_of_every_example_is_in_the_prompt(construction):
    asked = specifications(construction)
    prompt = prompt_of(asked)
    for number, one in enumerate(asked, 1):
        told = block(prompt, number)
        assert one.scene in told and one.register in told and one.opener in told
        assert REGISTERS[one.register] in told and OPENERS[one.opener] in told
        assert f"at least {one.length[0]} and at most {one.length[1]} words" in told
        assert f"at least {one.distance[0]} and at most {one.distance[1]} words" in told
        assert f"time of day: {one.time_of_day or 'not given'}\n" in told
        assert f"weather: {one.weather or 'not given'}\n" in told
        assert f"distractors: {f'exactly {one.distractors}' if one.distractors else 'none'}\n" in told


@pytest.mark.parametrize("control", ["scene", "time_of_day", "weather", "register", "opener", "length", "distance"])
def test_a_control_that_differs_makes_another_request(control):
    first, second = specifications()
    changed = replace(first, **{control: getattr(second, control)})
    assert request_of([first]).key != request_of([changed]).key


def test_half_of_the_anaphoric_examples_are_told_to_describe_the_second_object_first():
    prompt = prompt_of(specifications("deferred_bind_anaphoric"))
    assert "the FIRST object is described first" in block(prompt, 1)
    assert "the SECOND object is described first" in block(prompt, 2)
    assert "SECOND" not in block(prompt_of(specifications("deferred_bind_respective")), 2)


def test_what_the_writer_need_not_know_changes_nothing():
    one = specifications("triple_bind_swap", 1)[0]
    other = replace(one, index=99, kept=2, swapped_slot=1, query_order=(2, 0, 1))
    assert request_of([one]).key == request_of([other]).key


def test_word_lists_are_in_the_prompt_each_as_what_it_is():
    prompt = prompt_of(specifications())
    forbidden, rest = prompt.split("## Words", 1)[1].split("Used a lot lately", 1)
    avoided, suggested = rest.split("Adjectives that were used least", 1)
    assert "lamp, wooden" in forbidden and "thrown away" in forbidden
    assert "amber, teapot" in avoided
    assert "- color: teal\n- shape: oval, slender\n" in suggested


def test_without_word_lists_none_is_said():
    assert prompt_of(specifications(), Guidance()).count("none\n") >= 3


# Each construction in the words of B.2.
SAID = {
    "pair_swap": ("two listed objects", "Directly before each", "exchanges the two adjectives, or the two objects"),
    "triple_bind_cycle": ("three listed objects", "Directly before each", "SMALLER", "to the next place"),
    "triple_bind_swap": ("three listed objects", "Directly before each", "SMALLER", "any two of the three"),
    "attr_bundle": ("two adjectives of different kinds", "families", "red crimson"),
    "predicative": ("verb of being or of change", "relative clause", "NEVER stands directly before", "SMALLER"),
    "deferred_bind_anaphoric": ("both named before any listed adjective", "the former", "latter", '"it"', '"they"'),
    "deferred_bind_respective": ("both named before any listed adjective", "respectively", "in the order of the"),
}


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_the_rules_of_each_construction_are_told_with_a_good_and_bad_examples(construction):
    prompt = prompt_of(specifications(construction))
    for words in (*SAID[construction], "Distance: ", "Good (", "Thrown away:", "A hyphenated word is ONE word"):
        assert words in prompt
    assert prompt.split("Thrown away:")[1].split("\n\n")[0].count("\n- ") >= 3
    assert '"examples" holds exactly 2,' in prompt


NUMBERS = {"one": 1, "two": 2, "three": 3}


def good_example(construction: str) -> tuple[Specification, Proposal, int, int]:
    """The good example that the template shows, what it says was asked for, and its words and distance."""
    prompt = prompt_of(specifications(construction))
    told = re.search(
        r"^Good \(length (\d+) to (\d+), distance (\d+) to (\d+)(?:, (\w+) distractors?)?(, the SECOND object is described"
        r" first)?; (\d+) words, distance (\d+)\):\n(.+)$",
        prompt,
        re.MULTILINE,
    )
    low, high, nearest, farthest, words, distance = map(int, told.group(1, 2, 3, 4, 7, 8))
    asked = replace(
        specifications(construction)[0],
        length=(low, high),
        distance=(nearest, farthest),
        distractors=NUMBERS.get(told[5], 0),
        reversed=bool(told[6]),
        query_order=tuple(range(CONSTRUCTIONS[construction].objects)),
    )
    jsonschema.validate(json.loads(told[9]), answer_schema([asked]))
    (proposal,) = read_proposals([asked], told[9].encode())
    return asked, proposal, words, distance


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_the_good_example_of_a_prompt_is_accepted_and_measured_as_told(construction):
    asked, proposal, words, distance = good_example(construction)
    example = check(asked, proposal, families=FAMILIES)
    assert isinstance(example, Example), (example.reason, example.detail)
    assert (example.words, example.distance) == (words, distance)


# What a prompt shows as thrown away, with the lists that would go with it, and the rule that throws it away.
THROWN_AWAY = [
    ("pair_swap", "chipped mug, brass bell", "attributes_before_object"),
    ("pair_swap", "chipped mug, brass bell", "attributes_before_object"),
    ("pair_swap", "chipped mug, brass bell", "once_in_positive"),
    ("triple_bind_cycle", "rusty kettle, velvet cushion, oval mirror", "attributes_before_object"),
    ("triple_bind_cycle", "rusty kettle, velvet cushion, rusty mirror", "distinct_words"),
    ("triple_bind_cycle", "rusty kettle, velvet cushion", "binding_count"),
    ("triple_bind_swap", "leather satchel, dented thermos, yellow envelope", "attributes_before_object"),
    ("triple_bind_swap", "leather satchel, dented thermos, yellow envelope", "once_in_positive"),
    ("triple_bind_swap", "leather satchel, dented thermos, yellow envelope", "once_in_positive"),
    ("attr_bundle", "worn wooden crate, pristine ceramic jug", "attributes_before_object"),
    ("attr_bundle", "worn shabby crate, pristine spotless jug", "claimed_families"),
    ("attr_bundle", "worn wooden crate, pristine ceramic jug", "attributes_before_object"),
    ("predicative", "dented bucket, greenish wheelbarrow", "never_adjacent"),
    ("predicative", "dented bucket, greenish wheelbarrow", "binding_distance"),
    ("predicative", "dented bucket, greenish wheelbarrow", "separate_clauses"),
    ("deferred_bind_anaphoric", "spotless kettle, bent lantern", "never_adjacent"),
    ("deferred_bind_anaphoric", "spotless kettle, bent lantern", "no_bare_pronoun"),
    ("deferred_bind_anaphoric", "spotless kettle, bent lantern", "once_in_positive"),
    ("deferred_bind_respective", "faded globe, sturdy ladder", "never_adjacent"),
    ("deferred_bind_respective", "faded globe, sturdy ladder", "joined_in_noun_order"),
    ("deferred_bind_respective", "faded globe, sturdy ladder", "respectively"),
]


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_what_a_prompt_shows_as_thrown_away_is_thrown_away(construction):
    shown = prompt_of(specifications(construction)).split("Thrown away:\n")[1].split("\n\n")[0].splitlines()
    expected = [(pairs, reason) for name, pairs, reason in THROWN_AWAY if name == construction]
    reasons = []
    for line, (pairs, _) in zip(shown, expected, strict=True):
        sentence = line.split('"')[1].rstrip(".") + "."
        bindings = tuple(Binding(tuple(words[:-1]), words[-1]) for words in map(str.split, pairs.split(", ")))
        asked, good, _, _ = good_example(construction)
        asked = replace(asked, length=(5, 20), distractors=0)
        spoiled = replace(good, bindings=bindings, positive=sentence, distractors=())
        outcome = check(asked, spoiled, families=FAMILIES)
        reasons.append("accepted" if isinstance(outcome, Example) else outcome.reason)
    assert reasons == [reason for _, reason in expected]


def test_all_examples_of_a_request_are_of_one_construction():
    with pytest.raises(ValueError, match="one construction"):
        prompt_of([FIRST, replace(FIRST, construction="predicative")])


# Templates -----------------------------------------------------------------------------------------------------------


def test_every_construction_has_its_template_and_every_template_its_use():
    names = {path.stem for path in TEMPLATES.iterdir()}
    assert names == {*CONSTRUCTIONS, "rules", "words", "example"}


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_every_template_names_all_of_its_fields(construction):
    template = Template((TEMPLATES / f"{construction}.txt").read_text())
    assert sorted(template.get_identifiers()) == ["count", "examples", "rules", "words"]


@pytest.fixture
def templates(tmp_path, monkeypatch) -> Path:
    """A copy that a test may spoil."""
    monkeypatch.setattr(prompting, "TEMPLATES", str(tmp_path / "templates"))
    return Path(shutil.copytree(TEMPLATES, tmp_path / "templates"))


def spoiled(templates: Path, name: str, old: str, new: str) -> str:
    """What is said of a template in which `old` is replaced."""
    path = templates / f"{name}.txt"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError) as problem:
        prompt_of(specifications())
    assert str(path) in str(problem.value) and "\n" not in str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize(
    ("name", "field"), [("pair_swap", "words"), ("example", "weather"), ("example", "nearest"), ("words", "banned")]
)
def test_a_template_without_a_field_is_refused_with_file_and_field(templates, name, field):
    assert f"${field} is missing" in spoiled(templates, name, f"${field}", "")


@pytest.mark.parametrize("name", ["pair_swap", "rules", "words", "example"])
def test_a_template_with_an_unknown_field_is_refused_with_file_and_field(templates, name):
    assert "unknown field $colour" in spoiled(templates, name, "\n", "\n$colour ")


def test_a_stray_dollar_sign_is_refused(templates):
    assert "$$" in spoiled(templates, "rules", "ONE word", "ONE word, 5 $ each")


def test_a_missing_template_is_refused(templates):
    (templates / "words.txt").unlink()
    with pytest.raises(UserError, match=r"words\.txt: cannot be read"):
        prompt_of(specifications())


def test_a_template_in_another_encoding_is_refused(templates):
    (templates / "rules.txt").write_bytes("naïve".encode("latin-1"))
    with pytest.raises(UserError, match=r"rules\.txt: not UTF-8"):
        prompt_of(specifications())


@pytest.mark.parametrize("what", ["register", "opener"])
def test_a_control_without_an_instruction_is_refused(what):
    with pytest.raises(UserError, match=f"{what}s.csv: no instruction for the {what} 'sonnet'"):
        prompt_of([replace(FIRST, **{what: "sonnet"})])


def test_a_changed_template_is_another_request(templates):
    before = request_of(specifications())
    (templates / "rules.txt").write_text("Write well.")
    assert "Write well." in prompt_of(specifications())
    assert request_of(specifications()).key != before.key


# Requests ------------------------------------------------------------------------------------------------------------


def test_the_openai_request_is_a_chat_with_a_strict_schema():
    request = request_of(specifications())
    assert (request.kind, request.service, request.stage) == ("chat", "openai", "triplets")
    assert set(request.body) == {"messages", "response_format", "temperature", "max_tokens"}
    assert request.body["max_tokens"] == 900 and request.body["temperature"] == 0.8
    asked = request.body["response_format"]
    assert asked["type"] == "json_schema" and asked["json_schema"]["strict"] is True
    assert asked["json_schema"]["schema"] == answer_schema(specifications())


def test_the_gemini_request_has_the_same_prompt_and_schema():
    request = request_of(specifications(), "google-genai")
    assert (request.kind, request.service) == ("gemini_content", "gemini")
    assert request.body["contents"] == request_of(specifications()).body["messages"][0]["content"]
    assert request.body["config"] == {
        "response_mime_type": "application/json",
        "response_json_schema": answer_schema(specifications()),
        "temperature": 0.8,
        "max_output_tokens": 900,
    }


def turned(mapping: dict) -> dict:
    return dict(reversed(mapping.items()))


@pytest.mark.parametrize("kind", ["openai", "google-genai"])
def test_the_key_depends_on_no_order_of_mappings_or_word_lists(kind):
    other = Guidance(GUIDANCE.avoid[::-1], GUIDANCE.banned[::-1], turned(GUIDANCE.suggestions))
    one = request_of(specifications(), kind)
    same = request_of(specifications(), kind, other, registers=turned(REGISTERS), openers=turned(OPENERS))
    assert one.key == same.key
    assert one.key != request_of(specifications(), kind, replace(other, banned=("lamp",))).key


def keywords(schema) -> set[str]:
    """All keywords of a schema; names of properties are none."""
    if not isinstance(schema, dict):
        return set()
    inner = [*schema.get("properties", {}).values(), schema.get("items")]
    return set(schema).union(*map(keywords, inner))


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_the_schema_keeps_to_what_both_apis_take(construction):
    schema = answer_schema(specifications(construction))
    jsonschema.Draft202012Validator.check_schema(schema)
    known = {"type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems"}
    assert keywords(schema) == known

    def strict(part: dict):
        if part["type"] == "object":
            # OpenAI's strict mode: every property is required and there are no others.
            assert part["required"] == list(part["properties"]) and part["additionalProperties"] is False
        for inner in (*part.get("properties", {}).values(), *filter(None, [part.get("items")])):
            strict(inner)

    strict(schema)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_models_write_the_sentence_after_its_words_whatever_sorts_the_keys(construction):
    example = answer_schema(specifications(construction))["properties"]["examples"]["items"]
    assert list(example["properties"]) == sorted(example["properties"])
    assert list(example["properties"])[-1] == "positive"


def test_the_schema_holds_the_exact_counts():
    def fits(construction: str, *examples: dict) -> bool:
        schema = answer_schema(specifications(construction, len(examples) or 1))
        return jsonschema.Draft202012Validator(schema).is_valid({"examples": list(examples)})

    triple = {"objects": ["a", "b", "c"], "attributes": [["d"], ["e"], ["f"]], "positive": "g"}
    assert fits("triple_bind_cycle", triple)
    assert not fits("triple_bind_cycle", {**triple, "objects": ["a", "b"]})
    assert not fits("triple_bind_cycle", {**triple, "attributes": [["d"], ["e"], ["f", "g"]]})
    assert not fits("triple_bind_cycle", {**triple, "distractors": []})
    bundle = {"objects": ["a", "b"], "attributes": [["c", "d"], ["e", "f"]], "families": ["g", "h"], "positive": "i"}
    assert fits("attr_bundle", bundle) and not fits("attr_bundle", {**bundle, "families": ["g"]})
    pair = {"objects": ["a", "b"], "attributes": [["c"], ["d"]], "positive": "e"}
    one = {"attribute": "f", "object": "g"}
    assert fits("pair_swap", {**pair, "distractors": [one]})
    assert not fits("pair_swap", {**pair, "distractors": []})
    assert fits("pair_swap", {**pair, "distractors": [one]}, {**pair, "distractors": [one] * 3})
    assert not fits("pair_swap")


# What is read --------------------------------------------------------------------------------------------------------

GOOD = {
    "attributes": [["dented"], ["teal"]],
    "distractors": [{"attribute": "muddy", "object": "boot"}],
    "objects": ["signal", "bench"],
    "positive": "At the depot a dented signal hung over a teal bench, and a muddy boot lay below.",
}
READ = Proposal(
    (Binding(("dented",), "signal"), Binding(("teal",), "bench")), GOOD["positive"], (Binding(("muddy",), "boot"),)
)


def read(value, asked: list[Specification] | None = None) -> list[Proposal | Reject]:
    payload = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_proposals(asked or specifications(), payload)


def only(example) -> Proposal | Reject:
    (result,) = read({"examples": [example]}, [FIRST])
    return result


def test_a_good_answer_is_one_proposal_for_each_specification_in_order():
    other = {**GOOD, "objects": ["whistle", "bench"], "positive": GOOD["positive"].replace("signal", "whistle")}
    first, second = read({"examples": [GOOD, other]})
    assert first == READ and second.bindings[0].object == "whistle"


def test_of_too_many_examples_the_first_are_read():
    assert read({"examples": [GOOD] * 5}) == [READ, READ]


def test_of_too_few_examples_the_rest_are_rejects():
    first, second = read({"examples": [GOOD]})
    assert first == READ
    assert (second.reason, second.specification) == ("missing_example", specifications()[1])


def test_words_and_fences_around_the_json_are_forgiven():
    text = json.dumps({"examples": [GOOD, GOOD]})
    for answer in (f"Here are 2 [two] examples:\n{text}", f"```json\n{text}\n```", f"{text}\nI counted twice."):
        assert read(answer.encode()) == [READ, READ]
    assert read([GOOD, GOOD]) == [READ, READ]


@pytest.mark.parametrize("value", [{}, {"examples": 3}, {"examples": {"1": GOOD}}, [1, 2], "text", 3, None, GOOD])
def test_json_without_a_list_of_examples(value):
    assert [reject.reason for reject in read(value)] == ["missing_examples"] * 2


@pytest.mark.parametrize("payload", [b"", b"  ", b"Sorry, I cannot.", b'{"examples": [', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json(payload):
    assert [reject.reason for reject in read(payload)] == ["not_json"] * 2


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"objects": None}, "objects: missing"),
        ({"attributes": None}, "attributes: missing"),
        ({"positive": None}, "positive: missing"),
        ({"positive": "  "}, "positive: empty"),
        ({"positive": ["a", "b"]}, "positive: not a text"),
        ({"positive": "A bell\u0007."}, "positive: characters that do not print"),
        ({"positive": "A bell \ud800."}, "positive: characters that do not print"),
        ({"objects": "signal, bench"}, "objects: not a list"),
        ({"objects": ["signal"]}, "objects: 1 instead of 2"),
        ({"objects": ["signal", "bench", "boot"]}, "objects: 3 instead of 2"),
        ({"objects": ["signal", 7]}, "objects.1: not a text"),
        ({"attributes": {"signal": "dented"}}, "attributes: not a list"),
        ({"attributes": [["dented", "old"], ["teal"]]}, "attributes.0: 2 instead of 1"),
        ({"attributes": [["dented"], [None]]}, "attributes.1.0: missing"),
        ({"attributes": [["dented"], 5]}, "attributes.1: not a list"),
        ({"distractors": "muddy boot"}, "distractors: not a list"),
        ({"distractors": ["muddy boot"]}, "distractors.0: not an object"),
        ({"distractors": [{"attribute": "muddy"}]}, "distractors.0.object: missing"),
    ],
)
def test_a_field_that_is_wrong_is_named(change, detail):
    reject = only({**GOOD, **change})
    assert (reject.reason, reject.detail, reject.proposal) == ("malformed_example", detail, None)


def test_an_example_that_is_no_object_spoils_no_other():
    first, second = read({"examples": ["a dented signal", GOOD]})
    assert first.reason == "malformed_example" and second == READ


def test_attributes_may_come_as_texts_and_objects_with_articles():
    assert only({**GOOD, "attributes": ["dented", "teal"], "objects": ["a signal", "The bench"]}) == READ


def test_distractors_may_be_missing():
    assert only({name: value for name, value in GOOD.items() if name != "distractors"}).distractors == ()


def test_bundles_have_the_families_as_slots():
    bundle = {
        "attributes": [["worn", "wooden"], "new, ceramic"],
        "families": ["condition", "material"],
        "objects": ["crate", "jug"],
        "positive": "A worn wooden crate and a new ceramic jug.",
    }
    asked = specifications("attr_bundle", 1)
    (proposal,) = read({"examples": [bundle]}, asked)
    assert proposal.slots == ("condition", "material")
    assert proposal.bindings == (Binding(("worn", "wooden"), "crate"), Binding(("new", "ceramic"), "jug"))
    for families in (None, ["condition"], "condition"):
        assert read({"examples": [{**bundle, "families": families}]}, asked)[0].reason == "malformed_example"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["examples", *GOOD, "attribute", "object", "families"]), inner, max_size=6)
    ),
    max_leaves=12,
)


def read_well(results: list, asked: list[Specification]) -> None:
    assert len(results) == len(asked)
    for result, one in zip(results, asked, strict=True):
        construction = CONSTRUCTIONS[one.construction]
        if isinstance(result, Reject):
            assert result.specification == one and re.fullmatch("[a-z_]+", result.reason)
        else:
            assert len(result.bindings) == construction.objects
            assert all(len(binding.attributes) == construction.attributes for binding in result.bindings)
            assert all(text.strip() for binding in result.bindings for text in (binding.object, *binding.attributes))


@given(
    st.sampled_from(list(CONSTRUCTIONS)),
    st.lists(anything, max_size=4),
    st.dictionaries(st.sampled_from(list(GOOD)), anything),
)
def test_it_never_raises_whatever_json_comes(construction, examples, change):
    asked = specifications(construction)
    read_well(read({"examples": examples}, asked), asked)
    read_well(read({"examples": [{**GOOD, **change}] * 2}, asked), asked)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_it_never_raises_whatever_bytes_come(noise, cut):
    asked = specifications()
    good = json.dumps({"examples": [GOOD, GOOD]}).encode()
    for payload in (noise, good[:cut], good[:cut] + noise, noise + good):
        read_well(read(payload), asked)


def test_a_request_without_an_answer_is_a_reject_for_each_of_its_specifications():
    rejects = refusals(specifications(), "refused_answer", "moderation (SAFETY)")
    assert [(reject.specification, reject.reason) for reject in rejects] == [
        (one, "refused_answer") for one in specifications()
    ]
    assert {reject.detail for reject in rejects} == {"moderation (SAFETY)"}
    assert no_answer_reason("moderation (SAFETY)") == no_answer_reason("invalid request (400: x)") == "refused_answer"
    assert no_answer_reason("broken 3 times: the answer is cut at the token limit") == "cut_answer"
    assert no_answer_reason("broken 3 times: the answer is not JSON") == "broken_answer"
