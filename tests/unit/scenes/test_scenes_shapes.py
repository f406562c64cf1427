"""Where the drawings come from, and what happens when they do not come."""

import json
import os
from pathlib import Path

import pytest
from bindbench.errors import UserError
from bindbench.scenes import shapes as module
from bindbench.scenes.shapes import OWN_SHAPES, fetch_shapes, noto_names, read_fetched, read_svg

NOTO = Path("results/scenes/noto.json")


def test_fetched_file_holds_exactly_the_named_icons(noto_shapes, shapes):
    fetched = read_fetched(noto_shapes)
    assert set(fetched) == noto_names(shapes)
    assert len(fetched) == 195
    assert all(text.startswith("<svg") and "<path" in text for text in fetched.values())


def test_every_own_shape_is_used_and_every_used_one_exists(shapes):
    used = {shape.removeprefix("own:") for shape in shapes if shape.startswith("own:")}
    assert used == {path.stem for path in OWN_SHAPES.glob("*.svg")}
    assert len(used) == 37


def test_another_package_under_the_same_name_is_refused(tmp_path, monkeypatch):
    tarball = tmp_path / "noto.tgz"
    tarball.write_bytes(b"something else")
    monkeypatch.setenv("BINDBENCH_SHAPES_TARBALL", str(tarball))
    with pytest.raises(UserError, match=r"is not @iconify-json/noto@1\.2\.9: its hash is"):
        fetch_shapes(tmp_path / "out.json", {"teapot"})
    assert not (tmp_path / "out.json").exists()


def test_named_tarball_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("BINDBENCH_SHAPES_TARBALL", str(tmp_path / "nowhere.tgz"))
    with pytest.raises(UserError, match=r"BINDBENCH_SHAPES_TARBALL: .*nowhere\.tgz cannot be read"):
        fetch_shapes(tmp_path / "out.json", {"teapot"})


def test_npm_without_network_is_one_line_that_says_what_to_do(tmp_path, monkeypatch):
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error network ENOTFOUND' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.delenv("BINDBENCH_SHAPES_TARBALL", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(UserError, match=r"npm could not get .*ENOTFOUND.*check the network") as caught:
        fetch_shapes(tmp_path / "out.json", {"teapot"})
    assert "\n" not in str(caught.value)


def test_npm_of_the_python_package_serves_where_the_machine_has_none(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    command = module._npm()
    result = module.subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.strip()[0].isdigit()


def test_icon_that_the_package_does_not_have_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_tarball", lambda: b"")
    monkeypatch.setattr(module, "_verified", lambda tarball: tarball)
    icons = {
        "icons": {"teapot": {"body": "<path/>"}},
        "aliases": {"tea": {"parent": "teapot"}},
        "width": 1,
        "height": 1,
    }
    monkeypatch.setattr(module, "_icons", lambda tarball: icons)
    with pytest.raises(UserError, match="has no icon flying-teapot"):
        fetch_shapes(tmp_path / "out.json", {"teapot", "flying-teapot"})
    fetch_shapes(tmp_path / "out.json", {"tea"})
    assert "<path/>" in json.loads((tmp_path / "out.json").read_text())["tea"]
    fetch_shapes(tmp_path / "out.json")
    assert set(read_fetched(tmp_path / "out.json")) == {"tea", "teapot"}


def test_three_kinds_of_reference(tmp_path):
    (tmp_path / "mine.svg").write_text("<svg/>")
    assert read_svg("noto:teapot", {"teapot": "<svg>t</svg>"}, NOTO) == "<svg>t</svg>"
    assert read_svg("own:cube", {}, NOTO).startswith("<svg")
    assert read_svg(str(tmp_path / "mine.svg"), {}, NOTO) == "<svg/>"


@pytest.mark.parametrize("shape", ["noto:teapot", "own:teapot", "own:../secret", "no/such/file.svg"])
def test_reference_to_nothing_is_named(shape):
    with pytest.raises(UserError, match=f"shape {shape}: "):
        read_svg(shape, {}, NOTO)


def test_an_icon_that_is_not_in_the_fetched_file_names_the_remedy():
    with pytest.raises(UserError, match=r"shape noto:teapot: .*delete results/scenes/noto\.json and run again"):
        read_svg("noto:teapot", {"cup": "<svg/>"}, NOTO)
    whole = {f"icon-{number}": "<svg/>" for number in range(1001)}
    with pytest.raises(UserError, match=r"shape noto:teapot: @iconify-json/noto@1\.2\.9 has no icon teapot"):
        read_svg("noto:teapot", whole, NOTO)


def test_reference_to_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "picture.svg"
    path.write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(UserError, match="cannot be read as SVG"):
        read_svg(str(path), {}, NOTO)


@pytest.mark.parametrize("content", ["{", "[]", '{"teapot": 1}'])
def test_broken_file_of_fetched_shapes(tmp_path, content):
    path = tmp_path / "noto.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"noto\.json: .*delete it and run again"):
        read_fetched(path)
