# Images by the embedded renderer (scenes.renderer: builtin).
# They lie beside their shard's table and are no outputs of their own: Snakemake would delete what a killed job had finished.
rule render_scenes:
    input:
        scenes=rules.sample_questions.output.scenes,
        vocabulary=vocabulary_lists(),
        reliefs=rules.build_reliefs.output.reliefs,
        journal=screening_journal(),
    output:
        images="<results>/saber/images/{shard}.parquet",
    log:
        "<logs>/render_scenes/{shard}.log",
    benchmark:
        "<benchmarks>/render_scenes/{shard}.jsonl"
    conda:
        "../envs/scenes.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        config=stage_config("scenes"),
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["scenes"],
    message:
        "Rendering shard {wildcards.shard}"
    shell:
        "python -m bindbench render-scenes --scenes {input.scenes:q} --shard {wildcards.shard}"
        " --reliefs {input.reliefs:q} --journal {input.journal:q}"
        " --images {output.images:q} --vocabulary {params.vocabulary:q} --config {params.config:q}"
        " --version {params.version} 2> {log:q}"
