"""The lies, by what they are about. Each was once told by hand, or may be told by mistake."""

from tests.mutants.lies import (
    api,
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
    *receipts.MUTANTS,
    *api.MUTANTS,
    *nightly.MUTANTS,
    *proofs.MUTANTS,
    *watch.MUTANTS,
]
