"""A.4 as cases: what is asked of the image service for a scene, what is made of its answers, and what a model may propose."""

import base64
import hashlib
import io
import json
import zlib

import cv2
import numpy as np
import pytest
from bindbench.config.questions import Questions
from bindbench.config.scenes import Scenes
from bindbench.config.services import Services
from bindbench.review.journal import read_journal
from bindbench.saber import bought_images
from bindbench.saber.bought_images import buy_shard, scene_prompt, scene_request
from bindbench.saber.proposing import propose_verdicts
from bindbench.saber.questions import sample_questions
from bindbench.services.buying import Answer
from bindbench.services.costs import read_costs
from bindbench.services.judging import check_image
from bindbench.tables import IMAGES, SCENES, read_table, write_table
from PIL import Image

SETTINGS = Scenes(renderer="openai", image_px=1024, flip_probability=0.5)


@pytest.fixture(scope="module")
def scenes(vocabulary):
    _, rows = sample_questions(vocabulary, Questions(object_counts=(3, 4), independent=3, nested=0))
    return rows


def test_the_prompt_asks_for_what_the_paper_says(scenes):
    prompt = scene_prompt(scenes[0])
    for words in (
        "CLEVR-style 3D",
        "neutral gray background",
        "clearly separated",
        "scattered",
        "never in a row",
        "exactly once",
    ):
        assert words in prompt
    for words in (
        "transfer, blend or bleed",
        "color, material, pattern, texture or visual effect",
        "belongs to its own object",
    ):
        assert words in prompt
    assert "exactly 3 objects" in prompt


def test_the_prompt_lists_the_generation_form_of_every_binding_with_its_article(scenes):
    for scene in scenes:
        listed = [line[2:] for line in scene_prompt(scene).splitlines() if line.startswith("- ")]
        assert " and ".join(listed) == scene["generation_caption"]


def test_one_image_of_1024_pixels_and_medium_quality_is_asked_for(scenes):
    request = scene_request(scenes[0], SETTINGS, 0)
    assert (request.kind, request.model, request.stage) == ("image_generation", "gpt-image-2", "saber/scenes")
    assert request.body["size"] == "1024x1024" and request.body["quality"] == "medium" and "n" not in request.body


def test_a_remake_is_another_request_and_nothing_else_is(scenes):
    keys = [scene_request(scenes[0], SETTINGS, attempt).key for attempt in (0, 0, 1, 2)]
    assert keys[0] == keys[1] and len(set(keys)) == 3
    flipped = scene_request(
        scenes[0], SETTINGS.model_copy(update={"flip_probability": 0.0, "seed": 9, "shard_size": 1}), 0
    )
    assert flipped.key == keys[0], "flips come after fetching: they buy nothing again"


def picture(shade: int) -> bytes:
    """Left half dark, right half bright, so that a mirror shows."""
    pixels = np.full((64, 64, 3), 20 + shade, np.uint8)
    pixels[:, 32:] = 200
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return data.getvalue()


@pytest.fixture
def shop(monkeypatch):
    """Answers without a service; refuses the prompts that hold a word of `refused`."""
    refused: list[str] = []

    def answers(requests, settings):
        for number, request in enumerate(requests):
            if any(word in request.body["prompt"] for word in refused):
                yield Answer(request, False, b"no", "text/plain", "moderation", 0.01, {"input_text": 10}, False)
            else:
                yield Answer(request, True, picture(number % 100), "image/png", "", 0.05, {"output_image": 1000}, False)

    monkeypatch.setattr(bought_images, "answers", answers)
    return refused


def test_images_are_kept_open_mirrored_by_their_coin_and_paid_once_in_the_books(shop, scenes, tmp_path):
    buy_shard(scenes, {}, SETTINGS, Services(), tmp_path / "0000.parquet")
    rows = read_table(IMAGES, tmp_path / "0000.parquet").to_pylist()
    assert [row["scene"] for row in rows] == [scene["scene"] for scene in scenes]
    assert {row["renderer"] for row in rows} == {"openai/gpt-image-2/medium"}
    assert {row["flipped"] for row in rows} == {True, False}
    for row in rows:
        image = cv2.imread(str(tmp_path / row["path"]))
        assert (image[0, 0, 0] > image[0, 63, 0]) == row["flipped"]
    cost = read_costs([tmp_path / "0000.json"])
    assert cost["cost_usd"] == pytest.approx(0.05 * len(scenes)) and cost["tokens"] == {
        "output_image": 1000 * len(scenes)
    }


