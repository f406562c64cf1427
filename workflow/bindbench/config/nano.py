"""Pretraining of the nano embedder: our own, described in its card."""

from pydantic import Field, model_validator

from .base import Section


class Nano(Section):
    """Everything here is ours. The defaults made the weights in resources/models/nano."""

    seed: int = Field(0, ge=0, description="Draws scenes, first weights and batches.")
    shards: int = Field(12, ge=1, description="Shards of training scenes; a scene has two views.")
    shard_size: int = Field(2000, ge=2, description="Scenes of one shard; one job renders it.")
    validation_scenes: int = Field(1200, ge=50, description="Scenes that the curves are measured on.")
    words_steps: int = Field(1300, ge=1, description="Steps of the first stage: visual tokens point to words.")
    words_batch: int = Field(64, ge=1, description="Images in one of them.")
    words_rate: float = Field(2e-3, gt=0, description="Muon's learning rate; AdamW's is 0.6 of it.")
    joint_steps: int = Field(
        280,
        ge=1,
        description="Steps of the second stage: contrast, grounding, captioning, retelling. With 280 the decoder grounds most "
        "phrases half-way through while the embeddings hardly bind; with 900 nothing is left for finetuning to teach.",
    )
    joint_batch: int = Field(48, ge=4, description="Scenes in one of them: two images and two captions each.")
    joint_rate: float = Field(1e-3, gt=0, description="Muon's learning rate; AdamW's is 0.6 of it.")
    pointing_weight: float = Field(1.0, ge=0, description="Of the first stage's loss in the second stage.")
    grounding_weight: float = Field(1.0, ge=0, description="Of finding each object of a caption in the image.")
    captioning_weight: float = Field(0.25, ge=0, description="Of the caption that the decoder writes behind an image.")
    retelling_weight: float = Field(0.5, ge=0, description="Of the caption that is retold from an embedding alone.")
    language_weight: float = Field(0.25, ge=0, description="Of foretelling the words of the triplets' sentences.")
    siblings: bool = Field(
        False, description="Contrast captions with swapped attributes too: binding learnt from images (Appendix E)."
    )
    log_every: int = Field(20, ge=1, description="Steps in one row of the curves.")
    validate_every: int = Field(100, ge=1, description="Steps of the second stage between validations.")
    checkpoint_minutes: float = Field(3, gt=0, description="A killed run loses at most so many minutes of work.")

    @model_validator(mode="after")
    def _a_batch_is_no_larger_than_the_data(self):
        if self.joint_batch > self.shards * self.shard_size:
            raise ValueError(
                f"joint_batch: there are only {self.shards * self.shard_size} scenes (shards times shard_size); lower it"
            )
        return self
