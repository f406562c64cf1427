# Images by a paid service (scenes.renderer: openai). What was bought lies in the services' store and is never bought again.
rule buy_scenes:
    input:
        scenes=rules.sample_questions.output.scenes,
        journal=screening_journal(),
    output:
        images="<results>/saber/images/{shard}.parquet",
        costs="<results>/saber/images/{shard}.json",
    log:
        "<logs>/buy_scenes/{shard}.log",
    benchmark:
        "<benchmarks>/buy_scenes/{shard}.jsonl"
    conda:
        "../envs/services.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=720,
        api_slots=1,
    params:
        config=stage_config("scenes"),
        services=SERVICES_FILE,
        version=VERSIONS["bought_scenes"],
    message:
        "Getting the images of shard {wildcards.shard} from the service"
    shell:
        "python -m bindbench buy-scenes --scenes {input.scenes:q} --shard {wildcards.shard} --images {output.images:q}"
        " --journal {input.journal:q} --services {params.services:q} --config {params.config:q}"
        " 2> >(tee {log:q} >&2)"
