"""Each data set in its real layout, as tiny folders, and every way in which one can be broken."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bindbench.config.multibind_sources import LICENCES, Photographs, Source
from bindbench.config.reading import stage_from_json
from bindbench.errors import UserError
from bindbench.multibind.sources import MODULES, check_files, photographs_digest, photographs_files, read_source
from bindbench.multibind.sources.listing import list_photographs, summary
from bindbench.multibind.sources.long_json import BrokenJson, items_of
from bindbench.multibind.sources.rows import ids_of
from bindbench.multibind.tables import PHOTOGRAPHS
from bindbench.people.masks import decode_mask, encode_mask
from bindbench.tables import read_table
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

LIMIT = 100_000
UNHURRIED = settings(deadline=None, max_examples=60)
WIDTH, HEIGHT = 40, 30


def picture(path: Path, width: int = WIDTH, height: int = HEIGHT, orientation: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    Image.new("RGB", (width, height), (90, 120, 60)).save(path, exif=exif)
    return path


def labels(path: Path, values: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values.astype(np.uint8)).save(path)
    return path


def two_people() -> np.ndarray:
    numbers = np.zeros((HEIGHT, WIDTH), int)
    numbers[5:25, 4:14], numbers[6:28, 20:33] = 1, 2
    return numbers


def rows_of(source: Source, name: str = "set") -> list[dict]:
    """All rows, checked by what the table demands of them."""
    rows = list(read_source(name, source, LIMIT))
    assert len({row["photograph"] for row in rows}) == len(rows)
    for row in rows:
        assert (row["reason"] is None) == (row["detail"] is None)
        assert row["source"] == source.kind and row["photograph"].startswith(f"{name}/")
    return rows


def reasons(rows: list[dict]) -> dict[str, str | None]:
    return {row["photograph"].removeprefix("set/"): row["reason"] for row in rows}


# COCO

POLYGON = [[4.0, 5.0, 14.0, 5.0, 14.0, 25.0, 4.0, 25.0]]


def annotation(
    image: int, number: int = 1, segmentation=POLYGON, box=(4, 5, 10, 20), category: int = 1, crowd=0
) -> dict:
    return {
        **{"id": number, "image_id": image, "category_id": category, "iscrowd": crowd, "bbox": list(box)},
        **{"segmentation": segmentation, "area": 200.0},
    }


class Coco:
    """A folder in COCO's layout, of which single parts can be spoilt before it is written."""

    def __init__(self, root: Path, kind: str = "coco"):
        self.root, self.kind, self.sections = root, kind, {}
        self.sections = {
            "info": {"description": "made in a test"},
            "licenses": [
                {"id": 4, "name": "Attribution License", "url": "http://creativecommons.org/licenses/by/2.0/"}
            ],
            "images": [],
            "annotations": [],
            "categories": [{"id": 18, "name": "dog"}, {"id": 1, "name": "person" if kind == "coco" else "Person"}],
        }

    def image(self, number, *annotations, file=None, drawn=True, **more) -> dict:
        file = file or f"{number:012d}.jpg"
        if drawn:
            picture(self.root / "images" / file)
        entry = {"id": number, "file_name": file, "width": WIDTH, "height": HEIGHT, "license": 4, **more}
        self.sections["images"].append(entry)
        self.sections["annotations"] += annotations
        return entry

    def source(self, **more) -> Source:
        (self.root / "images").mkdir(parents=True, exist_ok=True)
        self.path = self.root / "annotations" / "instances.json"
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self.sections))
        places = {"images": str(self.root / "images"), "annotations": str(self.path)}
        return Source(kind=self.kind, **(places | more))


@pytest.fixture
def coco(tmp_path):
    return Coco(tmp_path)


def test_coco_polygons_become_masks_and_boxes(coco):
    coco.image(139, annotation(139, 5), annotation(139, 9, [[20, 6, 33, 6, 33, 28, 20, 28]], (20, 6, 13, 22)))
    (row,) = rows_of(coco.source())
    assert row["photograph"] == "set/139" and row["reason"] is None
    assert (row["width"], row["height"]) == (WIDTH, HEIGHT) and row["path"].endswith("images/000000000139.jpg")
    assert [someone["person"] for someone in row["people"]] == ["5", "9"]
    assert [someone["box"] for someone in row["people"]] == [[4, 5, 10, 20], [20, 6, 13, 22]]
    for someone, number in zip(row["people"], (1, 2), strict=True):
        assert (decode_mask(someone["mask"], HEIGHT, WIDTH) == (two_people() == number)).all()
        assert someone["score"] == 1 and someone["crowd"] is False


