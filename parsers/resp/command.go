package resp

import "strings"

// maxCommand is the longest name that is looked up.
const maxCommand = 32

// commands are the names of the server's commands, in lower case. Subcommands
// follow their command as a word of their own and are not here.
var commands = func() map[string]Name {
	m := make(map[string]Name)
	for _, word := range strings.Fields(`
		acl append asking bf.add bf.exists bgrewriteaof bgsave bitcount bitfield bitfield_ro bitop bitpos
		blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin client cluster command config copy
		dbsize debug decr decrby del discard dump echo eval eval_ro evalsha evalsha_ro exec exists expire
		expireat expiretime failover fcall fcall_ro flushall flushdb ft.create ft.search function geoadd
		geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch
		geosearchstore get getbit getdel getex getrange getset hdel hexists hexpire hget hgetall hgetdel
		hgetex hincrby hincrbyfloat hkeys hlen hmget hmset hpexpire hrandfield hscan hset hsetex hsetnx
		hstrlen httl hvals incr incrby incrbyfloat info json.del json.get json.mget json.set keys lastsave
		latency lcs lindex linsert llen lmove lmpop lolwut lpop lpos lpush lpushx lrange lrem lset ltrim
		memory mget migrate module monitor move mset msetnx multi object persist pexpire pexpireat
		pexpiretime pfadd pfcount pfdebug pfmerge pfselftest psetex psync pttl pubsub randomkey readonly
		readwrite rename renamenx replconf replicaof restore restore-asking role rpop rpoplpush rpush
		rpushx sadd save scan scard script sdiff sdiffstore select sentinel set setbit setex setnx setrange
		shutdown sinter sintercard sinterstore sismember slaveof slowlog smembers smismember smove sort
		sort_ro spop srandmember srem sscan strlen substr sunion sunionstore swapdb sync time touch ts.add
		ts.madd ttl type unlink unwatch vadd vsim wait waitaof watch xackdel xautoclaim xclaim xdel xdelex
		xgroup xinfo xlen xpending xrange xrevrange xsetid xtrim zadd zcard zcount zdiff zdiffstore zincrby
		zinter zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange
		zrangebylex zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore
		zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion zunionstore`) {
		m[word] = COMMAND
	}
	for n := PUBLISH; n <= RESET; n++ {
		m[strings.ToLower(names[n])] = n
	}
	return m
}()

// command returns the kind of a command, 0 when there is none of that name.
// Names may be written in any case.
func command(word []byte) Name {
	if len(word) > maxCommand {
		return 0
	}
	switch string(word) { // those that there are many of
	case "PUBLISH", "publish":
		return PUBLISH
	case "SPUBLISH", "spublish":
		return SPUBLISH
	case "XADD", "xadd":
		return XADD
	case "XREADGROUP", "xreadgroup":
		return XREADGROUP
	case "XREAD", "xread":
		return XREAD
	}
	var lower [maxCommand]byte
	for i, c := range word {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return commands[string(lower[:len(word)])]
}

// nameable says whether a word could be the name of a command.
func nameable(word []byte) bool {
	for _, c := range word {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return len(word) > 0 && len(word) <= maxCommand && word[0]|0x20 >= 'a' && word[0]|0x20 <= 'z'
}

// push returns the kind of a push, 0 when it is any other.
func push(word []byte) Name {
	switch string(word) {
	case "message":
		return Msg
	case "pmessage":
		return PMsg
	case "smessage":
		return SMsg
	case "subscribe":
		return Subscribed
	case "psubscribe":
		return PSubscribed
	case "ssubscribe":
		return SSubscribed
	case "unsubscribe":
		return Unsubscribed
	case "punsubscribe":
		return PUnsubscribed
	case "sunsubscribe":
		return SUnsubscribed
	case "pong": // instead of +PONG while there are subscriptions, in RESP2
		return Pong
	}
	return 0
}

// elements is how many elements a push has.
func (n Name) elements() int {
	switch n {
	case PMsg:
		return 4
	case Pong:
		return 2
	}
	return 3
}
