"""What makes one command run everything on a bare machine. The services know nothing of it."""