def test_coco_both_kinds_of_run_lengths_are_read(coco):
    mask = two_people() == 2
    flat = mask.T.ravel()
    plain = np.diff([0, *(np.flatnonzero(np.diff(flat)) + 1), flat.size]).tolist()
    size = [HEIGHT, WIDTH]
    coco.image(
        1,
        annotation(1, 1, {"size": size, "counts": plain}),
        annotation(1, 2, {"size": size, "counts": encode_mask(mask)}),
    )
    (row,) = rows_of(coco.source())
    assert [(decode_mask(p["mask"], HEIGHT, WIDTH) == mask).all() for p in row["people"]] == [True, True]


def test_coco_a_crowd_is_kept_and_marked(coco):
    whole = {"size": [HEIGHT, WIDTH], "counts": [0, HEIGHT * WIDTH]}
    coco.image(1, annotation(1, 1), annotation(1, 2, whole, (0, 0, WIDTH, HEIGHT), crowd=1))
    (row,) = rows_of(coco.source())
    assert row["reason"] is None and [someone["crowd"] for someone in row["people"]] == [False, True]


def test_coco_other_categories_are_nobody(coco):
    coco.image(1, annotation(1, 1, category=18))
    coco.image(2)
    assert reasons(rows_of(coco.source())) == {"1": "no_people", "2": "no_people"}


@pytest.mark.parametrize(
    "spoilt, reason",
    [
        ({"segmentation": {"size": [WIDTH, HEIGHT], "counts": "abc"}}, "mask_size"),
        ({"segmentation": {"size": [HEIGHT, WIDTH], "counts": "abc"}}, "broken_mask"),
        ({"segmentation": {"size": [HEIGHT, WIDTH], "counts": [7]}}, "broken_mask"),
        ({"segmentation": {"size": [HEIGHT, WIDTH]}}, "broken_mask"),
        ({"segmentation": {"size": [HEIGHT, WIDTH], "counts": "\ud800"}}, "broken_mask"),
        ({"segmentation": [[1, 2, 3, 4]]}, "broken_mask"),
        ({"segmentation": "abc"}, "broken_mask"),
        ({"segmentation": [[1, 2, 3, 1e12, 4, 4]]}, "broken_mask"),
        ({"bbox": None}, "broken_box"),
        ({"bbox": [1, 2, 3]}, "broken_box"),
        ({"bbox": [1, 2, 3, float("nan")]}, "broken_box"),
        ({"bbox": [1, 2, 3, 10**400]}, "broken_box"),
        ({"bbox": [1, 2, 0, 5]}, "broken_box"),
        ({"bbox": [WIDTH, 2, 5, 5]}, "broken_box"),
    ],
)
def test_coco_a_broken_annotation_leaves_its_photograph_out_and_no_other(coco, spoilt, reason):
    coco.image(1, annotation(1, 1), annotation(1, 2) | spoilt)
    coco.image(2, annotation(2, 3))
    rows = rows_of(coco.source())
    assert reasons(rows) == {"1": reason, "2": None}
    assert rows[0]["detail"].startswith("person 2: ") and rows[0]["people"] == []


@pytest.mark.parametrize(
    "entry, reason",
    [
        ({"width": HEIGHT, "height": WIDTH}, "mask_size"),
        ({"width": None}, "broken_annotation"),
        ({"height": 0}, "broken_annotation"),
        ({"width": 30.5}, "broken_annotation"),
        ({"width": 10**9, "height": 10**9}, "too_many_pixels"),
        ({"file_name": None}, "broken_annotation"),
        ({"file_name": "../../secret.jpg"}, "broken_annotation"),
        ({"file_name": "/etc/passwd"}, "broken_annotation"),
        ({"file_name": "a\ud800.jpg"}, "broken_annotation"),
        ({"file_name": "a" * 3000}, "broken_annotation"),
        ({"file_name": "elsewhere.jpg"}, "missing_file"),
    ],
)
def test_coco_a_broken_image_entry_is_a_reason(coco, entry, reason):
    coco.image(1, annotation(1))
    coco.sections["images"][0].update(entry)
    assert reasons(rows_of(coco.source())) == {"1": reason}


def test_coco_missing_broken_and_large_photographs_are_reasons(coco):
    for number in (1, 2, 3, 4):
        coco.image(number, annotation(number, number))
    files = {number: coco.root / "images" / f"{number:012d}.jpg" for number in (1, 2, 3, 4)}
    files[1].unlink()
    files[2].write_bytes(b"no picture")
    files[3].write_bytes(picture(coco.root / "large.jpg", 400, 300).read_bytes())
    rows = rows_of(coco.source())
    assert reasons(rows) == {"1": "missing_file", "2": "broken_file", "3": "too_many_pixels", "4": None}
    assert (rows[0]["width"], rows[0]["height"]) == (0, 0) and "400 x 300" in rows[2]["detail"]


def test_coco_annotations_of_the_unturned_picture_are_of_another_size(coco):
    coco.image(1, annotation(1))
    picture(coco.root / "images" / f"{1:012d}.jpg", orientation=6)
    (row,) = rows_of(coco.source())
    assert row["reason"] == "mask_size" and (row["width"], row["height"]) == (HEIGHT, WIDTH)


