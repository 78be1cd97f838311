"""The event loop of a server. The only module that knows uvloop."""

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop, or asyncio's where there is none."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
