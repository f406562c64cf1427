"""The tables of MultiBind: photographs with their people, chosen instances, their subjects, and what is made for them.

A box is [x, y, width, height] in pixels; a mask is COCO's compressed run lengths of its image's size. Files of pictures are
named beside their hash, relative to the folder that the same rule writes.
"""

import pyarrow as pa

from ..tables import Column, Table

SLOTS = ("A", "B", "C", "D")  # from left to right (section 3.2: 2 to 4 subjects)

PERSON = pa.struct(
    [
        ("person", pa.string()),  # id within the photograph
        ("box", pa.list_(pa.float32())),
        ("mask", pa.string()),  # or null: none is known
        ("crowd", pa.bool_()),  # a region of several people, never a subject
        ("score", pa.float32()),  # of the detector; 1 for people that the data set names
    ]
)

PHOTOGRAPHS = Table(
    "multibind/photographs",
    ("photograph",),
    (
        Column("photograph", pa.string(), "id: source/name"),
        Column("source", pa.string(), "coco, objects365, cihp, mhp, folder or builtin"),
        Column("path", pa.string(), "file of the photograph"),
        Column("width", pa.int32(), "pixels, upright"),
        Column("height", pa.int32(), "pixels, upright"),
        Column("licence", pa.string(), "as the source states it"),
        Column("people", pa.list_(PERSON), "everyone who is annotated or was found"),
        Column("sha256", pa.string(), "of the file, where people were looked for in it", optional=True),
        Column("reason", pa.string(), "why it cannot be used, a short name; empty: it can", optional=True),
        Column("detail", pa.string(), "what exactly is wrong", optional=True),
    ),
)

SELECTED = Table(
    "multibind/selected",
    ("instance",),
    (
        Column("instance", pa.string(), "id: the photograph's, with a dash for the stroke"),
        Column("photograph", pa.string(), "id"),
        Column("source", pa.string(), "data set"),
        Column("licence", pa.string(), "as the source states it"),
        Column("n_subjects", pa.int32(), "people, 2 to 4"),
        Column("width", pa.int32(), "of the target in pixels"),
        Column("height", pa.int32(), "of the target in pixels"),
        Column("target", pa.string(), "file of the real photograph, upright and within the size limit"),
        Column("sha256", pa.string(), "of the target's file"),
        Column("original_sha256", pa.string(), "of the photograph's file as the source has it"),
        Column("transforms", pa.list_(pa.string()), "what was done to it, in order"),
        Column("sharpness", pa.float32(), "variance of the Laplacian, in grey levels squared"),
        Column("perceptual_hash", pa.string(), "64 bits, hexadecimal"),
    ),
)

CROPS = Table(
    "multibind/crops",
    ("instance", "slot"),
    (
        Column("instance", pa.string(), "id"),
        Column("slot", pa.string(), "A to D, from left to right"),
        Column("person", pa.string(), "id within the photograph"),
        Column("box", pa.list_(pa.float32()), "in pixels of the target"),
        Column("mask", pa.string(), "run lengths, of the target's size"),
        Column("area", pa.float32(), "share of the target that the mask covers"),
        Column("filled", pa.float32(), "share of the box that the mask covers"),
        Column("pieces", pa.int32(), "connected parts of the mask of at least a hundredth of its area"),
        Column("at_border", pa.float32(), "share of the box's outline that lies on the border of the photograph"),
        Column("overlap", pa.float32(), "largest share of this box that another subject's box covers"),
        Column("sharpness", pa.float32(), "variance of the Laplacian within the crop, in grey levels squared"),
        Column("crop", pa.string(), "file: the box of the target"),
        Column("crop_sha256", pa.string(), "of the crop's file"),
        Column("mask_file", pa.string(), "file: the mask as a picture of the target's size, 0 and 255"),
        Column("mask_sha256", pa.string(), "of the mask's file"),
    ),
)

REJECTED = Table(
    "multibind/rejected",
    ("photograph",),
    (
        Column("photograph", pa.string(), "id"),
        Column("source", pa.string(), "data set"),
        Column("reason", pa.string(), "a short name"),
        Column("detail", pa.string(), "the figure that decided, or what is wrong"),
    ),
)

REFERENCES = Table(
    "multibind/references",
    ("instance", "slot"),
    (
        Column("instance", pa.string(), "id"),
        Column("slot", pa.string(), "A to D"),
        Column("reference", pa.string(), "file of the canonical reference; empty: none was made", optional=True),
        Column("sha256", pa.string(), "of the reference's file", optional=True),
        Column("model", pa.string(), "what made it"),
        Column("problems", pa.list_(pa.string()), "what the automatic checks found, short names"),
    ),
)

