"""deploy/kubernetes: valid by the schemas of several versions; what one file names, another has."""

import copy
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
import yaml

from rocket_rides.settings import PROJECT, Settings
from tests.support.composed import SERVICES
from tests.support.deployed import secrets
from tests.support.pages import is_program

FOLDER = PROJECT / "deploy/kubernetes"
VERSIONS = ("1.27", "1.30", "1.33", "1.37")
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
KUBECTL = shutil.which("kubectl") or ""
Manifest = dict[str, Any]
MANIFESTS: list[Manifest] = [
    each
    for path in sorted(FOLDER.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for each in yaml.safe_load_all(path.read_text())
]
# Of libpq, of the manifests themselves, and of a pod.
OTHERS = {"PGUSER", "PGPASSWORD", "POD_NAME"}
KEPT = secrets("redis://redis:6379/0")
# The service of docker-compose.yml that is the same process.
COMPOSED = {
    "migrations": "migrate",
    "receipts": "receipts0",
    "night": "reconciler",
}
STANDING_BY = {"streamer", "rollup"}


def name_of(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def of_kind(*kinds: str) -> list[Manifest]:
    return [each for each in MANIFESTS if each["kind"] in kinds]


def pod_of(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    spec = spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec
    return dict(spec["template"])


LASTING = of_kind("Deployment", "StatefulSet")
WORK = [*LASTING, *of_kind("Job", "CronJob")]
PODS = {name_of(each): pod_of(each) for each in WORK}


def containers() -> Iterator[tuple[str, Manifest]]:
    for pod in PODS.values():
        for each in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            yield each["name"], each


CONTAINERS = dict(containers())
each_container = pytest.mark.parametrize("name", CONTAINERS)
each_pod = pytest.mark.parametrize("name", PODS)


def labels(selector: dict[str, str]) -> list[str]:
    """The pods that a selector finds."""
    return [
        name for name, pod in PODS.items() if selector.items() <= pod["metadata"]["labels"].items()
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_manifest_is_valid_in_each_version(version: str) -> None:
    for manifest in (*MANIFESTS, *rendered()):
        kubernetes_validate.validate(manifest, version, strict=True)
    wrong = copy.deepcopy(LASTING[0])
    wrong["spec"]["template"]["spec"]["enableServiceLink"] = False
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def rendered() -> list[Manifest]:
    """What Kustomize makes of them; nothing where there is no kubectl."""
    if not KUBECTL:
        return []
    command = [KUBECTL, "kustomize", str(FOLDER)]
    return list(yaml.safe_load_all(subprocess.check_output(command, timeout=60)))


def test_kustomize_takes_every_file_and_names_every_image() -> None:
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == files
    assert len(KUSTOMIZATION["resources"]) == len(files)
    images = {container["image"] for container in CONTAINERS.values()}
    assert {image["name"] for image in KUSTOMIZATION["images"]} == images


@pytest.mark.skipif(not KUBECTL, reason="there is no kubectl, so nothing renders them")
def test_kustomize_renders_them_all() -> None:
    found = rendered()
    key = [(each["kind"], name_of(each)) for each in MANIFESTS]
    assert sorted((each["kind"], name_of(each)) for each in found) == sorted(key)
    assert {each["metadata"]["namespace"] for each in found} == {KUSTOMIZATION["namespace"]}


def test_selectors_find_the_pods_that_they_are_for() -> None:
    for manifest in (*LASTING, *of_kind("PodDisruptionBudget")):
        assert labels(manifest["spec"]["selector"]["matchLabels"]) == [name_of(manifest)]
    for service in of_kind("Service"):
        assert labels(service["spec"]["selector"]) == [name_of(service)]
        for port in service["spec"].get("ports", ()):
            ports = [each["containerPort"] for each in CONTAINERS[name_of(service)]["ports"]]
            assert port["targetPort"] in ports
    for pod in PODS.values():
        for spread in pod["spec"].get("topologySpreadConstraints", ()):
            found = labels(spread["labelSelector"]["matchLabels"])
            assert [PODS[name] for name in found] == [pod]
    assert {each["spec"]["serviceName"] for each in of_kind("StatefulSet")} <= {
        name_of(each) for each in of_kind("Service")
    }


@each_container
def test_what_it_refers_to_is_there(name: str) -> None:
    maps = {name_of(each): each["data"].keys() for each in of_kind("ConfigMap")}
    kept = {"secrets": KEPT.keys()}
    known: set[str] = set()
    for given in CONTAINERS[name]["env"]:
        source = given.get("valueFrom", {})
        if reference := source.get("configMapKeyRef"):
            assert reference["key"] in maps[reference["name"]]
        if reference := source.get("secretKeyRef"):
            assert reference["key"] in kept[reference["name"]]
        # Kubernetes fills in what stands before it, and leaves the rest as it is.
        assert set(re.findall(r"\$\((\w+)\)", given.get("value", ""))) <= known
        known.add(given["name"])
    for given in CONTAINERS[name]["envFrom"]:
        if reference := given.get("secretRef"):  # an operator's: no pod may wait for it
            assert reference["optional"] or reference["name"] in kept
        else:
            assert given["configMapRef"]["name"] in maps
    assert set(re.findall(r"\$\((\w+)\)", " ".join(CONTAINERS[name]["command"]))) <= known


@each_pod
def test_every_volume_is_there(name: str) -> None:
    spec = PODS[name]["spec"]
    claims = {name_of(each) for each in of_kind("PersistentVolumeClaim")}
    volumes = {each["name"]: each for each in spec["volumes"]}
    mounted = {
        mount["name"]
        for container in (*spec.get("initContainers", ()), *spec["containers"])
        for mount in container["volumeMounts"]
    }
    assert mounted == volumes.keys()
    for volume in volumes.values():
        if claim := volume.get("persistentVolumeClaim"):
            assert claim["claimName"] in claims


@each_container
def test_each_command_is_a_program_and_each_variable_a_setting(name: str) -> None:
    container = CONTAINERS[name]
    python, m, module, *_ = container["command"]
    assert (python, m) == ("python", "-m")
    assert is_program(module)
    settings = {field.upper() for field in Settings.model_fields}
    given = [each["name"] for each in container["env"]]
    given += next(each["data"] for each in of_kind("ConfigMap") if name_of(each) == "settings")
    assert set(given) <= settings | OTHERS
    assert len(given) == len(set(given))


@each_container
def test_it_is_what_docker_compose_runs(name: str) -> None:
    """As the same role and user; the night's program is started by its CronJob."""
    composed, container = SERVICES[COMPOSED.get(name, name)], CONTAINERS[name]
    env = {each["name"]: each for each in container["env"]}
    assert env["PGUSER"]["value"] == composed["environment"]["PGUSER"]
    password = env["PGPASSWORD"]["valueFrom"]["secretKeyRef"]["key"]
    assert f"${{{password}:-}}" == composed["environment"]["PGPASSWORD"]
    if source := env["REDIS_URL"].get("valueFrom"):
        url = KEPT[source["secretKeyRef"]["key"]].replace(KEPT[password], f"${{{password}:-}}")
        assert composed["environment"]["REDIS_URL"] == f"${{REDIS_URL:-{url}}}"
    if name == "night":
        assert container["command"][-1] == "analytics.reconcile"
    elif name == "receipts":
        assert container["command"][:-1] == composed["command"][:-1]
        assert container["command"][-1] == "$(POD_NAME)"
    else:
        assert container["command"] == composed["command"]
    check = composed.get("healthcheck", {}).get("test", ())
    if "rocket_rides.health" in check and name != "receipts":
        assert container["livenessProbe"]["exec"]["command"] == check[1:]


def test_all_of_docker_compose_is_there() -> None:
    ours = {COMPOSED.get(name, name) for name in CONTAINERS}
    others = {"postgres", "redis", "simulator", "receipts1"}  # receipts have two pods
    assert ours == SERVICES.keys() - others


@each_pod
def test_a_pod_can_do_no_more_than_it_must(name: str) -> None:
    spec = PODS[name]["spec"]
    assert spec["enableServiceLinks"] is False
    assert spec["automountServiceAccountToken"] is False
    security = spec["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] == security["runAsGroup"] == 10001
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("manifest", LASTING, ids=name_of)
def test_it_has_the_time_to_start_and_to_end(manifest: Manifest) -> None:
    spec = pod_of(manifest)["spec"]
    [container] = spec["containers"]
    assert spec["terminationGracePeriodSeconds"] >= 20
    served = {name_of(each) for each in of_kind("Service") if "ports" in each["spec"]}
    assert ("lifecycle" in container) == (name_of(manifest) in served)
    for probe, least in (("startupProbe", 60), ("livenessProbe", 60), ("readinessProbe", 0)):
        given = container[probe]
        assert given["periodSeconds"] * given["failureThreshold"] >= least


def test_what_must_not_be_there_twice_is_not_and_what_stands_by_is() -> None:
    for each in LASTING:
        replicas, strategy = each["spec"]["replicas"], each["spec"].get("strategy", {}).get("type")
        module = CONTAINERS[name_of(each)]["command"][2]
        assert (strategy == "Recreate") == (module in ("consumers.totals", "consumers.ratings"))
        assert strategy != "Recreate" or replicas == 1
        assert name_of(each) not in STANDING_BY or replicas == 2
    guarded = {name_of(each) for each in of_kind("PodDisruptionBudget")}
    assert guarded == {name_of(each) for each in LASTING if each["spec"]["replicas"] > 1}
    [night] = of_kind("CronJob")
    assert night["spec"]["concurrencyPolicy"] == "Forbid"
    assert night["spec"]["jobTemplate"]["spec"]["backoffLimit"] == 0
    assert pod_of(night)["spec"]["restartPolicy"] == "Never"
