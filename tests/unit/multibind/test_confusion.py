"""Sections 3.3 and 3.4: each known fault is found as itself and as nothing else; what the patterns exclude and imply."""

from itertools import combinations, permutations

import numpy as np
import plain_confusion
import pytest
from bindbench.multibind.confusion import (
    OUTCOMES,
    PATTERNS,
    Matrices,
    has_one_row,
    has_patterns,
    js_shift,
    largest_other,
    links,
    matrices,
    mean_deltas,
    outcomes,
    patterns,
    restrict,
    undiagnosable,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_people import ALIKE, CONFUSION, SELF, padded, people, shown

CELLS = ("success", "drift", "replaced", "mixed")


def flags(slots, size: int = 4) -> np.ndarray:
    return np.isin(np.arange(size), list(slots))


def subsets(slots) -> list[tuple[int, ...]]:
    slots = list(slots)
    return [part for size in range(len(slots) + 1) for part in combinations(slots, size)]


def made(who: list, rows=None, columns=None) -> Matrices:
    """Similarities of an instance that shows `who`, with R_d and V_d as given."""
    true = people(len(who))
    everyone = range(len(who))
    return matrices(
        padded(shown(true, who) @ true.T),
        padded(true @ true.T),
        flags(everyone if rows is None else rows),
        flags(everyone if columns is None else columns),
    )


def pattern_names(found) -> set[str]:
    return {name for name, holds in patterns(found).items() if holds}


def every_selection(n: int) -> list[tuple[tuple, tuple]]:
    """Every R_d within every V_d: missing rows, and specialists that see nothing in a real or a generated crop."""
    return [(rows, columns) for columns in subsets(range(n)) for rows in subsets(columns)]


def judged(who: list):
    """For every selection: R_d, V_d, the cell of each slot (None: no outcome) and the names of the patterns."""
    selections = every_selection(len(who))
    parts = [made(who, rows, columns) for rows, columns in selections]
    data = Matrices(*(np.stack(part) for part in zip(*parts, strict=True)))
    found = links(data, SELF, CONFUSION)
    cells, names = outcomes(found), patterns(found)
    assert (sum(cells[name].astype(int) for name in CELLS) == data.rows).all()
    for number, (rows, columns) in enumerate(selections):
        of_slot = [next((name for name in CELLS if cells[name][number, slot]), None) for slot in range(4)]
        yield rows, columns, of_slot, {name for name in PATTERNS if names[name][number]}


def moves(n: int) -> list[list[int]]:
    """Every way in which at least two of n people change places: swaps, cycles, two swaps at once."""
    return [list(order) for order in permutations(range(n)) if list(order) != list(range(n))]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_target_is_consistent_and_has_no_pattern_and_no_shift(n):
    for rows, columns, cells, names in judged(list(range(n))):
        assert [cells[slot] for slot in rows] == ["success"] * len(rows)
        assert not names
        shift = js_shift(made(list(range(n)), rows, columns), 0.1)
        assert np.all(shift[np.isfinite(shift)] == 0)
        assert np.isfinite(shift).sum() == (len(rows) if len(columns) >= 2 else 0)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_people_who_change_places_are_a_swap_and_nothing_else(n):
    for who in moves(n):
        for rows, columns, cells, names in judged(who):
            moved = [slot for slot in rows if who[slot] != slot]
            linked = [slot for slot in moved if who[slot] in columns]
            for slot in rows:
                expected = "success" if slot not in moved else "replaced" if slot in linked else "drift"
                assert cells[slot] == expected
            expected = set()
            if linked:
                expected.add("swap_partial")
                if linked == moved:  # whoever shows a person without a column matches nobody
                    expected.add("swap")
                if any(who[who[slot]] == slot and who[slot] in linked for slot in linked):
                    expected.add("swap_2cycle")
            assert names == expected


@pytest.mark.parametrize("n", [2, 3, 4])
def test_one_person_in_every_slot_is_dominance_and_nothing_else(n):
    for copied in range(n):
        for rows, columns, cells, names in judged([copied] * n):
            for slot in rows:
                assert cells[slot] == ("success" if slot == copied else "replaced" if copied in columns else "drift")
            if len(rows) >= 2:
                assert names == ({"dominance", "dominance_total"} if copied in columns else set())


def test_one_person_in_two_of_three_slots_is_dominance_but_not_total():
    assert pattern_names(links(made([0, 0, 2]), SELF, CONFUSION)) == {"dominance"}


@pytest.mark.parametrize("n", [2, 3, 4])
def test_blend_is_blending_never_a_swap_and_dominance_only_where_the_other_is_there_too(n):
    for slot, other in permutations(range(n), 2):
        who = list(range(n))
        who[slot] = (slot, other)
        for rows, columns, cells, names in judged(who):
            if slot not in rows:
                continue
            assert cells[slot] == ("mixed" if other in columns else "success")
            assert all(cells[row] == "success" for row in rows if row != slot)
            expected = {"blending"} if other in columns else set()
            if other in rows:  # two subjects match the other's column: more links than columns
                expected.add("dominance")
                if len(rows) == 2:
                    expected.add("dominance_total")
            assert names == expected


def test_blend_of_two_others_is_blending_and_nothing_else_where_they_have_drifted():
    assert pattern_names(links(made([(1, 2), None, None]), SELF, CONFUSION)) == {"blending"}
    assert pattern_names(links(made([(0, 1), None, 2]), SELF, CONFUSION)) == {"blending"}


@pytest.mark.parametrize("n", [2, 3, 4])
def test_blur_is_drift_and_has_no_pattern(n):
    for blurred in subsets(range(n)):
        who = [None if slot in blurred else slot for slot in range(n)]
        for rows, _, cells, names in judged(who):
            assert [cells[slot] for slot in rows] == ["drift" if slot in blurred else "success" for slot in rows]
            assert not names


def test_slots_outside_the_rows_have_no_outcome():
    found = links(made([1, 0, 2], rows=(0, 2)), SELF, CONFUSION)
    assert not any(outcomes(found)[name][[1, 3]].any() for name in OUTCOMES)


def test_delta_at_the_threshold_counts():
    data = matrices(
        padded(np.array([[0.75, 0.5], [0.25, 1.0]])),
        padded(np.array([[1.0, 0.25], [0.25, 1.0]])),
        flags((0, 1)),
        flags((0, 1)),
    )
    assert links(data, -0.25, 0.25).consistent[:2].tolist() == [True, True]
    assert links(data, -0.25, 0.25).confused[0].tolist() == [False, True, False, False]
    above = links(data, np.nextafter(-0.25, 1), np.nextafter(0.25, 1))
    assert above.consistent[:2].tolist() == [False, True]
    assert not above.confused.any()


def test_infinite_thresholds_hold_for_every_row_or_for_none_and_never_outside():
    data = made([1, 0, 2], rows=(0, 1), columns=(0, 1))
    everything = links(data, -np.inf, -np.inf)
    assert everything.consistent.tolist() == [True, True, False, False]
    assert everything.confused.sum() == 2
    nothing = links(data, np.inf, np.inf)
    assert not nothing.consistent.any()
    assert not nothing.confused.any()


@pytest.mark.parametrize("place", [(0, 0), (0, 2)])
@pytest.mark.parametrize("which", ["s_gen", "s_gt"])
def test_similarity_that_is_no_number_makes_its_row_invalid_and_no_other(which, place):
    parts = made([1, 0, 2])._asdict()
    parts[which] = parts[which].copy()
    parts[which][place] = np.nan
    data = matrices(**parts)
    assert data.rows.tolist() == [False, True, True, False]
    assert not any(outcomes(links(data, SELF, CONFUSION))[name][0] for name in OUTCOMES)
    assert np.isnan(js_shift(data, 0.1)[0])
    assert np.isnan(mean_deltas(data)["diagonal"][0])


def test_row_without_a_valid_real_crop_is_no_row():
    assert made([0, 1], rows=(0, 1), columns=(0,)).rows.tolist() == [True, False, False, False]


def test_restricted_rows_keep_every_column():
    data = restrict(made([1, 1, 2]), flags((0,)))
    assert data.rows.tolist() == [True, False, False, False]
    assert data.columns.tolist() == [True, True, True, False]
    assert links(data, SELF, CONFUSION).confused[0, 1]


def test_patterns_need_two_rows_and_one_row_needs_two_columns():
    cases = {(): (False, False), (0,): (False, True), (0, 1): (True, False)}
    for rows, expected in cases.items():
        data = made([0, 1, 2], rows)
        assert (bool(has_patterns(data)), bool(has_one_row(data))) == expected
    assert not has_one_row(made([0, 1], rows=(0,), columns=(0,)))


def test_mean_deltas_by_hand():
    s_gen = padded(np.array([[0.5, 0.75, 0.25], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    data = matrices(s_gen, padded(np.eye(3)), flags((0,)), flags((0, 1, 2)))
    found = mean_deltas(data)
    assert {name: values[0] for name, values in found.items()} == {
        "diagonal": -0.5,
        "off_diagonal_mean": 0.5,
        "off_diagonal_max": 0.75,
    }
    alone = mean_deltas(made([0, 1], rows=(0,), columns=(0,)))
    assert alone["diagonal"][0] == 0
    assert np.isnan(alone["off_diagonal_mean"][0])
    assert np.isnan(alone["off_diagonal_max"][0])


def test_near_identical_people_are_undiagnosable_above_the_limit_only():
    true = people(2, alike=0.96)
    data = matrices(padded(true @ true.T), padded(true @ true.T), flags((0,)), flags((0, 1)))
    similarity, other = largest_other(data)
    assert (similarity[0], other[0]) == (pytest.approx(0.96), 1)
    assert undiagnosable(data, 0.95).tolist() == [True, False, False, False]
    assert not undiagnosable(data, float(similarity[0])).any()
    assert np.isnan(similarity[1])
    assert other[1] == -1
    assert not undiagnosable(made([0, 1]), ALIKE + 0.01).any()


def test_shift_is_undefined_for_one_column_and_bounded_by_log_two():
    assert np.isnan(js_shift(made([0, 1], columns=(0,)), 0.1)).all()
    swapped = made([1, 0])
    assert np.all(js_shift(swapped, 1e-3)[:2] <= np.log(2))
    assert js_shift(swapped, 1e-3)[0] == pytest.approx(np.log(2), abs=1e-12)
    assert js_shift(swapped, 1e6)[0] == pytest.approx(0, abs=1e-9)


def random_case(seed: int) -> Matrices:
    """A coarse grid, so that many deltas lie exactly at a threshold; undefined entries among them."""
    draw = np.random.default_rng(seed)
    s_gen, s_gt = (np.round(draw.uniform(-0.2, 1, (4, 4)) * 10) / 10 for _ in range(2))
    s_gen[draw.random((4, 4)) < 0.02] = np.nan
    n = int(draw.integers(2, 5))
    return matrices(s_gen, s_gt, (draw.random(4) < 0.8) & flags(range(n)), (draw.random(4) < 0.8) & flags(range(n)))


def plain(data: Matrices) -> dict:
    """The same case for the plain computation."""
    letters = plain_confusion.LETTERS
    pairs = [(i, j) for i in range(4) for j in range(4)]
    return {
        "rows": [letters[i] for i in range(4) if data.rows[i]],
        "columns": [letters[j] for j in range(4) if data.columns[j]],
        "s_gen": {(letters[i], letters[j]): float(data.s_gen[i, j]) for i, j in pairs},
        "s_gt": {(letters[i], letters[j]): float(data.s_gt[i, j]) for i, j in pairs},
    }


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.permutations(range(4)))
def test_relabelling_the_slots_permutes_the_rows_and_changes_no_pattern(seed, order):
    data, order = random_case(seed), list(order)
    relabelled = matrices(
        data.s_gen[np.ix_(order, order)], data.s_gt[np.ix_(order, order)], data.rows[order], data.columns[order]
    )
    found, again = links(data, -0.4, 0.2), links(relabelled, -0.4, 0.2)
    assert np.array_equal(again.confused, found.confused[np.ix_(order, order)])
    for name in OUTCOMES:
        assert np.array_equal(outcomes(again)[name], outcomes(found)[name][order])
    assert {name: bool(patterns(again)[name]) for name in PATTERNS} == {
        name: bool(patterns(found)[name]) for name in PATTERNS
    }
    assert js_shift(relabelled, 0.1) == pytest.approx(js_shift(data, 0.1)[order], abs=1e-12, nan_ok=True)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_outcomes_and_patterns_are_those_of_the_plain_computation(seed):
    data = random_case(seed)
    found, case = links(data, -0.4, 0.2), plain(data)
    combined = plain_confusion.binary(case, -0.4, 0.2)
    for slot, letter in enumerate(plain_confusion.LETTERS):
        if letter not in case["rows"]:
            assert not any(outcomes(found)[name][slot] for name in OUTCOMES)
            continue
        confused = any(combined[letter, column] for column in case["columns"] if column != letter)
        expected = plain_confusion.row_flags(bool(combined[letter, letter]), confused)
        assert {name: bool(outcomes(found)[name][slot]) for name in OUTCOMES} == expected
        if len(case["columns"]) >= 2:
            assert js_shift(data, 0.1)[slot] == pytest.approx(plain_confusion.shift(case, letter, 0.1), abs=1e-12)
    if len(case["rows"]) >= 2:
        assert {name: bool(holds) for name, holds in patterns(found).items()} == plain_confusion.image_flags(
            case, combined
        )


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-1, 0.2), st.floats(-0.2, 0.8))
def test_four_cells_partition_the_rows_and_swap_excludes_the_other_patterns(seed, consistency, confusion):
    data = random_case(seed)
    found = links(data, consistency, confusion)
    of_row = outcomes(found)
    assert np.array_equal(sum(of_row[name].astype(int) for name in CELLS), data.rows.astype(int))
    names = pattern_names(found)
    if "swap" in names:
        assert not names & {"dominance", "dominance_total", "blending"}
        assert "swap_partial" in names
    if "dominance_total" in names:
        assert "dominance" in names
    if names:
        assert found.confused.any()
    assert ("blending" in names) == bool(of_row["mixed"].any() or (found.confused.sum(axis=-1) >= 2).any())


def test_many_instances_at_once_are_as_each_alone():
    cases = [random_case(seed) for seed in range(60)]
    together = Matrices(*(np.stack(parts).reshape(10, 6, *parts[0].shape) for parts in zip(*cases, strict=True)))
    found = links(together, -0.4, 0.2)
    for number, case in enumerate(cases):
        at = divmod(number, 6)
        alone = links(case, -0.4, 0.2)
        assert {name: bool(holds[at]) for name, holds in patterns(found).items()} == {
            name: bool(holds) for name, holds in patterns(alone).items()
        }
        assert np.array_equal(js_shift(together, 0.1)[at], js_shift(case, 0.1), equal_nan=True)
