"""MultiBind: from photographs of several people to instances (3.1, 3.2), and how generators mix people up (3.3 to 5).

One section for each stage.
"""

from pydantic import Field

from .base import Section
from .multibind_annotation import Annotation
from .multibind_evaluation import Evaluation
from .multibind_generators import Generation
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
    scoring: Scoring = Field(default_factory=Scoring, description="From similarities to rates.")
