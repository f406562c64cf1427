"""Section 3.2: 2 to 4 subjects in fixed slots, each with crop, mask and box; who is left out, and why, by figures."""

import importlib.util
import os
import random
import tempfile
from pathlib import Path

import cv2
import imagehash
import numpy as np
import pytest
from bindbench.config.multibind_selection import Selection
from bindbench.errors import UserError
from bindbench.files import sha256_of_file
from bindbench.multibind import selection
from bindbench.multibind.cutting import instance_id, left_to_right, scaled_mask, target_size, without_shared_pixels
from bindbench.multibind.selection import select_photographs
from bindbench.multibind.subjects import REASONS, Rejection, choose_subjects
from bindbench.multibind.tables import CROPS, PHOTOGRAPHS, REJECTED, SELECTED
from bindbench.people.masks import box_of_mask, decode_mask, encode_mask
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

WIDTH, HEIGHT = 240, 180
LEFT, RIGHT = [20, 40, 60, 120], [150, 30, 60, 130]
SMALL = {"min_subject_height_px": 60, "min_side_px": 100}  # limits for pictures of this size
MAX_PIXELS = 10**6


def person(name: str, box: list[float], size=(WIDTH, HEIGHT), **changes) -> dict:
    """Someone who fills the ellipse in a box."""
    x, y, wide, high = box
    rows, columns = np.ogrid[: size[1], : size[0]]
    mask = ((columns + 0.5 - x) / wide * 2 - 1) ** 2 + ((rows + 0.5 - y) / high * 2 - 1) ** 2 <= 1
    values = {"person": name, "box": box, "mask": encode_mask(mask), "crowd": False, "score": 1.0}
    return values | changes


def picture(seed: int, size=(WIDTH, HEIGHT)) -> np.ndarray:
    """Large patches and fine noise: sharp, and unlike every other seed's."""
    generator = np.random.default_rng(seed)
    patches = cv2.resize(generator.integers(0, 256, (6, 8, 3), np.uint8), size, interpolation=cv2.INTER_CUBIC)
    return np.clip(patches + generator.normal(0, 8, patches.shape), 0, 255).astype(np.uint8)


def save(path: Path, pixels: np.ndarray, **options) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return str(path)


def photograph(folder: Path, name: str, people: list[dict] | None = None, pixels=None, **changes) -> dict:
    """A row of PHOTOGRAPHS and its file: by default, two people who pass every limit."""
    path = folder / "photographs" / f"{name}.png"
    if not path.exists():
        save(path, picture(sum(name.encode())) if pixels is None else pixels)
    return {
        "photograph": f"folder/{name}", "source": "folder", "path": str(path), "width": WIDTH, "height": HEIGHT,
        "licence": "ours", "people": [person("1", RIGHT), person("2", LEFT)] if people is None else people,
        "reason": None, "detail": None, **changes,
    }  # fmt: skip


class Outcome:
    def __init__(self, folder: Path):
        self.folder = folder
        self.paths = {table: folder / f"{table.name.split('/')[1]}.parquet" for table in (SELECTED, CROPS, REJECTED)}
        self.selected, self.crops, self.rejected = (
            read_table(table, path).to_pylist() for table, path in self.paths.items()
        )
        self.names = {row["photograph"] for row in self.selected}
        self.reasons = {row["photograph"]: row["reason"] for row in self.rejected}
        self.details = {row["photograph"]: row["detail"] for row in self.rejected}

    @property
    def bytes(self) -> dict:
        return {path.relative_to(self.folder): path.read_bytes() for path in sorted(self.folder.rglob("*.p*"))}


def run(folder: Path, rows: list[dict], threads: int = 1, **values) -> Outcome:
    output = Path(tempfile.mkdtemp(dir=folder))
    table = folder / f"{output.name}.parquet"
    write_table(PHOTOGRAPHS, rows, table)
    names = (output / f"{name}.parquet" for name in ("selected", "crops", "rejected"))
    select_photographs(table, Selection(**{**SMALL, **values}), MAX_PIXELS, *names, output, threads)
    return Outcome(output)


