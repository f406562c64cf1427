# Sentences of a language model (triplets.generation.backend: openai or google-genai). What was bought lies in the services'
# store and is never bought again.
rule buy_triplets:
    input:
        state=triplet_state_before,
        lists=triplet_lists(),
        prompts=triplet_prompts(),
    output:
        examples="<results>/triplets/shards/{construction}/{shard}.parquet",
        rejects="<results>/triplets/shards/{construction}/{shard}.rejects.parquet",
        state="<results>/triplets/shards/{construction}/{shard}.state.json",
        record="<results>/triplets/shards/{construction}/{shard}.json",
    log:
        "<logs>/buy_triplets/{construction}.{shard}.log",
    benchmark:
        "<benchmarks>/buy_triplets/{construction}.{shard}.jsonl"
    conda:
        "../envs/services.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=1440,
        api_slots=1,
    params:
        config=generation_config(),
        services=SERVICES_FILE,
        size=triplet_shard_size,
        before=state_argument,
        version=VERSIONS["triplets"],
    message:
        "Asking for shard {wildcards.shard} of {wildcards.construction}"
    shell:
        "python -m bindbench buy-triplets --construction {wildcards.construction} --shard {wildcards.shard}"
        " --size {params.size} {params.before} --examples {output.examples:q} --rejects {output.rejects:q}"
        " --state {output.state:q} --record {output.record:q} --services {params.services:q} --config {params.config:q}"
        " 2> >(tee {log:q} >&2)"
