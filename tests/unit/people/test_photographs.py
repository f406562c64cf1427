"""Pictures from outside: upright, within the limit, and a broken one is a reason, never a crash."""

import io
import struct
import zlib

import numpy as np
import pytest
from bindbench.people.photographs import (
    SUFFIXES,
    Unreadable,
    is_turned_unseen,
    photograph_size,
    read_labels,
    read_photograph,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

LIMIT = 1_000_000
ORIENTATION = 0x0112
# Four colours in the corners of a picture that is wider than high: no two orientations look the same.
PICTURE = np.zeros((16, 32, 3), np.uint8)
PICTURE[:8, :16], PICTURE[:8, 16:], PICTURE[8:, :16] = (250, 0, 0), (0, 250, 0), (0, 0, 250)
# Where row 0 and column 0 of the stored pixels lie in the scene, as the EXIF standard says.
UPRIGHT = {
    1: PICTURE,
    2: PICTURE[:, ::-1],
    3: PICTURE[::-1, ::-1],
    4: PICTURE[::-1],
    5: PICTURE.transpose(1, 0, 2),
    6: PICTURE[::-1].transpose(1, 0, 2),
    7: PICTURE[::-1, ::-1].transpose(1, 0, 2),
    8: PICTURE[:, ::-1].transpose(1, 0, 2),
}


def saved(path, orientation=None, picture=PICTURE, **more):
    exif = Image.Exif()
    if orientation is not None:
        exif[ORIENTATION] = orientation
    Image.fromarray(picture).save(path, exif=exif, **more)
    return path


def refusal(path, limit=LIMIT) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        read_photograph(path, limit)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "tiff", "webp", "jpg"])
def test_every_orientation_comes_out_upright(tmp_path, suffix, orientation):
    more = {"webp": {"lossless": True}, "jpg": {"quality": 100, "subsampling": 0}}.get(suffix, {})
    path = saved(tmp_path / f"a.{suffix}", orientation, **more)
    found, wanted = read_photograph(path, LIMIT), UPRIGHT[orientation]
    assert found.shape == wanted.shape and np.abs(found.astype(int) - wanted).max() < (10 if suffix == "jpg" else 1)
    assert photograph_size(path) == (wanted.shape[1], wanted.shape[0])


def test_upright_is_what_pillow_makes_of_it(tmp_path):
    for orientation in range(1, 9):
        path = saved(tmp_path / f"{orientation}.png", orientation)
        with Image.open(path) as image:
            assert (read_photograph(path, LIMIT) == np.array(ImageOps.exif_transpose(image))).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["png", "tiff", "jpg"])
def test_a_turn_that_keeps_the_size_cannot_be_seen_in_an_annotation(tmp_path, suffix, orientation):
    assert is_turned_unseen(saved(tmp_path / f"a.{suffix}", orientation)) == (orientation in (2, 3, 4))
    square = saved(tmp_path / f"b.{suffix}", orientation, PICTURE[:, :16].copy())
    assert is_turned_unseen(square) == (orientation > 1)


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_a_picture_of_which_nobody_knows_what_is_white_is_refused(tmp_path, kind):
    path = tmp_path / "a.tif"
    Image.fromarray(PICTURE[..., 0].astype(kind)).save(path)
    assert refusal(path).reason == "broken_file" and "32 bits" in str(refusal(path))
    with pytest.raises(Unreadable, match="32 bits"):
        photograph_size(path)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_an_orientation_that_does_not_exist_turns_nothing(tmp_path, orientation):
    path = saved(tmp_path / "a.png", orientation)
    assert (read_photograph(path, LIMIT) == PICTURE).all() and photograph_size(path) == (32, 16)


def test_broken_exif_is_no_reason_to_leave_a_good_picture_out(tmp_path):
    path = tmp_path / "a.jpg"
    Image.fromarray(PICTURE).save(path, exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x05\x01\x12\0\x03", quality=100, subsampling=0)
    assert read_photograph(path, LIMIT).shape == PICTURE.shape and photograph_size(path) == (32, 16)


def test_every_mode_becomes_rgb(tmp_path):
    grey = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"):
        path = tmp_path / f"{mode.replace(';', '')}.{'tiff' if mode == 'CMYK' else 'png'}"
        image = Image.fromarray(grey.astype(np.uint16) * 257) if mode == "I;16" else Image.fromarray(grey).convert(mode)
        image.save(path)
        found = read_photograph(path, LIMIT)
        assert found.shape == (16, 16, 3) and found.dtype == np.uint8
        if mode not in ("1", "P"):
            assert np.abs(found[..., 0].astype(int) - grey).max() <= 1, mode


def test_a_picture_beyond_the_limit_is_never_unpacked(tmp_path):
    path = tmp_path / "bomb.png"
    width = height = 13_000  # its pixels are not even there
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks))
    assert refusal(path).reason == "too_many_pixels"
    with pytest.raises(Unreadable, match="13000 x 13000 pixels, over the limit of 1000000"):
        photograph_size(path, LIMIT)
    assert photograph_size(path) == (width, height)  # the header alone


