"""The files of the client's tests that are run, and the tests in them that are not, each with its reason.

All other tests of these files must pass. A test that comes with a newer version of the client is run by itself.
"""

FILES = (
    "transaction_test.go",
    "producer_test.go",
    "consumer_test.go",
    "reader_test.go",
    "message_chunking_test.go",
    "client_impl_test.go",
    "consumer_multitopic_test.go",
    "consumer_partition_test.go",
    "consumer_regex_test.go",
    "consumer_zero_queue_test.go",
    "table_view_test.go",
)

CONTAINER = "It starts an Apache Pulsar of its own in a container."
LOGINS = "It wants a login to be refused, and the broker of these tests asks for none, since most of them have none."
MESSAGES = "It looks a message up by HTTP, which is not served."
NAMESPACE = "It wants a namespace not to be there. Here one is a part of names, and is empty if no topic has it."
NON_PERSISTENT = "It uses a topic that is not kept, and Exacta keeps every topic."
QUOTA = "It sets the quota of a namespace by HTTP. Here a quota is a topic's or the broker's."
SCHEMA = "It uses a schema that is neither BYTES nor STRING."
STATISTICS = "It asks for the statistics of a topic by HTTP, which are not served."
TERMINATE = "It ends a topic for good by HTTP, which is not served."
UNLOAD = "It unloads a topic by HTTP: there is one broker, and nothing to unload."

LEFT_OUT = {
    # --- producer_test.go ---
    "TestNonPersistentTopic": NON_PERSISTENT,
    "TestProducerMetadata": STATISTICS,
    "TestFailedSchemaEncode": SCHEMA,
    "TestTopicTermination": TERMINATE,
    "TestSendTimeout": QUOTA,
    "TestSendContextExpired": QUOTA,
    "TestMultipleSchemaOfKeyBasedBatchProducerConsumer": SCHEMA,
    "TestMultipleSchemaProducerConsumer": SCHEMA,
    "TestProducerWithSchemaAndConsumerSchemaNotFound": SCHEMA,
    "TestMemLimitRejectProducerMessagesWithSchema": SCHEMA,
    "TestProducerKeepReconnectingAndThenCallClose": CONTAINER,
    "TestSendAsyncCouldTimeoutWhileReconnecting": CONTAINER,
    "TestProducerReconnectWhenBacklogQuotaExceed": QUOTA,
    # --- consumer_test.go ---
    "TestFailOverConsumerPriority": STATISTICS,
    "TestConsumerMetadata": STATISTICS,
    "TestConsumerGetLastMessageIDs": MESSAGES,
    "TestPartitionConsumerGetLastMessageIDs": MESSAGES,
    "TestConsumerKeepReconnectingAndThenCallClose": CONTAINER,
    "TestClientVersion": STATISTICS,
    "TestConsumerOnCloseInterceptorOnMaxReconnect": CONTAINER,
    # --- client_impl_test.go ---
    "TestTLSAuthError": LOGINS,
    "TestHTTPSAuthError": LOGINS,
    "TestTokenAuthWithClientVersion": STATISTICS,
    "TestNamespaceTopics": NON_PERSISTENT,
    "TestNamespaceTopicsNamespaceDoesNotExitWebURL": NAMESPACE,
    "TestNamespaceTopicsWebURL": NON_PERSISTENT,
    # --- consumer_multitopic_test.go, consumer_regex_test.go, consumer_zero_queue_test.go ---
    "TestMultiTopicGetLastMessageIDs": MESSAGES,
    "TestRegexTopicGetLastMessageIDs": MESSAGES,
    "TestZeroQueueConsumerGetLastMessageIDs": MESSAGES,
    "TestReconnectConsumer": CONTAINER,
    "TestReconnectedBrokerSendPermits": CONTAINER,
    "TestUnloadTopicBeforeConsume": UNLOAD,
    # --- table_view_test.go ---
    "TestTableViewSchemas": SCHEMA,
    "TestForEachAndListenJSONSchema": SCHEMA,
}
"""The tests that are left out, and the reason of each."""

TRIED_AGAIN = {
    "TestMemLimitContextCancel": "It takes one of the two errors that a send may get which is cancelled as it begins.",
    "TestNegativeAckPrecisionBitCnt": "It wants two messages to come within a millisecond.",
}
"""The tests that a busy machine fails through no fault of the broker's: they may fail twice."""
