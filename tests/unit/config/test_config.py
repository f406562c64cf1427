"""The config: a fault is one line with file, key and reason; strings of `--config` are understood; sections are canonical."""

import json
import re
import subprocess
import sys
from itertools import permutations

import pytest
import yaml
from bindbench import cli
from bindbench.config import Config, check, load, stage, stage_from_json
from bindbench.config.multibind_generators import MODELS
from bindbench.config.questions import arrangements_with_moved
from bindbench.config.scenes import Scenes
from bindbench.errors import UserError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scenes": {"colour": 1}}, "x.yaml: scenes.colour: unknown key"),
        ({"sceens": {}}, "x.yaml: sceens: unknown key"),
        ({"scenes": {"image_px": "big"}}, "x.yaml: scenes.image_px: input should be a valid integer"),
        ({"scenes": {"image_px": 10}}, "x.yaml: scenes.image_px: must be >= 64 (got 10)"),
        ({"scenes": {"flip_probability": 1.5}}, "x.yaml: scenes.flip_probability: must be <= 1 (got 1.5)"),
        ({"scenes": {"renderer": "blender"}}, "x.yaml: scenes.renderer: must be one of 'builtin' or 'openai' (got 'blender')"),
        ({"scenes": None}, "x.yaml: scenes: must be a section"),
        ({"tables": {"confidence": 1}}, "x.yaml: tables.confidence: must be < 1 (got 1)"),
        ({"questions": {"object_counts": [2, 2]}}, "x.yaml: questions.object_counts: must ascend without repeats"),
        ({"questions": {"object_counts": [1, 2]}}, "x.yaml: questions.object_counts.0: must be >= 2 (got 1)"),
        ({"questions": {"object_counts": [2, 4]}}, "x.yaml: questions: object_counts must have no gap while nested > 0"),
        ({"questions": {"independent": 0, "nested": 0}}, "x.yaml: questions: independent and nested are both 0"),
        ({"questions": {"object_counts": [3, 4], "min_moved": 3}}, "x.yaml: questions: min_moved = 3 leaves fewer than three"),
        ({"models": ["gpt"]}, "x.yaml: models: gpt is not among the embedders"),
        ({"models": ["nano", "nano"]}, "x.yaml: models: a name is given twice"),
        ({"models": []}, "x.yaml: models:"),
        ({"embedders": {"a": {}}, "models": ["a"]}, "x.yaml: embedders.a: path: needed by the loader sentence-transformers"),
        ({"embedders": {"a": {"loader": "minilm"}}, "models": ["a"]}, "x.yaml: embedders.a: modalities: minilm embeds text only"),
        ({"embedders": {"a/b": {"path": "x"}}, "models": ["nano"]}, "x.yaml: embedders.a/b: "),
        ({"models": ["Chance"], "embedders": {"Chance": {"path": "x"}}}, "x.yaml: models.0: the tables call their chance level so"),
        ({"models": ["nano", "NANO"], "embedders": {"NANO": {"path": "x"}}}, "x.yaml: models: a name is given twice (names that"),
        ({"questions": {"independent": 10**11}}, "x.yaml: questions.independent: must be <= 100000"),
        ({"questions": {"object_counts": [2], "min_moved": 9}}, "x.yaml: questions: min_moved = 9 cannot be met at N = 2"),
        ({"tables": {"confidence": 1e-300}}, "x.yaml: tables.confidence: must be >= 0.5"),
        ({"services": {"prices": {"gpt-image-2": {"image_tokens": {"default": -5}}}}}, "x.yaml: services.prices."),
        ({"questions": None}, "x.yaml: questions: must be a section with keys of its own, or left out"),
        ({"vocabulary": {"palette": ["red", "red"]}}, "x.yaml: vocabulary.palette: a colour is named twice"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line_with_file_key_and_reason(values, message):
    with pytest.raises(UserError) as error:
        check(values, "x.yaml")
    assert any(line.startswith(message) for line in str(error.value).splitlines()), str(error.value)


SCHEMA = Config.model_json_schema()
NAMES = {
    "counts": "pair_swap",
    "embedders": "nano",
    "prices": "gpt-image-2",
    "quotas": "2",
    "source_quotas": "coco",
    "thresholds": "face",
}  # of entries that need a certain one


def leaves(node: dict, path: tuple = ()):
    """Path and JSON type of every value that a config may hold; entries by name and items of lists by one of each."""
    if "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rsplit("/", 1)[1]]
    for kind in node.get("anyOf", ()):
        yield from leaves(kind, path)
    for key, value in node.get("properties", {}).items():
        yield from leaves(value, (*path, key))
    if isinstance(
        entry := node.get("additionalProperties", next(iter(node.get("patternProperties", {}).values()), None)), dict
    ):
        yield from leaves(entry, (*path, NAMES.get(path[-1], "x")))
    for item in [*node.get("prefixItems", ())[:1], *([node["items"]] if isinstance(node.get("items"), dict) else [])]:
        yield from leaves(item, (*path, 0))
    if node.get("type") in ("integer", "number", "boolean"):
        yield path, node["type"]


LEAVES = sorted(set(leaves(SCHEMA)))
NUMBERS = [path for path, kind in LEAVES if kind != "boolean"]


def config_with(path: tuple, value) -> dict:
    """The smallest config that holds a value; a run of `finetuning` has a base, a generator a kind."""
    for part in reversed(path):
        value = [value, value] if part == 0 else {part: value}
    if path[:2] == ("finetuning", "runs"):
        value["finetuning"]["runs"]["x"].setdefault("base", "minilm")
    if path[:3] == ("multibind", "generation", "generators"):
        value["multibind"]["generation"]["generators"]["x"].setdefault("kind", "omnigen2")
    return value


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("path", NUMBERS, ids=lambda path: ".".join(map(str, path)))
def test_true_and_false_are_no_numbers_wherever_a_number_is_expected(path, value):
    with pytest.raises(UserError) as error:
        check(config_with(path, value), "x.yaml")
    key = re.escape(".".join(map(str, path)))
    assert re.search(rf"^x\.yaml: {key}(\.\w+)?: must be (a number|one of \d)", str(error.value), re.MULTILINE), str(
        error.value
    )


def test_the_leaves_of_the_property_are_those_of_the_whole_config():
    assert {path[0] for path in NUMBERS} >= {
        "questions",
        "scenes",
        "embedders",
        "triplets",
        "finetuning",
        "tables",
        "services",
    }
    assert {
        ("questions", "object_counts", 0),
        ("triplets", "counts", "pair_swap"),
        ("finetuning", "runs", "x", "lines_alpha"),
        ("finetuning", "runs", "x", "attention_layers", 0),
        ("services", "prices", "gpt-image-2", "image_tokens", "x"),
        ("multibind", "generation", "generators", "x", "stretch"),
        ("multibind", "scoring", "thresholds", "face", "confusion"),
    } <= set(NUMBERS)
    for path in (path for path, kind in LEAVES if kind == "boolean"):
        check(config_with(path, True))


def test_a_stage_s_program_takes_no_boolean_for_a_number_either():
    with pytest.raises(UserError, match="--config: seed: must be a number, not true"):
        stage_from_json(Scenes, '{"seed": true}')


def test_every_fault_is_told_at_once():
    with pytest.raises(UserError) as error:
        check({"scenes": {"image_px": 1, "seed": -1}}, "x.yaml")
    assert len(str(error.value).splitlines()) == 2


def test_strings_of_the_command_line_become_numbers():
    assert check({"scenes": {"image_px": "128", "flip_probability": "1e-1"}}).scenes.flip_probability == 0.1


def test_later_files_override_sections_merge_and_lists_are_replaced(tmp_path):
    (tmp_path / "a.yaml").write_text("scenes: {image_px: 128, seed: 3}\nmodels: [nano, minilm]\n")
    (tmp_path / "b.yaml").write_text("scenes: {image_px: 256}\nmodels: [minilm]\n")
    config = load([tmp_path / "a.yaml", tmp_path / "b.yaml"])
    assert (config.scenes.image_px, config.scenes.seed, config.models) == (256, 3, ("minilm",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scenes: [\n", "not valid YAML"),
        ("- a\n", "must hold sections"),
        ("\x00", "not valid YAML"),
        ("a: b: c\n", ":1: not valid YAML"),
    ],
)
def test_a_broken_file_is_named(tmp_path, text, message):
    (tmp_path / "broken.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        load([tmp_path / "broken.yaml"])
    assert str(error.value).startswith(str(tmp_path / "broken.yaml")) and message in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none\.yaml: no such file"):
        load([tmp_path / "none.yaml"])


@pytest.mark.parametrize("name", ["config.yaml", "tiny.yaml", "paper.yaml"])
def test_the_configs_that_ship_are_valid(repository, name):
    load([repository / "config/config.yaml", repository / "config" / name])


def test_the_default_file_says_what_the_models_say(repository):
    assert load([repository / "config/config.yaml"]) == Config()


def test_the_paper_s_config_pins_revisions_instruction_and_pixel_limits(repository):
    entries = load([repository / "config/config.yaml", repository / "config/paper.yaml"]).embedders
    for name in ("qwen3-vl-embedding-2b", "qwen3-vl-embedding-8b"):
        entry = entries[name]
        assert re.fullmatch("[0-9a-f]{40}", entry.revision)
        assert entry.instruction == "Represent the user's input."
        assert (entry.min_pixels, entry.max_pixels) == (4 * 32**2, 1800 * 32**2)


def test_the_paper_s_config_has_multibind_s_numbers_generators_and_specialists(repository):
    multibind = load([repository / "config/config.yaml", repository / "config/paper.yaml"]).multibind
    assert multibind.selection.quotas == {2: 118, 3: 269, 4: 121}
    assert 118 * 2 + 269 * 3 + 121 * 4 == 1527
    assert {source.kind for source in multibind.photographs.used.values()} == {"cihp", "mhp", "objects365", "coco"}
    models = {generator.model_name for generator in multibind.generation.used.values()}
    assert models == set(MODELS.values())
    assert multibind.references.method == "gemini" and multibind.references.gemini_model == "gemini-3-pro-image"
    evaluation = multibind.evaluation
    assert (evaluation.face.method, evaluation.pose.method) == ("insightface", "vitpose")
    assert all(name.startswith("qwen3-vl-embedding") for name in evaluation.embedders.values())
    assert len(evaluation.embedders) == 2


def test_a_section_s_text_does_not_depend_on_the_order_of_keys():
    values = {"scenes": {"image_px": 128, "seed": 3}}
    turned = {"scenes": dict(reversed(values["scenes"].items()))}
    assert stage(check(values), "scenes") == stage(check(turned), "scenes")
    assert json.loads(stage(check(values), "embedders.nano"))["path"] == "resources/models/nano"


def test_every_key_is_explained_in_the_readme_and_the_default_file(repository):
    readme = (repository / "config/README.md").read_text()
    default = (repository / "config/config.yaml").read_text()
    for name, section in yaml.safe_load(Config().model_dump_json()).items():
        assert f"## {name}\n" in readme and f"\n{name}:" in default
        for key in section if isinstance(section, dict) and name != "embedders" else ():
            assert f"| `{key}` |" in readme and f"\n  {key}:" in default


def test_generated_files_are_up_to_date():
    run = subprocess.run([sys.executable, "-m", "bindbench.devtools", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr


@pytest.mark.parametrize("n", range(2, 7))
def test_arrangements_are_counted_exactly(n):
    for at_least in range(n + 2):
        expected = sum(sum(a != b for a, b in enumerate(order)) >= at_least for order in permutations(range(n)))
        assert arrangements_with_moved(n, at_least) == expected


def test_an_error_of_several_files_names_the_one_with_the_fault(tmp_path):
    (tmp_path / "a.yaml").write_text("scenes: {image_px: 128}\n")
    (tmp_path / "b.yaml").write_text("scenes: {seed: -1}\n")
    with pytest.raises(UserError) as error:
        load([tmp_path / "a.yaml", tmp_path / "b.yaml"])
    assert str(error.value) == f"{tmp_path / 'b.yaml'}: scenes.seed: must be >= 0 (got -1)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [nano, mien]", "models: mien is not among the embedders"),
        ("ablations: {data: {title: T, baseline: nano, models: [mien]}}", "ablations.data.models: mien is not among"),
        ("multibind: {holistic: {clip_i: {embedder: mien}}}", "multibind.holistic.clip_i.embedder: mien is not among"),
        ("attention: {models: [mien]}", "attention.models: mien is not among the models"),
    ],
)
def test_a_fault_between_keys_names_the_file_of_the_key_to_mend(repository, tmp_path, text, message):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        load([repository / "config/config.yaml", tmp_path / "mine.yaml"])
    assert str(error.value).startswith(f"{tmp_path / 'mine.yaml'}: {message}")


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"scenes": {"renderer": "openai", "model": "mine"}}, "scenes.model"),
        ({"triplets": {"generation": {"backend": "openai", "model": "mine"}}}, "triplets.generation.model"),
        ({"multibind": {"annotation": {"method": "openai", "model": "mine"}}}, "multibind.annotation.model"),
        (
            {"multibind": {"references": {"method": "gemini", "gemini_model": "mine"}}},
            "multibind.references.gemini_model",
        ),
        (
            {"multibind": {"backgrounds": {"method": "openai", "openai_model": "mine"}}},
            "multibind.backgrounds.openai_model",
        ),
        (
            {"multibind": {"generation": {"generators": {"a": {"kind": "gemini", "model": "mine"}}, "use": ["a"]}}},
            "multibind.generation.generators.a.model",
        ),
    ],
)
def test_what_is_bought_needs_a_price_before_anything_runs(values, key):
    with pytest.raises(UserError, match=f"^config: {key}: services.prices has none for mine; add an entry"):
        check(values)
    check(values | {"services": {"prices": {"mine": {}}}})


