"""The ways to break a running demo by hand: for `make break`, and for the live page's buttons.

`ways.WAYS` lists them; `attempt.run` breaks the fleet in one of them, and says what it does and how
the fleet copes. It knows the fleet from outside: its processes, tables and keys.
"""