@pytest.mark.parametrize("orientation", [2, 3, 4])
def test_coco_a_turn_that_the_annotation_may_not_know_of_is_a_reason(coco, orientation):
    """The size is the same either way: the masks would lie on the wrong people."""
    coco.image(1, annotation(1))
    picture(coco.root / "images" / f"{1:012d}.jpg", orientation=orientation)
    assert reasons(rows_of(coco.source())) == {"1": "turned"}


def test_coco_annotations_of_the_turned_picture_fit(coco):
    coco.image(1, annotation(1))
    picture(coco.root / "images" / f"{1:012d}.jpg", HEIGHT, WIDTH, orientation=6)
    assert reasons(rows_of(coco.source())) == {"1": None}


@pytest.mark.parametrize("value", [7.0, "7"])
def test_coco_ids_that_tables_have_made_fractions_or_text_are_the_same(coco, value):
    coco.image(7, annotation(value, value, category=type(value)(1)))
    (row,) = rows_of(coco.source())
    assert (row["photograph"], row["reason"]) == ("set/7", None) and row["people"][0]["person"] == "7"


@pytest.mark.parametrize("crowd", [1, 1.0, True, "1", "true"])
def test_coco_a_crowd_is_one_however_it_is_written(coco, crowd):
    coco.image(1, annotation(1, 1), annotation(1, 2, crowd=crowd), annotation(1, 3, crowd="0"))
    assert [someone["crowd"] for someone in rows_of(coco.source())[0]["people"]] == [False, True, False]


def test_coco_photographs_are_opened_for_their_header_alone(coco):
    coco.image(1, annotation(1))
    path = coco.root / "images" / f"{1:012d}.jpg"
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"\xff\xda")])  # all segments in front of the pixels
    assert reasons(rows_of(coco.source())) == {"1": None}


def test_coco_a_box_over_the_edge_is_cut(coco):
    coco.image(1, annotation(1, box=(-2.5, 5, 10, 200)))
    assert rows_of(coco.source())[0]["people"][0]["box"] == [0, 5, 7.5, HEIGHT - 5]


def test_coco_an_id_that_repeats_is_one_row_with_a_reason(coco):
    coco.image(1, annotation(1))
    coco.image(1)
    assert reasons(rows_of(coco.source())) == {"1": "duplicate_id"}


def test_coco_people_whose_ids_repeat_are_numbered(coco):
    coco.image(1, annotation(1, 7), annotation(1, 7))
    assert [someone["person"] for someone in rows_of(coco.source())[0]["people"]] == ["1", "2"]


def test_coco_licence_is_the_photographs_own_then_what_is_known_unless_the_config_says_otherwise(coco):
    coco.image(1, annotation(1))
    coco.image(2, annotation(2), license=99)
    own = "Attribution License http://creativecommons.org/licenses/by/2.0/"
    assert [row["licence"] for row in rows_of(coco.source())] == [own, LICENCES["coco"]]
    assert {row["licence"] for row in rows_of(coco.source(licence="mine"))} == {"mine"}


def test_coco_rows_do_not_depend_on_the_order_of_the_file(coco):
    for number in (30, 4, 200):
        coco.image(number, annotation(number, number * 10 + 1), annotation(number, number * 10))
    before = rows_of(coco.source())
    assert [row["photograph"] for row in before] == ["set/4", "set/30", "set/200"]
    for section in ("images", "annotations", "categories"):
        random.Random(1).shuffle(coco.sections[section])
    coco.sections = dict(reversed(coco.sections.items()))
    assert rows_of(coco.source()) == before


def test_coco_ids_may_be_any_text(coco):
    for number, name in enumerate(("b/../c", "b/..-c", "10", "9" * 5000, "9", "\ud800"), 1):
        coco.image(name, annotation(name, number), file=f"{number}.jpg")
    rows = rows_of(coco.source())
    assert [row["photograph"] for row in rows][:2] == ["set/9", "set/10"] and all(row["reason"] is None for row in rows)
    assert len({row["photograph"].replace("/", "-") for row in rows}) == 6


