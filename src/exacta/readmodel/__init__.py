"""The read model: facts about transactions, groups, subscriptions and brokers that no API of Kafka has room for.

The structs are frozen and know no rule. The core's views make them. The broker sends them as JSON in one request of our
own (Ask, docs/reference/ask.md), the client decodes them into the same structs, and the commands print them. A field
may be added at the end with a default: an older client ignores it, and a newer one takes the default where an older
broker leaves it out.
"""
