"""The tests: real servers, real processes, real HTTP. A test's name is the claim it proves."""