def test_coco_the_limit_takes_the_first_by_id(coco):
    for number in (30, 4, 200):
        coco.image(number, annotation(number, number))
    assert [row["photograph"] for row in rows_of(coco.source(limit=2))] == ["set/4", "set/30"]


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "ends too early or is no JSON"),
        ("{", "ends too early or is no JSON"),
        ('{"images": [{"id": 1}, {"id"', "ends too early or is no JSON"),
        ("[1, 2]", "ends too early or is no JSON"),
        ('{"images": [], "annotations": [], "categories": []}', "no category `person`"),
        ('{"images": [], "categories": [{"id": 1, "name": "person"}]}', "holds no image"),
        ('{"images": {}, "categories": [{"id": 1, "name": "person"}]}', "images is no list"),
        ('{"images": [3], "categories": []}', "an item of images has no id"),
        (
            '{"images": [{"id": 1}], "annotations": [3], "categories": [{"id": 1, "name": "person"}]}',
            "an item of annotations",
        ),
        ('{"x": ' + "[" * 100_000, "nested too deeply"),
        ('{"images": [{"id": ' + "9" * 5000 + "}]}", "ends too early or is no JSON"),
    ],
)
def test_coco_a_file_that_is_broken_as_a_whole_is_one_line_that_names_the_key(coco, text, told):
    source = coco.source()
    coco.path.write_text(text)
    with pytest.raises(UserError, match=told) as caught:
        rows_of(source)
    assert str(caught.value).startswith(f"multibind.photographs.sources.set.annotations: {coco.path}: ")
    assert "\n" not in str(caught.value)


def test_coco_a_file_that_is_no_text_is_one_line(coco):
    source = coco.source()
    coco.path.write_bytes(b'{"images": "\xff\xfe"}')
    with pytest.raises(UserError, match="not UTF-8"):
        rows_of(source)


# Objects365


def test_objects365_files_are_found_in_the_ways_the_archives_unpack(tmp_path):
    made = Coco(tmp_path, "objects365")
    names = {n: f"images/v1/patch8/objects365_v1_{n:08d}.jpg" for n in (1, 2, 3, 4)}
    for number, name in names.items():
        made.image(number, annotation(number, number, None), file=name, drawn=False)
    for place in (names[1], names[2].split("/", 2)[2], names[3].rsplit("/", 1)[1]):
        picture(tmp_path / "images" / place)
    rows = rows_of(made.source())
    assert reasons(rows) == {"1": None, "2": None, "3": None, "4": "missing_file"}
    assert all(someone["mask"] is None for row in rows for someone in row["people"])
    assert rows[0]["people"][0]["box"] == [4, 5, 10, 20]


def test_objects365_painted_and_mirrored_people_are_no_subjects(tmp_path):
    made = Coco(tmp_path, "objects365")
    kinds = [{}, {"isfake": 1}, {"isreflected": 1}, {"iscrowd": 1}]
    made.image(1, *(annotation(1, number, None) | kind for number, kind in enumerate(kinds)))
    assert [someone["crowd"] for someone in rows_of(made.source())[0]["people"]] == [False, True, True, True]


# CIHP


@pytest.fixture
def cihp(tmp_path):
    split = tmp_path / "instance-level_human_parsing" / "Training"
    for name in ("0000006", "0000015", "0000020"):
        picture(split / "Images" / f"{name}.jpg")
        labels(split / "Human_ids" / f"{name}.png", two_people())
        labels(split / "Instance_ids" / f"{name}.png", two_people() * 7)
        labels(split / "Category_ids" / f"{name}.png", (two_people() > 0) * 13)
    (split / "train_id.txt").write_text("0000006\n0000015\n0000020\n")
    return split


def cihp_source(split: Path, **more) -> Source:
    return Source(kind="cihp", annotations=str(split), **more)


def test_cihp_people_come_from_their_numbers(cihp):
    rows = rows_of(cihp_source(cihp))
    assert reasons(rows) == {"0000006": None, "0000015": None, "0000020": None}
    for someone, number in zip(rows[0]["people"], (1, 2), strict=True):
        assert someone["person"] == str(number) and someone["crowd"] is False
        assert (decode_mask(someone["mask"], HEIGHT, WIDTH) == (two_people() == number)).all()
    assert rows[0]["people"][0]["box"] == [4, 5, 10, 20] and rows[0]["licence"] == LICENCES["cihp"]


def test_cihp_every_fault_is_a_reason_and_the_rest_is_read(cihp):
    listed = ["0000006", "0000015", "0000020", "0000021", "0000022", "0000023", "0000024", "0000025"]
    (cihp / "train_id.txt").write_text("\n".join(listed))
    for name in listed[3:]:
        picture(cihp / "Images" / f"{name}.jpg")
        labels(cihp / "Human_ids" / f"{name}.png", two_people())
    (cihp / "Images" / "0000015.jpg").unlink()
    (cihp / "Human_ids" / "0000020.png").unlink()
    labels(cihp / "Human_ids" / "0000021.png", two_people().T)
    (cihp / "Human_ids" / "0000022.png").write_bytes((cihp / "Human_ids" / "0000023.png").read_bytes()[:60])
    labels(cihp / "Human_ids" / "0000023.png", np.zeros((HEIGHT, WIDTH)))
    (cihp / "Images" / "0000024.jpg").write_bytes(b"")
    picture(cihp / "Images" / "0000025.jpg", 400, 300)
    assert reasons(rows_of(cihp_source(cihp))) == {
        **{"0000006": None, "0000015": "missing_file", "0000020": "missing_mask", "0000021": "mask_size"},
        **{"0000022": "broken_mask", "0000023": "no_people", "0000024": "broken_file", "0000025": "too_many_pixels"},
    }


