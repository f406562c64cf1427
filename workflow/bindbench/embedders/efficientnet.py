"""EfficientNet-Lite0 without its classifier: the last feature map, averaged over its places (1280 dimensions), images only.

It answers what loading.Model asks of a SentenceTransformer and is none: to import that library takes longer than to measure a few
photographs, which is what each job of MultiBind's evaluation does.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import nn
from torch.nn import functional
from torch.nn.utils import fuse_conv_bn_eval

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class EfficientNetFeatures(nn.Module):
    modalities = ("image",)
    image_px = 224
    dimensions = 1280
    max_seq_length = None

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    @classmethod
    def from_file(cls, weights: Path) -> "EfficientNetFeatures":
        from efficientnet_lite_pytorch import EfficientNet

        network = EfficientNet.from_name("efficientnet-lite0")
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        # Depthwise convolutions take two thirds of the time in this layout.
        return cls(folded(network.eval()).to(memory_format=torch.channels_last))

    def preprocess(self, inputs: list[Image.Image], prompt: str | None = None, **kwargs) -> dict[str, torch.Tensor]:
        size = (self.image_px, self.image_px)
        crops = [np.asarray(ImageOps.fit(image, size, Image.Resampling.BICUBIC)) for image in inputs]
        pixels = torch.from_numpy(np.stack(crops)).permute(0, 3, 1, 2).float() / 255
        mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (IMAGENET_MEAN, IMAGENET_STD))
        return {"pixel_values": (pixels - mean) / std}

    def forward(self, features: dict, **kwargs) -> dict:
        pixels = features["pixel_values"].to(next(self.network.parameters()).dtype)
        pixels = pixels.contiguous(memory_format=torch.channels_last)
        features["sentence_embedding"] = self.network.extract_features(pixels).mean((2, 3))
        return features

    # What a SentenceTransformer has beside these:

    def __getitem__(self, index: int) -> nn.Module:
        """Its modules in order, of which this is the only one."""
        return (self,)[index]

    def supports(self, modality: str) -> bool:
        return modality in self.modalities

    def get_embedding_dimension(self) -> int:
        return self.dimensions

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device


def folded(network: nn.Module) -> nn.Module:
    """The same network in fewer passes over memory, changed in place: batch norms are folded into their convolutions, which
    pad by themselves; activations overwrite.
    """
    pairs = [(network, "_conv_stem", "_bn0"), (network, "_conv_head", "_bn1")]
    for block in network._blocks:
        names = ("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")
        pairs += [(block, *pair) for pair in names if hasattr(block, pair[0])]
    for owner, convolution, norm in pairs:
        fused = fuse_conv_bn_eval(getattr(owner, convolution), getattr(owner, norm))
        _pad_inside(fused)
        setattr(owner, convolution, fused)
        setattr(owner, norm, nn.Identity())
    for module in network.modules():
        if isinstance(module, nn.ReLU6):
            module.inplace = True
    return network


def _pad_inside(convolution: nn.Conv2d) -> None:
    """In place of the layer that pads before it. One more on the right and below, as stride 2 asks for, is as much on both
    sides for a kernel with a row and a column of zeros before the first.
    """
    left, right, top, bottom = getattr(convolution.static_padding, "padding", (0, 0, 0, 0))
    depthwise = convolution.groups == convolution.in_channels  # others gain less than the larger kernel costs
    if depthwise and (right, bottom) == (left + 1, top + 1):
        weight = functional.pad(convolution.weight.detach(), (1, 0, 1, 0))
        convolution.weight = nn.Parameter(weight, requires_grad=False)
        convolution.kernel_size = tuple(weight.shape[2:])
        left, top = right, bottom
    if left == right and top == bottom:
        convolution.padding, convolution.static_padding = (top, left), nn.Identity()
