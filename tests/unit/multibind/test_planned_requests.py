"""What an estimate counts of MultiBind: the requests of the jobs that a dry run names, as their programs would send them."""

import json
import shlex

import pytest
from bindbench.config import Config, check
from bindbench.multibind.parts import KEY, part_id
from bindbench.multibind.tables import CROPS, PHOTOGRAPHS, SELECTED
from bindbench.planning import _generators, _multibind
from bindbench.review.journal import verdict_line
from bindbench.tables import read_table, write_table
from made_instances import make_instances
from tiny_instances import write_instances

PAID = {
    "references": {"method": "gemini"},
    "backgrounds": {"method": "openai"},
    "annotation": {"method": "openai", "model": "some-model"},
}
COUNTS = {"multibind/references": 5, "multibind/backgrounds": 2, "multibind/annotations": 2}


class Plan:
    """Chosen photographs of two and of three people in a folder with a blank in its name, and what a dry run prints."""

    def __init__(self, folder):
        self.folder = folder / "my results"
        self.selected, self.crops, pictures = write_instances(self.folder, [2, 3])
        pictures.rename(self.folder / "selected")
        self.people = self.folder / "people.parquet"
        instances = read_table(SELECTED, self.selected).to_pylist()
        subjects = read_table(CROPS, self.crops).to_pylist()
        known = [
            {
                **{name: row[name] for name in ("photograph", "source", "licence", "width", "height")},
                **{"path": row["target"], "reason": None, "detail": None},
                "people": [
                    {**{name: s[name] for name in ("person", "box", "mask")}, "crowd": False, "score": 1.0}
                    for s in subjects
                    if s["instance"] == row["instance"]
                ],
            }
            for row in instances
        ]
        write_table(PHOTOGRAPHS, known, self.people)
        self.journal = folder / "multibind.jsonl"

    def settings(self, **sections) -> Config:
        values = {"multibind": {**sections, "quality": {"journal": str(self.journal)}}}
        return check({**values, "services": {"prices": {"some-model": {}}}}, lambda key: "test")

    def text(self, *commands: str) -> str:
        tables = {"selected": self.selected, "crops": self.crops, "people": self.people, "journal": self.journal}
        options = " ".join(f"--{name} {shlex.quote(str(path))}" for name, path in tables.items())
        rest = """--version 1 --config '{"method":"x","words":"it is \\"so\\""}' 2> >(tee results/logs/x.log >&2)"""
        return "\n".join(
            f"    Shell command:\n        python -m bindbench {name} {options} {rest}" for name in commands
        )

    def reject(self, *parts: tuple[str, str, str]) -> None:
        lines = [verdict_line(part_id(*part), f"{n}" * 64, "rejected", None, "me", KEY) for n, part in enumerate(parts)]
        self.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def plan(tmp_path) -> Plan:
    return Plan(tmp_path)


JOBS = ("make-references", "make-backgrounds", "annotate-instances")


def counted(requests) -> dict[str, int]:
    stages = [request.stage for request in requests]
    return {stage: stages.count(stage) for stage in dict.fromkeys(stages)}


def test_every_paid_job_of_the_plan_is_counted_and_no_other(plan):
    requests = list(_multibind(plan.text(*JOBS), plan.settings(**PAID)))
    assert counted(requests) == COUNTS and len({request.key for request in requests}) == 9
    for job, section, (stage, count) in zip(JOBS, PAID, COUNTS.items(), strict=True):
        assert counted(_multibind(plan.text(job), plan.settings(**PAID))) == {stage: count}
        without = {name: values for name, values in PAID.items() if name != section}
        assert counted(_multibind(plan.text(*JOBS), plan.settings(**without))) == {
            other: number for other, number in COUNTS.items() if other != stage
        }
    assert list(_multibind(plan.text(*JOBS), plan.settings())) == []
    assert list(_multibind("nothing to be done", plan.settings(**PAID))) == []


def test_rejected_parts_are_asked_for_under_their_next_attempt_and_the_others_as_before(plan):
    before = [request.key for request in _multibind(plan.text(*JOBS), plan.settings(**PAID))]
    rejected = [("made-1", "reference", "B"), ("made-0", "background", ""), ("made-1", "annotation", "")]
    plan.reject(*rejected, ("made-0", "prompt", ""), ("made-0", "crop", "A"))
    after = list(_multibind(plan.text(*JOBS), plan.settings(**PAID)))
    changed = {number for number, request in enumerate(after) if request.key != before[number]}
    assert changed == {3, 5, 8}, "slot B of the second, the first background, the second annotation"
    assert [request.attempt for request in after] == [2 if number in changed else 1 for number in range(9)]


def test_while_photographs_are_to_be_chosen_a_line_says_what_to_run_first(plan, capsys):
    text = plan.text("select-photographs", *JOBS)
    assert list(_multibind(text, plan.settings(**PAID))) == []
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and f"run snakemake '{plan.selected}' first" in told[0]
    assert list(_multibind(text, plan.settings())) == [] and capsys.readouterr().err == "", "nothing to pay"


def generating(made, *names: str) -> str:
    """What a dry run prints of the jobs that make images."""
    instances, subjects, _ = (shlex.quote(str(path)) for path in made.tables)
    return "\n".join(
        f"        python -m bindbench generate-images --instances {instances} --subjects {subjects} --generator {name}"
        f" --generated results/multibind/generated/{name}.parquet --version 1 --config '{{}}' 2> >(tee x.log >&2)"
        for name in names
    )


def with_generators() -> Config:
    generators = {"collage": {"kind": "collage"}, "gemini": {"kind": "gemini"}, "gpt": {"kind": "openai"}}
    return check({"multibind": {"generation": {"generators": generators}}}, "test")


def test_images_of_paid_generators_are_counted_one_for_each_instance(tmp_path):
    made = make_instances(tmp_path, {"folder-one": 2, "folder-two": 3})
    plan = generating(made, "collage", "gemini", "gpt")
    asked = list(_generators(plan + "\n" + plan, with_generators()))  # Snakemake prints a job's command once or twice
    assert sorted(request.service for request in asked) == ["gemini", "gemini", "openai", "openai"]
    assert len({request.key for request in asked}) == 4
    assert [r.service for r in _generators(generating(made, "gpt"), with_generators())] == ["openai", "openai"]
    assert list(_generators(generating(made, "collage"), with_generators())) == []


def test_images_of_instances_that_are_not_made_yet_are_told_not_counted(tmp_path, capsys):
    made = make_instances(tmp_path, {"folder-one": 2})
    capsys.readouterr()  # the progress of making them
    plan = generating(made, "gemini", "collage") + "\n  python -m bindbench assemble-instances --selected x"
    assert list(_generators(plan, with_generators())) == []
    told = capsys.readouterr().err
    assert "the images of gemini are not counted" in told and f"snakemake {made.tables[0]} first" in told
    assert len(told.splitlines()) == 1
