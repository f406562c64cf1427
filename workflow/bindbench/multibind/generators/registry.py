"""Which module makes the pictures of which kind of generator."""

from . import (
    blend,
    blur,
    collage,
    copy,
    gemini,
    hunyuan,
    missing,
    omnigen2,
    openai,
    qwen_image_edit,
    seedream,
    swap,
    target,
)

# picture(scene, settings): (height, width, 3) uint8, of the target's size.
EMBEDDED = {
    "target": target.picture,
    "collage": collage.picture,
    "swap": swap.picture,
    "copy": copy.picture,
    "blend": blend.picture,
    "blur": blur.picture,
    "missing": missing.picture,
}

# KIND and body(scene, settings) of a services.requests.Request, whose images are scene.files.
PAID = {"gemini": gemini, "openai": openai, "seedream": seedream}

# open_model(settings): what makes (height, width, 3) uint8, of any size, of a scene. Their libraries are imported there.
OPEN = {"hunyuan": hunyuan.open_model, "qwen-image-edit": qwen_image_edit.open_model, "omnigen2": omnigen2.open_model}
