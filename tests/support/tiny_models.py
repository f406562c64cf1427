"""Tiny random checkpoints in the real format: the real classes, processors and files, a few thousand parameters each."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

SENTENCES = [
    "a red cube and a blue sphere",
    "a blue cube and a red sphere",
    "a striped dog, a wooden umbrella and an orange boot",
    "Represent the user's input.",
    "system user assistant",
]

# The official format (Qwen3-VL-Embedding, scripts/qwen3_vl_embedding.py): system = instruction, then the user's parts.
CHAT_TEMPLATE = (
    "{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}"
    "{%- if message.content is string %}{{ message.content }}{%- else %}{%- for part in message.content %}"
    "{%- if part.type == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{%- elif part.type == 'text' %}{{ part.text }}{%- endif %}{%- endfor %}{%- endif %}{{ '<|im_end|>\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{%- endif %}"
)
QWEN_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)


def byte_level_bpe(special_tokens: tuple[str, ...]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def qwen3_vl(folder: Path, seed: int = 0) -> Path:
    """Qwen3-VL-Embedding in miniature: a Qwen3VLModel with last-token pooling, a sentence-transformers folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import (
        PreTrainedTokenizerFast,
        Qwen2VLImageProcessor,
        Qwen3VLConfig,
        Qwen3VLModel,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level_bpe(QWEN_TOKENS),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=list(QWEN_TOKENS[1:]),
    )
    token = tokenizer.convert_tokens_to_ids
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "max_position_embeddings": 2048,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [4, 2, 2],
                "mrope_interleaved": True,
            },
            "pad_token_id": 0,
            "eos_token_id": 2,
            "initializer_range": 0.2,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_heads": 2,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "out_hidden_size": 32,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
            "initializer_range": 0.2,
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )
    torch.manual_seed(seed)
    model = Qwen3VLModel(config).eval()
    processor = Qwen3VLProcessor(
        # The official limits: 4 and 1,800 visual tokens of 32 x 32 pixels.
        image_processor=Qwen2VLImageProcessor(
            patch_size=16, merge_size=2, size={"shortest_edge": 4 * 32**2, "longest_edge": 1800 * 32**2}
        ),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(patch_size=16, merge_size=2),
        chat_template=CHAT_TEMPLATE,
    )
    plain = folder.with_name(folder.name + "-plain")
    model.save_pretrained(plain)
    processor.save_pretrained(plain)
    transformer = Transformer(str(plain), processing_kwargs={"chat_template": {"add_generation_prompt": True}})
    modules = [transformer, Pooling(32, pooling_mode="lasttoken"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


def _clip_tokenizer(closing: str):
    from transformers import PreTrainedTokenizerFast

    tokenizer = byte_level_bpe(("<|endoftext|>", "<|startoftext|>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"<|startoftext|> $A {closing}", special_tokens=[("<|startoftext|>", 1), ("<|endoftext|>", 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|startoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        model_max_length=32,
    )


def clip(folder: Path) -> Path:
    """A CLIPModel with its processor, as `save_pretrained` leaves them (no sentence-transformers files)."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor

    tokenizer = _clip_tokenizer("<|endoftext|>")
    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = CLIPConfig(
        text_config=tower
        | {"vocab_size": len(tokenizer), "max_position_embeddings": 32, "eos_token_id": 0, "bos_token_id": 1},
        vision_config=tower | {"image_size": 32, "patch_size": 16},
        projection_dim=24,
    )
    torch.manual_seed(0)
    CLIPModel(config).eval().save_pretrained(folder)
    images = CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    CLIPProcessor(image_processor=images, tokenizer=tokenizer).save_pretrained(folder)
    return folder


def siglip(folder: Path) -> Path:
    """SigLIP 2 at a fixed resolution: a SiglipModel, whose texts are padded to the full length."""
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel, SiglipProcessor

    tokenizer = _clip_tokenizer("<|endoftext|>")
    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = SiglipConfig(
        text_config=tower | {"vocab_size": len(tokenizer), "max_position_embeddings": 32, "projection_size": 32},
        vision_config=tower | {"image_size": 32, "patch_size": 16},
    )
    torch.manual_seed(0)
    SiglipModel(config).eval().save_pretrained(folder)
    images = SiglipImageProcessor(size={"height": 32, "width": 32})
    SiglipProcessor(image_processor=images, tokenizer=tokenizer).save_pretrained(folder)
    return folder


def siglip_naflex(folder: Path) -> Path:
    """SigLIP 2 at any resolution: a Siglip2Model, whose images keep their aspect ratio."""
    from transformers import Siglip2Config, Siglip2ImageProcessor, Siglip2Model, Siglip2Processor, Siglip2Tokenizer

    letters = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *"abcdefghijklmnopqrstuvwxyz',."]
    tokenizer = Siglip2Tokenizer(vocab={letter: index for index, letter in enumerate(letters)}, model_max_length=32)
    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = Siglip2Config(
        text_config=tower | {"vocab_size": len(tokenizer), "max_position_embeddings": 32, "projection_size": 32},
        vision_config=tower | {"num_patches": 16, "patch_size": 16},
    )
    torch.manual_seed(0)
    Siglip2Model(config).eval().save_pretrained(folder)
    images = Siglip2ImageProcessor(patch_size=16, max_num_patches=16)
    Siglip2Processor(image_processor=images, tokenizer=tokenizer).save_pretrained(folder)
    return folder


OPEN_CLIP_CONFIG = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}


def open_clip_folder(folder: Path) -> Path:
    """A local open_clip checkpoint: open_clip_config.json and safetensors."""
    import json

    import open_clip
    from safetensors.torch import save_file

    torch.manual_seed(0)
    model = open_clip.CLIP(**OPEN_CLIP_CONFIG)
    folder.mkdir(parents=True)
    save_file(
        {key: value.contiguous() for key, value in model.state_dict().items()}, folder / "open_clip_model.safetensors"
    )
    preprocessing = {
        "size": 32,
        "mean": [0.5] * 3,
        "std": [0.5] * 3,
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    (folder / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": OPEN_CLIP_CONFIG, "preprocess_cfg": preprocessing})
    )
    return folder


def adapter(folder: Path, network: torch.nn.Module, targets: str | list[str], seed: int = 0) -> Path:
    """A PEFT LoRA adapter with random weights, as PEFT saves it (a fresh one changes nothing: its B is zero)."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(r=4, lora_alpha=4, target_modules=targets, init_lora_weights=False)
    get_peft_model(network, config).save_pretrained(str(folder))
    return folder


def dino(folder: Path, kind: str = "dinov2") -> Path:
    """A DINOv2, or with kind `vit` a first DINO, which is a plain ViT without pooler; two layers."""
    from transformers import BitImageProcessor, Dinov2Config, Dinov2Model, ViTConfig, ViTImageProcessor, ViTModel

    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    tower |= {"image_size": 28, "patch_size": 14, "initializer_range": 0.2}
    torch.manual_seed(0)
    if kind == "vit":
        ViTModel(ViTConfig(**tower), add_pooling_layer=False).eval().save_pretrained(folder)
        ViTImageProcessor(size={"height": 28, "width": 28}).save_pretrained(folder)
    else:
        Dinov2Model(Dinov2Config(**tower)).eval().save_pretrained(folder)
        processor = BitImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 28, "width": 28})
        processor.save_pretrained(folder)
    return folder


def inception(path: Path) -> Path:
    """torch-fidelity's InceptionV3 with random weights, in the form of its file; 24 million, for it comes in one size."""
    from torch_fidelity import FeatureExtractorInceptionV3

    class Unloaded(FeatureExtractorInceptionV3):
        def load_state_dict(self, weights):
            assert weights == {}

    nothing = path.with_suffix(".nothing")
    torch.save({}, nothing)
    torch.manual_seed(0)
    network = Unloaded("random", ["2048"], feature_extractor_weights_path=nothing)
    nothing.unlink()
    for weight in network.parameters():
        if weight.ndim == 4:
            weight.data *= 2.4  # as loud behind a layer as before it
    torch.save(network.state_dict(), path)
    return path


def aesthetic_head(path: Path, n_features: int, relu: bool = False) -> Path:
    """LAION's aesthetic predictor V2 with random weights; relu: its other layout, with activations."""
    sizes = (n_features, 1024, 128, 64, 16, 1)
    layers: list[torch.nn.Module] = []
    torch.manual_seed(1)
    for number in range(5):
        layers.append(torch.nn.Linear(sizes[number], sizes[number + 1]))
        layers += [torch.nn.ReLU()] if relu and number < 4 else []
        layers += [torch.nn.Dropout(0.2)] if number < 3 else []
    weights = {f"layers.{name}": tensor for name, tensor in torch.nn.Sequential(*layers).state_dict().items()}
    torch.save(weights, path)
    return path
