# Verdicts of people on the images (A.4): which questions may be scored.
rule screen_questions:
    input:
        questions=rules.sample_questions.output.questions,
        scenes=rules.sample_questions.output.scenes,
        images=image_tables(),
        journal=screening_journal(),
    output:
        verdicts="<results>/saber/screened/verdicts.parquet",
        questions="<results>/saber/screened/questions.parquet",
        scenes="<results>/saber/screened/scenes.parquet",
        counts="<results>/saber/screened/counts.json",
    log:
        "<logs>/screen_questions.log",
    benchmark:
        "<benchmarks>/screen_questions.jsonl"
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
    params:
        config=stage_config("screening"),
        version=VERSIONS["screening"],
    message:
        "Leaving out questions whose images were rejected"
    shell:
        "python -m bindbench screen-questions --questions {input.questions:q} --scenes {input.scenes:q}"
        " --images {input.images:q} --verdicts {output.verdicts:q} --screened-questions {output.questions:q}"
        " --screened-scenes {output.scenes:q} --counts {output.counts:q} --config {params.config:q} 2> {log:q}"
