"""The table of what was measured of whole images."""

import pyarrow as pa

from ..tables import Column, Table

HOLISTIC = Table(
    "multibind/holistic",
    ("generator", "instance", "measure", "model"),
    (
        Column("generator", pa.string(), "name of the image generator"),
        Column("instance", pa.string(), "id: every instance, also where no image was generated"),
        Column("measure", pa.string(), "fid, clip_i, dino, aesthetic, or similarity"),
        Column("model", pa.string(), "name of what measured"),
        Column("fingerprint", pa.string(), "SHA-256 of everything that the figures depend on beside the images"),
        Column(
            "value",
            pa.float64(),
            "cosine of the generated image with the photograph, or the generated image's score; empty: of fid, which only many "
            "images have, and where there is a reason",
            optional=True,
        ),
        Column("generated_features", pa.list_(pa.float32()), "of fid: features of the generated image", optional=True),
        Column("true_features", pa.list_(pa.float32()), "of fid: features of the photograph", optional=True),
        Column("reason", pa.string(), "why there is nothing, a short name", optional=True),
    ),
)