def run_beside_a_good_one(folder: Path, row: dict, **values) -> Outcome:
    """The outcome of one row; another photograph, which passes, keeps the table from being empty."""
    return run(folder, [photograph(folder, "good"), row], **values)


def test_an_instance_has_its_target_and_a_crop_mask_and_box_for_each_slot_from_left_to_right(tmp_path):
    outcome = run(tmp_path, [photograph(tmp_path, "one")])
    (instance,) = outcome.selected
    assert (instance["instance"], instance["n_subjects"], instance["licence"]) == ("folder-one", 2, "ours")
    assert instance["transforms"] == []
    assert instance["original_sha256"] == sha256_of_file(tmp_path / "photographs/one.png")
    target = np.array(Image.open(outcome.folder / instance["target"]))
    assert (target == picture(sum(b"one"))).all()
    assert instance["sha256"] == sha256_of_file(outcome.folder / instance["target"])
    assert [(row["slot"], row["person"], row["box"]) for row in outcome.crops] == [("A", "2", LEFT), ("B", "1", RIGHT)]
    for row in outcome.crops:
        x, y, wide, high = map(int, row["box"])
        assert (np.array(Image.open(outcome.folder / row["crop"])) == target[y : y + high, x : x + wide]).all()
        mask = np.array(Image.open(outcome.folder / row["mask_file"]))
        assert set(np.unique(mask)) == {0, 255}
        assert ((mask == 255) == decode_mask(row["mask"], HEIGHT, WIDTH)).all()
        assert row["crop_sha256"] == sha256_of_file(outcome.folder / row["crop"])
        assert row["mask_sha256"] == sha256_of_file(outcome.folder / row["mask_file"])
        assert row["area"] == pytest.approx((mask == 255).mean())
        assert row["overlap"] == 0


def two(**changes) -> list[dict]:
    return [person("1", RIGHT), person("2", LEFT) | changes]


