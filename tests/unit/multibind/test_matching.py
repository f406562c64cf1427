"""Who is in which slot: by place alone, each person once, the best of all assignments, and nobody below the gate."""

from contextlib import contextmanager
from itertools import permutations

import numpy as np
import pytest
from bindbench.config.multibind_evaluation import Evaluation
from bindbench.config.multibind_segmentation import Segmentation
from bindbench.errors import UserError
from bindbench.multibind import matching
from bindbench.multibind.evaluation_tables import SLOTS_MATCHED
from bindbench.multibind.generated_tables import GENERATED
from bindbench.multibind.matching import Match, Unmatched, at_size, match_masks, match_subjects, second_match
from bindbench.multibind.tables import SUBJECTS
from bindbench.people.masks import box_of_mask, decode_mask, encode_mask, mask_iou
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from people_models import people_models_folder, save_tiny_yolo
from photograph_instances import make_photographs

HEIGHT, WIDTH = 4, 6
masks = arrays(bool, (HEIGHT, WIDTH))
true_masks = st.lists(masks.filter(np.any), min_size=1, max_size=4)
ANY = 1e-9  # a gate that lets everything through that touches


def some(*columns: int, shape=(HEIGHT, WIDTH)) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[:, list(columns)] = True
    return mask


def best_sum(true, found) -> float:
    """By trying every assignment."""
    longer, shorter = (found, true) if len(found) >= len(true) else (true, found)
    return max(
        (sum(mask_iou(one, other) for one, other in zip(shorter, chosen, strict=True))
         for chosen in permutations(longer, len(shorter))),
        default=0.0,
    )  # fmt: skip


class TestAssignment:
    @given(true_masks, st.lists(masks, max_size=5))
    @settings(max_examples=150, deadline=None)
    def test_no_other_assignment_overlaps_more(self, true, found):
        matched = match_masks(true, found, ANY)
        assert sum(match.iou for match in matched if isinstance(match, Match)) == pytest.approx(best_sum(true, found))

    @given(true_masks, st.lists(masks, max_size=5), st.floats(0.05, 0.9))
    @settings(max_examples=150, deadline=None)
    def test_everybody_at_most_once_with_their_own_overlap_and_none_below_the_gate(self, true, found, gate):
        matched = match_masks(true, found, gate)
        assert len(matched) == len(true)
        pairs = [(mask, match) for mask, match in zip(true, matched, strict=True) if isinstance(match, Match)]
        assert all(match.iou == mask_iou(mask, match.mask) >= gate for mask, match in pairs)
        places = [next(i for i, other in enumerate(found) if other is match.mask) for _, match in pairs]
        assert len(set(places)) == len(places) <= len(found)
        free = match_masks(true, found, ANY)
        for match, ungated in zip(matched, free, strict=True):
            assert isinstance(match, Match) == (isinstance(ungated, Match) and ungated.iou >= gate)

    def test_the_nearest_pair_gives_way_to_the_best_whole(self):
        true = [some(0, 1, 2), some(2, 3)]
        found = [some(1, 2), some(4, 5)]
        matched = match_masks(true, found, ANY)
        assert matched[0].iou == pytest.approx(2 / 3) and matched[1] == Unmatched("not_found")
        # Once A can have another one who overlaps as much, B gets the first, who is nearer to A.
        found = [some(1, 2), some(0, 1)]
        assert [match.iou for match in match_masks(true, found, ANY)] == pytest.approx([2 / 3, 1 / 3])

    def test_people_beyond_the_slots_are_left_over(self):
        true = [some(0, 1), some(3, 4)]
        matched = match_masks(true, [some(5), some(3), some(0, 1), some(2)], 0.1)
        assert [match.iou for match in matched] == [1.0, 0.5]

    def test_reasons_say_what_was_missing(self):
        true = [some(0, 1, 2, 3, 4), some(5)]
        assert match_masks(true, [], 0.1) == [Unmatched("nobody_found")] * 2
        assert match_masks(true, [some(5)], 0.1)[0] == Unmatched("not_found")
        matched = match_masks(true, [some(0), some(5)], 0.5)
        assert matched[0] == Unmatched("little_overlap") and matched[1].iou == 1


