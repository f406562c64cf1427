"""MultiBind's evaluation, its measuring: who is found in generated images, and the specialist of each dimension (section 3.3)."""

from typing import Literal

from pydantic import Field, model_validator

from .base import Section
from .multibind_segmentation import Segmentation


class FaceSpecialist(Section):
    """Identity: cosine of the features of the largest face whose middle lies in the subject's mask."""

    method: Literal["embedded", "insightface"] = Field(
        "embedded",
        description="embedded: YuNet and SFace. insightface: a model pack of InsightFace, the paper's; its packs are for "
        "non-commercial research only.",
    )
    pack: str | None = Field(
        None,
        min_length=1,
        description="insightface: folder of the model pack's .onnx files, such as antelopev2; never downloaded.",
    )

    @model_validator(mode="after")
    def _pack_where_one_is_asked(self):
        if self.method == "insightface" and self.pack is None:
            raise ValueError("pack: the method insightface needs the folder of a model pack; name it")
        return self


class AppearanceSpecialist(Section):
    """Looks: cosine of the embeddings of the crops, everything outside the mask grey."""

    embedder: str = Field(
        "efficientnet-lite0",
        min_length=1,
        description="Name of an entry of `embedders` that embeds images; the paper's is a Qwen3-VL-Embedding.",
    )


class PoseSpecialist(Section):
    """Posture: similarity of keypoints in the unit of the subject's box."""

    method: Literal["embedded", "vitpose"] = Field(
        "embedded", description="embedded: MediaPipe's landmarks. vitpose: a ViTPose of transformers, the paper's."
    )
    checkpoint: str | None = Field(
        None, min_length=1, description="vitpose: folder of the checkpoint with COCO's 17 keypoints; never downloaded."
    )
    similarity: Literal["oks", "joint_angles"] = Field(
        "oks",
        description="oks: object keypoint similarity with COCO's tolerances, the box as the scale. joint_angles: mean of "
        "(1 + cos of the difference) / 2 over elbows, shoulders, hips and knees.",
    )
    min_visibility: float = Field(
        0.5, ge=0, le=1, description="MediaPipe's visibility, or ViTPose's score, from which a keypoint is seen."
    )
    common_keypoints: int = Field(
        5,
        ge=1,
        le=17,
        description="Least keypoints that a crop must show, and two crops both, to be compared.",
    )

    @model_validator(mode="after")
    def _checkpoint_where_one_is_asked(self):
        if self.method == "vitpose" and self.checkpoint is None:
            raise ValueError("checkpoint: the method vitpose needs the folder of a checkpoint; name it")
        return self


class ExpressionSpecialist(Section):
    """Expression: cosine of the features of the face that the face specialist's rule chooses."""

    method: Literal["embedded", "embedder"] = Field(
        "embedded",
        description="embedded: MediaPipe's 52 blendshapes, which profiles have none of. embedder: an entry of `embedders` looks "
        "at the face, as in the paper.",
    )
    embedder: str | None = Field(
        None, min_length=1, description="embedder: name of an entry that embeds images, such as a Qwen3-VL-Embedding."
    )
    instruction: str | None = Field(
        "Represent the facial expression of the person.",
        min_length=1,
        description="embedder: takes the place of the entry's own instruction; null for embedders that heed none.",
    )

    @model_validator(mode="after")
    def _embedder_where_one_is_asked(self):
        if self.method == "embedder" and self.embedder is None:
            raise ValueError("embedder: the method embedder needs the name of an entry of embedders; name it")
        return self


class Evaluation(Section):
    """Generated people are matched to slots by their place alone, so that a swap is seen as one."""

    segmentation: Segmentation | None = Field(
        None, description="How people are found in generated images; empty: as multibind.segmentation."
    )
    min_iou: float = Field(
        0.1,
        gt=0,
        le=1,
        description="Least intersection over union of a found person's mask with the subject's to be matched.",
    )
    second_look_iou: float = Field(
        0.4,
        gt=0,
        le=1,
        description="Embedded segmentation: the same for people whose face is not seen, who are looked for only at the places "
        "of subjects without a match; higher, since nothing but the outline speaks for them.",
    )
    min_face_score: float = Field(
        0.7, gt=0, lt=1, description="Face and expression: the detector's score from which a face is one."
    )
    face: FaceSpecialist = Field(default_factory=FaceSpecialist, description="Who it is.")
    appearance: AppearanceSpecialist = Field(default_factory=AppearanceSpecialist, description="Looks and clothes.")
    pose: PoseSpecialist = Field(default_factory=PoseSpecialist, description="Posture.")
    expression: ExpressionSpecialist = Field(default_factory=ExpressionSpecialist, description="What the face shows.")

    @property
    def embedders(self) -> dict[str, str]:
        """By config key below this section, the entry of `embedders` that it names."""
        names = {"appearance.embedder": self.appearance.embedder}
        if self.expression.method == "embedder":
            names["expression.embedder"] = self.expression.embedder
        return names
