package e2e

import (
	"fmt"
	"iter"
	"log"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// mqttDriver drives paho, over TCP or a WebSocket. A WebSocket is dialled from
// the machine's own address: paho has it no other way.
type mqttDriver struct {
	url string // with %s for the broker's address and port
}

func (d mqttDriver) options(c caller) *mqtt.ClientOptions {
	return clientOptions(fmt.Sprintf(d.url, c.broker), c.from, c.name)
}

func (d mqttDriver) subscribe(c caller, topic string, got func(body []byte)) error {
	client, err := connect(d.options(c).SetConnectionLostHandler(func(_ mqtt.Client, err error) { c.lost(err) }))
	if err != nil {
		return err
	}
	token := client.Subscribe(topic, c.qos, func(_ mqtt.Client, m mqtt.Message) { got(m.Payload()) })
	if !token.WaitTimeout(30 * time.Second) {
		return fmt.Errorf("%s: no SUBACK in 30 s", c.name)
	}
	return token.Error()
}

func (d mqttDriver) publish(c caller, topic string, bodies iter.Seq[[]byte]) error {
	client, err := connect(d.options(c))
	if err != nil {
		return err
	}
	defer client.Disconnect(250)
	for body := range bodies {
		t := client.Publish(topic, c.qos, false, body)
		if c.qos > 0 && !t.WaitTimeout(10*time.Second) {
			return fmt.Errorf("%s: no acknowledgement in 10 s", c.name)
		}
	}
	return nil
}

func clientOptions(broker string, from netip.Addr, id string) *mqtt.ClientOptions {
	return mqtt.NewClientOptions().
		AddBroker(broker).
		SetClientID(id).
		SetDialer(dialerFrom(from)).
		SetWebsocketOptions(&mqtt.WebsocketOptions{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}).
		SetKeepAlive(120 * time.Second).
		SetPingTimeout(60 * time.Second).
		SetConnectTimeout(20 * time.Second).
		SetAutoReconnect(false).
		SetOrderMatters(true)
}

func connect(o *mqtt.ClientOptions) (mqtt.Client, error) {
	mqtt.ERROR = log.New(os.Stderr, "", 0)
	c := mqtt.NewClient(o)
	t := c.Connect()
	if !t.WaitTimeout(30 * time.Second) {
		return nil, fmt.Errorf("%s: no CONNACK in 30 s", o.ClientID)
	}
	return c, t.Error()
}
