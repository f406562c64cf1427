"""The embedded annotation: what can be measured of a photograph, in words (section 3.2 has a vision-language model write it).

Colours by region of the mask, named by the nearest of a small table in CIELAB; posture, arms and legs from MediaPipe's joints;
the turn of the head from five landmarks of the face; expression and gaze from blendshapes; position and relations from boxes;
background, light and camera from pixels. Nothing is claimed that was not measured: where a word goes beyond the figure, it
says `apparently`, and what is hidden or outside the picture is left out. Bare skin is never described.

Picture coordinates: x to the right, y down, pixels of the target. Left and right of a person are the person's own.
"""

from collections.abc import Sequence

import cv2
import numpy as np

from ..config.multibind_annotation import Measures
from .annotation import Annotation, position_of
from .measures.bodies import Body, Person
from .measures.colours import clothes_of, hair_of, lab_of
from .measures.faces import expression_phrase, gaze_phrase, head_phrase
from .measures.poses import action_phrase, arms_phrase, body_phrase, legs_phrase
from .measures.relations import relations_of
from .measures.surroundings import background_of, camera_of, light_of

WORKING_SIDE = 512  # pixels; colours and light are measured on a picture no larger than this


def measured_annotation(image: np.ndarray, people: Sequence[Person], limits: Measures) -> Annotation:
    """The annotation of a (height, width, 3) uint8 RGB target and its people, in the order of their slots."""
    height, width = image.shape[:2]
    scale = min(1.0, WORKING_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    lab = lab_of(cv2.resize(image, size, interpolation=cv2.INTER_AREA))
    masks = [_resized(person.mask, size) for person in people]
    bodies = [Body(person, width, height, limits.visibility) for person in people]
    subjects = {
        body.person.slot: {
            "clothes": clothes_of(lab, mask, body, scale, limits),
            "appearance": {"hair": hair_of(lab, mask, body, scale, limits)},
            "pose": {
                "body": body_phrase(body),
                "head": head_phrase(body),
                "arms": arms_phrase(body),
                "legs": legs_phrase(body),
            },
            "action": action_phrase(body, limits),
            "expression": expression_phrase(body, limits),
            "gaze": gaze_phrase(body, limits),
            "position": position_of(body.person.box, width, height),
        }
        for body, mask in zip(bodies, masks, strict=True)
    }
    behind = ~cv2.dilate(np.any(masks, 0).astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
    return Annotation.model_validate(
        {
            "subjects": subjects,
            "relations": relations_of(bodies),
            "background": background_of(lab, behind, limits),
            "light": light_of(lab),
            "camera": camera_of(image, np.any([person.mask for person in people], 0), bodies),
        }
    )


def _resized(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    return cv2.resize(mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST).astype(bool)
