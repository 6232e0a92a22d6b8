"""Who may import whom: `make lint` checks the contracts in pyproject.toml; this tests those."""

import subprocess
import sys
import tomllib
from pathlib import Path

from rocket_rides.settings import PROJECT

CONFIGURATION = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]
LINT_IMPORTS = (
    sys.executable,
    "-c",
    "from importlinter.cli import lint_imports_command as lint; lint()",
    "--no-logo",
    "--no-cache",
    "--config",
    str(PROJECT / "pyproject.toml"),
)

# Modules, and what each may not import: at least one for each contract and each line of the layers.
WRONG = [
    ("api.database", "streamer.__main__"),
    ("streamer.__main__", "consumers.rides"),
    ("consumers.rides", "analytics.result"),
    ("migrations.env", "api.database"),
    ("rocket_rides.words", "streamer.__main__"),
    ("unified_log.log", "rocket_rides.words"),
    ("api.database", "demo.embedded.spawn"),
    ("cells.total", "demo.embedded.spawn"),
    ("watch.facts", "cells.total"),
    ("demo.embedded.spawn", "lab.chaos.evidence"),
    ("lab.chaos.evidence", "tests.support.world"),
    ("analytics.result", "demo.simulator.client"),
    ("watch.facts", "demo.breaking.ways"),
    ("unified_log.log", "lab.specification.core"),
    ("lab.benchmarks.load", "lab.chaos.evidence"),
    ("lab.specification.explorer", "unified_log.log"),
    ("streamer.__main__", "lab.specification.core"),
    ("demo.embedded.spawn", "api.database"),
    ("demo.simulator.client", "api.database"),
    ("lab.chaos.evidence", "consumers.rides"),
    ("unified_log.readers.reader", "consumers.totals.total"),
    ("consumers.totals.total", "consumers.rollup.lead"),
    ("demo.install.steps", "unified_log.errors"),
    ("demo.embedded.spawn", "demo.install.java"),
    ("tests.support.world", "tests.fast.test_claims"),
    ("tests.services.queue.test_saving", "tests.services.queue.test_taking"),
]


def packages() -> set[str]:
    return {path.parent.name for path in PROJECT.glob("*/__init__.py")}


def test_every_package_is_under_the_contracts() -> None:
    assert set(CONFIGURATION["root_packages"]) == packages()
    [layers] = [c["layers"] for c in CONFIGURATION["contracts"] if c["type"] == "layers"]
    named = {name.partition(".")[0] for layer in layers for name in layer.split(" | ")}
    assert named == packages()


def lint(folder: Path) -> str:
    """What the linter says of a copy of the project."""
    told = subprocess.run([*LINT_IMPORTS], cwd=folder, capture_output=True, text=True)
    return told.stdout + told.stderr


def test_every_contract_is_broken_by_a_wrong_import(tmp_path: Path) -> None:
    for package in packages():
        for path in (PROJECT / package).rglob("*.py"):
            copy = tmp_path / path.relative_to(PROJECT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    contracts = CONFIGURATION["contracts"]
    for module, wrong in WRONG:
        with (tmp_path / f"{module.replace('.', '/')}.py").open("a") as file:
            file.write(f"\nimport {wrong}\n")
    told = lint(tmp_path)
    assert f"0 kept, {len(contracts)} broken" in told
    assert [
        f"{module} -> {wrong}" for module, wrong in WRONG if f"{module} -> {wrong}" not in told
    ] == []