def striped(box: list[float], pieces: int) -> str:
    """A mask of so many bars across the whole box."""
    mask = np.zeros((HEIGHT, WIDTH), bool)
    x, y, wide, high = box
    for bar in range(pieces):
        mask[y + bar * high // pieces : y + (bar + 1) * high // pieces - 3, x : x + wide] = True
    mask[y + high - 1, x : x + wide] = True
    return encode_mask(mask)


def lone_corners(box: list[float]) -> str:
    x, y, wide, high = box
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[y : y + 20, x : x + 20] = mask[y + high - 20 : y + high, x + wide - 20 : x + wide] = True
    return encode_mask(mask)


def blurred(where=slice(None)) -> np.ndarray:
    pixels = picture(1)
    pixels[:, where] = cv2.GaussianBlur(pixels, (0, 0), 8)[:, where]
    return pixels


IN_FRONT = [150, 30, 62, 132]  # covers RIGHT
# Reason, a part of the detail, changes of a photograph that passes, settings. None: the reason of the source itself.
FAULTS = [
    ("no_people", "nobody was found", {"reason": "no_people", "detail": "nobody was found"}, {}),
    ("low_resolution", "240 x 180 pixels, at least 181", {}, {"min_side_px": 181}),
    ("broken_box", "person 2: [1.0, 2.0]", {"people": two(box=[1, 2])}, {}),
    ("broken_box", "person 2: ", {"people": two(box=[1, 2, float("nan"), 3])}, {}),
    ("broken_box", "person 2: [1.0, 2.0, 0.0, 3.0]", {"people": two(box=[1, 2, 0, 3])}, {}),
    ("broken_box", "person 2: None", {"people": two(box=None)}, {}),
    ("too_few_people", "1 of at least 2.00%", {"people": [person("1", RIGHT)]}, {}),
    ("too_few_people", "0 of at least", {"people": []}, {}),
    ("too_few_people", "1 of at least 17.00%", {}, {"min_subject_share": 0.17}),
    ("too_few_people", "1 of at least 2.00%", {"people": two(crowd=True)}, {}),
    (
        "too_many_people",
        "5 of at least 2.00% of the photograph, asked for are 2 to 4",
        {"people": [person(str(place), [5 + 45 * place, 20, 40, 140]) for place in range(5)]},
        {},
    ),
    ("too_few_people", "2 of at least 2.00% of the photograph, asked for are 3 to 4", {}, {"min_subjects": 3}),
    (
        "crowd",
        "touches person 2",
        {"people": [*two(), person("crowd", [70, 150, 20, 20], crowd=True)]},
        {"max_bystander_share": 1},
    ),
    (
        "bystanders",
        "2 smaller people or crowds cover 1.39% of the photograph, at most 1.00%",
        {"people": [*two(), person("3", [100, 10, 15, 20]), person("4", [120, 10, 15, 20])]},
        {},
    ),
    ("bystanders", "1 smaller", {"people": [*two(), person("crowd", [90, 40, 50, 60], crowd=True)]}, {}),
    ("small_subject", "person 2: 120 pixels high", {}, {"min_subject_height_px": 121}),
    # 100 pixels on the longer side leave 50 of 120.
    ("small_subject", "person 2: 50 pixels high", {}, {"max_side_px": 100, "min_subject_height_px": 51}),
    ("overlap", "person 1: another subject's box covers 100.0%", {"people": [*two(), person("3", IN_FRONT)]}, {}),
    ("no_mask", "person 2 has none", {"people": two(mask=None)}, {}),
    ("broken_mask", "person 2: run lengths", {"people": two(mask="!")}, {}),
    (
        "broken_mask",
        "person 2: run lengths of another size than 240 x 180",
        {"people": two(mask=encode_mask(np.ones((HEIGHT, WIDTH + 1))))},
        {},
    ),
    ("missing_file", "no such file", {"path": "/nowhere/a.png"}, {}),
    ("broken_file", "cannot be read", {"path": "/"}, {}),
    ("changed_file", "--forcerun list_photographs", {"sha256": "0" * 64}, {}),
    ("other_size", "the file has 240 x 180 pixels, its annotation 250 x 180", {"width": 250, "people": "wider"}, {}),
    ("blurred", "variance of the Laplacian", {"pixels": blurred()}, {}),
    ("blurred", "person 2: variance", {"pixels": blurred(slice(0, 100))}, {}),
    ("hidden", "person 2: the mask covers 11.1% of its box, at least 20.0%", {"people": two(mask=lone_corners(LEFT))}, {}),
    ("hidden", "person 2: nothing is left", {"people": two(mask=encode_mask(np.zeros((HEIGHT, WIDTH))))}, {}),
    ("hidden", "person 1: nothing is left", {"people": [person("2", RIGHT), person("1", RIGHT)]}, {"max_overlap": 1}),
    ("in_pieces", "person 2: the mask has 6 parts, at most 5", {"people": two(mask=striped(LEFT, 6))}, {}),
    ("cut_off", "person 2: 50.0% of the outline", {"people": [person("1", RIGHT), person("2", [0, 90, 60, 90])]}, {}),
]  # fmt: skip
OF_SEVERAL = {"near_duplicate", "quota_full", "source_quota_full", "too_many_pixels"}  # have tests of their own


def test_every_reason_has_its_test():
    assert {fault[0] for fault in FAULTS} - {"no_people"} | OF_SEVERAL == set(REASONS)


@pytest.mark.parametrize(("reason", "detail", "changes", "values"), FAULTS)
def test_a_photograph_is_left_out_with_one_reason_and_the_figure_that_decided(
    tmp_path, reason, detail, changes, values
):
    changes = dict(changes)
    if changes.get("people") == "wider":
        changes["people"] = [person("1", RIGHT, (250, HEIGHT)), person("2", LEFT, (250, HEIGHT))]
    row = photograph(tmp_path, "one", **changes)
    if values:  # a limit that the good one would not pass either
        with pytest.raises(UserError, match=rf"none of its 1 photographs can be taken \({reason} 1\)"):
            run(tmp_path, [row], **values)
        subjects = choose_subjects(row, Selection(**{**SMALL, **values}))
        if isinstance(subjects, Rejection):
            assert (subjects.reason, detail in subjects.detail) == (reason, True), subjects
        return
    outcome = run_beside_a_good_one(tmp_path, row)
    assert outcome.reasons == {"folder/one": reason}
    assert detail in outcome.details["folder/one"], outcome.details
    assert outcome.names == {"folder/good"}
    assert not [path for path in outcome.folder.rglob("*") if "one" in path.name]


def test_what_lies_just_within_the_limits_passes(tmp_path):
    people = [
        *(person("1", RIGHT), person("2", [0, 40, 60, 120])),  # cut along one side
        person("3", [100, 10, 12, 20]),  # 0.56 % of the photograph
        person("crowd", [215, 5, 10, 10], crowd=True),  # small, and touches nobody
    ]
    outcome = run(tmp_path, [photograph(tmp_path, "one", people)])
    assert [(row["slot"], row["person"]) for row in outcome.crops] == [("A", "2"), ("B", "1")]
    assert outcome.crops[0]["at_border"] == pytest.approx(120 / 360)


@pytest.mark.parametrize("content", [b"", b"no picture", b"half"])
def test_a_photograph_that_was_deleted_or_broken_since_it_was_listed_is_reported(tmp_path, content):
    row = photograph(tmp_path, "one")
    path = Path(row["path"])
    path.write_bytes(path.read_bytes()[:2000] if content == b"half" else content)
    assert run_beside_a_good_one(tmp_path, row).reasons == {"folder/one": "broken_file"}
    path.unlink()
    assert run_beside_a_good_one(tmp_path, row).reasons == {"folder/one": "missing_file"}


def test_a_photograph_beyond_the_pixel_limit_is_reported(tmp_path):
    save(tmp_path / "photographs/one.png", np.zeros((1000, 1001, 3), np.uint8))
    row = photograph(tmp_path, "one")
    outcome = run_beside_a_good_one(tmp_path, row)
    assert outcome.reasons == {"folder/one": "too_many_pixels"}
    assert "over the limit of 1000000" in outcome.details["folder/one"]


def test_where_nothing_is_left_the_counts_of_the_reasons_are_told(tmp_path):
    rows = [photograph(tmp_path, "one", people=[]), photograph(tmp_path, "two", path="/nowhere")]
    with pytest.raises(
        UserError, match=r"none of its 2 .* \(missing_file 1, too_few_people 1\); give other photographs"
    ):
        run(tmp_path, rows)
    with pytest.raises(UserError, match="it is empty"):
        run(tmp_path, [])


def test_people_who_are_large_enough_are_subjects_whatever_their_number(tmp_path):
    boxes = [[5 + 58 * place, 20, 50, 140] for place in range(4)]
    for count in (2, 3, 4):
        people = [person(str(place), boxes[place]) for place in reversed(range(count))]
        outcome = run(tmp_path, [photograph(tmp_path, "one", people)])
        assert "".join(row["slot"] for row in outcome.crops) == "ABCD"[:count]
        assert [row["person"] for row in outcome.crops] == ["0", "1", "2", "3"][:count]


def test_slots_follow_the_mask_s_centre_not_the_box_and_the_box_where_centres_are_equal():
    first, second = np.zeros((40, 60), bool), np.zeros((40, 60), bool)
    first[0:10, 10:12] = first[30, 10:60] = True  # its box reaches to the right, most of it stands left
    second[12:28, 14:50] = True
    people = [{"person": "second"}, {"person": "first"}]
    for order in (1, -1):
        pairs = left_to_right(people[::order], [second, first][::order])
        assert [subject["person"] for subject, _ in pairs] == ["first", "second"]
    above, below = np.zeros((40, 60), bool), np.zeros((40, 60), bool)
    above[2:8, 20:30] = below[20:30, 20:30] = True
    for order in (1, -1):
        pairs = left_to_right([{"person": "z"}, {"person": "a"}][::order], [above, below][::order])
        assert [subject["person"] for subject, _ in pairs] == ["z", "a"]


# Quotas, and the order in which photographs are taken.


def many(folder: Path, count: int, n_subjects=lambda number: 2 + number % 3) -> list[dict]:
    """So many photographs of 2, 3 and 4 people, from two sources."""
    rows = []
    for number in range(count):
        people = [person(str(place), [5 + 58 * place, 20, 50, 140]) for place in range(n_subjects(number))]
        source = ("coco", "mhp")[number % 2]
        name = f"p{number:03}"
        path = folder / "photographs" / f"{name}.png"
        if not path.exists():
            save(path, picture(number))
        rows.append(photograph(folder, name, people, photograph=f"{source}/{name}", source=source))
    return rows


def test_quotas_by_number_of_subjects_and_by_source_are_filled_and_no_further(tmp_path):
    rows = many(tmp_path, 12)
    outcome = run(tmp_path, rows, quotas={2: 2, 4: 1})
    numbers = sorted(row["n_subjects"] for row in outcome.selected)
    assert numbers == [2, 2, 3, 3, 3, 3, 4]  # a number without an entry has no limit
    assert sorted(outcome.reasons.values()) == ["quota_full"] * 5
    assert {"2 photographs of 2 subjects are taken", "1 photographs of 4 subjects are taken"} == set(
        outcome.details.values()
    )
    outcome = run(tmp_path, rows, source_quotas={"coco": 4})
    assert sorted(row["source"] for row in outcome.selected) == ["coco"] * 4 + ["mhp"] * 6
    assert set(outcome.reasons.values()) == {"source_quota_full"}
    outcome = run(tmp_path, rows, quotas={2: 0}, source_quotas={"mhp": 0})
    assert {(row["n_subjects"], row["source"]) for row in outcome.selected} == {(3, "coco"), (4, "coco")}


def test_quotas_that_are_not_filled_are_told(tmp_path, capsys):
    run(tmp_path, many(tmp_path, 6), quotas={2: 2, 3: 9}, source_quotas={"coco": 3, "cihp": 1})
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("multibind.selection.")]
    assert told == [
        "multibind.selection.quotas.3: 2 of 9 photographs were found",
        "multibind.selection.source_quotas.cihp: 0 of 1 photographs were found",
    ]


