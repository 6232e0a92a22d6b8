"""The mutants, by what they are about: one for each claim, and one for each file that has none."""

from tests.mutants.parts import (
    api,
    attaching,
    guarded,
    held_out,
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
    *held_out.MUTANTS,
    *totals.MUTANTS,
    *rollup.MUTANTS,
    *ick.MUTANTS,
    *receipts.MUTANTS,
    *api.MUTANTS,
    *kinds.MUTANTS,
    *attaching.MUTANTS,
    *nightly.MUTANTS,
    *judge.MUTANTS,
    *guarded.MUTANTS,
    *proofs.MUTANTS,
    *watch.MUTANTS,
]
