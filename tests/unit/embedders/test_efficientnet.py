"""EfficientNet-Lite0 answers as a SentenceTransformer does, without that library, since each job of measuring imports anew."""

import subprocess
import sys

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