def test_photographs_are_not_opened_once_their_quota_is_full(tmp_path):
    rows = [row | {"path": row["path"] if row["source"] == "coco" else "/nowhere"} for row in many(tmp_path, 6)]
    outcome = run(tmp_path, rows, source_quotas={"mhp": 0})
    assert set(outcome.reasons.values()) == {"source_quota_full"}


def test_another_seed_chooses_others(tmp_path):
    rows = many(tmp_path, 8, lambda _: 2)
    chosen = {tuple(sorted(run(tmp_path, rows, quotas={2: 4}, seed=seed).names)) for seed in range(3)}
    assert len(chosen) > 1


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("shared")


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 7), st.dictionaries(st.integers(2, 4), st.integers(0, 3), max_size=3))
def test_neither_the_order_of_the_rows_nor_further_rows_change_who_is_chosen(shared, seed, size, quotas):
    rows, generator = many(shared, 8), random.Random(seed)
    few = generator.sample(rows, size)

    def chosen(some: list[dict]) -> Outcome | None:
        try:
            return run(shared, some, quotas=quotas)
        except UserError:  # the quotas let nobody in
            return None

    among_many, shuffled, among_few = chosen(rows), chosen(generator.sample(rows, len(rows))), chosen(few)
    assert (among_many and among_many.bytes) == (shuffled and shuffled.bytes)
    if among_many:
        assert among_many.names | set(among_many.reasons) == {row["photograph"] for row in rows}
        assert not among_many.names & set(among_many.reasons)
        # Who is chosen among many is chosen among few, and without quotas the other way round as well.
        here = {row["photograph"] for row in few}
        assert among_many.names & here <= (among_few.names if among_few else set())
        assert quotas or among_few.names == here


