# bindbench: SABER and MultiBind, end to end. `snakemake --cores 8 results/saber_table2.csv`
from snakemake.utils import min_version

min_version("9.20")


pathvars:
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


include: "rules/common.smk"


report: "workflow/report/workflow.rst"


if Path("config/config.yaml").exists():

    configfile: "config/config.yaml"


settings = checked_settings()


wildcard_constraints:
    shard=r"[0-9]+",
    model=model_names(),
    run=run_names(),
    construction="|".join(settings.triplets.counts),
    part="train|validation",
    generator=generator_names(),


include: "rules/saber.smk"
include: "rules/finetuning.smk"
include: "rules/multibind.smk"


# Everything of one paper.
rule saber:
    input:
        rules.tabulate_saber.output,
        rules.plot_saber.output,
        rules.draw_contact_sheet.output,
        rules.draw_answer_sheet.output,
        single_object_table(),
        rules.split_triplets.output,
        rules.select_triplets.output,
        rules.card_triplets.output,
        rules.tabulate_triplets.output,
        rules.tabulate_ablations.output if settings.ablations else [],
        attention_figure(),


rule multibind:
    input:
        rules.assemble_instances.output,
        rules.draw_instances.output,
        rules.tabulate_multibind.output,
        rules.plot_multibind.output,
        rules.show_multibind_failures.output,


rule all:
    default_target: True
    input:
        rules.saber.input,
        rules.multibind.input,


onstart:
    note_start()
