"""The sink: the transaction protocol of a micro-batch, on the driver and in the tasks."""
