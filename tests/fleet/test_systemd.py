"""deploy/systemd: systemd finds nothing wrong with the units; they run what production.md lists."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rocket_rides.settings import PROJECT
from tests.support.pages import is_program

UNITS = PROJECT / "deploy/systemd"
ANALYZE = shutil.which("systemd-analyze") or ""
COMMON = UNITS / "rocket-rides-.service.d/common.conf"
SERVICES = {path.name: path for path in UNITS.glob("*.service")}
PYTHON = "/opt/rocket-rides/.venv/bin/python"
ONCE = {"rocket-rides-migrations.service", "rocket-rides-night.service"}
# What production.md has as a process that lasts is here started by a timer.
ELSEWHERE = {"analytics.nightly": "analytics.reconcile"}


def read(path: Path) -> configparser.RawConfigParser:
    """Of a key that is there several times, the last."""
    found = configparser.RawConfigParser(strict=False)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read(path)
    return found


def modules(path: Path) -> list[str]:
    return re.findall(rf"^ExecStart={PYTHON} -m (\S+)", path.read_text(), re.M)


def complaints(folder: Path) -> str:
    """What `systemd-analyze verify` says; it exits with 0 after most of it."""
    names = [path.name.replace("@", "@one") for path in sorted(folder.glob("rocket-rides*.*"))]
    units = [str(folder / name) for name in names if not name.endswith(".d")]
    # Units of the system's own, such as network-online.target, come after ours.
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", *units],
        env={"SYSTEMD_UNIT_PATH": f"{folder}:"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if "rocket-rides" in line)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A copy, of which each program is there."""
    if not ANALYZE:
        pytest.skip("there is no systemd-analyze, so nothing says whether the units are valid")
    shutil.copytree(UNITS, tmp_path / "systemd")
    for path in tmp_path.glob("systemd/*.service"):
        path.write_text(path.read_text().replace(PYTHON, sys.executable))
    return tmp_path / "systemd"


def test_systemd_finds_nothing_wrong(units: Path) -> None:
    assert complaints(units) == ""


@pytest.mark.parametrize("wrong", ["Restart=allways", "RestartSecs=1"])
def test_systemd_would_find_it(units: Path, wrong: str) -> None:
    common = units / "rocket-rides-.service.d/common.conf"
    common.write_text(f"{common.read_text()}{wrong}\n")
    assert wrong.split("=")[0].lower() in complaints(units).lower()


def test_each_process_has_a_unit() -> None:
    page = (PROJECT / "docs/production.md").read_text().partition("## The processes")[2]
    processes = re.findall(r"^\| `(?!python)([a-z.]+)[^`]*` \|", page.partition("## ")[0], re.M)
    run = {module for path in SERVICES.values() for module in modules(path)}
    assert run == {ELSEWHERE.get(name, name) for name in processes} | {"migrations.rights"}
    assert all(map(is_program, run))


def test_whoever_has_a_name_has_a_unit_for_each_of_them() -> None:
    for name, path in SERVICES.items():
        assert ("%i" in path.read_text()) == ("@" in name)


def test_what_ends_is_started_again_and_has_the_time_to_end() -> None:
    for name, path in SERVICES.items():
        service = read(path)["Service"]
        assert int(service["TimeoutStopSec"]) >= 20
        if name in ONCE:
            assert service["Type"] == "oneshot"
            assert "Restart" not in service
        else:
            assert service["Restart"] == "always"
            assert read(path)["Install"]["WantedBy"] == "rocket-rides.target"
    assert read(COMMON)["Unit"]["StartLimitIntervalSec"] == "0"


def test_a_process_can_do_no_more_than_it_must() -> None:
    common = read(COMMON)["Service"]
    assert common["User"] == "rides"
    assert common["CapabilityBoundingSet"] == ""
    assert common["ProtectSystem"] == "strict"
    assert common["NoNewPrivileges"] == common["PrivateTmp"] == "yes"
