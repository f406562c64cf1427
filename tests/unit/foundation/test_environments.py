"""envs/*.yaml hold what the lock holds, and every rule names one that exists."""

import re

import yaml
from bindbench.devtools.environments import environments, read_lock, with_dependencies


def pins(text):
    (pip,) = [entry["pip"] for entry in yaml.safe_load(text)["dependencies"] if isinstance(entry, dict)]
    return dict(re.match(r"([a-z0-9.-]+)(?:\[[^]]*\])?==([^ ]+)", pin).groups() for pin in pip)


def test_every_pin_is_the_lock_s(repository):
    lock = read_lock((repository / "requirements.lock").read_text())
    for name in environments(repository):
        for package, version in pins((repository / "envs" / f"{name}.yaml").read_text()).items():
            assert lock[package].version == version


def test_every_environment_is_used_and_every_rule_has_one(repository):
    used = set()
    for path in (repository / "rules").glob("*.smk"):
        text = path.read_text()
        rules, named = re.findall(r"^rule ", text, re.M), re.findall(r'conda:\n\s+"\.\./envs/(\w+)\.yaml"', text)
        assert len(rules) == len(named), f"{path.name}: a rule without conda:"
        used |= set(named)
    assert used == {path.stem for path in (repository / "envs").glob("*.yaml")}


def test_channels_and_python_are_fixed(repository):
    for path in (repository / "envs").glob("*.yaml"):
        environment = yaml.safe_load(path.read_text())
        assert environment["channels"] == ["conda-forge", "nodefaults"] and "python=3.11" in environment["dependencies"]


def test_an_environment_holds_what_its_packages_need():
    lock = read_lock(
        "a==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n    # via\n    #   project (pyproject.toml:stage)\n    #   c\n"
        "b==2.0 ; sys_platform == 'linux' \\\n    --hash=sha256:00\n    # via a\n"
        "c==3.0 \\\n    --hash=sha256:00\n    # via project (pyproject.toml:other)\n"
    )
    assert (lock["b"].version, lock["b"].marker) == ("2.0", "sys_platform == 'linux'")
    assert with_dependencies({"a"}, lock) == {"a", "b"}


def test_the_lock_names_no_registry_and_hashes_every_package(repository):
    text = (repository / "requirements.lock").read_text()
    assert "://" not in text and "--index" not in text
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.M)[1:]
    assert blocks and all("--hash=sha256:" in block for block in blocks)
