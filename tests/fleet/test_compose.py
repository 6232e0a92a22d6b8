"""docker-compose.yml is valid by the Compose Specification; it and Dockerfile keep their word."""

import copy
import os
import re
import subprocess
import sys
import tomllib

import pytest
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema import Draft202012Validator

from lab.ports import free_ports
from rocket_rides.settings import PROJECT, Settings
from tests.support.composed import COMPOSE, OURS, SERVICES, passed_on
from tests.support.pages import is_program
from tests.support.receiver import Answer, Receiver
from tests.support.world import PATIENCE
from unified_log.environment import PARSED

SCHEMA = get_builtin_schema("vendor.compose-spec")
JOB = SERVICES["reconciler"]
OTHERS = {"PGUSER", "PGPASSWORD", "OTEL_EXPORTER_OTLP_HEADERS"}  # libpq's, and OpenTelemetry's
STORES = ("AWS_", "AZURE_")  # of the warehouse's object store: whose URL is passed on, too
ONCE = {"migrate", "rights"}
# Of the embedded servers; and the ports inside of a container, which are always the same.
NOT_PASSED_ON = {"DATA_DIR", "API_PORT", "WATCH_PORT"}

# Continued lines joined, comments and empty lines dropped: one (instruction, arguments) each.
DOCKERFILE = [
    (line.split()[0], line.split()[1:])
    for line in (PROJECT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
LET_IN = [
    line.removeprefix("!")
    for line in (PROJECT / ".dockerignore").read_text().splitlines()
    if line.startswith("!")
]


def mistakes(compose: object) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMA).iter_errors(compose)]


def stages() -> dict[str, list[tuple[str, list[str]]]]:
    """Each of the Dockerfile's stages by name: its instructions, after those that it begins with.

    A stage that is not made from an earlier one keeps its FROM.
    """
    found: dict[str, list[tuple[str, list[str]]]] = {}
    (argument, [base]), *rest = DOCKERFILE
    assert argument == "ARG"
    variable, _, default = base.partition("=")
    for name, arguments in rest:
        if name == "FROM":
            arguments = [default if word == f"${{{variable}}}" else word for word in arguments]
            image, _, stage = arguments
            found[stage] = list(found.get(image, [(name, arguments)]))
        else:
            found[stage].append((name, arguments))
    return found


IMAGES = {target: stages()[target] for target in ("services", "analytics")}


def given(instruction: str, target: str) -> list[list[str]]:
    return [arguments for name, arguments in IMAGES[target] if name == instruction]


def test_it_is_valid_by_the_compose_specification() -> None:
    assert mistakes(COMPOSE) == []
    wrong = copy.deepcopy(COMPOSE)
    wrong["services"]["redis"]["heathcheck"] = {}
    assert mistakes(wrong)


def test_it_runs_what_the_procfile_runs() -> None:
    lines = (PROJECT / "Procfile").read_text().splitlines()
    fleet = dict(line.split(": ", 1) for line in lines)
    assert len(fleet) == len(lines)  # honcho refuses to run two of one name
    assert fleet.keys() - OURS.keys() == {"servers"}
    # The demo's own wrap these.
    plain = {"demo.page": "watch", "demo.nightly": "analytics.nightly"}
    for name in fleet.keys() & OURS.keys():
        python, module = fleet[name].split("exec ")[1].split(" -m ")
        assert python == "demo/python"
        assert ["python", "-m", *plain.get(module, module).split()] == OURS[name]["command"]


def test_no_ports_are_published_but_the_apis_and_the_pages_and_those_on_this_host_only() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {
        "api": ["127.0.0.1:${API_PORT:-8000}:8000"],
        "watch": ["127.0.0.1:${WATCH_PORT:-8001}:8001"],
    }
    assert (Settings().api_port, Settings().page_port) == (8000, 8001)
    assert not any("network_mode" in service for service in SERVICES.values())