def test_a_generator_that_is_not_used_needs_no_price():
    generators = {"a": {"kind": "gemini", "model": "mine"}, "target": {"kind": "target"}}
    check({"multibind": {"generation": {"generators": generators, "use": ["target"]}}})


def test_the_runs_of_the_ablations_ask_for_no_more_than_their_sets_have(repository):
    settings = load([repository / "config/config.yaml", repository / "config/ablations.yaml"])
    counts, splits = settings.triplets.counts, settings.triplets.splits
    written = sum(count for name, count in counts.items() if not name.startswith("deferred"))
    train = written * (1 - splits.validation - splits.test)
    for name, run in settings.finetuning.runs.items():
        # NoOverlap holds 44 % of the examples, Random and OverlapOnly are as large.
        share = 0.437 if run.data in ("no_overlap", "random", "overlap_only") else 0.85
        available = settings.image_triplets.examples if run.learns_images else train * share
        assert (run.examples or 0) <= available, name


def test_check_config_looks_at_the_files_that_the_config_names(tmp_path):
    (tmp_path / "a.yaml").write_text("vocabulary: {objects: nope.csv}\n")
    done = subprocess.run(
        [sys.executable, "-m", "bindbench", "check-config", str(tmp_path / "a.yaml")], capture_output=True, text=True
    )
    assert (
        done.returncode == 2
        and done.stderr == f"{tmp_path / 'a.yaml'}: vocabulary.objects: no such file (got 'nope.csv')\n"
    )


