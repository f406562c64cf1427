"""The card of a pretrained nano embedder: README.md beside its weights, from the record of its pretraining."""

CARD = """---
license: apache-2.0
library_name: sentence-transformers
pipeline_tag: sentence-similarity
language: en
tags: [qwen3_vl, multimodal, attribute-binding]
---
# nano: a miniature Qwen3-VL embedder, made by this project

A `Qwen3VLModel` of {parameters:.1f} M parameters ({megabytes:.1f} MB in float16), pretrained by us from random
weights on nothing but scenes that our own renderer drew, their captions, and sentences of our own grammar. It stands
in for Qwen3-VL-Embedding where there is no GPU and no hub: the same classes, chat format and last-token pooling at a
thousandth of the size.

**Its numbers are comparable with nothing but its own.** They are no estimate of what Qwen3-VL-Embedding or any other
model scores, and it knows no picture and no word from outside our scenes and sentences.

## Use
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("resources/models/nano", model_kwargs={{"dtype": "float32"}})
model.encode(["a red cube and a striped dog"])  # (1, {width}); images: PIL images or paths
```
An ordinary sentence-transformers folder. It was trained without a system message, so its entry in the config has no instruction.
Images are resized to 160 x 160 pixels (25 visual tokens); texts are cut at {text_tokens} tokens.

## Architecture
| | text decoder | vision tower |
|---|---|---|
| layers, width | {layers}, {width} | {vision_layers}, {vision_width} |
| heads | {heads} ({key_heads} for keys and values) of {head_width} | {vision_heads} of {vision_head_width} |
| feed-forward | {feed_forward} | {vision_feed_forward} |
| positions | M-RoPE [12, 10, 10] | patch 16, merge 2, one DeepStack level (after block 1) |

Byte-level BPE of {tokens} tokens, trained on captions of our vocabulary and on the triplets' training split.

## Training
`snakemake results/nano/model/model.safetensors` makes it from nothing. {scenes} scenes in two views each;
{words_steps} steps in which every visual token must point to the words of the object and the attribute that it shows
(batches of {words_batch} images); {joint_steps} steps (batches of {joint_batch} scenes) of contrast between images, captions and
sentences, of grounding (the state of an object's word in a caption against the visual tokens of that object, among all
objects of the batch), of captioning, and of retelling a scene or a sentence from its embedding. Scenes of a batch share
their words by blocks. In three quarters of the steps, captions with one concept replaced are contrasted. Captions with
swapped attributes {siblings}. Grounding teaches binding half-way through the decoder; how much of it reaches the
embedding depends on the number of joint steps: with the default little, so that this is the "before" model of the paper's
experiment, with 900 nearly all.
{minutes:.0f} minutes on {machine}; a curve of every loss is in `log.csv` of the run.

**A tenth of the attribute-object combinations is held out** (`bindbench.nano.combinations`): they are in no training
image, caption or negative.

## Figures
On the first {check_scenes} of {validation_scenes} scenes that were not trained on: the image of a single object is
closest to its own phrase among all {phrases} in **{single_object:.1f} %**; the image of a scene of two to four objects
is closer to its caption than to the same with attributes exchanged in **{binding:.1f} %** (chance 50). A test of the
repository measures both again. All other figures (SABER, seen and held-out combinations apart) are in the tables of
the default workflow.

## Licence
Apache-2.0, as the rest of this project. Weights, tokenizer, chat template and training data are our own work.
"""


def card(record: dict) -> str:
    """record: of `making.make_nano`."""
    from . import model

    settings, check = record["settings"], record["check"]
    return CARD.format(
        **{key: settings[key] for key in ("words_steps", "words_batch", "joint_steps", "joint_batch")},
        parameters=record["parameters"] / 1e6,
        megabytes=2 * record["parameters"] / 1e6,
        tokens=record["tokens"],
        scenes=record["scenes"],
        siblings="were contrasted too" if settings["siblings"] else "were never shown",
        minutes=record["seconds"] / 60,
        machine=record["machine"],
        check_scenes=check["scenes"],
        validation_scenes=settings["validation_scenes"],
        phrases=f"{record['phrases']:,}",
        single_object=100 * check["single_object"],
        binding=100 * check["binding"],
        text_tokens=model.TEXT_TOKENS,
        layers=model.LAYERS,
        width=model.WIDTH,
        heads=model.HEADS,
        key_heads=model.KEY_HEADS,
        head_width=model.HEAD_WIDTH,
        feed_forward=model.FEED_FORWARD,
        vision_layers=model.VISION_LAYERS,
        vision_width=model.VISION_WIDTH,
        vision_heads=model.VISION_HEADS,
        vision_head_width=model.VISION_WIDTH // model.VISION_HEADS,
        vision_feed_forward=model.VISION_FEED_FORWARD,
    )
