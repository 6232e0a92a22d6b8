"""The mutants, by what they are about: one for each claim, and one for each file that has none."""

from tests.mutants.parts import (
    api,
    guarded,
    ick,
    judge,
    kinds,
    log,
    nightly,
    proofs,
    readers,
    receipts,
    rollup,
    streamer,
    totals,
    watch,
)

MUTANTS = [
    *streamer.MUTANTS,
    *log.MUTANTS,
    *readers.MUTANTS,
    *totals.MUTANTS,
    *rollup.MUTANTS,
    *ick.MUTANTS,
    *receipts.MUTANTS,
    *api.MUTANTS,
    *kinds.MUTANTS,
    *nightly.MUTANTS,
    *judge.MUTANTS,
    *guarded.MUTANTS,
    *proofs.MUTANTS,
    *watch.MUTANTS,
]