# Near-duplicates.


def test_the_same_photograph_darker_and_recompressed_is_taken_once(tmp_path):
    path = save(tmp_path / "photographs/copy.jpg", (picture(5) * 0.8).astype(np.uint8), quality=70)
    rows = [
        photograph(tmp_path, "one", pixels=picture(5)),
        photograph(tmp_path, "copy", path=path),
        photograph(tmp_path, "other"),
    ]
    outcome = run(tmp_path, rows)
    assert len(outcome.names) == 2
    assert "folder/other" in outcome.names
    (left_out,) = outcome.reasons
    assert outcome.reasons[left_out] == "near_duplicate"
    (kept,) = outcome.names - {"folder/other"}
    assert f"of 64 bits differ from {kept}" in outcome.details[left_out]
    name = left_out.replace("/", "-")
    assert not [path for path in outcome.folder.rglob("*") if path.name.startswith(name)]
    assert {path.name for path in (outcome.folder / "targets").iterdir()} == {
        "folder-other.png",
        f"{kept.replace('/', '-')}.png",
    }
    assert run(tmp_path, rows, duplicate_bits=None).names == {"folder/one", "folder/copy", "folder/other"}


def test_no_two_that_were_taken_are_as_close_as_the_limit_and_each_left_out_is_close_to_one(tmp_path):
    def between(share: float, seed: int) -> np.ndarray:
        return np.clip(picture(3) * (1 - share) + picture(seed) * share, 0, 255).astype(np.uint8)

    rows = [photograph(tmp_path, f"p{step}", pixels=between(step / 12, step + 50)) for step in range(10)]
    outcome = run(tmp_path, rows, duplicate_bits=10)
    hashes = {row["photograph"]: imagehash.phash(Image.open(row["path"])) for row in rows}
    taken = sorted(outcome.names)
    assert 1 < len(taken) < 10
    assert all(hashes[a] - hashes[b] > 10 for a in taken for b in taken if a < b)
    assert all(min(hashes[name] - hashes[other] for other in taken) <= 10 for name in outcome.reasons)
    for row in outcome.selected:
        assert row["perceptual_hash"] == str(hashes[row["photograph"]])


