"""The nano embedder's parts: a small Qwen3VLModel, its tokenizer and processor, and the sentence-transformers folder.

Everything is an unchanged class of transformers, so that the same loader, last-token pooling and LoRA targets apply as for
Qwen3-VL-Embedding; only the sizes are ours. The chat template has no system message: its tokens cost a quarter of a short text.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3VLConfig, Qwen3VLModel

from .scenes import IMAGE_PX

VOCABULARY = 4096  # tokens: the words of scenes and of most triplets are one token each
TEXT_TOKENS = 512  # a longer text is cut
WIDTH, LAYERS, HEADS, KEY_HEADS, HEAD_WIDTH, FEED_FORWARD = 256, 4, 4, 2, 64, 512
VISION_WIDTH, VISION_LAYERS, VISION_HEADS, VISION_FEED_FORWARD = 192, 4, 4, 512
PATCH, MERGE, FRAMES = 16, 2, 2
DEEPSTACK_AFTER = (1,)  # vision block whose output is added in the first decoder layer
PADDING, TURN_END = "<|endoftext|>", "<|im_end|>"
SPECIAL = [
    *(PADDING, "<|im_start|>", TURN_END, "<|vision_start|>", "<|vision_end|>"),
    *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
]
CHAT_TEMPLATE = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Byte-level BPE of at most VOCABULARY tokens; the same texts in the same order give the same tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=PADDING,
        additional_special_tokens=SPECIAL[1:],
        chat_template=CHAT_TEMPLATE,
    )


def new_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3VLModel:
    """The architecture with random weights from torch's generator."""
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": WIDTH,
            "intermediate_size": FEED_FORWARD,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KEY_HEADS,
            "head_dim": HEAD_WIDTH,
            "max_position_embeddings": TEXT_TOKENS,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [12, 10, 10],
                "mrope_interleaved": True,
            },
            "pad_token_id": ids[PADDING],
            "eos_token_id": ids[TURN_END],
            "bos_token_id": None,
            "initializer_range": 0.03,
            "use_cache": False,
        },
        vision_config={
            "depth": VISION_LAYERS,
            "hidden_size": VISION_WIDTH,
            "intermediate_size": VISION_FEED_FORWARD,
            "num_heads": VISION_HEADS,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": FRAMES,
            "out_hidden_size": WIDTH,
            "num_position_embeddings": (IMAGE_PX // PATCH) ** 2,
            "deepstack_visual_indexes": list(DEEPSTACK_AFTER),
            "initializer_range": 0.03,
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    model = Qwen3VLModel(config)
    model.language_model.embed_tokens.weight.data.normal_(0, 0.06)
    return model


def save_embedder(model: Qwen3VLModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes an ordinary sentence-transformers folder: float16 weights, last-token pooling, L2 norm."""
    import tempfile

    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import Qwen3VLProcessor, Qwen3VLVideoProcessor
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

    pixels = {"shortest_edge": IMAGE_PX**2, "longest_edge": IMAGE_PX**2}
    sizes = {"patch_size": PATCH, "merge_size": MERGE, "temporal_patch_size": FRAMES}
    processor = Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(size=pixels, image_mean=[0.5] * 3, image_std=[0.5] * 3, **sizes),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(**sizes),
        chat_template=CHAT_TEMPLATE,
    )
    with tempfile.TemporaryDirectory() as temporary:
        model.half().save_pretrained(temporary)
        processor.save_pretrained(temporary)
        transformer = Transformer(
            temporary,
            transformer_task="feature-extraction",
            processing_kwargs={"chat_template": {"add_generation_prompt": True}},
        )
        modules = [transformer, Pooling(WIDTH, pooling_mode="lasttoken"), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
