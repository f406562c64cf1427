# MultiBind, sections 3.1 and 3.2: photographs of several people, who is where in them, and which become instances.
rule build_people_models:
    output:
        poses="<results>/multibind/models/pose_landmarker.task",
        faces="<results>/multibind/models/face_landmarker.task",
        licences="<results>/multibind/models/README.md",
    log:
        "<logs>/build_people_models.log",
    benchmark:
        "<benchmarks>/build_people_models.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        version=VERSIONS["people_models"],
    message:
        "Building the models of poses and faces out of published packages"
    shell:
        "python -m bindbench build-people-models --folder $(dirname {output.poses:q}) 2> {log:q}"


rule list_photographs:
    input:
        annotations=photograph_annotations(),
    output:
        photographs="<results>/multibind/photographs.parquet",
    log:
        "<logs>/list_photographs.log",
    benchmark:
        "<benchmarks>/list_photographs.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=120,
    params:
        config=stage_config("multibind.photographs"),
        replaced=support.photographs_digest(settings),
        version=VERSIONS["photographs"],
    message:
        "Listing the photographs of all sources"
    shell:
        "python -m bindbench list-photographs --photographs {output.photographs:q} --config {params.config:q} 2> {log:q}"


# What was found in a photograph is kept beside the table: a killed run goes on.
rule segment_photographs:
    input:
        photographs=rules.list_photographs.output.photographs,
        models=people_models("segmentation"),
        weights=segmentation_weights(),
    output:
        people="<results>/multibind/people.parquet",
    log:
        "<logs>/segment_photographs.log",
    benchmark:
        "<benchmarks>/segment_photographs.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 2
    resources:
        mem_mb=4000,
        runtime=1440,
        gpu=1 if settings.multibind.segmentation.method == "yolo" else 0,
    params:
        models=models_argument,
        config=stage_config("multibind.segmentation"),
        max_pixels=settings.multibind.photographs.max_pixels,
        version=VERSIONS["segmentation"],
    message:
        "Finding the people in photographs without masks"
    shell:
        "python -m bindbench segment-photographs --photographs {input.photographs:q} --people {output.people:q}"
        " {params.models} --max-pixels {params.max_pixels} --version {params.version} --config {params.config:q} 2> {log:q}"


rule select_photographs:
    input:
        people=rules.segment_photographs.output.people,
    output:
        selected="<results>/multibind/selected.parquet",
        crops="<results>/multibind/crops.parquet",
        rejected="<results>/multibind/rejected.parquet",
    log:
        "<logs>/select_photographs.log",
    benchmark:
        "<benchmarks>/select_photographs.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 4
    resources:
        mem_mb=4000,
        runtime=720,
    params:
        config=stage_config("multibind.selection"),
        max_pixels=settings.multibind.photographs.max_pixels,
        version=VERSIONS["selection"],
    message:
        "Choosing photographs and cropping their subjects"
    shell:
        "python -m bindbench select-photographs --people {input.people:q} --selected {output.selected:q}"
        " --crops {output.crops:q} --rejected {output.rejected:q}"
        " --max-pixels {params.max_pixels} --threads {threads} --config {params.config:q} 2> {log:q}"
