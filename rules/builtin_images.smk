# Images by the embedded renderer (scenes.renderer: builtin).
# They lie beside their shard's table and are no outputs of their own: Snakemake would delete what a killed job had finished.
rule fetch_shapes:
    output:
        shapes="<results>/scenes/noto.json",
    log:
        "<logs>/fetch_shapes.log",
    benchmark:
        "<benchmarks>/fetch_shapes.jsonl"
    conda:
        "../envs/scenes.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        version=VERSIONS["shapes"],
    message:
        "Fetching the Noto shapes (3 MB, once)"
    shell:
        "python -m bindbench fetch-shapes --shapes {output.shapes:q} 2> {log:q}"


rule build_reliefs:
    input:
        vocabulary=vocabulary_lists(),
        drawings=vocabulary_drawings(),
        shapes=rules.fetch_shapes.output.shapes,
    output:
        reliefs="<results>/scenes/reliefs.bin",
    log:
        "<logs>/build_reliefs.log",
    benchmark:
        "<benchmarks>/build_reliefs.jsonl"
    conda:
        "../envs/scenes.yaml"
    threads: 2
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["scenes"],
    message:
        "Turning the shapes into reliefs"
    shell:
        "python -m bindbench build-reliefs"
        " --shapes {input.shapes:q} --reliefs {output.reliefs:q} --workers {threads}"
        " --vocabulary {params.vocabulary:q} 2> {log:q}"


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
