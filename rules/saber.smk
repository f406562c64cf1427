# SABER: questions, scenes, embeddings, scores, figures.
include: "questions.smk"
include: "scenes.smk"
include: "screening.smk"
include: "embed.smk"
include: "score.smk"
include: "single_objects.smk"
include: "figures.smk"