def test_no_command_of_the_documentation_names_a_target_after_configfile(repository):
    for path in (repository / "README.md", repository / "config/README.md", repository / "profiles/README.md"):
        for line in re.findall(r"snakemake [^`\n]*--configfile ([^`\n]*)", path.read_text()):
            words = [word for word in line.split("#")[0].split() if not word.startswith("-")]
            assert all(word.endswith((".yaml", "…")) for word in words), line


GLITTER = "glittering,single-color,glitter,glittering {color},,glitter"


@pytest.fixture
def checked(tmp_path, repository, capsys):
    """What `check-config` says of a config with one more attribute than the default list has."""

    def said(row: str = "", **config) -> str:
        lines = (repository / "resources/vocabulary/attributes.csv").read_text()
        (tmp_path / "mine.csv").write_text(f"{lines.rstrip()}\n{row}\n")
        config.setdefault("vocabulary", {"attributes": str(tmp_path / "mine.csv")})
        (tmp_path / "a.yaml").write_text(json.dumps(config))
        code = cli.main(["check-config", str(tmp_path / "a.yaml")])
        text = capsys.readouterr().err
        assert code == (2 if text else 0)
        return text.replace(str(tmp_path), "")

    return said


def test_a_material_that_the_renderer_lacks_is_refused_when_the_config_is_checked(checked):
    line = "/a.yaml: vocabulary.attributes: the renderer cannot draw it: attribute glittering: material glitter: there is no such"
    assert checked(GLITTER).startswith(line)
    assert len(checked(GLITTER).splitlines()) == 1
    assert checked(GLITTER.rsplit(",", 1)[0] + ",plain") == ""
    assert "needs 2 colours or variants" in checked(GLITTER.rsplit(",", 1)[0] + ",striped")