@pytest.mark.parametrize(
    "suffix, mask, told",
    [
        (".tif", two_people().astype(np.float32), "fractions"),
        (".tif", np.full((HEIGHT, WIDTH), np.nan, np.float32), "fractions"),
        (".tif", two_people().astype(np.int32) * -1, "holds -2 to 0"),
        (".png", two_people().astype(np.uint16) * 30000, "holds 0 to 60000"),
        (".jpg", two_people().astype(np.uint8), "keeps no numbers"),
    ],
)
def test_cihp_what_holds_no_numbers_of_people_is_a_broken_mask(cihp, suffix, mask, told):
    (cihp / "Human_ids" / "0000015.png").unlink()
    Image.fromarray(mask).save(cihp / "Human_ids" / f"0000015{suffix}")
    rows = rows_of(cihp_source(cihp))
    assert reasons(rows) == {"0000006": None, "0000015": "broken_mask", "0000020": None}
    assert told in rows[1]["detail"]


def test_cihp_without_a_list_everything_with_a_picture_or_a_mask_counts(cihp):
    (cihp / "train_id.txt").unlink()
    (cihp / "Images" / "0000015.jpg").unlink()
    (cihp / "Human_ids" / "0000020.png").unlink()
    assert reasons(rows_of(cihp_source(cihp))) == {
        "0000006": None,
        "0000015": "missing_file",
        "0000020": "missing_mask",
    }


def test_cihp_a_list_limits_what_is_read(cihp):
    (cihp / "train_id.txt").write_text("0000020.jpg\n0000006\n0000006\n")
    assert list(reasons(rows_of(cihp_source(cihp)))) == ["0000006", "0000020"]
    assert list(reasons(rows_of(cihp_source(cihp, limit=1)))) == ["0000006"]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xff"])
def test_cihp_a_list_that_is_empty_or_no_text_names_the_key(cihp, content):
    (cihp / "train_id.txt").write_bytes(content)
    with pytest.raises(UserError, match=r"^multibind\.photographs\.sources\.set\.annotations: .*train_id\.txt"):
        rows_of(cihp_source(cihp))


def test_cihp_photographs_may_lie_elsewhere(cihp, tmp_path):
    (cihp / "Images").rename(tmp_path / "photographs")
    source = cihp_source(cihp, images=str(tmp_path / "photographs"))
    assert set(reasons(rows_of(source)).values()) == {None}


@pytest.mark.parametrize("missing, key", [("Human_ids", "annotations"), ("Images", "images")])
def test_cihp_a_missing_folder_names_the_key(cihp, missing, key):
    (cihp / missing).rename(cihp / "gone")
    with pytest.raises(UserError, match=rf"^multibind\.photographs\.sources\.set\.{key}: no folder .*{missing}"):
        rows_of(cihp_source(cihp))


# LV-MHP-v2


@pytest.fixture
def mhp(tmp_path):
    split = tmp_path / "LV-MHP-v2" / "train"
    for name in ("3", "10"):
        picture(split / "images" / f"{name}.jpg")
        for number in (1, 2):
            parts = (two_people() == number) * 11
            labels(split / "parsing_annos" / f"{name}_02_0{number}.png", np.stack([parts] * 3, 2))
    (tmp_path / "LV-MHP-v2" / "list").mkdir()
    (tmp_path / "LV-MHP-v2" / "list" / "train.txt").write_text("3\n10\n")
    (tmp_path / "LV-MHP-v2" / "list" / "val.txt").write_text("4\n")
    return split


def mhp_source(split: Path, **more) -> Source:
    return Source(kind="mhp", annotations=str(split), **more)


def test_mhp_everyone_has_a_picture_of_labels(mhp):
    rows = rows_of(mhp_source(mhp))
    assert reasons(rows) == {"10": None, "3": None}
    for row in rows:
        assert [someone["person"] for someone in row["people"]] == ["1", "2"]
        for someone, number in zip(row["people"], (1, 2), strict=True):
            assert (decode_mask(someone["mask"], HEIGHT, WIDTH) == (two_people() == number)).all()


def test_mhp_ten_people_stay_in_order(mhp):
    for number in range(1, 12):
        values = np.zeros((HEIGHT, WIDTH))
        values[:, number] = 1
        labels(mhp / "parsing_annos" / f"77_11_{number:02d}.png", values)
    picture(mhp / "images" / "77.jpg")
    (mhp.parent / "list" / "train.txt").write_text("77\n")
    (row,) = rows_of(mhp_source(mhp))
    assert [someone["box"][0] for someone in row["people"]] == list(range(1, 12))


