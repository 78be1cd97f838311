"""The web front: HTTP connections with bounds, and the guard at the door (decision 0035).

Start at `server.py`. It loads uvicorn and starlette, which come with the extra `exacta-log[web]`, so that nothing
imports this package before somebody asks for it. It knows no protocol: the routes are those of the fronts
(`pulsar/rest`).
"""
