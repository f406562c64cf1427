# MultiBind, section 3.2: canonical references, backgrounds, annotations and prompts of the chosen photographs, put together.
# What was bought lies in the services' store and is never bought again.
rule make_references:
    input:
        selected=rules.select_photographs.output.selected,
        crops=rules.select_photographs.output.crops,
        prompt=paid_prompt("references", "reference"),
    output:
        references="<results>/multibind/references.parquet",
        costs="<results>/multibind/references.json",
    log:
        "<logs>/make_references.log",
    benchmark:
        "<benchmarks>/make_references.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 4
    resources:
        mem_mb=4000,
        runtime=720,
        api_slots=paid_slots("references"),
    params:
        config=stage_config("multibind.references"),
        journal=settings.multibind.quality.journal,
        rejected=rejected_parts("reference"),
        services=SERVICES_FILE,
        version=VERSIONS["references"],
    message:
        "Making the canonical reference of each subject"
    shell:
        "python -m bindbench make-references --selected {input.selected:q} --crops {input.crops:q}"
        " --journal {params.journal:q} --references {output.references:q}"
        " --version {params.version} --services {params.services:q} --threads {threads}"
        " --config {params.config:q} 2> >(tee {log:q} >&2)"


rule make_backgrounds:
    input:
        selected=rules.select_photographs.output.selected,
        crops=rules.select_photographs.output.crops,
        people=rules.segment_photographs.output.people,
        weights=background_weights() + segmentation_weights(),
        prompt=paid_prompt("backgrounds", "background"),
    output:
        backgrounds="<results>/multibind/backgrounds.parquet",
        costs="<results>/multibind/backgrounds.json",
    log:
        "<logs>/make_backgrounds.log",
    benchmark:
        "<benchmarks>/make_backgrounds.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 4
    resources:
        mem_mb=6000,
        runtime=720,
        api_slots=paid_slots("backgrounds"),
    params:
        config=stage_config("multibind.backgrounds"),
        journal=settings.multibind.quality.journal,
        rejected=rejected_parts("background"),
        segmentation=stage_config("multibind.segmentation"),
        services=SERVICES_FILE,
        version=VERSIONS["backgrounds"],
    message:
        "Removing the people from the photographs"
    shell:
        "python -m bindbench make-backgrounds --selected {input.selected:q} --crops {input.crops:q}"
        " --people {input.people:q} --journal {params.journal:q} --backgrounds {output.backgrounds:q}"
        " --version {params.version} --services {params.services:q} --threads {threads}"
        " --segmentation {params.segmentation:q}"
        " --config {params.config:q} 2> >(tee {log:q} >&2)"


rule annotate_instances:
    input:
        selected=rules.select_photographs.output.selected,
        crops=rules.select_photographs.output.crops,
        models=people_models("annotation"),
        prompt=paid_prompt("annotation", "annotation"),
    output:
        annotations="<results>/multibind/annotations.parquet",
        costs="<results>/multibind/annotations.json",
    log:
        "<logs>/annotate_instances.log",
    benchmark:
        "<benchmarks>/annotate_instances.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=720,
        api_slots=paid_slots("annotation"),
    params:
        models=models_argument,
        config=stage_config("multibind.annotation"),
        journal=settings.multibind.quality.journal,
        rejected=rejected_parts("annotation") if paid_slots("annotation") else "",
        services=SERVICES_FILE,
        version=VERSIONS["annotation"],
    message:
        "Annotating the photographs"
    shell:
        "python -m bindbench annotate-instances --selected {input.selected:q} --crops {input.crops:q}"
        " --journal {params.journal:q} {params.models}"
        " --annotations {output.annotations:q} --services {params.services:q}"
        " --config {params.config:q} 2> >(tee {log:q} >&2)"


rule compile_prompts:
    input:
        annotations=rules.annotate_instances.output.annotations,
    output:
        prompts="<results>/multibind/prompts.parquet",
        lengths="<results>/multibind/prompts.json",
    log:
        "<logs>/compile_prompts.log",
    benchmark:
        "<benchmarks>/compile_prompts.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
    params:
        version=VERSIONS["prompts"],
    message:
        "Compiling annotations into entity-indexed prompts"
    shell:
        "python -m bindbench compile-prompts --annotations {input.annotations:q} --prompts {output.prompts:q}"
        " --lengths {output.lengths:q} 2> {log:q}"


rule assemble_instances:
    input:
        rejected=rules.select_photographs.output.rejected,
        selected=rules.select_photographs.output.selected,
        crops=rules.select_photographs.output.crops,
        references=rules.make_references.output.references,
        backgrounds=rules.make_backgrounds.output.backgrounds,
        annotations=rules.annotate_instances.output.annotations,
        prompts=rules.compile_prompts.output.prompts,
        costs=[
            rules.make_references.output.costs,
            rules.make_backgrounds.output.costs,
            rules.annotate_instances.output.costs,
        ],
        journal=multibind_journal(),
    output:
        instances="<results>/multibind/instances.parquet",
        subjects="<results>/multibind/subjects.parquet",
        left_out="<results>/multibind/left_out.parquet",
        verdicts="<results>/multibind/verdicts.parquet",
        images=directory("<results>/multibind/images"),
        counts="<results>/multibind/counts.json",
        manifest="<results>/multibind/manifest.json",
    log:
        "<logs>/assemble_instances.log",
    benchmark:
        "<benchmarks>/assemble_instances.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        config=stage_config("multibind.quality"),
        behind=config_of_instances(),
        version=VERSIONS["instances"],
    message:
        "Putting the instances of MultiBind together"
    shell:
        "python -m bindbench assemble-instances --rejected {input.rejected:q}"
        " --selected {input.selected:q} --crops {input.crops:q} --references {input.references:q}"
        " --backgrounds {input.backgrounds:q} --annotations {input.annotations:q} --prompts {input.prompts:q}"
        " --journal {input.journal:q} --costs {input.costs:q} --instances {output.instances:q}"
        " --subjects {output.subjects:q} --counts {output.counts:q}"
        " --manifest {output.manifest:q} --behind {params.behind:q}"
        " --config {params.config:q} 2> {log:q}"


rule draw_instances:
    input:
        instances=rules.assemble_instances.output.instances,
        subjects=rules.assemble_instances.output.subjects,
        counts=rules.assemble_instances.output.counts,
    output:
        sheet=report(
            "<results>/multibind/sheet.html",
            category="MultiBind",
            caption="../workflow/report/multibind_sheet.rst",
            labels={"sheet": "instances"},
        ),
        card="<results>/multibind/README.md",
    log:
        "<logs>/draw_instances.log",
    benchmark:
        "<benchmarks>/draw_instances.jsonl"
    conda:
        "../envs/people.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        version=VERSIONS["instance_sheet"],
    message:
        "Drawing the sheet of MultiBind's instances"
    shell:
        "python -m bindbench draw-instances --instances {input.instances:q} --subjects {input.subjects:q}"
        " --counts {input.counts:q} --sheet {output.sheet:q} --card {output.card:q} 2> {log:q}"
