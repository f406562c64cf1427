"""The nano model is transformers' own: the training's forward pass computes what the saved folder computes."""

import numpy as np
import pytest
import torch
from bindbench.captions import caption
from bindbench.nano.forward import PADDED_TO, TOKENS, Forward, padded_ids
from bindbench.nano.model import VOCABULARY, new_model, save_embedder, train_tokenizer
from bindbench.nano.texts import tokenizer_texts
from PIL import Image
from transformers import Qwen3VLModel

TEXTS = [
    "a red car",
    "a striped kite and an icy cup",
    " and ".join(["a golden boat"] * 9),
    "a word unknown to it: Xyzzy",
]


@pytest.fixture
def saved(network, tokenizer, tmp_path):
    """In float16, as it ships: its weights, put back into float32, are those that both sides compute with."""
    from sentence_transformers import SentenceTransformer

    weights = {name: weight.half().float() for name, weight in network.state_dict().items()}
    save_embedder(network, tokenizer, tmp_path / "model")
    plain = new_model(tokenizer)
    plain.load_state_dict(weights)
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu", model_kwargs={"dtype": "float32"})
    return plain.eval(), loaded, tmp_path / "model"


def test_texts_and_images_are_embedded_as_by_the_saved_folder(saved, tokenizer):
    plain, loaded, _ = saved
    passes = Forward(plain, tokenizer)
    pixels = torch.randint(0, 256, (3, 160, 160, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        texts, images = passes.embed_texts(TEXTS), passes.embed_images(pixels)
    assert np.abs(loaded.encode(TEXTS) - texts.numpy()).max() < 1e-5
    pictures = [Image.fromarray(image.numpy()) for image in pixels]
    assert np.abs(loaded.encode(pictures) - images.numpy()).max() < 1e-5
    assert torch.allclose(texts.norm(dim=1), torch.ones(len(TEXTS)))


def test_a_caption_behind_an_image_leaves_its_embedding_alone(network, tokenizer):
    passes = Forward(network, tokenizer)
    pixels = torch.zeros(2, 160, 160, 3, dtype=torch.uint8)
    with torch.no_grad():
        seen = passes.see(pixels)
        _, alone = passes.image_states(*seen)
        ids = padded_ids([passes.ids("a red car"), passes.ids("an icy cup and a red car")])
        _, followed = passes.image_states(*seen, ids)
    assert torch.allclose(alone, followed[:, : alone.shape[1]], atol=1e-6)
    assert not torch.allclose(followed[0, -1], followed[1, -1], atol=1e-3)


def test_weights_are_small_and_of_the_class_that_loads_anywhere(saved):
    plain, _, folder = saved
    assert isinstance(plain, Qwen3VLModel)
    of_words = plain.language_model.embed_tokens.weight.numel()
    rest = sum(weight.numel() for weight in plain.parameters()) - of_words
    width = of_words // plain.config.text_config.vocab_size
    assert 5e6 < rest + VOCABULARY * width < 10e6
    assert 2 * (rest + VOCABULARY * width) <= 15e6, "float16, at most 15 MB"
    assert (folder / "model.safetensors").stat().st_size < 2.1 * (rest + of_words)


def test_each_word_of_a_scene_is_one_token(vocabulary):
    tokenizer = train_tokenizer(tokenizer_texts(vocabulary, []))
    words = {word for name in [*vocabulary.objects, *vocabulary.attributes] for word in name.split()}
    pieces = {
        word: len(tokenizer(f" {word}", add_special_tokens=False)["input_ids"]) for word in words if "-" not in word
    }
    assert sum(count == 1 for count in pieces.values()) > 0.98 * len(pieces)
    again = train_tokenizer(tokenizer_texts(vocabulary, []))
    assert again.get_vocab() == tokenizer.get_vocab()


def test_half_way_and_the_rest_are_the_whole_decoder(network, tokenizer):
    passes = Forward(network, tokenizer)
    pixels = torch.randint(0, 256, (2, 160, 160, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    ids = passes.image_ids[None].repeat(2, 1)
    layers = network.language_model.layers
    with torch.no_grad():
        seen, deepstack = passes.see(pixels)
        middle, last = passes.image_states(seen, deepstack)
        words = network.language_model.embed_tokens(ids)
        first = passes.image_at
        states = torch.cat([words[:, :first], seen, words[:, first + TOKENS :]], 1)
        whole = passes.decode(layers, states, passes.image_positions, deepstack)
        half = passes.decode(layers[: len(layers) // 2], states, passes.image_positions, deepstack)
    assert torch.allclose(last, whole, atol=1e-6) and torch.allclose(middle, half, atol=1e-6)


def test_padding_reaches_a_multiple_and_changes_no_vector(network, tokenizer):
    passes = Forward(network, tokenizer)
    assert padded_ids([[1, 2], [3]]).shape == (2, PADDED_TO)
    with torch.no_grad():
        together = passes.embed_texts([caption([("red", "car")]), caption([("icy", "cup")] * 8)])
        alone = passes.embed_texts([caption([("red", "car")])])
    assert torch.allclose(together[0], alone[0], atol=1e-5)
    assert TOKENS == 25
