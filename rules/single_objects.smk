# Single objects: is the image of one object closest to its own phrase among all of the vocabulary? Ours, beside SABER.
rule sample_single_objects:
    input:
        vocabulary=vocabulary_lists(),
    output:
        scenes="<results>/single_objects/scenes.parquet",
        phrases="<results>/single_objects/phrases.parquet",
    log:
        "<logs>/sample_single_objects.log",
    benchmark:
        "<benchmarks>/sample_single_objects.jsonl"
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
    params:
        config=stage_config("single_objects"),
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["single_objects"],
    message:
        "Drawing the single objects"
    shell:
        "python -m bindbench sample-single-objects"
        " --scenes {output.scenes:q} --phrases {output.phrases:q}"
        " --vocabulary {params.vocabulary:q} --config {params.config:q} 2> {log:q}"


rule render_single_objects:
    input:
        scenes=rules.sample_single_objects.output.scenes,
        vocabulary=vocabulary_lists(),
        reliefs=rules.build_reliefs.output.reliefs,
    output:
        images="<results>/single_objects/images/{shard}.parquet",
    log:
        "<logs>/render_single_objects/{shard}.log",
    benchmark:
        "<benchmarks>/render_single_objects/{shard}.jsonl"
    conda:
        "../envs/scenes.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        config=single_object_scenes(),
        vocabulary=stage_config("vocabulary"),
        version=VERSIONS["scenes"],
    message:
        "Rendering single objects, shard {wildcards.shard}"
    shell:
        "python -m bindbench render-single-objects --scenes {input.scenes:q} --shard {wildcards.shard}"
        " --reliefs {input.reliefs:q} --images {output.images:q}"
        " --vocabulary {params.vocabulary:q} --config {params.config:q} --version {params.version} 2> {log:q}"


rule embed_single_objects:
    input:
        phrases=rules.sample_single_objects.output.phrases,
        images=single_object_images(),
        weights=embedder_folder,
        adapter=embedder_adapter,
    output:
        embeddings="<results>/embeddings/{model}/single_objects.text.parquet",
        facts="<results>/embeddings/{model}/single_objects.text.json",
        image_embeddings="<results>/embeddings/{model}/single_objects.image.parquet",
        image_facts="<results>/embeddings/{model}/single_objects.image.json",
    log:
        "<logs>/embed_single_objects/{model}.log",
    benchmark:
        "<benchmarks>/embed_single_objects/{model}.jsonl"
    conda:
        "../envs/embed.yaml"
    threads: 8
    resources:
        mem_mb=6000,
        runtime=120,
        gpu=embedder_gpus,
    params:
        cache=embedding_cache,
        config=embedder_config,
        adapter=adapter_argument,
        version=VERSIONS["embedding"],
    message:
        "Embedding single objects and all phrases with {wildcards.model}"
    shell:
        "python -m bindbench embed-single-objects --phrases {input.phrases:q} --images {input.images:q}"
        " --embeddings {output.embeddings:q} --image-embeddings {output.image_embeddings:q}"
        " --model {wildcards.model:q} --cache {params.cache:q} --threads {threads}"
        " {params.adapter} --config {params.config:q} --version {params.version} 2> {log:q}"


rule score_single_objects:
    input:
        scenes=rules.sample_single_objects.output.scenes,
        phrases=rules.sample_single_objects.output.phrases,
        texts="<results>/embeddings/{model}/single_objects.text.parquet",
        images="<results>/embeddings/{model}/single_objects.image.parquet",
    output:
        scores="<results>/single_objects/scores/{model}.parquet",
    log:
        "<logs>/score_single_objects/{model}.log",
    benchmark:
        "<benchmarks>/score_single_objects/{model}.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 2
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        version=VERSIONS["single_object_scores"],
    message:
        "Scoring {wildcards.model} on single objects"
    shell:
        "python -m bindbench score-single-objects --scenes {input.scenes:q} --phrases {input.phrases:q}"
        " --texts {input.texts:q} --images {input.images:q} --scores {output.scores:q} 2> {log:q}"


rule tabulate_single_objects:
    input:
        scores=expand(
            "<results>/single_objects/scores/{model}.parquet",
            model=single_object_models(),
        ),
        facts=expand(
            "<results>/embeddings/{model}/single_objects.{modality}.json",
            model=single_object_models(),
            modality=("text", "image"),
        ),
        phrases=rules.sample_single_objects.output.phrases,
    output:
        table=report(
            "<results>/single_objects.csv",
            caption="../workflow/report/single_objects.rst",
            category="Single objects",
            labels={"what": "images of one object, named among all phrases"},
        ),
        manifest="<results>/single_objects_manifest.json",
    log:
        "<logs>/tabulate_single_objects.log",
    benchmark:
        "<benchmarks>/tabulate_single_objects.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=stage_config("tables"),
        models=single_object_models(),
        bases=single_object_bases(),
        behind=config_of_single_objects(),
        version=VERSIONS["single_object_scores"],
    message:
        "Making the table of single objects"
    shell:
        "python -m bindbench tabulate-single-objects --scores {input.scores:q} --models {params.models:q}"
        " --facts {input.facts:q} --phrases {input.phrases:q} --table {output.table:q} --manifest {output.manifest:q}"
        " --config {params.config:q} --bases {params.bases:q} --behind {params.behind:q} 2> {log:q}"
