"""The configuration: one pydantic model per section, one section per stage.

`load` merges and checks; `stage` gives the canonical JSON of the one section that a stage's program may read.
"""

from .models import Config
from .reading import check, load, stage, stage_from_json

__all__ = ["Config", "check", "load", "stage", "stage_from_json"]
