"""Version of each stage's result, bumped by hand when a change of code changes what the stage writes.

A version is a param of its rules, so a bump runs the stage again; an edit that changes nothing does not (a docstring must
not re-bill thousands of images). tests/unit/test_stage_versions.py fails when the output on fixed inputs changed and the
version did not.
"""

VERSIONS = {
    "questions": 1,
    "shapes": 1,
    "scenes": 1,
    "bought_scenes": 1,
    "screening": 1,
    "embedding": 1,
    "scoring": 1,
    "triplets": 1,
    "triplet_splits": 1,
    "triplet_card": 1,
    "triplet_accuracy": 1,
    "image_triplets": 1,
    "finetuning": 1,
    "nano_scenes": 1,
    "nano": 2,
    "attention": 1,
    "attention_table": 1,
    "single_objects": 1,
    "single_object_scores": 1,
    "tables": 3,
    "ablations": 1,
    "figures": 1,
    "people_models": 1,
    "photographs": 2,
    "segmentation": 2,
    "selection": 1,
    "references": 1,
    "backgrounds": 1,
    "annotation": 2,
    "prompts": 1,
    "instances": 1,
    "instance_sheet": 1,
    "generation": 1,
    "matching": 1,
    "specialists": 1,
    "holistic": 1,
    "multibind_rates": 5,
    "multibind_figures": 2,
    "default_thresholds": 1,
}
