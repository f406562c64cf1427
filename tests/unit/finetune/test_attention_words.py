"""Words are found by characters, and their tokens by offsets, in whatever a model's tokenizer makes of a caption (C.3)."""

import numpy as np
import pytest
import tiny_models
from bindbench.config.embedders import DEFAULT_EMBEDDERS, Embedder
from bindbench.embedders.loading import load
from bindbench.errors import UserError
from bindbench.finetune.words import caption_words, locate_words, token_offsets, word_spans, word_tokens

CAPTIONS = [
    ("a red cube and a blue sphere", [(("red",), "cube"), (("blue",), "sphere")]),
    (
        "A hot air balloon, Victorian and polka-dotted, hangs over a knitted balloon; the hot dog was icy.",
        [(("Victorian", "polka-dotted"), "hot air balloon"), (("knitted",), "balloon"), (("icy",), "hot dog")],
    ),
    (
        "At noon the mug's side (chipped) faced a white and orange striped zither.",
        [(("chipped",), "mug"), (("white and orange striped",), "zither")],
    ),
]
INSTRUCTION = "Represent the red cube and the user's input"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    return str(tiny_models.qwen3_vl(tmp_path_factory.mktemp("words") / "qwen"))


@pytest.fixture(
    scope="module", params=["tiny", "tiny instructed", "nano", "nano instructed", "minilm", "minilm instructed"]
)
def model(request, tiny, repository):
    kind, _, instructed = request.param.partition(" ")
    entries = {
        "tiny": Embedder(path=tiny, batch_size=4),
        "nano": DEFAULT_EMBEDDERS["nano"].model_copy(update={"path": str(repository / "resources/models/nano")}),
        "minilm": DEFAULT_EMBEDDERS["minilm"],
    }
    entry = entries[kind].model_copy(
        update={"modalities": ("text",), "instruction": INSTRUCTION if instructed else None}
    )
    return load(entry, "cpu", kind, 1)


def spelled(model, ids: list[int]) -> str:
    text = model.network.tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    return text.replace(" - ", "-").strip().lower()


def test_the_tokens_of_each_word_spell_it(model):
    for (text, bindings), words in zip(CAPTIONS, locate_words(model, CAPTIONS), strict=True):
        ids = model.tokens([text])["input_ids"][0].tolist()
        for (attributes, thing), of_thing, of_attributes in zip(bindings, *words, strict=True):
            for word, tokens in zip((thing, *attributes), (of_thing, *of_attributes), strict=True):
                assert spelled(model, [ids[token] for token in tokens]) == word.lower()
                assert list(tokens) == list(range(tokens[0], tokens[-1] + 1))


def test_offsets_cover_the_text_and_leave_the_template_outside(model):
    for (text, _), offsets in zip(CAPTIONS, token_offsets(model, [text for text, _ in CAPTIONS]), strict=True):
        inside = (offsets[:, 0] >= 0) & (offsets[:, 1] <= len(text)) & (offsets[:, 0] < offsets[:, 1])
        covered = np.zeros(len(text), bool)
        for start, stop in offsets[inside]:
            covered[start:stop] = True
        assert all(covered[i] for i, letter in enumerate(text) if not letter.isspace())
        assert not inside.all(), "special tokens and templates are not part of the text"


def test_a_text_that_was_cut_is_an_error(tiny):
    model = load(Embedder(path=tiny, max_tokens=24, batch_size=1), "cpu", "short", 1)
    with pytest.raises(UserError, match=r"^embedders\.short: its tokens do not spell .*raise max_tokens"):
        locate_words(model, CAPTIONS)


