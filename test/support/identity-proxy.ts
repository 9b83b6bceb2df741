/** Runs an authenticating proxy, configured like nginx in docs/console-identity.md. */
import { createServer, type IncomingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface IdentityProxy {
  readonly url: string
  /** Forwards new requests to this URL. */
  forwardTo(url: string): void
}

export interface IdentityProxyOptions {
  /** The identity headers that the proxy sets on every request. */
  readonly headers: Readonly<Record<string, string>>
  /** The proxy's own loopback address. */
  readonly from: string
}

/** The headers that the proxy removes from the browser's requests. */
const identityNames = [
  'x-email',
  'x-user',
  'x-preferred-username',
  'x-user-first-name',
  'x-user-last-name',
  'x-groups',
  'x-proxy-secret',
  'authorization',
]

/** Starts a proxy and stops it when the test ends. */
export async function startIdentityProxy({ headers, from }: IdentityProxyOptions): Promise<IdentityProxy> {
  let target: string
  const server = createServer((incoming, outgoing) => {
    const options = { method: incoming.method, headers: replace(incoming.headers), localAddress: from }
    const asking = request(target + incoming.url, options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(outgoing)
      answer.on('error', () => outgoing.destroy())
    })
    asking.on('error', () => outgoing.destroy())
    outgoing.on('close', () => asking.destroy())
    incoming.pipe(asking)
  })
  const replace = (sent: IncomingHttpHeaders) => ({
    ...Object.fromEntries(Object.entries(sent).filter(([name]) => !identityNames.includes(name))),
    ...headers,
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    forwardTo(url) {
      target = url
    },
  }
}
