# The finetuning data: sections B.1 to B.5 and C.1.
if settings.triplets.generation.backend == "grammar":

    include: "grammar_triplets.smk"

else:

    include: "bought_triplets.smk"


rule split_triplets:
    input:
        examples=triplet_shards(".parquet"),
    output:
        expand(
            "<results>/triplets/{split}.parquet",
            split=(
                "train",
                "validation",
                "test",
                "deferred_bind_anaphoric",
                "deferred_bind_respective",
            ),
        ),
    log:
        "<logs>/split_triplets.log",
    benchmark:
        "<benchmarks>/split_triplets.jsonl"
    priority: 1
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        config=stage_config("triplets.splits"),
        version=VERSIONS["triplet_splits"],
    message:
        "Splitting the triplets"
    shell:
        "python -m bindbench split-triplets --examples {input.examples:q} --splits {output:q}"
        " --config {params.config:q} 2> {log:q}"


rule select_triplets:
    input:
        train="<results>/triplets/train.parquet",
        vocabulary=vocabulary_lists(),
    output:
        sets=expand(
            "<results>/triplets/sets/{name}.parquet",
            name=(
                "no_overlap",
                "random",
                "overlap_only",
                "mixed_lengths",
                "no_negation",
            ),
        ),
        sizes="<results>/triplets/sets/sizes.json",
    log:
        "<logs>/select_triplets.log",
    benchmark:
        "<benchmarks>/select_triplets.jsonl"
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=20,
    params:
        config=stage_config("triplets.splits"),
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["triplet_splits"],
    message:
        "Selecting the training sets of the ablations"
    shell:
        "python -m bindbench select-triplets --train {input.train:q} --sets {output.sets:q} --sizes {output.sizes:q}"
        " --vocabulary {params.vocabulary:q} --config {params.config:q} 2> {log:q}"


rule card_triplets:
    input:
        splits=rules.split_triplets.output,
        rejects=triplet_shards(".rejects.parquet"),
        lists=triplet_lists(),
        vocabulary=vocabulary_lists(),
    output:
        card="<results>/triplets/README.md",
        summary="<results>/triplets/summary.json",
        rejects="<results>/triplets/rejects.parquet",
        page=report(
            "<results>/triplets.html",
            caption="../workflow/report/triplets.rst",
            category="Triplets",
            labels={"what": "the finetuning data, to read"},
        ),
        figures=report(
            expand(
                "<results>/figures/triplets_{figure}.svg",
                figure=("accepted", "lengths", "distances", "words", "families"),
            ),
            caption="../workflow/report/triplets.rst",
            category="Triplets",
            subcategory="figures",
        ),
        pictures=expand(
            "<results>/figures/triplets_{figure}.png",
            figure=("accepted", "lengths", "distances", "words", "families"),
        ),
    log:
        "<logs>/card_triplets.log",
    benchmark:
        "<benchmarks>/card_triplets.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        config=stage_config("figures"),
        vocabulary=stage_config("vocabulary"),
        generation=generation_config(),
        version=VERSIONS["triplet_card"],
    message:
        "Writing the card of the triplets"
    shell:
        "python -m bindbench card-triplets --splits {input.splits:q} --rejects {input.rejects:q}"
        " --card {output.card:q} --summary {output.summary:q} --all-rejects {output.rejects:q} --page {output.page:q}"
        " --figures {output.figures:q} --generation {params.generation:q} --vocabulary {params.vocabulary:q}"
        " --config {params.config:q} 2> {log:q}"


rule export_triplets:
    input:
        splits=rules.split_triplets.output,
        summary=rules.card_triplets.output.summary,
    output:
        folder=directory("<results>/triplets/export"),
    log:
        "<logs>/export_triplets.log",
    benchmark:
        "<benchmarks>/export_triplets.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        version=VERSIONS["triplet_card"],
    message:
        "Exporting the triplets as CSV, JSONL and a Hugging Face data set"
    shell:
        "python -m bindbench export-triplets --splits {input.splits:q} --summary {input.summary:q}"
        " --folder {output.folder:q} 2> {log:q}"


rule embed_triplets:
    input:
        splits=measured_splits(),
        weights=embedder_folder,
        adapter=embedder_adapter,
    output:
        embeddings="<results>/embeddings/{model}/triplets.text.parquet",
        facts="<results>/embeddings/{model}/triplets.text.json",
    log:
        "<logs>/embed_triplets/{model}.log",
    benchmark:
        "<benchmarks>/embed_triplets/{model}.jsonl"
    conda:
        "../envs/embed.yaml"
    threads: 8
    resources:
        mem_mb=6000,
        runtime=240,
        gpu=embedder_gpus,
    params:
        cache=embedding_cache,
        config=embedder_config,
        adapter=adapter_argument,
        version=VERSIONS["embedding"],
    message:
        "Embedding the triplets with {wildcards.model}"
    shell:
        "python -m bindbench embed-triplets --splits {input.splits:q} --embeddings {output.embeddings:q}"
        " --model {wildcards.model:q} --cache {params.cache:q} --threads {threads}"
        " {params.adapter} --config {params.config:q} --version {params.version} 2> {log:q}"


rule score_triplets:
    input:
        splits=measured_splits(),
        embeddings="<results>/embeddings/{model}/triplets.text.parquet",
    output:
        scores="<results>/triplets/scores/{model}.parquet",
    log:
        "<logs>/score_triplets/{model}.log",
    benchmark:
        "<benchmarks>/score_triplets/{model}.jsonl"
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        version=VERSIONS["triplet_accuracy"],
    message:
        "Scoring {wildcards.model} on the triplets"
    shell:
        "python -m bindbench score-triplets --splits {input.splits:q} --embeddings {input.embeddings:q}"
        " --scores {output.scores:q} 2> {log:q}"


rule tabulate_triplets:
    input:
        scores=expand("<results>/triplets/scores/{model}.parquet", model=text_models()),
        facts=expand(
            "<results>/embeddings/{model}/triplets.text.json", model=text_models()
        ),
        costs=triplet_shards(".json"),
    output:
        table=report(
            "<results>/triplet_accuracy.csv",
            caption="../workflow/report/triplet_accuracy.rst",
            category="Triplets",
            labels={"what": "triplet accuracy (Table 10)"},
        ),
        manifest="<results>/triplet_manifest.json",
    log:
        "<logs>/tabulate_triplets.log",
    benchmark:
        "<benchmarks>/tabulate_triplets.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=stage_config("tables"),
        models=text_models(),
        behind=config_of_triplets(),
        version=VERSIONS["triplet_accuracy"],
    message:
        "Making the table of triplet accuracy"
    shell:
        "python -m bindbench tabulate-triplets --scores {input.scores:q} --models {params.models:q} --facts {input.facts:q} --costs {input.costs:q}"
        " --table {output.table:q} --manifest {output.manifest:q} --config {params.config:q} --behind {params.behind:q}"
        " 2> {log:q}"
