"""`python -m consumers NAME` runs a total, the first kind of consumer: see `consumers.totals`."""

from consumers.totals.__main__ import main

if __name__ == "__main__":
    main()