# Upright, scaled, and each pixel to one person.


def test_a_photograph_is_turned_upright_as_its_exif_says(tmp_path):
    upright = picture(7)
    exif = Image.Exif()
    exif[0x0112] = 6  # shown upright when turned by 90 degrees clockwise
    path = save(tmp_path / "photographs/turned.png", np.ascontiguousarray(np.rot90(upright)), exif=exif)
    outcome = run(tmp_path, [photograph(tmp_path, "turned", path=path)])
    assert outcome.selected[0]["transforms"] == ["turned upright by EXIF orientation 6"]
    assert (np.array(Image.open(outcome.folder / outcome.selected[0]["target"])) == upright).all()


def test_all_that_was_done_is_told_in_order_and_people_s_boxes_shrink_along(tmp_path):
    grey = cv2.cvtColor(picture(7), cv2.COLOR_RGB2GRAY)
    exif = Image.Exif()
    exif[0x0112] = 3
    path = save(tmp_path / "photographs/grey.png", np.ascontiguousarray(np.rot90(grey, 2)), exif=exif)
    outcome = run(
        tmp_path,
        [photograph(tmp_path, "grey", path=path)],
        max_side_px=120, min_subject_height_px=30, min_subject_sharpness=0, min_sharpness=0,
    )  # fmt: skip
    assert outcome.selected[0]["transforms"] == [
        "turned upright by EXIF orientation 3",
        "converted from L to RGB",
        "scaled from 240 x 180 to 120 x 90",
    ]
    assert [row["box"] for row in outcome.crops] == [[side / 2 for side in LEFT], [side / 2 for side in RIGHT]]
    target = np.array(Image.open(outcome.folder / outcome.selected[0]["target"]))
    assert target.shape == (90, 120, 3)
    assert abs(target[..., 0].astype(float) - grey.reshape(90, 2, 120, 2).mean((1, 3))).max() <= 0.5
    for row in outcome.crops:
        mask = decode_mask(row["mask"], 90, 120)
        assert box_of_mask(mask) == row["box"]
        assert Image.open(outcome.folder / row["crop"]).size == tuple(map(int, row["box"][2:]))


