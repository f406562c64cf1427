# The nano embedder from nothing: its scenes, its pretraining, its curves. Nothing of the default workflow asks for it; the
# weights it made are in resources/models/nano. `snakemake results/nano/model/model.safetensors`
rule render_nano_scenes:
    input:
        vocabulary=vocabulary_lists(),
        reliefs=rules.build_reliefs.output.reliefs,
    output:
        pixels="<results>/nano/scenes/{nano_part}.npy",
        table="<results>/nano/scenes/{nano_part}.parquet",
    log:
        "<logs>/render_nano_scenes/{nano_part}.log",
    benchmark:
        "<benchmarks>/render_nano_scenes/{nano_part}.jsonl"
    wildcard_constraints:
        nano_part="[0-9]+|validation",
    conda:
        "../envs/scenes.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        config=nano_scenes_config,
        vocabulary=stage_config("vocabulary"),
        version=f'{VERSIONS["scenes"]}.{VERSIONS["nano_scenes"]}',
    message:
        "Rendering scenes for nano, {wildcards.nano_part}"
    shell:
        "python -m bindbench render-nano-scenes --part {wildcards.nano_part} --reliefs {input.reliefs:q}"
        " --pixels {output.pixels:q} --table {output.table:q}"
        " --vocabulary {params.vocabulary:q} --config {params.config:q} 2> {log:q}"


# Checkpoints stay beside the outputs: a killed run goes on.
rule pretrain_nano:
    input:
        pixels=nano_shards(".npy"),
        tables=nano_shards(".parquet"),
        held_pixels="<results>/nano/scenes/validation.npy",
        held_table="<results>/nano/scenes/validation.parquet",
        triplets="<results>/triplets/train.parquet",
        vocabulary=vocabulary_lists(),
    output:
        weights="<results>/nano/model/model.safetensors",
        tokenizer="<results>/nano/model/tokenizer.json",
        card="<results>/nano/model/README.md",
        curves="<results>/nano/log.csv",
        record="<results>/nano/record.json",
    log:
        "<logs>/pretrain_nano.log",
    benchmark:
        "<benchmarks>/pretrain_nano.jsonl"
    conda:
        "../envs/embed.yaml"
    threads: 8
    resources:
        mem_mb=12000,
        runtime=1440,
    params:
        config=stage_config("nano"),
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["nano"],
    message:
        "Pretraining the nano embedder"
    shell:
        "python -m bindbench pretrain-nano --pixels {input.pixels:q} --tables {input.tables:q}"
        " --held-pixels {input.held_pixels:q} --held-table {input.held_table:q} --triplets {input.triplets:q}"
        " --record {output.record:q} --threads {threads}"
        " --vocabulary {params.vocabulary:q} --config {params.config:q} 2> {log:q}"


rule plot_nano:
    input:
        curves=rules.pretrain_nano.output.curves,
    output:
        figure="<results>/figures/nano_pretraining.svg",
        picture="<results>/figures/nano_pretraining.png",
    log:
        "<logs>/plot_nano.log",
    benchmark:
        "<benchmarks>/plot_nano.jsonl"
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
        "Drawing the curves of nano's pretraining"
    shell:
        "python -m bindbench plot-nano --curves {input.curves:q} --figure {output.figure:q}"
        " --config {params.config:q} 2> {log:q}"
