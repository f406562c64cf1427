"""The sheet and the card of MultiBind: everything that an instance is made of is shown, and nothing that could mislead."""

import base64
import io
import json
import re

import pytest
import yaml
from bindbench.config.multibind_quality import Quality
from bindbench.errors import UserError
from bindbench.multibind import sheet as sheets
from bindbench.multibind.assembling import assemble
from bindbench.multibind.prompts import compile_prompt
from bindbench.multibind.sheet import write_card, write_sheet
from bindbench.multibind.showing import prompt_blocks, readable_annotation
from bindbench.multibind.tables import SLOTS
from bindbench.people.outlines import outlines_of, svg_path
from hypothesis import given
from hypothesis import strategies as st
from made_multibind import annotation_of_boxes, make_multibind
from PIL import Image


@pytest.fixture
def made(tmp_path):
    return make_multibind(tmp_path, {"coco-a": 2, "folder-b": 3, "coco-c": 4})


def put_together(made):
    made.write()
    folder = made.folder / "out"
    assemble(*made.paths, None, Quality(), folder)
    return folder


def sheet_of(folder):
    write_sheet(folder / "instances.parquet", folder / "subjects.parquet", folder / "sheet.html")
    return (folder / "sheet.html").read_text(encoding="utf-8")


def card_of(folder):
    tables = folder / "instances.parquet", folder / "subjects.parquet"
    write_card(*tables, folder / "counts.json", folder / "README.md")
    return (folder / "README.md").read_text(encoding="utf-8")


def test_a_sheet_shows_every_instance_with_all_its_pictures_and_asks_for_nothing_outside(made):
    page = sheet_of(put_together(made))
    assert re.findall(r'<article id="([^"]+)"', page) == ["coco-a", "folder-b", "coco-c"]
    pictures = re.findall(r'src="data:image/webp;base64,([^"]+)"', page)
    assert len(pictures) == page.count("<img") == 3 * 2 + (2 + 3 + 4) * 2
    with Image.open(io.BytesIO(base64.b64decode(pictures[0]))) as image:
        assert image.size == (240, 180)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page) and "<script" not in page
    assert page.count('class="block slot-D"') == 1 and page.count('class="block slot-C"') == 2
    words = re.sub(r"<[^>]+>", "", page)
    for row in made.rows["prompts"]:
        for paragraph in row["prompt"].strip().split("\n\n"):
            assert paragraph in words.replace("&#x27;", "'")
    assert "licence of folder" in words and "red plain shirt" in words


def test_copies_are_small_and_outlines_have_the_size_of_the_photograph(made):
    import numpy as np

    row = made.row("backgrounds", "coco-a")
    row["sha256"] = made.picture("backgrounds", row["background"], np.zeros((900, 1800, 3), np.uint8))
    page = sheet_of(put_together(made))
    sizes = [Image.open(io.BytesIO(base64.b64decode(data))).size for data in re.findall(r'webp;base64,([^"]+)"', page)]
    assert max(max(size) for size in sizes) == sheets.TARGET_PX
    assert 'viewBox="0 0 240 180"' in page


def test_pages_are_bounded_and_joined_by_a_pager(made, monkeypatch):
    folder = put_together(made)
    monkeypatch.setattr(sheets, "INSTANCES_A_PAGE", 1)
    first = sheet_of(folder)
    assert first.count("<article") == 1 and 'href="sheet-2.html"' in first and 'href="sheet-3.html"' in first
    second = (folder / "sheet-2.html").read_text()
    assert '<article id="folder-b"' in second and 'href="sheet.html"' in second
    assert sorted(path.name for path in folder.glob("sheet*")) == ["sheet-2.html", "sheet-3.html", "sheet.html"]
    monkeypatch.setattr(sheets, "INSTANCES_A_PAGE", 2)
    assert sheet_of(folder).count("<article") == 2
    assert sorted(path.name for path in folder.glob("sheet*")) == ["sheet-2.html", "sheet.html"]
    monkeypatch.setattr(sheets, "INSTANCES_A_PAGE", 3)
    assert "<nav" not in sheet_of(folder) and [path.name for path in folder.glob("sheet*")] == ["sheet.html"]


def test_what_people_and_models_wrote_cannot_break_the_page_or_the_card(made):
    made.row("selected", "coco-a")["licence"] = "<script>alert(1)</script> | a\nb"
    made.row("backgrounds", "coco-a")["model"] = "<b>|*"
    made.row("prompts", "coco-a")["prompt"] = "Subject A: <img src=x>\n\nSubject B: & more"
    made.row("annotations", "coco-a")["annotation"] = "<not json>"
    folder = put_together(made)
    page, card = sheet_of(folder), card_of(folder)
    assert "<script" not in page and "<img src=x" not in page and "<not json>" not in page and "<b>|" not in page
    assert "&lt;not json&gt;" in page and "&lt;img src=x&gt;" in page
    assert "<script>" not in card and r"\<script\>alert(1)\</script\> \| a b" in card


