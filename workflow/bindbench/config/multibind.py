"""MultiBind: from photographs of several people to instances (3.1, 3.2), and how generators mix people up (3.3 to 5).

One section for each stage.
"""

from pydantic import Field, model_validator

from .base import Section
from .multibind_annotation import Annotation
from .multibind_evaluation import Evaluation
from .multibind_generators import FAULTS, Generation
from .multibind_holistic import Holistic
from .multibind_pictures import Backgrounds, References
from .multibind_quality import Quality
from .multibind_scoring import Scoring
from .multibind_segmentation import Segmentation
from .multibind_selection import Selection
from .multibind_sources import Photographs


class MultiBind(Section):
    photographs: Photographs = Field(default_factory=Photographs, description="Where the photographs come from.")
    segmentation: Segmentation = Field(
        default_factory=Segmentation, description="Who is where, in photographs without masks."
    )
    selection: Selection = Field(default_factory=Selection, description="Which photographs become instances.")
    references: References = Field(default_factory=References, description="The canonical reference of each subject.")
    backgrounds: Backgrounds = Field(default_factory=Backgrounds, description="The photograph without its people.")
    annotation: Annotation = Field(
        default_factory=Annotation, description="What is to be seen, and the prompt from it."
    )
    quality: Quality = Field(default_factory=Quality, description="What keeps an instance out of the data set.")
    generation: Generation = Field(default_factory=Generation, description="The image generators that are evaluated.")
    evaluation: Evaluation = Field(
        default_factory=Evaluation,
        description="Who is where in generated images, and the specialist of each dimension.",
    )
    holistic: Holistic = Field(
        default_factory=Holistic, description="Whole images: FID, CLIP-I, DINO and an aesthetic score (5.1)."
    )
    scoring: Scoring = Field(default_factory=Scoring, description="From similarities to rates.")

    @model_validator(mode="after")
    def _compared_generators_are_there(self):
        for name in self.scoring.compared_generators or ():
            if name not in self.generation.used:
                known = ", ".join(self.generation.used)
                raise ValueError(
                    f"scoring.compared_generators: {name} is no generator; those of generation are {known}"
                )
        return self

    @property
    def compared_generators(self) -> list[str]:
        """The generators that must have a subject for it to be compared (M-2).

        A fault on purpose takes nobody from the comparison: one that leaves people out would halve it for everyone.
        """
        if self.scoring.compared_generators is not None:
            return list(self.scoring.compared_generators)
        generators = self.generation.used
        return [name for name, entry in generators.items() if entry.kind not in FAULTS] or list(generators)
