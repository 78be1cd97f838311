"""The rules of transactions: who holds a transactional id, the life of a transaction, its end, its time, its loss."""
