"""The grammar's fragment files: good English by rule, and every fault of an edit is told with file and row."""

import re
import shutil
from collections import Counter

import pytest
from bindbench.errors import UserError
from bindbench.language import article
from bindbench.paths import REPOSITORY
from bindbench.triplets.grammar import read_grammar
from bindbench.triplets.grammar.draft import DAYS, MONTHS, NAMES, SURNAMES
from bindbench.triplets.grammar.fragments import Fragment, Pool, fragment
from bindbench.triplets.grammar.words import CLASSES

FOLDER = REPOSITORY / "resources" / "triplets"
FILES = ("shared.txt", "registers.txt")
CAPITALS = {"I", "Mother", "Inspector", "Mrs", *DAYS, *MONTHS}
PLACEHOLDER = re.compile(r"\{\w+\}")


def lines():
    """(file and row, part, text) of each fragment."""
    for name in FILES:
        part = ""
        for number, row in enumerate((FOLDER / "grammar" / name).read_text().split("\n"), 1):
            if row.startswith("-- "):
                part = row[3:]
            elif row and not row.startswith(("#", "== ")):
                text = re.sub(r"^[a-z, ]+> ?", "", row)
                yield f"{name}:{number}", part, text


LINES = list(lines())


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "triplets")


def forms(text: str) -> list[str]:
    """The text with the first and with the last of each alternative."""
    return [
        re.sub(r"\[([^\]]*)\]", lambda match: match[1].split("|")[0], text),
        re.sub(r"\[([^\]]*)\]", lambda match: match[1].split("|")[-1], text),
    ]


def test_articles_inside_fragments_agree():
    for where, _, text in LINES:
        for form in forms(text):
            for found, following in re.findall(r"\b(an?) ([\w-]+)", form):
                assert article(following) == found, (where, form)


def test_no_fragment_ends_in_an_article_since_the_grammar_chooses_it():
    for where, _, text in LINES:
        assert not re.search(r"\b(a|an|the|one)[,;:]?$", text), (where, text)


def test_capitals_are_names_only():
    for where, _, text in LINES:
        capitals = set(re.findall(r"\b[A-Z]\w*", PLACEHOLDER.sub("", text)))
        assert capitals <= CAPITALS, (where, capitals - CAPITALS)


def test_no_double_words_and_tidy_punctuation():
    for where, _, text in LINES:
        for form in forms(text):
            assert not re.search(r"\b(\w+) \1\b", form), (where, form)
            assert not re.search(r"  | [,;.:]|[,;:]{2}|\.$|^[;,]\S", form), (where, form)


def test_openers_that_go_before_a_clause_end_in_a_comma_or_a_conjunction():
    for where, part, text in LINES:
        if re.fullmatch(r"opener .*: (clause|subject|note|observer)", part):
            assert text.endswith((",", " and")) or text.startswith("{sky}"), (where, text)


def test_labels_end_in_a_colon_or_a_comma():
    for where, part, text in LINES:
        if part == "labels":
            assert text.endswith((":", ",")) and len(text.split()) <= 4, (where, text)


def test_no_bare_pronoun_can_come_between_objects_and_attributes():
    """B.2: it and they are ambiguous there. Endings come after the last attribute."""
    for where, part, text in LINES:
        if part not in ("tails", "endings"):
            assert not re.search(r"\b(it|its|itself|they|them|their|theirs|themselves)\b", text.lower()), (where, text)


def test_no_fragment_before_an_attribute_denies_it():
    for where, part, text in LINES:
        if part.startswith(("copulas", "relatives", "references", "respective")):
            assert not re.search(r"\b(no|not|never|neither|hardly|barely|without)\b( [\w']+){0,2} \{[ab]\}", text), (
                where,
                text,
            )


def test_no_modifier_ends_in_a_denial_that_would_seem_to_be_the_attributes():
    for where, part, text in LINES:
        if part in ("modifiers", "modifiers of both", "where"):
            last = text.strip(",").split()[-2:]
            assert not {"no", "not", "never", "neither", "nor", "hardly", "barely", "without"}.intersection(last), (
                where,
                text,
            )


def test_attributes_and_references_stand_once_in_what_assigns_them():
    for where, part, text in LINES:
        found = Counter(PLACEHOLDER.findall(text))
        if part.startswith(("copulas", "relatives")):
            assert found["{a}"] == 1 and not found["{b}"], (where, text)
        elif part == "references":
            assert all(found[name] == 1 for name in ("{a}", "{b}", "{r}", "{s}")), (where, text)
            order = [name for name in PLACEHOLDER.findall(text) if name in ("{a}", "{b}", "{r}", "{s}")]
            assert order == ["{r}", "{a}", "{s}", "{b}"], (where, text)
        elif part.startswith("respective"):
            assert found["{a}"] == found["{b}"] == 1 and "{a} and {b}" in text, (where, text)
            assert text.count("respectively") == 1, (where, text)
        else:
            assert not any(found[name] for name in ("{a}", "{b}", "{r}", "{s}")), (where, text)


def test_no_line_stands_twice_in_a_register():
    for name in FILES:
        owner = part = ""
        seen = Counter()
        for row in (FOLDER / "grammar" / name).read_text().split("\n"):
            if row.startswith("== "):
                owner = row
            elif row.startswith("-- "):
                part = row
            elif row and owner != "== any":  # there, repetition is weight
                seen[owner, part, row] += 1
        assert not [line for line, count in seen.items() if count > 1]


