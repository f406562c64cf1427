"""The whole configuration."""

from pydantic import Field, field_validator, model_validator

from .ablations import Ablation, AblationName
from .attention import Attention
from .base import Section
from .embedders import DEFAULT_EMBEDDERS, Embedder, EmbedderName
from .finetuning import NOT_SCALED, Finetuning
from .image_triplets import ImageTriplets
from .multibind import MultiBind
from .multibind_generators import PAID
from .nano import Nano
from .questions import Questions, Vocabulary
from .scenes import Scenes
from .scoring import Figures, Tables
from .screening import Screening
from .services import Services
from .single_objects import SingleObjects
from .triplets import Triplets


class Config(Section):
    """Every key of config/config.yaml. Threads, memory, GPUs and partitions are not here: they belong to profiles."""

    vocabulary: Vocabulary = Field(default_factory=Vocabulary, description="Objects and attributes (A.1).")
    questions: Questions = Field(
        default_factory=Questions, description="How many questions are drawn, and how (A.2, A.5)."
    )
    scenes: Scenes = Field(default_factory=Scenes, description="How scenes become images (A.4).")
    models: tuple[EmbedderName, ...] = Field(
        (
            *("nano", "nano-lora", "nano-lora-nolines", "minilm", "minilm-lora", "minilm-lora-nolines"),
            *("wordllama", "efficientnet-lite0"),
        ),
        min_length=1,
        description="Names of the embedders that are measured, in the order of the tables. A run of `finetuning` is one too: "
        "its name for the adapter that LiNeS has scaled, the name and -nolines for the adapter as it was trained.",
    )
    embedders: dict[EmbedderName, Embedder] = Field(
        DEFAULT_EMBEDDERS,
        description="Every embedder that `models` may name. A given entry changes single keys of the default one of its name.",
    )
    screening: Screening = Field(default_factory=Screening, description="Verdicts of people on the images (A.4).")
    single_objects: SingleObjects = Field(
        default_factory=SingleObjects,
        description="The single-object measure: images of one object, named among all phrases of the vocabulary.",
    )
    triplets: Triplets = Field(default_factory=Triplets, description="The finetuning data (Appendix B).")
    image_triplets: ImageTriplets = Field(
        default_factory=ImageTriplets,
        description="Rendered triplets (Appendix E); made once a run of `finetuning` has `data: image_triplets`.",
    )
    finetuning: Finetuning = Field(
        default_factory=Finetuning,
        description="Finetuning on the triplets (B.5); `models` may name what the runs make.",
    )
    ablations: dict[AblationName, Ablation] = Field(
        default_factory=dict,
        description="Tables of ablations by name (C.1 to C.3, Appendix E); all their models are among `models`.",
    )
    nano: Nano = Field(
        default_factory=Nano,
        description="Pretraining of the nano embedder from nothing; its weights are in resources/models/nano.",
    )
    attention: Attention = Field(
        default_factory=Attention, description="Analysis of the attention between attributes and objects (C.3)."
    )
    multibind: MultiBind = Field(
        default_factory=MultiBind,
        description="MultiBind: the data set from real photographs, and generators on it.",
    )
    tables: Tables = Field(default_factory=Tables, description="Intervals around the means: every mean has one.")
    figures: Figures = Field(default_factory=Figures, description="Plots and sheets.")
    services: Services = Field(
        default_factory=Services,
        description="Paid services: the store of what was bought, calls, prices and the budget.",
    )

    @field_validator("embedders", mode="before")
    @classmethod
    def _over_the_defaults(cls, given):
        """A given entry changes single keys of the default one of its name; the other defaults stay."""
        if not isinstance(given, dict):
            return given
        entries = {name: entry.model_dump(exclude_unset=True) for name, entry in DEFAULT_EMBEDDERS.items()}
        for name, entry in given.items():
            entries[name] = {**entries.get(name, {}), **entry} if isinstance(entry, dict) else entry
        return entries

    @model_validator(mode="after")
    def _models_are_known(self):
        known = [*self.embedders, *(name + end for name in self.finetuning.runs for end in ("", NOT_SCALED))]
        for name in self.models:
            if name not in known:
                raise ValueError(f"models: {name} is not among the embedders ({', '.join(known)})")
        if len({name.lower() for name in self.models}) != len(self.models):
            raise ValueError(
                "models: a name is given twice (names that differ in case only share a folder on some machines)"
            )
        return self

    @model_validator(mode="after")
    def _runs_have_a_base(self):
        for name, run in self.finetuning.runs.items():
            if run.base not in self.embedders:
                raise ValueError(
                    f"finetuning.runs.{name}.base: {run.base} is not among the embedders ({', '.join(self.embedders)})"
                )
            if run.learns_images and "image" not in self.embedders[run.base].modalities:
                raise ValueError(
                    f"finetuning.runs.{name}.base: {run.base} embeds no images, and image_triplets are images;"
                    " choose another base"
                )
            if name in self.embedders or name + NOT_SCALED in self.embedders:
                raise ValueError(f"finetuning.runs.{name}: an embedder has this name already; choose another one")
        return self

    @model_validator(mode="after")
    def _ablations_are_measured(self):
        for name, table in self.ablations.items():
            for key, wanted in (("baseline", (table.baseline,)), ("models", table.models)):
                for model in wanted:
                    if model not in self.models:
                        raise ValueError(
                            f"ablations.{name}.{key}: {model} is not among the models that are measured; add it to models"
                        )
        return self

    @model_validator(mode="after")
    def _attention_can_be_read(self):
        for name in self.attention.models:
            if name not in self.models:
                raise ValueError(
                    f"attention.models: {name} is not among the models that are measured; add it to models"
                )
            if not self.entry_of(name).has_text_attention:
                raise ValueError(f"attention.models: {name} has no attention between words; leave it out")
        if len(set(self.attention.models)) != len(self.attention.models):
            raise ValueError("attention.models: a name is given twice")
        return self

    @model_validator(mode="after")
    def _specialists_embed_images(self):
        for key, name in self.multibind.evaluation.embedders.items():
            place = f"multibind.evaluation.{key}"
            if name not in self.embedders:
                raise ValueError(f"{place}: {name} is not among the embedders ({', '.join(self.embedders)})")
            if "image" not in self.embedders[name].modalities:
                raise ValueError(f"{place}: {name} embeds no images; choose another one")
        return self

    @model_validator(mode="after")
    def _whole_images_are_embedded(self):
        for key, name in self.multibind.holistic.embedders.items():
            place = f"multibind.holistic.{key}"
            if name not in self.embedders:
                raise ValueError(f"{place}: {name} is not among the embedders ({', '.join(self.embedders)})")
            if "image" not in self.embedders[name].modalities:
                raise ValueError(f"{place}: {name} embeds no images; choose another one")
        return self

    @model_validator(mode="after")
    def _what_is_bought_has_a_price(self):
        for key, name in self._paid_models().items():
            if name not in self.services.prices:
                raise ValueError(
                    f"{key}: services.prices has none for {name}; add an entry (all zero for a server of your own)"
                )
        return self

    def _paid_models(self) -> dict[str, str]:
        """What the stages of this config buy from, by the key that names it."""
        multibind, found = self.multibind, {}
        if self.scenes.renderer == "openai":
            found["scenes.model"] = self.scenes.model
        if self.triplets.generation.backend != "grammar":
            found["triplets.generation.model"] = self.triplets.generation.model
        if multibind.annotation.method != "embedded":
            found["multibind.annotation.model"] = multibind.annotation.model
        for part in ("references", "backgrounds"):
            section = getattr(multibind, part)
            if section.method in ("gemini", "openai"):
                found[f"multibind.{part}.{section.method}_model"] = getattr(section, f"{section.method}_model")
        for name, generator in multibind.generation.used.items():
            if generator.kind in PAID:
                found[f"multibind.generation.generators.{name}.model"] = generator.model_name
        return found

    def run_of(self, model: str) -> str | None:
        """The run of `finetuning` whose adapter a model of `models` has; None for an embedder as it is."""
        if model in self.embedders:
            return None
        return model if model in self.finetuning.runs else model.removesuffix(NOT_SCALED)

    def entry_of(self, model: str) -> Embedder:
        """The entry of a model of `models`: of a finetuned one, its base's."""
        run = self.run_of(model)
        return self.embedders[self.finetuning.runs[run].base if run else model]
