# MultiBind: photographs, instances, generated images, rates, figures.
include: "multibind_photographs.smk"
include: "multibind_instances.smk"
include: "multibind_evaluation.smk"
include: "multibind_holistic.smk"
include: "multibind_figures.smk"