def test_a_photograph_within_the_limit_is_never_scaled_up():
    assert target_size(640, 480, 1024) == (640, 480)
    assert target_size(4000, 3000, 1024) == (1024, 768)
    assert target_size(3000, 4000, 1024) == (768, 1024)
    assert target_size(9000, 2, 1024) == (1024, 1)


def test_of_overlapping_masks_the_smaller_keeps_the_pixels(tmp_path):
    behind, in_front = [40, 20, 120, 150], [110, 60, 80, 110]
    outcome = run(tmp_path, [photograph(tmp_path, "one", [person("front", in_front), person("behind", behind)])])
    masks = {row["person"]: decode_mask(row["mask"], HEIGHT, WIDTH) for row in outcome.crops}
    whole = decode_mask(person("front", in_front)["mask"], HEIGHT, WIDTH)
    assert (masks["front"] == whole).all()
    assert (masks["behind"] == decode_mask(person("behind", behind)["mask"], HEIGHT, WIDTH) & ~whole).all()
    overlap = {row["person"]: row["overlap"] for row in outcome.crops}
    assert overlap["front"] > overlap["behind"] > 0


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(0.2, 1), st.floats(1, 9))
def test_no_pixel_lies_in_two_masks_at_any_scale(seed, count, density, factor):
    generator = np.random.default_rng(seed)
    width, height = generator.integers(8, 64, 2)
    masks = without_shared_pixels([generator.random((height, width)) < density for _ in range(count)])
    size = max(1, round(width / factor)), max(1, round(height / factor))
    assert sum(mask.astype(int) for mask in masks).max() <= 1
    assert sum(scaled_mask(mask, size).astype(int) for mask in masks).max() <= 1


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_a_pixel_of_a_scaled_mask_is_set_where_more_than_half_of_it_was(seed, factor):
    mask = np.random.default_rng(seed).random((6 * factor, 8 * factor)) < 0.5
    shares = mask.reshape(6, factor, 8, factor).mean((1, 3))
    assert (scaled_mask(mask, (8, 6)) == (shares > 0.5)).all()


# Processes and interruptions.


def test_the_number_of_processes_changes_nothing(tmp_path):
    rows = [*many(tmp_path, 8), photograph(tmp_path, "one", path="/nowhere"), photograph(tmp_path, "two")]
    rows.append(rows[0] | {"photograph": "coco/again"})
    quotas = {2: 2, 3: 2}
    assert run(tmp_path, rows, 1, quotas=quotas).bytes == run(tmp_path, rows, 2, quotas=quotas).bytes


def test_a_process_that_dies_is_one_line(tmp_path):
    results = selection._in_order(os._exit, [None], lambda _: 1, lambda _: True, threads=2)
    with pytest.raises(UserError, match="run again with fewer threads"):
        list(results)


