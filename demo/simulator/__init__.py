"""The simulator: posts rides to the API, as any client would, and receives their receipts."""
