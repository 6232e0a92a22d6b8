"""Fail-overs that Patroni and Sentinel decide: `python -m lab.failover`."""
