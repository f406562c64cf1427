"""The tables of MultiBind's evaluation (sections 3.3 and 3.4): who was found, what could be measured, and how similar it is.

A generated image has the slots of its instance. Slot i is matched when a person was found at the place of the instance's
i-th subject; in the tables of similarities a row is a matched generated subject, a column a subject of the real photograph.
"""

import pyarrow as pa

from ..tables import Column, Table

_GENERATOR = Column("generator", pa.string(), "name of the image generator")
_INSTANCE = Column("instance", pa.string(), "id")
_DIMENSION = Column("dimension", pa.string(), "face, appearance, pose or expression (Table 2)")

SLOTS_MATCHED = Table(
    "multibind/slots_matched",
    ("generator", "instance", "slot"),
    (
        _GENERATOR,
        _INSTANCE,
        Column("slot", pa.string(), "A to D: every slot of the instance, also where no image was generated"),
        Column("matched", pa.bool_(), "a person was found at the subject's place"),
        Column("iou", pa.float32(), "intersection over union of the two masks; empty: not matched", optional=True),
        Column("box", pa.list_(pa.float32()), "in pixels of the generated image; empty: not matched", optional=True),
        Column("mask", pa.string(), "run lengths, of the generated image's size; empty: not matched", optional=True),
        Column("reason", pa.string(), "why it is not matched, a short name", optional=True),
    ),
)

VALIDITY = Table(
    "multibind/validity",
    ("generator", "instance", "dimension", "slot"),
    (
        _GENERATOR,
        _INSTANCE,
        _DIMENSION,
        Column("slot", pa.string(), "A to D: every slot of the instance"),
        Column("matched", pa.bool_(), "as in the matched slots"),
        Column("valid_true", pa.bool_(), "the specialist has an output for the real crop: the slot is in V_d"),
        Column("valid_generated", pa.bool_(), "and for the generated crop; false where the slot is not matched"),
        Column("reason", pa.string(), "why the specialist has none, a short name", optional=True),
        Column("specialist", pa.string(), "name of the model that measured the dimension"),
    ),
)

SIMILARITIES = Table(
    "multibind/similarities",
    ("generator", "instance", "dimension", "row", "column"),
    (
        _GENERATOR,
        _INSTANCE,
        _DIMENSION,
        Column("row", pa.string(), "slot of R_d: matched, and both crops valid"),
        Column("column", pa.string(), "slot of V_d: the real crop is valid"),
        Column("s_gen", pa.float64(), "similarity of the row's generated crop with the column's real crop"),
        Column("s_gt", pa.float64(), "similarity of the row's real crop with the column's real crop"),
        Column("delta", pa.float64(), "s_gen minus s_gt"),
    ),
)

ANY_COLUMN = ""  # of a label that says only whether a crop is confused with anyone

LABELS = Table(
    "multibind/labels",
    ("generator", "instance", "dimension", "row", "column", "by", "sha256"),
    (
        _GENERATOR,
        _INSTANCE,
        _DIMENSION,
        Column("row", pa.string(), "slot of the generated crop that was judged"),
        Column("column", pa.string(), "slot of the real crop beside it; empty: any other than its own"),
        Column("label", pa.bool_(), "column = row: is consistent with it; another column: is confused with it"),
        Column("by", pa.string(), "who judged it"),
        Column("sha256", pa.string(), "of the generated picture that was judged: labels belong to bytes"),
    ),
)

DEFAULT_LABELS = Table(
    "multibind/default_labels",
    ("generator", "instance", "dimension", "row", "column"),
    (
        Column("generator", pa.string(), "name of a generator of which it is known who is in which slot"),
        _INSTANCE,
        _DIMENSION,
        Column("row", pa.string(), "slot of the generated crop"),
        Column("column", pa.string(), "slot of the real crop beside it"),
        Column("label", pa.bool_(), "column = row: is consistent with it; another column: is confused with it"),
        Column("delta", pa.float64(), "s_gen minus s_gt"),
        Column("specialist", pa.string(), "name of the model that measured the dimension"),
    ),
)

