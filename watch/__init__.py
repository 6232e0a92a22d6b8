"""Shows what flows, how far everyone is, what broke and what healed; reads, and changes nothing."""
