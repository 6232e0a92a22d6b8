"""A copy of the project in which one mutant at a time is tested: the original stays as it is."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import cache_from_source
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal
from types import MappingProxyType
from typing import NamedTuple

from tests.mutants.mutant import Mutant
from tests.support.prepared import SHARED_IN

SCHEMAS = ("migrations/", "unified_log/schema/")
# Without the environment, the demo's data, and what is compiled from the original.
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rf")
# Seconds for which tests wait for what they expect. On a mutant they may wait in vain, so it is
# short. A test that failed only after that long is run again, with more, as it may be too short.
PATIENCE, MORE_PATIENCE = 10.0, 30.0
SLOW = ("--durations=0", f"--durations-min={PATIENCE}")
LONGEST = 180.0  # seconds; each selection of tests takes a fraction of that
LONGEST_END = 60.0  # seconds, to end the tests' servers
HUNG = "the tests hang, and were ended"
# Code that can't be run at all is no mutant: a test that fails on it says nothing of what it does.
BROKEN = re.compile(
    r"(NameError|ImportError|SyntaxError|UnboundLocalError|AttributeError|TypeError"
    r"|psycopg\.errors\.(SyntaxError|Undefined\w+|IndeterminateDatatype|AmbiguousColumn)"
    r"|redis\.exceptions\.ResponseError: Error compiling script)\b"
)


class NotTested(Exception):
    """The tests could not be run; the message is what pytest said."""


class Failure(NamedTuple):
    """The first test that failed, and why; none, where the tests hang or could not be set up."""

    test: str
    why: str
    is_slow: bool = False


class Verdict(NamedTuple):
    """The test that noticed a mutant, if any, its failure, and the seconds that this took.

    Where none did, `why` says what kept the tests from running, if anything.
    """

    noticed_by: str
    seconds: float
    why: str = ""


class Tree:
    """The project at `source`, copied to `folder`.

    Its tests copy the migrated cluster in `shared`, if that is given, since making one takes longer
    than most tests. Tests of a mutant of the schema make their own.
    """

    def __init__(self, source: Path, folder: Path, shared: Path | None = None) -> None:
        self.folder = folder
        self._shared = {SHARED_IN: str(shared)} if shared else {}
        shutil.copytree(source, folder, ignore=LEFT_OUT, dirs_exist_ok=True)

    def test(self, mutant: Mutant) -> Verdict:
        """Run a mutant's tests on it until one fails. Raises Stale.

        Only a test that fails has noticed it; one whose fixtures fail has not, nor one that hangs.
        """
        path = self.folder / mutant.file
        original = path.read_text()
        began = time.monotonic()
        try:
            self._write(path, mutant.told_in(original))
            shared = {} if mutant.file.startswith(SCHEMAS) else self._shared
            arguments = ["-x", *SLOW, *mutant.selection]
            failure = self.failure(arguments, shared=shared)
            if failure and failure.is_slow:
                failure = self.failure(arguments, shared=shared, patience=MORE_PATIENCE)
        except NotTested as reason:
            failure = Failure("", str(reason))
        finally:
            self._write(path, original)
        test, why, _ = failure or Failure("", "")
        return Verdict("" if BROKEN.match(why) else test, time.monotonic() - began, why)

    def failure(
        self,
        arguments: Sequence[str],
        longest: float | None = None,
        shared: Mapping[str, str] = MappingProxyType({}),
        patience: float = PATIENCE,
    ) -> Failure | None:
        """The first test that fails; None when all pass. Raises NotTested."""
        # Compiled modules are kept, which makes each run a second shorter.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"TESTS_PATIENCE": str(patience), "COLUMNS": "300", **shared}
        with subprocess.Popen(
            [*PYTEST, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal(SIGINT, SIG_DFL),  # a script's background jobs ignore it
        ) as tests:
            try:
                told, _ = tests.communicate(timeout=longest or LONGEST)
            except subprocess.TimeoutExpired:
                _end(tests)
                return Failure("", HUNG)
        failed = [line for line in told.splitlines() if line.startswith("FAILED ")]
        if tests.returncode == 1 and failed:
            test, _, why = failed[0].removeprefix("FAILED ").partition(" - ")
            return Failure(test, why, f" call     {test}\n" in told)
        if tests.returncode == 0 and " passed" in told:
            return None
        raise NotTested(told)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """Write a module, and delete its compiled one, which may be of the same second and size."""
        path.write_text(text)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)


def _end(tests: "subprocess.Popen[str]") -> None:
    """Interrupt them, so that they end their servers."""
    tests.send_signal(SIGINT)
    try:
        tests.communicate(timeout=LONGEST_END)
    except subprocess.TimeoutExpired:
        tests.kill()
