"""`python -m lab.reference`: writes what the code says into the pages of reference."""

from lab.reference.api import problems, refusals, routes
from lab.reference.blocks import Blocks, write
from lab.reference.metrics import metrics
from lab.reference.schema import tables
from lab.reference.settings import settings
from rocket_rides.settings import PROJECT

PAGES: dict[str, Blocks] = {
    "docs/settings.md": {"settings": settings},
    "docs/metrics.md": {"metrics": metrics},
    "docs/schema.md": {"tables": tables},
    "docs/api.md": {"routes": routes, "refusals": refusals, "problems": problems},
}


def main() -> None:
    for page, blocks in PAGES.items():
        write(PROJECT / page, blocks)


if __name__ == "__main__":
    main()