def test_what_pillow_itself_calls_a_bomb_has_the_same_reason(tmp_path):
    path = tmp_path / "bomb.png"
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", b"") + _chunk(b"IEND", b""))
    assert refusal(path).reason == "too_many_pixels"


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@pytest.mark.parametrize("limit, fits", [(511, False), (512, True)])
def test_the_limit_itself_is_allowed(tmp_path, limit, fits):
    path = saved(tmp_path / "a.png")
    if fits:
        assert read_photograph(path, limit).shape == (16, 32, 3)
    else:
        assert refusal(path, limit).reason == "too_many_pixels"


def test_a_missing_file_and_a_folder_have_their_reasons(tmp_path):
    assert refusal(tmp_path / "none.jpg").reason == "missing_file"
    assert refusal(tmp_path).reason == "broken_file"
    with pytest.raises(Unreadable, match="no such file"):
        photograph_size(tmp_path / "none.jpg")


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xd8", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"x" * 999],
)
def test_what_is_no_photograph_is_refused_and_no_other_program_is_asked(tmp_path, content):
    (tmp_path / "a.jpg").write_bytes(content)
    assert refusal(tmp_path / "a.jpg").reason == "broken_file"


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tiff", "bmp"])
def test_a_truncated_file_is_broken_wherever_it_ends(tmp_path, suffix):
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    whole = io.BytesIO()
    Image.fromarray(noise).save(whole, {"jpg": "JPEG"}.get(suffix, suffix.upper()))
    data, path = whole.getvalue(), tmp_path / f"a.{suffix}"
    for part in (0.02, 0.3, 0.6, 0.9):
        path.write_bytes(data[: int(len(data) * part)])
        assert refusal(path).reason == "broken_file", part


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(kind=st.sampled_from(["JPEG", "PNG", "WEBP", "TIFF", "BMP"]), data=st.data())
def test_damaged_bytes_are_a_picture_or_a_reason_and_the_size_agrees(tmp_path, kind, data):
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    Image.fromarray(PICTURE).save(buffer, kind, **({} if kind == "BMP" else {"exif": exif}))
    content = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "a"
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]) if data.draw(st.booleans()) else content)
    try:
        found = read_photograph(path, LIMIT)
    except Unreadable:
        return
    assert found.dtype == np.uint8 and photograph_size(path, LIMIT) == (found.shape[1], found.shape[0])


def test_labels_keep_their_numbers(tmp_path):
    labels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    palette = Image.fromarray(labels).convert("P")
    palette.putdata(labels.ravel().tolist())
    palette.save(tmp_path / "palette.png")
    Image.fromarray(labels).save(tmp_path / "grey.png")
    Image.fromarray(labels.astype(np.uint16) * 100).save(tmp_path / "deep.png")
    Image.fromarray(np.stack([labels] * 3, 2)).save(tmp_path / "colour.png")
    for name, factor in (("palette", 1), ("grey", 1), ("deep", 100), ("colour", 1)):
        assert read_labels(tmp_path / f"{name}.png", 4, 3).tolist() == (labels.astype(int) * factor).tolist(), name


def test_labels_of_another_size_are_refused_by_their_header(tmp_path):
    saved(tmp_path / "a.png")
    with pytest.raises(Unreadable, match="the mask is 32 x 16, the photograph 16 x 32") as caught:
        read_labels(tmp_path / "a.png", 16, 32)
    assert caught.value.reason == "mask_size"


def test_suffixes_are_of_formats_that_can_be_read(tmp_path):
    for suffix in SUFFIXES:
        Image.fromarray(PICTURE).save(tmp_path / f"a{suffix}")
        assert read_photograph(tmp_path / f"a{suffix}", LIMIT).shape == PICTURE.shape


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tiff", "bmp"])
@pytest.mark.parametrize("orientation", [None, 6])
def test_the_size_is_read_without_unpacking_a_pixel(tmp_path, monkeypatch, suffix, orientation):
    path, unpacked = tmp_path / f"a.{suffix}", []
    if suffix == "bmp":
        Image.fromarray(PICTURE).save(path)
    else:
        saved(path, orientation)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda image: unpacked.append(image))
    photograph_size(path, LIMIT)
    assert not unpacked
