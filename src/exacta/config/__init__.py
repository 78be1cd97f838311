"""The options of the broker and of topics: names, types, defaults, values in force."""
