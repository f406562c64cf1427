# From scenes to images (section A.4), by whom the config says, and people's verdicts on them.
include: "reliefs.smk"


if settings.scenes.renderer == "builtin":

    include: "builtin_images.smk"

else:

    include: "bought_images.smk"


rule draw_contact_sheet:
    input:
        scenes=rules.sample_questions.output.scenes,
        questions=rules.sample_questions.output.questions,
        images=image_tables(),
    output:
        sheet=report(
            "<results>/saber_scenes.html",
            caption="../workflow/report/scenes.rst",
            category="SABER",
            labels={"what": "questions: query and candidates"},
        ),
    log:
        "<logs>/draw_contact_sheet.log",
    benchmark:
        "<benchmarks>/draw_contact_sheet.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=stage_config("figures"),
        version=VERSIONS["figures"],
    message:
        "Drawing the contact sheet"
    shell:
        "python -m bindbench draw-contact-sheet --questions {input.questions:q} --scenes {input.scenes:q}"
        " --images {input.images:q} --sheet {output.sheet:q} --config {params.config:q} 2> {log:q}"
