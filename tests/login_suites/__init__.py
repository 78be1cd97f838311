"""Other people's own tests of logins, users and access rules against Exacta (`make test-with WHAT=logins`).

`SOURCES` names a folder with the sources of the clients, side by side, out of their repositories:

    librdkafka               v2.15.0 or newer; it is built here
    confluent-kafka-python   v2.15.0 or newer
    aiokafka                 v0.14.0 or newer
    kafka-python             3.0.7 or newer

A client whose folder is not there is skipped. The tests of each start brokers of their own, in ways of their own. The
modules in `plugins/` give them one broker of ours instead; they are loaded by pytest's `-p`, in the client's folder.
"""
