# MultiBind, sections 3.3 to 5: generated images, who is where in them, how alike everyone is, and the rates of confusion.
rule generate_images:
    input:
        instances=rules.assemble_instances.output.instances,
        subjects=rules.assemble_instances.output.subjects,
        ready=ready_images,
        weights=generator_weights,
        prompt=generator_prompt,
    output:
        generated="<results>/multibind/generated/{generator}.parquet",
        costs="<results>/multibind/generated/{generator}.json",
    log:
        "<logs>/generate_images/{generator}.log",
    benchmark:
        "<benchmarks>/generate_images/{generator}.jsonl"
    conda:
        "../envs/evaluate.yaml"
    threads: 2
    resources:
        mem_mb=4000,
        runtime=1440,
        gpu=generator_gpus,
        api_slots=generator_slots,
    params:
        config=generator_config,
        services=SERVICES_FILE,
        version=VERSIONS["generation"],
    message:
        "Generating images: {wildcards.generator}"
    shell:
        "python -m bindbench generate-images --instances {input.instances:q} --subjects {input.subjects:q}"
        " --generator {wildcards.generator} --generated {output.generated:q} --services {params.services:q}"
        " --version {params.version} --threads {threads} --config {params.config:q} 2> >(tee {log:q} >&2)"


# What was found in an image is kept beside the tables by the image's content.
rule match_subjects:
    input:
        generated=rules.generate_images.output.generated,
        instances=rules.assemble_instances.output.instances,
        subjects=rules.assemble_instances.output.subjects,
        models=rules.build_people_models.output.poses,
        weights=segmentation_weights(settings.multibind.evaluation.segmentation),
    output:
        matched="<results>/multibind/matched/{generator}.parquet",
    log:
        "<logs>/match_subjects/{generator}.log",
    benchmark:
        "<benchmarks>/match_subjects/{generator}.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        config=matching_config(),
        segmentation=stage_config("multibind.segmentation"),
        version=VERSIONS["matching"],
    message:
        "Finding the subjects in the images of {wildcards.generator}"
    shell:
        "python -m bindbench match-subjects --generated {input.generated:q} --instances {input.instances:q}"
        " --subjects {input.subjects:q} --models $(dirname {input.models:q}) --matched {output.matched:q}"
        " --segmentation {params.segmentation:q} --version {params.version} --config {params.config:q} 2> {log:q}"


rule measure_similarities:
    input:
        generated=rules.generate_images.output.generated,
        matched=rules.match_subjects.output.matched,
        instances=rules.assemble_instances.output.instances,
        subjects=rules.assemble_instances.output.subjects,
        models=rules.build_people_models.output.poses,
        weights=specialist_files(),
    output:
        similarities="<results>/multibind/similarities/{generator}.parquet",
        validity="<results>/multibind/validity/{generator}.parquet",
    log:
        "<logs>/measure_similarities/{generator}.log",
    benchmark:
        "<benchmarks>/measure_similarities/{generator}.jsonl"
    conda:
        "../envs/evaluate.yaml"
    threads: 1
    resources:
        mem_mb=6000,
        runtime=480,
        gpu=specialist_gpus(),
    params:
        config=stage_config("multibind.evaluation"),
        embedders=specialist_embedders(),
        version=VERSIONS["specialists"],
    message:
        "Measuring faces, appearance, poses and expressions of {wildcards.generator}"
    shell:
        "python -m bindbench measure-similarities --generated {input.generated:q} --matched {input.matched:q}"
        " --instances {input.instances:q} --subjects {input.subjects:q} --models $(dirname {input.models:q})"
        " --similarities {output.similarities:q} --validity {output.validity:q} --embedders {params.embedders:q}"
        " --version {params.version} --threads {threads} --config {params.config:q} 2> {log:q}"


# Not part of any other target: what ships in resources/multibind was made so, see config/default_thresholds.yaml.
rule derive_default_thresholds:
    input:
        matched=of_generators("matched", known_generators()),
        validity=of_generators("validity", known_generators()),
        similarities=of_generators("similarities", known_generators()),
    output:
        defaults="<results>/multibind/default_thresholds.csv",
        labels="<results>/multibind/default_thresholds.parquet",
        note="<results>/multibind/default_thresholds.md",
    log:
        "<logs>/derive_default_thresholds.log",
    benchmark:
        "<benchmarks>/derive_default_thresholds.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        config=stage_config("multibind.scoring"),
        generation=known_generation(),
        version=VERSIONS["default_thresholds"],
    message:
        "Deriving uncalibrated thresholds from known faults"
    shell:
        "python -m bindbench derive-default-thresholds --matched {input.matched:q} --validity {input.validity:q}"
        " --similarities {input.similarities:q} --defaults {output.defaults:q}"
        " --generation {params.generation:q} --config {params.config:q} 2> {log:q}"


rule tabulate_multibind:
    input:
        matched=of_generators("matched"),
        validity=of_generators("validity"),
        similarities=of_generators("similarities"),
        holistic=holistic_scores(),
        labels=scoring_labels(),
        generated=of_generators("generated"),
        defaults=escaped(resolve(settings.multibind.scoring.default_thresholds)),
        costs=[path.replace(".parquet", ".json") for path in of_generators("generated")],
    output:
        table=report(
            "<results>/multibind_table.csv",
            category="MultiBind",
            caption="../workflow/report/multibind_table.rst",
            labels={"table": "rates by generator and dimension"},
        ),
        page=report(
            "<results>/multibind_table.html",
            category="MultiBind",
            caption="../workflow/report/multibind_table.rst",
            labels={"table": "the page"},
        ),
        differences="<results>/multibind_differences.csv",
        similarity="<results>/multibind_similarity.csv",
        js_temperatures="<results>/multibind_js_temperatures.csv",
        undiagnosable="<results>/multibind_undiagnosable.csv",
        holistic="<results>/multibind_holistic.csv",
        thresholds="<results>/multibind_thresholds.csv",
        agreement="<results>/multibind_agreement.csv",
        compared="<results>/multibind/compared_subjects.parquet",
        cutoffs="<results>/multibind/thresholds.parquet",
        subject_outcomes="<results>/multibind/subject_outcomes.parquet",
        image_patterns="<results>/multibind/image_patterns.parquet",
        manifest="<results>/multibind_manifest.json",
    log:
        "<logs>/tabulate_multibind.log",
    benchmark:
        "<benchmarks>/tabulate_multibind.jsonl"
    conda:
        "../envs/questions.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        config=stage_config("multibind.scoring"),
        generators=list(settings.multibind.generation.used),
        compared_generators=settings.multibind.compared_generators,
        behind=stage_config("multibind"),
        version=VERSIONS["multibind_rates"],
    message:
        "Writing the tables of MultiBind"
    shell:
        "python -m bindbench tabulate-multibind --generators {params.generators:q}"
        " --compared-generators {params.compared_generators:q} --matched {input.matched:q}"
        " --validity {input.validity:q} --similarities {input.similarities:q} --labels {input.labels:q}"
        " --holistic {input.holistic:q}"
        " --generated {input.generated:q} --defaults {input.defaults:q} --costs {input.costs:q}"
        " --table {output.table:q} --compared {output.compared:q}"
        " --cutoffs {output.cutoffs:q} --subject-outcomes {output.subject_outcomes:q}"
        " --image-patterns {output.image_patterns:q} --manifest {output.manifest:q} --behind {params.behind:q}"
        " --config {params.config:q} 2> {log:q}"
