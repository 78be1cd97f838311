"""The largest requests that the limits allow, sent to a broker beside a neighbour that sends heartbeats."""
