"""The table of what the generators made."""

import pyarrow as pa

from ..tables import Column, Table

GENERATED = Table(
    "multibind/generated",
    ("generator", "instance"),
    (
        Column("generator", pa.string(), "its name in the config"),
        Column("instance", pa.string(), "id"),
        Column("file", pa.string(), "PNG in the generator's folder; empty: there is none", optional=True),
        Column("sha256", pa.string(), "of the file", optional=True),
        Column("width", pa.int32(), "pixels, of the one size that all pictures of the instance have"),
        Column("height", pa.int32(), "pixels"),
        Column("model", pa.string(), "what made it"),
        Column("settings", pa.string(), "JSON: what shaped it"),
        Column("changes", pa.list_(pa.string()), "what was done to it afterwards, in order"),
        Column("problem", pa.string(), "why there is no picture, in one line", optional=True),
    ),
)
