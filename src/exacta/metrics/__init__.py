"""Metrics in the text format of Prometheus: the table of their names, and how each is read when somebody asks.

Engine and fronts keep integers (`exacta.ports.log.counts`, `exacta.front.meter`). Here they are only read. A
scrape reads in turns of the event loop, and the text is made by prometheus-client on a thread (decision 0045).
"""
