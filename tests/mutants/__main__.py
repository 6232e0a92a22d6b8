"""`python -m tests.mutants [WORD...]`: makes each mutant in a copy of the code, and runs its tests.

A mutant that a test notices is killed; one that no test notices survives: a hole in the tests. In
the end, the tests that noticed mutants must pass on the unchanged code. With words, only the
mutants whose file or description contains one of them are tested.

The exit status is 0 when all were killed, 1 when one was not, 2 when they could not be tested.
"""

import argparse
import os
import queue
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

from rocket_rides.settings import PROJECT
from tests.mutants.mutant import Mutant, Stale
from tests.mutants.parts import MUTANTS
from tests.mutants.tree import NotTested, Tree, Verdict
from tests.support.folders import short_folder
from tests.support.prepared import prepared_cluster

LONGEST_IN_ALL = 2400.0  # seconds


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.mutants", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="in the file's name, or in the description"
    )
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    return parser.parse_args(words)


def chosen(words: Sequence[str]) -> list[Mutant]:
    """The mutants that one of the words is about; all of them without words."""
    found = [mutant for mutant in MUTANTS if about(mutant, words)]
    if not found:
        raise SystemExit(f"no mutant is about {' or '.join(words)}")
    return found


def about(mutant: Mutant, words: Sequence[str]) -> bool:
    return not words or any(word in mutant.file or word in mutant.error for word in words)


def place(mutant: Mutant) -> str:
    """The file and the line."""
    return f"{mutant.file}:{mutant.line((PROJECT / mutant.file).read_text())}"


def require_sound_tests(tree: Tree, killers: Sequence[str], jobs: int) -> None:
    """Raise NotTested unless the tests that noticed mutants pass on the unchanged code."""
    workers = ["-n", str(jobs), "--dist", "loadscope"]
    if killers and (failure := tree.failure([*workers, *killers], LONGEST_IN_ALL)):
        raise NotTested(f"fails on the unchanged code: {failure.test} {failure.why}")


def tested(trees: Sequence[Tree], mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, Verdict]]:
    """Test the mutants, as many at a time as there are trees; yields each when it is done."""
    free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)

    def test(mutant: Mutant) -> tuple[Mutant, Verdict]:
        tree = free.get()
        try:
            return mutant, tree.test(mutant)
        finally:
            free.put(tree)

    pool = ThreadPoolExecutor(len(trees))
    try:
        for done in as_completed([pool.submit(test, mutant) for mutant in mutants]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def judged(mutant: Mutant, verdict: Verdict) -> str:
    """One line about it."""
    what = f"killed by {verdict.noticed_by} -" if verdict.noticed_by else "SURVIVES"
    return f"{place(mutant)}: {mutant.error}\n      {what} {verdict.why} ({verdict.seconds:.1f} s)"


def summary(results: Sequence[tuple[Mutant, Verdict]], seconds: float) -> str:
    """The numbers, after a line for whatever is wrong."""
    lines = [f"  {judged(*result)}" for result in results if not result[1].noticed_by]
    lines.append(
        f"{len(results)} mutants, of which {len(lines)} survive; {seconds / 60:.1f} minutes"
    )
    return "\n".join(lines)


def run(mutants: Sequence[Mutant], jobs: int) -> int:
    """Test all of them, and print the results; returns the exit status. Raises NotTested."""
    began = time.monotonic()
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(short_folder())) for _ in range(jobs)]
        cluster = Path(stack.enter_context(short_folder()))
        trees = [Tree(PROJECT, folder, cluster) for folder in folders]
        prepared_cluster(cluster)
        results: list[tuple[Mutant, Verdict]] = []
        for result in tested(trees, mutants):
            results.append(result)
            print(f"{len(results):3}/{len(mutants)} {judged(*result)}", flush=True)
        print(summary(results, time.monotonic() - began), flush=True)
        killers = {verdict.noticed_by for _, verdict in results} - {""}
        require_sound_tests(trees[0], sorted(killers), jobs)
        print(f"the {len(killers)} tests that noticed them pass on the unchanged code")
    return int(any(not verdict.noticed_by for _, verdict in results))


def main() -> int:
    """Test the mutants that were asked for."""
    options = parse()
    try:
        mutants = chosen(options.words)
        if options.list:
            print("\n".join(f"{place(mutant)}: {mutant.error}" for mutant in mutants))
            return 0
        return run(mutants, options.jobs)
    except KeyboardInterrupt:
        return 130
    except (NotTested, Stale) as reason:
        sys.stderr.write(f"{reason}\n")
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
