"""What proves the services: all states of their protocol, runs under faults, measurements."""