def test_every_register_has_a_good_stock_of_its_own():
    grammar = read_grammar(FOLDER)
    assert len(grammar.voices) == 32
    rows = (FOLDER / "grammar" / "registers.txt").read_text().split("\n== ")[1:]
    for section in rows:
        assert len([row for row in section.split("\n")[1:] if row and not row.startswith("-- ")]) >= 50, section[:30]


def test_names_of_people_are_not_other_words_of_the_lists():
    words = {name.lower() for name in (*NAMES, *SURNAMES)}
    assert len(words) == len(NAMES) + len(SURNAMES)
    grammar = read_grammar(FOLDER)
    adjectives = {word.lower() for found in grammar.lexicon.families.values() for word, _ in found}
    objects = {t.name for classes in grammar.lexicon.things.values() for _, found in classes for t in found}
    assert not words & adjectives and not words & objects


def test_every_class_has_a_posture():
    postures = read_grammar(FOLDER).postures
    for name in CLASSES:
        assert all(postures[name, present, plural] for present in (False, True) for plural in (False, True))


@pytest.mark.parametrize(
    ("text", "words", "more"),
    [
        ("stood beside", 2, 0),
        ("{place} {when},", 0, 0),
        ("[x], in fact, {a}".replace("[x]", "was"), 3, 0),
        ("; {r} was {a} and {s} {b}", 3, 3),
        ("and {name}'s at {clock}, lot {n}", 6, 0),
        (", with {d} close by", 3, 0),
    ],
)
def test_words_of_a_fragment_are_counted_without_what_is_put_in(text, words, more):
    found = fragment(text)
    assert (found.words, found.more) == (words, more)


def test_a_pool_draws_only_from_the_range_and_what_is_available():
    class Generator:
        values = (0.0, 0.3, 0.6, 0.99)

        def __init__(self, index):
            self.index = index

        def random(self):
            return self.values[self.index]

    fragments = [Fragment(n, f"text {n} {needs}", needs, 0, ()) for n in (1, 2, 2, 4) for needs in (0, 1)]
    pool = Pool(fragments)
    for index in range(4):
        found = pool.draw(Generator(index), 2, 3, 1)
        assert found.words == 2
        assert pool.draw(Generator(index), 3, 3, 1) is None
        assert pool.draw(Generator(index), 5, 9, 1) is None
        assert pool.draw(Generator(index), -3, 0, 1) is None
        without = pool.draw(Generator(index), 4, 9, 0)
        assert without is None or without.needs == 0


FAULTS = [
    ("shared.txt", "[was] hard to overlook\n", "[wass] hard to overlook\n", "wass"),
    ("shared.txt", "-- adverbials\n", "-- advebrials\n", "is no part"),
    ("shared.txt", "== narrative\n", "== narative\n", "neither any nor a group"),
    ("shared.txt", "movable> left there overnight\n", "moveable> left there overnight\n", "is no flag"),
    ("shared.txt", "just beyond {d},\n", "just beyond {thing},\n", "is no placeholder"),
    ("shared.txt", "[was] easy to find\n", "[was easy to find\n", "bracket"),
    ("registers.txt", "== museum label | guide | present", "== museum lable | guide | present", "no register"),
    ("registers.txt", "== museum label | guide | present", "== police report | guide | present", "twice"),
    ("registers.txt", "== museum label | guide | present", "== museum label | guide | future", "past/present"),
    ("registers.txt", "room {n}:\n", "room {n:\n", "bracket"),
]


@pytest.mark.parametrize(("name", "right", "wrong", "said"), FAULTS)
def test_a_fault_is_told_with_its_file_and_row(copy, name, right, wrong, said):
    path = copy / "grammar" / name
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong, 1))
    row = text[: text.index(right)].count("\n") + 1
    with pytest.raises(UserError, match=said) as caught:
        read_grammar(copy)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    told = int(re.search(r"row (\d+)", message)[1])
    assert told >= row


def test_a_register_without_a_section_is_told(copy):
    path = copy / "grammar" / "registers.txt"
    text = path.read_text()
    path.write_text(text[: text.index("== court testimony")])
    with pytest.raises(UserError, match="court testimony"):
        read_grammar(copy)


@pytest.mark.parametrize("name", ["shared.txt", "registers.txt", "verbs.csv", "postures.csv"])
def test_a_missing_file_is_told(copy, name):
    (copy / "grammar" / name).unlink()
    with pytest.raises(UserError, match=name):
        read_grammar(copy)


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("objects.csv", "gadget,gizmo,home", "class 'gizmo'"),
        ("objects.csv", "gadget,tool,moon", "place 'moon'"),
        ("adjectives.csv", "gadgety,color,gizmo,no", "suits 'gizmo'"),
        ("adjectives.csv", "gadgety,mood,all,no", "family 'mood'"),
        ("adjectives.csv", "gadgety,color,all,maybe", "becomes must be yes or no"),
        ("scenes.csv", "on the far side of the moon,moon,outdoor", "kind 'moon'"),
        ("scenes.csv", "in the cellar of a gadgeteer,home,below", "setting must be"),
    ],
)
def test_a_word_list_that_the_grammar_cannot_use_is_told(copy, name, row, said):
    path = copy / name
    path.write_text(path.read_text().rstrip("\n") + "\n" + row + "\n")
    with pytest.raises(UserError, match=said) as caught:
        read_grammar(copy)
    assert f"row {path.read_text().count(chr(10))}" in str(caught.value)


def test_postures_know_only_verbs_of_the_list(copy):
    path = copy / "grammar" / "postures.csv"
    path.write_text(path.read_text().replace("tool,lay", "tool,lounged"))
    with pytest.raises(UserError, match="lounged"):
        read_grammar(copy)
