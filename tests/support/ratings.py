"""Rates a ride as the API does, in a statement of the tests' own: its number, its stars."""

RATE = """
    WITH rating AS (INSERT INTO ratings (ride_id, stars) VALUES (%s, %s) RETURNING *)
    INSERT INTO staged_log_records (id, action, object, data)
    SELECT id, 'create', 'rating', jsonb_build_object('id', id, 'ride_id', ride_id, 'stars', stars)
    FROM rating
"""
