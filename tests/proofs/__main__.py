"""`python -m tests.proofs`: writes the ledger of claims into docs/claims.md."""

from lab.blocks import write
from rocket_rides.settings import PROJECT
from tests.proofs.page import PAGE, claims
from unified_log.process import take_no_arguments

if __name__ == "__main__":
    take_no_arguments("tests.proofs", __doc__)
    write(PROJECT / PAGE, {"claims": claims})
