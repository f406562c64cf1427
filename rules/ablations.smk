# Tables of ablations (Tables 11 to 13, Appendix E) out of the runs that the config names.
rule tabulate_ablations:
    input:
        scores=expand("<results>/saber/scores/{model}.parquet", model=ablation_models()),
        triplets=expand(
            "<results>/triplets/scores/{model}.parquet",
            model=ablation_models(reads_text=True),
        ),
        facts=ablation_facts(),
        questions=scored("questions"),
        costs=image_costs() + triplet_shards(".json"),
        screening=screening_counts(),
        reference=escaped(resolve("resources/reference/saber_paper.csv")),
    output:
        tables=report(
            multiext("<results>/ablations", ".csv", ".html"),
            caption="../workflow/report/ablations.rst",
            category="Ablations",
        ),
        manifest="<results>/ablations_manifest.json",
    log:
        "<logs>/tabulate_ablations.log",
    benchmark:
        "<benchmarks>/tabulate_ablations.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        config=stage_config("tables"),
        plan=ablation_plan(),
        models=ablation_models(),
        text_models=ablation_models(reads_text=True),
        behind=config_of_ablations(),
        screening=lambda wildcards, input: (
            f"--screening {input.screening}" if input.screening else ""
        ),
        version=VERSIONS["ablations"],
    message:
        "Making the tables of ablations"
    shell:
        "python -m bindbench tabulate-ablations --scores {input.scores:q} --models {params.models:q}"
        " --triplets {input.triplets:q} --text-models {params.text_models:q} --facts {input.facts:q} --costs {input.costs:q}"
        " --questions {input.questions:q} --reference {input.reference:q} --table {output.tables[0]:q} --page {output.tables[1]:q}"
        " --manifest {output.manifest:q} --plan {params.plan:q} --config {params.config:q} --behind {params.behind:q}"
        " {params.screening} 2> {log:q}"
