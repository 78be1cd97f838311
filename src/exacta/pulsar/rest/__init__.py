"""The part of Apache Pulsar's web interface that its clients need (decision 0035).

Start at `application.py`, which has the table of the routes. A handler is a plain function of the broker and a request,
as the handlers of commands are. Paths, statuses and bodies are those of Apache Pulsar 4.2, as it answers itself.
"""