@pytest.mark.parametrize("kind", ["siglip", "siglip_naflex"])
def test_padding_that_a_model_reads_as_tokens_holds_no_word(kind, tmp_path):
    """SigLIP pads every text to one length, without a mask: one of these tokenizers on the right, the other on the left."""
    model = load(Embedder(path=str(getattr(tiny_models, kind)(tmp_path / kind)), batch_size=4), "cpu", kind, 1)
    texts = ["a red cube and a blue dog", "a cube"]
    padding = set()
    for text, offsets in zip(texts, token_offsets(model, texts), strict=True):
        ids = model.tokens([text])["input_ids"][0].tolist()
        assert len(ids) == len(offsets) == 32
        (words,) = word_tokens(offsets, [(text.index("cube"), text.index("cube") + 4)], text)
        assert "".join(model.network.tokenizer.decode([ids[token] for token in words]).split()) == "cube"
        padding |= {ids[0] if kind == "siglip_naflex" else ids[-1]}
    assert padding == {model.network.tokenizer.pad_token_id}
    with pytest.raises(UserError, match="raise max_tokens if it cuts texts"):
        token_offsets(model, [" ".join(["a striped dog"] * 20)])


def test_a_tokenizer_without_offsets_is_an_error():
    model = load(DEFAULT_EMBEDDERS["minilm"], "cpu", "minilm", 1)

    class Slow:
        is_fast = False

    class Network:
        tokenizer = Slow()

    model.network = Network()
    with pytest.raises(UserError, match="keeps no offsets"):
        token_offsets(model, ["a cube"])


def test_words_are_whole_words_of_any_case_and_each_stands_once():
    text = "Bow-tie, a tie and a tiered TIE-DYE sofa"
    assert [text[slice(*span)] for span in word_spans(text, ["tie", "tie-dye", "bow-tie"])] == [
        "tie",
        "TIE-DYE",
        "Bow-tie",
    ]
    with pytest.raises(UserError, match="the word 'dye' stands 0 times"):
        word_spans(text, ["dye"])
    with pytest.raises(UserError, match="the word 'cube' stands 2 times in 'a cube on a cube'"):
        word_spans("a cube on a cube", ["cube"])
    with pytest.raises(UserError, match="the word 'cube' stands 0 times"):
        word_spans("a cube", ["cube", "cube"])
    assert word_spans("a c++ (new) mug's", ["c++", "new", "mug"]) == [(2, 5), (7, 10), (12, 15)]


@pytest.mark.parametrize("order", [0, 1])
def test_longer_phrases_are_placed_first_whatever_the_order(order):
    words = ["dog", "hot dog"]
    if order:
        words.reverse()
    spans = dict(zip(words, word_spans("a hot dog and an icy dog", words), strict=True))
    assert spans == {"hot dog": (2, 9), "dog": (21, 24)}


def test_a_token_belongs_to_the_word_of_which_it_holds_a_character():
    #       0123456789012
    text = "a red toy car"
    offsets = np.array([(-9, -3), (0, 1), (1, 5), (5, 6), (6, 9), (9, 11), (11, 13), (13, 13), (13, 20)])
    assert word_tokens(offsets, [(2, 5), (6, 13)], text) == [(2,), (4, 5, 6)]


def test_words_that_share_a_token_or_have_none_are_errors():
    offsets = np.array([(0, 6), (6, 9)])
    with pytest.raises(UserError, match="the words 'red' and 'cube' share a token in 'redcube on'"):
        word_tokens(offsets, [(0, 3), (3, 7)], "redcube on")
    with pytest.raises(UserError, match="no token of 'redcube on' holds the word 'n'"):
        word_tokens(offsets, [(9, 10)], "redcube on")


def test_words_come_back_by_object():
    text = "a red big cube, a blue ball"
    offsets = np.array([(0, 1), (1, 5), (5, 9), (9, 14), (14, 15), (15, 17), (17, 22), (22, 27)])
    words = caption_words(text, [(("blue",), "ball"), (("red", "big"), "cube"), ((), "a")][:2], offsets)
    assert words.objects == ((7,), (3,))
    assert words.attributes == (((6,),), ((1,), (2,)))