COMPARED_SUBJECTS = Table(
    "multibind/compared_subjects",
    ("instance", "slot"),
    (
        _INSTANCE,
        Column("slot", pa.string(), "A to D"),
        Column(
            "compared", pa.bool_(), "every generator that decides has it: on these subjects generators are compared"
        ),
        Column("missed_by", pa.list_(pa.string()), "those that decide in whose image it was not found"),
        Column(
            "decided_by",
            pa.list_(pa.string()),
            "generators that decide, all but faults on purpose: the same in each row",
        ),
    ),
)

THRESHOLD_KINDS = ("self", "confusion")

THRESHOLDS = Table(
    "multibind/thresholds",
    ("dimension", "kind"),
    (
        _DIMENSION,
        Column("kind", pa.string(), "self: of consistency, on the diagonal; confusion: off the diagonal"),
        Column(
            "threshold", pa.float64(), "delta from which on it holds; empty: the dimension is left out", optional=True
        ),
        Column("source", pa.string(), "labels, config or default; none: there is no threshold"),
        Column("calibrated", pa.bool_(), "made from labels of people"),
        Column("made_with", pa.string(), "specialist on whose similarities it was made", optional=True),
        Column("reason", pa.string(), "why the dimension is left out", optional=True),
        Column("labels", pa.int32(), "used"),
        Column("positive", pa.int32(), "of them"),
        Column("unused", pa.int32(), "labels of crops that have no valid similarity"),
        Column("stale", pa.int32(), "labels of pictures that were generated again since, not used either"),
        Column(
            "labelled",
            pa.string(),
            "pair or crop (delta is then the largest of the row); empty: no labels",
            optional=True,
        ),
        Column("f1", pa.float64(), "of the labels with the threshold", optional=True),
        Column("f1_low", pa.float64(), "lower bound of its bootstrap interval over instances", optional=True),
        Column("f1_high", pa.float64(), "upper bound", optional=True),
        Column(
            "f1_cross_validated", pa.float64(), "of labels judged by a threshold from other instances", optional=True
        ),
        Column("precision", pa.float64(), "of the labels with the threshold", optional=True),
        Column("recall", pa.float64(), "of the labels with the threshold", optional=True),
        Column("threshold_low", pa.float64(), "lower bound of the bootstrap interval of the threshold", optional=True),
        Column("threshold_high", pa.float64(), "upper bound", optional=True),
    ),
)

SUBJECT_OUTCOMES = Table(
    "multibind/subject_outcomes",
    ("generator", "instance", "dimension", "slot"),
    (
        _GENERATOR,
        _INSTANCE,
        _DIMENSION,
        Column("slot", pa.string(), "of R_d: a generated subject that could be measured"),
        Column(
            "compared", pa.bool_(), "generators are compared on it: each that decides has it, see compared_subjects"
        ),
        Column("outcome", pa.string(), "success, drift, replaced or mixed; empty: no thresholds", optional=True),
        Column("confused_with", pa.list_(pa.string()), "slots of the real subjects it is confused with, in order"),
        Column("delta_self", pa.float64(), "on the diagonal"),
        Column("delta_other", pa.float64(), "largest off the diagonal; empty: there is no other", optional=True),
        Column("nearest_other", pa.string(), "slot of that largest delta", optional=True),
        Column("js", pa.float64(), "Jensen-Shannon shift of its row in nats; empty: there is no other", optional=True),
        Column("undiagnosable", pa.bool_(), "its real subject is nearly the same as another one"),
    ),
)

IMAGE_PATTERNS = Table(
    "multibind/image_patterns",
    ("generator", "instance", "dimension"),
    (
        _GENERATOR,
        _INSTANCE,
        _DIMENSION,
        Column("rows", pa.int32(), "measured generated subjects, |R_d|"),
        Column("columns", pa.int32(), "measured real subjects, |V_d|"),
        Column(
            "patterns",
            pa.list_(pa.string()),
            "swap, swap_partial, swap_2cycle, dominance, dominance_total, blending: those it has; empty: fewer than two rows, or"
            " no thresholds",
            optional=True,
        ),
    ),
)