def test_a_material_that_nothing_draws_is_nobodys_business_unless_a_run_learns_images(checked):
    bought = {"scenes": {"renderer": "openai"}}
    assert checked(GLITTER, **bought) == ""
    run = {"finetuning": {"runs": {"seen": {"base": "nano", "data": "image_triplets"}}}}
    assert "material glitter" in checked(GLITTER, **bought, **run)


def test_a_colour_that_the_renderer_lacks_is_refused_when_the_config_is_checked(checked):
    said = checked(vocabulary={"palette": ["red", "blue", "teal"]})
    assert said.startswith("/a.yaml: vocabulary.palette: the renderer cannot draw it: attribute ") and "teal" in said
    assert checked(vocabulary={"palette": ["red", "blue"]}) == ""


def test_faults_on_purpose_take_no_subject_from_the_others():
    """One that leaves people out would halve what real generators are compared on (M-2)."""

    def compared(*kinds: str, use: list[str] | None = None, **scoring) -> list[str]:
        generators = {kind: {"kind": kind, **({"folder": "f"} if kind == "folder" else {})} for kind in kinds}
        multibind = {"generation": {"generators": generators, "use": use}, "scoring": scoring}
        return check({"multibind": multibind}, "a.yaml").multibind.compared_generators

    assert Config().multibind.compared_generators == ["target", "collage"]
    assert compared("swap", "missing") == ["swap", "missing"]
    assert compared("swap", "folder", "missing") == ["folder"]
    assert compared("swap", "folder", "target", compared_generators=["swap", "target"]) == ["swap", "target"]
    assert compared("swap", "folder", "missing", use=["missing", "swap"]) == ["missing", "swap"]
    for use in (None, ["swap"]):
        with pytest.raises(UserError, match=r"a\.yaml: multibind.*compared_generators: target is no generator"):
            compared("swap", *(["target"] if use else []), use=use, compared_generators=["target"])
