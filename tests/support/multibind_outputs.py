"""What MultiBind's stages write on small fixed inputs; see stage_outputs.py, which records it.

Decisions, words and run lengths are digests; what rests on decoded pixels or on a network's arithmetic are numbers. Hashes of
PNG files stay out: another build of zlib writes other bytes of the same picture.
"""

import json
import re
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

import cv2
import numpy as np
from bindbench.config.embedders import DEFAULT_EMBEDDERS, Embedder
from bindbench.config.multibind_annotation import Annotation, Measures
from bindbench.config.multibind_evaluation import Evaluation, PoseSpecialist
from bindbench.config.multibind_generators import EMBEDDED, PAID, Generator
from bindbench.config.multibind_holistic import Holistic
from bindbench.config.multibind_pictures import Backgrounds, References
from bindbench.config.multibind_quality import Quality
from bindbench.config.multibind_scoring import Scoring
from bindbench.config.multibind_segmentation import Segmentation
from bindbench.config.multibind_selection import Selection
from bindbench.config.multibind_sources import Photographs
from bindbench.config.scoring import Figures
from bindbench.files import canonical_json, sha256, sha256_of_file
from bindbench.multibind.evaluation_tables import (
    IMAGE_PATTERNS,
    LABELS,
    SIMILARITIES,
    SLOTS_MATCHED,
    SUBJECT_OUTCOMES,
    THRESHOLDS,
    VALIDITY,
)
from bindbench.multibind.generated_tables import GENERATED
from bindbench.multibind.holistic.reading import KEYS
from bindbench.multibind.holistic_tables import HOLISTIC
from bindbench.multibind.tables import (
    ANNOTATIONS,
    BACKGROUNDS,
    CROPS,
    INSTANCES,
    LEFT_OUT,
    PART_VERDICTS,
    PHOTOGRAPHS,
    PROMPTS,
    REFERENCES,
    REJECTED,
    SELECTED,
    SLOTS,
    SUBJECTS,
)
from bindbench.people.masks import box_of_mask, decode_mask, encode_mask
from bindbench.services.requests import InputImage
from bindbench.tables import read_table, write_table
from made_evaluation import make_evaluation
from made_instances import make_instances
from made_multibind import annotation_of_boxes, make_multibind
from people_models import people_models_folder
from photograph_instances import make_photographs
from synthetic_people import MadeEvaluation, people, picture_of, random_evaluation, shown
from tiny_instances import scene, write_instances
from tiny_models import aesthetic_head, clip, dino

MOST_PIXELS = 10**8
ASKED = ("gemini", "openai")  # for references and backgrounds
SIZE = {"height": 96, "width": 144}


def outputs(folder: Path) -> dict[str, dict]:
    """Stage -> {"digest": ..., "numbers": [...]} (either may be missing). folder: an empty one."""
    folder.mkdir(exist_ok=True)
    models = people_models_folder()
    tables = write_instances(folder / "made", [2, 3], **SIZE)
    assembled = _assembled(folder / "assembled")
    return {
        "people_models": {"digest": _people_models(models)},
        "photographs": {"digest": _photographs(folder / "listed")},
        "segmentation": {"numbers": _segmentation(models, folder / "segmented")},
        "selection": _selection(folder / "chosen"),
        "references": _references(tables, folder / "references"),
        "backgrounds": _backgrounds(tables, folder / "backgrounds"),
        "annotation": {"digest": _annotation(tables, folder)},
        "prompts": {"digest": _prompts(folder)},
        "instances": {"digest": sha256(canonical_json(_instances(assembled)))},
        "instance_sheet": {"digest": _instance_sheet(assembled)},
        "generation": _generation(folder / "generation"),
        **_evaluation(models, folder / "evaluation"),
        "multibind_rates": {"digest": _multibind_rates(folder / "rates")},
        "multibind_figures": {"digest": _multibind_figures(folder / "figures")},
        "default_thresholds": {"digest": _default_thresholds(folder / "defaults")},
    }


def _rows(table, path: Path, *without: str) -> list[dict]:
    """Without hashes of files, which another build of a codec changes, and some other columns."""
    rows = read_table(table, path).to_pylist()
    return [{key: value for key, value in row.items() if "sha256" not in key and key not in without} for row in rows]


