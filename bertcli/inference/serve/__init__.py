"""`bertcli serve`: models that answer over HTTP.

engine.py reads a MODEL, and chooses what computes it; queue.py computes what waits, together. routes.py and
other_routes.py read requests, ours and those of other programs; page.py is for people; server.py has limits,
signals and metrics.
"""
