"""What every generator is given (section 5.1): the references in the order of the slots, the background, then the words."""

from ..pictures import prompt_of
from .scene import Scene

PROMPT = "resources/prompts/multibind/generate.txt"


def words_of(scene: Scene) -> str:
    """The entity-indexed prompt, behind a sentence that says which picture is which.

    Raises UserError when the template is missing or broken.
    """
    pictures = [f"reference {slot} (subject {slot})" for slot in scene.slots] + ["the background reference"]
    listed = ", ".join(f"picture {number} is {what}" for number, what in enumerate(pictures, 1))
    return prompt_of(PROMPT, pictures=listed, prompt=scene.row["prompt"])
