/** Tests which servers the client for tenants' URLs connects to. */
import { createServer, type Server } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { EgressClient } from '../../src/http/egress.ts'

/**
 * Starts a server on loopback that counts its connections; returns its port and a function that returns the
 * count.
 */
async function startCounting(): Promise<{ port: number; count: () => number }> {
  let connections = 0
  const server: Server = createServer((socket) => {
    connections += 1
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as { port: number }).port, count: () => connections }
}

const options = { method: 'POST', body: '{}', timeoutMs: 5_000, maxBytes: 100 } as const

/** Creates a client whose DNS lookups return these addresses in order, and then repeat the last one. */
function clientFor(addresses: readonly string[], allow: readonly string[] = []) {
  const asked: string[] = []
  const client = new EgressClient({
    allow,
    lookup(hostname, { all }, callback) {
      const address = addresses[Math.min(asked.length, addresses.length - 1)] as string
      asked.push(hostname)
      const family = address.includes(':') ? 6 : 4
      if (all === true) callback(null, [{ address, family }])
      else callback(null, address, family)
    },
  })
  onTestFinished(() => client.close())
  return { client, asked }
}

test.each(['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', '::ffff:127.0.0.1', '64:ff9b::7f00:1'])(
  "the client for tenants' URLs does not connect to a host name that resolves to %s",
  async (address) => {
    const { client, asked } = clientFor([address])
    await expect(client.send('https://hooks.example.org/', options)).rejects.toMatchObject({
      code: 'ADDRESS_NOT_PUBLIC',
    })
    expect(asked).toEqual(['hooks.example.org'])
  },
)

test("the client for tenants' URLs checks the resolved address before every connection", async () => {
  // Each lookup returns a different private address.
  const { client } = clientFor(['127.0.0.1', '10.0.0.1', '::1'])
  for (let attempt = 0; attempt < 3; attempt++)
    await expect(client.send('https://rebind.example.org/', options)).rejects.toMatchObject({
      code: 'ADDRESS_NOT_PUBLIC',
    })
})

test("the client for tenants' URLs connects to private addresses, over http or to any port, only for hosts that the operator allows", async () => {
  const { port, count } = await startCounting()
  const allowed = clientFor(['127.0.0.1'], ['hooks.internal'])
  const { status } = await allowed.client.send(`http://hooks.internal:${port}/`, options)
  expect([status, count()]).toEqual([200, 1])
  const strict = clientFor(['127.0.0.1'])
  await expect(strict.client.send(`http://hooks.internal:${port}/`, options)).rejects.toThrow('https://')
  await expect(strict.client.send(`https://127.0.0.1/`, options)).rejects.toThrow('must not be a private')
  expect([count(), strict.asked]).toEqual([1, []])
})
