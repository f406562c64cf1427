# Finetuning on the triplets (B.5) and LiNeS (C.2): one job for each run of the config. Checkpoints stay beside the outputs.
rule finetune:
    input:
        unpack(run_data),
        weights=base_files,
    output:
        adapter="<results>/finetuning/{run}/adapter/adapter_model.safetensors",
        adapter_config="<results>/finetuning/{run}/adapter/adapter_config.json",
        lines="<results>/finetuning/{run}/adapter_lines/adapter_model.safetensors",
        lines_config="<results>/finetuning/{run}/adapter_lines/adapter_config.json",
        curves="<results>/finetuning/{run}/log.csv",
        record="<results>/finetuning/{run}/record.json",
    log:
        "<logs>/finetune/{run}.log",
    benchmark:
        "<benchmarks>/finetune/{run}.jsonl"
    # The longest chain of a run begins with it: started late, it would keep all else waiting.
    priority: 2
    conda:
        "../envs/embed.yaml"
    threads: 8
    resources:
        mem_mb=8000,
        runtime=1440,
        gpu=base_gpus,
    params:
        config=run_config,
        base=base_config,
        version=VERSIONS["finetuning"],
    message:
        "Finetuning {wildcards.run}"
    shell:
        "python -m bindbench finetune --run {wildcards.run:q} --train {input.train:q} --validation {input.validation:q}"
        " --train-images {input.train_images:q} --validation-images {input.validation_images:q}"
        " --record {output.record:q} --threads {threads} --base {params.base:q} --config {params.config:q} 2> {log:q}"
