"""A drawing becomes a relief: whole, inflated, with its inner parts; the same bytes for the same drawings."""

import json
from dataclasses import fields

import numpy as np
import pytest
from bindbench.errors import UserError
from bindbench.scenes.relief import build_relief, build_reliefs, read_reliefs, write_reliefs


def svg(body: str, width: int = 128, height: int = 128) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{body}</svg>'


DISC = svg('<circle cx="64" cy="64" r="60" fill="#888"/>')


def test_every_object_has_a_sane_relief(reliefs, shapes):
    assert len(set(shapes)) == len(reliefs) == 232
    for shape in shapes:
        relief = reliefs[shape]
        inside = relief.alpha > 128
        assert max(relief.alpha.shape) == 320, shape
        assert 0.15 < min(relief.aspect) <= 1, shape
        assert inside.mean() > 0.08, shape
        assert relief.elevation[inside].std() > 0, shape
        for edge in (relief.alpha[0], relief.alpha[-1], relief.alpha[:, 0], relief.alpha[:, -1]):
            assert edge.max() == 0, f"{shape} touches the border of its relief"


def test_every_object_but_a_few_simple_ones_has_inner_parts(reliefs, shapes):
    bare = [shape for shape in shapes if (reliefs[shape].groove > 128).mean() < 0.002]
    assert len(bare) <= 5, bare


def test_disc_is_inflated_evenly():
    relief = build_relief(DISC)
    top = np.unravel_index(relief.elevation.argmax(), relief.elevation.shape)
    assert np.hypot(top[0] - 160, top[1] - 160) < 12
    mirrored = relief.elevation[:, ::-1].astype(int)
    assert np.abs(relief.elevation.astype(int) - mirrored).max() < 0.08 * relief.elevation.max()
    assert relief.groove.max() == 0


def test_border_between_two_colours_becomes_a_groove():
    relief = build_relief(
        svg('<circle cx="64" cy="64" r="60" fill="#ddd"/><circle cx="64" cy="64" r="25" fill="#333"/>')
    )
    across = relief.groove[160].astype(int)
    middle = 160 * 25 // 60
    assert across[160 - middle - 6 : 160 - middle + 6].max() > 200
    assert across[155:165].max() < 50
    assert relief.tone[160, 160] < 40 < 200 < relief.tone[160, 20]


def test_loose_bits_beside_the_object_are_dropped():
    relief = build_relief(svg('<path d="M40 40H100V100H40Z" fill="#888"/><circle cx="12" cy="12" r="4" fill="#888"/>'))
    assert relief.aspect == (1.0, 1.0)
    assert (relief.alpha > 128).mean() > 0.9


def test_wide_drawing_keeps_its_aspect():
    relief = build_relief(svg('<path d="M0 0H200V50H0Z" fill="#888"/>', 200, 50))
    assert relief.aspect[0] == 1 and relief.aspect[1] == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("width, height", [(1, 1000), (1000, 1)])
def test_hair_thin_drawing_is_no_crash(width, height):
    relief = build_relief(svg(f'<path d="M0 0H{width}V{height}H0Z" fill="#888"/>', width, height))
    assert (relief.alpha > 128).any()


@pytest.mark.parametrize(
    "text", ["", "no svg", "<svg", "<html/>", '<svg xmlns="http://www.w3.org/2000/svg"><path</svg>']
)
def test_broken_drawing_is_refused(text):
    with pytest.raises(UserError, match="not a drawable SVG"):
        build_relief(text)


@pytest.mark.parametrize("body", ["", '<circle cx="64" cy="64" r="60" fill="none"/>', '<circle r="60" opacity="0.1"/>'])
def test_empty_drawing_is_refused(body):
    with pytest.raises(UserError, match="draws nothing opaque"):
        build_relief(svg(body))


def test_error_names_the_shape(tmp_path):
    (tmp_path / "noto.json").write_text(json.dumps({"hole": svg(""), "disc": DISC}))
    with pytest.raises(UserError, match="shape noto:hole: the SVG draws nothing opaque"):
        build_reliefs(["noto:disc", "noto:hole"], tmp_path / "noto.json", tmp_path / "reliefs.bin")
    assert not (tmp_path / "reliefs.bin").exists()


def test_same_bytes_from_one_process_and_from_two_in_any_order(tmp_path):
    (tmp_path / "noto.json").write_text("{}")
    chosen = ["own:cube", "own:mug", "own:sword"]
    build_reliefs(chosen, tmp_path / "noto.json", tmp_path / "one.bin")
    build_reliefs([*reversed(chosen), "own:mug"], tmp_path / "noto.json", tmp_path / "two.bin", workers=2)
    assert (tmp_path / "one.bin").read_bytes() == (tmp_path / "two.bin").read_bytes()


def test_file_gives_back_what_was_written(tmp_path):
    written = {"own:a": build_relief(DISC), "own:b": build_relief(svg('<path d="M9 9H99V50H9Z"/>'))}
    write_reliefs(tmp_path / "reliefs.bin", written)
    found = read_reliefs(tmp_path / "reliefs.bin")
    assert set(found) == set(written)
    for name, relief in written.items():
        for field in fields(relief):
            expected, got = getattr(relief, field.name), getattr(found[name], field.name)
            assert got.dtype == expected.dtype and np.array_equal(got, expected)
    assert found.digest("own:a") != found.digest("own:b")


def test_a_relief_that_the_file_lacks_and_a_file_that_went_away_are_one_line(tmp_path):
    path = tmp_path / "reliefs.bin"
    write_reliefs(path, {"own:a": build_relief(DISC)})
    found = read_reliefs(path)
    with pytest.raises(UserError, match=r"reliefs\.bin: holds no relief of own:b; delete it"):
        found.digest("own:b")
    path.unlink()
    with pytest.raises(UserError, match=r"reliefs\.bin: damaged; delete it and run again"):
        found["own:a"]


def test_missing_foreign_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "reliefs.bin"
    with pytest.raises(UserError, match="no such file"):
        read_reliefs(path)
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match="not a file of reliefs"):
        read_reliefs(path)
    write_reliefs(path, {"own:a": build_relief(DISC)})
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"reliefs\.bin: damaged; delete it and run again"):
        read_reliefs(path)["own:a"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b'"height":', b'"height":1'),
        lambda data: data.replace(b'"length"', b'"lengtn"'),
        lambda data: data.replace(b'"sha256"', b'"sha257"'),
        lambda data: data[:24],
        lambda data: data[:60],
        lambda data: data[:20] + b"\xff" + data[21:],
    ],
    ids=["height", "no length", "no hash", "cut in its head", "cut in its index", "length of the index"],
)
def test_every_damage_to_the_index_is_the_same_line(tmp_path, damage):
    path = tmp_path / "reliefs.bin"
    write_reliefs(path, {"own:a": build_relief(DISC)})
    damaged = damage(path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    with pytest.raises(UserError, match=r"reliefs\.bin: damaged; delete it and run again"):
        read_reliefs(path)