def _thumbnails(files: Iterable[Path], side: int = 4) -> list[int]:
    """Each picture as `side` x `side` mean colours."""
    numbers = []
    for file in files:
        pixels = cv2.imread(str(file))
        numbers += cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA).ravel().tolist()
    return numbers


def _people_models(folder: Path) -> str:
    """The pinned wheels, and the files made anew from the networks that an earlier build took out of them.

    The wheels themselves are 62 MB, which a test does not download each time.
    """
    from bindbench.people import building

    with zipfile.ZipFile(folder / building.POSE_MODEL) as kept:
        networks = {
            name: building.normalised(kept.read(name), network.mean, network.deviation)
            for name, network in building.POSE_NETWORKS.items()
        }
    pins = [asdict(building.FACES), asdict(building.POSES), *map(asdict, building.POSE_NETWORKS.values())]
    made = [sha256(building.bundle(networks)), sha256_of_file(folder / building.FACE_MODEL), building.README]
    return sha256(canonical_json([pins, made]))


def _photographs(folder: Path) -> str:
    """COCO's layout with every kind of outline, a crowd and a file that is missing; and a plain folder."""
    from bindbench.multibind.sources.listing import list_photographs

    images, annotations = [], []
    for number in range(4):
        path = folder / "images" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number != 2:
            cv2.imwrite(str(path), np.full((48, 64, 3), 60 * number, np.uint8))
        images.append({"id": number, "file_name": path.name, "width": 64, "height": 48, "license": number % 2})
    mask = np.zeros((48, 64), bool)
    mask[4:20, 30:50] = True
    runs = {"size": [48, 64], "counts": encode_mask(mask)}
    polygon = [[5, 5, 20, 5, 20.5, 40, 5, 40]]
    for image, outline, box, crowd in (
        *((0, polygon, [5, 5, 15.5, 35], 0), (0, runs, [30, 4, 20, 16], 0), (1, None, [2, 2, 9, 9], 0)),
        *((1, runs, [30, 4, 20, 16], 1), (2, polygon, [5, 5, 15.5, 35], 0), (3, {"size": [9, 9]}, [1, 1, 5, 5], 0)),
    ):
        about = {"id": len(annotations), "image_id": image, "category_id": 1, "iscrowd": crowd, "bbox": box}
        annotations.append(about | ({"segmentation": outline} if outline else {}))
    parts = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "person"}]}
    parts["licenses"] = [{"id": 1, "name": "some licence", "url": "https://example.org/licence"}]
    (folder / "instances.json").write_text(json.dumps(parts))
    sources = {
        "known": {"kind": "coco", "images": str(folder / "images"), "annotations": str(folder / "instances.json")},
        "plain": {"kind": "folder", "images": str(folder / "images"), "limit": 2},
    }
    list_photographs(Photographs(sources=sources), folder / "photographs.parquet")
    rows = _rows(PHOTOGRAPHS, folder / "photographs.parquet", "path")
    return sha256(canonical_json(rows).replace(str(folder), ""))


def _segmentation(models: Path, folder: Path) -> list[float]:
    """Boxes and areas of the people in a photograph of which nothing is known, as shares of it."""
    from bindbench.multibind.segmenting import segment_photographs
    from bindbench.multibind.sources.listing import list_photographs

    folder.mkdir()
    settings = Photographs(sources={"builtin": {"kind": "builtin"}})
    list_photographs(settings, folder / "photographs.parquet")
    rows = read_table(PHOTOGRAPHS, folder / "photographs.parquet").to_pylist()
    write_table(PHOTOGRAPHS, [row for row in rows if "zidane" in row["path"]], folder / "one.parquet")
    paths = folder / "one.parquet", folder / "people.parquet"
    segment_photographs(*paths, Segmentation(), models, MOST_PIXELS, folder / "cache", 1)
    numbers = []
    for row in read_table(PHOTOGRAPHS, folder / "people.parquet").to_pylist():
        size = (row["width"], row["height"]) * 2
        for person in row["people"]:
            area = decode_mask(person["mask"], row["height"], row["width"]).mean()
            numbers += [*(value / side for value, side in zip(person["box"], size, strict=True)), float(area)]
    return [round(number, 4) for number in numbers]


