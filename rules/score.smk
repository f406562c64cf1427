# Scores of each embedder, then the tables of all: sections 3 and 5.1.
rule score_saber:
    input:
        unpack(embeddings_of),
        questions=scored("questions"),
        scenes=scored("scenes"),
    output:
        scores="<results>/saber/scores/{model}.parquet",
    log:
        "<logs>/score_saber/{model}.log",
    benchmark:
        "<benchmarks>/score_saber/{model}.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 2
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        embeddings=lambda wildcards, input: " ".join(
            f"--{kind} {input[kind]}"
            for kind in ("texts", "images")
            if kind in input.keys()
        ),
        version=VERSIONS["scoring"],
    message:
        "Scoring {wildcards.model} on SABER"
    shell:
        "python -m bindbench score-saber --questions {input.questions:q} --scenes {input.scenes:q}"
        " {params.embeddings} --scores {output.scores:q} 2> {log:q}"


rule tabulate_saber:
    input:
        scores=expand("<results>/saber/scores/{model}.parquet", model=settings.models),
        facts=[
            f"<results>/embeddings/{model}/saber.{modality}.json"
            for model in settings.models
            for modality in settings.entry_of(model).modalities
        ],
        questions=scored("questions"),
        scenes=scored("scenes"),
        vocabulary=vocabulary_lists(),
        costs=image_costs(),
        screening=screening_counts(),
        reference=escaped(resolve("resources/reference/saber_paper.csv")),
    output:
        table2=report(
            "<results>/saber_table2.csv",
            caption="../workflow/report/table2.rst",
            category="SABER",
            labels={"what": "Table 2"},
        ),
        page=report(
            "<results>/saber_table2.html",
            caption="../workflow/report/table2.rst",
            category="SABER",
            labels={"what": "Table 2, to read"},
        ),
        by_n=report(
            expand(
                "<results>/saber_{table}.csv", table=("table17", "table18", "table19")
            ),
            caption="../workflow/report/by_n.rst",
            category="SABER",
            subcategory="by number of objects",
        ),
        details=report(
            expand(
                "<results>/saber_{table}.csv",
                table=(
                    "differences",
                    "gains",
                    "by_category",
                    "by_combination",
                    "by_candidate_kind",
                    "containment",
                    "top_four",
                ),
            ),
            caption="../workflow/report/details.rst",
            category="SABER",
            subcategory="details",
        ),
        manifest="<results>/saber_manifest.json",
    log:
        "<logs>/tabulate_saber.log",
    benchmark:
        "<benchmarks>/tabulate_saber.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        config=stage_config("tables"),
        vocabulary=stage_config("vocabulary"),
        models=list(settings.models),
        behind=config_of_results(),
        bases=measured_bases(),
        seeds=measured_seeds(),
        more=lambda wildcards, input: " ".join(
            f"--{kind} {' '.join(input[kind])}"
            for kind in ("costs", "screening")
            if input[kind]
        ),
        version=VERSIONS["tables"],
    message:
        "Making the tables of SABER"
    shell:
        "python -m bindbench tabulate-saber --scores {input.scores:q} --facts {input.facts:q} --models {params.models:q}"
        " --questions {input.questions:q} --scenes {input.scenes:q} --reference {input.reference:q}"
        " --table2 {output.table2:q} --manifest {output.manifest:q} --vocabulary {params.vocabulary:q}"
        " --config {params.config:q} --bases {params.bases:q} --seeds {params.seeds:q}"
        " --behind {params.behind:q} {params.more} 2> {log:q}"
