"""The ways to break a running demo by hand: for `make break`, and for the live page's buttons.

`demo.breaking.ways.WAYS` lists them; `demo.breaking.run` breaks the fleet in one of them, and says
what it does and how the fleet copes. It knows the fleet from outside: its processes, tables and
keys.
"""

from demo.breaking.attempt import run
from demo.breaking.healing import Kind, NotHealed, Say

__all__ = ["Kind", "NotHealed", "Say", "run"]