BACKGROUNDS = Table(
    "multibind/backgrounds",
    ("instance",),
    (
        Column("instance", pa.string(), "id"),
        Column("background", pa.string(), "file, of the target's size; empty: none was made", optional=True),
        Column("sha256", pa.string(), "of the background's file", optional=True),
        Column("model", pa.string(), "what made it"),
        Column("people_left", pa.int32(), "people that the check still finds; empty: it was not made", optional=True),
        Column("problems", pa.list_(pa.string()), "what the automatic checks found, short names"),
    ),
)

ANNOTATIONS = Table(
    "multibind/annotations",
    ("instance",),
    (
        Column("instance", pa.string(), "id"),
        Column("annotation", pa.string(), "JSON of annotation.Annotation; empty: none was made", optional=True),
        Column("model", pa.string(), "what made it"),
        Column("problems", pa.list_(pa.string()), "what the automatic checks found, short names"),
    ),
)

PROMPTS = Table(
    "multibind/prompts",
    ("instance",),
    (
        Column("instance", pa.string(), "id"),
        Column("prompt", pa.string(), "entity-indexed; empty: there is no annotation", optional=True),
        Column("words", pa.int32(), "of the prompt"),
        Column("problems", pa.list_(pa.string()), "what the linter found, short names"),
    ),
)

INSTANCES = Table(
    "multibind/instances",
    ("instance",),
    (
        Column("instance", pa.string(), "id"),
        Column("photograph", pa.string(), "id within its source"),
        Column("source", pa.string(), "data set"),
        Column("licence", pa.string(), "of the photograph, as the source states it"),
        Column("n_subjects", pa.int32(), "people, 2 to 4"),
        Column("width", pa.int32(), "of the target in pixels"),
        Column("height", pa.int32(), "of the target in pixels"),
        Column("transforms", pa.list_(pa.string()), "what was done to the photograph, in order"),
        Column("original_sha256", pa.string(), "of the photograph's file as the source has it"),
        Column("target", pa.string(), "file, relative to the folder of this table"),
        Column("target_sha256", pa.string(), "of the target's file"),
        Column("background", pa.string(), "file, relative to the folder of this table"),
        Column("background_sha256", pa.string(), "of the background's file"),
        Column("background_model", pa.string(), "what removed the people"),
        Column("annotation", pa.string(), "JSON of annotation.Annotation"),
        Column("annotation_model", pa.string(), "what described the photograph"),
        Column("prompt", pa.string(), "entity-indexed"),
        Column("words", pa.int32(), "of the prompt"),
        Column("verdict", pa.string(), "of a person: accepted, or open"),
    ),
)

SUBJECTS = Table(
    "multibind/subjects",
    ("instance", "slot"),
    (
        Column("instance", pa.string(), "id"),
        Column("slot", pa.string(), "A to D, from left to right"),
        Column("box", pa.list_(pa.float32()), "in pixels of the target"),
        Column("mask", pa.string(), "run lengths, of the target's size"),
        Column("crop", pa.string(), "file, relative to the folder of this table"),
        Column("crop_sha256", pa.string(), "of the crop's file"),
        Column("mask_file", pa.string(), "file, relative to the folder of this table"),
        Column("mask_sha256", pa.string(), "of the mask's file"),
        Column("reference", pa.string(), "file of the canonical reference, relative to the folder of this table"),
        Column("reference_sha256", pa.string(), "of the reference's file"),
        Column("reference_model", pa.string(), "what made the reference"),
    ),
)

PART_VERDICTS = Table(
    "multibind/verdicts",
    ("instance", "part", "slot"),
    (
        Column("instance", pa.string(), "id"),
        Column("part", pa.string(), "instance, crop, reference, background, annotation or prompt"),
        Column("slot", pa.string(), "A to D; empty: of the whole instance"),
        Column("sha256", pa.string(), "of what was judged: parts.Part"),
        Column("verdict", pa.string(), "of a person: accepted, rejected or open"),
        Column("reason", pa.string(), "why it was rejected", optional=True),
        Column("by", pa.string(), "who judged it", optional=True),
        Column("attempt", pa.int32(), "how many of its kind stand rejected: the attempt, from 0, to be made now"),
    ),
)

LEFT_OUT = Table(
    "multibind/left_out",
    ("instance", "part", "slot", "reason"),
    (
        Column("instance", pa.string(), "id"),
        Column("part", pa.string(), "instance, crop, reference, background, annotation or prompt"),
        Column("slot", pa.string(), "A to D; empty: of the whole instance"),
        Column("reason", pa.string(), "missing, rejected, open, or the name of an automatic problem"),
        Column("detail", pa.string(), "the words of who rejected it", optional=True),
    ),
)
