"""What the riders say: how many ratings there are, and how many stars in all."""
