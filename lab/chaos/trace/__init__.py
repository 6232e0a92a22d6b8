"""The judge of the trace: each commit must be a step that the specification allows."""