class TestSecondLook:
    def test_takes_the_outline_that_agrees_most(self):
        match = second_match(some(1, 2), [some(1, 2, 3), some(1, 2), some(4)], [], 0.4)
        assert match.iou == 1 and np.array_equal(match.mask, some(1, 2))

    def test_who_is_matched_is_nobody_else(self):
        assert second_match(some(1, 2, 3), [some(1, 2, 3)], [some(1, 2)], 0.1) is None

    def test_pixels_of_the_matched_are_theirs(self):
        match = second_match(some(1, 2, 3), [some(1, 2, 3)], [some(3)], 0.4)
        assert np.array_equal(match.mask, some(1, 2)) and match.iou == pytest.approx(2 / 3)

    @pytest.mark.parametrize("seen", [[], [some(5)], [np.zeros((HEIGHT, WIDTH), bool)], [some(3, 4, 5)]])
    def test_little_agreement_is_no_match(self, seen):
        assert second_match(some(1, 2, 3), seen, [], 0.4) is None


class TestSizes:
    @given(masks.filter(np.any), st.integers(1, 12), st.integers(1, 12))
    @settings(max_examples=100, deadline=None)
    def test_a_subject_never_vanishes(self, mask, height, width):
        scaled = at_size(mask, height, width)
        assert scaled.shape == (height, width) and scaled.any()

    def test_the_same_size_changes_nothing(self):
        assert at_size(some(1), HEIGHT, WIDTH) is not None and np.array_equal(at_size(some(1), HEIGHT, WIDTH), some(1))


@pytest.fixture(scope="module")
def models():
    return people_models_folder()


@pytest.fixture(scope="module")
def photographs(tmp_path_factory, models):
    return make_photographs(tmp_path_factory.mktemp("photographs"), models)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def run(photographs, pictures, place, models, cache, settings=None, segmentation=None, version=1) -> dict[tuple, dict]:
    """Rows of SLOTS_MATCHED by generator, instance and slot."""
    generated = photographs.write_generated(pictures, place)
    return matched_rows(photographs, generated, place, models, cache, settings, segmentation, version)


def matched_rows(photographs, generated, place, models, cache, settings=None, segmentation=None, version=1):
    out = place / "matched.parquet"
    match_subjects(
        generated, place, *photographs.tables, settings or Evaluation(), segmentation or Segmentation(), models, out,
        cache, version,
    )  # fmt: skip
    rows = read_table(SLOTS_MATCHED, out).to_pylist()
    return {(row["generator"], row["instance"], row["slot"]): row for row in rows}


def all_of(photographs, generator: str, make) -> dict:
    return {(generator, name): make(name) for name in photographs.images}


class TestPhotographs:
    """The embedded segmentation on real people."""

    def test_the_photograph_itself_is_matched_whole(self, photographs, models, cache, tmp_path):
        rows = run(photographs, all_of(photographs, "g", photographs.images.get), tmp_path, models, cache)
        assert len(rows) == 4
        for (_, name, slot), row in rows.items():
            mask = photographs.masks[name]["AB".index(slot)]
            assert row["matched"] and row["iou"] == 1 and row["reason"] is None
            assert np.array_equal(decode_mask(row["mask"], *mask.shape), mask) and row["box"] == box_of_mask(mask)

    def test_the_swapped_stay_where_they_are(self, photographs, models, cache, tmp_path):
        pictures = {("g", "bus"): photographs.swapped("bus"), ("g", "zidane"): None}
        rows = run(photographs, pictures, tmp_path, models, cache)
        for slot in "AB":
            row = rows["g", "bus", slot]
            x, y, width, height = box_of_mask(photographs.masks["bus"]["AB".index(slot)])
            left, top, wide, high = row["box"]
            assert row["matched"] and x <= left + wide / 2 < x + width and y <= top + high / 2 < y + height

    def test_faceless_people_are_found_by_the_second_look(self, photographs, models, cache, tmp_path):
        rows = run(photographs, all_of(photographs, "g", photographs.blurred), tmp_path, models, cache)
        assert all(row["matched"] and row["iou"] >= 0.4 for row in rows.values())
        # And by it alone: with a gate that it cannot reach they are misses.
        rows = run(
            photographs, all_of(photographs, "g", photographs.blurred), tmp_path, models, cache,
            Evaluation(second_look_iou=1),
        )  # fmt: skip
        assert {row["reason"] for row in rows.values()} == {"nobody_found"}

    def test_who_is_missing_is_missed_and_the_other_is_not(self, photographs, models, cache, tmp_path):
        pictures = all_of(photographs, "g", lambda name: photographs.without(name, "A"))
        rows = run(photographs, pictures, tmp_path, models, cache)
        for (_, _, slot), row in rows.items():
            assert row["matched"] == (slot == "B")
            assert (row["mask"] is None) == (row["box"] is None) == (row["iou"] is None) == (slot == "A")

    def test_a_smaller_picture_has_masks_of_its_own_size(self, photographs, models, cache, tmp_path):
        small = {("g", name): image[::2, ::2].copy() for name, image in photographs.images.items()}
        rows = run(photographs, small, tmp_path, models, cache)
        for (_, name, slot), row in rows.items():
            mask = decode_mask(row["mask"], *small["g", name].shape[:2])
            assert mask_iou(mask, photographs.masks[name]["AB".index(slot)][::2, ::2]) > 0.7 < row["iou"]


