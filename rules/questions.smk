# SABER's questions: sections 3, A.1 to A.3 and A.5.
rule sample_questions:
    input:
        vocabulary=vocabulary_lists(),
    output:
        questions="<results>/saber/questions.parquet",
        scenes="<results>/saber/scenes.parquet",
    log:
        "<logs>/sample_questions.log",
    benchmark:
        "<benchmarks>/sample_questions.jsonl"
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
    params:
        config=stage_config("questions"),
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["questions"],
    message:
        "Drawing the questions of SABER"
    shell:
        "python -m bindbench sample-questions"
        " --questions {output.questions:q} --scenes {output.scenes:q}"
        " --vocabulary {params.vocabulary:q} --config {params.config:q} 2> {log:q}"
