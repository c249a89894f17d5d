"""The ingest API: devices push their runs here over HTTP, each with a token of its own."""
