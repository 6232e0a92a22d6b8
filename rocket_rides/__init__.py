"""What the services share: settings, the database session, the tables, the log."""
