"""Pose (Table 2: ViTPose): how alike two skeletons are, each in the unit of its own box (M-13).

A skeleton is COCO's 17 keypoints. `embedded` takes them from MediaPipe's landmarks, of the pose that lies in the person's mask;
`vitpose` from a ViTPose of transformers, for the whole box. Fewer common keypoints than the least make a similarity undefined.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from ...config.multibind_evaluation import PoseSpecialist
from ...embedders.sources import digest
from ...errors import UserError, room_on_gpu
from ...files import sha256_of_file
from ...paths import resolve
from ...people.building import POSE_MODEL
from ...people.poses import open_pose_model, poses_of
from .base import Crop, Features, Measure, Specialist

KEY = "multibind.evaluation.pose"
# COCO's keypoints: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles; of pairs the left one first.
SIGMAS = np.array([26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89]) / 1000
MEDIAPIPE = [
    0,
    2,
    5,
    7,
    8,
    11,
    12,
    13,
    14,
    15,
    16,
    23,
    24,
    25,
    26,
    27,
    28,
]  # numbers of the same among its 33 landmarks
# Angles at the second of three keypoints: elbows, shoulders, hips, knees.
JOINTS = np.array([(5, 7, 9), (6, 8, 10), (7, 5, 11), (8, 6, 12), (5, 11, 13), (6, 12, 14), (11, 13, 15), (12, 14, 16)])
POSES = 3  # that MediaPipe looks for in a crop, which may show others too
OWN = 0.5  # share of a pose's visible keypoints that must lie in the person's mask


def specialist(
    settings: PoseSpecialist, models: Path, version: int, device: str | None = None, threads: int | None = None
) -> Specialist:
    """models: the folder of `build_people_models`. Raises UserError for a checkpoint that is no folder."""
    least = settings.common_keypoints
    similarity = partial({"oks": oks, "joint_angles": joint_angles}[settings.similarity], least=least)
    ending = "" if settings.similarity == "oks" else "/joint-angles"
    identity = {
        "method": settings.method,
        "min_visibility": settings.min_visibility,
        "least": least,
        "version": version,
    }
    if settings.method == "embedded":
        model = models / POSE_MODEL
        identity["model"] = sha256_of_file(model) if model.is_file() else None
        opened = partial(_open_embedded, model, settings)
        return Specialist("pose", f"mediapipe-pose{ending}", identity, opened, similarity, batch=16)
    folder = resolve(Path(settings.checkpoint).expanduser())
    if not folder.is_dir():
        raise UserError(f"{KEY}.checkpoint: {folder}: no such folder; put a ViTPose of transformers there")
    identity["files"] = digest([folder])
    opened = partial(_open_vitpose, folder, settings, device, threads)
    return Specialist("pose", f"vitpose/{folder.name}{ending}", identity, opened, similarity, batch=16)


def skeleton(points: np.ndarray, visibility: np.ndarray, crop: Crop, settings: PoseSpecialist) -> Features:
    """(52,) float32: x, y in the unit of the box and 0 or 1 for seen, of 17 keypoints; then the box's width by its height.

    points: (17, 2) in pixels of the crop. Keypoints outside of the crop are not seen.
    """
    height, width = crop.mask.shape
    places = points / [width, height]
    with np.errstate(invalid="ignore"):
        seen = (visibility >= settings.min_visibility) & ((places >= 0) & (places <= 1)).all(1)
    if seen.sum() < settings.common_keypoints:
        return "few_keypoints"
    places = np.where(seen[:, None], places, 0)  # what is not seen must not count, nor be a NaN
    return np.append(np.column_stack([places, seen]), width / height).astype(np.float32)


def oks(first: np.ndarray, second: np.ndarray, least: int) -> np.ndarray:
    """(n, m) float64: COCO's object keypoint similarity of skeletons, in (0, 1], the box being the object's area.

    The mean over common keypoints of exp(-d^2 / (2 (2 sigma)^2)), d in the unit of the box; NaN for fewer than `least`.
    """
    (places, seen), (others, also) = _parts(first), _parts(second)
    distances = ((places[:, None] - others[None]) ** 2).sum(-1)
    return _mean(np.exp(-distances / (2 * (2 * SIGMAS) ** 2)), seen[:, None] & also[None], least)


def joint_angles(first: np.ndarray, second: np.ndarray, least: int) -> np.ndarray:
    """(n, m) float64: mean of (1 + cos of the difference) / 2 over the joints whose angle both show, in [0, 1]; else NaN.

    Also NaN for fewer than `least` common keypoints.
    """
    (angles, known), (others, also) = _angles(first), _angles(second)
    alike = (1 + np.cos(angles[:, None] - others[None])) / 2
    values = _mean(alike, known[:, None] & also[None], 1)
    common = (_parts(first)[1][:, None] & _parts(second)[1][None]).sum(-1)
    return np.where(common >= least, values, np.nan)


def _parts(skeletons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 17, 2) float64 places in the unit of the box, and (n, 17) bool which are seen."""
    points = np.asarray(skeletons, np.float64)[:, :-1].reshape(-1, len(SIGMAS), 3)
    return points[..., :2], points[..., 2] > 0.5