def _selection(folder: Path) -> dict:
    """One reason of each kind that needs the pixels, two that do not, and a photograph that is scaled down."""
    from bindbench.multibind.selection import select_photographs

    folder.mkdir()
    rows = []
    for name, count, seed in (
        *(("two", 2, 0), ("three", 3, 1), ("again", 2, 0), ("blurred", 2, 3), ("gone", 2, 4)),
        *(("crowd", 2, 5), ("alone", 1, 6)),
    ):
        image, masks = scene(count, seed=seed, **SIZE)
        image = cv2.GaussianBlur(image, (0, 0), 9) if name == "blurred" else image
        if name != "gone":
            cv2.imwrite(str(folder / f"{name}.png"), image[..., ::-1])
        people = [
            {"person": str(i), "box": box_of_mask(mask), "mask": encode_mask(mask), "crowd": False, "score": 1.0}
            for i, mask in enumerate(masks)
        ]
        if name == "crowd":
            people.append(people[0] | {"person": "many", "crowd": True})
        rows.append(
            {
                **{"photograph": f"made/{name}", "source": "folder", "path": str(folder / f"{name}.png")},
                **{"width": SIZE["width"], "height": SIZE["height"], "licence": "ours", "people": people},
                **{"reason": None, "detail": None},
            }
        )
    write_table(PHOTOGRAPHS, rows, folder / "people.parquet")
    settings = Selection(min_side_px=32, min_subject_height_px=20, max_side_px=100)
    paths = [folder / f"{name}.parquet" for name in ("selected", "crops", "rejected")]
    select_photographs(folder / "people.parquet", settings, MOST_PIXELS, *paths, folder / "selected")
    measured = ("area", "filled", "at_border", "overlap", "sharpness", "perceptual_hash")
    chosen, subjects = _rows(SELECTED, paths[0], *measured), _rows(CROPS, paths[1], *measured)
    rejected = _rows(REJECTED, paths[2], "detail")
    crops = read_table(CROPS, paths[1]).to_pylist()
    numbers = [round(100 * row[name], 1) for row in crops for name in measured[:4]]
    numbers += _thumbnails(folder / "selected" / row[key] for row in crops for key in ("crop", "mask_file"))
    return {"digest": sha256(canonical_json([chosen, subjects, rejected])), "numbers": numbers}


def _input(number: int) -> InputImage:
    return InputImage(f"{number}.png", f"{number}" * 64)


def _references(tables: tuple[Path, Path, Path], folder: Path) -> dict:
    """The embedded ones, and the keys of the requests: another key would be bought again."""
    from bindbench.multibind.references import make_references, reference_request

    out = folder.with_suffix(".parquet")
    make_references(*tables, References(size_px=64), None, out, folder, version=1)
    keys = [
        reference_request(_input(0), References(method=method), attempt).key for method in ASKED for attempt in (0, 1)
    ]
    rows = read_table(REFERENCES, out).to_pylist()
    numbers = _thumbnails(folder / row["reference"] for row in rows)
    return {"digest": sha256(canonical_json([keys, _rows(REFERENCES, out)])), "numbers": numbers}


def _backgrounds(tables: tuple[Path, Path, Path], folder: Path) -> dict:
    """By OpenCV and PatchMatch, and the keys of the requests."""
    from bindbench.multibind.backgrounds import background_request, make_backgrounds

    keys, rows, numbers = [], [], []
    for method in ("opencv", "patchmatch"):
        out = folder.with_name(f"{method}.parquet")
        settings = Backgrounds(method=method)
        make_backgrounds(*tables, settings, None, Segmentation(), out, folder / method, version=1)
        rows += _rows(BACKGROUNDS, out)
        numbers += _thumbnails(folder / method / row["background"] for row in rows[-2:])
    instance = read_table(SELECTED, tables[0]).to_pylist()[0]
    for method in ASKED:
        images = (_input(0), _input(1))
        keys += [background_request(instance, images, Backgrounds(method=method), attempt).key for attempt in (0, 1)]
    return {"digest": sha256(canonical_json([keys, rows])), "numbers": numbers}


