"""Cells: fleets beside one another, each of which has a range of positions for itself.

A cell's positions: `cell * CELL_SIZE < position < (cell + 1) * CELL_SIZE`, as the schema has it.
"""

CELL_SIZE = 10**14
LAST_CELL = 2**53 // CELL_SIZE - 1  # up to it, each position is exact in JavaScript
