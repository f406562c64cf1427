"""Words that change places: what stays with the position (punctuation, 's, the capital of a start) and what moves."""

import pytest
from bindbench.language import article
from bindbench.triplets.sentences import (
    article_errors,
    ends_sentence,
    exchange,
    find,
    joined,
    starts_sentence,
    tokenise,
)
from hypothesis import given, settings
from hypothesis import strategies as st


def words(text):
    return [token.folded for token in tokenise(text)]


def swapped(text, *pairs):
    """The text with each (mention, new phrase) exchanged."""
    tokens = tokenise(text)
    replacements = sorted(
        (*find(tokens, [token.folded for token in tokens], old.lower()), old, new) for old, new in pairs
    )
    return exchange(tokens, replacements)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A red mug's lid, (well-worn) “dull”!", ["a", "red", "mug", "lid", "well-worn", "dull"]),
        ("The mug — red — stood.", ["the", "mug", "red", "stood"]),
        ("The mug—red…blue—stood.", ["the", "mug", "red", "blue", "stood"]),
        ("— The 18th-century o’clock don't & 7.5 …", ["the", "18th-century", "o'clock", "don't", "7.5"]),
        ("", []),
        ("— & —", []),
    ],
)
def test_words_are_tokens_without_their_punctuation(text, expected):
    assert words(text) == expected


@given(st.text(st.characters(exclude_characters="\ue000"), max_size=80))
@settings(deadline=None)
def test_joining_the_tokens_gives_the_text_back_but_for_white_space(text):
    tokens = tokenise(text)
    if tokens:
        assert joined([token.text for token in tokens]) == " ".join(text.split())
    for token in tokens:
        assert token.word
        assert token.text == token.leading + token.word + token.ending + token.trailing


@given(st.text("abA .!?,:;'’\"“”()—-…&", max_size=60), st.data())
@settings(deadline=None)
def test_exchanging_a_word_with_itself_changes_nothing_and_no_other_word_ever_moves(text, data):
    tokens = tokenise(text)
    if tokens:
        index = data.draw(st.integers(0, len(tokens) - 1))
        spelled = tokens[index].word
        if index and tokens[index - 1].folded in ("a", "an"):
            return
        assert exchange(tokens, [(index, index + 1, spelled, spelled)]) in (
            joined([token.text for token in tokens]),
            # A start gets its capital.
            joined([token.text for token in tokens]).replace(spelled, spelled[0].upper() + spelled[1:], 1),
        )
        after = tokenise(exchange(tokens, [(index, index + 1, spelled, "kettle")]))
        assert [t.trailing for t in after] == [t.trailing for t in tokens]
        assert [t.leading for t in after] == [t.leading for t in tokens]
        assert [t.word for i, t in enumerate(after) if i != index] == [
            t.word for i, t in enumerate(tokens) if i != index
        ]


def test_punctuation_and_possessive_stay_with_the_position():
    assert (
        swapped("The mug’s lid (a “fishing rod”), gone.", ("mug", "fishing rod"), ("fishing rod", "mug"))
        == "The fishing rod’s lid (a “mug”), gone."
    )
    assert (
        swapped("The mug—red—fell; mine's blue.", ("red", "blue"), ("blue", "red")) == "The mug—blue—fell; mine's red."
    )


def test_a_sentence_start_gives_its_capital_to_the_word_that_now_stands_there():
    assert swapped("Red mugs met an old cat.", ("red", "old"), ("old", "red")) == "Old mugs met a red cat."
    assert swapped("Rusty was it. New too.", ("rusty", "new"), ("new", "rusty")) == "New was it. Rusty too."


def test_a_capital_inside_a_sentence_is_the_words_own():
    text = "The “Victorian” mug met a “red” cat; condition: Victorian."
    assert exchange(tokenise(text), [(1, 2, "Victorian", "red"), (5, 6, "red", "Victorian")]).startswith(
        "The “red” mug met a “Victorian” cat"
    )
    assert exchange(tokenise("Condition: Red."), [(1, 2, "red", "old")]) == "Condition: Old."
    assert exchange(tokenise("Condition: Victorian."), [(1, 2, "Victorian", "old")]) == "Condition: old."