def test_all_but_migration_and_rights_last_and_whoever_is_waited_for_has_a_health_check() -> None:
    lasting = SERVICES.keys() - ONCE
    assert {SERVICES[name]["restart"] for name in lasting} == {"unless-stopped"}
    checked = {name for name, service in SERVICES.items() if "healthcheck" in service}
    assert checked == lasting - {"reconciler", "simulator"}
    for name in ("streamer", "consumer0", "consumer1", "rollup", "receipts0", "receipts1"):
        *_, module, asked, here = [
            SERVICES[name]["healthcheck"]["test"][place] for place in (3, -2, -1)
        ]
        assert (module, here) == ("rocket_rides.health", "--here")
        assert asked == SERVICES[name]["command"][-1].removeprefix("consumers.") == name


@pytest.mark.parametrize(("name", "path"), [("api", "/readyz"), ("watch", "/healthz")])
def test_a_probe_asks_its_container_itself_and_not_a_proxy(name: str, path: str) -> None:
    """Docker tells containers of the proxy in its client's configuration."""
    _, *probe, program = SERVICES[name]["healthcheck"]["test"]
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy"), f"http://127.0.0.1:{free_ports()}")
    with Receiver() as asked:
        port = {"api": "8000", "watch": "8001"}[name]
        command = [sys.executable, *probe[1:], program.replace(port, str(asked.port))]
        for status in (200, 503):
            asked.behaviour = Answer(status)
            ended = subprocess.run(command, env=os.environ | proxies, timeout=PATIENCE)
            assert (ended.returncode == 0) == (status == 200)
    assert {each.path for each in asked.requests} == {path}


def test_each_dependency_can_be_met() -> None:
    for service in OURS.values():
        for name, dependency in service["depends_on"].items():
            # A service of a profile that is off is not there.
            assert ("profiles" not in SERVICES[name]) == dependency.get("required", True)
            if dependency["condition"] == "service_completed_successfully":
                assert name in ONCE
            else:
                assert dependency["condition"] == "service_healthy"
                assert "healthcheck" in SERVICES[name]


def test_servers_of_ones_own_can_be_named() -> None:
    assert {name for name, each in SERVICES.items() if each.get("profiles") == ["servers"]} == {
        "postgres",
        "redis",
    }
    for name in OURS:
        given = passed_on(name, {"DATABASE_URL": "postgresql://db/x", "REDIS_URL": "redis://log"})
        assert (given["DATABASE_URL"], given["REDIS_URL"]) == ("postgresql://db/x", "redis://log")


def test_of_what_stands_by_there_are_two() -> None:
    replicas = {name: each.get("deploy", {}).get("replicas", 1) for name, each in SERVICES.items()}
    assert {name for name, number in replicas.items() if number != 1} == {"streamer", "rollup"}
    assert (replicas["streamer"], replicas["rollup"]) == (2, 2)


def test_each_setting_is_passed_on() -> None:
    """Each to all services, or to those that it is about."""
    given = set().union(*(each["environment"] for each in OURS.values()))
    assert {name.upper() for name in Settings.model_fields} - given == NOT_PASSED_ON
    library = {name for name in PARSED if name not in ("DATABASE_URL", "REDIS_URL")}
    for each in OURS.values():
        assert library <= each["environment"].keys()


def test_redis_loses_nothing_that_it_acknowledged() -> None:
    program, *words = SERVICES["redis"]["command"]
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert program == "valkey-server"
    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "always"
    assert options["--maxmemory-policy"] == "noeviction"
    assert options["--save"] == ""
    assert "valkey:/data" in SERVICES["redis"]["volumes"]


def test_no_password_is_in_the_file() -> None:
    for server in ("postgres", "redis"):
        given = SERVICES[server]["environment"]
        assert not any(given[name] for name in given if name.endswith("PASSWORD"))
    for service in OURS.values():
        given = service["environment"].get("PGPASSWORD", "${_PASSWORD:-}")
        assert re.fullmatch(r"\$\{[A-Z]*_PASSWORD:-\}", given)
    secrets = {service["environment"].get("RECEIPT_SECRET") for service in OURS.values()} - {None}
    assert len(secrets) == 1
    assert secrets.pop().startswith("${RECEIPT_SECRET:?")