def _annotation(tables: tuple[Path, Path, Path], folder: Path) -> str:
    """Colours and places of the made people, words of a skeleton, and the keys of the requests."""
    from bindbench.multibind.annotating import annotate_instances, annotation_request
    from bindbench.multibind.measures.bodies import Person
    from bindbench.multibind.measuring import measured_annotation

    annotate_instances(*tables, Annotation(), None, folder / "annotations.parquet")
    image, masks = scene(2, height=240, width=320)
    joints = np.zeros((33, 3), np.float32)
    for number, place in {
        **{
            0: (60, 30),
            7: (68, 30),
            8: (52, 30),
            11: (80, 60),
            12: (40, 60),
            13: (83, 85),
            14: (20, 45),
            15: (84, 110),
        },
        **{16: (22, 15), 23: (72, 110), 24: (48, 110), 25: (72, 155), 26: (48, 155), 27: (72, 200), 28: (48, 200)},
    }.items():
        joints[number] = (*place, 0.9)
    shapes = {"mouthSmileLeft": 0.8, "mouthSmileRight": 0.8, "jawOpen": 0.1}
    people = [
        Person("A", [10, 10, 90, 205], masks[0], joints=joints, blendshapes=shapes),
        Person("B", box_of_mask(masks[1]), masks[1]),
    ]
    measured = measured_annotation(image, people, Measures()).to_json()
    (instance, *_), subjects = (
        read_table(table, path).to_pylist() for table, path in zip((SELECTED, CROPS), tables[:2], strict=True)
    )
    instance = instance | {"sha256": "0" * 64}
    subjects = [row | {"crop_sha256": "1" * 64} for row in subjects if row["instance"] == instance["instance"]]
    keys = [
        annotation_request(instance, subjects, Path("x"), Annotation(method=method, model="some-model"), attempt).key
        for method in ("openai", "google-genai")
        for attempt in (0, 1)
    ]
    return sha256(canonical_json([keys, measured, _rows(ANNOTATIONS, folder / "annotations.parquet")]))


def _prompts(folder: Path) -> str:
    """Of two and of four subjects, and one without an annotation."""
    from bindbench.multibind.prompts import compile_prompts

    def written(count: int) -> str:
        return annotation_of_boxes([[10.0 + 50 * place, 20, 40, 120] for place in range(count)]).to_json()

    rows = [
        {"instance": f"made-{n}", "annotation": text, "model": "made", "problems": []}
        for n, text in enumerate((written(2), written(4), None))
    ]
    paths = folder / "written.parquet", folder / "prompts.parquet", folder / "prompts.json"
    write_table(ANNOTATIONS, rows, paths[0])
    compile_prompts(*paths)
    return sha256(canonical_json([_rows(PROMPTS, paths[1]), json.loads(paths[2].read_text())]))


def _assembled(folder: Path) -> Path:
    """Three instances: one accepted whole, one with a rejected reference, one that nobody has judged."""
    from bindbench.multibind.assembling import assemble
    from bindbench.multibind.parts import KEY, parts_of, read_joined
    from bindbench.review.journal import verdict_line

    made = make_multibind(folder, {"coco-1": 2, "coco-2": 3, "mhp-3": 4})
    lines = []
    for joined in read_joined(*made.paths[:-1])[:2]:
        for part in parts_of(joined, SLOTS[: joined.selected["n_subjects"]]):
            is_rejected = (part.instance, part.part, part.slot) == ("coco-2", "reference", "B")
            verdict, reason = ("rejected", "another coat") if is_rejected else ("accepted", None)
            lines.append(verdict_line(part.id, part.sha256, verdict, reason, "me", KEY))
    made.journal.parent.mkdir()
    made.journal.write_text("".join(canonical_json(line) + "\n" for line in lines))
    assemble(*made.paths, made.journal, Quality(), folder)
    return folder


def _instances(folder: Path) -> list:
    tables = {"instances": INSTANCES, "subjects": SUBJECTS, "left_out": LEFT_OUT, "verdicts": PART_VERDICTS}
    rows = [_rows(table, folder / f"{name}.parquet") for name, table in tables.items()]
    files = sorted(str(path.relative_to(folder)) for path in (folder / "images").rglob("*") if path.is_file())
    return [rows, files, json.loads((folder / "counts.json").read_text())]


