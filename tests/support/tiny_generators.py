"""Tiny random checkpoints of open image generators, in the real format."""

from pathlib import Path

import torch
from tiny_models import CHAT_TEMPLATE, QWEN_TOKENS, byte_level_bpe


def qwen_image_edit(folder: Path, seed: int = 0) -> Path:
    """Qwen-Image-Edit-2511 in miniature: a QwenImageEditPlusPipeline as `save_pretrained` leaves it."""
    from diffusers import (
        AutoencoderKLQwenImage,
        FlowMatchEulerDiscreteScheduler,
        QwenImageEditPlusPipeline,
        QwenImageTransformer2DModel,
    )
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2Tokenizer,
        Qwen2VLImageProcessor,
        Qwen2VLProcessor,
        Qwen2VLVideoProcessor,
    )

    files = byte_level_bpe(QWEN_TOKENS).model.save(str(folder.parent))
    tokenizer = Qwen2Tokenizer(
        *files, eos_token="<|im_end|>", pad_token="<|endoftext|>", extra_special_tokens=list(QWEN_TOKENS[1:])
    )
    token = tokenizer.convert_tokens_to_ids
    torch.manual_seed(seed)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [1, 1, 2]},
            "bos_token_id": 0,
            "eos_token_id": 2,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_heads": 2,
            "out_hidden_size": 16,
            "fullatt_block_indexes": [1],
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        vision_token_id=token("<|vision_pad|>"),
    )
    channels = 4
    pipeline = QwenImageEditPlusPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=AutoencoderKLQwenImage(
            base_dim=8,
            z_dim=channels,
            dim_mult=[1, 1, 1, 1],
            num_res_blocks=1,
            latents_mean=[0.0] * channels,
            latents_std=[1.0] * channels,
        ),
        text_encoder=Qwen2_5_VLForConditionalGeneration(config).eval(),
        tokenizer=tokenizer,
        processor=Qwen2VLProcessor(
            image_processor=Qwen2VLImageProcessor(),
            tokenizer=tokenizer,
            video_processor=Qwen2VLVideoProcessor(),
            chat_template=CHAT_TEMPLATE,
        ),
        transformer=QwenImageTransformer2DModel(
            in_channels=4 * channels,
            out_channels=channels,
            num_layers=2,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=16,
            axes_dims_rope=(8, 4, 4),
        ),
    )
    pipeline.save_pretrained(folder)
    return folder


HUNYUAN_CODE = '''
import torch
from PIL import Image
from transformers import PretrainedConfig, PreTrainedModel


class TinyConfig(PretrainedConfig):
    model_type = "tiny_hunyuan_image"


class TinyModel(PreTrainedModel):
    """Draws one colour, and writes down what it was asked for."""

    config_class = TinyConfig
    _supports_sdpa = True

    def __init__(self, config, moe_impl="", **more):
        super().__init__(config)
        assert moe_impl == "eager"
        self.shade = torch.nn.Parameter(torch.tensor([10.0, 200.0, 30.0]))
        self.tokens = None
        self.post_init()

    def load_tokenizer(self, path):
        self.tokens = path

    def generate_image(
        self, prompt, image, seed, image_size, use_system_prompt, bot_task, infer_align_image_size, diff_infer_steps
    ):
        assert self.tokens and use_system_prompt == "en_unified" and bot_task == "think_recaption"
        height, width = map(int, image_size.split("x"))
        shade = [int(value) for value in self.shade.float()]
        shade[2] = len(image) + diff_infer_steps + seed
        return "thoughts", [Image.new("RGB", (width * 2, height * 2), tuple(shade))]
'''


def hunyuan(folder: Path) -> Path:
    """A checkpoint whose code comes with it and has the entry points of HunyuanImage-3.0-Instruct; nothing else is the same."""
    import json

    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    (folder / "modeling_tiny.py").write_text(HUNYUAN_CODE)
    names = {"AutoConfig": "modeling_tiny.TinyConfig", "AutoModelForCausalLM": "modeling_tiny.TinyModel"}
    config = {"model_type": "tiny_hunyuan_image", "architectures": ["TinyModel"], "auto_map": names}
    (folder / "config.json").write_text(json.dumps(config))
    save_file({"shade": torch.tensor([10.0, 200.0, 30.0])}, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


OMNIGEN2_CODE = """
from PIL import Image


class OmniGen2Pipeline:
    @classmethod
    def from_pretrained(cls, place, revision=None, torch_dtype=None, trust_remote_code=False):
        pipeline = cls()
        pipeline.place, pipeline.asked = place, []
        return pipeline

    def to(self, device, dtype):
        return self

    def set_progress_bar_config(self, disable):
        pass

    def __call__(self, prompt, input_images, width, height, num_inference_steps, max_sequence_length, text_guidance_scale,
                 image_guidance_scale, num_images_per_prompt, generator, output_type):
        class Answer:
            images = [Image.new("RGB", (width, height), (len(input_images), num_inference_steps, int(text_guidance_scale)))]

        return Answer


class OmniGen2Transformer2DModel:
    @classmethod
    def from_pretrained(cls, place, subfolder, revision=None, torch_dtype=None):
        assert subfolder == "transformer"
        return cls()
"""


def omnigen2_package(folder: Path) -> Path:
    """A package with the entry points of OmniGen2's and nothing behind them; the folder that goes on the module path."""
    for module in ("pipelines/omnigen2/pipeline_omnigen2.py", "models/transformers/transformer_omnigen2.py"):
        path = folder / "omnigen2" / module
        path.parent.mkdir(parents=True)
        path.write_text(OMNIGEN2_CODE)
    return folder
