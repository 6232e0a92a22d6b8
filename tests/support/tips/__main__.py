"""`python -m tests.support.tips NAME`: sums up the tips."""

from consumers.main import main
from tests.support.tips import Tips

main(Tips, __doc__)
