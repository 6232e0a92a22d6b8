"""The protocol as pure transition systems, and an explorer that visits all of their states."""
