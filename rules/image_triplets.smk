# Triplets of rendered scenes, for finetuning on images (Appendix E). Always by the embedded renderer; made once a run asks.
rule sample_image_triplets:
    input:
        scenes=rules.sample_questions.output.scenes,
        vocabulary=vocabulary_lists(),
    output:
        train="<results>/image_triplets/train.parquet",
        validation="<results>/image_triplets/validation.parquet",
    log:
        "<logs>/sample_image_triplets.log",
    benchmark:
        "<benchmarks>/sample_image_triplets.jsonl"
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=image_triplets_config(
            "examples", "validation_examples", "object_counts", "seed"
        ),
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["image_triplets"],
    message:
        "Drawing the image triplets"
    shell:
        "python -m bindbench sample-image-triplets"
        " --scenes {input.scenes:q} --train {output.train:q} --validation {output.validation:q}"
        " --vocabulary {params.vocabulary:q} --config {params.config:q} 2> {log:q}"


rule render_image_triplets:
    input:
        examples="<results>/image_triplets/{part}.parquet",
        vocabulary=vocabulary_lists(),
        reliefs=rules.build_reliefs.output.reliefs,
    output:
        images="<results>/image_triplets/{part}/{shard}.parquet",
    log:
        "<logs>/render_image_triplets/{part}/{shard}.log",
    benchmark:
        "<benchmarks>/render_image_triplets/{part}/{shard}.jsonl"
    conda:
        "../envs/scenes.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        config=image_triplets_config("image_px", "seed", "shard_size"),
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["scenes"],
    message:
        "Rendering image triplets, {wildcards.part} {wildcards.shard}"
    shell:
        "python -m bindbench render-image-triplets --examples {input.examples:q} --shard {wildcards.shard}"
        " --reliefs {input.reliefs:q} --images {output.images:q}"
        " --vocabulary {params.vocabulary:q} --config {params.config:q} --version {params.version} 2> {log:q}"
