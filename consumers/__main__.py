"""`python -m consumers NAME` is the first kind of consumer, the total: see `consumers.totals`."""

from consumers.totals.__main__ import main

if __name__ == "__main__":
    main()
