# MultiBind, section 5.1: whole generated images against their photographs, where a checkpoint is configured. Features are kept.
rule measure_holistic:
    input:
        generated=rules.generate_images.output.generated,
        instances=rules.assemble_instances.output.instances,
        weights=holistic_files(),
    output:
        scores="<results>/multibind/holistic/{generator}.parquet",
    log:
        "<logs>/measure_holistic/{generator}.log",
    benchmark:
        "<benchmarks>/measure_holistic/{generator}.jsonl"
    conda:
        "../envs/evaluate.yaml"
    threads: 1
    resources:
        mem_mb=6000,
        runtime=240,
        gpu=holistic_gpus(),
    params:
        config=stage_config("multibind.holistic"),
        embedders=holistic_embedders(),
        version=VERSIONS["holistic"],
    message:
        "Measuring the whole images of {wildcards.generator}"
    shell:
        "python -m bindbench measure-holistic --generated {input.generated:q} --instances {input.instances:q}"
        " --scores {output.scores:q} --embedders {params.embedders:q} --version {params.version} --threads {threads}"
        " --config {params.config:q} 2> {log:q}"
