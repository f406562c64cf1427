# Triplets, the nano embedder, finetuning on them, its ablations and attention.
include: "triplets.smk"
include: "nano.smk"
include: "image_triplets.smk"
include: "finetune.smk"
include: "ablations.smk"
include: "attention.smk"
