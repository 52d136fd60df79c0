package pubsub

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// mqttDriver drives paho, over TCP or a WebSocket. A WebSocket is dialled by paho
// itself, and so from the machine's own address.
type mqttDriver struct {
	url string // with %s for the broker's address and port
}

func (d mqttDriver) options(c Caller) *mqtt.ClientOptions {
	return MQTTOptions(fmt.Sprintf(d.url, c.Broker), c.dial, c.Name)
}

func (d mqttDriver) Subscribe(c Caller, topic string, got func(body []byte)) error {
	client, err := ConnectMQTT(d.options(c).SetConnectionLostHandler(func(_ mqtt.Client, err error) { c.Lost(err) }))
	if err != nil {
		return err
	}
	token := client.Subscribe(topic, c.QoS, func(_ mqtt.Client, m mqtt.Message) { got(m.Payload()) })
	if !token.WaitTimeout(30 * time.Second) {
		return fmt.Errorf("%s: no SUBACK in 30 s", c.Name)
	}
	return token.Error()
}

func (d mqttDriver) Publish(c Caller, topic string, bodies iter.Seq[[]byte]) error {
	client, err := ConnectMQTT(d.options(c))
	if err != nil {
		return err
	}
	defer client.Disconnect(250)
	for body := range bodies {
		t := client.Publish(topic, c.QoS, false, body)
		if c.QoS > 0 && !t.WaitTimeout(10*time.Second) {
			return fmt.Errorf("%s: no acknowledgement in 10 s", c.Name)
		}
	}
	return nil
}

// MQTTOptions are those of a client that gives up where it would mend. The broker
// is a URL; one over TCP is dialled with dial.
func MQTTOptions(broker string, dial DialFunc, id string) *mqtt.ClientOptions {
	o := mqtt.NewClientOptions().
		AddBroker(broker).
		SetClientID(id).
		SetWebsocketOptions(&mqtt.WebsocketOptions{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}).
		SetKeepAlive(120 * time.Second).
		SetPingTimeout(60 * time.Second).
		SetConnectTimeout(20 * time.Second).
		SetAutoReconnect(false).
		SetOrderMatters(true)
	if strings.HasPrefix(broker, "tcp:") {
		o.SetCustomOpenConnectionFn(func(uri *url.URL, o mqtt.ClientOptions) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), o.ConnectTimeout)
			defer cancel()
			return dial(ctx, "tcp", uri.Host)
		})
	}
	return o
}

// ConnectMQTT connects, and waits 30 s for the broker to agree.
func ConnectMQTT(o *mqtt.ClientOptions) (mqtt.Client, error) {
	c := mqtt.NewClient(o)
	t := c.Connect()
	if !t.WaitTimeout(30 * time.Second) {
		return nil, fmt.Errorf("%s: no CONNACK in 30 s", o.ClientID)
	}
	return c, t.Error()
}