@pytest.mark.parametrize("name", OURS)
def test_each_setting_is_one_that_the_services_know(name: str) -> None:
    environment = OURS[name]["environment"]
    known = {variable.upper() for variable in Settings.model_fields}
    others = OTHERS | {"TZ"} if OURS[name] is JOB else OTHERS
    of_a_store = STORES if OURS[name] is JOB else ()
    assert {
        each for each in environment.keys() - known if not each.startswith(of_a_store)
    } <= others
    given = passed_on(name, {})
    settings = Settings(database_url=given["DATABASE_URL"], redis_url=given["REDIS_URL"])
    assert not settings.embedded_postgres
    assert not settings.embedded_redis


@pytest.mark.parametrize("name", OURS)
def test_each_command_names_a_module_that_is_in_the_image(name: str) -> None:
    python, m, module, *_ = OURS[name]["command"]
    assert (python, m) == ("python", "-m")
    package = module.replace(".", "/")
    assert is_program(module)
    assert {package, package.split("/")[0]} & set(LET_IN)


@pytest.mark.parametrize("name", OURS)
def test_our_containers_can_do_no_more_than_they_must(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("target", IMAGES)
def test_an_image_runs_as_an_ordinary_user_who_cannot_change_the_code(target: str) -> None:
    *_, last = [instruction for instruction in IMAGES[target] if instruction[0] in ("USER", "COPY")]
    assert last == ("USER", ["10001:10001"])  # a name can't be told from root's
    assert not any(word.startswith("--ch") for words in given("COPY", target) for word in words)


def test_the_images_hold_locked_packages_and_none_for_the_fleet_or_for_tests() -> None:
    groups = tomllib.loads((PROJECT / "pyproject.toml").read_text())["dependency-groups"]
    every = {each for name, group in groups.items() if name != "services" for each in group}
    every -= {"python-dotenv"}  # which pydantic-settings brings along
    foreign = {"services": every, "analytics": every - set(groups["analytics"])}
    for target, locks in {"services": ["services"], "analytics": ["services", "analytics"]}.items():
        installs = [words for words in given("RUN", target) if words[0] == "pip"]
        files = [words[-1].replace("${LOCK}", "services") for words in installs]
        assert files == [f"requirements/{lock}.txt" for lock in locks]
        assert all("--require-hashes" in words for words in installs)
        locked = (PROJECT / f"requirements/{locks[-1]}.txt").read_text()
        for package in foreign[target]:
            name = re.split(r"\W*[<\[]", package)[0]
            # One for another platform, which its marker names, is not installed.
            assert not re.search(rf"^{name}==[^;\n]*$", locked, re.MULTILINE)


def test_nothing_enters_an_image_unless_it_is_named() -> None:
    assert (PROJECT / ".dockerignore").read_text().splitlines()[1] == "*"
    assert all((PROJECT / path).exists() for path in LET_IN)
    simulator = {"demo/__init__.py", "demo/optional.py", "demo/simulator"}
    assert {p for p in LET_IN if p.startswith("demo")} == simulator
    assert not {"tests", "demo", "lab", ".env"} & set(LET_IN)


def test_an_upgrade_migrates_and_restarts_every_service_once_readers_before_writers() -> None:
    page = (PROJECT / "deploy/README.md").read_text()
    lines = re.findall(r"^docker compose up .*--no-deps ([^#\n]*)", page, re.MULTILINE)
    readers, *others = [line.split() for line in lines]
    assert others == [["streamer"], ["api"], ["watch", "reconciler"]]
    named = [*readers, *(name for line in others for name in line)]
    assert sorted(named) == sorted(OURS.keys() - ONCE - {"simulator"})
    assert SERVICES["rights"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"}
    }
