// Pins Pulsar's client for Go, whose own tests are run against Exacta; nothing is built here.
module exacta/tests/pulsar_go

go 1.24

require github.com/apache/pulsar-client-go v0.21.0
