"""What runs inside a worker process: one job in, one trial out. Needs Python 3.10, numpy, Pillow and one runtime."""
