"""The single writer: takes commands, lets the core decide, makes events durable in groups, and only then answers."""
