# MultiBind's results to look at: plots of the tables, and the gallery of failures.
rule plot_multibind:
    input:
        rates=rules.tabulate_multibind.output.table,
        subject_outcomes=rules.tabulate_multibind.output.subject_outcomes,
    output:
        subjects=report(
            "<results>/figures/multibind_subjects.svg",
            category="MultiBind",
            subcategory="figures",
            caption="../workflow/report/multibind_subjects.rst",
            labels={"what": "what became of the subjects"},
        ),
        images=report(
            "<results>/figures/multibind_images.svg",
            category="MultiBind",
            subcategory="figures",
            caption="../workflow/report/multibind_images.rst",
            labels={"what": "patterns of the images"},
        ),
        missed=report(
            "<results>/figures/multibind_missed.svg",
            category="MultiBind",
            subcategory="figures",
            caption="../workflow/report/multibind_missed.rst",
            labels={"what": "missed and invalid subjects"},
        ),
        confusions=report(
            "<results>/figures/multibind_confusions.svg",
            category="MultiBind",
            subcategory="figures",
            caption="../workflow/report/multibind_confusions.rst",
            labels={"what": "who is confused with whom"},
        ),
        pictures=expand(
            "<results>/figures/multibind_{figure}.png",
            figure=("subjects", "images", "missed", "confusions"),
        ),
    log:
        "<logs>/plot_multibind.log",
    benchmark:
        "<benchmarks>/plot_multibind.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        config=stage_config("figures"),
        version=VERSIONS["multibind_figures"],
    message:
        "Drawing the figures of MultiBind"
    shell:
        "python -m bindbench plot-multibind --rates {input.rates:q} --subject-outcomes {input.subject_outcomes:q}"
        " --figures {output.subjects:q} --config {params.config:q} 2> {log:q}"


rule show_multibind_failures:
    input:
        instances=rules.assemble_instances.output.instances,
        subjects=rules.assemble_instances.output.subjects,
        generated=of_generators("generated"),
        matched=of_generators("matched"),
        validity=of_generators("validity"),
        similarities=of_generators("similarities"),
        subject_outcomes=rules.tabulate_multibind.output.subject_outcomes,
        image_patterns=rules.tabulate_multibind.output.image_patterns,
        cutoffs=rules.tabulate_multibind.output.cutoffs,
        rates=rules.tabulate_multibind.output.table,
    output:
        page=report(
            "<results>/multibind_failures.html",
            category="MultiBind",
            caption="../workflow/report/multibind_failures.rst",
            labels={"sheet": "failures by pattern"},
        ),
        folder=directory("<results>/figures/multibind_failures"),
    log:
        "<logs>/show_multibind_failures.log",
    benchmark:
        "<benchmarks>/show_multibind_failures.jsonl"
    conda:
        "../envs/score.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        config=stage_config("figures"),
        version=VERSIONS["multibind_figures"],
    message:
        "Showing the failures of MultiBind's generators"
    shell:
        "python -m bindbench show-multibind-failures --instances {input.instances:q} --subjects {input.subjects:q}"
        " --generated {input.generated:q} --matched {input.matched:q} --validity {input.validity:q}"
        " --similarities {input.similarities:q} --subject-outcomes {input.subject_outcomes:q}"
        " --image-patterns {input.image_patterns:q} --cutoffs {input.cutoffs:q} --rates {input.rates:q}"
        " --page {output.page:q} --folder {output.folder:q} --config {params.config:q} 2> {log:q}"