def test_mhp_every_fault_is_a_reason_and_the_rest_is_read(mhp):
    masks = mhp / "parsing_annos"
    for name in ("20", "21", "22", "23", "24", "25"):
        picture(mhp / "images" / f"{name}.jpg")
        for number in (1, 2):
            labels(masks / f"{name}_02_0{number}.png", two_people() == number)
    (masks / "20_02_01.png").unlink()
    labels(masks / "21_02_02.png", np.ones((5, 5)))
    (masks / "22_02_02.png").write_bytes(b"no picture")
    labels(masks / "23_02_02.png", np.zeros((HEIGHT, WIDTH)))
    labels(masks / "24_03_03.png", two_people())
    (mhp / "images" / "25.jpg").unlink()
    picture(mhp / "images" / "26.jpg")
    (masks / "notes.txt").write_text("not a mask")
    (mhp.parent / "list" / "train.txt").unlink()
    rows = rows_of(mhp_source(mhp))
    assert reasons(rows) == {
        **{"10": None, "3": None, "20": "missing_mask", "21": "mask_size", "22": "broken_mask", "23": "broken_mask"},
        **{"24": "missing_mask", "25": "missing_file", "26": "no_people"},
    }
    assert "21_02_02.png" in next(row["detail"] for row in rows if row["reason"] == "mask_size")


# A folder


def folder_source(folder: Path, **more) -> Source:
    return Source(kind="folder", images=str(folder), **more)


def test_folder_is_read_with_its_subfolders_in_order(tmp_path):
    for name in ("b.jpg", "A.JPEG", "deep/er/c.png", "deep/d.webp"):
        picture(tmp_path / name)
    for name in ("notes.txt", ".hidden.jpg", "._b.jpg", "film.gif"):
        (tmp_path / name).write_text("x")
    picture(tmp_path / ".thumbnails" / "e.jpg")
    rows = rows_of(folder_source(tmp_path))
    assert [row["photograph"] for row in rows] == ["set/A", "set/b", "set/deep/d", "set/deep/er/c"]
    assert all(row["people"] == [] and row["reason"] is None and row["licence"] == "not stated" for row in rows)
    assert {(row["width"], row["height"]) for row in rows} == {(WIDTH, HEIGHT)}
    assert [row["photograph"] for row in rows_of(folder_source(tmp_path, limit=2))] == ["set/A", "set/b"]


def test_folder_sizes_are_upright(tmp_path):
    picture(tmp_path / "a.jpg", orientation=8)
    (row,) = rows_of(folder_source(tmp_path))
    assert (row["width"], row["height"]) == (HEIGHT, WIDTH)


def test_folder_same_names_in_different_places_differ_even_as_file_names(tmp_path):
    names = (
        "a.jpg",
        "a.png",
        "x/a.jpg",
        "y/a.jpg",
        "x-a.jpg",
        "x b.jpg",
        "x_b.jpg",
        "é.jpg",
        "è.jpg",
        "A.jpg",
        "n" * 200 + ".jpg",
    )
    for name in names:
        picture(tmp_path / name)
    ids = [row["photograph"] for row in rows_of(folder_source(tmp_path))]
    assert len({name.replace("/", "-").lower() for name in ids}) == len(names)
    assert all(len(name) < 130 and name.isascii() and " " not in name for name in ids)
    assert "set/y/a" in ids  # what clashes with nothing keeps its name


def test_folder_broken_pictures_are_reasons(tmp_path):
    picture(tmp_path / "good.jpg")
    (tmp_path / "empty.jpg").write_bytes(b"")
    picture(tmp_path / "large.png", 400, 300)
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    found = reasons(rows_of(folder_source(tmp_path)))
    assert found == {"empty": "broken_file", "gone": "missing_file", "good": None, "large": "too_many_pixels"}


def test_folder_a_name_that_is_no_text_is_a_reason_and_can_be_stored(tmp_path):
    picture(tmp_path / "photographs" / "a.jpg").rename(os.fsdecode(bytes(tmp_path / "photographs") + b"/\xff\xfe.jpg"))
    settings = Photographs(sources={"mine": folder_source(tmp_path / "photographs")})
    list_photographs(settings, tmp_path / "table.parquet")
    (row,) = read_table(PHOTOGRAPHS, tmp_path / "table.parquet").to_pylist()
    assert row["reason"] == "file_name"


def test_folder_links_in_a_circle_end(tmp_path):
    picture(tmp_path / "photographs" / "a.jpg")
    picture(tmp_path / "other" / "b.jpg")
    (tmp_path / "photographs" / "circle").symlink_to(tmp_path / "photographs")
    (tmp_path / "photographs" / "linked").symlink_to(tmp_path / "other")
    assert list(reasons(rows_of(folder_source(tmp_path / "photographs")))) == ["a", "linked/b"]


def test_folder_without_a_photograph_is_one_line(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UserError, match=r"^multibind\.photographs\.sources\.set: .* holds no photograph \(\.jpg"):
        rows_of(folder_source(tmp_path))


