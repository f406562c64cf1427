"""What holds for every rule without running one: environments, logs, settings through params, and sizes of the plan."""

import json
import re
import subprocess
import sys
from collections import Counter

import pytest
import snakemake_server
from bindbench.cli import build_parser
from snakemake_runs import REPOSITORY, environment, planned, run

RULES = {path.name: path.read_text() for path in sorted((REPOSITORY / "rules").glob("*.smk"))}


@pytest.mark.parametrize("name", [name for name in RULES if name != "common.smk"])
def test_every_rule_has_log_benchmark_environment_resources_and_message(name):
    for rule in re.split(r"^rule ", RULES[name], flags=re.M)[1:]:
        for directive in ("log", "benchmark", "conda", "threads", "resources", "message", "shell", "output"):
            assert re.search(rf"^    {directive}:", rule, flags=re.M), f"{rule.split(':')[0]} has no {directive}"
        assert re.search(r"^        version=.*VERSIONS\[", rule, flags=re.M), (
            f"{rule.split(':')[0]} has no version among its params"
        )


def test_settings_reach_programs_through_params_only():
    for name, text in RULES.items():
        for shell in re.findall(r"shell:\n((?:\s+\".*\n)+)", text):
            assert "config[" not in shell and "{config" not in shell and "settings" not in shell, name
        assert not re.search(r"^    (run|script):", text, flags=re.M), name


def test_helpers_alone_in_common():
    assert not re.search(r"^rule ", RULES["common.smk"], flags=re.M)
    for name, text in RULES.items():
        assert name == "common.smk" or not re.search(r"^def ", text, flags=re.M), f"{name} mixes functions and rules"


def test_a_command_for_every_rule_with_the_same_name(capsys):
    rules = {name for text in RULES.values() for name in re.findall(r"^rule (\w+):", text, flags=re.M)}
    shown = subprocess.run([sys.executable, "-m", "bindbench", "--help"], capture_output=True, text=True).stdout
    commands = set(re.findall(r"^    ([a-z][a-z0-9-]+)(?:\s|$)", shown, flags=re.M))
    assert {rule.replace("_", "-") for rule in rules} <= commands
    for command in commands:
        with pytest.raises(SystemExit) as end:
            build_parser().parse_args([command, "--help"])
        assert end.value.code == 0 and f"usage: bindbench {command}" in capsys.readouterr().out.replace("\n", " ")


def test_parsing_the_snakefile_loads_no_heavy_library(tmp_path):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from bindbench import cli, snakemake_support, config, tables\n"
        "heavy = {'torch', 'transformers', 'cv2', 'sentence_transformers', 'matplotlib', 'pandas', 'inflect'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(REPOSITORY / "workflow")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("config", ["config/config.yaml", "config/paper.yaml"])
def test_the_plan_stays_under_500_jobs(tmp_path, config):
    jobs = planned("all", directory=tmp_path, config=REPOSITORY / config)
    counts = Counter(job.split()[0] for job in jobs)
    assert counts["render_scenes"] + counts["buy_scenes"] == 36 and sum(counts.values()) < 500


def test_shards_cover_every_scene(tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("questions: {object_counts: [2, 3], independent: 3, nested: 1}\nscenes: {shard_size: 15}\n")
    jobs = planned("all", directory=tmp_path, config=config)
    assert {job for job in jobs if job.startswith("render_scenes")} == {
        f"render_scenes {i:04d}" for i in range(3)
    }  # 40 images


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("scenes: {image_px: 3}\n", "{file}: scenes.image_px: must be >= 64 (got 3)"),
        ("scenes: {pixels: 512}\n", "{file}: scenes.pixels: unknown key"),
        ("questions: {seed: many}\n", "{file}: questions.seed: input should be a valid integer"),
        ("vocabulary: {objects: nothing.csv}\n", "{file}: vocabulary.objects: no such file (got 'nothing.csv')"),
        ("vocabulary: {objects: ../resources/short.csv}\n", "{file}: vocabulary.objects: no such file"),
        (
            "embedders: {mine: {path: ./weights}}\nmodels: [mine]\n",
            "{file}: embedders.mine.path: no such folder (got './weights')",
        ),
    ],
)
def test_a_user_s_mistake_ends_with_one_line_and_code_2(tmp_path, text, line):
    config = tmp_path / "mine.yaml"
    config.write_text(text)
    done = run("all", "-n", directory=tmp_path, config=config, check=False)
    assert done.returncode == 2
    assert line.format(file=config) in done.stderr and "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize("text", ["scenes: [\n", None])
def test_check_config_tells_of_files_that_snakemake_itself_cannot_read(tmp_path, text):
    path = tmp_path / "mine.yaml"
    if text:
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "bindbench", "check-config", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and done.stderr.startswith(str(path))


def test_the_workflow_is_usable_as_a_module_from_another_folder(tmp_path):
    (tmp_path / "Snakefile").write_text(
        f'module bindbench:\n    snakefile: "{REPOSITORY}/workflow/Snakefile"\n    config: {{"models": ["minilm"]}}\n\n'
        "use rule * from bindbench as bindbench_*\n"
    )
    done = snakemake_server.call(["-n", "-p", "results/saber_table2.csv"], tmp_path, environment())
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    assert "embed-texts" in shown and "nano" not in json.dumps(shown)
