"""What a forge reads is valid, and runs this project as it is meant to be run."""

import copy
import json
import re
import tomllib

import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema import Draft7Validator

from rocket_rides.settings import PROJECT, Settings
from tests.support.pages import TARGET, targets

SCHEMA = get_builtin_schema("vendor.github-workflows")
WORKFLOW = yaml.safe_load((PROJECT / ".github/workflows/ci.yml").read_text())
CONTAINER = json.loads((PROJECT / ".devcontainer/devcontainer.json").read_text())
SUPPORTED = {"3.11", "3.12", "3.13"}


def mistakes(workflow: object) -> list[str]:
    return [error.message for error in Draft7Validator(SCHEMA).iter_errors(workflow)]


def test_the_workflow_is_valid() -> None:
    assert mistakes(WORKFLOW) == []
    wrong = copy.deepcopy(WORKFLOW)
    wrong["jobs"]["image"]["runs_on"] = "ubuntu"
    assert mistakes(wrong)


def test_every_job_ends_with_what_ci_runs() -> None:
    assert (PROJECT / ".ci/run").stat().st_mode & 0o111
    for job in WORKFLOW["jobs"].values():
        assert job["steps"][-1] == {"run": ".ci/run"}
        assert job["timeout-minutes"] <= 60


def test_it_runs_on_debian_and_ubuntu_and_on_every_python_that_is_supported() -> None:
    images = WORKFLOW["jobs"]["image"]["strategy"]["matrix"]["image"]
    assert {image.split(":")[0] for image in images} == {"debian", "ubuntu"}
    assert set(WORKFLOW["jobs"]["python"]["strategy"]["matrix"]["python"]) == SUPPORTED
    needed = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert needed == f">={min(SUPPORTED)}"


def test_a_job_may_only_read() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_the_dev_container_sets_up_what_a_fleet_needs_and_forwards_its_ports() -> None:
    assert set(TARGET.findall(CONTAINER["postCreateCommand"])) <= targets()
    config = Settings.model_construct()
    assert CONTAINER["forwardPorts"] == [config.api_port, config.page_port]
    assert set(CONTAINER["portsAttributes"]) == {str(port) for port in CONTAINER["forwardPorts"]}
    [python] = re.findall(r"/python:(3\.\d+)-", CONTAINER["image"])
    assert python in SUPPORTED
