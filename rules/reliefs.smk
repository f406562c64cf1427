# The objects' shapes as reliefs: what the embedded renderer draws scenes and image triplets with.


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
