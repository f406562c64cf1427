"""A small SABER with little pictures of one colour each, as a generator's and as the embedded renderer's."""

import io
from dataclasses import dataclass
from pathlib import Path

import pytest
from bindbench.files import sha256
from bindbench.tables import IMAGES, write_table
from made_labelling import MadeLabelling, make_labelling
from made_multibind import MadeMultiBind, make_multibind
from PIL import Image
from review_browser import browser, driver  # noqa: F401 (fixtures)
from synthetic_saber import tiny_saber, write_rows


@dataclass
class Saber:
    """Tables on disk, their rows, and the hash of each scene's picture."""

    folder: Path
    questions: Path
    scenes: Path
    images: list[Path]
    question_rows: list[dict]
    scene_rows: list[dict]
    hashes: dict[str, str]

    @property
    def journal(self) -> Path:
        return self.folder / "screening" / "saber.jsonl"

    @property
    def tables(self) -> tuple:
        return self.questions, self.scenes, self.images, self.journal

    def scenes_of(self, question: str) -> list[str]:
        return [row["scene"] for row in self.scene_rows if row["question"] == question]

    def redraw(self, scene: str, shade: int) -> None:
        """Another picture of the scene, noted in its table."""
        number = next(i for i, row in enumerate(self.scene_rows) if row["scene"] == scene)
        self.hashes[scene] = draw(self.folder / "images" / "0000" / f"{number}.png", number, shade)
        self.write_images()

    def write_images(self, renderer: str = "gpt-image-2/medium") -> None:
        rows = [
            {
                "scene": row["scene"],
                "path": f"0000/{number}.png",
                "sha256": self.hashes[row["scene"]],
                "flipped": False,
                "renderer": renderer,
            }
            for number, row in enumerate(self.scene_rows)
        ]
        write_table(IMAGES, rows, self.images[0])


def draw(path: Path, number: int, shade: int) -> str:
    data = io.BytesIO()
    Image.new("RGB", (64, 64), (number * 7 % 256, shade, 128)).save(data, "PNG")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.getvalue())
    return sha256(data.getvalue())


@pytest.fixture
def saber(tmp_path) -> Saber:
    question_rows, scene_rows = tiny_saber(object_counts=(2, 3), independent=1, nested=1)
    questions, scenes = write_rows(tmp_path, question_rows, scene_rows)
    hashes = {
        row["scene"]: draw(tmp_path / "images" / "0000" / f"{number}.png", number, 0)
        for number, row in enumerate(scene_rows)
    }
    saber = Saber(tmp_path, questions, scenes, [tmp_path / "images/0000.parquet"], question_rows, scene_rows, hashes)
    saber.write_images()
    return saber


@pytest.fixture
def multibind(tmp_path) -> MadeMultiBind:
    return make_multibind(tmp_path, {"coco-a": 2, "folder-b": 3, "coco-c": 4})


@pytest.fixture
def labelling(tmp_path) -> MadeLabelling:
    return make_labelling(tmp_path, {"coco-a": 2, "folder-b": 3})
