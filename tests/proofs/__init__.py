"""The ledger of claims: which test proves each, and which mutants that test has noticed."""
