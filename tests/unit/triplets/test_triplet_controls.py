"""The controls of B.3: what is drawn, from where, and that draws depend on the number alone."""

from collections import Counter

import pytest
from bindbench.errors import UserError
from bindbench.paths import REPOSITORY
from bindbench.triplets.constructions import CONSTRUCTIONS, LENGTH_BANDS, windows_of
from bindbench.triplets.controls import bands_of, least_length, read_controls, sample_specification

CONTROLS = read_controls(REPOSITORY / "resources/triplets")


def drawn(construction: str, count: int = 1500):
    return [sample_specification(CONTROLS, construction, 0, index) for index in range(count)]


def test_the_lists_yield_81_000_contexts_32_registers_and_16_openers():
    assert (CONTROLS.contexts, len(CONTROLS.registers), len(CONTROLS.openers)) == (81_000, 32, 16)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_every_control_takes_every_value(construction):
    kind, rows = CONSTRUCTIONS[construction], drawn(construction)
    assert {row.register for row in rows} == set(CONTROLS.registers)
    assert {row.opener for row in rows} == set(CONTROLS.openers)
    assert {row.time_of_day for row in rows} == {"", *CONTROLS.times}
    assert {row.weather for row in rows} == {"", *CONTROLS.weathers}
    assert {row.distance for row in rows} == set(windows_of(kind))
    shifts = (2, 3, 4) if kind.objects == 3 else (0,)
    bands = LENGTH_BANDS[1:] if kind.deferred else LENGTH_BANDS
    assert {row.length for row in rows} <= {(low + shift, high + shift) for low, high in bands for shift in shifts}
    assert {row.length[1] - shift for row in rows for shift in shifts} >= {high for _, high in bands}
    assert {row.distractors for row in rows} == ({0, 1, 2, 3} if kind.distractors else {0})
    assert {row.kept for row in rows} == ({0, 1, 2} if construction == "triple_bind_swap" else {0})
    assert {row.swapped_slot for row in rows} == ({0, 1} if construction == "attr_bundle" else {0})
    assert {tuple(sorted(row.query_order)) for row in rows} == {tuple(range(kind.objects))}
    assert len({row.query_order for row in rows}) > 1
    turned = sum(row.reversed for row in rows) / len(rows)
    assert abs(turned - 0.5) < 0.06 if kind.attachment == "anaphoric" else turned == 0


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_the_band_is_long_enough_for_the_distance_and_the_distractors(construction):
    kind = CONSTRUCTIONS[construction]
    for window in windows_of(kind):
        assert bands_of(kind, window), f"no band holds {window}"
    for row in drawn(construction, 500):
        assert least_length(kind, row.distance, row.distractors) <= row.length[1]


def test_controls_are_drawn_independently():
    """No pair of registers and openers is missing or frequent beyond chance."""
    pairs = Counter((row.register, row.opener) for row in drawn("pair_swap", 6000))
    assert len(pairs) == 32 * 16 and max(pairs.values()) < 35  # 11.7 expected


def test_an_example_asks_for_the_same_whatever_else_is_made():
    alone = sample_specification(CONTROLS, "predicative", 3, 77)
    assert alone == [sample_specification(CONTROLS, "predicative", 3, index) for index in range(80)][77]
    assert alone != sample_specification(CONTROLS, "predicative", 4, 77)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("register\nlog\n", r"registers\.csv: row 1: no column instruction"),
        ("register,instruction\nlog,Write.\nLog,Again.\n", r"row 3: register 'Log' stands already in row 2"),
        ("register,instruction\nlog,\n", r"row 2: instruction is empty"),
        ("register,instruction\nlog\n", r"row 2: has fewer cells"),
        ("register,instruction\n", r"row 2: the list is empty"),
        ("", r"row 1: no column"),
    ],
)
def test_a_broken_list_is_told_with_file_and_row(tmp_path, text, fault):
    for source in (REPOSITORY / "resources/triplets").glob("*.csv"):
        (tmp_path / source.name).write_text(source.read_text())
    (tmp_path / "registers.csv").write_text(text)
    with pytest.raises(UserError, match=fault):
        read_controls(tmp_path)