def test_a_refused_scene_has_no_image_and_its_reason_is_kept(shop, scenes, tmp_path):
    shop.append(f"{scenes[3]['bindings'][0]['realised']} {scenes[3]['bindings'][0]['object']}")
    buy_shard(scenes[:5], {}, SETTINGS, Services(), tmp_path / "0000.parquet")
    rows = read_table(IMAGES, tmp_path / "0000.parquet").to_pylist()
    record = json.loads((tmp_path / "0000.json").read_text())
    assert scenes[3]["scene"] not in {row["scene"] for row in rows}
    assert record["refused"][scenes[3]["scene"]] == "moderation" and record["cost_usd"] > 0


def test_an_image_whose_checksums_are_right_but_not_its_pixels_is_refused_by_name(monkeypatch, scenes, tmp_path):
    head = picture(0)[8:33]
    ends = [(b"IDAT", b"no pixels"), (b"IEND", b"")]
    chunks = b"".join(
        len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big") for kind, data in ends
    )
    wrong = b"\x89PNG\r\n\x1a\n" + head + chunks
    assert check_image(base64.b64encode(wrong).decode(), "64x64").verdict == "answer"

    def answers(requests, settings):
        for number, request in enumerate(requests):
            data = wrong if number == 1 else picture(number)
            yield Answer(request, True, data, "image/png", "", 0.05, {"output_image": 1000}, False)

    monkeypatch.setattr(bought_images, "answers", answers)
    buy_shard(scenes[:4], {}, SETTINGS, Services(), tmp_path / "0000.parquet")
    assert len(read_table(IMAGES, tmp_path / "0000.parquet")) == 3
    refused = json.loads((tmp_path / "0000.json").read_text())["refused"]
    assert refused == {scenes[1]["scene"]: "its pixels do not decode"}


def test_the_same_shard_again_is_the_same_bytes_and_images_of_scenes_that_left_are_removed(shop, scenes, tmp_path):
    buy_shard(scenes[:5], {}, SETTINGS, Services(), tmp_path / "0000.parquet")
    first = (tmp_path / "0000.parquet").read_bytes()
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "0000").iterdir()}
    buy_shard(scenes[:5], {}, SETTINGS, Services(), tmp_path / "0000.parquet")
    assert (tmp_path / "0000.parquet").read_bytes() == first
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "0000").iterdir()}
    buy_shard(scenes[:2], {}, SETTINGS, Services(), tmp_path / "0000.parquet")
    assert len(list((tmp_path / "0000").iterdir())) == 2


def test_proposals_are_bought_once_noted_in_the_journal_and_decide_nothing(scenes, tmp_path, server, settings):
    write_table(SCENES, scenes[:4], tmp_path / "scenes.parquet")
    (tmp_path / "0000").mkdir()
    rows = []
    for number, scene in enumerate(scenes[:4]):
        data = picture(number)
        (tmp_path / "0000" / f"{scene['scene']}.png").write_bytes(data)
        rows.append(
            {"scene": scene["scene"], "path": f"0000/{scene['scene']}.png", "sha256": hashlib.sha256(data).hexdigest(),
             "flipped": False, "renderer": "openai/x"}
        )  # fmt: skip
    write_table(IMAGES, rows, tmp_path / "0000.parquet")
    prices = {"looker": {"input_text": 1, "output_text": 1}}
    services = Services.model_validate(settings.model_dump() | {"prices": prices})
    images = [tmp_path / "0000.parquet"]
    arguments = (tmp_path / "scenes.parquet", images, tmp_path / "journal.jsonl", "looker", services)
    counts = propose_verdicts(*arguments)
    assert sum(counts.values()) == 4 and len(server.seen()) == 4
    propose_verdicts(*arguments)
    assert len(server.seen()) == 4 and max(entry["count"] for entry in server.seen()) == 1
    journal = read_journal(tmp_path / "journal.jsonl")
    for row in rows:
        assert journal.standing(row["scene"], row["sha256"]) is None
