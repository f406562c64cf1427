# Plots and the sheet of answers.
rule plot_saber:
    input:
        tables=[rules.tabulate_saber.output.by_n, rules.tabulate_saber.output.details],
    output:
        figures=report(
            expand(
                "<results>/figures/saber_{figure}.svg",
                figure=(
                    "accuracy_by_n",
                    "retrieval_by_n",
                    "by_category",
                    "candidate_kinds",
                ),
            ),
            caption="../workflow/report/figures.rst",
            category="SABER",
            subcategory="figures",
        ),
        pictures=expand(
            "<results>/figures/saber_{figure}.png",
            figure=(
                "accuracy_by_n",
                "retrieval_by_n",
                "by_category",
                "candidate_kinds",
            ),
        ),
    log:
        "<logs>/plot_saber.log",
    benchmark:
        "<benchmarks>/plot_saber.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        config=stage_config("figures"),
        version=VERSIONS["figures"],
    message:
        "Drawing the figures of SABER"
    shell:
        "python -m bindbench plot-saber --tables {input.tables:q} --figures {output.figures:q}"
        " --config {params.config:q} 2> {log:q}"


rule draw_answer_sheet:
    input:
        scores=expand("<results>/saber/scores/{model}.parquet", model=settings.models),
        questions=scored("questions"),
        scenes=scored("scenes"),
        images=image_tables(),
    output:
        sheet=report(
            "<results>/saber_answers.html",
            caption="../workflow/report/answers.rst",
            category="SABER",
            labels={"what": "what each model ranked first"},
        ),
    log:
        "<logs>/draw_answer_sheet.log",
    benchmark:
        "<benchmarks>/draw_answer_sheet.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=stage_config("figures"),
        models=list(settings.models),
        version=VERSIONS["figures"],
    message:
        "Drawing the sheet of answers"
    shell:
        "python -m bindbench draw-answer-sheet --scores {input.scores:q} --models {params.models:q}"
        " --questions {input.questions:q} --scenes {input.scenes:q} --images {input.images:q}"
        " --sheet {output.sheet:q} --config {params.config:q} 2> {log:q}"