def _instance_sheet(folder: Path) -> str:
    """The page without the bytes of its pictures, and the card."""
    from bindbench.multibind.sheet import write_card, write_sheet

    tables = folder / "instances.parquet", folder / "subjects.parquet"
    write_sheet(*tables, folder / "sheet.html")
    write_card(*tables, folder / "counts.json", folder / "README.md")
    page = re.sub(r"data:image/[a-z]+;base64,[A-Za-z0-9+/=]+", "", (folder / "sheet.html").read_text())
    return sha256(page + (folder / "README.md").read_text())


def _generation(folder: Path) -> dict:
    """Every embedded generator and one of ready pictures, with a picture that is missing; and the keys of the requests."""
    from bindbench.multibind.generators.making import generate, request_of

    made = make_instances(folder, {"coco-1": 2, "coco-2": 3})
    ready = folder / "ready"
    ready.mkdir()
    cv2.imwrite(str(ready / "coco-2.png"), cv2.imread(str(made.scene("coco-2").files[0][0]))[:90])
    generators = {kind: Generator(kind=kind) for kind in EMBEDDED}
    generators |= {
        "two": Generator(kind="swap", of_three="first_two", stretch=2),
        "ready": Generator(kind="folder", folder=str(ready)),
    }
    rows, numbers = [], []
    for name, generator in generators.items():
        out = folder / f"{name}.parquet"
        generate(*made.tables, name, generator, None, out, folder / name, longest_px=200, version=1)
        rows.append(_rows(GENERATED, out))
        numbers += _thumbnails(folder / name / row["file"] for row in rows[-1] if row["file"])
    inputs = (_input(0), _input(1))
    requests = [request_of(made.scene("coco-2"), Generator(kind=kind)) for kind in PAID]
    keys = [[replace(request, images=inputs).key, len(request.images)] for request in requests]
    return {"digest": sha256(canonical_json([rows, keys])), "numbers": numbers}


def _evaluation(models: Path, folder: Path) -> dict[str, dict]:
    """Matching and specialists on photographs whose people are swapped and blurred, and what of both needs no network."""
    from bindbench.multibind.matching import match_subjects
    from bindbench.multibind.similarities import measure_similarities, specialists_of

    folder.mkdir()
    made = make_photographs(folder, models)
    pictures = {("g", "bus"): made.swapped("bus"), ("g", "zidane"): made.blurred("zidane")}
    generated, settings = made.write_generated(pictures, folder / "pictures"), Evaluation()
    matched, similar, valid = (folder / f"{name}.parquet" for name in ("matched", "similarities", "validity"))
    inputs = generated, generated.parent, *made.tables
    match_subjects(*inputs, settings, Segmentation(), models, matched, folder / "found")
    slots = read_table(SLOTS_MATCHED, matched).to_pylist()
    shares = [
        value / side
        for row in slots
        if row["matched"]
        for value, side in zip(row["box"], made.images[row["instance"]].shape[1::-1] * 2, strict=True)
    ]
    specialists = specialists_of(settings, DEFAULT_EMBEDDERS, models, threads=1)
    measure_similarities(matched, *inputs, folder, specialists, folder / "features", similar, valid)
    rows = read_table(SIMILARITIES, similar).to_pylist()
    pairs = [{key: row[key] for key in ("instance", "dimension", "row", "column")} for row in rows]
    return {
        "holistic": _holistic(made, generated, folder),
        "matching": {
            "digest": sha256(canonical_json([_assignments(), _rows(SLOTS_MATCHED, matched, "iou", "box", "mask")])),
            "numbers": [round(value, 3) for value in [*(row["iou"] or 0 for row in slots), *shares]],
        },
        "specialists": {
            "digest": sha256(canonical_json([_poses(), pairs, _rows(VALIDITY, valid)])),
            "numbers": [round(row[name], 3) for row in rows for name in ("s_gen", "s_gt")],
        },
    }


