"""What docs/cluster.md tells a person to do, so that the very same is done here."""

import re

from rocket_rides.settings import PROJECT

PAGE = PROJECT / "docs/cluster.md"
GRANTS = "CREATE ROLE"  # how the block begins that gives the job its roles in Postgres
DEFAULTS = "spark.driver.host"  # and the one with what stands in spark-defaults.conf


def block(begins: str) -> str:
    """The page's block of code that begins with these words."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    [found] = [each for each in blocks if each.startswith(begins)]
    return str(found)


def defaults(**places: str) -> str:
    """spark-defaults.conf, with `<driver-host>` and the like as they are here."""
    text = block(DEFAULTS)
    for place, name in places.items():
        text = text.replace(f"<{place}-host>", name)
    return text
