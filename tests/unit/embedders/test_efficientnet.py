"""EfficientNet-Lite0 answers as a SentenceTransformer does, without that library, since each job of measuring imports anew."""

import subprocess
import sys

import pytest
import torch
from bindbench.embedders.efficientnet import folded
from efficientnet_lite_pytorch import EfficientNet
from torch import nn

PROGRAM = """
import sys
from PIL import Image
from bindbench.config.embedders import DEFAULT_EMBEDDERS
from bindbench.embedders.loading import load
model = load(DEFAULT_EMBEDDERS["efficientnet-lite0"], "cpu")
vectors = model.embed_images([Image.new("RGB", (40, 60), "red"), Image.new("RGB", (60, 40), "blue")])
assert vectors.shape == (2, model.dimensions) == (2, 1280)
assert abs((vectors**2).sum(axis=1) - 1).max() < 1e-6 and (vectors[0] != vectors[1]).any()
facts = model.facts()
assert (facts["architecture"], facts["dimensions"], facts["device"]) == ("EfficientNet", 1280, "cpu")
print([name for name in ("sentence_transformers", "transformers") if name in sys.modules])
"""


def test_pictures_are_measured_without_importing_the_libraries_of_texts():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("size", [(224, 224), (160, 96)])
def test_folding_changes_no_feature(size):
    torch.manual_seed(0)
    network = EfficientNet.from_name("efficientnet-lite0").eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):  # a fresh one is nearly the identity
            for values in (module.running_mean, module.bias.data):
                values.normal_(0, 0.2)
            for values in (module.running_var, module.weight.data):
                values.uniform_(0.5, 2)
    pixels = torch.randn(2, 3, *size)
    with torch.inference_mode():
        plain = network.extract_features(pixels)
        features = folded(network).extract_features(pixels)
    assert features.shape == plain.shape and plain.abs().max() > 0.1
    assert torch.allclose(features, plain, rtol=1e-4, atol=1e-4 * float(plain.abs().max()))
    assert not any(isinstance(module, nn.ZeroPad2d) for name, module in network.named_modules() if "depthwise" in name)
