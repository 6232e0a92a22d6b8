"""A real Spark cluster on one machine: hosts in network namespaces, broken while the job runs."""
