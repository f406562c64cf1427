# Attention between attributes and objects (C.3): the binding margins of each model, their table, and Figure 4.
rule measure_attention:
    input:
        train="<results>/triplets/train.parquet",
        test="<results>/triplets/test.parquet",
        scenes=rules.sample_questions.output.scenes,
        weights=embedder_folder,
        adapter=embedder_adapter,
    output:
        margins="<results>/attention/{model}.parquet",
        facts="<results>/attention/{model}.json",
    log:
        "<logs>/measure_attention/{model}.log",
    benchmark:
        "<benchmarks>/measure_attention/{model}.jsonl"
    conda:
        "../envs/embed.yaml"
    threads: 8
    resources:
        mem_mb=6000,
        runtime=120,
        gpu=embedder_gpus,
    params:
        config=embedder_config,
        adapter=adapter_argument,
        captions=attention_captions(),
        version=VERSIONS["attention"],
    message:
        "Measuring the attention of {wildcards.model}"
    shell:
        "python -m bindbench measure-attention --train {input.train:q} --test {input.test:q} --scenes {input.scenes:q}"
        " --margins {output.margins:q} --model {wildcards.model:q} --threads {threads} {params.adapter}"
        " --attention {params.captions:q} --config {params.config:q} --version {params.version} 2> {log:q}"


rule tabulate_attention:
    input:
        margins=expand("<results>/attention/{model}.parquet", model=attention_models()),
        facts=expand("<results>/attention/{model}.json", model=attention_models()),
        costs=triplet_shards(".json"),
    output:
        table=report(
            "<results>/attention.csv",
            caption="../workflow/report/attention.rst",
            category="Attention",
            labels={"what": "attention binding margins by layer"},
        ),
        manifest="<results>/attention_manifest.json",
    log:
        "<logs>/tabulate_attention.log",
    benchmark:
        "<benchmarks>/tabulate_attention.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=stage_config("tables"),
        models=attention_models(),
        behind=config_of_attention(),
        version=VERSIONS["attention_table"],
    message:
        "Making the table of attention"
    shell:
        "python -m bindbench tabulate-attention --margins {input.margins:q} --models {params.models:q}"
        " --facts {input.facts:q} --costs {input.costs:q} --table {output.table:q} --manifest {output.manifest:q}"
        " --config {params.config:q} --behind {params.behind:q} 2> {log:q}"


rule plot_attention:
    input:
        table=rules.tabulate_attention.output.table,
    output:
        figure=report(
            "<results>/figures/attention.svg",
            caption="../workflow/report/attention.rst",
            category="Attention",
            labels={"what": "attention binding margins by layer (Figure 4)"},
        ),
        picture="<results>/figures/attention.png",
    log:
        "<logs>/plot_attention.log",
    benchmark:
        "<benchmarks>/plot_attention.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=stage_config("figures"),
        version=VERSIONS["attention_table"],
    message:
        "Drawing the figure of attention"
    shell:
        "python -m bindbench plot-attention --table {input.table:q} --figure {output.figure:q}"
        " --config {params.config:q} 2> {log:q}"
