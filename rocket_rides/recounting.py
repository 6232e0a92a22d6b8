"""Whether a reader makes its state anew, in SQL."""

# It does, or was asked to. Once it has begun, the state fits the position again at every moment.
# Readers without a state of their own are never asked.
RECOUNTS = "(recount IS NOT NULL AND (recount OR position < furthest))"
