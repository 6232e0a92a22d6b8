"""The router before the cells: HAProxy's configuration, and the command that moves slots."""
