"""A service with aiokafka: an alert for each measurement that is too hot, once."""