@pytest.fixture
def by_table(monkeypatch):
    """In place of the models: the people of each picture, by the value of its first pixel. Counts the looks."""
    people: dict[int, list[np.ndarray]] = {}
    looks = []

    @contextmanager
    def opened(settings, models):
        yield people

    class Found:
        def __init__(self, mask):
            self.mask = mask

    def segment(image, settings, segmenter):
        looks.append(int(image[0, 0, 0]))
        return [Found(mask) for mask in segmenter[int(image[0, 0, 0])]]

    monkeypatch.setattr(matching, "open_segmenter", opened)
    monkeypatch.setattr(matching, "segment_people", segment)
    monkeypatch.setattr(matching, "poses_at", lambda *arguments: looks.append(-1) or [])
    return people, looks


def plain(photographs, value: int) -> dict[str, np.ndarray]:
    return {name: np.full_like(image, value) for name, image in photographs.images.items()}


class TestTables:
    def test_every_slot_has_a_row_even_without_a_picture(self, photographs, by_table, models, tmp_path):
        rows = run(photographs, all_of(photographs, "g", lambda name: None), tmp_path, models, tmp_path / "cache")
        assert {row["reason"] for row in rows.values()} == {"no_picture"} and len(rows) == 4
        assert not any(row["matched"] for row in rows.values()) and not by_table[1]

    def test_what_was_found_is_kept_whatever_the_gates(self, photographs, by_table, models, tmp_path):
        people, looks = by_table
        bus = photographs.masks["bus"]
        people[7] = [bus[0], bus[1] & (np.arange(bus[1].shape[0]) < 600)[:, None]]
        pictures = {("g", "bus"): plain(photographs, 7)["bus"], ("g", "zidane"): None}
        first = run(photographs, pictures, tmp_path, models, tmp_path / "cache")
        share = first["g", "bus", "B"]["iou"]
        assert looks == [7] and 0.1 < share < 0.9 and first["g", "bus", "A"]["iou"] == 1
        again = run(photographs, pictures, tmp_path, models, tmp_path / "cache")
        assert again == first and looks == [7]
        strict = Evaluation(min_iou=0.9)
        gated = run(photographs, pictures, tmp_path, models, tmp_path / "cache", strict)
        assert gated["g", "bus", "B"]["reason"] == "little_overlap" and looks == [7, -1]
        run(photographs, pictures, tmp_path, models, tmp_path / "cache", version=2)
        assert looks == [7, -1, 7]

    def test_a_broken_finding_is_looked_for_again(self, photographs, by_table, models, tmp_path):
        people, looks = by_table
        people[9] = photographs.masks["bus"]
        pictures = {("g", "bus"): plain(photographs, 9)["bus"], ("g", "zidane"): None}
        first = run(photographs, pictures, tmp_path, models, tmp_path / "cache")
        (file,) = (tmp_path / "cache").rglob("*.json")
        file.write_bytes(file.read_bytes().replace(b'"found":["', b'"found":["0'))
        assert run(photographs, pictures, tmp_path, models, tmp_path / "cache") == first and looks == [9, 9]

    def test_neither_the_order_of_rows_nor_other_generators_matter(self, photographs, by_table, models, tmp_path):
        people, _ = by_table
        people |= {1: photographs.masks["bus"][:1], 2: photographs.masks["zidane"][::-1]}
        pictures = {
            (generator, name): plain(photographs, value)[name]
            for generator in ("x", "y")
            for name, value in (("bus", 1), ("zidane", 2))
        }
        there = run(photographs, pictures, tmp_path / "one", models, tmp_path / "cache")
        back = run(photographs, dict(reversed(pictures.items())), tmp_path / "two", models, tmp_path / "other")
        assert there == back and sum(row["matched"] for row in there.values()) == 6

    def test_a_picture_that_is_another_is_refused(self, photographs, by_table, models, tmp_path):
        generated = photographs.write_generated(all_of(photographs, "g", photographs.images.get), tmp_path)
        (tmp_path / "g-bus.png").write_bytes(b"no picture")
        with pytest.raises(UserError, match=r"g-bus\.png: is not the file that was written down"):
            matched_rows(photographs, generated, tmp_path, models, tmp_path / "cache")

    def test_an_instance_without_a_row_is_named(self, photographs, by_table, models, tmp_path):
        with pytest.raises(UserError, match="g: zidane has no row"):
            run(photographs, {("g", "bus"): None}, tmp_path, models, tmp_path / "cache")

    def test_a_picture_of_an_unknown_instance_is_named(self, photographs, by_table, models, tmp_path):
        generated = photographs.write_generated(all_of(photographs, "g", lambda name: None), tmp_path)
        rows = read_table(GENERATED, generated).to_pylist()
        write_table(GENERATED, [*rows, rows[0] | {"instance": "elsewhere"}], generated)
        with pytest.raises(UserError, match="g: elsewhere is not in the table of instances"):
            matched_rows(photographs, generated, tmp_path, models, tmp_path / "cache")

    @pytest.mark.parametrize(
        ("change", "fault"),
        [
            (lambda row: row | {"mask": "11"}, "run lengths of another size"),
            (lambda row: row | {"mask": encode_mask(np.zeros((1080, 810), bool))}, "an empty mask"),
            (lambda row: row | {"instance": "elsewhere"}, "has no such instance"),
        ],
    )
    def test_broken_subjects_are_named(self, photographs, models, tmp_path, change, fault):
        generated = photographs.write_generated(all_of(photographs, "g", lambda name: None), tmp_path)
        rows = read_table(SUBJECTS, photographs.tables[1]).to_pylist()
        write_table(SUBJECTS, [change(rows[0]), *rows[1:]], tmp_path / "subjects.parquet")
        with pytest.raises(UserError, match=f"slot A: .*{fault}"):
            match_subjects(
                generated, tmp_path, photographs.tables[0], tmp_path / "subjects.parquet", Evaluation(), Segmentation(),
                models, tmp_path / "out.parquet", tmp_path / "cache",
            )  # fmt: skip
        assert not (tmp_path / "out.parquet").exists()

    def test_missing_models_say_how_they_are_made(self, photographs, tmp_path):
        with pytest.raises(UserError, match="build-people-models"):
            run(photographs, all_of(photographs, "g", photographs.images.get), tmp_path, tmp_path, tmp_path / "cache")

    def test_yolo_finds_without_a_second_look(self, photographs, models, tmp_path, monkeypatch):
        weights = save_tiny_yolo(tmp_path / "tiny.pt")
        yolo = Segmentation(method="yolo", yolo_weights=str(weights), yolo_image_px=64)
        monkeypatch.setattr(matching, "poses_at", None)  # would fail when called
        settings = Evaluation(segmentation=yolo, min_iou=0.01)
        pictures = all_of(photographs, "g", photographs.images.get)
        rows = run(photographs, pictures, tmp_path, models, tmp_path / "cache", settings)
        assert any(row["matched"] for row in rows.values())
        found = [row["mask"] for row in rows.values() if row["instance"] == "bus" and row["matched"]]
        assert len(set(found)) == len(found)