def _holistic(made, generated: Path, folder: Path) -> dict:
    """An embedder, and a CLIP and a DINO of random weights on whole pictures; the aesthetic score's head; the formula of FID."""
    from bindbench.multibind.holistic.aesthetic import read_head
    from bindbench.multibind.holistic.frechet import frechet_distance
    from bindbench.multibind.holistic.measuring import measure_holistic, measures_of

    head = aesthetic_head(folder / "head.pth", 24)
    embedders = {**DEFAULT_EMBEDDERS, "clip": Embedder(path=str(clip(folder / "clip")))}
    section = Holistic(
        clip_i={"embedder": "clip"},
        dino={"checkpoint": str(dino(folder / "dino"))},
        similarities=("efficientnet-lite0",),
    )
    out = folder / "holistic.parquet"
    measures = measures_of(section, embedders, threads=1)
    measure_holistic(generated, generated.parent, made.tables[0], folder, measures, folder / "features", out)
    rows = read_table(HOLISTIC, out).to_pylist()
    names = [[row[key] for key in ("generator", "instance", "measure", "model", "reason")] for row in rows]
    draw = np.random.default_rng(9)
    drawn = [frechet_distance(*draw.normal(size=(2, n, 12)), draw.integers(0, 3, n)) for n in (6, 40)]
    scores = [round(read_head(head).score(features), 3) for features in draw.normal(size=(3, 24))]
    return {
        "digest": sha256(canonical_json([names, [round(value, 6) for value in drawn], list(KEYS)])),
        "numbers": [*scores, *(round(row["value"], 3) for row in rows)],
    }


def _assignments() -> list:
    """Who is matched among made outlines, and outlines in another size."""
    from bindbench.multibind.matching import Match, at_size, match_masks, second_match

    draw = np.random.default_rng(7)

    def outlines(count: int) -> list[np.ndarray]:
        masks = []
        for left, top, width, height in draw.integers([0, 0, 4, 6], [20, 10, 12, 18], (count, 4)):
            mask = np.zeros((24, 32), bool)
            mask[top : top + height, left : left + width] = True
            masks.append(mask)
        return masks

    found = []
    for n_true, n_seen in ((2, 2), (3, 4), (4, 3), (2, 0), (3, 1)) * 4:
        true, seen = outlines(n_true), outlines(n_seen)
        matches = match_masks(true, seen, 0.1)
        again = [second_match(mask, seen, outlines(1), 0.2) for mask in true]
        found.append(
            [
                *(
                    [match.iou, encode_mask(match.mask)] if isinstance(match, Match) else match.reason
                    for match in matches
                ),
                *(match and [match.iou, encode_mask(match.mask)] for match in again),
                *(encode_mask(at_size(mask, *size)) for mask in true for size in ((12, 16), (2, 2))),
            ]
        )
    return json.loads(json.dumps(found), parse_float=lambda text: round(float(text), 6))


def _poses() -> list:
    """Similarities of made skeletons, some of whose keypoints are not seen or beyond the crop, in both ways."""
    from bindbench.multibind.specialists import pose
    from bindbench.multibind.specialists.base import Crop

    draw, found = np.random.default_rng(8), []
    crop = Crop(np.zeros((90, 40, 3), np.uint8), np.ones((90, 40), bool))
    made = [
        pose.skeleton(draw.uniform(-2, [42, 92], (17, 2)), draw.random(17) + shown, crop, PoseSpecialist())
        for shown in (0, 0.2, 0.4, 0.5, -0.6)
    ]
    found.append([features if isinstance(features, str) else features.round(4).tolist() for features in made])
    skeletons = np.stack([features for features in made if not isinstance(features, str)])
    for measure in (pose.oks, pose.joint_angles):
        values = measure(skeletons, skeletons, 8)
        found.append([[None if np.isnan(value) else round(value, 6) for value in row] for row in values.tolist()])
    return found


def _default_thresholds(folder: Path) -> str:
    """Labels of known faults, the thresholds from them, and the note; confusion in pose tells nothing apart."""
    from bindbench.config.multibind_generators import Generator
    from bindbench.multibind.default_thresholds import defaults_csv, known_faults, labels_of_faults, note
    from bindbench.multibind.evaluation_tables import DEFAULT_LABELS
    from bindbench.multibind.similarity_arrays import read_evaluation

    generators = {kind: Generator(kind=kind) for kind in ("target", "swap", "blur")}
    settings = Scoring(dimensions=("face", "pose"), bootstrap_rounds=100)
    made = MadeEvaluation()
    for number in range(4):
        for name, who in (("target", [0, 1, 2]), ("swap", [2, 0, 1]), ("blur", [None] * 3)):
            made.add(name, f"instance-{number}", 3)
            for dimension, seen in (("face", who), ("pose", [0, 1, 2])):
                vectors = shown(people(3), seen) * (1 - number / 10)
                made.measure(name, f"instance-{number}", dimension, vectors @ people(3).T, people(3) @ people(3).T)
    evaluation = read_evaluation(made.generators, settings.dimensions, **made.write(folder))
    faults = known_faults(generators, dict.fromkeys(evaluation.instances, ("A", "B", "C")))
    write_table(DEFAULT_LABELS, labels_of_faults(faults, evaluation, 0.95), folder / "labels.parquet")
    labels = read_table(DEFAULT_LABELS, folder / "labels.parquet")
    rows = [{key: value for key, value in row.items() if key != "delta"} for row in labels.to_pylist()]
    return sha256(canonical_json(rows) + defaults_csv(labels, settings) + note(labels, settings))


