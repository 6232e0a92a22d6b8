"""What the services share, beside the mechanism: settings, logs, telemetry, words, health."""