# The built-in photographs


def test_builtin_photographs_lie_in_the_package_which_is_not_imported(tmp_path):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from bindbench.config.multibind_sources import Photographs\n"
        "from bindbench.multibind.sources.listing import list_photographs\n"
        "list_photographs(Photographs(), Path(sys.argv[1]))\n"
        "assert not {'ultralytics', 'torch', 'cv2'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "t")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Photographs: builtin 2 (2 usable)" in done.stderr.splitlines()
    rows = read_table(PHOTOGRAPHS, tmp_path / "t").to_pylist()
    assert [row["photograph"] for row in rows] == ["builtin/bus", "builtin/zidane"]
    assert all("ultralytics/assets/" in row["path"] and "AGPL-3.0" in row["licence"] for row in rows)


def test_builtin_without_the_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs the package ultralytics; install it"):
        rows_of(Source(kind="builtin"))


# All of them


def test_every_kind_has_a_module_and_a_licence():
    kinds = Source.model_fields["kind"].annotation.__args__
    assert set(MODULES) == set(kinds) == set(LICENCES)


def test_the_light_half_loads_nothing_heavy():
    program = (
        "import sys\n"
        "from bindbench.config.multibind_sources import Photographs\n"
        "from bindbench.multibind.sources import check_files, photographs_digest, photographs_files\n"
        "check_files(Photographs()), photographs_files(Photographs()), photographs_digest(Photographs())\n"
        "print({'PIL', 'numpy', 'pyarrow', 'pycocotools'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_table_holds_all_sources_and_the_summary_counts_them(coco, mhp, tmp_path, capsys):
    coco.image(1, annotation(1))
    coco.image(2)
    coco.image(3, annotation(3, 3), drawn=False)
    settings = Photographs(sources={"first": coco.source(), "second": mhp_source(mhp)})
    list_photographs(settings, tmp_path / "a.parquet")
    assert (
        "Photographs: first 3 (1 usable, 1 missing_file, 1 no_people); second 2 (2 usable)" in capsys.readouterr().err
    )
    rows = read_table(PHOTOGRAPHS, tmp_path / "a.parquet").to_pylist()
    assert [row["photograph"] for row in rows] == ["first/1", "first/2", "first/3", "second/10", "second/3"]
    list_photographs(settings, tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_long_list_is_counted_whole():
    counts = {("coco", "usable"): 12_000, ("coco", "no_people"): 1_500, ("coco", "mask_size"): 2}
    assert summary(counts) == "Photographs: coco 13,502 (12,000 usable, 1,500 no_people, 2 mask_size)"


def test_missing_places_are_found_without_reading_and_named_by_their_key(coco, tmp_path):
    source = coco.source()
    check_files(Photographs(sources={"a": source}))
    coco.path.unlink()
    with pytest.raises(UserError, match=rf"^multibind\.photographs\.sources\.a\.annotations: no file {coco.path};"):
        check_files(Photographs(sources={"a": source}))
    with pytest.raises(UserError, match=r"^multibind\.photographs\.sources\.a\.images: no folder /no/such;"):
        check_files(Photographs(sources={"a": folder_source(Path("/no/such"))}))
    with pytest.raises(UserError, match=r"annotations: no file /no/such;"):
        list_photographs(Photographs(sources={"a": coco.source(annotations="/no/such")}), tmp_path / "t")
    assert not (tmp_path / "t").exists()
    unused = Photographs(sources={"a": folder_source(Path("/no/such")), "b": {"kind": "builtin"}}, use=["b"])
    check_files(unused)


def test_snakemake_watches_annotations_lists_and_folders_but_no_photograph(coco, cihp, mhp, tmp_path):
    picture(tmp_path / "mine" / "deep" / "a.jpg")
    sources = {"a": coco.source(), "b": cihp_source(cihp), "c": mhp_source(mhp), "d": folder_source(tmp_path / "mine")}
    assert photographs_files(Photographs(sources=sources)) == [
        *(coco.path, cihp / "Human_ids", cihp / "train_id.txt"),
        *(mhp / "parsing_annos", mhp.parent / "list" / "train.txt"),
        *(tmp_path / "mine", tmp_path / "mine" / "deep"),
    ]
    assert photographs_files(Photographs()) == []


def test_a_photograph_that_is_replaced_in_place_changes_what_snakemake_compares(tmp_path, monkeypatch):
    first, second = tmp_path / "mine" / "a.jpg", tmp_path / "mine" / "deep" / "b.jpg"
    picture(first)
    picture(second)
    settings = Photographs(sources={"d": folder_source(tmp_path / "mine")})
    before = photographs_digest(settings)
    (tmp_path / "mine" / ".hidden").write_text("x")
    assert before and photographs_digest(settings) == before
    second.write_bytes(second.read_bytes() + b" ")
    larger = photographs_digest(settings)
    os.utime(first, ns=(1, 1))
    assert len({before, larger, photographs_digest(settings)}) == 3
    monkeypatch.setattr("bindbench.multibind.sources.MOST_WATCHED", 1)
    assert photographs_digest(settings) == "" == photographs_digest(Photographs())


# Ids and long files

NAMES = st.lists(st.text(st.sampled_from("aA/-_.é \ud800"), min_size=1, max_size=6), unique=True, max_size=12)


@UNHURRIED
@given(NAMES, st.randoms())
def test_ids_are_unique_as_file_names_and_depend_on_no_order(names, shuffler):
    ids = dict(zip(names, ids_of("set", names), strict=True))
    assert len({name.replace("/", "-").lower() for name in ids.values()}) == len(names)
    shuffled = list(names)
    shuffler.shuffle(shuffled)
    assert dict(zip(shuffled, ids_of("set", shuffled), strict=True)) == ids


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
@UNHURRIED
@given(
    st.dictionaries(st.sampled_from("abcd"), st.lists(JSON, max_size=4), max_size=4),
    JSON,
    st.sampled_from([None, 0, 2]),
)
def test_a_long_file_read_in_pieces_is_what_json_says(tmp_path_factory, piece, sections, other, indent):
    path = tmp_path_factory.getbasetemp() / "long.json"
    path.write_text(json.dumps({"other": other, **sections}, indent=indent, ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bindbench.multibind.sources.long_json.PIECE", piece)
        found = list(items_of(path, ("a", "c")))
    assert found == [(key, item) for key, items in sections.items() if key in "ac" for item in items]


def test_a_large_file_tells_how_far_it_is(tmp_path, monkeypatch, capsys):
    path = tmp_path / "instances.json"
    path.write_text(json.dumps({"a": ["x" * 1000] * 3000}))
    assert len(list(items_of(path, ("a",)))) == 3000 and capsys.readouterr().err == ""
    monkeypatch.setattr("bindbench.multibind.sources.long_json.LARGE", 1 << 20)
    assert len(list(items_of(path, ("a",)))) == 3000
    assert "reading instances.json: 100%" in (told := capsys.readouterr().err) and "2/2" in told and "MiB" in told


@UNHURRIED
@given(st.dictionaries(st.sampled_from("abcd"), st.lists(JSON, max_size=3), min_size=1), st.data())
def test_a_long_file_that_ends_anywhere_is_broken(tmp_path_factory, sections, data):
    path = tmp_path_factory.getbasetemp() / "cut.json"
    text = json.dumps(sections)
    path.write_text(text[: data.draw(st.integers(0, len(text) - 1))])
    with pytest.raises(BrokenJson, match="ends too early or is no JSON at character"):
        list(items_of(path, ("a", "c")))


# The config


@pytest.mark.parametrize(
    "given, told",
    [
        (
            {"sources": {"a": {"kind": "coco", "images": "x"}}},
            "sources.a: annotations: is missing; a source of kind coco needs it",
        ),
        ({"sources": {"a": {"kind": "folder"}}}, "sources.a: images: is missing"),
        ({"sources": {"a": {"kind": "mhp", "images": "x"}}}, "sources.a: annotations: is missing"),
        (
            {"sources": {"a": {"kind": "builtin", "images": "x"}}},
            "sources.a: images: means nothing for a source of kind builtin",
        ),
        ({"sources": {"a": {"kind": "flickr"}}}, "sources.a.kind: must be one of 'coco'"),
        ({"sources": {"a-b": {"kind": "builtin"}}}, "a name has at most 40 letters, digits and underscores"),
        ({"sources": {"a": {"kind": "builtin"}, "A": {"kind": "builtin"}}}, "names that differ in case only"),
        ({"sources": {"a": {"kind": "builtin", "limit": 0}}}, "sources.a.limit: must be >= 1"),
        ({"sources": {}}, "sources: must hold at least 1"),
        ({"use": ["coco"]}, "use: coco is not among the sources (builtin)"),
        ({"use": ["builtin", "builtin"]}, "use: a name is given twice"),
        ({"max_pixels": True}, "max_pixels: must be a number"),
        ({"max_pixels": 10**9}, "max_pixels: "),
    ],
)
def test_config_faults_are_one_line(given, told):
    with pytest.raises(UserError) as caught:
        stage_from_json(Photographs, json.dumps(given))
    assert told in str(caught.value).splitlines()[0]


def test_builtin_photographs_stand_aside_once_there_are_others():
    builtin, mine = {"kind": "builtin"}, {"kind": "folder", "images": "x"}
    assert list(Photographs().used) == ["builtin"]
    assert list(Photographs(sources={"builtin": builtin, "mine": mine}).used) == ["mine"]
    assert list(Photographs(sources={"builtin": builtin, "mine": mine}, use=["mine", "builtin"]).used) == [
        "mine",
        "builtin",
    ]
