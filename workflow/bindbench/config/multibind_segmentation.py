"""MultiBind's segmentation: who is where, in photographs whose source has no masks (section 3.2)."""

from typing import Literal

from pydantic import Field, model_validator

from .base import Section


class Segmentation(Section):
    """Photographs that come with masks pass as they are."""

    method: Literal["embedded", "yolo"] = Field(
        "embedded",
        description="embedded: faces by YuNet, then MediaPipe's pose segmentation of each person; people without a face that "
        "is seen are missed. yolo: a YOLO segmentation model of ultralytics (AGPL-3.0, and so are its weights).",
    )
    yolo_weights: str | None = Field(
        None,
        min_length=1,
        description="yolo: file of a segmentation model's weights, such as yolo11x-seg.pt; never downloaded. A .pt file is "
        "read without running code from it.",
    )
    yolo_image_px: int = Field(
        640, ge=32, le=4096, multiple_of=32, description="yolo: longest side at which it looks, in pixels."
    )
    min_face_score: float = Field(0.7, gt=0, lt=1, description="embedded: YuNet's score from which a face is one.")
    min_person_score: float = Field(
        0.25, gt=0, lt=1, description="yolo: the detector's score from which a person is one."
    )
    mask_threshold: float = Field(
        0.5, gt=0, lt=1, description="embedded: how surely a pixel must be of a person to be in the mask."
    )
    min_area: float = Field(
        0.001, ge=0, lt=1, description="People whose mask covers a smaller share of the photograph are not kept."
    )

    @model_validator(mode="after")
    def _yolo_has_weights(self):
        if self.method == "yolo" and self.yolo_weights is None:
            raise ValueError("yolo_weights: method yolo needs the file of a segmentation model's weights; name it")
        return self