def test_a_word_with_a_capital_of_its_own_keeps_it_everywhere():
    exchanged = swapped("Victorian mugs met a red cat.", ("Victorian", "red"), ("red", "Victorian"))
    assert exchanged == "Red mugs met a Victorian cat."
    assert swapped(exchanged, ("Victorian", "red"), ("red", "Victorian")) == "Victorian mugs met a red cat."


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("One ended. Red came.", True),
        ("One ended! Red came.", True),
        ("One ended… Red came.", True),
        ("One ended.” Red came.", True),
        ("Condition: Red paint.", True),
        ("She wrote, “Red paint.”", True),
        ("She wrote (Red paint).", True),
        ("One ended. red came.", False),
        ("Condition: red paint.", False),
        ("We met Mr. Red there.", False),
        ("We met J. Red there.", False),
        ("We met big Red there.", False),
    ],
)
def test_where_a_capital_belongs_to_the_position(text, start):
    tokens = tokenise(text)
    index = [token.folded for token in tokens].index("red")
    assert starts_sentence(tokens, index) is start


def test_first_word_of_the_text_is_a_start():
    assert starts_sentence(tokenise("— red"), 0)


@pytest.mark.parametrize(
    ("token", "ends"),
    [("gone.", True), ("gone?”", True), ("gone,", False), ("gone", False), ("Mr.", False), ("J.", False), ("7.", True)],
)
def test_abbreviations_and_initials_end_no_sentence(token, ends):
    assert ends_sentence(tokenise(token)[0]) is ends


def test_articles_before_the_exchanged_words_are_repaired_by_pronunciation():
    text = "A kettle stood by an envelope and an hourglass by a unicorn."
    assert swapped(text, ("kettle", "envelope"), ("envelope", "kettle")).startswith("An envelope stood by a kettle")
    assert swapped(text, ("hourglass", "unicorn"), ("unicorn", "hourglass")).endswith("a unicorn by an hourglass.")


def test_only_articles_directly_before_an_exchanged_word_are_repaired():
    # "a envelope" was the positive's own error, and "Hall A" is no article.
    assert swapped("In Hall A a envelope met a red mug.", ("red", "old")) == "In Hall A a envelope met an old mug."
    assert swapped("In Hall A red mugs hung.", ("red", "old")) == "In Hall A old mugs hung."
    assert swapped("All done. A red mug hung.", ("red", "old")) == "All done. An old mug hung."
    assert swapped("He chose plan a, red mugs.", ("red", "old")) == "He chose plan a, old mugs."


def test_article_errors_are_listed_with_the_word():
    assert article_errors(tokenise("A envelope, an mug, an unicorn and an hour.")) == [
        "a envelope",
        "an mug",
        "an unicorn",
    ]
    assert article_errors(tokenise("Hall A old mugs")) == ["a old"]
    assert article_errors(tokenise("plan a, old mugs and the letter a")) == []


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        *((number, "an") for number in ("8-inch", "80s", "11th", "18th-century", "1800s", "11,000")),
        *((number, "a") for number in ("1950s", "110", "12", "1")),
    ],
)
def test_numbers_take_the_article_of_their_pronunciation(number, expected):
    assert article(number) == expected


@pytest.mark.parametrize(
    ("text", "phrase", "span"),
    [
        ("The fishing rod’s tip.", "fishing rod", (1, 3)),
        ("The “fishing rod” lay.", "fishing rod", (1, 3)),
        ("The ship’s wheel lay.", "ship's wheel", (1, 3)),
        ("The fishing, rod lay.", "fishing rod", None),
        ("The fishing (rod) lay.", "fishing rod", None),
        ("The fishing rod and the rod.", "fishing rod", None),
        ("The rod.", "fishing rod", None),
        ("Rod.", "fishing rod", None),
        ("A curtain rod.", "fishing rod", None),
    ],
)
def test_an_object_of_several_words_is_found_whole_and_once(text, phrase, span):
    tokens = tokenise(text)
    assert find(tokens, [token.folded for token in tokens], phrase) == span
