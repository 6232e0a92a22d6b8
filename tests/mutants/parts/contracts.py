"""Mutants of the contracts, and of what keeps them from shrinking."""

from functools import partial

from tests.mutants.mutant import Mutant

growth = partial(Mutant, file="lab/contracts/growth.py", tests="fast/test_contracts.py")
payloads = partial(Mutant, file="lab/contracts/payloads.py", tests="fast/test_contracts.py")

MUTANTS = [
    growth("a field may go", 'yield f"{of}{field} went"', "pass"),
    growth(
        "a field that older records lack may be required",
        "sorted(needed_now - needed)",
        "sorted(needed_now - needed_now)",
    ),
    growth(
        "a field that older readers need may be missing",
        "sorted((needed - needed_now) & fields_now.keys())",
        "sorted(needed - needed)",
    ),
    growth("a limit says nothing", '"deprecated"}', '"deprecated", "maximum"}'),
    growth("what a list has may change", 'f"{of}{name}: ")', 'f"{of}{name}: ") if False else ()'),
    growth("a closed payload may grow", '"additionalProperties" in was', "False"),
    growth(
        "a field within a field may go",
        'changes(fields[field], fields_now[field], f"{of}{field}: ")',
        "()",
    ),
    growth("a type may go", 'else ["it is gone"]', "else []"),
    growth(
        "a change of words is refused",
        "(was.keys() | now.keys()) - ANNOTATIONS",
        "(was.keys() | now.keys())",
    ),
    payloads("a distance is a string", "kept |= NUMBER", 'kept |= {"type": "string"}'),
    payloads("a type may have two contracts", "is not struct", "is None"),
    Mutant(
        "what was released is written anew",
        "if release.exists()",
        "if False",
        file="lab/contracts/__init__.py",
        tests="fast/test_contracts.py",
    ),
]
