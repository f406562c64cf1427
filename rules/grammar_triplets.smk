# Sentences of the embedded grammar (triplets.generation.backend: grammar).
rule write_triplets:
    input:
        state=triplet_state_before,
        lists=triplet_lists(),
    output:
        examples="<results>/triplets/shards/{construction}/{shard}.parquet",
        rejects="<results>/triplets/shards/{construction}/{shard}.rejects.parquet",
        state="<results>/triplets/shards/{construction}/{shard}.state.json",
        record="<results>/triplets/shards/{construction}/{shard}.json",
    log:
        "<logs>/write_triplets/{construction}.{shard}.log",
    benchmark:
        "<benchmarks>/write_triplets/{construction}.{shard}.jsonl"
    # Finetuning, the longest job, waits for all of these.
    priority: 1
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        config=generation_config(),
        size=triplet_shard_size,
        before=state_argument,
        version=VERSIONS["triplets"],
    message:
        "Writing shard {wildcards.shard} of {wildcards.construction}"
    shell:
        "python -m bindbench write-triplets --construction {wildcards.construction} --shard {wildcards.shard}"
        " --size {params.size} {params.before} --examples {output.examples:q} --rejects {output.rejects:q}"
        " --state {output.state:q} --record {output.record:q} --config {params.config:q} 2> {log:q}"
