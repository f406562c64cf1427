"""The sheets show what was asked and answered, open from anywhere, and can be read without colour."""

import base64
import io
from html.parser import HTMLParser

import numpy as np
import pytest
from bindbench.config.questions import Questions
from bindbench.config.scoring import Figures
from bindbench.errors import UserError
from bindbench.files import sha256, sha256_of_file
from bindbench.saber.questions import sample_questions
from bindbench.saber.scoring import score_saber
from bindbench.saber.sheets import (
    first_ranked,
    marked_caption,
    spread,
    write_answer_sheet,
    write_contact_sheet,
)
from bindbench.tables import IMAGES, KIND_TITLES, QUESTIONS, SCENE_ROLES, read_table, read_tables, write_table
from PIL import Image
from synthetic_saber import (
    binding_embeddings,
    scene,
    tiny_saber,
    word_embeddings,
    write_embeddings,
    write_rows,
)


class Page(HTMLParser):
    """Tags with their attributes, all text, and whether every tag was closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def saber(tmp_path_factory):
    """Questions, scenes, pictures in two shards, and the scores of three models."""
    folder = tmp_path_factory.mktemp("sheets")
    questions, scenes = tiny_saber(independent=4, nested=3)
    scenes[0]["caption"] = "a <b>bold</b> & dangerous caption"
    paths = write_rows(folder, questions, scenes)
    items = [s["scene"] for s in scenes]
    shards = []
    for shard, rows in enumerate((scenes[: len(scenes) // 2], scenes[len(scenes) // 2 :])):
        pictures = []
        for row in rows:
            place = f"shard{shard}/{row['scene']}.png"
            (folder / place).parent.mkdir(exist_ok=True)
            Image.new("RGB", (320, 320), (len(pictures) % 255, 90, 120)).save(folder / place)
            fact = {"scene": row["scene"], "path": place, "sha256": sha256_of_file(folder / place), "renderer": "test"}
            pictures.append({**fact, "flipped": False})
        write_table(IMAGES, pictures, folder / f"images{shard}.parquet")
        shards.append(folder / f"images{shard}.parquet")
    # The query is nearest to candidate 3 and candidate 1 stands across.
    directions = {"query": (1, 0, 0), "candidate_1": (0, 1, 0), "candidate_3": (1, 0.1, 0)}
    wrong = np.array([directions.get(s["role"], (0, 0, 1)) for s in scenes], float)
    scores = {}
    for name, matrix in {
        "per<fect": binding_embeddings(scenes),
        "words": word_embeddings(scenes),
        "wrong": wrong,
    }.items():
        texts = write_embeddings(folder / "texts.parquet", items, matrix)
        scores[name] = folder / f"{len(scores)}.parquet"
        score_saber(*paths, texts, texts if name == "wrong" else None, scores[name])
    return folder, *paths, shards, scores


def contact_sheet(saber, count):
    folder, questions, scenes, shards, _ = saber
    write_contact_sheet(questions, scenes, shards, folder / "sheet.html", Figures(sheet_questions=count))
    return (folder / "sheet.html").read_text()


def answer_sheet(saber, count):
    folder, questions, scenes, shards, scores = saber
    write_answer_sheet(questions, scenes, shards, scores, folder / "answers.html", Figures(sheet_questions=count))
    return (folder / "answers.html").read_text()


def test_questions_are_spread_over_all_sizes_and_both_subsets():
    questions, _ = tiny_saber(independent=5, nested=4)
    chosen = spread(questions, 12)
    groups = [(q["n_objects"], q["subset"]) for q in chosen]
    assert groups == sorted(groups)
    assert {g: groups.count(g) for g in groups} == dict.fromkeys(sorted(set(groups)), 2)
    assert len({q["question"] for q in chosen}) == 12


@pytest.mark.parametrize("count", [1, 2, 4, 5, 7, 26, 27, 500])
def test_as_many_questions_as_asked_for_or_as_there_are(count):
    questions, _ = tiny_saber(independent=5, nested=4)
    chosen = spread(questions, count)
    assert len({q["question"] for q in chosen}) == len(chosen) == min(count, 27)


def test_contact_sheet_shows_query_and_four_candidates_with_captions(saber):
    page = Page(contact_sheet(saber, 6))
    assert len(page.all("section")) == 6
    assert len(page.all("img")) == 30
    for title in ("query", "candidate 1: ✓ keeps the bindings", "candidate 2: ✗ attributes swapped", "3 objects"):
        assert title in page.text


def test_pictures_are_inside_the_page_and_described(saber):
    page = Page(contact_sheet(saber, 2))
    for image in page.all("img"):
        kind, data = image["src"].split(",", 1)
        assert kind == "data:image/webp;base64"
        assert Image.open(io.BytesIO(base64.b64decode(data))).size == (256, 256)
        assert image["alt"].split(":")[0] in ("query", "candidate 1", "candidate 2", "candidate 3", "candidate 4")
        assert "attribute" in image["alt"]


def test_page_needs_nothing_from_outside(saber):
    text = answer_sheet(saber, 2)
    page = Page(text)
    assert not any(tag in ("script", "link", "iframe") for tag, _ in page.tags)
    assert not [value for _, attributes in page.tags for name, value in attributes.items() if name == "href"]
    assert "http" not in text
    assert "url(" not in text


def test_captions_and_names_are_escaped(saber):
    text = answer_sheet(saber, 21)
    assert "<b>bold</b>" not in text
    assert "a &lt;b&gt;bold&lt;/b&gt; &amp; dangerous caption" in text
    assert "per&lt;fect" in text


def test_bindings_that_the_query_does_not_hold_are_marked():
    query = scene("q", "query", "query", [("red", "cube"), ("pink", "kite")])
    swapped = scene("q", "candidate_2", "attribute_swap", [("pink", "cube"), ("red", "kite")])
    assert marked_caption(query, query) == "a red cube and a pink kite"
    assert marked_caption(swapped, query) == "a <mark>pink cube</mark> and a <mark>red kite</mark>"


def test_answers_are_said_in_words_right_wrong_and_tie(saber):
    text = answer_sheet(saber, 3)
    page = Page(text)
    assert text.count("✓ right") == 3
    assert "= tie, wrong: candidates 1, 2 and 3" in page.text
    assert "wrong: candidate" in page.text
    for css in ("yes", "no", "tie"):
        marked = [a for a in page.all("span") if a.get("class") == css]
        assert marked


def test_pairing_that_a_model_lacks_is_a_dash(saber):
    page = Page(answer_sheet(saber, 1))
    dashes = [a for a in page.all("span") if a.get("aria-label") == "none"]
    assert len(dashes) == 6  # two models without images, three pairings each


def test_all_that_share_the_first_place_are_named():
    assert first_ranked(np.array([0.5, 0.1, 0.5, 0.2], np.float32)) == [1, 3]
    assert first_ranked(np.array([0.5, 0.1, 0.7, 0.2], np.float32)) == [3]


def test_same_inputs_give_the_same_bytes(saber):
    assert answer_sheet(saber, 4) == answer_sheet(saber, 4)


def test_scene_without_picture_is_named(saber, tmp_path):
    folder, questions, scenes, shards, _ = saber
    with pytest.raises(UserError, match=rf"no image of .*; delete {folder}/\*\.parquet and run again"):
        write_contact_sheet(questions, scenes, shards[:1], tmp_path / "sheet.html", Figures())


@pytest.mark.parametrize(
    ("content", "noted", "words"),
    [
        (None, b"", "cannot be read"),
        (b"another picture", b"picture", "SHA-256 differs"),
        (b"no picture", b"no picture", "not a readable image"),
    ],
)
def test_broken_picture_is_named_with_the_table_to_delete(saber, tmp_path, content, noted, words):
    _, questions, scenes, shards, _ = saber
    broken = {"path": "0000/broken.png", "sha256": sha256(noted)}
    rows = [row | broken for row in read_tables(IMAGES, shards).to_pylist()]
    table = tmp_path / "0000.parquet"
    write_table(IMAGES, rows, table)
    (tmp_path / "0000").mkdir()
    if content is not None:
        (tmp_path / "0000/broken.png").write_bytes(content)
    with pytest.raises(UserError, match=rf"0000/broken\.png: .*{words}.*; delete {table} and run again$"):
        write_contact_sheet(questions, scenes, [table], tmp_path / "sheet.html", Figures())
    assert not (tmp_path / "sheet.html").exists()


def test_questions_of_other_scenes_are_refused(saber, tmp_path):
    _, questions, scenes, shards, scores = saber
    rows = read_table(QUESTIONS, questions).to_pylist()
    rows[0]["question"] = "flipped"
    other, _ = write_rows(tmp_path, rows, [])
    told = "do not belong together .*; delete both and run again"
    with pytest.raises(UserError, match=told):
        write_contact_sheet(other, scenes, shards, tmp_path / "sheet.html", Figures(sheet_questions=500))
    with pytest.raises(UserError, match=told):
        write_answer_sheet(other, scenes, shards, scores, tmp_path / "sheet.html", Figures(sheet_questions=500))


def test_every_kind_of_candidate_that_is_drawn_has_a_title(vocabulary):
    """Both pages that show questions read them from one place."""
    _, rows = sample_questions(vocabulary, Questions(object_counts=(2, 3), independent=5, nested=0))
    assert {row["kind"] for row in rows if row["role"] != "query"} == set(KIND_TITLES)
    assert {row["role"] for row in rows} == set(SCENE_ROLES)
    assert len(set(KIND_TITLES.values())) == len(KIND_TITLES)