def _multibind_rates(folder: Path) -> str:
    """Every table: thresholds from labels of two people, some of them stale, the config, the defaults, and none; the page."""
    from bindbench.multibind.labels import write_agreement
    from bindbench.multibind.outcomes import write_outcomes
    from bindbench.multibind.rates import freeze_subjects
    from bindbench.multibind.tabulate import tabulate_multibind
    from bindbench.multibind.thresholds import write_thresholds

    dimensions = ("face", "appearance", "pose", "expression")
    made = random_evaluation(3, 12, ("one", "two"), dimensions)
    tables = (made.generators, *made.write(folder).values())
    keys = ("generator", "instance", "dimension", "row", "column")
    labels = [
        {key: row[key] for key in keys}
        | {"label": row["delta"] > 0.1 * (number % 5) - 0.3, "by": by}
        | {"sha256": picture_of(row["generator"], row["instance"] if number % 7 else "before")}
        for by, step in (("Ada", 1), ("Bea", 3))
        for number, row in enumerate(made.similarities[::step])
        if row["dimension"] == "face"
    ]
    write_table(LABELS, labels, folder / "labels.parquet")
    (folder / "defaults.csv").write_text(
        "dimension,self,confusion,procedure,made_with\nappearance,-0.3,0.2,made,plain-appearance\n"
    )
    thresholds = {"pose": {"consistency": -0.2, "confusion": 0.3}}
    settings = Scoring(thresholds=thresholds, bootstrap_rounds=100)
    compared, cutoffs, subjects, images = (
        folder / f"{name}.parquet" for name in ("compared", "cut", "who", "patterns")
    )
    freeze_subjects(made.generators, tables[1], compared)
    generated = made.write_generated(folder)
    write_thresholds(*tables, folder / "labels.parquet", generated, folder / "defaults.csv", settings, cutoffs)
    write_agreement(folder / "labels.parquet", folder / "tables" / "multibind_agreement.csv")
    tabulate_multibind(*tables, compared, cutoffs, settings, folder / "tables")
    write_outcomes(*tables, compared, cutoffs, settings, subjects, images)
    rows = [_rows(THRESHOLDS, cutoffs), _rows(SUBJECT_OUTCOMES, subjects), _rows(IMAGE_PATTERNS, images)]
    rounded = json.loads(json.dumps(rows), parse_float=lambda text: round(float(text), 6))
    return sha256(canonical_json(rounded) + "".join(path.read_text() for path in sorted((folder / "tables").iterdir())))


def _multibind_figures(folder: Path) -> str:
    """The plots and the gallery of two generators, without the bytes of pictures."""
    from bindbench.figures.multibind_plots import plot_multibind
    from bindbench.multibind.gallery import show_failures

    folder.mkdir()
    faults = {"swapping": {"coco-1": [1, 0]}, "blending": {"coco-1": [(0, 1), None]}}
    paths = make_evaluation(folder / "made", faults, sizes={"coco-1": 2})
    settings = Figures(failure_examples=1, dpi=50)
    plot_multibind(paths.rates, read_table(SUBJECT_OUTCOMES, paths.outcomes).to_pylist(), folder / "plots", settings)
    show_failures(paths, folder / "page.html", folder / "drawn", settings)
    files = [folder / "page.html", *sorted(folder.glob("*/*.svg")), *sorted(folder.glob("*/*/*.svg"))]
    pictures = r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=\s]+"
    return sha256("".join(re.sub(pictures, "", path.read_text()) for path in files))
