"""Embedders that sentence-transformers has no module for, as modules of it: so every model is a SentenceTransformer
(or looks like one: efficientnet.py).

* BagOfWords: WordLlama's word vectors, averaged. It cannot bind, and must not seem to: see `preprocess`.
* OpenClip: any open_clip checkpoint.

And PatchProjection, which takes the place of a convolution inside vision towers such as Qwen3-VL's.
"""

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from sentence_transformers.sentence_transformer.modules import InputModule, StaticEmbedding
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional


class BagOfWords(StaticEmbedding):
    """The mean of a text's word vectors, the same to the last bit whatever the order of its words."""

    @classmethod
    def from_files(cls, weights: Path, tokenizer: Path) -> "BagOfWords":
        """From the two files that the wordllama package carries."""
        table = load_file(weights)["embedding.weight"].float()
        return cls(Tokenizer.from_file(str(tokenizer)), embedding_weights=table)

    def preprocess(self, inputs: list[str], prompt: str | None = None, **kwargs) -> dict[str, torch.Tensor]:
        # Floating point sums depend on their order: sorted ids make captions of the same words tie exactly, where
        # rounding would otherwise rank the right caption above or below the shuffled one by chance.
        ids = [sorted(encoding.ids) for encoding in self.tokenizer.encode_batch(inputs, add_special_tokens=False)]
        offsets = np.cumsum([0, *map(len, ids)])[:-1]
        flat = torch.tensor([token for row in ids for token in row], dtype=torch.long)
        return {"input_ids": flat, "offsets": torch.from_numpy(offsets)}


class OpenClip(InputModule):
    """An open_clip model: text tower and image tower, one space."""

    modalities = ("text", "image")

    def __init__(self, network: nn.Module, transform, tokenizer) -> None:
        super().__init__()
        self.network, self.transform, self.tokenizer = network, transform, tokenizer
        self.context_length = tokenizer(["a"]).shape[1]
        with torch.inference_mode():
            self.dimensions = network.encode_text(tokenizer(["a"])).shape[1]

    @classmethod
    def from_checkpoint(cls, path: str, pretrained: str | None) -> "OpenClip":
        """path: architecture, hf-hub:ID or local-dir:FOLDER; pretrained: tag or weights file of an architecture."""
        import open_clip

        network = open_clip.create_model(
            path,
            pretrained=pretrained,
            require_pretrained=True,  # never measure random weights
            weights_only=True,
        )
        preprocessing = open_clip.transform.PreprocessCfg(**network.visual.preprocess_cfg)
        transform = open_clip.transform.image_transform_v2(preprocessing, is_train=False)
        return cls(network.eval(), transform, open_clip.get_tokenizer(path))

    def preprocess(self, inputs: list, prompt: str | None = None, **kwargs) -> dict[str, torch.Tensor]:
        if isinstance(inputs[0], str):
            return {"text": self.tokenizer(inputs)}
        return {"image": torch.stack([self.transform(image) for image in inputs])}

    def cut(self, texts: list[str]) -> np.ndarray:
        """(n,) bool: which texts have more tokens than the context."""
        read = self.tokenizer(texts)
        length = read.shape[1]
        whole = self.tokenizer(texts, context_length=length + 1)
        padding = self.tokenizer(["a"], context_length=length + 1)[0, -1]
        # Where an end token closes every text, a cut one has it a place too early.
        return ((whole[:, :length] != read).any(dim=1) | (whole[:, length] != padding)).numpy()

    def forward(self, features: dict, **kwargs) -> dict:
        if "text" in features:
            features["sentence_embedding"] = self.network.encode_text(features["text"])
        else:
            pixels = features["image"].to(next(self.network.visual.parameters()).dtype)
            features["sentence_embedding"] = self.network.encode_image(pixels)
        return features

    def get_embedding_dimension(self) -> int:
        return self.dimensions

    def save(self, output_path: str, *args, **kwargs) -> None:
        raise NotImplementedError("open_clip checkpoints are read, never written")


class PatchProjection(nn.Conv3d):
    """A convolution whose input is patches as large as its kernel: one matrix product, several times faster on CPUs.

    The weights and their names are those of the convolution.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """input: (n, channels, *kernel). Returns (n, out channels, 1, 1, 1). Larger inputs are convolved."""
        if input.shape[2:] != self.kernel_size:
            return super().forward(input)
        return functional.linear(input.flatten(1), self.weight.flatten(1), self.bias)[:, :, None, None, None]


def project_patches(network: nn.Module) -> None:
    """Turns the patch embeddings of vision towers that convolve patch by patch into a PatchProjection, in place."""
    for module in network.modules():
        if type(module) is not nn.Conv3d:
            continue
        plain = module.groups == 1 and module.padding == (0, 0, 0) and module.dilation == (1, 1, 1)
        if plain and module.stride == module.kernel_size:
            module.__class__ = PatchProjection