@pytest.mark.parametrize("moment", [1, 2, 5])
def test_an_interruption_leaves_no_half_file(tmp_path, monkeypatch, moment):
    rows, count, replace = many(tmp_path, 2), 0, Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count > moment:
            raise KeyboardInterrupt
        return replace(path, target)

    def start():
        output = tmp_path / "output"
        write_table(PHOTOGRAPHS, rows, tmp_path / "rows.parquet")
        monkeypatch.setattr(Path, "replace", interrupted)
        names = (output / f"{name}.parquet" for name in ("selected", "crops", "rejected"))
        select_photographs(tmp_path / "rows.parquet", Selection(**SMALL), MAX_PIXELS, *names, output)

    with pytest.raises(KeyboardInterrupt):
        start()
    files = [path for path in (tmp_path / "output").rglob("*") if path.is_file()]
    assert len(files) == moment
    for path in files:
        Image.open(path).load()


# Names, settings, and the photographs that the default config reads.


def test_names_of_files_are_those_of_the_photographs_and_never_shared():
    assert instance_id("coco/000000001") == "coco-000000001"
    ids = [
        "folder/a/b",
        "folder/a-b",
        "folder/a b",
        "folder/../b",
        "folder/ä",
        "folder/" + "x" * 300,
        "folder/a.b",
        "../x",
    ]
    names = [instance_id(identifier) for identifier in ids]
    assert len(set(names)) == len(ids)
    assert all("/" not in name and len(name) < 110 and name[0] not in ".-" and name.isascii() for name in names)


@pytest.mark.parametrize(
    "values",
    [
        {"min_subjects": 4, "max_subjects": 3},
        {"max_subjects": 5},
        {"quotas": {5: 1}},
        {"quotas": {4: 1}, "max_subjects": 3},
        {"quotas": {2: -1}},
        {"source_quotas": {"cocoa": 1}},
        {"max_side_px": 100, "min_subject_height_px": 200},
        {"duplicate_bits": 64},
        {"min_filled": 1.5},
    ],
)
def test_settings_that_cannot_be_are_refused(values):
    with pytest.raises(ValidationError):
        Selection(**values)


def test_the_paper_s_quotas_survive_the_json_between_rules():
    paper = Selection(quotas={2: 118, 3: 269, 4: 121})
    assert Selection.model_validate_json(paper.model_dump_json()) == paper
    assert sum(paper.quotas.values()) == 508


def test_the_photographs_of_the_installed_ultralytics_pass_the_default_limits(tmp_path):
    folder = Path(importlib.util.find_spec("ultralytics").origin).parent / "assets"
    people = {
        "zidane": ((1280, 720), [[123, 197, 988, 513], [747, 41, 395, 671]]),
        "bus": ((810, 1080), [[50, 400, 195, 504], [670, 392, 140, 489], [222, 405, 123, 455], [0, 550, 63, 323]]),
    }
    rows = [
        photograph(
            tmp_path, name, [person(str(place), box, size) for place, box in enumerate(boxes)],
            path=str(folder / f"{name}.jpg"), width=size[0], height=size[1], photograph=f"builtin/{name}", source="builtin",
        )
        for name, (size, boxes) in people.items()
    ]  # fmt: skip
    output = tmp_path / "output"
    write_table(PHOTOGRAPHS, rows, tmp_path / "rows.parquet")
    names = (output / f"{name}.parquet" for name in ("selected", "crops", "rejected"))
    select_photographs(tmp_path / "rows.parquet", Selection(), 50 * 10**6, *names, output)
    outcome = Outcome(output)
    assert outcome.rejected == []
    assert [(row["instance"], row["n_subjects"]) for row in outcome.selected] == [
        ("builtin-bus", 4),
        ("builtin-zidane", 2),
    ]
    assert [row["person"] for row in outcome.crops] == ["3", "0", "2", "1", "0", "1"]
