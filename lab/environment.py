"""The environment in which the processes of a private fleet run."""

import os

from rocket_rides.settings import Settings


def clean_environment() -> dict[str, str]:
    """This process' environment without the settings of the user's own fleet."""
    return {k: v for k, v in os.environ.items() if k.lower() not in Settings.model_fields}
