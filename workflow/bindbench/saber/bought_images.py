"""SABER's images by a paid service (A.4): GPT-Image-2, for the query and every candidate, flipped after fetching.

    python -m bindbench buy-scenes --help

The prompt is the template resources/prompts/saber_scene.txt, filled with the generation forms of the scene's bindings. What
was bought lies in the services' store and is never asked for again; the files here are copies of it, mirrored where the
scene's coin says so. A scene that stands rejected in the screening's journal is made again under its next attempt; one that
the service refuses has no image, and its question is left out of the scores.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

import cv2
import numpy as np

from ..config.scenes import Scenes
from ..config.services import Services
from ..errors import UserError
from ..files import progress, sha256, write_json, written_whole
from ..language import article
from ..paths import resolve
from ..scenes.images import encode_png
from ..scenes.layout import is_flipped
from ..services.buying import Answer, answers
from ..services.requests import Request
from ..tables import IMAGES, write_table

PROMPT = "resources/prompts/saber_scene.txt"
STAGE = "saber/scenes"


def scene_prompt(scene: dict) -> str:
    """The prompt of a scene (row of SCENES). Raises UserError when the template is missing or names an unknown field."""
    path = resolve(PROMPT)
    phrases = [f"{binding['realised']} {binding['object']}" for binding in scene["bindings"]]
    lines = "\n".join(f"- {article(phrase)} {phrase}" for phrase in phrases)
    try:
        return Template(path.read_text(encoding="utf-8")).substitute(count=len(phrases), objects=lines)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (KeyError, ValueError) as error:
        raise UserError(f"{path}: not a template with $count and $objects ({error})") from None


def scene_request(scene: dict, settings: Scenes, attempt: int) -> Request:
    """What is asked of the service for one scene. attempt: 0 at first, one more for each rejected image."""
    size = f"{settings.image_px}x{settings.image_px}"
    body = {"prompt": scene_prompt(scene), "size": size, "quality": settings.quality, "output_format": "png"}
    return Request("image_generation", settings.model, body, attempt=attempt + 1, stage=STAGE)


def scene_requests(rows: list[dict], settings: Scenes, attempts: Mapping[str, int]) -> Iterator[Request]:
    """The requests of many scenes; attempts: of the scenes that were made again."""
    return (scene_request(row, settings, attempts.get(row["scene"], 0)) for row in rows)


def buy_shard(
    rows: list[dict], attempts: Mapping[str, int], settings: Scenes, services: Services, manifest: Path
) -> None:
    """Gets the images of the scenes into the folder that the manifest is named after, then writes it.

    Beside the manifest, NAME.json says what the shard cost and which scenes were refused, with the reason.
    Raises UserError when the budget, the key or the service stops the run; what was bought until then is kept.
    """
    folder = manifest.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    requests, scenes_of = {}, {}
    for row, request in zip(rows, scene_requests(rows, settings, attempts), strict=True):
        requests[request.key] = request
        scenes_of.setdefault(request.key, []).append(row["scene"])  # equal prompts share an answer
    images, refused, cost = {}, {}, 0.0
    tokens: dict[str, int] = {}
    for answer in progress(answers(requests.values(), services), "images", total=len(requests), unit="image"):
        cost += answer.cost_usd
        for kind, count in answer.tokens.items():
            tokens[kind] = tokens.get(kind, 0) + count
        for scene in scenes_of[answer.request.key]:
            kept = _keep(answer, scene, settings, folder) if answer.accepted else None
            if kept:
                images[scene] = kept
            else:
                refused[scene] = answer.reason or "its pixels do not decode"
    for path in folder.iterdir():
        if path.stem not in images:
            path.unlink()  # of a scene that left the shard or was refused, or a temporary file of a killed run
    renderer = f"openai/{settings.model}/{settings.quality}"
    write_json(
        manifest.with_suffix(".json"),
        {"stage": STAGE, "requests": len(requests), "refused": refused, "cost_usd": round(cost, 6), "tokens": tokens},
    )
    write_table(
        IMAGES,
        [
            {
                "scene": row["scene"],
                "path": f"{folder.name}/{row['scene']}.png",
                "sha256": images[row["scene"]],
                "flipped": is_flipped(settings.seed, row["scene"], settings.flip_probability),
                "renderer": renderer,
            }
            for row in rows
            if row["scene"] in images
        ],
        manifest,
    )


def _keep(answer: Answer, scene: str, settings: Scenes, folder: Path) -> str | None:
    """Writes one image as PNG, mirrored where the scene's coin says so; returns the hash of the file.

    None when its pixels do not decode: checksums have shown that it came as it was sent, so it was sent like that.
    """
    data = answer.payload
    flipped = is_flipped(settings.seed, scene, settings.flip_probability)
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        return None
    if flipped or answer.content_type != "image/png":
        pixels = cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
        data = encode_png(pixels[:, ::-1] if flipped else pixels)
    path, digest = folder / f"{scene}.png", sha256(data)
    if not path.exists() or sha256(path.read_bytes()) != digest:
        with written_whole(path, durable=False) as temporary:
            temporary.write_bytes(data)
    return digest
