# Embeddings of one model: texts and images of SABER. Vectors are kept in results/cache by content, so only what is new is embedded.
rule embed_texts:
    input:
        scenes=rules.sample_questions.output.scenes,
        weights=embedder_folder,
        adapter=embedder_adapter,
    output:
        embeddings="<results>/embeddings/{model}/saber.text.parquet",
        facts="<results>/embeddings/{model}/saber.text.json",
    log:
        "<logs>/embed_texts/{model}.log",
    benchmark:
        "<benchmarks>/embed_texts/{model}.jsonl"
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
        "Embedding the captions with {wildcards.model}"
    shell:
        "python -m bindbench embed-texts --scenes {input.scenes:q} --embeddings {output.embeddings:q}"
        " --model {wildcards.model:q} --cache {params.cache:q} --threads {threads}"
        " {params.adapter} --config {params.config:q} --version {params.version} 2> {log:q}"


rule embed_images:
    input:
        images=image_tables(),
        weights=embedder_folder,
        adapter=embedder_adapter,
    output:
        embeddings="<results>/embeddings/{model}/saber.image.parquet",
        facts="<results>/embeddings/{model}/saber.image.json",
    log:
        "<logs>/embed_images/{model}.log",
    benchmark:
        "<benchmarks>/embed_images/{model}.jsonl"
    conda:
        "../envs/embed.yaml"
    threads: 8
    resources:
        mem_mb=6000,
        runtime=360,
        gpu=embedder_gpus,
    params:
        cache=embedding_cache,
        config=embedder_config,
        adapter=adapter_argument,
        version=VERSIONS["embedding"],
    message:
        "Embedding the images with {wildcards.model}"
    shell:
        "python -m bindbench embed-images --images {input.images:q} --embeddings {output.embeddings:q}"
        " --model {wildcards.model:q} --cache {params.cache:q} --threads {threads}"
        " {params.adapter} --config {params.config:q} --version {params.version} 2> {log:q}"