def _angles(skeletons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 8) radians from one limb to the other, turning the same way, and (n, 8) bool which are known."""
    places, seen = _parts(skeletons)
    shape = np.asarray(skeletons, np.float64)[:, -1]
    places = places * np.stack([shape, np.ones_like(shape)], -1)[:, None]  # angles need the box's true shape
    start, joint, end = (places[:, JOINTS[:, index]] for index in range(3))
    one, other = start - joint, end - joint
    angles = np.arctan2(one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0], (one * other).sum(-1))
    return angles, seen[:, JOINTS].all(-1) & one.any(-1) & other.any(-1)


def _mean(values: np.ndarray, counted: np.ndarray, least: int) -> np.ndarray:
    number = counted.sum(-1)
    total = np.where(counted, values, 0).sum(-1)
    return np.where(number >= least, total / np.maximum(number, 1), np.nan)


@contextmanager
def _open_embedded(path: Path, settings: PoseSpecialist) -> Iterator[Measure]:
    with open_pose_model(path, POSES) as model:
        yield lambda crops: [_landmarks(model, crop, settings) for crop in crops]


def _landmarks(model, crop: Crop, settings: PoseSpecialist) -> Features:
    """Of MediaPipe's poses the one of which most lies in the mask; of equal ones the first."""
    best, share = None, 0.0
    for pose in poses_of(model, crop.pixels):
        landmarks = pose.landmarks[MEDIAPIPE].astype(np.float64)
        inside = _share_inside(landmarks[landmarks[:, 2] >= settings.min_visibility, :2], crop.mask)
        if inside >= OWN and inside > share:
            best, share = landmarks, inside
    return "no_pose" if best is None else skeleton(best[:, :2], best[:, 2], crop, settings)


def _share_inside(points: np.ndarray, mask: np.ndarray) -> float:
    """Share of (n, 2) places that lie in a (height, width) bool mask; 0 for none."""
    columns, rows = np.floor(points).astype(int).T
    within = (rows >= 0) & (rows < mask.shape[0]) & (columns >= 0) & (columns < mask.shape[1])
    return float(mask[rows[within], columns[within]].sum() / len(points)) if len(points) else 0.0


@contextmanager
def _open_vitpose(folder: Path, settings: PoseSpecialist, device: str | None, threads: int | None) -> Iterator[Measure]:
    import torch
    from transformers import AutoImageProcessor, VitPoseForPoseEstimation

    if threads:
        torch.set_num_threads(threads)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
        model, report = VitPoseForPoseEstimation.from_pretrained(
            folder, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # transformers raises OSError, ValueError, KeyError, safetensors' own and more
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(f"{KEY}.checkpoint: {folder}: not a ViTPose of transformers ({reason})") from None
    if report["missing_keys"]:
        raise UserError(
            f"{KEY}.checkpoint: {folder} has no weights for {min(report['missing_keys'])}; get the whole checkpoint"
        )
    keypoints = model.config.num_labels
    if keypoints != len(SIGMAS):
        raise UserError(
            f"{KEY}.checkpoint: {folder} has {keypoints} keypoints; one with COCO's {len(SIGMAS)} is needed"
        )
    room = partial(room_on_gpu, f"{KEY}.checkpoint: {folder}", "end other programs on it, take a smaller checkpoint")
    with room():
        model = model.to(device).eval()

    def measure(crops: list[Crop]) -> list[Features]:
        with room():
            return [_keypoints(processor, model, crop, settings) for crop in crops]

    yield measure


def _keypoints(processor, model, crop: Crop, settings: PoseSpecialist) -> Features:
    import torch

    height, width = crop.mask.shape
    boxes = [[[0.0, 0.0, float(width), float(height)]]]
    inputs = processor([crop.pixels], boxes=boxes, return_tensors="pt").to(model.device)
    if getattr(model.config.backbone_config, "num_experts", 1) > 1:
        inputs["dataset_index"] = torch.zeros(1, dtype=torch.int64, device=model.device)  # of ViTPose+: COCO's expert
    with torch.inference_mode():
        outputs = model(**inputs)
    found = processor.post_process_pose_estimation(outputs, boxes=boxes)[0][0]
    points, scores = (found[name].cpu().numpy().astype(np.float64) for name in ("keypoints", "scores"))
    return skeleton(points.reshape(-1, 2), scores.reshape(-1), crop, settings)
