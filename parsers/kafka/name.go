package kafka

import "sheaf/parsers"

// A Name is a message's kind: that of a response, or a request's API.
type Name uint8

// The names that are looked at. The name of a request is its API key and apiBase.
const (
	Response Name = iota + 1
	Request       // of another API

	apiBase
	Produce = apiBase + 0
	Fetch   = apiBase + 1

	metadata         = apiBase + 3
	joinGroup        = apiBase + 11
	heartbeat        = apiBase + 12
	leaveGroup       = apiBase + 13
	syncGroup        = apiBase + 14
	saslHandshake    = apiBase + 17
	apiVersions      = apiBase + 18
	saslAuthenticate = apiBase + 36
	groupHeartbeat   = apiBase + 68
)

// maxAPI and maxVersion are more than there are.
const (
	maxAPI     = 99
	maxVersion = 23
)

var apis = [...]string{
	"Produce", "Fetch", "ListOffsets", "Metadata", "LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown",
	"OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup", "DescribeGroups",
	"ListGroups", "SaslHandshake", "ApiVersions", "CreateTopics", "DeleteTopics", "DeleteRecords", "InitProducerId",
	"OffsetForLeaderEpoch", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit",
	"DescribeAcls", "CreateAcls", "DeleteAcls", "DescribeConfigs", "AlterConfigs", "AlterReplicaLogDirs", "DescribeLogDirs",
	"SaslAuthenticate", "CreatePartitions", "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken",
	"DescribeDelegationToken", "DeleteGroups", "ElectLeaders", "IncrementalAlterConfigs", "AlterPartitionReassignments",
	"ListPartitionReassignments", "OffsetDelete", "DescribeClientQuotas", "AlterClientQuotas",
	"DescribeUserScramCredentials", "AlterUserScramCredentials", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch",
	"DescribeQuorum", "AlterPartition", "UpdateFeatures", "Envelope", "FetchSnapshot", "DescribeCluster",
	"DescribeProducers", "BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker", "DescribeTransactions",
	"ListTransactions", "AllocateProducerIds", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe",
}

var names = append([]string{Response: "RESPONSE", Request: "REQUEST"}, apis[:]...)

// String returns the name as the protocol guide writes it.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

// apiName returns the name of a request.
func apiName(key uint16) Name {
	if int(key) >= len(apis) {
		return Request
	}
	return apiBase + Name(key)
}

// The counters that fields follow.
const (
	counterCorrelation = 0
	counterClient      = 1
	counterSession     = 2
	counterEpoch       = 3
)

func (n Name) class() parsers.Class {
	switch n {
	case joinGroup, heartbeat, leaveGroup, syncGroup, saslHandshake, apiVersions, saslAuthenticate, groupHeartbeat:
		return parsers.ClassUrgent
	}
	return parsers.ClassData
}

// Protocol describes Kafka to a Registry.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "kafka",
		Ports:        []uint16{9092},
		SecurePorts:  []uint16{9093},
		MessageNames: names,
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