@pytest.mark.parametrize("damage", ["another", "gone", "no picture"])
def test_a_picture_that_is_not_the_one_of_the_table_is_told(made, damage):
    folder = put_together(made)
    path = folder / "images/coco-c/D_reference.png"
    path.unlink()
    if damage == "another":
        path.write_bytes(b"another")
    elif damage == "no picture":
        row = made.row("references", "coco-c", "D")
        (made.folder / "references" / row["reference"]).unlink()
        (made.folder / "references" / row["reference"]).write_bytes(b"text")
        from bindbench.files import sha256

        row["sha256"] = sha256(b"text")
        folder = put_together(made)
    with pytest.raises(UserError, match=r"D_reference.png: .*; delete .*instances.parquet and run again"):
        sheet_of(folder)
    assert not (folder / "sheet.html").exists()


def test_a_mask_that_is_broken_is_told(made):
    made.row("crops", "coco-a", "A")["mask"] = "nonsense"
    with pytest.raises(UserError, match=r"coco-a, slot A: "):
        sheet_of(put_together(made))


# The card -------------------------------------------------------------------------------------------------------------


def test_the_card_holds_counts_models_licences_and_warnings(made):
    made.row("references", "coco-c", "B").update(model="gemini/gemini-3-pro-image/1K")
    made.row("backgrounds", "folder-b").update(problems=["person_left"], people_left=1)
    card = card_of(put_together(made))
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["license"] == "other" and header["size_categories"] == ["n<1K"]
    assert "2 instances and 6 subjects" in card and "| photographs | 5 |" in card and "| lost: background | 1 |" in card
    assert "| coco | licence of coco | 2 |" in card and "licence of folder" not in card  # of what is in the set alone
    assert "Do not redistribute" in card and "biometric" in card and "not the paper's data set" in card
    lines = [line for line in card.splitlines() if "canonical references" in line and line.startswith("|")]
    assert len(lines) == 2
    assert ["stand-in" in line for line in lines] == [True, False]
    assert "gemini/gemini-3-pro-image/1K" in lines[1]
    words = sorted(len(row["prompt"].split()) for row in made.rows["prompts"] if row["instance"] != "folder-b")
    assert f"| all | 2 | {sum(words) / 2:g} | {words[0]} | {words[1]} |" in card


def test_models_of_the_papers_kind_alone_need_no_warning(made):
    for table in ("references", "backgrounds", "annotations"):
        for row in made.rows[table]:
            row["model"] = "openai/gpt-image-1.5/high"
    assert "stand-in" not in card_of(put_together(made))


def test_counts_that_are_none_are_told(made):
    folder = put_together(made)
    for text in ("{}", "no", "[]"):
        (folder / "counts.json").write_text(text)
        with pytest.raises(UserError, match="not the counts of an assembly"):
            card_of(folder)


# Prompts and annotations in pieces ------------------------------------------------------------------------------------


@given(st.integers(2, 4))
def test_a_prompt_in_pieces_is_the_prompt_and_each_block_has_its_slot(number):
    prompt = compile_prompt(annotation_of_boxes([[10.0 + 50 * place, 20.0, 40.0, 100.0] for place in range(number)]))
    blocks = prompt_blocks(prompt)
    assert "\n\n".join("".join(words for _, words in pieces) for _, pieces in blocks) + "\n" == prompt
    assert [slot for slot, _ in blocks if slot] == list(SLOTS[:number])
    assert all(words.endswith(f" {named}") for _, pieces in blocks for named, words in pieces if named)


@given(st.text(st.sampled_from("Subject ABreference:. \n")))
def test_any_text_in_pieces_keeps_its_words(text):
    blocks = prompt_blocks(text)
    assert "\n\n".join("".join(words for _, words in pieces) for _, pieces in blocks) == text.strip()


def test_an_annotation_is_read_as_lines_under_its_slot():
    text = annotation_of_boxes([[10, 20, 40, 100], [100, 20, 40, 100]]).to_json()
    sections = {title: (slot, dict(lines)) for slot, title, lines in readable_annotation(text)}
    assert sections["Subject B"][0] == "B" and sections["Background"][0] is None
    lines = sections["Subject A"][1]
    assert lines["clothes, upper body"] == "red plain shirt" and lines["pose, arms"] == "hanging at the sides"
    assert lines["appearance, hair"] == "dark brown, short" and lines["position"].startswith("4 to 21 % from the left")
    assert sections["Relations"][1] == {"": "A to the left of B, with a gap between them"}
    assert not any("None" in words or words == "" for _, _, lines in readable_annotation(text) for _, words in lines)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_can_be_shown(value):
    for text in (json.dumps(value), json.dumps({"subjects": {"A": value}, "light": value}), str(value)):
        for _, title, lines in readable_annotation(text):
            assert isinstance(title, str) and all(isinstance(words, str) for line in lines for words in line)


def test_an_outline_goes_around_the_mask_and_its_holes():
    import numpy as np

    mask = np.zeros((40, 60), bool)
    mask[5:35, 10:50] = True
    mask[15:25, 20:40] = False
    outer, hole = sorted(outlines_of(mask), key=min)
    assert (min(outer[::2]), max(outer[::2]), min(outer[1::2]), max(outer[1::2])) == (10, 49, 5, 34)
    assert min(hole[::2]) >= 19 and max(hole[::2]) <= 40
    assert svg_path([[1, 2, 3, 4, 5, 6]]) == "M1 2L3 4L5 6Z" and outlines_of(np.zeros((4, 4), bool)) == []
