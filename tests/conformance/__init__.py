"""What any implementation of an ordered outbox must survive, and how ours and three naive ones do.

Nothing is lost, nothing is out of order, and nothing stands still for what does not concern it.
Each function in `demands.py` is a demand, driven step by step on real servers; `known.py` says how
each implementation meets it, and the tests that this is so.

To judge one of your own, write a class with the methods of `outbox.Outbox`, and run

    python -m tests.conformance your.module:YourClass

`naive.py` is the shortest example of such a class; `unified.py` is the adapter of `unified_log`.
"""
