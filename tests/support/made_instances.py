"""MultiBind's assembled data set with drawn people, as generators and the evaluation read it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bindbench.config.multibind_quality import Quality
from bindbench.files import sha256
from bindbench.multibind.assembling import assemble
from bindbench.multibind.generators.scene import Scene, read_scenes
from bindbench.multibind.tables import INSTANCES, SUBJECTS
from bindbench.tables import read_table, write_table
from made_multibind import make_multibind
from PIL import Image


@dataclass(frozen=True)
class MadeInstances:
    """The folder of the tables and of images/."""

    folder: Path

    @property
    def tables(self) -> tuple[Path, Path, Path]:
        """Instances, subjects, and what their files are relative to."""
        return self.folder / "instances.parquet", self.folder / "subjects.parquet", self.folder

    def scene(self, instance: str, longest_px: int = 1536) -> Scene:
        return next(scene for scene in read_scenes(*self.tables, longest_px) if scene.name == instance)

    def replace(self, instance: str, slot: str | None, column: str, pixels: np.ndarray) -> None:
        """Another picture in the place of a target, background or reference, noted in its table."""
        table, path = (SUBJECTS, self.tables[1]) if slot else (INSTANCES, self.tables[0])
        rows = read_table(table, path).to_pylist()
        row = next(row for row in rows if row["instance"] == instance and slot in (None, row.get("slot")))
        file = self.folder / row[column]
        file.unlink()  # a hard link to that of an earlier stage
        Image.fromarray(pixels).save(file)
        row[f"{column}_sha256"] = sha256(file.read_bytes())
        write_table(table, rows, path)


def make_instances(folder: Path, sizes: dict[str, int]) -> MadeInstances:
    """sizes: number of subjects of each instance, by its id, such as folder-one."""
    made = make_multibind(folder / "made", sizes)
    assemble(*made.paths, None, Quality(), folder / "data")
    return MadeInstances(folder / "data")
