"""What runs inside the user's own environment with torch: one file, read by its path, never imported here."""
